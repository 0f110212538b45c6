"""Rows about transactional ids: what was decided is marked everywhere, and nothing is aborted too early.

Owns these rows. They read what a coordinator wrote into its log, and what leaders appended.
"""

from collections.abc import Iterable, Iterator

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.decided import ONGOING, PREPARED
from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record import bounds
from fencepost.record.facts import Facts, Key
from fencepost.record.settings import MILLISECOND
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import plain


class Phase(msgspec.Struct, frozen=True):
    """The detail of a phase."""

    transactional_id: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    partitions: tuple[str, ...] = ()
    why: str = ""


class Marker(msgspec.Struct, frozen=True):
    """The detail of a marker."""

    producer_id: int = -1
    producer_epoch: int = -1
    commit: bool = False


@define
class Decided:
    """A transaction that was decided."""

    position: int
    time: int
    phase: Phase
    # The partition of the coordinator's log.
    coordinator: str
    # When each partition got its marker.
    marked: dict[str, int] = field(factory=dict)
    # When the coordinator wrote that it is complete, and where; FOR_EVER: it did not.
    complete: int = FOR_EVER
    completed_at: int = -1


def _phases(facts: Facts) -> list[tuple[int, Event, Phase]]:
    """What coordinators said, without those that were deposed and did not know it."""
    found = []
    epochs: dict[int, int] = {}
    for position, event in facts.of(Name.TRANSACTION_PHASE):
        if event.leader_epoch < epochs.setdefault(event.partition, event.leader_epoch):
            continue
        epochs[event.partition] = event.leader_epoch
        try:
            found.append((position, event, from_json(event.detail, Phase)))
        except msgspec.DecodeError:
            continue  # a trace may come from any tool
    return found


def _decisions(facts: Facts) -> list[Decided]:
    """The transactions that were decided, with what came of each."""
    open_: dict[str, Decided] = {}
    found: list[Decided] = []
    of_producer: dict[int, Decided] = {}
    early: dict[int, dict[str, int]] = {}
    phases = {position: phase for position, _, phase in facts.once(_phases)}
    for position, event in facts.of(Name.TRANSACTION_PHASE, Name.MARKER_WRITTEN):
        if event.name is Name.MARKER_WRITTEN:
            _mark(of_producer, early, event)
            continue
        phase = phases.get(position)
        if phase is None:
            continue
        name, known = phase.transactional_id, open_.get(phase.transactional_id)
        if event.cause in PREPARED:
            if known is None:
                known = Decided(position, event.time, phase, f"{event.topic}-{event.partition}")
                open_[name] = known
                found.append(known)
                of_producer[phase.producer_id] = known
                known.marked.update(early.get(phase.producer_id, {}))
        elif known is not None:
            del open_[name]
            early.pop(phase.producer_id, None)
            known.complete, known.completed_at = event.time, position
    return found


def _mark(of_producer: dict[int, Decided], early: dict[int, dict[str, int]], event: Event) -> None:
    """A later coordinator may announce a decision whose markers an earlier one has sent."""
    try:
        marker = from_json(event.detail, Marker)
    except msgspec.DecodeError:
        return
    place = f"{plain(event.topic or '')}-{event.partition}"
    early.setdefault(marker.producer_id, {}).setdefault(place, event.time)
    decided = of_producer.get(marker.producer_id)
    if decided is not None:
        decided.marked.setdefault(place, event.time)


