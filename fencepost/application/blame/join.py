"""The join: on which side a loss, a duplicate or a reordering happened.

Owns the rules. Must not know files. The wire is between both sides, so each side is judged by what crossed
it:

    the cluster         gets requests and gives answers: it is responsible for everything that the log check
                        and the rules below find in these alone.
    the client library  makes delivery reports, and a tap writes them down as they come: it is responsible for
                        every report that the answers on the wire contradict (producer_join.py).
    the application     or its client library, which a tap cannot tell apart here, is responsible for every
                        other difference between what it did and saw, and what crossed the wire.

A place that convicts the cluster does not convict another side as well. What cannot be matched is counted,
and convicts no side.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from attrs import define, field, frozen

from fencepost.application.blame.blame_findings import Blame, Kind, Side, place_name
from fencepost.application.blame.lines import Line, Type
from fencepost.application.blame.producer_join import Producers
from fencepost.application.blame.wire import Carried, Place, Wire
from fencepost.checkers.judges import judge
from fencepost.proxy.record.values import content_of
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

CHECKS = ("log", "invariants")


OF_ANOMALIES = {
    "lost_write": Kind.LOSS,
    "stale_read": Kind.LOSS,
    "unaccounted_offset": Kind.LOSS,
    "skipped_offset": Kind.LOSS,
    "append_below_shown_end": Kind.REORDERING,
    "high_watermark_regressed": Kind.LOSS,
    "duplicate": Kind.DUPLICATE,
    "append_inversion": Kind.REORDERING,
    "unordered_read": Kind.REORDERING,
}
"""Findings of the log check, as blame calls them; any other is about content."""


@frozen(kw_only=True)
class Joined:
    """counts: sends and deliveries, and how many were matched."""

    blames: tuple[Blame, ...]
    counts: dict[str, int]
    # Whether no request in the record was answered: then nothing can be said of any side.
    empty: bool = False


__all__ = ["Blame", "Joined", "Kind", "Side", "join"]


def join(trace: Trace, lines: Iterable[Line]) -> Joined:
    """What both sides together say. lines: of all taps, each tap's in its order."""
    wire = Wire.of(trace)
    if wire.is_empty:
        return Joined(blames=(), counts={}, empty=True)
    joining = _Join(wire, trace)
    for line in lines:
        joining.by_actor[line.actor].append(line)
    return joining.all()


def _between(
    offsets: dict[tuple[str, int], list[int]], log: tuple[str, int], start: int, end: int
) -> list[int]:
    """The known offsets of a log from start on, below end."""
    known = offsets.get(log, [])
    return known[bisect_left(known, start) : bisect_left(known, end)]


