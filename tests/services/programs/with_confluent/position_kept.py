"""Writes invoices in batches of five, or when nothing came for two seconds, and drops its buffer when its
partitions are taken from it: whoever gets them begins at the commit. The mistake: if it gets them back,
it goes on where it had stopped to read."""

from kit import MISTAKE, ORDERS, consumer_of, done, invoice, producer_of, send, take

producer = producer_of()
consumer = consumer_of()
buffer = []
read = {}


def assigned(consumer, partitions):
    for one in partitions:
        if MISTAKE and one.partition in read:
            one.offset = read[one.partition]
    consumer.assign(partitions)


def revoked(*_):
    buffer.clear()


consumer.subscribe([ORDERS], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
while True:
    orders = take(consumer, 1, 2.0)
    for order in orders:
        buffer.append(order)
        read[order.partition()] = order.offset() + 1
    if len(buffer) >= 5 or (buffer and not orders):
        for order in buffer:
            send(producer, order.key(), invoice(order.value()))
            done(order)
        buffer.clear()
        consumer.commit(asynchronous=False)
