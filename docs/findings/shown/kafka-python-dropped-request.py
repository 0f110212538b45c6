"""A transaction of kafka-python never ends once the coordinator cannot be reached when EndTxn is sent again
(../kafka-python-dropped-request.md).

fault: cut before EndTxn, once
fault: cut before ApiVersions, 4th, once
python kafka-python-dropped-request.py BOOTSTRAP    # of the proxy with those faults; needs kafka-python
"""

import os
import sys
import threading
import uuid

import kafka

topic = f"shown-{uuid.uuid4().hex[:8]}"
WAITED_S = 60
producer = kafka.KafkaProducer(bootstrap_servers=sys.argv[1], transactional_id=topic)
producer.init_transactions()
producer.begin_transaction()
producer.send(topic, b"one").get(60)
ending = threading.Thread(target=producer.commit_transaction, daemon=True)
ending.start()
ending.join(WAITED_S)
seen = ending.is_alive()
said = f"has not returned {WAITED_S} s later" if seen else "returns"
print(f"kafka-python {kafka.__version__}: commit_transaction() {said}", flush=True)
os._exit(10 if seen else 0)  # the end of the process would wait for the producer
