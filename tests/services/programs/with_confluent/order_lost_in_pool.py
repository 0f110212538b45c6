"""Writes invoices in a pool of workers. The mistake: any worker takes any order, so that two orders of one
customer overtake each other. Correct, each customer has one worker, and after an invoice that could not be
written the process ends before it writes the next one."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from zlib import crc32

from confluent_kafka import KafkaException
from kit import MISTAKE, ORDERS, consumer_of, done, invoice, producer_of, send, take

WORKERS = 4
producers = [producer_of() for _ in range(WORKERS)]
workers = [ThreadPoolExecutor(1) for _ in range(WORKERS)]
consumer = consumer_of()
consumer.subscribe([ORDERS])
turn = 0


def write(producer, order):
    try:
        send(producer, order.key(), invoice(order.value()))
    except KafkaException:
        os._exit(1)
    done(order)


while True:
    orders, work = take(consumer, 20), []
    for order in orders:
        turn += 1
        number = (turn if MISTAKE else crc32(order.key())) % WORKERS
        work.append(workers[number].submit(write, producers[number], order))
    wait(work)
    for each in work:
        each.result()
    if orders:
        consumer.commit(asynchronous=False)
