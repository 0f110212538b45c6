"""Writes invoices in batches of five, or when nothing came for two seconds. The mistake: when its
partitions are taken from it, it commits what it has read, and drops what is in its buffer."""

from kit import MISTAKE, ORDERS, consumer_of, done, invoice, producer_of, send, take

producer = producer_of()
consumer = consumer_of()
buffer = []


def write():
    for order in buffer:
        send(producer, order.key(), invoice(order.value()))
        done(order)
    buffer.clear()


def revoked(consumer, _):
    if not buffer:
        return  # what it has written is committed, and a commit of nothing is an error
    if not MISTAKE:
        write()
    consumer.commit(asynchronous=False)
    buffer.clear()


def lost(*_):  # somebody else has them already, from the last commit on
    buffer.clear()


consumer.subscribe([ORDERS], on_revoke=revoked, on_lost=lost)
while True:
    orders = take(consumer, 1, 2.0)
    buffer += orders
    if len(buffer) >= 5 or (buffer and not orders):
        write()
        consumer.commit(asynchronous=False)
