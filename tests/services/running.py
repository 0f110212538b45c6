"""Runs a service of the zoo on a Kafka, with its mistake or without, and reads what became of its results.

Owns how a service is started, struck, started again when it has ended, and stopped. Must not know pytest, nor
what a service does.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from attrs import define, field
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

import fencepost.kafka
from fencepost.kafka import KafkaCluster
from fencepost.kafka.chaos.draw import WORK
from fencepost.kafka.services import Service as Process
from fencepost.traces.plan import TransactionOptions
from tests.services.promises import Result
from tests.services.strikes import Strike, stop
from tests.services.zoo import GROUP, INVOICES, ORDERS, PROGRAMS, Order, Service, more_orders

MOST_STARTS = 5
"""Of a service that ends again and again: one that cannot go on ends at the same record each time."""
PATIENCE_S = 60.0
"""While nothing is recorded."""
STARTS_MS = 2_500
"""How long a service may take until it is at work, under strikes at its start."""
ANSWERS_MS = 1_200
"""How long a service that starts again, or waits for an answer, is waited for after a burst."""
BURSTS = ((3, 200), (6, 200), (1, 350), (6, 450), (3, 200), (6, 200), (1, 350), (6, 950))
"""How many orders are sent and how long the next ones are waited with, in turn: strikes find the service with
one order, with several at once, idle, and at the end of its input. A seed is to stay below 6 s."""
MOST_ROUNDS, ROUND_MS = 20, 3_000
"""At the end, of a service that is not done: how many orders it gets, one by one, and how long each is waited
for. One that writes in batches waits for more."""
SETTLES_MS = 500
"""Of the cluster's time."""
DATABASE = "service.db"


def zoo_cluster(seed: int = 0) -> KafkaCluster:
    """A Kafka with transactions. seed: of what happens by chance."""
    options = TransactionOptions(state_topic_partitions=2, abort_check_ms=200)
    return fencepost.kafka.cluster(seed=seed, transactions=options)


