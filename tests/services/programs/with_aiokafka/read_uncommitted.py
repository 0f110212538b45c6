"""Writes an invoice for each order of a shop that writes its orders in transactions. The mistake: it reads
orders of transactions that were aborted, too, as aiokafka does unless told otherwise."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS, invoice

isolation = {} if MISTAKE else {"isolation_level": "read_committed"}


async def main():
    async with (
        AIOKafkaProducer(**AIO_PRODUCER) as producer,
        AIOKafkaConsumer(ORDERS, **AIO_CONSUMER, **isolation) as consumer,
    ):
        async for order in consumer:
            await producer.send_and_wait(INVOICES, invoice(order.value), order.key)
            await consumer.commit()


asyncio.run(main())
