"""Keeps the last state of each order in a topic. The mistake: what could not be written goes to a topic of
retries, and comes after later states of the same order."""

import asyncio
import logging

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS, invoice

RETRIES = "retries"


async def main():
    async with (
        AIOKafkaProducer(**AIO_PRODUCER) as producer,
        AIOKafkaConsumer(ORDERS, RETRIES, **AIO_CONSUMER) as consumer,
    ):
        async for order in consumer:
            try:
                await producer.send_and_wait(INVOICES, invoice(order.value), order.key)
            except KafkaError as error:
                logging.warning("not written: %s", error)
                if not MISTAKE:
                    raise
                await producer.send_and_wait(RETRIES, order.value, order.key)
            await consumer.commit()


asyncio.run(main())
