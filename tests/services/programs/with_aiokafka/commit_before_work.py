"""Writes an invoice for each order. The mistake: it commits the order before it has written the invoice."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS, done, invoice, tapped


async def main():
    async with (
        tapped(AIOKafkaProducer(**AIO_PRODUCER)) as producer,
        tapped(AIOKafkaConsumer(ORDERS, **AIO_CONSUMER)) as consumer,
    ):
        async for order in consumer:
            if MISTAKE:
                await consumer.commit()
            await producer.send_and_wait(INVOICES, invoice(order.value), order.key)
            done(order)
            if not MISTAKE:
                await consumer.commit()


asyncio.run(main())
