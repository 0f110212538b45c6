"""A consumer of librdkafka reads nothing more once an OffsetFetch is lost while its assignment changes
(../librdkafka-offset-fetch.md).

fault: silence answer to OffsetFetch, once
python librdkafka-offset-fetch.py BOOTSTRAP    # of the proxy with that fault; needs confluent-kafka
"""

import sys
import time
import uuid

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

common = {"bootstrap.servers": sys.argv[1], "log_level": 0}
topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = AdminClient(common)
admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
producer = ck.Producer(common)
for number in range(20):
    producer.produce(topic, f"{number}", partition=number % 2)
producer.flush(60)
reading = {"group.id": topic, "auto.offset.reset": "earliest", "socket.timeout.ms": 3000}
consumer, got, errors = ck.Consumer(common | reading), [0, 0], set()
end = time.monotonic() + 60
for partition in (0, 1):
    consumer.incremental_assign([ck.TopicPartition(topic, partition)])
    while time.monotonic() < end - (58, 0)[partition]:
        if (one := consumer.poll(0.1)) is not None and one.error() is None:
            got[one.partition()] += 1
        elif one is not None:
            errors.add(one.error().name())
print(f"librdkafka {ck.libversion()[0]}: of 10 records each in 60 s: {got}; errors: {sorted(errors)}")
sys.exit(0 if all(got) else 10)
