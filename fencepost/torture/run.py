"""One scenario against one driver and an embedded cluster of its own.

Owns the phases: faults, heal, the wait for every answer, the drain of the consumers, the final read. Must not
know what is a bug (judges.py).
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field, frozen

import fencepost.kafka
from fencepost.torture.breaking import Breaking
from fencepost.torture.driver import Command, Driver, Event
from fencepost.torture.protocol import DriverError, encoded
from fencepost.torture.scenario import DURATION_MS, BrokerFault, Scenario
from fencepost.torture.truth import Log, read_log
from fencepost.traces.errors import FencepostError
from fencepost.wire.hook import Hook

TOPIC = "t"
ANSWER_S = 40.0
"""After the heal, the longest wait for answers to appends: twice their delivery time-out. Later they are stuck."""
DRAIN_S = 25.0
"""Longest time without a new record while the group has not seen all: four session time-outs."""
TURN_S = 0.005
POLL_MS = 100
COMMIT_EVERY = 3
"""Polls between commits."""
CLOSE_MS = 5_000


@frozen(kw_only=True)
class Outcome:
    """Everything that the judges look at."""

    scenario: Scenario
    appends: tuple[Command, ...]
    """In the order in which they were sent."""
    polls: Mapping[str, tuple[Command, ...]]
    """Those with an answer, by consumer."""
    commits: tuple[Command, ...]
    events: tuple[Event, ...]
    log: Log
    drained: bool
    """Whether every record was handed out to the group, or there is none."""
    committed: Mapping[int, int]
    """At the end, by partition; left out where nothing is."""
    trouble: str = ""
    """Why the driver was of no use any more; empty if it was."""
    hit: tuple[str, ...] = ()
    """Faults that happened, in words."""


@define(eq=False, kw_only=True)
class Torture:
    """A run under way."""

    scenario: Scenario
    driver: Driver
    kafka: fencepost.kafka.KafkaCluster
    hit: list[str] = field(factory=list)
    between: Callable[[Breaking], Hook] = lambda breaking: breaking
    """What comes between requests and answers."""
    _appends: list[Command] = field(factory=list)
    _members: list[str] = field(factory=list)
    _left: int = 0
    """Members that have left, for fresh names."""
    _polls: dict[str, list[Command]] = field(factory=dict)
    _commits: list[Command] = field(factory=list)
    _handed: set[tuple[int, int]] = field(factory=set)
    _read: dict[str, int] = field(factory=dict)
    """Polls of a consumer that were looked at."""
    _threads: list[threading.Thread] = field(factory=list)

    def go(self) -> Outcome:
        """All phases. Raises FencepostError if the cluster is of no use."""
        scenario = self.scenario
        trouble, drained, committed = "", True, {}
        breaking = Breaking(scenario.request_faults)
        system = self.kafka.run.cluster.system  # type: ignore[attr-defined]
        self.kafka.create_topic(TOPIC, partitions=scenario.partitions, config={"min.insync.replicas": "2"})
        hook = self.between(breaking)
        system.do(lambda: system.listeners.put_between(lambda broker: hook))
        try:
            self._open()
            self._with_faults()
        except DriverError as error:
            trouble = str(error)
        breaking.armed = False
        for thread in self._threads:
            thread.join(ANSWER_S)
        self.kafka.heal()
        self.kafka.wait_until_healthy()
        if not trouble:
            self.driver.wait(self._appends, ANSWER_S)
        log = read_log(self.kafka.bootstrap_servers, TOPIC)
        if not trouble:
            try:
                drained = self._drain(log)
                committed = self._end()
            except DriverError as error:
                trouble = str(error)
            log = read_log(self.kafka.bootstrap_servers, TOPIC)
        return Outcome(
            scenario=scenario,
            appends=tuple(self._appends),
            polls={name: tuple(one for one in polls if one.ok) for name, polls in self._polls.items()},
            commits=tuple(self._commits),
            events=tuple(self.driver.events),
            log=log,
            drained=drained,
            committed=committed,
            trouble=trouble or self.driver.failure,
            hit=(*breaking.done, *self.hit),
        )

    # ---- phases

    def _open(self) -> None:
        bootstrap = {"bootstrap": self.kafka.bootstrap_servers}
        opening = []
        for number in range(self.scenario.producers):
            config = {**bootstrap, **self.scenario.producer}
            opening.append(self.driver.send("open", self._producer(number), role="producer", config=config))
        for _ in range(self.scenario.members):
            opening.append(self._join())
        self.driver.wait(opening)
        for command in opening:
            if not command.ok:
                raise DriverError(expected="a client that opens", seen=command.error, where=self.driver.name)

    def _join(self) -> Command:
        name = f"c{self.scenario.seed}-{self._left}"
        self._left += 1
        config = {
            "bootstrap": self.kafka.bootstrap_servers,
            "group": "g",
            **self.scenario.consumer,
        }
        opening = self.driver.send("open", name, role="consumer", config=config)
        self.driver.send("subscribe", name, topics=[TOPIC])
        self._members.append(name)
        self._polls[name] = []
        self._read[name] = 0
        return opening

    def _producer(self, number: int) -> str:
        return f"p{self.scenario.seed}-{number}"

    def _with_faults(self) -> None:
        scenario = self.scenario
        actions: list[tuple[int, Callable[[], Any]]] = []
        for burst in range(scenario.bursts):
            at = burst * DURATION_MS // scenario.bursts
            for number in range(scenario.producers):
                actions.append((at, partial(self._send, number, burst)))
        for fault in scenario.broker_faults:
            actions.append((fault.at_ms, partial(self._break, fault)))
        for at in scenario.leaves:
            actions.append((at, self._leave))
        actions.sort(key=lambda action: action[0])
        start = time.monotonic()
        while actions or (time.monotonic() - start) * 1000 < DURATION_MS:
            while actions and actions[0][0] <= (time.monotonic() - start) * 1000:
                actions.pop(0)[1]()
            self._poll()
            time.sleep(TURN_S)

    def _send(self, producer: int, burst: int) -> None:
        scenario = self.scenario
        for number in range(scenario.burst):
            partition = number % scenario.partitions
            value = f"{producer}-{burst}-{number}".encode()
            self._appends.append(
                self.driver.send(
                    "append",
                    self._producer(producer),
                    topic=TOPIC,
                    partition=partition,
                    key=encoded(b"%d" % partition),
                    value=encoded(value),
                    headers=[["id", encoded(value)]],
                )
            )

    def _break(self, fault: BrokerFault) -> None:
        def go() -> None:
            try:
                leader = self.kafka.leader(TOPIC, fault.target % self.scenario.partitions)
                if fault.verb == "rebalance":
                    self.kafka.rebalance("g")
                elif fault.verb == "move_leader":
                    self.kafka.move_leader(TOPIC, fault.target % self.scenario.partitions)
                elif fault.verb == "expire_session":
                    self.kafka.expire_session(leader)
                elif fault.verb == "slow":
                    self.kafka.slow(leader, 30, for_ms=fault.for_ms)
                elif fault.verb == "cut_off":
                    self.kafka.cut_off(leader, side="clients", for_ms=fault.for_ms)
                else:
                    getattr(self.kafka, fault.verb)(leader, for_ms=fault.for_ms)
                self.hit.append(str(fault))
            except FencepostError:
                pass  # it cannot begin now: the broker is down, nobody leads, no group is at work

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _leave(self) -> None:
        if self._members:
            self.driver.send("close", self._members.pop(0), timeout_ms=CLOSE_MS)
            self._join()

    def _poll(self) -> bool:
        """Let each member poll that does not; whether a record came that nobody had."""
        fresh = False
        for name, polls in self._polls.items():
            for poll in polls[self._read[name] :]:
                if poll.answer is None:
                    break
                self._read[name] += 1
                for record in (poll.answer.get("records") or ()) if poll.ok else ():
                    place = (record["partition"], record["offset"])
                    fresh = fresh or place not in self._handed
                    self._handed.add(place)
            if name in self._members and self._read[name] == len(polls):
                if self.scenario.commit_mode != "auto" and len(polls) % COMMIT_EVERY == COMMIT_EVERY - 1:
                    self._commits.append(
                        self.driver.send("commit", name, mode=self.scenario.commit_mode, offsets=None)
                    )
                polls.append(self.driver.send("poll", name, timeout_ms=POLL_MS, max_records=500))
        return fresh

    def _drain(self, log: Log) -> bool:
        """Poll until the group has seen all; whether it has."""
        if not self.scenario.members:
            return True
        wanted = {(partition, entry.offset) for partition, entries in log.items() for entry in entries}
        last = time.monotonic()
        while (
            len(self._handed) < len(wanted) or wanted - self._handed
        ):  # the second is slow, and seldom asked
            if self._poll():
                last = time.monotonic()
            if time.monotonic() - last > DRAIN_S or self.driver.failure:
                return False
            time.sleep(TURN_S)
        return True

    def _end(self) -> dict[int, int]:
        """Close all clients; what is committed."""
        committed: dict[int, int] = {}
        if self._members and "committed" in self.driver.ready.commands:
            where = [{"topic": TOPIC, "partition": number} for number in range(self.scenario.partitions)]
            asked = self.driver.send("committed", self._members[0], partitions=where)
            self.driver.wait([asked], ANSWER_S)
            for row in (asked.answer or {}).get("offsets") or ():
                if row["offset"] >= 0:
                    committed[row["partition"]] = row["offset"]
        closing = [
            self.driver.send("close", name, timeout_ms=CLOSE_MS)
            for name in [
                *self._members,
                *(self._producer(number) for number in range(self.scenario.producers)),
            ]
        ]
        self.driver.wait(closing, ANSWER_S)
        return committed


def carry_out(
    scenario: Scenario, driver: Driver, judged: "Callable[[Outcome, fencepost.kafka.KafkaCluster], Any]"
) -> Any:
    """Run a scenario in a fresh cluster; answers what `judged` says of it while the cluster is still there.
    Raises FencepostError."""
    driver.forget()
    with fencepost.kafka.cluster(seed=scenario.seed) as kafka:
        return judged(Torture(scenario=scenario, driver=driver, kafka=kafka).go(), kafka)
