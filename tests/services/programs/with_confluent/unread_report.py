"""Writes invoices in batches. The mistake: it flushes, and never looks at the reports of the delivery."""

import sys

from kit import INVOICES, MISTAKE, ORDERS, consumer_of, invoice, producer_of, take

failures = []


def report(error, _):
    if error is not None:
        failures.append(error)


producer = producer_of()
consumer = consumer_of()
consumer.subscribe([ORDERS])
while True:
    orders = take(consumer, 5)
    for order in orders:
        producer.produce(
            INVOICES, invoice(order.value()), order.key(), on_delivery=None if MISTAKE else report
        )
    producer.flush()
    if failures:
        sys.exit(f"not delivered: {failures[0]}")
    if orders:
        consumer.commit(asynchronous=False)
