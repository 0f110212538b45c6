"""Bugs of writing: in which order a log changes, and what it makes of errors on the way."""

from types import TracebackType

from fencepost.impl.log.batch.header import CorruptBatchError, Damage, read_headers
from fencepost.impl.log.batch.record_batch import BatchHeader
from fencepost.impl.log.producer.producer_state import OutOfOrderSequenceError
from fencepost.impl.log.producer.snapshot_files import write_snapshot
from fencepost.impl.log.readable_log import InService
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog


class EndMovesLast(SegmentedLog):
    """KAFKA-7866: an error after the write (then: of the transaction index) leaves the end where it was and
    the log in service, so that the next append takes the same offsets again."""

    def _append(self, data: bytes, headers: list[BatchHeader]) -> None:
        end = self.log_end_offset
        try:
            super()._append(data, headers)
        except LogOfflineError:
            if self.log_end_offset > end:
                self.log_end_offset, self.offline = end, ""
            raise


class StartsWithWholeBatches(SegmentedLog):
    """KAFKA-6975: a new replica whose leader's log starts inside a batch refuses the batch, for ever."""

    def log_start_inside_batch(self, header: BatchHeader) -> bool:
        """Never."""
        return False


class ChecksItsLeader(SegmentedLog):
    """KAFKA-6003: a follower that knows nothing of a producer refuses a batch of it whose sequence is not 0;
    its leader remembers more."""

    def trust_the_leader(self, headers: list[BatchHeader]) -> None:
        """Check as a leader would."""
        seen = set(self.producers.producers)
        for header in headers:
            if header.producer_id >= 0 and header.producer_id not in seen and header.base_sequence > 0:
                raise OutOfOrderSequenceError(
                    expected="sequence 0", seen=str(header.base_sequence), where=f"append to {self.directory}"
                )
            seen.add(header.producer_id)


class RefusesLargeCopies(SegmentedLog):
    """R1-COPIES: a follower obeys max.message.bytes, and refuses what its leader took before the limit came
    down, for ever."""

    def append_as_follower(self, data: bytes) -> list[BatchHeader]:
        """Look at the size first."""
        for header in read_headers(data):
            if header.size > self.options.max_message_bytes:
                raise CorruptBatchError(
                    Damage.HEADER,
                    0,
                    expected=f"at most {self.options.max_message_bytes} bytes",
                    seen=f"{header.size}",
                )
        return super().append_as_follower(data)


class ProducersFirst(SegmentedLog):
    """KAFKA-6683: producers learn of a batch before it is written; if the write fails, its retry is taken for
    a duplicate, or its successor for one with a gap."""

    def _append(self, data: bytes, headers: list[BatchHeader]) -> None:
        SegmentedLog.update_producers(self, data, headers)
        super()._append(data, headers)

    def update_producers(self, data: bytes, headers: list[BatchHeader]) -> None:
        """Done before."""


class SnapshotOfAnotherOffset(SegmentedLog):
    """KAFKA-5249: the snapshot of a segment's end is named by the segment's beginning, so that a log cut to
    there knows of batches to come."""

    def take_snapshot(self) -> None:
        """Named too low."""
        write_snapshot(self.files, self.directory, self.segments.active.base_offset, self.producers)


class NamesNoSegment(SegmentedLog):
    """KAFKA-3968: a new segment has a name that nobody asked the disk to sync."""

    def begin_segment(self, offset: int) -> Segment:
        """Without a sync of the directory."""
        made = Segment.open(self.files, self.directory, offset, self.options)
        made.start_empty()
        return made


class FlushesNothing(SegmentedLog):
    """The recovery point moves without a sync."""

    def flush(self) -> None:
        """Only claim it."""
        with self.in_service("flush"):
            self.recovery_point = self.log_end_offset


class ForgetsErrors(InService):
    """A piece of work whose failure is answered, and leaves the log in service."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Answer the error."""
        if isinstance(error, OSError):
            raise LogOfflineError(expected="a log", seen=str(error), where=self.what) from error


class GoesOnAfterErrors(SegmentedLog):
    """After an error of the disk the log goes on as if nothing had been written."""

    def in_service(self, what: str) -> InService:
        """Whatever has failed before."""
        return ForgetsErrors(self, what)
