"""Rows about clients that work by themselves: they are served, and at once.

Owns these rows. Who was served at a partition knows its leader; in the same calm the next operation there is
served likewise. They hold of every system, for they ask nothing but what clients recorded.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record import bounds
from fencepost.record.facts import Facts, State
from fencepost.record.settings import MILLISECOND
from fencepost.record.timeline import EVERY_CLIENT, FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.events import Name
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome

ASKED = frozenset({Function.APPEND, Function.POLL, Function.LIST_OFFSETS})
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
"""Of a reader whose position retention has passed, or that lost records took away."""
TOO_LARGE = "MESSAGE_TOO_LARGE"
BATCH_BYTES, RECORD_BYTES = 61, 80
"""The header of a batch, and the most of a record of ours besides its key: its fields, the value id, and a
header with that id."""
_time, _begin = attrgetter("time"), attrgetter("begin")
WAITING = frozenset({"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT", None})


def _alone(facts: Facts) -> list[Operation]:
    """Operations of clients outside of groups and transactions that wait for an answer, as they began."""
    others = {one.process for one in facts.operations if one.function is Function.TXN}
    found = [
        one
        for one in facts.operations
        if one.function in ASKED and one.group is None and one.acks != ACKS_NONE and one.process not in others
    ]
    return sorted(found, key=lambda one: (one.invoke_time, one.op_id))


def _pairs(facts: Facts) -> list[tuple[int, Operation, Operation]]:
    """Operations that began after their process was served likewise at the same place, and when it was."""
    last: dict[tuple[int, Function, str | None, int | None], tuple[int, Operation]] = {}
    found = []
    for one in facts.once(_alone):
        place = one.process, one.function, one.topic, one.partition
        before = last.get(place)
        if before is not None and before[0] <= one.invoke_time:
            found.append((*before, one))
        if one.outcome is Outcome.OK and one.completion_time is not None and one.attempts <= 1:
            last[place] = one.completion_time, one
    return found


def _served(facts: Facts, timeline: Timeline) -> Iterator[tuple[Operation, Operation, int]]:
    """Those that began in the same calm, and when that ends."""
    calms = timeline.calms(EVERY_CLIENT)
    for served, before, one in facts.once(_pairs):
        place = bisect_right(calms, served, key=_begin) - 1
        if place >= 0 and one.invoke_time <= calms[place].end:
            yield before, one, calms[place].end


def _too_large(facts: Facts, one: Operation) -> bool:
    """Whether it was refused as too large, and may have been: its topic's limit was low, or changed."""
    if one.error != TOO_LARGE:
        return False
    changed = any(event.topic == one.topic for _, event in facts.of(Name.TOPIC_CONFIGURED))
    most = BATCH_BYTES + len(one.records) * (RECORD_BYTES + len((one.key or "").encode()))
    return changed or facts.settings.topic(one.topic).max_message_bytes < most


def _small(facts: Facts, one: Operation) -> bool:
    """Whether the ISR was smaller than it must be: another row asks whether it had to be."""
    options = facts.settings.topic(one.topic)
    if options.min_insync_replicas > options.replication_factor:
        return True
    state = _at_state(facts, one)
    return state is not None and len(state.isr) < options.min_insync_replicas


def _states(facts: Facts, one: Operation, moment: int) -> Sequence[State]:
    """Those of its partition, of the topic that was there at a moment."""
    partition = -1 if one.partition is None else one.partition
    return facts.states.get((facts.life(one.topic or "", moment), partition), ())


def _at_state(facts: Facts, one: Operation) -> State | None:
    """The state of its partition when an operation began."""
    states = _states(facts, one, one.invoke_time)
    place = bisect_right(states, one.invoke_time, key=_time)
    return states[place - 1] if place else None


def _moved(facts: Facts, one: Operation, since: int) -> bool:
    """Whether the partition's leader changed since, or so shortly before that the former one had not heard
    of it: a row of its own says whether it may."""
    end = one.completion_time or one.invoke_time
    since -= bounds.delivered(facts.settings)
    states = _states(facts, one, since)
    return bisect_left(states, since, key=_time) < bisect_right(states, end, key=_time)


