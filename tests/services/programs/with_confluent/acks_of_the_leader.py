"""Writes an invoice for each order. The mistake: acks=1. The leader alone has the invoice when the order
is committed, and may die."""

from kit import MISTAKE, ORDERS, consumer_of, invoice, producer_of, send, take

producer = producer_of(acks=1, enable_idempotence=False) if MISTAKE else producer_of()
consumer = consumer_of()
consumer.subscribe([ORDERS])
while True:
    for order in take(consumer):
        send(producer, order.key(), invoice(order.value()))
        consumer.commit(asynchronous=False)
