"""Copies a table. The mistake: a record without a value is taken for no record, and what was deleted
stays."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS


async def main():
    async with (
        AIOKafkaProducer(**AIO_PRODUCER) as producer,
        AIOKafkaConsumer(ORDERS, **AIO_CONSUMER) as consumer,
    ):
        async for row in consumer:
            if row.value or not MISTAKE:
                await producer.send_and_wait(INVOICES, row.value, row.key)
            await consumer.commit()


asyncio.run(main())
