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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from attrs import define, field

from fencepost.impl.coordinator.group_records import partition_of
from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import SetTimer
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, read_headers
from fencepost.impl.log.batch.record_batch import Record, read_records
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

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


class Held(Protocol):
    """What is coordinated: a group, or a transactional id."""

    # Of the partition to which it belongs.
    number: int


One = TypeVar("One", bound=Held)


class Options(Protocol):
    """How loads go."""

    # How long each step takes.
    @property
    def load_step_ms(self) -> int: ...

    # How long an unload waits for its turn.
    @property
    def unload_ms(self) -> int: ...


@define
class PlaceTable(Generic[One]):
    """What a broker coordinates by one topic."""

    TOPIC: ClassVar[str]
    broker_context: BrokerContext
    partitions: dict[TopicPartition, Partition]
    # By name; those of partitions that this broker coordinates, or has not unloaded yet.
    held: dict[str, One] = field(factory=dict)
    # By number of the partition.
    places: dict[int, Place] = field(factory=dict)

    # ---- what a subclass knows

    @property
    @abstractmethod
    def options(self) -> Options:
        """Of the cluster."""

    @property
    @abstractmethod
    def planned_count(self) -> int:
        """How many partitions the topic has if a broker creates it; 0 if none may."""

    # ----

    @property
    def now_ms(self) -> int:
        """Host time in milliseconds."""
        return self.broker_context.now // MILLISECOND

    @property
    def count(self) -> int:
        """The number of partitions of the topic; 0 if it does not exist."""
        topics = self.broker_context.options.topics
        named = (topic.partitions for topic in topics if topic.name == self.TOPIC)
        return next(named, self.planned_count)

    def number_of(self, name: str) -> int:
        """The partition of a name."""
        return partition_of(name, max(1, self.count))

    def key(self, number: int) -> TopicPartition:
        """A partition of the topic."""
        return TopicPartition(self.TOPIC, number)

    def place(self, number: int) -> Place:
        """What is known of a partition."""
        return self.places.setdefault(number, Place(number))

    def epoch_of(self, one: One) -> int:
        """The epoch in which this broker coordinates it."""
        return self.place(one.number).owned_epoch

    def of_place(self, number: int) -> list[One]:
        """What belongs to one partition, by name."""
        return [one for _, one in sorted(self.held.items()) if one.number == number]

    def not_coordinator(self, number: int) -> ErrorCode:
        """A broker answers only while it leads the partition, and in the epoch in which it loaded it.

        Args:
            number: of the partition.

        Returns:
            The error for a client that asks; NO_ERROR if this broker coordinates what belongs there.
        """
        partition = self.partitions.get(self.key(number))
        if not self.count or partition is None or not partition.is_leader:
            return ErrorCode.NOT_COORDINATOR
        if self.place(number).owned_epoch != partition.leader_epoch:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return NO_ERROR

    def record(self, name: Name, one: One, cause: str, detail: dict[str, Any]) -> None:
        """Record an event about one that is coordinated.

        Args:
            name: of the event.
            one: the group or transaction.
            cause: its state.
            detail: what else is known of it.
        """
        self.broker_context.record(
            name,
            self.key(one.number),
            leader_epoch=self.epoch_of(one),
            cause=cause,
            detail=msgspec.json.encode(detail).decode(),
        )


