"""One scenario with one driver and a new embedded cluster.

Owns the phases: faults, heal, the wait for every answer, the drain of the consumers, the final read. Must not
know what is a bug (judges.py), or what members do (group.py).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field, frozen

import fencepost.kafka
from fencepost.proxy.faults import Struck
from fencepost.sim.randomness import Randomness
from fencepost.torture.drawing import GROUP
from fencepost.torture.driver import Command, Driver, Event
from fencepost.torture.group import Group
from fencepost.torture.patience import Patience
from fencepost.torture.protocol import DriverError
from fencepost.torture.records import place_of, record
from fencepost.torture.scenario import TOPICS, BrokerFault, Scenario
from fencepost.torture.truth import Entry, read_log
from fencepost.traces.errors import FencepostError

ANSWER_S = 40.0
"""Longest wait for answers to appends after the cluster is healed: twice their delivery time-out. An append
without an answer by then is stuck."""
TURN_S = 0.005
BEGIN_S = 2.0
"""Longest time that faults continue after their part, until clients are active."""
READS = 10
"""Most reads of a log that ends below the acknowledged records. After five seconds the log will not grow."""
BETWEEN_READS_S = 0.5
CLOSE_MS = 5_000
SLOW_LINK_MS = 30

Log = Mapping[str, tuple[Entry, ...]]
"""Records by partition, named as `t-0`."""


@frozen(kw_only=True)
class Outcome:
    """Everything that the judges look at."""

    scenario: Scenario
    appends: tuple[Command, ...]
    """In the order in which they were sent."""
    polls: Mapping[str, tuple[Command, ...]]
    """Those with an answer, by consumer."""
    commits: tuple[Command, ...]
    seeks: tuple[Command, ...] = ()
    events: tuple[Event, ...]
    log: Log
    drained: bool
    """Whether every record was delivered to the group, or there is none."""
    committed: Mapping[str, int]
    """Committed offset at the end, by partition; partitions without one are left out."""
    loss: str = ""
    """Why brokers may have lost acknowledged records, by their own record; empty: they may not."""
    trouble: str = ""
    """Why the driver could not be used any more; empty if it could."""
    hit: tuple[str, ...] = ()
    """Faults that happened, in words."""
    met: Mapping[str, int] = field(factory=dict)
    """How often each kind of fault struck each request, as `lose answer|Produce`."""


@define(eq=False, kw_only=True)
class Torture:
    """A running scenario."""

    # What is to happen.
    scenario: Scenario
    # The library under test.
    driver: Driver
    # The cluster.
    kafka: fencepost.kafka.KafkaCluster
    # Faults that happened, in words.
    hit: list[str] = field(factory=list)
    # How often each kind of fault struck each request, as `lose answer|Produce`.
    met: Counter[str] = field(factory=Counter)
    # The consumers.
    group: Group = field(init=False)
    # Appends, in the order in which they were sent.
    _appends: list[Command] = field(factory=list)
    # One thread for each fault of a broker.
    _threads: list[threading.Thread] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.group = Group(self.scenario, self.driver, self.kafka.bootstrap_servers)

    def go(self) -> Outcome:
        """All phases. Raises FencepostError if the cluster is of no use, or if a client does not open before
        there is any fault."""
        scenario = self.scenario
        trouble, drained, committed = "", True, {}
        for topic in self.topics:
            self.kafka.create_topic(
                topic, partitions=scenario.partitions, config={"min.insync.replicas": "2"}
            )
        self._open()
        try:
            self._arm()
            self._with_faults()
        except DriverError as error:
            trouble = str(error)
        for thread in self._threads:
            thread.join(ANSWER_S)
        self.kafka.heal()
        self.kafka.wait_until_healthy()
        if not trouble:
            self._answers()
        log = self._read()
        if not trouble:
            try:
                wanted = {(place, entry.offset) for place, entries in log.items() for entry in entries}
                drained = self.group.drain(wanted)
                committed = self._end()
            except DriverError as error:
                trouble = str(error)
            if not all(command.ok for command in self._appends):
                log = self._read()  # what the library gave up may have come after all
        return Outcome(
            scenario=scenario,
            appends=tuple(self._appends),
            polls={name: tuple(one for one in polls if one.ok) for name, polls in self.group.polls.items()},
            commits=tuple(self.group.commits),
            seeks=tuple(self.group.seeks),
            events=tuple(self.driver.events),
            log=log,
            drained=drained,
            committed=committed,
            trouble=trouble or self.driver.failure,
            hit=tuple(self.hit),
            met=dict(self.met),
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the records."""
        return TOPICS[: self.scenario.topics]

    # ---- phases

    def _open(self) -> None:
        """Clients open before faults begin: a library may refuse to open without a broker."""
        bootstrap = {"bootstrap": self.kafka.bootstrap_servers}
        opening = []
        for number in range(self.scenario.producers):
            config = {**bootstrap, **self.scenario.producer}
            opening.append(self.driver.send("open", self._producer(number), role="producer", config=config))
        for _ in range(self.scenario.members):
            opening.append(self.group.join())
        self.driver.wait(opening)
        for command in opening:
            if not command.ok:
                raise DriverError(expected="a client that opens", seen=command.error, where=self.driver.name)

    def _arm(self) -> None:
        """Faults of requests strike from now on, and what they strike is counted."""
        engine = self.kafka.run.cluster.request_faults.engine  # type: ignore[attr-defined]
        before = engine.record

        def struck(one: Struck) -> None:
            kind = f"{one.fault.verb} {one.fault.error or one.fault.shape}".strip()
            late = " after effect" if one.fault.after_effect else ""
            self.met[f"{kind}{late}|{one.api}"] += 1
            before(one)

        engine.record = struck
        for fault in self.scenario.request_faults:
            self.kafka.request_fault(fault)
        if self.scenario.chaos:
            count = self.kafka.chaos(
                self.scenario.chaos, self.scenario.duration_ms, topic=TOPICS[0], requests=False
            )
            self.hit.append(f"{count} faults of the swarm")

    def _producer(self, number: int) -> str:
        return f"p{self.scenario.seed}-{number}"

    def _with_faults(self) -> None:
        scenario = self.scenario
        actions: list[tuple[int, Callable[[], Any]]] = []
        for burst in range(scenario.bursts):
            at = burst * scenario.duration_ms // scenario.bursts
            for number in range(scenario.producers):
                actions.append((at, partial(self._send, number, burst)))
        for fault in scenario.broker_faults:
            actions.append((fault.at_ms, partial(self._break, fault)))
        for step in scenario.steps:
            actions.append((step.at_ms, partial(self.group.step, step)))
        actions.sort(key=lambda action: action[0])
        start = time.monotonic()
        patience = Patience()
        while (
            actions
            or (time.monotonic() - start) * 1000 < scenario.duration_ms
            or (not self._at_work() and patience.waited_s < BEGIN_S)
        ):
            patience.turn()
            while actions and actions[0][0] <= (time.monotonic() - start) * 1000:
                actions.pop(0)[1]()
            self.group.turn()
            time.sleep(TURN_S)

    def _at_work(self) -> bool:
        """Whether clients have begun: half of the appends are answered, and a member got a record. On a busy
        machine faults would be over before."""
        answered = sum(command.answer is not None for command in self._appends)
        return 2 * answered >= len(self._appends) and bool(self.group.handed or not self.scenario.members)

    def _send(self, producer: int, burst: int) -> None:
        scenario = self.scenario
        chance = Randomness(scenario.seed)
        shapes = ("plain", "plain", "plain", *scenario.shapes) if scenario.shapes else ("plain",)
        for number in range(scenario.burst):
            partition = number % scenario.partitions
            topic = self.topics[number // scenario.partitions % scenario.topics]
            shape = chance.choice(shapes, "shape of", producer, burst, number)
            sent = record(f"{producer}-{burst}-{number}", shape, partition)
            name = self._producer(producer)
            self._appends.append(
                self.driver.send("append", name, topic=topic, partition=partition, **sent.fields())
            )

    def _break(self, fault: BrokerFault) -> None:
        def go() -> None:
            try:
                self._meet(fault)
                self.hit.append(str(fault))
                self.met[f"{fault.verb}|broker"] += 1
            except FencepostError:
                pass  # it cannot begin now: the broker is down, there is no leader, or no group is active

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _meet(self, fault: BrokerFault) -> None:
        partition = fault.target % self.scenario.partitions
        leader = self.kafka.leader(TOPICS[0], partition)
        match fault.verb:
            case "rebalance":
                self.kafka.rebalance(GROUP)
            case "move_coordinator":
                self.kafka.move_coordinator(GROUP)
            case "move_leader":
                self.kafka.move_leader(TOPICS[0], partition)
            case "expire_session" | "stop":
                getattr(self.kafka, fault.verb)(leader)
            case "slow":
                self.kafka.slow(leader, SLOW_LINK_MS, for_ms=fault.for_ms)
            case "cut_off" | "cut_brokers":
                side = "clients" if fault.verb == "cut_off" else "brokers"
                self.kafka.cut_off(leader, side=side, for_ms=fault.for_ms)
            case _:
                getattr(self.kafka, fault.verb)(leader, for_ms=fault.for_ms)

    def _answers(self) -> None:
        """Wait for the answers to appends; what a machine that is busy with other work takes longer does not
        count."""
        patience = Patience()
        while not self.driver.wait(self._appends, TURN_S) and patience.turn() < ANSWER_S:
            if self.driver.failure:
                break

    def _read(self) -> dict[str, tuple[Entry, ...]]:
        """All logs. A leader that is new may show an end below what was acknowledged, until its followers
        have fetched (KIP-207): then it is read again, READS times at most."""
        for _ in range(READS):
            log = {
                f"{topic}-{number}": entries
                for topic in self.topics
                for number, entries in read_log(self.kafka.bootstrap_servers, topic).items()
            }
            ends = {place: entries[-1].offset if entries else -1 for place, entries in log.items()}
            if all(_offset(one) <= ends[place_of(one.fields)] for one in self._appends if one.ok):
                break
            time.sleep(BETWEEN_READS_S)
        return log

    def _end(self) -> dict[str, int]:
        """Close all clients; what is committed."""
        committed = self.group.committed(self.topics)
        producers = [self._producer(number) for number in range(self.scenario.producers)]
        closing = [
            self.driver.send("close", name, timeout_ms=CLOSE_MS) for name in [*self.group.members, *producers]
        ]
        self.driver.wait(closing, ANSWER_S)
        return committed


def _offset(append: Command) -> int:
    """Where a library says that a record is; -1 if it does not."""
    offset = (append.answer or {}).get("offset")
    return -1 if offset is None else int(offset)


def carry_out(
    scenario: Scenario, driver: Driver, judged: "Callable[[Outcome, fencepost.kafka.KafkaCluster], Any]"
) -> Any:
    """Run a scenario in a fresh cluster; answers what `judged` says of it while the cluster is still there.
    Raises FencepostError."""
    driver.forget()
    with fencepost.kafka.cluster(seed=scenario.seed) as kafka:
        return judged(Torture(scenario=scenario, driver=driver, kafka=kafka).go(), kafka)