@define(eq=False)
class _Join:
    wire: Wire
    trace: Trace
    by_actor: dict[str, list[Line]] = field(factory=lambda: defaultdict(list))
    counts: Counter[str] = field(factory=Counter)
    # Places that convict the cluster.
    convicted: set[Place] = field(factory=set)

    def all(self) -> Joined:
        found = [*self._of_cluster()]
        for lines in self.by_actor.values():
            found += Producers(self.wire, self.counts, self.convicted).of(lines)
            found += self._of_consumer(lines)
        return Joined(blames=tuple(found), counts=dict(self.counts))

    # ---- the cluster, by what crossed the wire

    def _of_cluster(self) -> Iterator[Blame]:
        rows = {row.op_id: row for row in self.trace.operations}
        for verdict in judge(self.trace, CHECKS):
            for finding in verdict.findings:
                first = next(
                    (rows[number] for number in reversed(finding.operations) if number in rows), None
                )
                place = (finding.topic or "?", finding.partition, finding.offset)
                self.convicted.add(place)
                yield Blame(
                    side=Side.CLUSTER,
                    kind=OF_ANOMALIES.get(finding.anomaly, Kind.CONTENT),
                    place=place_name(place),
                    says=f"{finding.anomaly}: expected {finding.expected}, saw {finding.seen}",
                    operations=tuple(finding.operations),
                    frame=self.wire.frame_of(first),
                )
        yield from self._twice()
        yield from self._inverted()

    def _twice(self) -> Iterator[Blame]:
        """A record of an idempotent producer, sent once under one sequence number, that is at two
        offsets."""
        seen: dict[tuple[str, int, int], Place] = {}
        idempotent = {one.record.value: one for one in self.wire.carried if one.row.producer_id is not None}
        for place in sorted(self.wire.fetched):
            for row, value in self.wire.fetched[place]:
                one = idempotent.get(value)
                if one is None:
                    continue
                before = seen.setdefault((place[0], place[1], value), place)
                if before != place and not {before, place} & self.convicted:
                    self.convicted.add(place)
                    yield Blame(
                        side=Side.CLUSTER,
                        kind=Kind.DUPLICATE,
                        place=place_name(place),
                        says=f"the record of one sequence number is at offset {before[2]} as well",
                        operations=(one.row.op_id, row.op_id),
                        frame=self.wire.frame_of(row),
                    )

    def _inverted(self) -> Iterator[Blame]:
        """Batches of one producer, epoch and partition have offsets in the order of their sequence
        numbers."""
        last: dict[tuple[str, int, int, int], Carried] = {}
        for one in self.wire.carried:
            row = one.row
            if not one.acknowledged or one.index or row.producer_id is None or row.sequence is None:
                continue
            key = (one.record.topic, one.record.partition, row.producer_id, row.producer_epoch or 0)
            before = last.get(key)
            last[key] = one
            if before is None or before.row.sequence is None:
                continue
            if row.sequence > before.row.sequence and one.record.offset < before.record.offset:
                place = one.place
                if place not in self.convicted:
                    self.convicted.add(place)
                    yield Blame(
                        side=Side.CLUSTER,
                        kind=Kind.REORDERING,
                        place=place_name(place),
                        says=f"sequence {row.sequence} is before sequence {before.row.sequence}, at "
                        f"{before.record.offset}",
                        operations=(before.row.op_id, row.op_id),
                        frame=self.wire.frame_of(row),
                    )

    # ---- the application: a consumer

    def _of_consumer(self, lines: list[Line]) -> Iterator[Blame]:
        last: dict[tuple[str, int], Line] = {}
        for line in lines:
            if line.type is Type.MOVED:
                last.clear()
            elif line.type is Type.DELIVERED:
                assert line.topic is not None and line.partition is not None and line.offset is not None
                self.counts["deliveries"] += 1
                log = (line.topic, line.partition)
                before = last.get(log)
                if before is None or (before.offset or 0) < line.offset:
                    last[log] = line
                yield from self._delivered(line, before)

    def _delivered(self, line: Line, before: Line | None) -> Iterator[Blame]:
        assert line.topic is not None and line.partition is not None and line.offset is not None
        place = (line.topic, line.partition, line.offset)
        fetched = self.wire.fetched.get(place, [])
        row: Operation | None = fetched[-1][0] if fetched else None
        self.counts["deliveries matched"] += bool(fetched)
        if place in self.convicted:
            return
        frame, operations = self.wire.frame_of(row), () if row is None else (row.op_id,)
        if not fetched and self.wire.unread:
            self.counts["deliveries that the record could not read"] += 1
            return
        if not fetched:
            yield Blame(
                side=Side.APPLICATION, kind=Kind.CONTENT, place=place_name(place),
                says="the application was handed a record that no broker has sent", lines=(line.place,),
            )  # fmt: skip
            return
        if line.content is not None and all(content_of(value) != line.content for _, value in fetched):
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.CONTENT,
                place=place_name(place),
                lines=(line.place,),
                frame=frame,
                says="the application was handed another record than the broker has sent",
                operations=operations,
            )
        if before is None or before.offset is None:
            return
        if line.offset <= before.offset and self.wire.out_of_range:
            self.counts["deliveries again, after an offset out of range"] += 1
            return
        if line.offset <= before.offset:
            kind = (
                Kind.DUPLICATE
                if line.offset == before.offset or self._was_delivered(line)
                else Kind.REORDERING
            )
            yield Blame(
                side=Side.APPLICATION,
                kind=kind,
                place=place_name(place),
                frame=frame,
                operations=operations,
                says=f"delivered after offset {before.offset}, and the consumer was not moved",
                lines=(before.place, line.place),
            )
            return
        log = (line.topic, line.partition)
        for offset in _between(self.wire.fetched_offsets, log, before.offset + 1, line.offset):
            skipped = (*log, offset)
            if skipped in self.convicted:
                continue
            if not self._readers(place) <= self._readers(skipped):
                self.counts["records that only another reader was sent"] += 1
                continue
            poll = self.wire.fetched[skipped][-1][0]
            yield Blame(
                side=Side.APPLICATION, kind=Kind.LOSS, place=place_name(skipped),
                frame=self.wire.frame_of(poll),
                says="the broker has sent this record, and the application was handed a later one next",
                lines=(before.place, line.place), operations=(poll.op_id,),
            )  # fmt: skip

    def _readers(self, place: Place) -> set[int]:
        """The connections that a broker has sent the record at a place: this consumer's is one of them. One
        that reads committed records is not sent those of an aborted transaction."""
        return {row.process for row, _ in self.wire.fetched.get(place, ())}

    def _was_delivered(self, line: Line) -> bool:
        """Whether the same actor was handed this record before."""
        for other in self.by_actor[line.actor]:
            if other is line:
                return False
            if (other.type, other.topic, other.partition, other.offset) == (
                line.type, line.topic, line.partition, line.offset,
            ):  # fmt: skip
                return True
        return False
