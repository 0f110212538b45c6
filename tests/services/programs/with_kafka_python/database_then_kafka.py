"""Stores each order in its database, and tells others of it in a topic. The mistake: the database, then
Kafka: an order that is stored and not told is never told. Correct, it is told until the database knows
that it was."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kit import INVOICES, MISTAKE, ORDERS, PYTHON_CONSUMER, PYTHON_PRODUCER, database, invoice

stored = database("stored (key BLOB, value BLOB PRIMARY KEY, told INTEGER)")
producer = KafkaProducer(**PYTHON_PRODUCER)
consumer = KafkaConsumer(**PYTHON_CONSUMER)
consumer.assign([TopicPartition(ORDERS, 0)])


def tell(key, value):
    producer.send(INVOICES, invoice(value), key).get(30)
    stored.execute("UPDATE stored SET told = 1 WHERE value = ?", (value,))


def tell_what_waits():
    for key, value in stored.execute(
        "SELECT key, value FROM stored WHERE NOT told ORDER BY rowid"
    ).fetchall():
        tell(key, value)


for order in consumer:
    new = stored.execute("INSERT OR IGNORE INTO stored VALUES (?, ?, 0)", (order.key, order.value)).rowcount
    if not MISTAKE:
        tell_what_waits()
    elif new:
        tell(order.key, order.value)
    consumer.commit()
