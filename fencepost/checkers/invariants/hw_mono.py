"""HW-MONO: the log end that clients are shown does not go back.

Owns high_watermark_regressed, from operations. An end is shown by a poll, by ListOffsets, and by the
acknowledgement of an append with acks=all, which a leader sends when its high watermark has passed the batch.
Within one leader epoch, no end that a poll or ListOffsets shows is below one shown before. Across epochs, no
ListOffsets end of a higher epoch is below any end shown before in a lower epoch; where an epoch is not known,
none is below an end that the same broker had shown: a broker leads in ever higher epochs. A fetch may show a
lower end there: after an election the new leader's high watermark lags, and only ListOffsets is guarded
(KIP-207). "Before" is real time: completed before the other was invoked; equal times are concurrent.

Five cases are no regression:

- a poll that a follower answered (KIP-392): its high watermark lags. Who led an epoch is known by an event,
  an acknowledgement or ListOffsets; where nobody is known, each broker's polls are compared apart;
- an acknowledgement of a batch that was sent again: its epoch is that of the append, and who answers may
  lead in a later one; it counts for that broker alone;
- an end that went back over offsets that may be lost by the claims;
- within an epoch, a poll after its leader restarted and led that epoch again from its checkpointed high
  watermark: no new leader was elected;
- times of two clocks that each may err by e, unless they are more than 2e apart.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from attrs import define, field

from fencepost.checkers.durations import duration
from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.loss import end_of_loss
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Claims

READ_COMMITTED = "read_committed"
"""The isolation of a reader to whom ListOffsets shows the last stable offset."""


class ShownEnd(NamedTuple):
    """An end that a client was shown."""

    # Invocation time in nanoseconds.
    invoke_time: int
    # Completion time in nanoseconds.
    completion_time: int
    # The end that was shown.
    end_offset: int
    # The leader epoch of the response; -1 if it is not known.
    leader_epoch: int
    # The clock of the times.
    clock_id: int
    # The operation.
    op_id: int
    # What showed it.
    by: Function
    # The broker that showed it; -1 if it is not known.
    node: int


Shown = tuple[Key, ShownEnd]
"""An end, and whose it is."""
Term = tuple[int, int, int]
"""A leader epoch, how often its leader had taken over again, and LEADER or else the broker; or OF_BROKER, 0
and a broker."""
OF_BROKER = -2
LEADER = -1
"""Whoever led the epoch, or an unknown broker."""
LISTED = Function.LIST_OFFSETS


@define
class HighWatermarkMono:
    """The state of the invariant, by partition."""

    findings: Findings
    claims: Claims
    # Leader epochs that began, and who was seen to lead them.
    led: dict[tuple[Key, int], set[int]] = field(factory=dict)
    # The times at which an epoch's leader took over again, ascending.
    led_again: dict[tuple[Key, int], list[int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that begin a leadership."""
        return {Name.BECAME_LEADER: self._became_leader}

    def _became_leader(self, position: int, event: Event) -> None:
        term = (event.topic, event.partition), event.leader_epoch
        if term in self.led:
            self.led_again.setdefault(term, []).append(event.time)
        self.led.setdefault(term, set()).add(event.node)

    def took_over_again(self, key: Key, epoch: int) -> bool:
        """Whether the leader of this epoch ever led it again after a restart."""
        return (key, epoch) in self.led_again

    def judge(self, ends: Iterable[Shown]) -> None:
        """Check all ends that clients of the trace were shown."""
        partitions: dict[Key, list[ShownEnd]] = {}
        for key, shown in ends:
            partitions.setdefault(key, []).append(shown)
            if shown.by is not Function.POLL and shown.leader_epoch >= 0 <= shown.node:
                self.led.setdefault((key, shown.leader_epoch), set()).add(shown.node)
        for key, all_shown in partitions.items():
            if any(shown.by is not Function.APPEND for shown in all_shown):
                self._judge_partition(key, all_shown)

    def _judge_partition(self, key: Key, all_shown: list[ShownEnd]) -> None:
        """Go through the invocations in the order of time. Before each, take in what had completed: by any
        clock 2e earlier, or by the same clock."""
        margin = 2 * self.claims.clock_uncertainty_ns
        by_completion = sorted(all_shown, key=attrgetter("completion_time"))
        any_clock: dict[Term, ShownEnd] = {}
        same_clock: dict[int, dict[Term, ShownEnd]] = {}
        noted_any = noted_same = 0
        for shown in sorted(all_shown, key=attrgetter("invoke_time")):
            while (
                noted_any < len(by_completion)
                and by_completion[noted_any].completion_time + margin < shown.invoke_time
            ):
                self._note(key, any_clock, by_completion[noted_any])
                noted_any += 1
            if shown.by is not Function.APPEND:  # where that is, the log check decides
                self._compare(key, any_clock, shown)
            if not margin:
                continue
            while (
                noted_same < len(by_completion)
                and by_completion[noted_same].completion_time < shown.invoke_time
            ):
                earlier = by_completion[noted_same]
                self._note(key, same_clock.setdefault(earlier.clock_id, {}), earlier)
                noted_same += 1
            if shown.by is not Function.APPEND:
                self._compare(key, same_clock.get(shown.clock_id, {}), shown)

    def _compare(self, key: Key, before: dict[Term, ShownEnd], shown: ShownEnd) -> None:
        """Compare an end with the highest ends shown earlier (`before`), by term."""
        if shown.by is not LISTED:
            # a poll need not show an earlier end if its leader may have restarted since
            taken_over = bisect_right(self._times(key, shown.leader_epoch), shown.completion_time)
            place = self._place(key, shown)
            of_follower = place != LEADER and (key, shown.leader_epoch) in self.led
            same = None if of_follower else before.get((shown.leader_epoch, taken_over, place))
            if same is not None and same.end_offset > shown.end_offset:
                self._regressed(key, same, shown)
            return
        for (epoch, _, node), earlier in before.items():
            promised = node == shown.node if epoch == OF_BROKER else epoch <= shown.leader_epoch
            if promised and earlier.end_offset > shown.end_offset:
                self._regressed(key, earlier, shown)

    def _place(self, key: Key, shown: ShownEnd) -> int:
        led = self.led.get((key, shown.leader_epoch), ())
        return LEADER if shown.node < 0 or shown.node in led else shown.node

    def _times(self, key: Key, epoch: int) -> list[int]:
        return self.led_again.get((key, epoch), [])

    def _note(self, key: Key, highest: dict[Term, ShownEnd], shown: ShownEnd) -> None:
        terms = [(OF_BROKER, 0, shown.node)] if shown.node >= 0 else []
        if shown.leader_epoch >= 0:
            again = bisect_left(self._times(key, shown.leader_epoch), shown.invoke_time)
            terms.append((shown.leader_epoch, again, self._place(key, shown)))
        for term in terms:
            before = highest.get(term)
            if before is None or shown.end_offset > before.end_offset:
                highest[term] = shown

    def _regressed(self, key: Key, earlier: ShownEnd, later: ShownEnd) -> None:
        if end_of_loss(self.claims.loss, key, later.end_offset) >= earlier.end_offset:
            return  # exactly these offsets may be lost
        gap = later.invoke_time - earlier.completion_time
        self.findings.add(
            "high_watermark_regressed",
            expected=f"an end at or above {earlier.end_offset}: {_told(earlier)}, {duration(gap)} before",
            seen=_told(later),
            topic=key[0],
            partition=key[1],
            offset=later.end_offset,
            operations=(earlier.op_id, later.op_id),
            uncertainty_ns=-1 if earlier.clock_id == later.clock_id else (gap + 1) // 2,
        )


