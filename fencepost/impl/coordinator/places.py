"""Becoming and ceasing to be a coordinator: what the log of a partition of a topic holds is loaded, and
forgotten.

Owns the order of loads and unloads. Must not know what the records say. A broker coordinates what belongs to
a partition from the moment in which all that its log held at the election is read *and* below the high
watermark: what an earlier election could still take back was never shown. Learning of a leader epoch and
acting on it are two steps, as they are in Kafka, where a scheduler runs between them:

1. leader epoch 4, mine: a load waits
2. leader epoch 5, another's: an unload waits
3. the unload runs
4. the load comes late: it must do nothing.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from attrs import define

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import SetTimer
from fencepost.impl.log.batch.header import BatchHeader, read_headers
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition

NOT_OWNED = -1


@define
class Load:
    """A load under way."""

    # Number of its task.
    order: int
    epoch: int
    # The next offset to read, and the end of the load.
    next_offset: int
    end_offset: int
    # Whether all is read.
    read: bool = False


@define
class Place:
    """One partition of the coordinator's topic."""

    number: int
    # (leads, leader epoch) that was acted upon last.
    seen: tuple[bool, int] = (False, -1)
    # Order of the task that ran last.
    latest: int = -1
    # The coordinator epoch, NOT_OWNED while this broker does not coordinate what belongs there.
    owned_epoch: int = NOT_OWNED
    load: Any = None


@define(frozen=True, kw_only=True)
class Pace:
    """How loads go."""

    # Read at once.
    buffer_bytes: int
    # How long each step takes.
    step_ms: int
    # How long an unload waits for its turn.
    unload_ms: int


class PlaceTable(Protocol):
    """What a coordinator knows of its partitions."""

    broker_context: BrokerContext
    partitions: dict[TopicPartition, Partition]

    def place(self, number: int) -> Place:
        """What is known of one of them."""
        ...


class PlaceLoading:
    """What loads of groups and of transactions have in common."""

    TOPIC: ClassVar[str]
    LOAD_TIMER: ClassVar[str]
    UNLOAD_TIMER: ClassVar[str]
    table: Any

    # ---- what a subclass knows

    @property
    @abstractmethod
    def pace(self) -> Pace:
        """The options."""

    @abstractmethod
    def new_load(self, order: int, start: int, end: int) -> Load:
        """An empty load. start, end: offsets to read from and to."""

    @abstractmethod
    def apply_batch(self, load: Any, data: bytes, header: BatchHeader) -> None:
        """Take in the records of one batch.

        Args:
            load: what was read so far.
            data: the bytes that hold the batch.
            header: of the batch.
        """

    @abstractmethod
    def holds_anything(self, place: Place) -> bool:
        """Whether something of an earlier epoch is still in memory."""

    @abstractmethod
    def forget(self, place: Place) -> None:
        """Unload what belongs to the place, and give up its epoch."""

    @abstractmethod
    def take_over(self, place: Place, load: Any) -> None:
        """All is read and below the high watermark: serve it.

        Args:
            place: the partition.
            load: all that was read.
        """

    # ---- roles

    def moved(self, partition: Partition) -> None:
        """The role of a replica of such a partition, or its high watermark, may have changed."""
        place = self.table.place(partition.key.partition)
        role = (partition.is_leader, partition.leader_epoch)
        if role != place.seen:
            led, place.seen = place.seen[0], role
            if partition.is_leader:
                self._later(self.LOAD_TIMER, place, self.pace.step_ms)
            elif led or place.owned_epoch != NOT_OWNED:
                self._later(self.UNLOAD_TIMER, place, self.pace.unload_ms)
        if place.load is not None and place.load.read:
            self._finish(place, place.load, partition)

    def _later(self, kind: str, place: Place, delay_ms: int) -> None:
        leads, epoch = place.seen
        order = 2 * epoch + (not leads)
        at = self.table.broker_context.now + delay_ms * MILLISECOND
        self.table.broker_context.outbox.append(SetTimer((kind, place.number, order), at))

    def coordinator_epoch_order(self, place: Place, order: int) -> bool:
        """Protection KAFKA-10614: a load or an unload does nothing once one of a later leader epoch has run.

        Args:
            place: the partition.
            order: of the task: twice the leader epoch, one more for an unload.

        Returns:
            Whether the task may run.
        """
        return order > place.latest

    def on_task(self, kind: str, number: int, order: int) -> None:
        """A load (its first step, or a later one) or an unload has its turn.

        Args:
            kind: which of them.
            number: of the partition.
            order: of the task: twice the leader epoch, one more for an unload.
        """
        place = self.table.place(number)
        if kind == self.LOAD_TIMER and place.load is not None and place.load.order == order:
            self._read(place, place.load)
        elif self.coordinator_epoch_order(place, order):
            place.latest = order
            if kind == self.LOAD_TIMER:
                self._begin(place, order)
            else:
                self.forget(place)

    # ---- loading

    def _partition(self, place: Place) -> Partition | None:
        found: Partition | None = self.table.partitions.get(TopicPartition(self.TOPIC, place.number))
        return found

    def _begin(self, place: Place, order: int) -> None:
        partition = self._partition(place)
        if partition is None:
            return
        if self.holds_anything(place):
            self.forget(place)
        place.load = self.new_load(order, partition.log.log_start_offset, partition.log.log_end_offset)
        self._read(place, place.load)

    def _read(self, place: Place, load: Any) -> None:
        """One step: read what fits into the buffer."""
        partition = self._partition(place)
        if partition is None or load.read:
            return
        data = b""
        if load.next_offset < load.end_offset:
            data = partition.log.read(
                load.next_offset, max_bytes=self.pace.buffer_bytes, end_offset=load.end_offset
            )
        headers = list(read_headers(data))
        self.apply_whole_load(load, data, headers)
        if headers:
            load.next_offset = headers[-1].next_offset
        if self.stop_on_empty_read(load, headers):
            load.read = True
            self._finish(place, load, partition)
            return
        at = self.table.broker_context.now + self.pace.step_ms * MILLISECOND
        self.table.broker_context.outbox.append(SetTimer((self.LOAD_TIMER, place.number, load.order), at))

    def stop_on_empty_read(self, load: Load, headers: Sequence[BatchHeader]) -> bool:
        """Protection KAFKA-9065: compaction may have removed the last records below the end, so that there is
        nothing more to read although the end is not reached.

        Args:
            load: what was read so far.
            headers: of the batches that were read last.

        Returns:
            Whether the load is done.
        """
        return not headers or load.next_offset >= load.end_offset

    def apply_whole_load(self, load: Any, data: bytes, headers: Sequence[BatchHeader]) -> None:
        """Protection KAFKA-5600: every batch of what was read counts.

        Args:
            load: what was read so far.
            data: what was read last.
            headers: of its batches.
        """
        for header in headers:
            self.apply_batch(load, data, header)

    def _finish(self, place: Place, load: Any, partition: Partition) -> None:
        """All is read: it is served once it is below the high watermark, too."""
        if partition.high_watermark < load.end_offset:
            return
        place.load, place.owned_epoch = None, load.epoch
        self.take_over(place, load)