def _refused(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    pipelined = facts.settings.client.producer.pipelined
    forgot = {event.topic for _, event in facts.of(Name.LOG_START) if event.log_start_offset > 0}
    for before, one, _ in _served(facts, timeline):
        if one.function is Function.POLL and facts.life(one.topic or "", one.invoke_time) in forgot:
            continue  # its position may be out of range
        if pipelined and one.function is Function.APPEND:
            continue  # batches in flight together may overtake each other in the simulated network
        wrong = one.outcome is not Outcome.OK or one.attempts > 1
        if not wrong and not facts.counting:
            continue
        waited = one.outcome is not Outcome.OK and one.error in WAITING  # another row asks about it
        excused = one.error == OUT_OF_RANGE or _small(facts, one) or waited or _asks_the_dead(facts, one)
        excused = excused or _too_large(facts, one)
        if excused or _moved(facts, one, before.invoke_time):
            continue
        if one.completion_time is None:
            continue  # when it was refused is not known
        yield Case(
            subject=(Subject.CLIENT, one.process),
            since=one.completion_time,
            more=one.completion_time - before.invoke_time,
            fine=not wrong,
            expected=f"process {one.process} to be served at its first attempt, as it was before",
            seen=f"{one.outcome.value} after {one.attempts} attempts: {one.error or 'no error'}",
            topic=one.topic,
            partition=-1 if one.partition is None else one.partition,
            operations=(before.op_id, one.op_id),
        )


def _late(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    settings = facts.settings
    pipelined = settings.client.producer.pipelined
    bound = -1 if facts.counting else bounds.answered(settings)
    way = bounds.way(settings)
    for before, one, calm_ends in _served(facts, timeline):
        done = one.completion_time
        if one.outcome is Outcome.OK and done is not None and done - one.invoke_time <= bound:
            continue
        if (pipelined and one.function is Function.APPEND) or _moved(facts, one, before.invoke_time):
            continue
        well = one.outcome is Outcome.OK or one.error not in WAITING
        if well and one.completion_time is None:
            continue  # it was answered, and what came of it is not known
        if not well and settings.client.request_timeout_ms * MILLISECOND < way:
            continue  # it gave up sooner than messages and disks may take
        if one.function is Function.APPEND and _small(facts, one):
            continue
        ended = one.completion_time if well and one.completion_time is not None else FOR_EVER
        yield Case(
            subject=(Subject.CLIENT, one.process),
            since=one.invoke_time,
            until=min(ended, calm_ends),  # what disturbs it then may have taken the answer
            more=_asks_the_dead(facts, one),
            expected=f"process {one.process} to be answered, as it was before",
            seen=f"{one.outcome.value} after {one.attempts} attempts: {one.error or 'no error'}",
            topic=one.topic,
            partition=-1 if one.partition is None else one.partition,
            operations=(before.op_id, one.op_id),
        )


def _asks_the_dead(facts: Facts, one: Operation) -> int:
    """The time of a request to each broker that does not run: metadata is asked for in turn."""
    dead = facts.dead(one.invoke_time, one.completion_time or one.invoke_time)
    return dead * bounds.given_up(facts.settings)


def _waited_for_nothing(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """acks=0 has no answer, so that it is done when it is sent."""
    for one in facts.operations:
        if one.function is Function.APPEND and one.acks == ACKS_NONE and one.outcome is not Outcome.OK:
            yield Case(
                subject=(Subject.CLIENT, one.process),
                since=one.invoke_time,
                fine=one.error not in WAITING or one.error is None or not one.attempts,
                expected=f"process {one.process} to be done as soon as it has sent: acks=0 has no answer",
                seen=f"{one.outcome.value} after {one.attempts} attempts: {one.error or 'no error'}",
                topic=one.topic,
                partition=-1 if one.partition is None else one.partition,
                operations=(one.op_id,),
            )


ROWS = (
    Row(
        name="needless_retry",
        form=Form.NEVER,
        subject=Subject.CLIENT,
        cases=_refused,
        bound=bounds.given_up,
        through=frozenset({Kind.MEMBER}),
    ),
    Row(
        name="needless_timeout",
        form=Form.FOLLOW,
        subject=Subject.CLIENT,
        cases=_late,
        bound=bounds.answered,
        through=frozenset({Kind.MEMBER}),
    ),
    Row(name="waited_for_no_answer", form=Form.DONE, subject=Subject.CLIENT, cases=_waited_for_nothing),
)
