"""Writes an invoice for each order. The mistake: an invoice that could not be written is logged, and the
order is committed all the same. Correct, the service ends, and begins again with this order."""

import logging

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kit import INVOICES, MISTAKE, ORDERS, PYTHON_CONSUMER, PYTHON_PRODUCER, done, invoice, tapped

producer = tapped(KafkaProducer(**PYTHON_PRODUCER))
consumer = tapped(KafkaConsumer(**PYTHON_CONSUMER))
consumer.assign([TopicPartition(ORDERS, 0)])
for order in consumer:
    try:
        producer.send(INVOICES, invoice(order.value), order.key).get(30)
        done(order)
    except KafkaError as error:
        logging.warning("no invoice: %s", error)
        if not MISTAKE:
            raise
    consumer.commit()
