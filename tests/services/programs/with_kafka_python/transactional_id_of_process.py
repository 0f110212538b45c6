"""Turns each order into exactly one invoice, in transactions. The mistake: each process has a
transactional id of its own, so that a process that was thought dead is not fenced when it wakes up."""

from uuid import uuid4

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from kit import INVOICES, MISTAKE, ORDERS, PYTHON_CONSUMER, PYTHON_PRODUCER, invoice

name = f"billing-{uuid4()}" if MISTAKE else "billing-orders-0"
producer = KafkaProducer(**PYTHON_PRODUCER, transactional_id=name)
producer.init_transactions()
partition = TopicPartition(ORDERS, 0)
consumer = KafkaConsumer(**PYTHON_CONSUMER)
consumer.assign([partition])
for order in consumer:
    producer.begin_transaction()
    producer.send(INVOICES, invoice(order.value), order.key).get(30)
    producer.send_offsets_to_transaction(
        {partition: OffsetAndMetadata(order.offset + 1, "", -1)}, consumer.group_metadata()
    )
    producer.commit_transaction()
