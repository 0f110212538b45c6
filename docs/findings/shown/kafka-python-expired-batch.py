"""An idempotent producer of kafka-python sends nothing more once a batch has expired after a retry
(../kafka-python-expired-batch.md).

fault: answer NOT_LEADER_OR_FOLLOWER to Produce, at most 20 times
python kafka-python-expired-batch.py BOOTSTRAP    # of the proxy with that fault; needs kafka-python
"""

import os
import sys
import time
import uuid

import kafka

topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = kafka.KafkaAdminClient(bootstrap_servers=sys.argv[1])
admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
producer = kafka.KafkaProducer(
    bootstrap_servers=sys.argv[1],
    enable_idempotence=True,
    request_timeout_ms=1000,
    delivery_timeout_ms=1000,
    linger_ms=0,
)
first = producer.send(topic, b"0")
while not first.is_done:
    time.sleep(0.1)
print(f"kafka-python {kafka.__version__}: record 0: {first.exception!r:.17}")
time.sleep(2)
later = [producer.send(topic, b"%d" % number) for number in range(1, 11)]
time.sleep(30)
open_ = sum(not one.is_done for one in later)
print(f"10 records sent after that: {open_} have no answer after 30 s")
sys.stdout.flush()
os._exit(10 if open_ else 0)  # close would wait for what is never sent