def _unmarked(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for decided in facts.once(_decisions):
        for place in decided.phase.partitions:
            topic, number = _there(facts, place, decided.time)
            gone = (told.time for told in facts.deleted.get(topic, ()))
            until = decided.marked.get(place, FOR_EVER)
            yield Case(
                subject=(Subject.ID, decided.phase.transactional_id),
                since=_writable(facts, (place,), decided.time, until),
                until=min(until, next(gone, FOR_EVER)),
                expected=f"the transaction of {decided.phase.transactional_id} to be marked in {place}",
                seen="it was not",
                topic=topic,
                partition=number,
                events=(decided.position,),
            )


def _writable(facts: Facts, places: Iterable[str], since: int, until: int) -> int:
    """Since when each of these partitions takes a marker."""
    for place in places:
        since = facts.writable(_there(facts, place, since), since, until)
    return since


def _there(facts: Facts, place: str, moment: int) -> Key:
    """The partition that is called so: of the topic that was there."""
    topic, _, number = place.rpartition("-")
    return facts.life(topic, moment), int(number) if number.isdigit() else -1


def _incomplete(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for decided in facts.once(_decisions):
        places = (*decided.phase.partitions, decided.coordinator)
        yield Case(
            subject=(Subject.ID, decided.phase.transactional_id),
            since=_writable(facts, places, decided.time, decided.complete),
            until=decided.complete,
            expected=f"the decided transaction of {decided.phase.transactional_id} to be complete",
            seen="it was not",
            events=(decided.position,),
        )


def _complete_early(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """Complete is said when every partition that is there has its marker."""
    if not facts.events.get(Name.MARKER_WRITTEN):
        return
    for decided in facts.once(_decisions):
        if decided.completed_at < 0:
            continue
        lacking = [
            place
            for place in decided.phase.partitions
            if decided.marked.get(place, FOR_EVER) > decided.complete
            and not facts.deleted.get(_there(facts, place, decided.time)[0])
        ]
        yield Case(
            subject=(Subject.ID, decided.phase.transactional_id),
            since=decided.complete,
            fine=not lacking,
            expected=f"a marker in each of {', '.join(decided.phase.partitions) or 'no partition'}",
            seen=f"none in {', '.join(lacking)}, and the transaction was complete",
            events=(decided.position, decided.completed_at),
        )


def _timed_out(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A coordinator aborts a transaction by itself only when its time is over."""
    begun: dict[str, tuple[int, int]] = {}
    least = facts.settings.transform.transaction_timeout_ms * MILLISECOND
    for position, event, phase in facts.once(_phases):
        name = phase.transactional_id
        if event.cause == ONGOING:
            begun.setdefault(name, (event.time, position))
        elif event.cause == "PrepareAbort" and "time" in phase.why and name in begun:
            since, first = begun[name]
            yield Case(
                subject=(Subject.ID, name),
                since=event.time,
                fine=event.time - since >= least * 3 // 4,
                expected=f"the transaction of {name} to stay open for {least // MILLISECOND} ms",
                seen=f"it was aborted after {(event.time - since) // MILLISECOND} ms: {phase.why}",
                events=(first, position),
            )
        if event.cause != ONGOING:
            begun.pop(name, None)


def _overdue(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A transaction that its producer left open: the coordinator ends it, once its time is over."""
    allowed = facts.settings.transform.transaction_timeout_ms * MILLISECOND
    open_: dict[str, tuple[int, int]] = {}
    found: list[tuple[str, int, int, int]] = []
    for position, event, phase in facts.once(_phases):
        name = phase.transactional_id
        if event.cause == ONGOING:
            open_.setdefault(name, (event.time, position))
        elif name in open_:
            found.append((name, *open_.pop(name), event.time))
    found += [(name, *one, FOR_EVER) for name, one in open_.items()]
    for name, begun, position, until in found:
        yield Case(
            subject=(Subject.ID, name),
            since=begun + allowed,
            until=until,
            expected=f"the transaction of {name} to be ended, as {allowed // MILLISECOND} ms are over,",
            seen="it stayed open",
            events=(position,),
        )


ROWS = (
    Row(
        name="late_marker",
        form=Form.FOLLOW,
        subject=Subject.ID,
        cases=_unmarked,
        bound=bounds.marked,
        through=frozenset({Kind.MEMBER}),
        where="brokers that say what coordinators and leaders write",
    ),
    Row(
        name="late_completion",
        form=Form.FOLLOW,
        subject=Subject.ID,
        cases=_incomplete,
        bound=bounds.marked,
        through=frozenset({Kind.MEMBER}),
        where="brokers that say what coordinators write",
    ),
    Row(name="completed_without_marker", form=Form.DONE, subject=Subject.ID, cases=_complete_early),
    Row(name="aborted_early", form=Form.DONE, subject=Subject.ID, cases=_timed_out),
    Row(
        name="transaction_outlives_timeout",
        form=Form.FOLLOW,
        subject=Subject.ID,
        cases=_overdue,
        bound=bounds.timed_out,
        through=frozenset({Kind.MEMBER}),
        where="brokers that say what coordinators write",
    ),
)
