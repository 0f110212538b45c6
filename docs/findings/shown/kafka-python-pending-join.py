"""A consumer of kafka-python never comes back from a rebalance that outlasts one poll, if its topic has
changed (../kafka-python-pending-join.md).

fault: delay answer to SyncGroup by 500ms
python kafka-python-pending-join.py BOOTSTRAP    # of the proxy with that fault; needs kafka-python
"""

import sys
import time
import uuid

import kafka

topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = kafka.KafkaAdminClient(bootstrap_servers=sys.argv[1])
admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
producer = kafka.KafkaProducer(bootstrap_servers=sys.argv[1], metadata_max_age_ms=1000)
consumer = kafka.KafkaConsumer(topic, bootstrap_servers=sys.argv[1], group_id=topic, metadata_max_age_ms=1000)


def read(seconds, partitions):
    end, got = time.monotonic() + seconds, [0, 0]
    while time.monotonic() < end:
        for number in partitions:
            producer.send(topic, b"record", partition=number)
        for place, records in consumer.poll(timeout_ms=100).items():
            got[place.partition] += len(records)
    return got


before = read(10, [0])
admin.create_partitions({topic: kafka.admin.NewPartitions(2)})
read(5, [0])
after = read(30, sorted(producer.partitions_for(topic)))
print(f"kafka-python {kafka.__version__}: read by partition: {before}, with two partitions in 30 s: {after}")
sys.exit(10 if before[0] and not after[1] else 0)
