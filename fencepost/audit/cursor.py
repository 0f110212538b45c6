"""Where a comparison is in one replica: before a batch, or among the records of one.

Owns what counts as the same record, and from where on the replica is known. Must not know other replicas.
"""

from collections.abc import Iterator

from attrs import define

from fencepost.audit.audit_findings import Findings
from fencepost.audit.replica import Known, ReplicaWalk
from fencepost.impl.log.batch.header import NO_SEQUENCE, CorruptBatchError
from fencepost.impl.log.batch.record_batch import Header
from fencepost.impl.log.dump.segment_walk import SegmentBatch

FIELDS = ("leader epoch", "producer", "sequence", "kind", "time", "key", "value", "headers")


@define
class Held:
    """A record as one replica holds it."""

    offset: int
    # In the order of FIELDS.
    content: tuple[
        int, tuple[int, int], int, tuple[bool, bool], int, bytes | None, bytes | None, tuple[Header, ...]
    ]

    @property
    def epoch(self) -> int:
        """Its leader epoch."""
        return self.content[0]

    @property
    def key(self) -> bytes | None:
        """Its key."""
        return self.content[5]

    @property
    def is_tombstone(self) -> bool:
        """No value: the key is deleted."""
        return self.content[6] is None

    @property
    def is_control(self) -> bool:
        """Whether it is a marker, not a client's record."""
        return self.content[3][1]


def held_records(batch: SegmentBatch) -> list[Held]:
    """The records of a batch, with the fields of its header. Raises CorruptBatchError."""
    header = batch.header
    producer = header.producer_id, header.producer_epoch
    kind = header.is_transactional, header.is_control
    found = []
    for record in batch.records():
        sequence = NO_SEQUENCE
        if header.base_sequence != NO_SEQUENCE:
            sequence = (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF
        content = (
            header.leader_epoch,
            producer,
            sequence,
            kind,
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
        )
        found.append(Held(record.offset, content))
    return found


@define(eq=False)
class Cursor:
    """The position of the comparison in one replica."""

    replica: ReplicaWalk
    # The batches that follow.
    stream: Iterator[Known]
    findings: Findings
    # The present batch; None at the end.
    batch: SegmentBatch | None = None
    # Its records once it was decoded, and the index of the present one.
    records: list[Held] | None = None
    index: int = 0
    # From this offset to the next record the log is known to be empty; below it nothing is known.
    known_from: int = 0

    @property
    def offset(self) -> int:
        """Offset of the next record or batch."""
        assert self.batch is not None, "a replica at its end"
        return self.batch.header.base_offset if self.records is None else self.records[self.index].offset

    def advance(self) -> None:
        """Go to the next batch."""
        known = next(self.stream, None)
        if known is None:
            self.batch = None
        else:
            self.batch, known_from = known
            if known_from > self.known_from:
                self.known_from = known_from
        self.records, self.index = None, 0

    def decode(self) -> None:
        """Go from the batch to its records; to the next batch if it has none, or none that can be read."""
        assert self.batch is not None, "a replica at its end"
        try:
            self.records = held_records(self.batch)
        except CorruptBatchError as error:
            header = self.batch.header
            self.findings.add(
                "corrupt_batch",
                expected=error.expected,
                seen=f"{error.seen} in {self.batch.where}",
                offset=header.base_offset,
            )
            self.known_from = header.next_offset
            self.advance()
            return
        if not self.records:
            self.advance()

    def step(self) -> None:
        """Past the current record."""
        assert self.records is not None, "a batch that was not decoded"
        self.index += 1
        if self.index == len(self.records):
            self.advance()

    @property
    def record(self) -> Held:
        """The current one."""
        assert self.records is not None, "a batch that was not decoded"
        return self.records[self.index]

    @property
    def where(self) -> str:
        """The current batch."""
        assert self.batch is not None, "a replica at its end"
        return f"{self.batch.where} ({self.replica.name})"
