"""An application that reads, transforms and writes exactly once: each transaction takes records of one poll,
their copies in another topic, and the offsets of its group.

Owns the copier's clients, and which record a copy is of. Must not know faults, or what is a bug.

It does what Kafka's documentation asks of such an application (KIP-98, KIP-447): it reads committed records
only, and after anything that failed it aborts, and begins again from what is committed. A library has it in
one of two ways:

- `send_offsets`: a producer and a consumer. After an abort both are replaced, the producer first: its
  transactional id ends what was under way before the new consumer asks where to begin.
- the role `session`: one client for both, which goes back by itself after an abort.
"""

import time
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from fencepost.torture.driver_process import Command, Driver
from fencepost.torture.patience import RESTART_S, Patience
from fencepost.torture.producing import ABORTED_OF, CLOSE_MS, Transaction
from fencepost.torture.protocol import encoded
from fencepost.torture.record_contents import ID, place_of
from fencepost.torture.scenario import TOPICS, Scenario

COPIES = "copies"
"""Topic of the copies; a copy has the partition of its record."""
COPIERS = "copiers"
"""The copier's group."""
POLL_MS = 100
AT_ONCE = 20
"""Most records of one transaction: a run has many transactions then."""
MOST_ABORTED = 3
"""Transactions of a run that the copier aborts: after each, one without a session begins again."""
MOST_COPIERS = 20
"""Most times that the copier begins again in one run: a driver takes 64 clients."""
MOST_BROKEN = 10
"""Of those, before the heal."""
STUCK_S = 20.0
"""Longest time without a new copy after the heal: two time-outs of transactions."""
TURN_S = 0.005
Source = tuple[str, int]
"""Partition and offset of a record."""


def name_of(source: Source, attempt: int) -> bytes:
    """Identity of a copy: each attempt of each record has its own."""
    return f"copy {attempt} of {source[0]}/{source[1]}".encode()


def source_of(name: bytes) -> Source | None:
    """The record that a copy of this identity is of; None if it is no copy."""
    start, _, rest = name.decode(errors="replace").partition(" of ")
    place, _, offset = rest.rpartition("/")
    return (place, int(offset)) if start.startswith("copy ") and offset.isdigit() else None


