"""A consumer of librdkafka that is closed commits records that it never delivered, if a transaction's marker
follows them (../librdkafka-close-commits.md).

fault: observe OffsetCommit
python librdkafka-close-commits.py BOOTSTRAP    # no fault is needed; needs confluent-kafka
"""

import sys
import uuid

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

common = {"bootstrap.servers": sys.argv[1], "log_level": 0}
topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = AdminClient(common)
admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
producer = ck.Producer(common | {"transactional.id": topic})
producer.init_transactions(60)
producer.begin_transaction()
for number in range(20):
    producer.produce(topic, f"{number}")
producer.commit_transaction(60)


def member(group, most):
    reading = {"group.id": group, "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer, got = ck.Consumer(common | reading), 0
    consumer.subscribe([topic], on_revoke=lambda *_: None)
    while got < most and (one := consumer.poll(60)) is not None and not one.error():
        got += 1
    consumer.close()
    return got


got = [member(f"{topic}-{number}", 5) + member(f"{topic}-{number}", 20) for number in range(10)]
short = sum(each < 20 for each in got)
print(
    f"librdkafka {ck.libversion()[0]}: {short} of 10 groups miss some of 20 records, at least {min(got)} read"
)
sys.exit(10 if short else 0)
