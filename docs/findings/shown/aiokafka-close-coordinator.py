"""A consumer of aiokafka never stops once its last commit is answered NOT_COORDINATOR
(../aiokafka-close-coordinator.md).

fault: answer NOT_COORDINATOR to OffsetCommit, once
python aiokafka-close-coordinator.py BOOTSTRAP    # of the proxy with that fault; needs aiokafka
"""

import asyncio
import logging
import os
import sys
import uuid

import aiokafka

logging.disable(logging.CRITICAL)
topic = f"shown-{uuid.uuid4().hex[:8]}"
WAITED_S = 60


async def stopped() -> bool:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
        await producer.send_and_wait(topic, b"one")
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=sys.argv[1], group_id=topic, auto_offset_reset="earliest",
        auto_commit_interval_ms=3_600_000,
    )  # fmt: skip
    await consumer.start()
    await consumer.getone()
    done, _ = await asyncio.wait([asyncio.create_task(consumer.stop())], timeout=WAITED_S)
    return bool(done)


seen = not asyncio.new_event_loop().run_until_complete(stopped())
said = f"has not returned {WAITED_S} s later" if seen else "returns"
print(f"aiokafka {aiokafka.__version__}: stop() {said}", flush=True)
os._exit(10 if seen else 0)  # a loop that is closed would wait for the consumer