@define(eq=False)
class Copier:
    """The copier of a run."""

    scenario: Scenario
    driver: Driver
    # HOST:PORT,... of the brokers.
    bootstrap: str
    # In the order in which they were begun.
    transactions: list[Transaction] = field(factory=list, init=False)
    # Clients that were replaced.
    closed: set[str] = field(factory=set, init=False)
    # In order.
    polls: list[Command] = field(factory=list, init=False)
    # Records of transactions that the library reported as committed.
    copied: set[Source] = field(factory=set, init=False)
    # Whether the copier may begin again as often as it can.
    healed: bool = field(default=False, init=False)
    _producer: str = field(default="", init=False)
    # The same as the producer in a session.
    _consumer: str = field(default="", init=False)
    # What must succeed before the first poll.
    _opening: list[Command] = field(factory=list, init=False)
    # How often it has begun.
    _begun: int = field(default=0, init=False)
    # The poll under way.
    _poll: Command | None = field(default=None, init=False)
    _current: Transaction | None = field(default=None, init=False)
    # Records of the current transaction.
    _sources: tuple[Source, ...] = field(default=(), init=False)
    # The current transaction's `send_offsets`.
    _offsets: Command | None = field(default=None, init=False)

    @property
    def _session(self) -> bool:
        return "session" in self.driver.ready.roles

    def open(self) -> list[Command]:
        """Its clients; answers the commands. Nothing if the scenario has no copier."""
        if not self.scenario.copier:
            return []
        named = f"x{self.scenario.seed}-{self._begun}"
        self._begun += 1
        common = {"bootstrap": self.bootstrap}
        writing = {**self.scenario.copier, "transactional_id": f"x{self.scenario.seed}"}
        reading = {**self.scenario.consumer, "group": COPIERS, "auto_commit": False}
        if "isolation" in self.driver.ready.config:
            reading["isolation"] = "read_committed"
        if self._session:
            self._producer = self._consumer = named
            self._opening = [self._ask("open", role="session", config={**reading, **writing, **common})]
        else:
            self._producer, self._consumer = f"{named}p", f"{named}c"
            self._opening = [
                self.driver.send("open", self._producer, role="producer", config={**writing, **common})
            ]
        return list(self._opening)

    def open_again(self) -> list[Command]:
        """The same with other clients if these did not open."""
        if all(one.ok for one in self._opening):
            return []
        self._again()
        return self.open()

    def _ask(self, name: str, **fields: Any) -> Command:
        return self.driver.send(name, self._consumer, **fields)

    def _again(self) -> None:
        """It begins again from what is committed."""
        self.close()
        self.closed |= {self._producer, self._consumer}
        self._poll = self._current = self._offsets = None

    def close(self) -> list[Command]:
        """Close its clients; answers the commands."""
        clients = {self._producer, self._consumer} - {""} - self.closed
        return [self.driver.send("close", one, timeout_ms=CLOSE_MS) for one in sorted(clients)]

    def turn(self) -> None:
        """Go on with what was answered."""
        if self._producer in self.closed and self._begun < (MOST_COPIERS if self.healed else MOST_BROKEN):
            self.open()
        if not self._producer or self._producer in self.closed or not _answered(self._opening):
            return
        if not all(one.ok for one in self._opening):
            self._again()
        elif len(self._opening) == 1:
            self._subscribe()
        elif self._current is not None:
            self._turn(self._current)
        elif self._poll is None:
            self._poll = self._ask("poll", timeout_ms=POLL_MS, max_records=min(self.scenario.polled, AT_ONCE))
            self.polls.append(self._poll)
        elif self._poll.answer is not None:
            records, failed = self._poll.answer.get("records") or [], not self._poll.ok
            self._poll = None
            if failed:
                self._again()
            elif records:
                self._begin(records)

    def _subscribe(self) -> None:
        """Only now, when nothing of an earlier copier's transactions is open any more."""
        if not self._session:
            reading = {**self.scenario.consumer, "group": COPIERS, "auto_commit": False}
            reading |= {"isolation": "read_committed", "bootstrap": self.bootstrap}
            self._opening.append(self._ask("open", role="consumer", config=reading))
        self._opening.append(self._ask("subscribe", topics=TOPICS[: self.scenario.topics]))

    def _begin(self, records: list[Mapping[str, Any]]) -> None:
        number = len(self.transactions)
        begun = self.driver.send("begin", self._producer)
        self._sources = tuple((place_of(one), one["offset"]) for one in records)
        appends = [
            self.driver.send(
                "append",
                self._producer,
                topic=COPIES,
                partition=source["partition"],
                key=source.get("key"),
                value=encoded(b"copy"),
                headers=[[ID, encoded(name_of(where, number))]],
            )
            for source, where in zip(records, self._sources, strict=True)
        ]
        aborts = number % ABORTED_OF == 1 and number < ABORTED_OF * MOST_ABORTED
        self._current = Transaction(begun=begun, appends=appends, commit=not aborts)
        self.transactions.append(self._current)

    def _turn(self, current: Transaction) -> None:
        """Answers to all copies, then the offsets, then the end."""
        if current.end is not None:
            if current.end.answer is not None:
                self._ended(current, current.end)
        elif _answered([current.begun, *current.appends]):
            failed = not all(one.ok for one in current.appends)
            if not current.begun.ok:
                self._again()
            elif failed or not current.commit or self._session:
                self._end(current, commit=current.commit and not failed)
            elif self._offsets is None:
                self._offsets = self.driver.send(
                    "send_offsets", self._producer, consumer=self._consumer, offsets=_next(self._sources)
                )
            elif self._offsets.answer is not None:
                self._end(current, commit=self._offsets.ok)

    def _end(self, current: Transaction, *, commit: bool) -> None:
        current.commit = commit
        name = "commit_transaction" if commit else "abort_transaction"
        current.end = self.driver.send(name, self._producer)

    def _ended(self, current: Transaction, end: Command) -> None:
        kept = end.ok and (end.answer or {}).get("committed", current.commit)
        if end.ok:
            current.commit = kept  # a session may have aborted: its partitions were given away
        self._current = self._offsets = None
        if kept:
            self.copied.update(self._sources)
        elif not (end.ok and self._session):
            self._again()

    def drain(self, wanted: set[Source]) -> bool:
        """Copy until every record has a copy that was reported as committed; whether it came to that.

        Args:
            wanted: committed records.
        """
        self.healed, waiting, bearing, before = True, Patience(), Patience(), 0
        while self._producer and (wanted - self.copied or self._current is not None):
            self.turn()
            if len(self.copied) > before:
                waiting, bearing, before = Patience(), Patience(), len(self.copied)
            if bearing.turn() > RESTART_S and self.driver.troubled & {self._producer, self._consumer}:
                bearing = Patience()
                self._again()  # as a member of the group does
            if waiting.turn() > STUCK_S or self.driver.failure:
                return False
            time.sleep(TURN_S)
        return True


def _answered(commands: list[Command]) -> bool:
    return all(one.answer is not None for one in commands)


def _next(sources: tuple[Source, ...]) -> list[dict[str, Any]]:
    """The offsets after these records, as `send_offsets` takes them."""
    after: dict[str, int] = {}
    for place, offset in sources:
        after[place] = max(offset + 1, after.get(place, 0))
    split = ((place.rpartition("-"), offset) for place, offset in sorted(after.items()))
    return [{"topic": t, "partition": int(number), "offset": offset} for (t, _, number), offset in split]
