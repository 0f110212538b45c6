"""Whether a replica's leader-epoch-checkpoint agrees with its batches.

Owns the comparison. Must not know which of them was written first. A follower asks with its last epoch where
to truncate (KIP-101), and its leader answers from this file. An entry that contradicts the batches makes the
follower remove too much or keep records that no other replica has.

An epoch may have no batch at all: its leader wrote nothing, or compaction removed them. If the broker was not
shut down cleanly, an entry may be above the end of a log that lost its tail, and the first one above a log
start that is checkpointed only once a minute (DeleteRecords raises both). A broker corrects that when it
loads the log. None of this is a contradiction.
"""

from collections.abc import Sequence

from attrs import define, field

from fencepost.audit.audit_findings import Findings
from fencepost.audit.source import Place, opened
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.dump.directory_files import EpochStart, epoch_starts
from fencepost.impl.log.dump.segment_walk import SegmentBatch

ANOMALY = "epoch_checkpoint_contradicts_log"
MOST_SPANS = 10_000
"""Stretches of one epoch that are remembered of a replica; a log has as many as it had leaders."""


@define(kw_only=True)
class Span:
    """Neighbouring records of one epoch in a replica."""

    epoch: int
    # Their offsets, the end exclusive.
    first: int
    end: int
    # How many.
    records: int

    def beyond(self, offset: int) -> int:
        """How many of them are at or beyond an offset; an upper bound if some are missing."""
        return min(self.records, self.end - max(self.first, offset))


@define
class EpochCheck:
    """Follows the batches of a replica in order."""

    path: Place
    findings: Findings
    log_start: int = 0
    # Whether the broker was shut down cleanly.
    clean: bool = False
    # Entries of the checkpoint, ascending.
    entries: list[EpochStart] = field(factory=list)
    # How many entries begin at or below the present batch.
    below: int = 0
    # (epoch of the batches, epoch of the checkpoint) of the last contradiction, to report it only once.
    reported: tuple[int, int | None] | None = None
    # Whether the checkpoint could be read and is complete.
    usable: bool = True
    # The epochs of the batches so far.
    # What the batches say, in their order.
    spans: list[Span] = field(factory=list)

    def load(self) -> None:
        """Read the checkpoint."""
        if not self.path.exists():
            return
        try:
            with opened(self.path) as source:
                for item in epoch_starts(source):
                    if isinstance(item, EpochStart):
                        self.entries.append(item)
                    else:
                        self.usable = False
                        self.findings.flaw("checkpoint_damaged", item, self.path)
        except OSError as error:
            self.usable = False
            self.findings.left_out(self.path, error.strerror or str(error))

    def see(self, batch: SegmentBatch) -> None:
        """The next batch."""
        header = batch.header
        self._span(header)
        while self.below < len(self.entries) and self.entries[self.below].start_offset <= header.base_offset:
            self.below += 1
        if not self.usable or header.leader_epoch < 0 or header.base_offset < self.log_start:
            return
        entry = self.entries[self.below - 1] if self.below else None
        epoch = None if entry is None else entry.epoch
        if epoch == header.leader_epoch:
            self.reported = None
        elif self._deleted(header):
            self.findings.note(
                f"{self.path}: the first epoch begins at {self.entries[0].start_offset}; what is below was "
                f"deleted, though the log start is {self.log_start}"
            )
        elif self.reported != (header.leader_epoch, epoch):
            self.reported = header.leader_epoch, epoch
            says = "no entry" if entry is None else f"epoch {entry.epoch} from offset {entry.start_offset} on"
            self.findings.add(
                ANOMALY,
                expected=f"epoch {header.leader_epoch}, as the batch of offset {header.base_offset} in "
                f"{batch.where} has it",
                seen=f"{says} in {self.path}",
                offset=header.base_offset,
            )

    def _span(self, header: BatchHeader) -> None:
        last = self.spans[-1] if self.spans else None
        if last is not None and last.epoch == header.leader_epoch:
            last.end, last.records = header.next_offset, last.records + header.count
        elif header.leader_epoch >= 0 and len(self.spans) < MOST_SPANS:
            self.spans.append(
                Span(
                    epoch=header.leader_epoch,
                    first=header.base_offset,
                    end=header.next_offset,
                    records=header.count,
                )
            )

    def _deleted(self, header: BatchHeader) -> bool:
        """Whether a batch that has no entry may have been deleted before the broker died."""
        first = self.entries[0] if self.entries else None
        return not self.clean and not self.below and first is not None and header.leader_epoch <= first.epoch

    def end(self, log_end: int) -> None:
        """There are no more batches."""
        for entry in self.entries if self.usable else ():
            if entry.start_offset > log_end:
                if self.clean:
                    self.findings.add(
                        ANOMALY,
                        expected=f"epochs up to the end of the log at {log_end}",
                        seen=f"epoch {entry.epoch} from offset {entry.start_offset} on in {self.path}",
                        offset=entry.start_offset,
                    )
                else:
                    self.findings.note(
                        f"{self.path}: epoch {entry.epoch} begins at {entry.start_offset}, above the end of "
                        f"the log at {log_end}"
                    )


def tell_cuts(checks: Sequence[tuple[str, int, EpochCheck]], findings: Findings) -> None:
    """Note which records a later leader's epoch removes. checks: (replica in words, its high
    watermark, its epochs) of one partition; findings: for the notes.

    A follower truncates its log where its leader's next epoch begins (KIP-101), so its records of an older
    epoch beyond that offset are removed. That is correct if these records were never acknowledged. The
    note says how many of them are below the replica's own high watermark: these are a loss."""
    for name, high_watermark, own in checks:
        for span in own.spans:
            later = [
                (entry.start_offset, entry.epoch, other)
                for _, _, other in checks
                if other is not own and other.usable
                for entry in other.entries
                if entry.epoch > span.epoch
            ]
            start, epoch, other = min(later, key=lambda one: one[:2], default=(span.end, -1, own))
            count = span.beyond(start)
            if count <= 0:
                continue
            committed = count - max(0, span.beyond(high_watermark)) if high_watermark > start else 0
            loss = f"; {committed} of them below its high watermark {high_watermark}" if committed > 0 else ""
            findings.note(
                f"{name}: {count} records of epoch {span.epoch} beyond offset {start} will be cut:"
                f" epoch {epoch} begins there in {other.path}{loss}"
            )
