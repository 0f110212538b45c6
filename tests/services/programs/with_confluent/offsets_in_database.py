"""Keeps its results and the offset up to which they go in one database, in one transaction. The mistake:
when it gets its partitions, it begins at the group's offset and not at the one in the database. Correct, it
also leaves out what the database has already: a process that was silent may have lost its partitions."""

from kit import MISTAKE, ORDERS, consumer_of, database, done, invoice, take

results = database("results (key BLOB, value BLOB)")
results.execute("CREATE TABLE IF NOT EXISTS next (partition INTEGER PRIMARY KEY, offset INTEGER)")


def next_offset(partition):
    found = results.execute("SELECT offset FROM next WHERE partition = ?", (partition,)).fetchone()
    return found[0] if found and not MISTAKE else None


def assigned(consumer, partitions):
    for one in partitions:
        offset = next_offset(one.partition)
        if offset is not None:
            one.offset = offset
    consumer.assign(partitions)


consumer = consumer_of()
consumer.subscribe([ORDERS], on_assign=assigned)
taken = 0
while True:
    for order in take(consumer):
        results.execute("BEGIN IMMEDIATE")
        if order.offset() >= (next_offset(order.partition()) or 0):
            after = (order.partition(), order.offset() + 1)
            results.execute("INSERT INTO results VALUES (?, ?)", (order.key(), invoice(order.value())))
            results.execute("INSERT OR REPLACE INTO next VALUES (?, ?)", after)
        results.execute("COMMIT")
        done(order)
        taken += 1
        if taken % 5 == 0:  # so that tools that show a group's lag show something
            consumer.commit(asynchronous=False)
