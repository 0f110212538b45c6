"""A consumer of librdkafka asks again where a partition begins or ends, half a second after it began to read
it, and goes there (../librdkafka-late-list-offsets.md).

fault: delay answer to ListOffsets by 3s, from client earliest, once
fault: delay answer to ListOffsets by 3s, from client latest, once
python librdkafka-late-list-offsets.py BOOTSTRAP    # of the proxy with these faults; needs confluent-kafka
"""

import sys
import time
import uuid

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

common, jumps = {"bootstrap.servers": sys.argv[1], "log_level": 0}, []
admin, producer = AdminClient(common), ck.Producer(common | {"batch.num.messages": 1})
for reset in ("earliest", "latest"):
    topic, last = f"shown-{uuid.uuid4().hex[:8]}", -1
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    reading = {"group.id": topic, "auto.offset.reset": reset, "fetch.message.max.bytes": 1}
    consumer = ck.Consumer(common | reading | {"client.id": reset})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    time.sleep(1)  # ListOffsets is sent
    consumer.pause(consumer.assignment())
    consumer.resume(consumer.assignment())
    end = time.monotonic() + 6
    while time.monotonic() < end:
        for _ in range(10):
            producer.produce(topic, b"")
        if (one := consumer.poll(0.01)) is not None and one.error() is None:
            if last >= 0 and one.offset() != last + 1:
                jumps.append(f"{reset}: from {last} to {one.offset()}")
            if (last := one.offset()) == 0 and reset == "earliest":
                admin.delete_records([ck.TopicPartition(topic, 0, 1)])
print(f"librdkafka {ck.libversion()[0]}: {'; '.join(jumps)}")
sys.exit(10 if jumps else 0)
