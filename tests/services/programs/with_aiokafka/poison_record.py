"""Doubles numbers. The mistake: a record that is no number ends it, after every start. Correct, such a
record goes to a topic of its own."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kit import AIO_CONSUMER, AIO_PRODUCER, INVOICES, MISTAKE, ORDERS


async def main():
    async with (
        AIOKafkaProducer(**AIO_PRODUCER) as producer,
        AIOKafkaConsumer(ORDERS, **AIO_CONSUMER) as consumer,
    ):
        async for order in consumer:
            try:
                topic, value = INVOICES, b"%d" % (2 * int(order.value))
            except ValueError:
                if MISTAKE:
                    raise
                topic, value = "unreadable", order.value
            await producer.send_and_wait(topic, value, order.key)
            await consumer.commit()


asyncio.run(main())
