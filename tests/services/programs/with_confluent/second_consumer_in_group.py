"""Writes an invoice for each order, and counts the orders in a second consumer. The mistake: both are in
the same group, and each order comes to one of them only."""

import threading

from kit import GROUP, MISTAKE, ORDERS, consumer_of, invoice, producer_of, send, take


def write_invoices():
    producer, consumer = producer_of(), consumer_of()
    consumer.subscribe([ORDERS])
    while True:
        for order in take(consumer):
            send(producer, order.key(), invoice(order.value()))
            consumer.commit(asynchronous=False)


def count_orders():
    consumer, seen = consumer_of(GROUP if MISTAKE else "counting"), 0
    consumer.subscribe([ORDERS])
    while True:
        for _ in take(consumer):
            seen += 1
            consumer.commit(asynchronous=False)


threading.Thread(target=count_orders, daemon=True).start()
write_invoices()
