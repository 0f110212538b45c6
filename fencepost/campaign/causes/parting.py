"""Where two runs part: the first event that one has and the other does not, on the partition that convicts.

Owns: when two events are the same, and the chain from there to the verdict. Must not know: plans, judges.

Times are not compared: a run without one operation may be a little earlier everywhere. What an event says of
epochs, offsets and members is. Events of different brokers may change places without a meaning, so each
broker's events are compared with its own, and of all first differences the earliest in the failing run
counts.

Groups and transactions are kept on partitions of their own, so that a coordinator's step is on another
partition than its effect. These partitions always concern a finding. Several events of one moment are one
step of a broker, and the one that is no routine says most.

A mistake of a client, or in an answer, is no event. So the runs part at the first operation that a client was
answered differently, if that was before the first such event, or if no event differs.
"""

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from fencepost.checkers.verdict import Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.operations import Operation

NO_STEP = (
    *(Name.PHASE, Name.MARK, Name.REPLICA_LOG, Name.REQUEST, Name.CONNECTION, Name.LIVENESS_FAILED),
    *(Name.ASKED, Name.RECORD_TEXTS),
)
"""The run's own notes: they are no step of the protocol."""
FAULTS = (Name.FAULT_BEGAN, Name.FAULT_ENDED, Name.FAULT_SKIPPED)
"""A plan without a fault lacks its events, which says nothing."""
ROUTINE = (Name.APPENDED, Name.HIGH_WATERMARK, Name.CONTROL_REQUEST_APPLIED, Name.LIVE_BROKERS)
"""Steps of every run; in a chain only the last of each broker is shown, or those that convict."""
NEVER = 1 << 62
"""When an operation without an answer was answered: after all others."""
MOST_LINKS = 14
"""Events of a chain that are shown, the first and the last ones: more do not fit a screen."""


@frozen(kw_only=True)
class Parting:
    """position: of the event in the failing run's events; chain: positions from there to the verdict, that
    one first; instead: the event that the passing run has in its place, None if its broker did nothing more
    there."""

    position: int
    chain: tuple[int, ...]
    instead: Event | None


def parting(failing: Sequence[Event], passing: Sequence[Event], finding: Finding) -> Parting | None:
    """The first event at which the runs part on the convicting partition, or anywhere if the finding names
    none. None if they do not.

    Cluster-wide events (controllers, sessions) are looked at too, as a partition's fate depends on them.
    """
    mine, theirs = _by_node(failing, finding), _by_node(passing, finding)
    best: tuple[int, Event | None] | None = None
    for node, positions in mine.items():
        others = theirs.get(node, [])
        for place, position in enumerate(positions):
            other = passing[others[place]] if place < len(others) else None
            if other is None or _same(failing[position]) != _same(other):
                if best is None or position < best[0]:
                    best = position, other
                break
    if best is None:
        return None
    position, instead = _telling(failing, best[0], mine), best[1]
    if instead is not None:
        at = next(place for place, event in enumerate(passing) if event is instead)
        instead = passing[_telling(passing, at, theirs)]
    return Parting(position=position, chain=_chain(failing, position, finding), instead=instead)


def _telling(events: Sequence[Event], first: int, by_node: dict[int, list[int]]) -> int:
    """The first event that is no routine, of the same broker at the same moment from `first` on; `first` if
    there is none."""
    moment = (events[first].node, events[first].time)
    return next(
        (
            at
            for at in by_node[events[first].node]
            if at >= first and (events[at].node, events[at].time) == moment and events[at].name not in ROUTINE
        ),
        first,
    )


def answered_differently(
    failing: Iterable[Operation], passing: Iterable[Operation], finding: Finding, before_ns: int | None = None
) -> tuple[Operation, Operation | None] | None:
    """The first operation that has another answer in the passing run, by the time of the earlier answer.

    Args:
        failing: operations of the failing run.
        passing: of the passing run.
        finding: that the runs are compared for; an operation on another partition says nothing of it.
        before_ns: when the events of the runs part. Then only operations of both runs that were answered
            before count: plans may differ in an operation, which says nothing. None: no event differs.

    Returns:
        the operation and what it is in the passing run (None if it is not there); None if all agree.
    """
    others = {one.op_id: one for one in passing}
    differing: list[tuple[int, Operation, Operation | None]] = []
    for one in failing:
        other = others.get(one.op_id)
        if other is None:
            if before_ns is None:
                differing.append((_answered_at(one), one, None))
        elif _answer(one) != _answer(other) and (before_ns is None or _about(one, finding)):
            differing.append((min(_answered_at(one), _answered_at(other)), one, other))
    if not differing:
        return None
    at, mine, theirs = min(differing, key=lambda each: (each[0], each[1].op_id))
    return None if before_ns is not None and at >= before_ns else (mine, theirs)


def _answered_at(operation: Operation) -> int:
    return NEVER if operation.completion_time is None else operation.completion_time


def _about(operation: Operation, finding: Finding) -> bool:
    """Whether an operation may concern a finding."""
    if finding.topic is None or finding.partition < 0 or operation.topic is None:
        return True
    if operation.partition is None:
        return operation.topic == finding.topic
    return (operation.topic, operation.partition) == (finding.topic, finding.partition)


def _answer(operation: Operation) -> Operation:
    """What two runs must agree in."""
    return evolve(operation, invoke_time=0, completion_time=None, attempts=1)


def _concerns(event: Event, finding: Finding) -> bool:
    if event.name in NO_STEP or event.name in FAULTS:
        return False
    if finding.topic is None or finding.partition < 0 or event.topic is None:
        return True
    return event.topic in INTERNAL_TOPICS or (event.topic, event.partition) == (
        finding.topic,
        finding.partition,
    )


def _by_node(events: Sequence[Event], finding: Finding) -> dict[int, list[int]]:
    """Positions of the events that matter, by broker."""
    found: dict[int, list[int]] = {}
    for position, event in enumerate(events):
        if _concerns(event, finding):
            found.setdefault(event.node, []).append(position)
    return found


def _same(event: Event) -> Event:
    """What two runs must agree in."""
    return evolve(event, time=0, zk_version=-1, broker_epoch=min(event.broker_epoch, 0), detail="")


def _chain(events: Sequence[Event], first: int, finding: Finding) -> tuple[int, ...]:
    """From the parting to the verdict: the steps that are no routine, those that convict among them."""
    last = max(finding.events, default=len(events) - 1)
    convicts = set(finding.events)
    shown_steps = [
        position
        for position in range(first, max(last, first) + 1)
        if position == first
        or position in convicts
        or (_concerns(events[position], finding) and events[position].name not in ROUTINE)
    ]
    return tuple(_shortened(shown_steps, convicts | {first}))


def _shortened(positions: list[int], kept: Iterable[int]) -> list[int]:
    """At most MOST_LINKS, with those that must be kept, the first ones and the last ones."""
    if len(positions) <= MOST_LINKS:
        return positions
    chosen = {position for position in kept if position in positions}
    ends = [*positions[: MOST_LINKS // 2], *reversed(positions[-MOST_LINKS // 2 :])]
    for position in ends:
        if len(chosen) >= MOST_LINKS:
            break
        chosen.add(position)
    return sorted(chosen)[: max(MOST_LINKS, len(chosen))]
