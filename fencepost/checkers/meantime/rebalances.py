"""JUSTIFIED: a coordinator expels a member only if it may have been silent, and a rebalance ends as soon as
members can know of it.

Owns needless_expulsion, needless_rebalance and slow_rebalance. The plan says what the processes of members
did (came, crashed, paused, left); the trace says what was broken. The rules apply only if nothing was broken
for a session timeout plus the longest time of the messages, and if no message is lost at random. A rebalance
without a reason stops all members of the group from working, so it costs availability.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import fault_of
from fencepost.checkers.meantime.options import MILLISECOND, Options, Planned
from fencepost.checkers.meantime.steps import Steps
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name

PREPARING, EMPTY, STABLE = "PreparingRebalance", "Empty", "Stable"
SESSION_ENDED = "the session of "
SILENT = frozenset({"crash", "pause", "unsubscribe"})
"""What makes a consumer silent, as functions of a plan's operations."""
MOVES = SILENT | {"subscribe", "transform"}
"""What makes a group rebalance."""
JOINS = " joins"
LATE = (JOINS, " leaves")
"""What a member does when its time for the next poll is over. It leaves and joins as a new member. It leaves
without a request if it does not know its coordinator, for example because that did not answer a commit."""
BY_A_MEMBER = (*LATE, " joins again", " has ended")
"""What a coordinator says of a rebalance that a member began."""
PAUSE_MS = 100
"""Milliseconds of one `records` of a planned pause."""
TRIPS = 12
"""Messages in sequence until a member knows of a rebalance: a heartbeat response, the end of a poll, a
commit, FindCoordinator, JoinGroup."""

COMMIT_TRIPS = 6
"""Messages in a row until a commit is answered: to the coordinator, a follower's fetch that is under way, one
for the record, the next one, and the answer."""
DISK_MS = 200
"""For the disks of all who store it: up to ten syncs of 20 ms, the slowest that the swarm draws."""
JOIN_MS = 5_000
"""How long a consumer waits for a JoinGroup response beyond the rebalance timeout, if the coordinator is
gone."""
SLACK_MS = 500
"""Time for one or two back-offs, and for the disks of the brokers that store a commit."""


MEMBER = re.compile(r"the session of (?:consumer|instance)-(\d+)-")
"""Whose process a member is, as the consumers of a plan name themselves."""
FOR_EVER = 1 << 62


class Detail(msgspec.Struct, frozen=True):
    """The detail of a group_phase event."""

    group: str
    why: str = ""


def is_prompt(options: Options) -> bool:
    """Whether a commit is answered within a client's patience. If not, it is sent again and again, until the
    time for the next poll is over and the member leaves."""
    network = options.network
    usual_us = min(network.latency_max_us, network.latency_min_us + 2 * network.latency_tail_us)
    return COMMIT_TRIPS * usual_us // 1_000 + DISK_MS <= options.consumer.request_timeout_ms


