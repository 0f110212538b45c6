"""Signs: how an event, or an operation, shows a mark.

Owns the small predicates. Must not know which mark uses them (marks.py). `past` is what was recorded before:
it does not hold the event yet, but it holds all events when operations are asked.
"""

from bisect import bisect_left
from collections.abc import Callable

from fencepost.campaign.marks.event_history import REBALANCING, EventHistory, key_of, replica_of
from fencepost.traces.events import Event
from fencepost.traces.operations import COOPERATIVE, Function, Operation, Outcome

EventPredicate = Callable[[EventHistory, Event], bool]
OperationPredicate = Callable[[EventHistory, Operation], bool]


def always(past: EventHistory, event: Event) -> bool:
    """Whenever there is such an event."""
    return True


def detail(*texts: str) -> EventPredicate:
    """Its detail begins with one of these."""
    return lambda past, event: any(event.detail.startswith(text) for text in texts)


def cause(*causes: str) -> EventPredicate:
    """Its cause is one of these."""
    return lambda past, event: event.cause in causes


def struck_inside(step: str) -> EventPredicate:
    """A fault ends a process inside this step of its work on files; an error of a disk only may do so."""
    return lambda past, event: event.cause != "io_error" and f'"inside":"{step}"' in event.detail


def exposed(past: EventHistory, event: Event) -> int:
    """The largest high watermark that any leader of the partition of `event` had."""
    return past.observed_state.partition(key_of(event)).exposed


def cut_below_exposed(past: EventHistory, event: Event) -> bool:
    """Whether the `event` cut a log below what had been exposed in the epochs of its own records. A cut to
    begin anew does not count."""
    return event.cause != "full" and event.offset < min(past.exposed_to(replica_of(event)), event.end_offset)


def unclean(past: EventHistory, event: Event) -> bool:
    """Whether the leader that `event` elects was not in the ISR before."""
    isr = past.observed_state.partition(key_of(event)).isr
    return event.leader >= 0 and bool(isr) and event.leader not in isr


def epoch_of_the_past(past: EventHistory, event: Event) -> bool:
    """Whether `event` is an append of a leader although ZooKeeper has a later epoch."""
    return (
        event.cause == "leader"
        and event.leader_epoch < past.observed_state.partition(key_of(event)).leader_epoch
    )


def shorter(past: EventHistory, event: Event) -> bool:
    """Whether the log that `event` opens ends before the end that was recorded last."""
    replica = past.observed_state.partition(key_of(event)).replicas.get(event.node)
    return replica is not None and event.offset < replica.end


def deletion_resumed(past: EventHistory, event: Event) -> bool:
    """Whether the deletion that `event` ends is done under a later controller than the one that was asked."""
    asked = past.deleting.get(event.topic or "")
    return event.cause == "done" and asked is not None and past.observed_state.controller_epoch > asked


def coordinator_moved(past: EventHistory, event: Event) -> bool:
    """Whether `event` loads groups of which one was in a rebalance, at another broker than before."""
    busy = any(place == event.partition and phase in REBALANCING for place, phase in past.phases.values())
    return busy and past.coordinators.get(event.partition, event.node) != event.node


def commit_crossed(past: EventHistory, row: Operation) -> bool:
    """Whether `row` is a commit, and a rebalance of its group began while it was under way."""
    times = past.rebalances.get(row.group or "", [])
    begun = bisect_left(times, row.invoke_time)
    ended = row.completion_time
    return row.function is Function.COMMIT and ended is not None and begun < bisect_left(times, ended)


def error(function: Function, *errors: str, argument: str | None = None) -> OperationPredicate:
    """An operation of this function ended with one of these errors. argument: None for any."""
    return lambda past, row: (
        row.function is function and row.error in errors and argument in (None, row.argument)
    )


def answered_by_another(past: EventHistory, row: Operation) -> bool:
    """Whether `row` is a retry, and another broker answered it than the leader that wrote the batch first."""
    if row.function is not Function.APPEND or row.outcome is not Outcome.OK or row.producer_id is None:
        return False
    wrote = past.wrote.get(row.records[0].value) if row.records else None
    return row.attempts > 1 and wrote is not None and row.node not in (-1, wrote)


def moved_in_two_steps(past: EventHistory, row: Operation) -> bool:
    """Whether `row` is the join of a cooperative member that gets what another one gave up in a generation
    before."""
    if row.argument != COOPERATIVE or row.outcome is not Outcome.OK or row.generation is None:
        return False
    group, has = row.group or "", {(each.topic, each.partition) for each in row.positions}
    had = past.shares.get((group, row.member), set())
    past.shares[group, row.member] = has
    for place in had - has:
        past.given_up[group, *place] = row.generation
    return any(past.given_up.get((group, *place), row.generation) < row.generation for place in has - had)