def _told(shown: ShownEnd) -> str:
    by = f" by broker {shown.node}" if shown.node >= 0 else ""
    when = f" in leader epoch {shown.leader_epoch}" if shown.leader_epoch >= 0 else ""
    return f"{SHOWING[shown.by]} {shown.op_id}{by} showed {shown.end_offset}{when}"


SHOWING = {Function.POLL: "poll", LISTED: "ListOffsets", Function.APPEND: "the acknowledgement of append"}
"""Functions of operations that show an end, in words."""


def shown_by(operations: Iterable[Operation]) -> Iterator[Shown]:
    """The ends that clients were shown by these operations."""
    for operation in operations:
        if operation.outcome is Outcome.OK and operation.function in SHOWING:
            yield from _shown(operation)


def _shown(operation: Operation) -> Iterator[Shown]:
    """The ends that an operation showed, one for each partition where the leader epoch or the broker is
    known."""
    assert operation.completion_time is not None, operation
    ends: list[tuple[Key, int | None, int | None]]
    if operation.positions:
        ends = [
            ((each.topic, each.partition), each.end_offset, each.leader_epoch) for each in operation.positions
        ]
    else:
        partition = operation.partition if operation.partition is not None else -1
        ends = [((operation.topic, partition), _own_end(operation), operation.leader_epoch)]
    for key, end, epoch in ends:
        if epoch is None or is_of_retry(operation.function, operation.attempts):
            epoch = -1
        if end is not None and (epoch >= 0 or operation.node >= 0):
            yield (
                key,
                ShownEnd(
                    operation.invoke_time,
                    operation.completion_time,
                    end,
                    epoch,
                    operation.clock_id,
                    operation.op_id,
                    operation.function,
                    operation.node,
                ),
            )


def is_of_retry(function: Function, attempts: int) -> bool:
    """Whether the epoch of an operation is not that of who answered: a batch that was sent again is answered
    as it was appended, by whoever leads then.

    Args:
        function: of the operation.
        attempts: requests sent for it.
    """
    return function is Function.APPEND and attempts > 1


def _own_end(operation: Operation) -> int | None:
    """The end that an operation of one partition showed. ListOffsets with an argument returned the log start
    or a place by time, under read_committed the last stable offset."""
    if operation.function is Function.APPEND:
        offset = -1 if operation.offset is None else operation.offset
        known = offset >= 0 and operation.acks == ACKS_ALL and operation.records
        return offset + len(operation.records) if known else None
    other = operation.argument is not None or operation.isolation == READ_COMMITTED
    if operation.end_offset is not None or operation.function is not LISTED or other:
        return operation.end_offset
    return operation.offset
