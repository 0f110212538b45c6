"""The producers of a run: they send bursts, as transactions or not, and are replaced.

Owns the producers, what was sent, and every transaction with its end. Must not know faults, or what is a bug.

A transactional producer does one burst after another: it begins, sends, and commits or aborts, as an
application would: if it has waited for the answers to its sends and one failed, it aborts. When a commit
fails it aborts; when that fails, too, the application opens a new producer of the same transactional id,
which fences the old one.

An application that was taken for dead does not know that it was replaced: in the step `fence` another
producer opens while the first one has a transaction with all its answers; only then the first one ends it.
"""

from collections import deque
from typing import Any

from attrs import define, field

from fencepost.sim.randomness import Randomness
from fencepost.torture.driver_process import Command, Driver
from fencepost.torture.record_contents import record
from fencepost.torture.scenario import COMPACTS, TOPICS, Scenario

CLOSE_MS = 5_000
FLUSH_MS = 30_000
"""Above every delivery time-out of a scenario: a flush ends with the last answer."""
GROWN_OF = 4
"""One of so many records of the first topic goes to its new partition."""
ABORTED_OF = 4
"""One of so many transactions is aborted."""
MOST_PRODUCERS = 40
"""Most producers that open in one run, as many as members: a driver takes 64 clients."""
AFTER = 1_000_000
"""Number of the burst that is sent once the cluster is healed; that of another round is higher."""


@define(eq=False, kw_only=True)
class Transaction:
    """One burst, all or nothing."""

    begun: Command
    # That were sent so far; with `apart` more follow.
    appends: list[Command]
    # What the application wanted; False: to abort.
    commit: bool
    # What is to be sent once all that was sent has an answer: topic, and the other fields of an append.
    left: deque[list[tuple[str, dict[str, Any]]]] = field(factory=deque)
    # Its commit or abort; None while records are waited for.
    end: Command | None = None
    # The abort after an end that failed.
    undone: Command | None = None

    @property
    def ended(self) -> str:
        """What the library reported: committed, aborted, or empty if the outcome is unknown."""
        if self.end is None or not self.end.ok or not self.begun.ok:
            return ""
        return "committed" if self.commit else "aborted"


@define(eq=False, kw_only=True)
class _Producer:
    """One of the application's places to send from; its client is replaced when it is of no use."""

    number: int
    client: str = ""
    # The `open` of the client.
    opening: Command | None = None
    # Bursts that were not begun.
    due: deque[int] = field(factory=deque)
    # The transaction under way.
    current: Transaction | None = None
    # Whether the next transaction is to be fenced before its end.
    fencing: bool = False
    # Transactions of clients that were fenced, until they have ended.
    fenced: list[Transaction] = field(factory=list)


