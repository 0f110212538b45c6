"""Whether the idempotent producers of a log kept their order, and whether the producer snapshots agree with
the batches.

Owns the last batches of each producer id. Must not know why a sequence number is at its offset.
Sequence numbers increase by one along the records of one producer id and epoch, and wrap from 2^31 - 1 to 0
(KIP-98); a new epoch starts again. They may jump ahead: compaction removes batches, and a broker that has
forgotten an idle producer lets it continue anywhere (KIP-360). They never go back, and no batch is in the log
twice.
"""

from attrs import define, field

from fencepost.audit.audit_findings import Findings
from fencepost.audit.source import Place, opened
from fencepost.impl.log.batch.header import NO_PRODUCER_ID, NO_SEQUENCE
from fencepost.impl.log.dump.directory_files import producer_entries
from fencepost.impl.log.dump.segment_walk import SegmentBatch
from fencepost.impl.log.dump.transactions_of_log import TransactionsOfLog
from fencepost.impl.log.producer.snapshot import ProducerEntry

MOST_PRODUCERS = 20_000
"""Producers that are remembered of one replica; of more the ones that were silent longest are forgotten, as a
broker does."""
REMEMBERED_BATCHES = 5
_SEQUENCES = 1 << 31
SNAPSHOT = "producer_snapshot_damaged"


@define
class Producer:
    """epoch: of its last batch. batches: (first sequence, last sequence, base offset, file, byte) of its last
    ones. last_offset: of the last one."""

    epoch: int
    batches: list[tuple[int, int, int, object, int]] = field(factory=list)
    last_offset: int = -1

    @property
    def last_sequence(self) -> int:
        """Last sequence of the last batch."""
        return self.batches[-1][1] if self.batches else NO_SEQUENCE


@define(kw_only=True)
class ProducerCheck:
    """Follows the batches of a replica in order."""

    findings: Findings
    # (offset, path), ascending.
    snapshots: list[tuple[int, Place]]
    # Batches may be gone.
    compacted: bool = False
    # Which transactions are open; it has not seen the batch that comes next.
    transactions: TransactionsOfLog
    producers: dict[int, Producer] = field(factory=dict)
    passed: int = 0

    def reach(self, offset: int) -> None:
        """Compare the snapshots up to this offset, which the next batch has."""
        while self.passed < len(self.snapshots) and self.snapshots[self.passed][0] <= offset:
            self._check_snapshot(*self.snapshots[self.passed])
            self.passed += 1

    def see(self, batch: SegmentBatch) -> None:
        """The next batch."""
        header = batch.header
        if header.producer_id == NO_PRODUCER_ID:
            return
        known = self.producers.pop(header.producer_id, None)
        if known is None:
            known = Producer(header.producer_epoch)
            if len(self.producers) >= MOST_PRODUCERS:
                del self.producers[next(iter(self.producers))]
        self.producers[header.producer_id] = known
        if header.producer_epoch < known.epoch:
            self.findings.add(
                "sequence_regressed",
                expected=f"epoch {known.epoch} of producer {header.producer_id} or a later one",
                seen=f"epoch {header.producer_epoch} in {batch.where}",
                offset=header.base_offset,
            )
            return
        if header.producer_epoch > known.epoch:
            known.epoch, known.batches, known.last_offset = header.producer_epoch, [], -1
        if header.base_sequence != NO_SEQUENCE and not header.is_control:
            self._follow(known, batch)

    def _follow(self, known: Producer, batch: SegmentBatch) -> None:
        header = batch.header
        first, last = header.base_sequence, header.last_sequence
        twice = next(
            (old for old in known.batches if old[0] <= first <= old[1] or old[0] <= last <= old[1]), None
        )
        if twice is not None:
            self.findings.add(
                "duplicate",
                expected=f"sequence {twice[0]} to {twice[1]} of producer {header.producer_id} once, at "
                f"offset {twice[2]} in {twice[3]} at byte {twice[4]}",
                seen=f"sequence {first} to {last} again in {batch.where}",
                offset=header.base_offset,
            )
        elif known.batches and (first - known.last_sequence - 1) % _SEQUENCES >= _SEQUENCES // 2:
            self.findings.add(
                "sequence_regressed",
                expected=f"sequence {(known.last_sequence + 1) % _SEQUENCES} of producer "
                f"{header.producer_id} or a later one",
                seen=f"{first} in {batch.where}",
                offset=header.base_offset,
            )
        known.batches = [
            *known.batches[1 - REMEMBERED_BATCHES :],
            (first, last, header.base_offset, batch.path, batch.position),
        ]
        known.last_offset = header.last_offset

    # ---- snapshots

    def end(self, log_end: int, *, clean: bool) -> None:
        """There are no more batches. log_end: the log's end offset; clean: the broker was shut down
        cleanly."""
        for offset, path in self.snapshots[self.passed :]:
            if offset <= log_end:
                self._check_snapshot(offset, path)
            elif clean:
                self.findings.add(
                    SNAPSHOT,
                    expected=f"snapshots up to the end of the log at {log_end}",
                    seen=f"{path}",
                    offset=offset,
                )
            else:
                self.findings.note(f"{path}: a snapshot above the end of the log at {log_end}")

    def _check_snapshot(self, offset: int, path: Place) -> None:
        """Compare the producer snapshot at `offset` with the log before it."""
        try:
            with opened(path) as source:
                for item in producer_entries(source):
                    if isinstance(item, ProducerEntry):
                        self._compare(item, offset, path)
                    else:
                        self.findings.flaw(SNAPSHOT, item, path)
                        return
        except OSError as error:
            self.findings.left_out(path, error.strerror or str(error))

    def _compare(self, entry: ProducerEntry, offset: int, path: Place) -> None:
        known = self.producers.get(entry.producer_id)
        wrong = ""
        if entry.last_offset >= offset:
            wrong = f"a last offset below {offset}"
        elif known is not None and entry.producer_epoch < known.epoch:
            wrong = f"epoch {known.epoch}, as the log has it below {offset}"
        elif (
            known is not None
            and known.batches
            and entry.producer_epoch == known.epoch
            and entry.last_offset >= 0
        ):
            delta = known.last_offset - known.batches[-1][2]
            same = (entry.last_offset, entry.last_sequence, entry.offset_delta) == (
                *(known.last_offset, known.last_sequence),
                delta,
            )
            gone = self.compacted and entry.last_offset > known.last_offset
            if not same and not gone:
                wrong = (
                    f"offset {known.last_offset}, sequence {known.last_sequence}, {delta} after the first of "
                    f"its batch, as in {known.batches[-1][3]} at byte {known.batches[-1][4]}"
                )
        if not wrong:
            wrong = self.transactions.contradicts(entry.producer_id, entry.current_first_offset)
        if wrong:
            self.findings.add(
                SNAPSHOT,
                expected=f"of producer {entry.producer_id} {wrong}",
                seen=f"epoch {entry.producer_epoch}, offset {entry.last_offset}, sequence "
                f"{entry.last_sequence}, {entry.offset_delta} after the first, a transaction open from "
                f"{entry.current_first_offset} (-1: none) in {path}",
                offset=offset,
            )
