"""Writes an invoice for each order. The mistake: where its group has committed nothing yet, it begins at
the end, as aiokafka and kafka-python do unless told otherwise."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS, done, invoice, tapped

start = {"auto_offset_reset": "latest" if MISTAKE else "earliest"}


async def main():
    async with (
        tapped(AIOKafkaProducer(**AIO_PRODUCER)) as producer,
        tapped(AIOKafkaConsumer(ORDERS, **AIO_CONSUMER | start)) as consumer,
    ):
        async for order in consumer:
            await producer.send_and_wait(INVOICES, invoice(order.value), order.key)
            done(order)
            await consumer.commit()


asyncio.run(main())
