"""Turns each order into exactly one invoice. The mistake: it writes and commits without a transaction, and
what was written and not committed is written again."""

from kit import INVOICES, MISTAKE, ORDERS, after, consumer_of, done, invoice, producer_of, send, take

producer = producer_of() if MISTAKE else producer_of(transactional_id="billing")
consumer = consumer_of()
consumer.subscribe([ORDERS])
if not MISTAKE:
    producer.init_transactions()
while True:
    for order in take(consumer):
        if MISTAKE:
            send(producer, order.key(), invoice(order.value()))
            done(order)
            consumer.commit(offsets=[after(order)], asynchronous=False)
            continue
        producer.begin_transaction()
        producer.produce(INVOICES, invoice(order.value()), order.key())
        producer.send_offsets_to_transaction([after(order)], consumer.consumer_group_metadata())
        producer.commit_transaction()
        done(order)
