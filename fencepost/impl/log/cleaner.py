"""Compaction: the latest record of each key stays (KIP-58, KIP-534).

Owns the content of a cleaned segment and how it replaces the old ones. Must not know leaders; the caller
passes the high watermark.

    start          first dirty offset          bound = min(high watermark, open transactions, active segment)
    |--- clean -----------|------- dirty ------------|--------- not touched ----------|

1. Read the dirty part: the last offset of every key.
2. Write the records that are still the latest into `.cleaned`, group by group.
3. Sync, rename to `.swap`: from here on the cleaned segment is the truth.
4. Remove the old ones, rename `.swap` to `.log`. A crash before 3 changes nothing; after it, loading the log
   continues with 4 (recovery.finish_swap).

A record without a key is removed; control records stay. A tombstone stays until `delete.retention.ms` after
the first compaction that saw it, so that a reader who began before that at the start sees it. The time of its
removal is written into its batch (KAFKA-4529 used the age of the wrong segment). A replica that copies the
batch goes by that time and its own clock: its pass removes the older values before the tombstone, so its own
log never shows them again. A replica that takes longer than `delete.retention.ms` to copy a log may miss the
tombstone and keep an older value, as in Kafka, where that time bounds every reader.

Markers stay, and with them the entries of the transaction indexes. An entry without records does no harm, but
a missing one makes aborted records visible (KAFKA-13727).

Three batches stay, empty if necessary:

- The last committed one of each producer, because its sequence number detects duplicates (KAFKA-5490). Kafka
  keeps the last of all. If that one is truncated, a follower of the cleaned log knows less than its leader.
- The first one of each leader epoch but the first. A follower of the cleaned log takes the start of an epoch
  from it. Kafka does not keep it: the epoch begins too late there, or is missing. When that follower leads, a
  replica that asks where its own last epoch ended truncates too little (KIP-101).
- The last one of each pass, until a later pass ends after it. If the active segment is empty, nothing else
  tells a follower of the cleaned log where the log ends (KAFKA-17076).
"""

from collections.abc import Iterator
from itertools import pairwise

from attrs import define, field, frozen

from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import Record, TimestampType, encode_batch, read_records
from fencepost.impl.log.index.segment_indexes import LARGEST_RELATIVE_OFFSET
from fencepost.impl.log.index.transaction_index import TransactionIndex
from fencepost.impl.log.layout import CLEANED, INDEXES, LOG, SWAP, TRANSACTION_INDEX, segment_path
from fencepost.impl.log.recovery import finish_swap
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog

MOST_KEYS = 5_000_000
"""The most keys in the map of one pass (log.cleaner.dedupe.buffer.size in Kafka). The rest of the dirty part
waits for the next pass."""


@frozen(kw_only=True)
class Cleaned:
    """The result of a pass."""

    # Where the next one begins.
    first_dirty_offset: int
    records_dropped: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


@define
class Transactions:
    """What the markers say about transactional records."""

    open_since: dict[int, int] = field(factory=dict)
    # (producer id, first, last offset) of aborted transactions.
    aborted: list[tuple[int, int, int]] = field(factory=list)

    def see(self, header: BatchHeader, data: bytes) -> None:
        """Note the markers of a batch.

        Args:
            header: the header of the batch.
            data: the buffer that holds it.
        """
        if not header.is_transactional:
            return
        if not header.is_control:
            self.open_since.setdefault(header.producer_id, header.base_offset)
            return
        marker = next(map(end_transaction_of, read_records(data, header)), None)
        begun = self.open_since.pop(header.producer_id, None)
        if marker is not None and not marker.commit and begun is not None:
            self.aborted.append((header.producer_id, begun, header.last_offset))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of this batch were aborted."""
        return header.is_transactional and any(
            producer == header.producer_id and first <= header.base_offset <= last
            for producer, first, last in self.aborted
        )

    def is_undecided(self, header: BatchHeader) -> bool:
        """Whether the marker of this batch's transaction is beyond the part that was read."""
        begun = self.open_since.get(header.producer_id)
        return header.is_transactional and begun is not None and begun <= header.base_offset

    def is_committed(self, header: BatchHeader) -> bool:
        """Whether its records are committed."""
        return not (self.is_aborted(header) or self.is_undecided(header))


