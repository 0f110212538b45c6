"""Sends at most one mail for each order: it commits first. The mistake: it takes a mail that is late for
one that was not sent, and sends another."""

import logging

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError
from kit import INVOICES, MISTAKE, ORDERS, PYTHON_CONSUMER, PYTHON_PRODUCER, invoice

producer = KafkaProducer(**PYTHON_PRODUCER)
consumer = KafkaConsumer(**PYTHON_CONSUMER)
consumer.assign([TopicPartition(ORDERS, 0)])


def mail(key, value):
    sent = producer.send(INVOICES, value, key)
    try:
        sent.get(0.5)
    except KafkaTimeoutError as error:
        logging.warning("late: %s", error)
        if MISTAKE:
            mail(key, value)


for order in consumer:
    consumer.commit()
    mail(order.key, invoice(order.value))
