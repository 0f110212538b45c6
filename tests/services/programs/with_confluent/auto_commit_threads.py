"""Writes invoices in a pool of threads. The mistake: automatic commits count what was handed to the pool,
not what the pool has done."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

from kit import MISTAKE, ORDERS, after, consumer_of, done, invoice, producer_of, send, take

producer = producer_of()
consumer = consumer_of(enable_auto_commit=MISTAKE, auto_commit_interval_ms=100)
consumer.subscribe([ORDERS])
waiting = deque()


def work(order):
    send(producer, order.key(), invoice(order.value()))
    done(order)


with ThreadPoolExecutor(4) as pool:
    while True:
        for order in take(consumer):
            waiting.append((order, pool.submit(work, order)))
        while waiting and waiting[0][1].done():
            order, result = waiting.popleft()
            result.result()
            if not MISTAKE:
                consumer.commit(offsets=[after(order)], asynchronous=False)