class PlaceLoading:
    """What loads of groups and of transactions have in common."""

    LOAD_TIMER: ClassVar[str]
    UNLOAD_TIMER: ClassVar[str]
    # The events of a load and of an unload.
    LOADED: ClassVar[Name]
    UNLOADED: ClassVar[Name]
    # A load that has read nothing.
    LOAD: ClassVar[type[Load]]
    table: PlaceTable[Any]

    # ---- what a subclass knows

    @property
    @abstractmethod
    def buffer_bytes(self) -> int:
        """How much is read at once."""

    @abstractmethod
    def apply_records(self, load: Any, header: BatchHeader, records: tuple[Record, ...]) -> None:
        """Take in the records of one batch, in the order of the log; a tombstone removes.

        Args:
            load: what was read so far.
            header: of the batch.
            records: its records.
        """

    @abstractmethod
    def unload(self, place: Place) -> None:
        """Drop what belongs to the place. place: the partition."""

    @abstractmethod
    def serve(self, place: Place, load: Any) -> None:
        """All is read and below the high watermark: this broker coordinates it now.

        Args:
            place: the partition.
            load: all that was read.
        """

    @abstractmethod
    def served(self, place: Place, load: Any) -> None:
        """What follows once the event of the load is recorded.

        Args:
            place: the partition.
            load: all that was read.
        """

    @property
    def timers(self) -> dict[str | int, Callable[..., None]]:
        """The handlers of the tasks that wait for their turn."""
        return {kind: partial(self.on_task, kind) for kind in (self.LOAD_TIMER, self.UNLOAD_TIMER)}

    # ---- roles

    def moved(self, partition: Partition) -> None:
        """The role of a replica of such a partition, or its high watermark, may have changed."""
        place = self.table.place(partition.key.partition)
        role = (partition.is_leader, partition.leader_epoch)
        if role != place.seen:
            led, place.seen = place.seen[0], role
            if partition.is_leader:
                self._later(self.LOAD_TIMER, place, self.table.options.load_step_ms)
            elif led or place.owned_epoch != NOT_OWNED:
                self._later(self.UNLOAD_TIMER, place, self.table.options.unload_ms)
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
        found: Partition | None = self.table.partitions.get(self.table.key(place.number))
        return found

    def _begin(self, place: Place, order: int) -> None:
        partition = self._partition(place)
        if partition is None:
            return
        if self.table.of_place(place.number):
            self.forget(place)
        log = partition.log
        place.load = self.LOAD(order, order // 2, log.log_start_offset, log.log_end_offset)
        self._read(place, place.load)

    def _read(self, place: Place, load: Any) -> None:
        """One step: read what fits into the buffer."""
        partition = self._partition(place)
        if partition is None or load.read:
            return
        data = b""
        if load.next_offset < load.end_offset:
            data = partition.log.read(
                load.next_offset, max_bytes=self.buffer_bytes, end_offset=load.end_offset
            )
        headers = list(read_headers(data))
        self.apply_whole_load(load, data, headers)
        if headers:
            load.next_offset = headers[-1].next_offset
        if self.stop_on_empty_read(load, headers):
            load.read = True
            self._finish(place, load, partition)
            return
        at = self.table.broker_context.now + self.table.options.load_step_ms * MILLISECOND
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
        self.serve(place, load)
        self.record(self.LOADED, place, load.epoch, load.end_offset)
        self.served(place, load)

    def apply_batch(self, load: Any, data: bytes, header: BatchHeader) -> None:
        """Take in one batch. One that cannot be decoded changes nothing.

        Args:
            load: what was read so far.
            data: the bytes that hold the batch.
            header: of the batch.
        """
        try:
            records = read_records(data, header)
        except CorruptBatchError:
            return
        self.apply_records(load, header, records)

    def forget(self, place: Place) -> None:
        """Unload what belongs to the place, and give up its epoch. place: the partition."""
        self.unload(place)
        epoch, place.owned_epoch, place.load = place.owned_epoch, NOT_OWNED, None
        self.record(self.UNLOADED, place, epoch)

    def record(self, name: Name, place: Place, epoch: int, offset: int = -1, detail: str = "") -> None:
        """Record an event about a partition.

        Args:
            name: of the event.
            place: the partition.
            epoch: of the coordinator.
            offset: the end of a load.
            detail: whom it is about.
        """
        key = self.table.key(place.number)
        self.table.broker_context.record(name, key, leader_epoch=epoch, offset=offset, detail=detail)
