"""Charges each order once, though the shop sends some orders twice. The mistake: what was charged is known
only to this process, and is forgotten when it ends."""

import asyncio

from aiokafka import AIOKafkaConsumer
from kit import AIO_CONSUMER, MISTAKE, ORDERS, database, done, tapped

charged = set()
rule = "" if MISTAKE else ", UNIQUE (key, value)"
charges = database(f"results (key BLOB, value BLOB{rule})")


def charge(key, value):
    if MISTAKE and (key, value) in charged:
        return
    charges.execute("INSERT OR IGNORE INTO results VALUES (?, ?)", (key, value))
    charged.add((key, value))


async def main():
    async with tapped(AIOKafkaConsumer(ORDERS, **AIO_CONSUMER)) as consumer:
        async for order in consumer:
            charge(order.key, order.value)
            done(order)
            await consumer.commit()


asyncio.run(main())
