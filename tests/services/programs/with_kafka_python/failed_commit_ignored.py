"""Sends at most one mail for each order: it commits first. The mistake: it sends the mail even if the
commit has failed, and again when it reads the order again."""

import logging

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kit import INVOICES, MISTAKE, ORDERS, PYTHON_CONSUMER, PYTHON_PRODUCER, invoice

producer = KafkaProducer(**PYTHON_PRODUCER)
consumer = KafkaConsumer(**PYTHON_CONSUMER)
consumer.assign([TopicPartition(ORDERS, 0)])
for order in consumer:
    try:
        consumer.commit()
    except KafkaError as error:
        logging.warning("not committed: %s", error)
        if not MISTAKE:
            raise
    producer.send(INVOICES, invoice(order.value), order.key).get(30)
