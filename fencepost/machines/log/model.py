"""What a log may hold, as a plain mapping: the model that the log machine compares with.

Owns which records may be there and which must. Must not know files or segments. Three words for what happened
to a record: known (appended, or tried to), promised (it must be found), removable (it may be found or not).
"""

from attrs import define, evolve, field, frozen


@frozen(kw_only=True)
class Known:
    """A record that was appended."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int
    # Offsets of its batch.
    first: int
    last: int
    producer_id: int = -1
    producer_epoch: int = -1
    # Of the first record of its batch.
    sequence: int = -1

    @property
    def last_sequence(self) -> int:
        """Of the last record of its batch."""
        return self.sequence + self.last - self.first


@define
class LogModel:
    """What a correct log may hold after the rules so far."""

    # Records by offset; those at or above `end` were tried and not acknowledged.
    records: dict[int, Known] = field(factory=dict)
    # All records that were ever tried, by offset, those that were cut since included.
    ever: dict[int, list[Known]] = field(factory=dict)
    # What the log answers as its end while it is in service.
    end: int = 0
    # Nothing below this offset may be lost.
    durable: int = 0
    start: int = 0
    # A log start that was lost with its checkpoint; the cleaner began there and never looked at what lies
    # below.
    lost_start: int = 0
    # Retention may have removed records below this offset.
    deletable_below: int = 0
    high_watermark: int = 0
    # Offsets of records that compaction may have removed.
    removable: set[int] = field(factory=set)
    # Last offsets of batches that compaction found not to be their producer's last, so that it kept nothing
    # of them.
    forgettable: set[int] = field(factory=set)
    # Time at which a tombstone was first compacted, by offset, ms.
    cleaned_at: dict[int, int] = field(factory=dict)
    # Whether a full truncation was interrupted, so that an empty log may begin at any offset.
    anywhere: bool = False
    # Base offsets that a turned bit, outside the checksum, may have given a batch.
    displaced: set[int] = field(factory=set)
    # Whether a sync has lied or a bit outside every checksum has turned, so that what is there may be
    # anything that was ever written.
    lied: bool = False

    def try_append(self, batch: list[Known]) -> None:
        """These may be there from now on."""
        for record in batch:
            self.records[record.offset] = record
            self.ever.setdefault(record.offset, []).append(record)

    def may_be_displaced(self, first: int, to: int) -> None:
        """The batch at `first` may be found at `to`: its base offset is not under its checksum."""
        self.displaced.add(to)
        for record in [one for mine in self.ever.values() for one in mine if one.first == first]:
            moved = evolve(record, offset=record.offset - first + to, first=to, last=record.last - first + to)
            self.ever.setdefault(moved.offset, []).append(moved)

    def batch_start(self, offset: int) -> int:
        """Where a cut at `offset` ends the log."""
        record = self.records.get(offset)
        return record.first if record is not None and offset < self.end else min(offset, self.end)

    def may_cut(self, end: int) -> None:
        """A truncation begins: nothing from `end` on is promised."""
        self.durable = min(self.durable, end)

    def cut(self, end: int) -> None:
        """The log ends here: what lay beyond is gone for good."""
        self.records = {offset: record for offset, record in self.records.items() if offset < end}
        self.removable = {offset for offset in self.removable if offset < end}
        self.forgettable = {offset for offset in self.forgettable if offset < end}
        self.cleaned_at = {offset: at for offset, at in self.cleaned_at.items() if offset < end}
        self.end = end
        self.durable, self.high_watermark = min(self.durable, end), min(self.high_watermark, end)
        self.start, self.lost_start = min(self.start, end), min(self.lost_start, end)
        self.deletable_below = min(self.deletable_below, end)

    def restart_at(self, offset: int) -> None:
        """A full truncation is done."""
        self.records, self.removable, self.forgettable, self.cleaned_at = {}, set(), set(), {}
        self.end = self.durable = self.start = self.deletable_below = self.high_watermark = offset
        self.anywhere, self.lost_start = False, 0

    def started_at(self, start: int) -> None:
        """A log was opened, and begins here."""
        if start < self.start:
            self.lost_start = max(self.lost_start, self.start)
        self.start = start

    def last_of(self, producer: int) -> Known | None:
        """A record of the last batch of a producer that must be remembered; None if there is none, or
        compaction may have dropped it."""
        mine = [
            record
            for offset, record in self.records.items()
            if record.producer_id == producer and offset < self.end
        ]
        last = max(mine, key=lambda record: record.offset, default=None)
        return None if last is None or last.last in self.forgettable else last

    # ---- compaction

    def superseded(self, below: int) -> set[int]:
        """Offsets below `below` with a later record of the same key below it."""
        latest: dict[bytes, int] = {}
        for offset in sorted(self.records):
            if offset < below:
                latest[self.records[offset].key] = offset
        return {
            offset
            for offset, record in self.records.items()
            if offset < below and latest[record.key] > offset
        }

    def may_compact(self, below: int, now_ms: int, delete_retention_ms: int) -> None:
        """A compaction up to at most `below` begins."""
        self.removable |= self.superseded(below)
        for offset, at in self.cleaned_at.items():
            if now_ms >= at + delete_retention_ms:
                self.removable.add(offset)
        last: dict[int, int] = {}
        for offset in sorted(self.records):
            if offset < self.end:
                last[self.records[offset].producer_id] = self.records[offset].last
        for record in self.records.values():
            if record.last < min(below, last.get(record.producer_id, 0)):
                self.forgettable.add(record.last)

    def compacted(self, below: int, now_ms: int) -> None:
        """A compaction up to `below` is done: tombstones have been seen."""
        for offset, record in self.records.items():
            if offset < below and record.value is None:
                self.cleaned_at.setdefault(offset, now_ms)

    # ---- comparing

    def complaints(self, found: list[Known], *, first: int, end: int, at_least: int) -> list[str]:
        """What is wrong with a log that begins at the segment of `first`, ends at `end` and holds `found`;
        at_least: what the end may not be below."""
        offsets = [record.offset for record in found]
        if offsets != sorted(set(offsets)):
            return [f"offsets out of order: {offsets}"]
        if self.lied:
            return [f"invented: {one}" for one in found if one not in self.ever.get(one.offset, [])]
        wrong = [f"invented: {one}" for one in found if self.records.get(one.offset) != one]
        if self.anywhere:
            return wrong
        promised = self.records.keys() - self.removable
        if any(end <= offset < at_least for offset in promised):
            wrong.append(f"lost: the log ends at {end}, and all below {at_least} was promised")
        if first > max(self.deletable_below, 0):
            wrong.append(
                f"deleted too much: begins at {first}, only what lies below {self.deletable_below} may go"
            )
        there = set(offsets)
        missing = [
            offset
            for offset in sorted(self.records)
            if first <= offset < end and offset not in self.removable and offset not in there
        ]
        return [*wrong, *(f"hole: {self.records[offset]} is missing" for offset in missing)]

    def adopt(self, found: list[Known], *, first: int, end: int) -> None:
        """After a recovery: what is there is what counts, and it is durable.

        Args:
            found: the records.
            first: the log start.
            end: the log end.
        """
        self.records = {record.offset: record for record in found} | {
            offset: record
            for offset, record in self.records.items()
            if offset < end and offset in self.removable
        }
        self.cut(end)
        self.end = self.durable = end
        self.deletable_below = max(self.deletable_below, first)
        self.anywhere = False
