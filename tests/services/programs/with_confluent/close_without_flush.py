"""Writes invoices, and commits when fifty are written or nothing comes. The mistake: when it is asked to
stop it commits and ends, while invoices wait in the producer's queue."""

import sys

from kit import INVOICES, MISTAKE, ORDERS, asked_to_stop, consumer_of, invoice, producer_of, take

failures = []
stop = asked_to_stop()
producer = producer_of(on_delivery=lambda error, _: failures.append(error) if error else None)
consumer = consumer_of()
consumer.subscribe([ORDERS])
waiting = 0


def settle(flush=True):
    global waiting
    if flush:
        producer.flush()
    if failures:
        sys.exit(f"not delivered: {failures[0]}")
    if waiting:
        consumer.commit(asynchronous=False)
        waiting = 0


while not stop.is_set():
    orders = take(consumer, 1, 1.0)
    for order in orders:
        producer.produce(INVOICES, invoice(order.value()), order.key())
        producer.poll(0)
        waiting += 1
    if waiting >= 50 or not orders:
        settle()
settle(flush=not MISTAKE)
consumer.close()
