"""An idempotent producer of kafka-python ends for ever when its request for a producer id gets no answer
(../kafka-python-request-time-out.md).

fault: silence InitProducerId, once
python kafka-python-request-time-out.py BOOTSTRAP    # of the proxy with that fault; needs kafka-python
"""

import sys
import time
import uuid

import kafka

topic = f"shown-{uuid.uuid4().hex[:8]}"
admin = kafka.KafkaAdminClient(bootstrap_servers=sys.argv[1])
admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
producer = kafka.KafkaProducer(
    bootstrap_servers=sys.argv[1], enable_idempotence=True, request_timeout_ms=2000, delivery_timeout_ms=20000
)
errors = []
for number in range(5):
    try:
        producer.send(topic, b"%d" % number).get(25)
    except kafka.errors.KafkaError as error:
        errors.append(type(error).__name__)
    time.sleep(1)
print(f"kafka-python {kafka.__version__}: {len(errors)} of 5 records, a second apart, fail", *errors[-1:])
sys.exit(10 if len(errors) == 5 else 0)
