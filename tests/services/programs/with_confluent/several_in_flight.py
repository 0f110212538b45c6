"""Writes invoices in the order of the orders. The mistake: several requests in flight without idempotence,
so that one that is sent again comes after those that were sent later. Correct, one is in flight, and after
one that failed for good the producer sends nothing more."""

import sys

from kit import INVOICES, MISTAKE, ORDERS, consumer_of, invoice, producer_of, take

failures = []
in_order = {"enable_idempotence": True, "enable_gapless_guarantee": True, "max_in_flight": 1}
producer = producer_of(
    **({"enable_idempotence": False} if MISTAKE else in_order),
    batch_num_messages=1,
    on_delivery=lambda error, _: failures.append(error) if error else None,
)
consumer = consumer_of()
consumer.subscribe([ORDERS])
while True:
    orders = take(consumer, 100)
    for order in orders:
        producer.produce(INVOICES, invoice(order.value()), order.key())
    producer.flush()
    if failures:
        sys.exit(f"not delivered: {failures[0]}")
    if orders:
        consumer.commit(asynchronous=False)