@define(eq=False)
class Producers:
    """All of a run."""

    scenario: Scenario
    driver: Driver
    # HOST:PORT,... of the brokers.
    bootstrap: str
    # In the order in which they were sent.
    appends: list[Command] = field(factory=list, init=False)
    # Those that were sent after the heal, by round.
    after: list[list[Command]] = field(factory=list, init=False)
    # Clients that were replaced: what they had under way may never be answered.
    closed: set[str] = field(factory=set, init=False)
    # In the order in which they were begun.
    transactions: list[Transaction] = field(factory=list, init=False)
    # In order.
    flushes: list[Command] = field(factory=list, init=False)
    # Whether the first topic has one more partition.
    grown: bool = field(default=False, init=False)
    _producers: list[_Producer] = field(factory=list, init=False)
    _opened: int = field(default=0, init=False)

    def open(self) -> list[Command]:
        """One client for each; answers their `open`."""
        self._producers = [_Producer(number=number) for number in range(self.scenario.producers)]
        return self.open_again()

    def open_again(self) -> list[Command]:
        """Another client for each that has none, or whose client did not open; answers their `open`."""
        return [self._anew(one) for one in self._producers if one.opening is None or not one.opening.ok]

    def _anew(self, producer: _Producer) -> Command:
        producer.client = f"p{self.scenario.seed}-{producer.number}-{self._opened}"
        config: dict[str, Any] = {"bootstrap": self.bootstrap, **self.scenario.producer}
        config["client_id"] = producer.client
        if self.scenario.transactional:
            config["transactional_id"] = f"p{self.scenario.seed}-{producer.number}"
        self._opened += 1
        producer.opening = self.driver.send("open", producer.client, role="producer", config=config)
        return producer.opening

    def replace(self, number: int) -> None:
        """The application opens another client, and closes the old one with all that is under way."""
        producer = self._producers[number % len(self._producers)]
        if self._opened < MOST_PRODUCERS:
            before, current = producer.client, producer.current
            if current is not None and current.end is None:
                self._finish(producer, current)
            producer.current = None
            self._anew(producer)
            self.closed.add(before)
            self.driver.send("close", before, timeout_ms=CLOSE_MS)

    def fence(self, number: int) -> None:
        """Before the next transaction of this producer ends, another one of its transactional id opens."""
        self._producers[number % len(self._producers)].fencing = True

    def cancel(self, number: int) -> None:
        """The application cancels what it has sent and was not answered."""
        producer = self._producers[number % len(self._producers)]
        if "cancel" in self.driver.ready.commands:
            self.driver.send("cancel", producer.client)

    def flush(self, number: int) -> None:
        """The application waits for what it has sent."""
        producer = self._producers[number % len(self._producers)]
        if "flush" in self.driver.ready.commands:
            self.flushes.append(self.driver.send("flush", producer.client, timeout_ms=FLUSH_MS))

    def send(self, number: int, burst: int) -> None:
        """A burst is due."""
        producer = self._producers[number]
        if self.scenario.transactional:
            producer.due.append(burst)
            self._turn(producer)
        else:
            self._sent(producer, self._records(producer, burst), burst)

    def waited_for(self) -> list[Command]:
        """Appends that must be answered."""
        return [one for one in self.appends if one.client not in self.closed]

    def send_after(self) -> None:
        """The healed cluster takes a small burst of each producer."""
        self.after.append([])
        for number in range(self.scenario.producers):
            self.send(number, AFTER + len(self.after) - 1)

    def turn(self) -> bool:
        """Go on with what was answered. Returns whether everything that was begun has ended."""
        for producer in self._producers:
            self._turn(producer)
        return not any(one.due or one.current is not None or one.fenced for one in self._producers)

    def close(self) -> list[Command]:
        """Close all; answers the commands."""
        return [self.driver.send("close", one.client, timeout_ms=CLOSE_MS) for one in self._producers]

    # ---- transactions

    def _turn(self, producer: _Producer) -> None:
        opening, current = producer.opening, producer.current
        if opening is None or opening.answer is None:
            return
        for one in list(producer.fenced):
            self._end_fenced(producer, one)
        if not opening.ok:
            if self._opened < MOST_PRODUCERS:
                self._anew(producer)
            else:
                producer.due.clear()
        elif current is None:
            if producer.due:
                self._begin(producer, producer.due.popleft())
        elif current.end is None:
            answered = all(one.answer is not None for one in current.appends)
            if not self.scenario.trusts and any(
                one.answer is not None and not one.ok for one in current.appends
            ):
                current.left.clear()
            if answered and current.left:
                current.appends += self._sent(producer, current.left.popleft())
            elif producer.fencing and answered and self._opened < MOST_PRODUCERS:
                producer.fencing, producer.current = False, None
                producer.fenced.append(current)
                self.closed.add(producer.client)
                self._anew(producer)
            elif not current.left and (answered or not (self.scenario.waits or producer.fencing)):
                self._finish(producer, current)
        elif (last := current.undone or current.end).answer is not None:
            if last.ok:
                producer.current = None
            elif current.undone is None and current.commit:
                current.undone = self.driver.send("abort_transaction", producer.client)
            else:
                self.replace(producer.number)
                producer.current = None

    def _begin(self, producer: _Producer, burst: int) -> None:
        chance = Randomness(self.scenario.seed)
        begun = self.driver.send("begin", producer.client)
        parts = deque(self._parts(self._records(producer, burst)))
        sent = self._sent(producer, parts.popleft(), burst)
        aborts = burst < AFTER and chance.below(ABORTED_OF, "aborted", producer.number, burst) == 0
        producer.current = Transaction(begun=begun, appends=sent, commit=not aborts, left=parts)
        self.transactions.append(producer.current)
        self._turn(producer)

    def _end_fenced(self, producer: _Producer, transaction: Transaction) -> None:
        """The client that was fenced ends its transaction, and is closed."""
        if transaction.end is None:
            self._finish(producer, transaction)
        elif transaction.end.answer is not None:
            producer.fenced.remove(transaction)
            self.driver.send("close", transaction.begun.client, timeout_ms=CLOSE_MS)

    def _finish(self, producer: _Producer, transaction: Transaction) -> None:
        failed = any(one.answer is not None and not one.ok for one in transaction.appends)
        if failed and self.scenario.waits and not self.scenario.trusts:
            transaction.commit = False  # as several libraries ask of an application
        name = "commit_transaction" if transaction.commit else "abort_transaction"
        transaction.end = self.driver.send(name, transaction.begun.client)

    def _parts(self, records: list[tuple[str, dict[str, Any]]]) -> list[list[tuple[str, dict[str, Any]]]]:
        """What of a burst is sent at once: everything, or one partition after the other."""
        if not self.scenario.apart:
            return [records]
        parts: dict[tuple[str, int], list[tuple[str, dict[str, Any]]]] = {}
        for topic, fields in records:
            parts.setdefault((topic, fields["partition"]), []).append((topic, fields))
        return list(parts.values())

    def _records(self, producer: _Producer, burst: int) -> list[tuple[str, dict[str, Any]]]:
        """Topic, and the other fields of an append, of each record of a burst."""
        scenario = self.scenario
        chance = Randomness(scenario.seed)
        shapes = ("plain", "plain", "plain", *scenario.shapes) if scenario.shapes else ("plain",)
        name = f"after{burst - AFTER or ''}" if burst >= AFTER else burst
        records = []
        for number in range(scenario.partitions if burst >= AFTER else scenario.burst):
            partition = number % scenario.partitions
            topic = TOPICS[number // scenario.partitions % scenario.topics]
            if self.grown and burst < AFTER and topic == TOPICS[0] and number % GROWN_OF == 0:
                partition = scenario.partitions
            shape = chance.choice(shapes, "shape of", producer.number, burst, number)
            alone = scenario.logs == COMPACTS and number % 2 == 0  # half of the records have to stay
            one = record(f"{producer.number}-{name}-{number}", shape, partition, alone=alone)
            records.append((topic, {"partition": partition, **one.fields()}))
        return records

    def _sent(
        self, producer: _Producer, records: list[tuple[str, dict[str, Any]]], burst: int = 0
    ) -> list[Command]:
        sent = [
            self.driver.send("append", producer.client, topic=topic, **fields) for topic, fields in records
        ]
        self.appends += sent
        if burst >= AFTER:
            self.after[burst - AFTER] += sent
        return sent
