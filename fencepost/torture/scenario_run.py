"""One scenario with one driver and a new embedded cluster.

Owns the phases: faults, heal, the wait for every answer, the drain of the consumers, the final read. Must not
know what is a bug (judges.py), or what members do (consuming_members.py).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import define, evolve, field

import fencepost.kafka
from fencepost.checkers.liveness.serving import Serving, serving
from fencepost.impl.admin.cluster_state import AdminError
from fencepost.proxy.faults import Struck
from fencepost.torture import scenario as verbs
from fencepost.torture.at_brokers import shuffled
from fencepost.torture.at_brokers.heard import Heard
from fencepost.torture.at_brokers.unreadable import kept
from fencepost.torture.consuming_members import Group
from fencepost.torture.copying import COPIES, Copier
from fencepost.torture.drawing import GROUP
from fencepost.torture.driver_process import Command, Driver
from fencepost.torture.judging.outcome import AFTER_ROUNDS, NEVER, Log, Outcome, is_visible
from fencepost.torture.patience import Patience
from fencepost.torture.producing import Producers
from fencepost.torture.protocol import DriverError
from fencepost.torture.record_contents import place_of
from fencepost.torture.reshaping import delete, delete_half, grow, wait_until_alone
from fencepost.torture.scenario import PRODUCER_STEPS, TOPICS, BrokerFault, Scenario, Step
from fencepost.torture.truth import COMMITTED, OPEN, Entry, read_log
from fencepost.traces.errors import FencepostError
from fencepost.traces.kafka_names.internal_topics import STATE_TOPIC
from fencepost.traces.plan import TransactionOptions
from fencepost.wire.limits import Limits

ANSWER_S = 40.0
"""Longest wait for answers to appends after the cluster is healed: twice their delivery time-out. An append
without an answer by then is stuck."""
HEALED_S, HEALS = 2.0, 8
"""Wait for a healthy cluster before the heal is repeated, and how often it is."""
CLOSE_S = 3.0
"""Longest wait for clients to close: nothing is judged any more, and a driver with clients that are still
open is replaced."""
TURN_S = 0.005
OPENS = 3
"""Most times that a client is opened before there is any fault."""
BEGIN_S = 2.0
"""Longest time that faults continue after their part, until clients are active and every fault has begun."""
COPIER_S = 10.0
"""The same with a copier: it joins a group first, and reads only what is committed."""
COPIER_TRANSACTIONS = 5
"""Transactions that a copier begins before faults end."""
READS = 10
"""Most reads of a log that ends below the acknowledged records. After five seconds the log will not grow."""
READS_OPEN = 30
"""Most reads of a log with open transactions: they time out after ten seconds."""
BETWEEN_READS_S = 0.5
NARROW_BYTES = 4_096
"""Of a socket that takes little: less than a batch, so that a request is written in parts while a broker
rests."""
TRANSACTIONS = TransactionOptions(state_topic_partitions=3, abort_check_ms=500)
"""The transaction coordinators of a scenario that has transactions; time-outs are noticed soon."""
SLOW_LINK_MS = 30
SAFE: Mapping[str, str] = {"min.insync.replicas": "2"}
UNSAFE: Mapping[str, str] = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
"""Of a topic whose leader goes on alone."""
LAG_MS = 500
"""Time after which a follower without fetches is not in sync: its leader goes on alone soon."""
ALONE_S = 0.3
"""How long a leader goes on alone: records are acknowledged and read that are lost."""
TRUNCATED_S = 6.0
"""Longest time until a leader is alone, has gone down, and another one is elected."""
SETTINGS: Mapping[str, Mapping[str, str]] = {
    verbs.COMPACTS: {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.01"},
    verbs.EXPIRES: {"retention.bytes": "1000", "segment.ms": "50"},
}
"""Of topics, by what becomes of their logs. Segments are short, not small: one too small refuses batches."""
READERS = "r"
"""Group of the reader that joins late."""
MOST_READERS = 3
"""Most times that it begins: with the offset reset `none` it may not read at all."""
ASKING = frozenset({"close", "resubscribe"})
"""Commands with which an application itself gives partitions away."""
LASTS_MS = 1_000
"""Duration of a fault from which on it matters who serves meanwhile."""
OFTEN_MS = 100
"""Time between two looks at logs that are compacted or have too many records."""
CLEANING = {"log_cleaner_backoff_ms": OFTEN_MS, "log_retention_check_interval_ms": OFTEN_MS}


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
    # Since when a topic keeps what is acknowledged that was deleted or truncated; NEVER until then.
    renewed: dict[str, int] = field(factory=dict)
    # What clients sent that no broker can read; grows while the run goes on.
    unreadable: list[str] = field(factory=list)
    # What brokers heard of groups.
    heard: Heard = field(factory=Heard)
    # The consumers.
    group: Group = field(init=False)
    # The producers.
    producers: Producers = field(init=False)
    # What copies records, if anything does.
    copier: Copier = field(init=False)
    # One thread for each fault of a broker.
    _threads: list[threading.Thread] = field(factory=list)
    # Why the driver could not be used any more; empty if it can.
    _trouble: str = field(default="", init=False)
    # As in Outcome.
    _drained: bool = field(default=True, init=False)
    _read_all: bool = field(default=True, init=False)
    _copied: bool = field(default=True, init=False)
    _committed: Mapping[str, int] = field(factory=dict, init=False)
    # The reader that joins late, in a group of its own; None before, and if there is none.
    reader: Group | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.group = Group(self.scenario, self.driver, self.kafka.bootstrap_servers)
        self.producers = Producers(self.scenario, self.driver, self.kafka.bootstrap_servers)
        self.copier = Copier(self.scenario, self.driver, self.kafka.bootstrap_servers)

    @property
    def _appends(self) -> list[Command]:
        copies = [append for one in self.copier.transactions for append in one.appends]
        return self.producers.appends + copies

    def go(self) -> Outcome:
        """All phases. Raises FencepostError if the cluster is of no use, or if a client does not open before
        there is any fault, and DisturbedError if something outside has ended the driver."""
        self._set_up()
        self._open()
        self._unless_in_trouble(self._arm, self._with_faults)
        self._heal()
        self._unless_in_trouble(self._after)
        settled = all(command.ok for command in self._appends)
        log = self._read(of_copies=False)
        if not self._trouble:
            self._unless_in_trouble(partial(self._finish, log))
            if self.scenario.copier or self.scenario.logs or not settled:
                log = self._read()  # what was given up may have come after all, there are copies, logs change
        self.driver.refuse_disturbed()
        return self._outcome(log)

    def _unless_in_trouble(self, *phases: Callable[[], None]) -> None:
        """Phases that need the driver, until it cannot be used any more."""
        try:
            for phase in phases:
                if not self._trouble:
                    phase()
        except DriverError as error:
            self._trouble = str(error)

    def _set_up(self) -> None:
        """The topics, and how brokers treat connections and requests."""
        scenario = self.scenario
        for topic in self._every_topic:
            partitions = scenario.partitions + (topic == COPIES)  # the copies of a topic that grows
            self._create(topic, partitions)
        cluster, listeners = self.kafka.run.cluster, self._listeners  # type: ignore[attr-defined]
        if scenario.narrow:
            listeners.narrow(NARROW_BYTES)
        if scenario.consumer.get("rack"):
            listeners.read_nearby()
        if scenario.idle_ms:
            listeners.close_idle(scenario.idle_ms)
        self.heard.now = lambda: cluster.now
        hooks = self.heard.between(listeners.between)
        listeners.put_between(shuffled.between(hooks, scenario.seed) if scenario.shuffled else hooks)

    def _finish(self, log: Log) -> None:
        """Consumers get the rest, the copier copies it, and all clients close."""
        wanted = {
            (place, entry.offset)
            for place, entries in log.items()
            for entry in entries
            if not _is_copy(place) and is_visible(self.scenario, entry)
        }
        self._drained = self.group.drain(_last(wanted) if self.scenario.logs or self.renewed else wanted)
        self._read_all = self._drain_reader(wanted)
        self._copied = self._copy(log)
        self._committed = self._end()

    def _outcome(self, log: Log) -> Outcome:
        driver, heard = self.driver, self.heard
        asked = [one.sent_ns for one in driver.commands if one.name == "committed"]
        return Outcome(
            scenario=self.scenario,
            appends=tuple(self._appends),
            polls=_ok(self.group.polls),
            commits=tuple(self.group.commits),
            read={} if self.reader is None else _ok(self.reader.polls),
            opened={one.client: one.sent_ns for one in driver.commands if one.name == "open"},
            read_all=self._read_all,
            seeks=tuple(self.group.seeks),
            flushes=tuple(self.producers.flushes),
            heard=tuple(heard.commits),
            clock=tuple(heard.clock),
            troubles=tuple(heard.troubles),
            struck=tuple(heard.struck),
            out_of_range=tuple(heard.out_of_range),
            serving=self._serving(),
            asking=tuple(one for one in driver.commands if one.name in ASKING),
            left=frozenset(self.group.left),
            after=tuple(tuple(one) for one in self.producers.after),
            transactions=(*self.producers.transactions, *self.copier.transactions),
            closed=frozenset(self.producers.closed | self.copier.closed),
            events=tuple(driver.events),
            log={place: log[place] for place in log if not _is_copy(place)},
            copies={place: log[place] for place in log if _is_copy(place)},
            copied=self._copied,
            drained=self._drained,
            committed=self._committed,
            committed_ns=min(asked, default=NEVER),
            unreadable=tuple(self.unreadable),
            renewed=dict(self.renewed),
            trouble=self._trouble or (driver.failure and f"{driver.failure}; {driver.last_words()}"),
            hit=tuple(self.hit),
            met=dict(self.met),
        )

    def _serving(self) -> dict[str, tuple[Serving, ...]]:
        if not any(one.for_ms >= LASTS_MS for one in self.scenario.broker_faults):
            return {}
        found = serving(self.kafka.trace())
        return {f"{topic}-{number}": stretches for (topic, number), stretches in found.items()}

    def _create(self, topic: str, partitions: int) -> None:
        scenario = self.scenario
        config = {} if topic == COPIES else SETTINGS.get(scenario.logs, {})
        safety = UNSAFE if scenario.truncates and topic == TOPICS[0] else SAFE
        self.kafka.create_topic(topic, partitions=partitions, config={**safety, **config})

    def _create_again(self, topic: str, partitions: int) -> None:
        """Its name is free only when it is gone from every broker, also from one that is down until the
        heal."""
        patience = Patience()
        while True:
            try:
                return self._create(topic, partitions)
            except AdminError:
                if patience.turn() > ANSWER_S:
                    raise
            time.sleep(TURN_S)

    @property
    def _listeners(self) -> Any:
        return self.kafka.run.cluster.system.listeners  # type: ignore[attr-defined]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the records."""
        return TOPICS[: self.scenario.topics]

    @property
    def _every_topic(self) -> tuple[str, ...]:
        return (*self.topics, COPIES) if self.scenario.copier else self.topics

    # ---- phases

    def _open(self) -> None:
        """Clients open before faults begin: a library may refuse to open without a broker. What did not open
        is opened again: brokers of a crowded machine may take longer than a request time-out."""
        opening = self.producers.open()
        for _ in range(self.scenario.members):
            opening.append(self.group.join())
        opening += self.copier.open()
        for left in reversed(range(OPENS)):
            self.driver.wait(opening)
            self.driver.refuse_disturbed()
            failed = [command for command in opening if not command.ok]
            answered = all(command.answer is not None for command in failed)
            if self.driver.failure and not answered:
                raise self.driver.broken("a client that opens")
            opening = self.producers.open_again() + self.copier.open_again() if answered and left else []
            if len(opening) < len(failed):
                seen = failed[0].error
                raise DriverError(expected="a client that opens", seen=seen, where=self.driver.name)

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
        if self.scenario.truncates:
            self.renewed[TOPICS[0]] = NEVER
        for fault in self.scenario.request_faults:
            self.kafka.request_fault(fault)
        if self.scenario.chaos:
            count = self.kafka.chaos(
                self.scenario.chaos,
                self.scenario.duration_ms,
                level="cluster",
                topic=TOPICS[0],
                requests=False,
            )
            self.hit.append(f"{count} faults of the swarm")

    def _with_faults(self) -> None:
        scenario = self.scenario
        actions: list[tuple[int, Callable[[], Any]]] = []
        for burst in range(scenario.bursts):
            at = burst * scenario.duration_ms // scenario.bursts
            for number in range(scenario.producers):
                actions.append((at, partial(self.producers.send, number, burst)))
        for fault in scenario.broker_faults:
            actions.append((fault.at_ms, partial(self._break, fault)))
        for step in scenario.steps:
            actions.append((step.at_ms, partial(self._step, step)))
        if scenario.reader:
            actions.append((scenario.duration_ms // 2, self._join_reader))
        actions.sort(key=lambda action: action[0])
        start = time.monotonic()
        patience = Patience()
        while (
            actions
            or (time.monotonic() - start) * 1000 < scenario.duration_ms
            or (not self._at_work() and patience.waited_s < (COPIER_S if scenario.copier else BEGIN_S))
        ):
            patience.turn()
            while actions and actions[0][0] <= (time.monotonic() - start) * 1000:
                actions.pop(0)[1]()
            self.group.turn()
            self.producers.turn()
            self.copier.turn()
            if self.reader is not None:
                self.reader.turn()
            time.sleep(TURN_S)

    def _join_reader(self) -> None:
        consumer = {**self.scenario.consumer, "offset_reset": self.scenario.reader, "auto_commit": False}
        alone = evolve(
            self.scenario, members=1, rewinds=False, commit_mode="auto", consumer=consumer, steps=()
        )
        self.reader = Group(alone, self.driver, self.kafka.bootstrap_servers, READERS, MOST_READERS)
        self.reader.join()

    def _step(self, step: Step) -> None:
        if step.verb in PRODUCER_STEPS:
            getattr(self.producers, step.verb)(step.at_ms)
        else:
            self.group.step(step)

    def _at_work(self) -> bool:
        """Whether clients have begun: half of the appends are answered, a member got a record and a
        copier its first transactions. On a busy machine faults would be over before."""
        answered = sum(command.answer is not None for command in self._appends)
        read = bool(self.group.handed or not self.scenario.members)
        copies = not self.scenario.copier or len(self.copier.transactions) >= COPIER_TRANSACTIONS
        return 2 * answered >= len(self._appends) and read and copies

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
            case verbs.DELETES:
                delete_half(self.kafka.bootstrap_servers, TOPICS[0], partition)
            case verbs.GROWS:
                grow(self.kafka.bootstrap_servers, TOPICS[0], self.scenario.partitions + 1)
                self.producers.grown = True
            case verbs.RECREATES:
                self.renewed[TOPICS[0]] = NEVER
                delete(self.kafka.bootstrap_servers, TOPICS[0])
                self._create_again(TOPICS[0], self.scenario.partitions)
                self.renewed[TOPICS[0]] = time.monotonic_ns()
            case verbs.TRUNCATES:
                self.kafka.cut_off(leader, side="brokers")
                wait_until_alone(self.kafka.bootstrap_servers, TOPICS[0], partition)
                time.sleep(ALONE_S)
                self.kafka.crash(leader)
                self.kafka.until(lambda: self.kafka.leader(TOPICS[0], partition) not in (-1, leader))
            case verbs.BOUNCES:
                self.kafka.move_leader(TOPICS[0], partition)
                self.kafka.move_leader(TOPICS[0], partition, to=leader)
            case verbs.MOVES_TRANSACTIONS:
                self.kafka.move_leader(STATE_TOPIC, fault.target % TRANSACTIONS.state_topic_partitions)
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

    def _heal(self) -> None:
        if self.scenario.idle_ms:
            self._listeners.close_idle(Limits().idle_ms)
        self._end_faults()
        if self.scenario.truncates:
            self.renewed[TOPICS[0]] = time.monotonic_ns()

    def _end_faults(self) -> None:
        """Every fault ends. One that has not yet begun begins before that: a rebalance waits for the group,
        so that its members must go on."""
        for wait_s in (TRUNCATED_S if self.scenario.truncates else BEGIN_S, ANSWER_S):
            patience = Patience()
            while any(one.is_alive() for one in self._threads) and patience.turn() < wait_s:
                with suppress(DriverError):  # the next phase meets it again
                    self.group.turn()
                    self.producers.turn()
                    self.copier.turn()
                time.sleep(TURN_S)
            self.kafka.heal()
        for _ in range(HEALS):
            try:
                self.kafka.wait_until_healthy(HEALED_S)
                return
            except FencepostError:
                self.kafka.heal()  # a broker that was asked to stop goes down only after the heal
        self.kafka.wait_until_healthy()

    def _after(self) -> None:
        """What is under way is answered, then the healed cluster takes a last burst of each producer. One
        that fails is followed by others: with few retries a library may give up one append, and not every
        one."""
        if not self._answers():
            return
        for _ in range(AFTER_ROUNDS):
            self.producers.send_after()
            if not self._answers() or self.scenario.transactional:
                return
            if all(one.ok for one in self.producers.after[-1]):
                return
            time.sleep(BETWEEN_READS_S)

    def _answers(self) -> bool:
        """Wait for the answers to appends and for the ends of transactions; what a machine that is busy with
        other work takes longer does not count. Returns whether all came."""
        patience = Patience()
        while patience.turn() < ANSWER_S and not self.driver.failure:
            ended = self.producers.turn()
            if self.driver.wait(self.producers.waited_for(), TURN_S) and ended:
                return True
            self.group.turn()
            self.copier.turn()
        return False

    def _drain_reader(self, wanted: set[tuple[str, int]]) -> bool:
        """Whether a reader that began at the start got everything; others are given some polls."""
        if self.reader is None:
            return True
        if self.scenario.reader == "earliest":
            return self.reader.drain(_last(wanted) if self.scenario.logs or self.renewed else wanted)
        patience = Patience()
        while patience.turn() < BEGIN_S:
            self.reader.turn()
            time.sleep(TURN_S)
        return True

    def _copy(self, log: Log) -> bool:
        """Whether the copier copies every committed record that is not deleted."""
        wanted = {
            (place, entry.offset)
            for place, entries in log.items()
            for entry in entries
            if not _is_copy(place) and entry.outcome in ("", COMMITTED)
        }
        return self.copier.drain(_last(wanted) if self.scenario.logs else wanted)

    def _read(self, *, of_copies: bool = True) -> dict[str, tuple[Entry, ...]]:
        """All logs. A leader that is new may show an end below what was acknowledged, until its followers
        have fetched (KIP-207): then it is read again, READS times at most. Transactions that are open end
        first; of_copies: the copier's, too, which has to go on for that."""
        for read in range(READS_OPEN):
            log = {
                f"{topic}-{number}": entries
                for topic in self._every_topic
                for number, entries in read_log(self.kafka.bootstrap_servers, topic).items()
            }
            ends = {place: entries[-1].offset if entries else -1 for place, entries in log.items()}
            whole = all(
                _offset(one) <= ends[place_of(one.fields)]
                for one in self._appends
                if one.ok and one.fields["topic"] not in self.renewed
            )
            looked_at = [log[place] for place in log if of_copies or not _is_copy(place)]
            opened = any(entry.outcome == OPEN for entries in looked_at for entry in entries)
            if (whole or read >= READS) and not opened:
                break
            time.sleep(BETWEEN_READS_S)
        return log

    def _end(self) -> dict[str, int]:
        """Close all clients; what is committed."""
        committed = self.group.committed(self.topics)
        reader = [] if self.reader is None else self.reader.close()
        closing = [*reader, *self.group.close(), *self.producers.close(), *self.copier.close()]
        self.driver.wait(closing, CLOSE_S)
        return committed


def _ok(polls: Mapping[str, list[Command]]) -> dict[str, tuple[Command, ...]]:
    return {name: tuple(one for one in each if one.ok) for name, each in polls.items()}


def _last(records: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """The last record of each partition: brokers may remove the others before they are read."""
    ends: dict[str, int] = {}
    for place, offset in records:
        ends[place] = max(offset, ends.get(place, -1))
    return set(ends.items())


def _is_copy(place: str) -> bool:
    return place.rpartition("-")[0] == COPIES


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
    transactions = scenario.transactional or scenario.copier
    options: dict[str, Any] = {"transactions": TRANSACTIONS} if transactions else {}
    if scenario.recreates:
        options |= {"auto_create_topics_enable": False}  # a client would make it, with other partitions
    if scenario.truncates:
        options |= {"replica_lag_time_max_ms": LAG_MS}
    if scenario.logs:
        options |= CLEANING
    with fencepost.kafka.cluster(seed=scenario.seed, **options) as kafka, kept() as lines:
        torture = Torture(scenario=scenario, driver=driver, kafka=kafka, unreadable=lines)
        return judged(torture.go(), kafka)
