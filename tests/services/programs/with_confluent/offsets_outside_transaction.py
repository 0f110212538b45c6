"""Turns each order into exactly one invoice, in transactions. The mistake: the offset of the order is
committed by the consumer, after the transaction."""

from kit import INVOICES, MISTAKE, ORDERS, after, consumer_of, done, invoice, producer_of, take

producer = producer_of(transactional_id="billing")
consumer = consumer_of()
consumer.subscribe([ORDERS])
producer.init_transactions()
while True:
    for order in take(consumer):
        producer.begin_transaction()
        producer.produce(INVOICES, invoice(order.value()), order.key())
        if not MISTAKE:
            producer.send_offsets_to_transaction([after(order)], consumer.consumer_group_metadata())
        producer.commit_transaction()
        done(order)
        if MISTAKE:
            consumer.commit(offsets=[after(order)], asynchronous=False)