@define
class Rebalances:
    """The state of the rules."""

    # The findings so far.
    findings: Findings
    # The options of the plan.
    options: Options
    # The longest time of the messages in nanoseconds.
    worst_ns: int
    steps: Steps
    # When the safety phase began, in nanoseconds of the trace; the plan's times count from there. -1 before.
    offset_ns: int = -1
    # Since when nothing was broken, in nanoseconds.
    calm: int = 0
    # Active faults by id.
    active: set[str] = field(factory=set)
    # (moment, duration) of each time that the plan makes a consumer silent, in nanoseconds of the plan.
    silent: list[tuple[int, int]] = field(init=False)
    moves: list[tuple[int, int]] = field(init=False)
    """The same of whatever makes a group rebalance."""
    absent: dict[int, list[tuple[int, int]]] = field(factory=dict)
    """The same of each process, until it runs again."""
    phases: dict[str, tuple[str, int, int]] = field(factory=dict)
    suspects: list[tuple[int, int, dict[str, Any]]] = field(factory=list)
    """What may be a finding: beginning and end of the time in which no broker may have worked on old segments
    for longer than a heartbeat's interval, and the finding. A step is known when it has ended."""
    timed_out: dict[str, int] = field(factory=dict)
    """When the coordinator of each group last went on without members who had not joined in time, at the
    earliest: they join as new members."""
    transforming: set[str | None] = field(factory=set)
    """Groups of processes that produce in transactions. One that is refused as fenced leaves, and joins anew;
    the session of a static member may end before that. It also happens without a rival: when a client gives a
    batch up while its last transaction is still in PrepareCommit, its EndTxn is answered PRODUCER_FENCED."""

    def __attrs_post_init__(self) -> None:
        self.transforming = {one.key for one in self.options.operations if one.function == "transform"}
        self.silent = self._times(SILENT)
        self.moves = self._times(MOVES)
        for one in sorted(self.options.operations, key=lambda one: one.at_ms):
            if one.function in MOVES:
                self._learn(one)

    def _learn(self, one: Planned) -> None:
        """A process crashes or leaves until it subscribes again; a pause lasts as long as it says."""
        mine, at = self.absent.setdefault(one.process, []), one.at_ms * MILLISECOND
        if one.function != "subscribe":
            length = one.records * PAUSE_MS * MILLISECOND if one.function == "pause" else FOR_EVER
            mine.append((at, length))
        else:
            mine[:] = [(begun, min(length, at - begun)) for begun, length in mine]

    def _times(self, functions: frozenset[str]) -> list[tuple[int, int]]:
        return [
            (one.at_ms * MILLISECOND, one.records * PAUSE_MS * MILLISECOND if one.function == "pause" else 0)
            for one in self.options.operations
            if one.function in functions
        ]

    @property
    def long_ago(self) -> int:
        """Nanoseconds after which an earlier disturbance no longer matters to a group: a session and a poll
        may have had to end."""
        consumer = self.options.consumer
        wait_ms = consumer.session_timeout_ms + consumer.max_poll_interval_ms
        return wait_ms * MILLISECOND + TRIPS * self.worst_ns

    @property
    def hears_ms(self) -> int:
        """Milliseconds until each member has joined again, without the time of messages: it hears of a
        rebalance with its next heartbeat, and joins after its poll and its work."""
        consumer = self.options.consumer
        return consumer.heartbeat_interval_ms + consumer.poll_timeout_ms + consumer.processing_ms + SLACK_MS

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Phases of groups, and disturbances."""
        return {
            Name.GROUP_PHASE: self._group_phase,
            Name.GROUPS_LOADED: self._disturbed,
            Name.FAULT_BEGAN: self._fault_began,
            Name.FAULT_ENDED: self._fault_ended,
            Name.BROKER_STARTED: self._disturbed,
            Name.BROKER_ZNODE: self._disturbed,
            Name.BECAME_LEADER: self._disturbed,
            Name.PHASE: self._phase,
        }

    # ---- what disturbs

    def _disturbed(self, position: int, event: Event) -> None:
        self.calm = event.time

    def _fault_began(self, position: int, event: Event) -> None:
        self.active.add(fault_of(event))
        self.calm = event.time

    def _fault_ended(self, position: int, event: Event) -> None:
        self.active.discard(fault_of(event))
        self.calm = event.time

    def _phase(self, position: int, event: Event) -> None:
        self.calm = event.time
        if event.cause == "safety":
            self.offset_ns = event.time

    def end(self) -> None:
        """The trace is over: which suspicions have no reason in what brokers did meanwhile?"""
        patience = self.options.consumer.heartbeat_interval_ms * MILLISECOND
        for begin, end, finding in self.suspects:
            if self.steps.cleaning(begin, end, self.steps.cleaned) <= patience:
                self.findings.add(**finding)

    def _suspect(self, begin: int, end: int, anomaly: str, **finding: Any) -> None:
        self.suspects.append((begin, end, {"anomaly": anomaly} | finding))

    def _well_since(self, begin: int, end: int, moves: list[tuple[int, int]]) -> bool:
        """Whether nothing was broken, and no consumer did any of these, from `begin` to `end`."""
        if self.active or self.calm > begin or self.offset_ns < 0:
            return False
        begin, end = begin - self.offset_ns, end - self.offset_ns
        return not any(at <= end and at + length >= begin for at, length in moves)

    # ---- what is asked

    def _group_phase(self, position: int, event: Event) -> None:
        try:
            detail = from_json(event.detail, Detail)
        except msgspec.DecodeError:
            return  # a trace may come from any tool
        phase, since, began = self.phases.get(detail.group, ("", event.time, position))
        self.phases[detail.group] = event.cause, event.time, position
        if event.cause == PREPARING:
            if phase in ("", EMPTY):
                del self.phases[detail.group]  # it waits for more members: group.initial.rebalance.delay.ms
            if detail.why.startswith(SESSION_ENDED):
                self._expelled(position, event, detail)
            elif phase == STABLE and detail.why.endswith(BY_A_MEMBER):
                self._moved(position, event, detail)
        elif phase == PREPARING:
            self._rebalanced(position, event, detail, since, began)

    def _expelled(self, position: int, event: Event, detail: Detail) -> None:
        if not is_prompt(self.options) or detail.group in self.transforming:
            return  # who is late may give its membership up without a request; a static member always does
        known = MEMBER.match(detail.why)
        silent = self.silent if known is None else self.absent.get(int(known[1]), [])
        begin = event.time - self.long_ago
        if not self._well_since(begin, event.time, silent):
            return
        self._suspect(
            begin,
            event.time,
            "needless_expulsion",
            expected=f"members of group {detail.group} to stay: for {self.long_ago // MILLISECOND} ms "
            f"nothing was broken and the member's process ran",
            seen=detail.why,
            topic=event.topic,
            partition=event.partition,
            events=(position,),
        )

    def _moved(self, position: int, event: Event, detail: Detail) -> None:
        if detail.why.endswith(LATE) and not is_prompt(self.options):
            return
        if detail.group in self.transforming:
            return
        if self._joins_anew(event, detail):
            return
        joined = self.long_ago + (JOIN_MS + 2 * self.options.consumer.request_timeout_ms) * MILLISECOND
        if not self._well_since(event.time - joined, event.time, self.moves):
            return
        self._suspect(
            event.time - joined,
            event.time,
            "needless_rebalance",
            expected=f"group {detail.group} to stay {STABLE}: for {joined // MILLISECOND} ms nothing was "
            f"broken and no consumer came, stopped or left",
            seen=detail.why,
            topic=event.topic,
            partition=event.partition,
            events=(position,),
        )

    def _joins_anew(self, event: Event, detail: Detail) -> bool:
        """Whether a member that joins may be one that a rebalance did not wait for, because it cannot hear of
        one in time."""
        if not detail.why.endswith(JOINS) or detail.group not in self.timed_out:
            return False
        hears = self.hears_ms * MILLISECOND + TRIPS * self.worst_ns
        in_time = self.options.consumer.max_poll_interval_ms * MILLISECOND >= hears
        return not in_time and event.time - self.timed_out[detail.group] <= self.long_ago

    def _rebalanced(self, position: int, event: Event, detail: Detail, since: int, began: int) -> None:
        consumer = self.options.consumer
        if event.time - since >= consumer.max_poll_interval_ms * MILLISECOND:
            self.timed_out[detail.group] = event.time
        hears_ms = self.hears_ms
        if any(one.function == "transform" for one in self.options.operations):
            hears_ms += consumer.max_poll_interval_ms  # the transaction under way comes first
        bound = hears_ms * MILLISECOND + TRIPS * self.worst_ns
        if event.time - since <= bound or not self._well_since(
            since - self.long_ago, event.time, self.silent
        ):
            return
        self._suspect(
            since,
            event.time,
            "slow_rebalance",
            expected=f"the members of group {detail.group} to have joined within {bound // MILLISECOND} ms, "
            f"as nothing was broken and no consumer stopped",
            seen=f"it took {(event.time - since) // MILLISECOND} ms",
            topic=event.topic,
            partition=event.partition,
            events=(began, position),
        )
