"""The join: on which side a loss, a duplicate or a reordering happened.

Owns the rules. Must not know files. The wire is between both sides, so each side is judged by what crossed
it:

    the cluster     gets requests and gives answers: it is responsible for everything that the log check and
                    the rules below find in these alone.
    the application makes requests and gets answers: it (or its client library) is responsible for every
                    difference between what it did and saw, and what crossed the wire.

A place that convicts the cluster does not convict the application as well. What cannot be matched is
counted, and convicts neither side.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from attrs import define, field, frozen

from fencepost.blame.lines import Line, Type
from fencepost.blame.wire import Carried, Frame, Place, Wire
from fencepost.checkers.judges import judge
from fencepost.proxy.record.values import content_of
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

CHECKS = ("log",)


class Side(StrEnum):
    """Where something happened."""

    APPLICATION = "application"
    CLUSTER = "cluster"


class Kind(StrEnum):
    """What happened."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    REORDERING = "reordering"
    CONTENT = "content"


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
class Blame:
    """One finding."""

    side: Side
    kind: Kind
    # Topic, partition and offset in words.
    place: str
    # What happened, in a clause.
    says: str
    # File and number of the taps' lines.
    lines: tuple[str, ...] = ()
    # Op ids of the trace.
    operations: tuple[int, ...] = ()
    # The request, if one was recorded.
    frame: Frame | None = None


@frozen(kw_only=True)
class Joined:
    """counts: sends and deliveries, and how many were matched."""

    blames: tuple[Blame, ...]
    counts: dict[str, int]


