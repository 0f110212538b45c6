"""One replica, read from its first segment to its last, and compared with all files next to its
batches.

Owns the order of the batches and the meaning of a hole between them. Must not know other replicas. The result
is the good batches, ascending. Each says from where on the replica is known: records in a hole that damage
made are not missing, they cannot be read.

A base offset is not covered by the checksum (KIP-98: the leader sets it), so a flipped bit in it shows only
in comparison with its neighbours. A batch that jumps ahead is therefore kept back until the next one comes.
If that one continues where the log was, the jump was the error.
"""

from collections.abc import Callable, Iterator

from attrs import define, field

from fencepost.audit.audit_findings import Findings
from fencepost.audit.directories import ReplicaFiles, SegmentFile
from fencepost.audit.epoch_checkpoints import EpochCheck
from fencepost.audit.indexes import SegmentIndexes
from fencepost.audit.producer_snapshots import ProducerCheck
from fencepost.audit.source import opened
from fencepost.impl.log.batch.header import DELETE_HORIZON, BatchHeader, Damage
from fencepost.impl.log.dump.dump import commits_of
from fencepost.impl.log.dump.segment_walk import Bad, Old, Parsed, SegmentBatch, walk_segment
from fencepost.impl.log.dump.transactions_of_log import TransactionsOfLog

MOST_GAPS = 1000
"""Gaps that are kept until it is known whether the topic is compacted."""
LARGEST_RELATIVE_OFFSET = (1 << 31) - 1
"""An index entry has four bytes for an offset, so that no segment reaches further."""
HIGH_WATERMARK = "high watermark"
PROGRESS_BYTES = 1 << 20
"""Progress is reported about once in so many bytes."""


Known = tuple[SegmentBatch, int]
"""A good batch, and from which offset on the replica is known; between it and the batch before, it is not."""


@define
class Gap:
    """Offsets that are between two batches and in neither."""

    first: int
    end: int
    where: str


