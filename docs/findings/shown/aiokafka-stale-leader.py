"""A consumer of aiokafka asks a broker that does not lead for offsets again and again, and never for metadata
(../aiokafka-stale-leader.md).

fault: answer NOT_LEADER_OR_FOLLOWER to ListOffsets, at most 50 times
python aiokafka-stale-leader.py BOOTSTRAP    # of the proxy with that fault; needs aiokafka
"""

import asyncio
import logging
import sys
import uuid

import aiokafka

topic = f"shown-{uuid.uuid4().hex[:8]}"
said: list[str] = []  # by the library, in order
log = logging.getLogger("aiokafka")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(type("Kept", (logging.Handler,), {"emit": lambda _, one: said.append(one.getMessage())})())


async def read() -> None:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
        await producer.send_and_wait(topic, b"one")
    async with aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=sys.argv[1], group_id=topic, auto_offset_reset="earliest"
    ) as consumer:
        await asyncio.wait_for(consumer.getone(), 60)


asyncio.run(read())
refused = [number for number, one in enumerate(said) if one.startswith("Failed fetch offsets")]
between = said[refused[0] : refused[-1]]
asked = sum(one.startswith("Sending metadata request") for one in between)
print(f"aiokafka {aiokafka.__version__}: {len(refused)} times not the leader, {asked} times asked who is")
sys.exit(0 if asked else 10)
