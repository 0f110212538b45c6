"""librdkafka writes a record twice when one of another partition times out
(../librdkafka-timed-out-elsewhere.md).

fault: answer REQUEST_TIMED_OUT to Produce, at most 12 times, after effect
python librdkafka-timed-out-elsewhere.py BOOTSTRAP    # of the proxy with that fault; needs confluent-kafka
"""

import sys
import time
import uuid
from collections import Counter

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

common = {"bootstrap.servers": sys.argv[1], "log_level": 0}
topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = AdminClient(common)
admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
times = {"message.timeout.ms": 5_000, "retry.backoff.ms": 1_000}
producer = ck.Producer(common | times | {"enable.idempotence": True, "linger.ms": 0})
producer.produce(topic, "first", partition=0)
end = time.monotonic() + 4
while time.monotonic() < end:
    producer.poll(0.1)
producer.produce(topic, "second", partition=1)
producer.flush(60)
reading = {"group.id": topic, "auto.offset.reset": "earliest", "enable.partition.eof": True}
consumer, log, ends = ck.Consumer(common | reading), Counter(), 0
consumer.subscribe([topic])
while ends < 2 and (one := consumer.poll(60)) is not None:
    ends += bool(one.error())
    log.update([] if one.error() else [one.value().decode()])
print(f"librdkafka {ck.libversion()[0]}: sent 2 records; in the log: {dict(sorted(log.items()))}")
sys.exit(10 if log["second"] > 1 else 0)