@define(kw_only=True)
class ReplicaWalk:
    """The walk through one replica."""

    files: ReplicaFiles
    findings: Findings
    # Whether a broker goes on with the files: it has the indexes of the last segment in memory.
    in_use: bool = False
    # Whether the topic is known to be compacted.
    compacted: bool = False
    # Is called with the number of bytes read since the last call.
    read: Callable[[int], None] = lambda size: None
    parsed: Parsed = field(factory=Parsed)
    # Bytes of the current segment that were reported as progress.
    told_bytes: int = 0
    # Where the next batch should begin; None before the first.
    next_offset: int | None = None
    # Leader epoch of the last batch.
    epoch: int = -1
    # Whether something before here could not be read.
    doubtful: bool = False
    # Whether a batch holds fewer records than it spans offsets, which only compaction causes.
    sparse: bool = False
    # No offset above this one is missing.
    holes_below: int = 0
    # Good batches and their records so far.
    batches: int = 0
    records: int = 0
    gaps: list[Gap] = field(factory=list)
    epochs: EpochCheck = field(init=False)
    producers: ProducerCheck = field(init=False)
    transactions: TransactionsOfLog = field(init=False)

    def __attrs_post_init__(self) -> None:
        files = self.files
        self.epochs = EpochCheck(files.epoch_checkpoint, self.findings, files.log_start or 0, files.clean)
        begin = files.segments[0].base_offset if files.segments else 0
        self.transactions = TransactionsOfLog(next_offset=begin, compacted=self.compacted)
        self.producers = ProducerCheck(
            findings=self.findings,
            snapshots=files.snapshots,
            compacted=self.compacted,
            transactions=self.transactions,
        )

    @property
    def broker(self) -> str:
        """The broker of this replica."""
        return self.files.broker

    @property
    def name(self) -> str:
        """Name of the broker for a sentence."""
        return f"broker {self.broker}" if self.broker.isdigit() else self.broker

    @property
    def start_offset(self) -> int:
        """Where it begins: at its first segment, or where records were deleted up to."""
        first = self.files.segments[0].base_offset if self.files.segments else 0
        return max(first, self.files.log_start or 0)

    @property
    def high_watermark(self) -> int:
        """Everything below is committed, as far as this broker has written down; 0 if it has not."""
        return self.files.high_watermark or 0

    @property
    def end_offset(self) -> int:
        """Where it ends, as far as it could be read."""
        return self.start_offset if self.next_offset is None else self.next_offset

    def walk(self) -> Iterator[Known]:
        """The good batches."""
        self.epochs.load()
        segments = self.files.segments
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            try:
                yield from self._segment(segment, following)
            except OSError as error:
                self.findings.left_out(segment.path, error.strerror or str(error))
                self.doubtful = True
        if not self.doubtful:
            self.epochs.end(self.end_offset)
            self.producers.end(self.end_offset, clean=self.files.clean)
        self._check_offsets()

    def _segment(self, segment: SegmentFile, following: int | None) -> Iterator[Known]:
        """following: where the next segment begins; None for the last one."""
        tail = following is None and not self.files.clean
        indexes = SegmentIndexes(segment, self.findings, tail, self.transactions)
        bound = segment.base_offset + LARGEST_RELATIVE_OFFSET + 1 if following is None else following
        held: SegmentBatch | None = None
        seen_batch = False
        with opened(segment.path) as source:
            if following is not None or not self.in_use:
                indexes.load()
            for item in walk_segment(source, segment.path, self.parsed):
                if item.position - self.told_bytes >= PROGRESS_BYTES:
                    self.read(item.position - self.told_bytes)
                    self.told_bytes = item.position
                if held is not None:
                    if self._is_misplaced(held, item, segment):
                        indexes.see(held.header, held.position, damaged=True)
                    elif known := self._take(held, indexes):
                        yield known
                    held = None
                if not isinstance(item, SegmentBatch):
                    self._no_batch(item, segment, indexes, first=not seen_batch)
                    continue
                seen_batch = True
                header = item.header
                if not segment.base_offset <= header.base_offset <= header.last_offset < bound:
                    self._outside(item, bound, segment)
                    indexes.see(header, item.position, damaged=True)
                elif header.base_offset > self._expected(segment) and not self.doubtful:
                    held = item
                elif known := self._take(item, indexes):
                    yield known
            if held is not None and (known := self._take(held, indexes)):
                yield known
            self.read(source.size() - self.told_bytes)
            self.told_bytes = 0
        indexes.end()

    def _is_misplaced(
        self, held: SegmentBatch, following: SegmentBatch | Bad | Old, segment: SegmentFile
    ) -> bool:
        """Whether a batch that jumped ahead is wrong, because the log continues where it was."""
        if not isinstance(following, SegmentBatch):
            return False
        if not self._expected(segment) <= following.header.base_offset < held.header.next_offset:
            return False
        self.findings.add(
            "offset_regressed_in_log",
            expected=f"an offset below {following.header.base_offset}, where the batch after it begins",
            seen=f"{held.header.base_offset} in {held.where}",
            offset=self._expected(segment),
        )
        self.doubtful = self.transactions.lost = True
        return True

    def _expected(self, segment: SegmentFile) -> int:
        return segment.base_offset if self.next_offset is None else max(segment.base_offset, self.next_offset)

    # ---- a batch

    def _take(self, batch: SegmentBatch, indexes: SegmentIndexes) -> Known | None:
        """A batch at its place, compared with all files next to it; None if it is not at its place."""
        header = batch.header
        self.producers.reach(header.base_offset)
        indexes.see(header, batch.position, commits=commits_of(batch))
        if self.next_offset is not None and header.base_offset < self.next_offset:
            self.findings.add(
                "offset_regressed_in_log",
                expected=f"an offset of at least {self.next_offset} after the batches before it",
                seen=f"{header.base_offset} in {batch.where}",
                offset=header.base_offset,
            )
            self.doubtful = self.transactions.lost = True
            return None
        known_from = header.base_offset if self.doubtful else self._gap(batch)
        if header.leader_epoch != self.epoch:
            self._epoch(batch)
        self.epochs.see(batch)
        self.producers.see(batch)
        if header.count <= header.last_offset_delta or header.attributes & DELETE_HORIZON:
            self.sparse = True
            self.holes_below = header.next_offset
        self.batches += 1
        self.records += header.count
        self.next_offset, self.doubtful = header.next_offset, False
        return batch, known_from

    def _gap(self, batch: SegmentBatch) -> int:
        """Notes a hole before this batch; returns from where on the replica is known."""
        first = self.start_offset if self.next_offset is None else self.next_offset
        if first < batch.header.base_offset:
            self.holes_below = batch.header.base_offset
            if len(self.gaps) < MOST_GAPS:
                self.gaps.append(Gap(first, batch.header.base_offset, batch.where))
        return first

    def _epoch(self, batch: SegmentBatch) -> None:
        epoch = batch.header.leader_epoch
        if epoch < self.epoch:
            self.findings.add(
                "epoch_regressed_in_log",
                expected=f"a leader epoch of at least {self.epoch} from offset {batch.header.base_offset} on",
                seen=f"{epoch} in {batch.where}",
                offset=batch.header.base_offset,
            )
        self.epoch = epoch

    # ---- what is no good batch

    def _outside(self, batch: SegmentBatch, bound: int, segment: SegmentFile) -> None:
        self.findings.add(
            "offset_regressed_in_log",
            expected=f"offsets from {segment.base_offset} to below {bound} in this segment",
            seen=f"{batch.header.base_offset} to {batch.header.last_offset} in {batch.where}",
            offset=self._expected(segment),
        )
        self.doubtful = True

    def _no_batch(
        self, item: Bad | Old, segment: SegmentFile, indexes: SegmentIndexes, *, first: bool
    ) -> None:
        """first: it is the first batch of this segment, as after a broker's upgrade."""
        if isinstance(item, Old) and first:
            self._old(item, segment)
        else:
            self._bad(item, segment, tail=indexes.tail)
        self.doubtful = True
        if isinstance(item, Bad) and item.header is not None:
            indexes.see(item.header, item.position, damaged=True)
        else:
            indexes.unfollow()

    def _old(self, old: Old, segment: SegmentFile) -> None:
        self.findings.left_out(
            segment.path,
            f"{old.count} messages of format {old.magic} (before Kafka 0.11), up to offset "
            f"{old.last_offset}, are not read",
        )

    def _bad(self, bad: Bad | Old, segment: SegmentFile, *, tail: bool) -> None:
        offset = self.next_offset if self.next_offset is not None else segment.base_offset
        where = f"{segment.path} at byte {bad.position}"
        if isinstance(bad, Old):
            self.findings.add(
                "corrupt_batch",
                expected=f"batches of one format up to the end of {segment.path}",
                seen=f"{bad.count} messages of format {bad.magic} before byte {bad.position}",
                offset=offset,
            )
            return
        torn = bad.header is None and (bad.zeros or bad.damage is Damage.TORN)
        if torn and tail and offset >= self.high_watermark:
            self.findings.note(
                f"{where}: unfinished, {bad.seen}, good up to offset {offset}; a broker cuts it when it "
                f"starts, and nothing there is committed"
            )
            return
        span = _span(bad.header)
        if offset < self.high_watermark:
            span += f", below the high watermark {self.high_watermark}"
        rest = (
            ""
            if bad.header is not None
            else f"; good up to offset {offset}, {bad.rest} bytes after that are not"
        )
        self.findings.add(
            "corrupt_batch", expected=bad.expected, seen=f"{bad.seen}{span}, in {where}{rest}", offset=offset
        )

    # ---- checkpoints

    def _check_offsets(self) -> None:
        start, end = self.files.segments[0].base_offset if self.files.segments else 0, self.end_offset
        for name, value in (
            (HIGH_WATERMARK, self.files.high_watermark),
            ("log start offset", self.files.log_start),
            ("recovery point", self.files.recovery_point),
        ):
            beyond = value is not None and value > end and not self.doubtful
            if self.in_use and name == HIGH_WATERMARK:
                beyond = False  # it may be from before the log was cut, or of an earlier topic of this name
            if beyond or (value is not None and value < 0):
                self.findings.add(
                    "checkpoint_outside_log",
                    expected=f"a {name} within the log of {self.name}, from {start} to {end} in "
                    f"{self.files.path}",
                    seen=f"{value} in the checkpoint",
                    offset=end,
                )
        if self.files.alone and self.end_offset > self.start_offset:
            self.findings.note(
                f"{self.files.path}: no high watermark is checkpointed; nothing in it counts as committed"
            )


def _span(header: BatchHeader | None) -> str:
    return "" if header is None else f", the batch of offsets {header.base_offset} to {header.last_offset}"
