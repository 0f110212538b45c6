"""Writes invoices in a pool of workers. The mistake: any worker takes any order, so that two orders of one
customer overtake each other. Correct, each customer has one worker."""

from concurrent.futures import ThreadPoolExecutor, wait
from zlib import crc32

from kit import MISTAKE, ORDERS, consumer_of, invoice, producer_of, send, take

WORKERS = 4
producers = [producer_of() for _ in range(WORKERS)]
workers = [ThreadPoolExecutor(1) for _ in range(WORKERS)]
consumer = consumer_of()
consumer.subscribe([ORDERS])
turn = 0
while True:
    orders, work = take(consumer, 20), []
    for order in orders:
        turn += 1
        number = (turn if MISTAKE else crc32(order.key())) % WORKERS
        work.append(workers[number].submit(send, producers[number], order.key(), invoice(order.value())))
    wait(work)
    for each in work:
        each.result()
    if orders:
        consumer.commit(asynchronous=False)
