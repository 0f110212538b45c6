"""Whether a replica's leader-epoch-checkpoint says what its batches say.

Owns the comparison. Must not know who wrote what first. A follower asks with its last epoch where to cut (KIP-101), and its leader answers out of this file:
an entry that contradicts the batches makes the one cut too much or the other keep what nobody else has.

An epoch may have no batch at all: its leader wrote nothing, or compaction took them. If the broker was not shut down cleanly, an entry may lie above the end
of a log that lost its tail, and the first one above a log start that is checkpointed once a minute only (DeleteRecords raises both); a broker puts that
right when it loads the log. None of this is a contradiction.
"""

from pathlib import Path

from attrs import define, field

from fencepost.audit.findings import Findings
from fencepost.audit.segments import AuditedBatch
from fencepost.audit.source import RealSource
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.dump.states import EpochStart, epoch_starts

ANOMALY = "epoch_checkpoint_contradicts_log"


@define
class EpochCheck:
    """Follows the batches of a replica in order. entries: ascending. below: entries whose start was reached. told: (epoch of the batches, of the checkpoint)
    of the last contradiction, which is told once and not with every batch. usable: the checkpoint could be read and is whole."""

    path: Path
    findings: Findings
    log_start: int = 0
    clean: bool = False
    entries: list[EpochStart] = field(factory=list)
    below: int = 0
    told: tuple[int, int | None] | None = None
    usable: bool = True

    def load(self) -> None:
        """Read the checkpoint."""
        if not self.path.exists():
            return
        try:
            with RealSource(self.path) as source:
                for item in epoch_starts(source):
                    if isinstance(item, EpochStart):
                        self.entries.append(item)
                    else:
                        self.usable = False
                        self.findings.flaw("checkpoint_damaged", item, self.path)
        except OSError as error:
            self.usable = False
            self.findings.left_out(self.path, error.strerror or str(error))

    def see(self, batch: AuditedBatch) -> None:
        """The next batch."""
        header = batch.header
        while self.below < len(self.entries) and self.entries[self.below].start_offset <= header.base_offset:
            self.below += 1
        if not self.usable or header.leader_epoch < 0 or header.base_offset < self.log_start:
            return
        entry = self.entries[self.below - 1] if self.below else None
        epoch = None if entry is None else entry.epoch
        if epoch == header.leader_epoch:
            self.told = None
        elif self._deleted(header):
            self.findings.note(
                f"{self.path}: the first epoch begins at {self.entries[0].start_offset}; what is below was deleted, though the log start is {self.log_start}"
            )
        elif self.told != (header.leader_epoch, epoch):
            self.told = header.leader_epoch, epoch
            says = "no entry" if entry is None else f"epoch {entry.epoch} from offset {entry.start_offset} on"
            self.findings.add(
                ANOMALY,
                expected=f"epoch {header.leader_epoch}, as the batch of offset {header.base_offset} in {batch.where} has it",
                seen=f"{says} in {self.path}",
                offset=header.base_offset,
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
                        f"{self.path}: epoch {entry.epoch} begins at {entry.start_offset}, above the end of the log at {log_end}"
                    )
