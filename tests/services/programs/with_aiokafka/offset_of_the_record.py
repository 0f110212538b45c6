"""Turns each order into exactly one invoice, in transactions. The mistake: it commits the offset of the
order, not the next one, and each start begins with an order that is done."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from kit import AIO_CONSUMER, AIO_PRODUCER, GROUP, INVOICES, MISTAKE, ORDERS, done, invoice, tapped


async def main():
    async with (
        tapped(AIOKafkaProducer(**AIO_PRODUCER, transactional_id="billing")) as producer,
        tapped(AIOKafkaConsumer(**AIO_CONSUMER)) as consumer,
    ):
        partition = TopicPartition(ORDERS, 0)
        consumer.assign([partition])
        async for order in consumer:
            async with producer.transaction():
                await producer.send_and_wait(INVOICES, invoice(order.value), order.key)
                offset = order.offset if MISTAKE else order.offset + 1
                await producer.send_offsets_to_transaction({partition: offset}, GROUP)
            done(order)


asyncio.run(main())
