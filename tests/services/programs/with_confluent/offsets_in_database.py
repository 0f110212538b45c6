"""Keeps its results and the offset up to which they go in one database, in one transaction. The mistake:
when it gets its partitions, it begins at the group's offset and not at the one in the database."""

from kit import MISTAKE, ORDERS, consumer_of, database, invoice, take

results = database("results (key BLOB, value BLOB)")
results.execute("CREATE TABLE IF NOT EXISTS next (partition INTEGER PRIMARY KEY, offset INTEGER)")


def assigned(consumer, partitions):
    for one in partitions:
        found = results.execute("SELECT offset FROM next WHERE partition = ?", (one.partition,)).fetchone()
        if found and not MISTAKE:
            one.offset = found[0]
    consumer.assign(partitions)


consumer = consumer_of()
consumer.subscribe([ORDERS], on_assign=assigned)
done = 0
while True:
    for order in take(consumer):
        results.execute("BEGIN IMMEDIATE")
        next_offset = (order.partition(), order.offset() + 1)
        results.execute("INSERT INTO results VALUES (?, ?)", (order.key(), invoice(order.value())))
        results.execute("INSERT OR REPLACE INTO next VALUES (?, ?)", next_offset)
        results.execute("COMMIT")
        done += 1
        if done % 5 == 0:  # so that tools that show a group's lag show something
            consumer.commit(asynchronous=False)