@define
class Cleaner:
    """The cleaner of one log."""

    log: SegmentedLog
    # The time of this pass.
    now_ms: int = 0
    # Records from here on are not committed.
    high_watermark: int = 0
    # Where the last batch of this pass ends.
    end_offset: int = 0
    # By producer id: epoch and last offset of its last batch in the segments that can be cleaned.
    last_batches: dict[int, tuple[int, int]] = field(factory=dict)
    latest: dict[bytes, int] = field(factory=dict)
    transactions: Transactions = field(factory=Transactions)
    dropped: int = 0

    def clean(self, *, first_dirty_offset: int, high_watermark: int, now_ms: int) -> Cleaned:
        """Run one pass over the log. No effect if no whole segment is dirty.

        Args:
            first_dirty_offset: where the part begins that was never cleaned.
            high_watermark: records from here on are not committed and stay.
            now_ms: the current time in milliseconds.

        Returns:
            what the pass did.
        """
        assert self.log.options.compact, f"{self.log.directory} is not a compacted log"
        self.now_ms, self.dropped, self.latest, self.transactions = now_ms, 0, {}, Transactions()
        self.high_watermark, self.last_batches = high_watermark, {}
        first_dirty = max(first_dirty_offset, self.log.log_start_offset)
        bound = self.clean_below(high_watermark)
        segments = self.log.segments.all
        cleanable = [old for old, following in pairwise(segments) if following.base_offset <= bound]
        with self.log.in_service("compact"):
            count, end = self._read_keys(cleanable, first_dirty)
            if end <= first_dirty:
                return Cleaned(first_dirty_offset=first_dirty)
            self.end_offset = max((old.next_offset for old in cleanable[:count] if old.size), default=0)
            before = sum(segment.size for segment in cleanable[:count])
            after = sum(self._replace(group) for group in self._groups(cleanable[:count]))
        return Cleaned(
            first_dirty_offset=end, records_dropped=self.dropped, bytes_before=before, bytes_after=after
        )

    def clean_below(self, high_watermark: int) -> int:
        """Protection KAFKA-13194: clean neither the active segment nor uncommitted records. These may be
        truncated, and must not have replaced a committed record."""
        undecided = self.log.producers.first_open_offset()
        bound = min(high_watermark, self.log.segments.active.base_offset)
        return bound if undecided is None else min(bound, undecided)

    # ---- what stays

    def _read_keys(self, segments: list[Segment], first_dirty: int) -> tuple[int, int]:
        """Fill the map from the dirty part. Returns how many segments can be cleaned and where the cleaned
        part will end."""
        end = first_dirty
        for segment in segments:
            for header, data in segment.batches():
                self.transactions.see(header, data)
                self._see_producer(header)
        for number, segment in enumerate(segments):
            following = self.log.segments.all[number + 1].base_offset
            if following <= first_dirty:
                continue
            if len(self.latest) >= MOST_KEYS and end > first_dirty:
                return number, end
            for header, data in segment.batches():
                if (
                    header.last_offset >= first_dirty
                    and not header.is_control
                    and self.transactions.is_committed(header)
                ):
                    for record in read_records(data, header):
                        if record.key is not None and record.offset >= first_dirty:
                            self.latest[record.key] = record.offset
            end = following
        return len(segments), end

    def _see_producer(self, header: BatchHeader) -> None:
        """Note the batch as the last one of its producer. The marker of a later epoch leaves none."""
        epoch, _ = self.last_batches.get(header.producer_id, (-1, -1))
        if not header.is_control:
            self.last_batches[header.producer_id] = header.producer_epoch, header.last_offset
        elif header.producer_epoch > epoch:
            self.last_batches.pop(header.producer_id, None)

    def retained(self, header: BatchHeader, records: tuple[Record, ...]) -> list[Record]:
        """The records of a batch that stay."""
        if header.is_control or self.transactions.is_undecided(header):
            return list(records)
        if self.transactions.is_aborted(header):
            return []
        return [
            record
            for record in records
            if record.key is not None
            and record.offset >= self.latest.get(record.key, -1)
            and (record.value is not None or not self.tombstone_may_go(header))
        ]

    def tombstone_may_go(self, header: BatchHeader) -> bool:
        """Protection KAFKA-4529: a tombstone stays until delete.retention.ms after it became clean."""
        return header.delete_horizon_ms is not None and self.now_ms >= header.delete_horizon_ms

    def last_of_producer(self, header: BatchHeader) -> bool:
        """Protection KAFKA-5490: the committed batch with the last sequence number of its producer, by epoch
        and offset (KAFKA-8335)."""
        producer = self.log.producers.producers.get(header.producer_id)
        if producer is None:
            return False
        remembered = [batch.last_offset for batch in producer.batches]
        committed = [offset for offset in remembered if offset < self.high_watermark]
        last = producer.epoch, committed[-1] if committed else -1
        if remembered and not committed:  # all of them may be truncated
            last = self.last_batches.get(header.producer_id, last)
        return last == (header.producer_epoch, header.last_offset)

    def first_of_epoch(self, header: BatchHeader) -> bool:
        """Whether a leader epoch begins with this batch, and another one ends before it."""
        return any(
            epoch == header.leader_epoch and header.base_offset <= start <= header.last_offset
            for epoch, start in self.log.epochs.entries[1:]
        )

    def last_of_pass(self, header: BatchHeader) -> bool:
        """Protection KAFKA-17076: the last batch of a pass, so that a replica that copies it has its end."""
        return header.last_offset + 1 == self.end_offset

    def _clean_batch(self, header: BatchHeader, data: bytes) -> bytes | None:
        """The batch after cleaning; None if it is removed."""
        records = read_records(data, header)
        kept = self.retained(header, records)
        self.dropped += len(records) - len(kept)
        tombstones = not header.is_control and any(record.value is None for record in kept)
        horizon = header.delete_horizon_ms
        needs_horizon = tombstones and horizon is None
        stays = self.last_of_producer(header) or self.first_of_epoch(header) or self.last_of_pass(header)
        if not (kept or stays):
            return None
        if len(kept) == len(records) and not needs_horizon:
            return data[header.position : header.end_position]
        if needs_horizon:
            horizon = self.now_ms + self.log.options.delete_retention_ms
        stamped = header.timestamp_type is TimestampType.LOG_APPEND
        return encode_batch(
            kept,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            codec=header.codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
            last_offset_delta=header.last_offset_delta,
            log_append_time_ms=header.max_timestamp_ms if stamped else None,
            delete_horizon_ms=horizon if tombstones else None,
            empty_timestamp_ms=header.max_timestamp_ms,
        )

    # ---- replacing the old segments

    def _groups(self, segments: list[Segment]) -> Iterator[list[Segment]]:
        """Neighbouring segments that together make at most one segment. (Cleaned segments shrink, and many
        small ones cost files.)"""
        group: list[Segment] = []
        size = 0
        for segment in segments:
            reach = segment.next_offset - (group[0].base_offset if group else segment.base_offset)
            if group and (
                size + segment.size > self.log.options.segment_bytes or reach > LARGEST_RELATIVE_OFFSET
            ):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _replace(self, group: list[Segment]) -> int:
        """Write the cleaned segment of a group and put it in place; returns its size."""
        log, base = self.log, group[0].base_offset
        for kind in (LOG, *INDEXES):
            path = segment_path(log.directory, base, kind, CLEANED)
            if log.files.exists(path):
                log.files.remove(path)
        self._keep_aborted(group)
        cleaned = log.files.open(segment_path(log.directory, base, LOG, CLEANED))
        for segment in group:
            for header, data in segment.batches(check_crc=True):
                segment.refuse_displaced(header, header.position)
                batch = self._clean_batch(header, data)
                if batch is not None:
                    cleaned.append(batch)
        cleaned.sync()
        cleaned.close()
        log.files.rename(
            segment_path(log.directory, base, LOG, CLEANED), segment_path(log.directory, base, LOG, SWAP)
        )
        log.files.sync_directory(log.directory)
        following = log.segments.all[log.segments.all.index(group[-1]) + 1].base_offset
        finish_swap(log.files, log.directory, base, log.options, end_offset=following)
        new = Segment.open(log.files, log.directory, base, log.options)
        new.rebuild_indexes()
        new.seal()
        new.release()
        for segment in group:
            segment.close()
        log.segments.replace(group, new)
        return new.size

    def _keep_aborted(self, group: list[Segment]) -> None:
        """Write the transaction index of the cleaned segment, as `.swap`. It has no effect without a log of
        that name."""
        log = self.log
        for segment in group:
            log.believe_aborted(segment)
        aborted = [entry for segment in group for entry in segment.transactions.all()]
        if not aborted:
            return
        path = segment_path(log.directory, group[0].base_offset, TRANSACTION_INDEX, SWAP)
        if log.files.exists(path):
            log.files.remove(path)
        index = TransactionIndex(
            files=log.files, path=path, base_offset=group[0].base_offset, max_bytes=len(aborted)
        )
        for entry in aborted:
            index.append(entry)
        index.write(sync=True)
        log.files.sync_directory(log.directory)
