"""What must hold in a client that has nothing to do: what waits has a timer, and a producer gives no
number twice, and keeps its batches in order.

Owns one function for each kind of client. Each is the rule in its plainest form. It only reads. Must not know
when it is asked: the client must be between two steps.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

from fencepost.campaign.observed.justified import Reason

NONE = -1
"""No sequence, and no correlation id."""
Timers = Collection[tuple[Any, ...]]


def contradictions_in_client(core: Any, timers: Timers) -> Iterator[Reason]:
    """What contradicts itself.

    Args:
        core: of a client: with one operation at a time, with a producer, or with a consumer.
        timers: that are set.

    Yields:
        of what, expected, seen.
    """
    client = getattr(core, "client", core)
    current = getattr(client, "current", None)
    if current is not None:
        waits = ("request",) if current.correlation_id >= 0 else ("backoff",)
        for key in (waits, ("delivery",)):
            if key not in timers:
                yield f"timer {key[0]} of operation {current.operation.op_id}", "one", "none"
    if hasattr(core, "producer"):
        yield from _producer(core.producer, timers)
    if hasattr(core, "fetcher"):
        yield from _consumer(core, timers)


def _producer(producer: Any, timers: Timers) -> Iterator[Reason]:
    """Each batch has an end, each request a time-out, and each retry a time. No number is given twice,
    and batches wait in their order."""
    asking = producer.asking
    for question in (*asking.asked, *asking.resting):
        if question not in timers:
            yield f"timer of {question[0]}", "one", "none"
    for line in producer.accumulator.lines.values():
        for batch in (*line.in_flight, *line.waiting):
            if ("produce_delivery", batch.number) not in timers:
                yield f"timer of the delivery of batch {batch.number}", "one", "none"
        for batch in line.in_flight:
            if ("produce_request", batch.number) not in timers:
                yield f"timer of the request of batch {batch.number}", "one", "none"
        for batch in line.waiting:
            if (
                batch.attempts
                and batch.not_before > producer.now
                and ("produce_retry", batch.number) not in timers
            ):
                yield f"timer of the retry of batch {batch.number}", "one", "none"
        numbered = [one for one in (*line.in_flight, *line.waiting) if one.sequence != NONE]
        present = [one for one in numbered if one.producer_epoch == line.producer_epoch]
        waiting = [
            one.sequence for one in present if one in line.waiting and one.sequence < line.next_sequence
        ]
        if waiting != sorted(waiting):
            yield f"sequences that wait in {line.key}", sorted(waiting), waiting
        places = sorted((one.sequence, one.count) for one in present if one.sequence <= line.next_sequence)
        for (sequence, count), (following, _) in pairwise([*places, (line.next_sequence, 0)]):
            if following < sequence + count:
                yield f"sequence in {line.key} after {sequence}", sequence + count, following


def _consumer(core: Any, timers: Timers) -> Iterator[Reason]:
    """A request has a time-out; a member has heartbeats, a poll an end, and what is due by time a time."""
    for number in core.desk.waiting:
        if ("request", number) not in timers:
            yield f"timer of request {number}", "one", "none"
    if core.dead:
        return
    if core.coordinator.stage == "stable" and ("heartbeat",) not in timers:
        yield "timer of the next heartbeat", "one", "none"
    if core.polling and not core.deadline_passed and ("poll",) not in timers:
        yield "timer of the poll", "one", "none"
    if core.options.commit == "auto" and ("auto_commit",) not in timers:
        yield "timer of the next commit", "one", "none"
