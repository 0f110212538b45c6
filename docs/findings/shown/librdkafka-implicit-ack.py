"""librdkafka acknowledges a record that Apache Kafka refused (../librdkafka-implicit-ack.md).

fault: answer NOT_LEADER_OR_FOLLOWER to Produce, 1st, once
python librdkafka-implicit-ack.py BOOTSTRAP    # of the proxy with that fault; needs confluent-kafka
"""

import sys
import uuid

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

common = {"bootstrap.servers": sys.argv[1], "log_level": 0}
topic, reports = f"shown-{uuid.uuid4().hex[:8]}", {}
admin = AdminClient(common)
admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
producer = ck.Producer(common | {"enable.idempotence": True, "batch.num.messages": 1, "linger.ms": 0})


def delivered(error, one):
    reports[one.value()] = error, one.offset()


for number in range(12):
    producer.produce(topic, str(number), on_delivery=delivered)
producer.flush(60)
reading = {"group.id": topic, "auto.offset.reset": "earliest", "enable.partition.eof": True}
consumer = ck.Consumer(common | reading)
consumer.subscribe([topic])
log = set()
while (one := consumer.poll(60)) is not None and not one.error():
    log.add(one.value())
lost = [value for value, (error, _) in reports.items() if error is None and value not in log]
print(f"librdkafka {ck.libversion()[0]}: {len(reports)} sent, {len(log)} in the log")
for value in lost:
    print(f"record {value.decode()}: acknowledged at offset {reports[value][1]}, not in the log")
sys.exit(10 if lost else 0)
