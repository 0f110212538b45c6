"""The join of a producer: its sends and delivery reports, against requests, answers and what readers were
shown.

Owns the rules. Must not know consumers. Each sentence says only what the record shows: whether a request
carried the record, what was answered, by whom, and whether a reader was shown it. What the record leaves
open is counted: a request of unknown outcome, or a retry that was answered DUPLICATE_SEQUENCE_NUMBER, may
have been written, so no sentence calls it lost.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import define

from fencepost.application.blame.blame_findings import Blame, Kind, Side, place_name
from fencepost.application.blame.lines import Line, Type
from fencepost.application.blame.wire import Carried, Place, Wire
from fencepost.proxy.record.values import content_of
from fencepost.traces.operations import ACKS_NONE, Outcome

NO_OFFSET = "acknowledged to the application without an offset"
OTHER_ORDER = "sends with offsets in another order, and the record does not say why"


@define(eq=False)
class Producers:
    """The rules on one wire."""

    wire: Wire
    # What was matched, or is open.
    counts: Counter[str]
    # Places that convict the cluster.
    convicted: set[Place]

    def of(self, lines: list[Line]) -> Iterator[Blame]:
        """What is found of one producer. lines: of its tap, in their order."""
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
            if line.type is Type.ACKNOWLEDGED and line.offset is None:
                yield from self._without_offset(line, sent.get(line.id or ""), ids_on_wire)
            elif line.type is Type.ACKNOWLEDGED:
                yield from self._acknowledged(line, sent.get(line.id or ""))
            elif line.type is Type.FAILED:
                matched = "matched" if line.id in self.wire.by_id else "not matched"
                self.counts[f"failed sends {matched}"] += 1
        if not ids_on_wire:
            return
        for line in sent.values():
            if line.id in self.wire.by_id:
                yield from self._sent(line, line.id in answered or not closed, places)
        if closed:
            silent = [one for one in sent.values() if one.id not in answered]
            yield from self._vanished([one for one in silent if one.id not in self.wire.by_id], nameless)
        yield from self._order_of_sends(list(sent.values()))

    # ---- delivery reports

    def _without_offset(self, line: Line, sent: Line | None, ids_on_wire: bool) -> Iterator[Blame]:
        """A report of success that names no offset: true if the record is written, or no acknowledgement was
        asked for."""
        carried = self.wire.by_id.get(line.id or "", [])
        crossed = carried or (ids_on_wire and sent is not None and not self.wire.unread)
        if not crossed:
            self.counts[f"{NO_OFFSET}, not matched"] += 1
            return
        if any(one.row.acks == ACKS_NONE for one in carried):
            self.counts[f"{NO_OFFSET}, as acks=0 has none"] += 1
        elif any(one.acknowledged or self.wire.is_read(one) for one in carried):
            self.counts[f"{NO_OFFSET}, and written"] += 1
        elif any(one.row.outcome is not Outcome.FAIL for one in carried):
            self.counts[f"{NO_OFFSET}, of unknown outcome"] += 1
        else:
            log = (line.topic or "?", -1 if line.partition is None else line.partition)
            yield self._report(line, sent, carried, f"{log[0]}-{log[1]}", self._refused(carried, log))

    def _refused(self, carried: list[Carried], log: tuple[str, int]) -> str:
        """The sentence about a report of success without an offset. carried: all were refused."""
        if not carried:
            return f"{NO_OFFSET}, and no request carried it"
        read = "in no log" if self.wire.read.get(log) else "and nothing of the log was read"
        return f"{NO_OFFSET}, {self._refusal(carried)}, {read}"

    def _refusal(self, carried: list[Carried]) -> str:
        """Who refused a record, and with which error. The last answer counts: what was refused and sent again
        was refused again."""
        row = carried[-1].row
        frame = self.wire.frame_of(row)
        who = "by a fault in the broker's place" if frame is not None and frame.by else "by the broker"
        return f"refused {who}" + (f" ({row.error})" if row.error else "")

    def _acknowledged(self, line: Line, sent: Line | None) -> Iterator[Blame]:
        assert line.topic is not None and line.partition is not None and line.offset is not None
        place = (line.topic, line.partition, line.offset)
        if place in self.convicted:
            return
        one = self.wire.acknowledged.get(place)
        if one is None:
            yield from self._unmatched(line, sent, place)
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
                place=place_name(place),
                says="the record that was acknowledged there is another one than the application sent",
                lines=_places_of(sent, line),
                operations=(one.row.op_id,),
                frame=self.wire.frame_of(one.row),
            )

    def _unmatched(self, line: Line, sent: Line | None, place: Place) -> Iterator[Blame]:
        """A report of success for an offset that no answer in the record names."""
        carried = self.wire.by_id.get(line.id or "", [])
        mine = carried if carried else [one for one in self.wire.carried if one.place[:2] == place[:2]]
        # without an id it may be any record of its partition that has no known outcome
        if any(one.row.outcome is Outcome.UNKNOWN for one in mine) or self.wire.unread:
            self.counts["acknowledged, and the record does not show the answer"] += 1
            return
        says = (
            "the client reported to the application that this is acknowledged, and no broker has "
            "acknowledged anything there"
        )
        if carried and all(one.row.outcome is Outcome.FAIL for one in carried):
            says += f": it was {self._refusal(carried)}"
        elif any(one.acknowledged for one in carried):
            known = next(one for one in carried if one.acknowledged)
            says += f": it is acknowledged at offset {known.place[2]}"
        yield self._report(line, sent, carried, place_name(place), says)

    def _report(self, line: Line, sent: Line | None, carried: list[Carried], place: str, says: str) -> Blame:
        return Blame(
            side=Side.CLIENT_LIBRARY,
            kind=Kind.LOSS,
            place=place,
            says=says,
            lines=_places_of(sent, line),
            operations=tuple(dict.fromkeys(one.row.op_id for one in carried)),
            frame=self.wire.frame_of(carried[-1].row) if carried else None,
        )

    # ---- sends

    def _vanished(self, lines: list[Line], nameless: int) -> Iterator[Blame]:
        """Sends that never crossed the wire and have no answer. nameless: failures that name no send, each of
        which may be of one of them (Java's clients before 4.1)."""
        if self.wire.unread:
            self.counts["sends that the record may not have read"] += len(lines)
            return
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
        written = {one.place: one for one in carried if one.acknowledged}
        identities = {
            (one.row.producer_id, one.row.producer_epoch, one.record.value, one.row.op_id)
            for one in written.values()
        }
        places = set(written)
        if len(identities) > 1 and len(places) > 1 and not places & self.convicted:
            first, *_, last = written.values()
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.DUPLICATE,
                place=place_name(last.place),
                says=f"one send crossed the wire as {len(identities)} records, each acknowledged",
                lines=(line.place,),
                operations=(first.row.op_id, last.row.op_id),
                frame=self.wire.frame_of(last.row),
            )
        if not reported and places and not places & (self.convicted | acknowledged):
            self.counts["acknowledged, and no callback was called"] += 1

    def _order_of_sends(self, sent: list[Line]) -> Iterator[Blame]:
        """Sends of one producer to one partition are written in their order."""
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
            says = _why_later(before[1], one)
            if not says:
                self.counts[OTHER_ORDER] += 1
                continue
            yield Blame(
                side=Side.APPLICATION,
                kind=Kind.REORDERING,
                place=place_name(one.place),
                says=says,
                lines=(before[0].place, line.place),
                operations=(before[1].row.op_id, one.row.op_id),
                frame=self.wire.frame_of(one.row),
            )


def _why_later(before: Carried, one: Carried) -> str:
    """Why a record that was sent before another one has the higher offset; "" if its requests do not say."""
    if (before.row.op_id, before.index) > (one.row.op_id, one.index):
        return "sent after a record that crossed the wire later and has a higher offset"
    if before.row.attempts > 1:
        return (
            f"sent after a record that crossed the wire before it, crossed again ({before.row.attempts} "
            "attempts), and has a higher offset"
        )
    return ""


def _places_of(*lines: Line | None) -> tuple[str, ...]:
    return tuple(each.place for each in lines if each is not None)