@define(eq=False, kw_only=True)
class ServiceRun:
    """One service on one cluster.

    Call `prepare`, then `work`, then `broken`.
    """

    kafka: KafkaCluster
    service: Service
    # Whether it makes its mistake.
    mistake: bool
    # For its database.
    folder: Path
    group: str = field(default=GROUP, init=False)
    source: str = field(default=ORDERS, init=False)
    sink: str = field(default=INVOICES, init=False)
    # Whether the later orders are sent.
    _sent_later: bool = field(default=False, init=False)
    # Of faults of requests that were armed for the strike.
    _armed: list[int] = field(factory=list, init=False)
    _shop: Producer | None = field(default=None, init=False)

    # ---- the orders

    def prepare(self) -> None:
        """Create the topics, and send the orders that are there before the service starts."""
        self.kafka.create_topic(self.source, partitions=self.service.partitions)
        for topic in (self.sink, *self.service.topics):
            self.kafka.create_topic(topic)
        # who asks first for a coordinator has to ask again later: not the service, which waits in between
        asked = AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers, "log_level": 0})
        found = asked.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])
        if self.service.aborted:
            self._send_in_transactions()
        else:
            self._send(self.service.orders, self._producer())  # nothing fails yet
        found[self.group].result(PATIENCE_S)

    def send_later(self) -> None:
        """Send the later ones, if they are not sent yet."""
        if not self._sent_later:
            self._sent_later = True
            self._send(self.service.later)

    def later_one_by_one(self) -> Iterator[Order]:
        """Send them one after the other, the last one after the others were looked at: a service that has
        dropped one of them commits past it."""
        self._sent_later = True
        *others, last = self.service.later
        for order in others:
            self._send([order])
            yield order
        self._send([last])

    def _producer(self, **options: str) -> Producer:
        return Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "log_level": 0, **options})

    def _send(self, orders: Iterable[Order], producer: Producer | None = None) -> None:
        """Send orders, and wait until they are there. producer: None: one that sends each once."""
        producer = producer or self._open_shop()
        for key, value in orders:
            producer.produce(self.source, value, key)
        assert producer.flush(PATIENCE_S) == 0, "orders were not sent"

    def _open_shop(self) -> Producer:
        """The producer of later orders. It has no producer id for half a second: librdkafka waits so long."""
        if self._shop is None:
            self._shop = self._producer(**{"enable.idempotence": "true"})
        return self._shop

    def _send_in_transactions(self) -> None:
        producer = self._producer(**{"transactional.id": "shop"})
        producer.init_transactions(PATIENCE_S)
        for orders, end in (
            (self.service.aborted, producer.abort_transaction),
            (self.service.orders, producer.commit_transaction),
        ):
            producer.begin_transaction()
            for key, value in orders:
                producer.produce(self.source, value, key)
            producer.flush(PATIENCE_S)
            end(PATIENCE_S)

    # ---- what is there

    def committed(self) -> bool:
        """Whether the group has committed every order."""
        committed = self.kafka.committed(self.group)
        ends: dict[tuple[str, int], int] = {}
        for one in self.kafka.records(self.source):
            ends[one.topic, one.partition] = one.offset + 1
        return all(committed.get(where, 0) >= end for where, end in ends.items())

    def expected(self) -> list[Result]:
        """Its results, by its rule."""
        return self.service.rule(self.kafka.records(self.source, isolation="read_committed"))

    def results(self) -> list[Result]:
        """What it has written so far."""
        if not self.service.in_database:
            found = self.kafka.records(self.sink, isolation="read_committed")
            return [(one.key, one.value) for one in found]
        path = self.folder / DATABASE
        if not path.exists():
            return []
        with suppress(sqlite3.OperationalError):  # it has not made its table yet
            database = sqlite3.connect(path, timeout=PATIENCE_S)
            try:
                return list(database.execute("SELECT key, value FROM results ORDER BY rowid"))
            finally:
                database.close()
        return []

    def broken(self) -> list[str]:
        """What it has promised and not kept, in sentences."""
        return self.service.promise.broken(self.expected(), self.results())

    def done(self) -> bool:
        """Whether it has done all its work, as far as it shows."""
        if self.service.done_by_results:
            return not set(self.expected()) - set(self.results())
        return self.committed()

    # ---- the service

    def work(self, *, struck: bool) -> None:
        """Let it do all its work, and ask it to stop. It is started again when it has ended before.

        Args:
            struck: whether its strike meets it, aimed by hand.
        """
        strike = self.service.strike if struck else None
        for text in () if strike is None else strike.faults:
            self._armed.append(self.kafka.request_fault(text))
        for _ in range(MOST_STARTS):
            with self._start() as process:
                if strike is not None:
                    acting = strike
                    if not self._until(process, partial(self._met, acting)):
                        continue
                    strike = None
                    if acting.members:
                        self.kafka.wait_for_group(self.group, acting.members)
                    if acting.act(self, process):
                        continue
                self.send_later()
                if self._until(process, self.done):
                    self._settle()
                    stop(self, process)
                    return

    def work_in_chaos(self, seed: int) -> dict[str, Any]:
        """Let it do all its work while chaos strikes it; answers what chaos has reached."""
        self.kafka.chaos(seed)
        orders = chain(self.service.later, more_orders())
        self._open_shop()
        with self._start() as process:
            self._until_at_most(self._work_done, STARTS_MS)
            for count, gap_ms in BURSTS:
                done = self._work_done()
                self._send(islice(orders, count))
                self._until_at_most(lambda done=done: self._work_done() > done, ANSWERS_MS)  # type: ignore[misc]
                self._until_at_most(lambda: self.kafka.reached()["over"], gap_ms)
                if self.kafka.reached()["over"]:
                    break
            self.kafka.heal()
            for _ in range(MOST_ROUNDS):
                self._send(islice(orders, 1))  # a service that has dropped one of the others commits past it
                self._until_at_most(self.done, ROUND_MS)
                if self.done():
                    break
            self.kafka.until(self.done, PATIENCE_S)
            self._settle()
            process.terminate()
        return self.kafka.reached()

    def _until_at_most(self, condition: Callable[[], Any], milliseconds: int) -> None:
        end = self._time_ms() + milliseconds
        self.kafka.until(lambda: condition() or self._time_ms() > end, PATIENCE_S)

    def _work_done(self) -> int:
        """How many moments of work it has shown: one that starts again shows others before."""
        moments: dict[str, int] = self.kafka.reached()["moments"]
        return sum(moments.get(kind, 0) for kind in WORK)

    def _time_ms(self) -> int:
        return int(self.kafka.status()["time_ms"])

    def by_another_process(self) -> None:
        """Let one more process do the work, and end it."""
        with self._start() as process:
            self._until(process, self.done)

    def _start(self) -> AbstractContextManager[Process]:
        command = [sys.executable, str(self.service.program), *(["--mistake"] if self.mistake else [])]
        return self.kafka.service(command, self._environment())

    def _environment(self) -> dict[str, str]:
        return {"SERVICE_FOLDER": str(self.folder), "PYTHONPATH": str(PROGRAMS)}

    def _until(self, process: Process, condition: Callable[[], bool]) -> bool:
        """Wait for a condition or for the end of the process; answers whether the condition is true."""
        self.kafka.until(lambda: process.poll() is not None or condition(), PATIENCE_S)
        return condition()

    def _met(self, strike: Strike) -> bool:
        """Whether all has come that it waits for."""
        hits = {row["number"]: row["hits"] for row in self.kafka.request_faults()}
        return (
            all(hits[number] for number in self._armed)
            and (not strike.committed or self.committed())
            and len(self.results()) >= strike.results
        )

    def _settle(self) -> None:
        """Let it write what it has committed already: it is not to be convicted for having been stopped."""
        self._until_at_most(lambda: not self.broken(), SETTLES_MS)