def join(trace: Trace, lines: Iterable[Line]) -> Joined:
    """What both sides together say. lines: of all taps, each tap's in its order."""
    joining = _Join(Wire.of(trace), trace)
    for line in lines:
        joining.by_actor[line.actor].append(line)
    return joining.all()


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]} offset {place[2]}"


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
    convicted: set[Place] = field(factory=set)
    """Places that convict the cluster."""

    def all(self) -> Joined:
        found = [*self._of_cluster()]
        for lines in self.by_actor.values():
            found += self._of_producer(lines)
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
                    place=_name(place),
                    says=f"{finding.anomaly}: expected {finding.expected}, saw {finding.seen}",
                    operations=tuple(finding.operations),
                    frame=self.wire.frame_of(first),
                )
        yield from self._skipped()
        yield from self._twice()
        yield from self._inverted()

    def _skipped(self) -> Iterator[Blame]:
        """An answer to a fetch that jumps over a record that was acknowledged: it begins at the position, or
        shows what is before."""
        for row in self.wire.polls:
            if row.topic is None or row.partition is None or not row.records or row.offset is None:
                continue
            offsets = {record.offset for record in row.records}
            start = max(row.offset, row.log_start_offset or 0)
            log = (row.topic, row.partition)
            for offset in _between(self.wire.acknowledged_offsets, log, start, row.records[-1].offset):
                place = (*log, offset)
                known = self.wire.acknowledged[place]
                if offset in offsets or place in self.convicted:
                    continue
                if known.row.argument == "tombstone" or row.topic in self.trace.claims.compacted:
                    continue
                if self._aborted(known):
                    continue
                self.convicted.add(place)
                yield Blame(
                    side=Side.CLUSTER,
                    kind=Kind.LOSS,
                    place=_name(place),
                    says="the record was acknowledged, and an answer to a fetch jumps over it",
                    operations=(known.row.op_id, row.op_id),
                    frame=self.wire.frame_of(row),
                )

    def _aborted(self, one: Carried) -> bool:
        """Whether it was part of a transaction: readers of committed records may be right to jump over it."""
        return any(
            row.function == "txn" and row.process == one.row.process and row.outcome != "ok"
            for row in self.trace.operations
        )

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
                if before != place and place not in self.convicted:
                    self.convicted.add(place)
                    yield Blame(
                        side=Side.CLUSTER,
                        kind=Kind.DUPLICATE,
                        place=_name(place),
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
                        place=_name(place),
                        says=f"sequence {row.sequence} is before sequence {before.row.sequence}, at "
                        f"{before.record.offset}",
                        operations=(before.row.op_id, row.op_id),
                        frame=self.wire.frame_of(row),
                    )

    # ---- the application: a producer

    def _of_producer(self, lines: list[Line]) -> Iterator[Blame]:
        sent = {line.id: line for line in lines if line.type is Type.SENT and line.id is not None}
        answered = {line.id for line in lines if line.type in (Type.ACKNOWLEDGED, Type.FAILED)}
        places = {
            (line.topic, line.partition, line.offset) for line in lines if line.type is Type.ACKNOWLEDGED
        }
        nameless = sum(line.type is Type.FAILED and line.id not in sent for line in lines)
        closed = any(line.type is Type.CLOSED for line in lines)
        ids_on_wire = any(one in self.wire.by_id for one in sent)
        self.counts["sends"] += len(sent)
        for line in lines:
            if line.type is Type.ACKNOWLEDGED:
                yield from self._acknowledged(line, sent.get(line.id or ""))
            elif line.type is Type.FAILED:
                self.counts[
                    "failed sends matched" if line.id in self.wire.by_id else "failed sends not matched"
                ] += 1
        if ids_on_wire:
            for line in sent.values():
                if line.id in self.wire.by_id:
                    reported = line.id in answered or not closed
                    yield from self._sent(line, reported, places)
            if closed:
                yield from self._vanished(
                    [
                        one
                        for one in sent.values()
                        if one.id not in self.wire.by_id and one.id not in answered
                    ],
                    nameless,
                )
            yield from self._order_of_sends(list(sent.values()))

    def _acknowledged(self, line: Line, sent: Line | None) -> Iterator[Blame]:
        assert line.topic is not None and line.partition is not None and line.offset is not None
        place = (line.topic, line.partition, line.offset)
        if place in self.convicted:
            return
        one = self.wire.acknowledged.get(place)
        both = tuple(each.place for each in (sent, line) if each is not None)
        if one is None:
            carried = self.wire.by_id.get(line.id or "", [])
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.LOSS,
                place=_name(place),
                says="the client reported to the application that this is acknowledged, and no broker has "
                "acknowledged anything there",
                lines=both,
                operations=tuple(each.row.op_id for each in carried),
                frame=self.wire.frame_of(carried[-1].row) if carried else None,
            )
            return
        self.counts["acknowledgements matched"] += 1
        wrong_id = one.tap_id is not None and sent is not None and one.tap_id != line.id
        wrong_content = (
            sent is not None and sent.content is not None and sent.content != content_of(one.record.value)
        )
        if wrong_id or wrong_content:
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.CONTENT,
                place=_name(place),
                says="the record that was acknowledged there is another one than the application sent",
                lines=both,
                operations=(one.row.op_id,),
                frame=self.wire.frame_of(one.row),
            )

    def _vanished(self, lines: list[Line], nameless: int) -> Iterator[Blame]:
        """Sends that never crossed the wire and have no answer. nameless: failures that name no send, each of
        which may be of one of them (Java's clients before 4.1)."""
        some = f" ({nameless} of these {len(lines)} may have failed: the client did not name them)"
        for line in lines[nameless:]:
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.LOSS,
                place=line.topic or "?",
                says="the application sent this, no callback was called, and it never crossed the wire"
                + (some if nameless else ""),
                lines=(line.place,),
            )

    def _sent(self, line: Line, reported: bool, acknowledged: set[Any]) -> Iterator[Blame]:
        carried = self.wire.by_id[line.id or ""]
        self.counts["sends matched"] += 1
        identities = {
            (one.row.producer_id, one.row.producer_epoch, one.record.value, one.row.op_id) for one in carried
        }
        places = {one.place for one in carried if one.acknowledged}
        if len(identities) > 1 and len(places) > 1 and not places & self.convicted:
            first, last = carried[0], carried[-1]
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.DUPLICATE,
                place=_name(last.place),
                says=f"one send crossed the wire as {len(identities)} records, each acknowledged",
                lines=(line.place,),
                operations=(first.row.op_id, last.row.op_id),
                frame=self.wire.frame_of(last.row),
            )
        if not reported and places and not places & (self.convicted | acknowledged):
            self.counts["acknowledged, and no callback was called"] += 1

    def _order_of_sends(self, sent: list[Line]) -> Iterator[Blame]:
        """Sends of one producer to one partition cross the wire in their order."""
        last: dict[tuple[str, int], tuple[Line, Carried]] = {}
        for line in sent:
            carried = [one for one in self.wire.by_id.get(line.id or "", []) if one.acknowledged]
            if len(carried) != 1:
                continue
            one = carried[0]
            log = (one.record.topic, one.record.partition)
            before = last.get(log)
            last[log] = (line, one)
            if before is None or before[1].record.offset < one.record.offset or one.place in self.convicted:
                continue
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.REORDERING,
                place=_name(one.place),
                says="sent after a record that crossed the wire later and has a higher offset",
                lines=(before[0].place, line.place),
                operations=(before[1].row.op_id, one.row.op_id),
                frame=self.wire.frame_of(one.row),
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
        if not fetched:
            yield Blame(
                side=Side.APPLICATION, kind=Kind.CONTENT, place=_name(place),
                says="the application was handed a record that no broker has sent", lines=(line.place,),
            )  # fmt: skip
            return
        if line.content is not None and all(content_of(value) != line.content for _, value in fetched):
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.CONTENT,
                place=_name(place),
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
                place=_name(place),
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
            poll = self.wire.fetched[skipped][-1][0]
            yield Blame(
                side=Side.APPLICATION, kind=Kind.LOSS, place=_name(skipped), frame=self.wire.frame_of(poll),
                says="the broker has sent this record, and the application was handed the next one",
                lines=(before.place, line.place), operations=(poll.op_id,),
            )  # fmt: skip

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
