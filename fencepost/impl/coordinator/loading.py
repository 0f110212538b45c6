"""Starting and ending the coordination of an offsets partition: groups are loaded from its log, and removed
(P4).

Owns the order of loads and unloads. Must not know members' requests. A broker begins to coordinate the groups
of a partition when all records that its log had at the election are read *and* are below the high watermark.
So a record that a later election could remove is never visible. Receiving a leader epoch and acting on it are
two steps, as in Kafka, which has a scheduler in between:

1. leader epoch 4, this broker leads: a load waits
2. leader epoch 5, another broker leads: an unload waits
3. the unload runs
4. the load runs late: it must do nothing.
"""

from collections.abc import Callable, Sequence

from attrs import define, field

from fencepost.impl.coordinator.group import Group, StoredOffset, group_of
from fencepost.impl.coordinator.records import (
    OFFSETS_TOPIC,
    GroupKey,
    GroupValue,
    OffsetValue,
    decode_group,
    decode_key,
    decode_offset,
)
from fencepost.impl.coordinator.table import NOT_OWNED, GroupTable, Load, Place
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import SetTimer
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, read_headers
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name

LOAD_TIMER, UNLOAD_TIMER = "group_load", "group_unload"


@define
class GroupLoading:
    """The loads and unloads of one broker. on_loaded: called with each loaded group; on_unload: called with
    each group before it is removed."""

    table: GroupTable
    on_loaded: list[Callable[[Group], None]] = field(factory=list)
    on_unload: list[Callable[[Group], None]] = field(factory=list)

    # ---- roles

    def moved(self, partition: Partition) -> None:
        """The role of a replica of an offsets partition, or its high watermark, may have changed."""
        place = self.table.place(partition.key.partition)
        role = (partition.is_leader, partition.leader_epoch)
        if role != place.seen:
            led, place.seen = place.seen[0], role
            if partition.is_leader:
                self._later(LOAD_TIMER, place, self.table.broker_context.options.groups.load_step_ms)
            elif led or place.owned_epoch != NOT_OWNED:
                self._later(UNLOAD_TIMER, place, self.table.broker_context.options.groups.unload_ms)
        if place.load is not None and place.load.read:
            self._finish(place, place.load, partition)

    def _later(self, kind: str, place: Place, delay_ms: int) -> None:
        leads, epoch = place.seen
        order = 2 * epoch + (not leads)
        at = self.table.broker_context.now + delay_ms * MILLISECOND
        self.table.broker_context.outbox.append(SetTimer((kind, place.number, order), at))

    def coordinator_epoch_order(self, place: Place, order: int) -> bool:
        """Protection KAFKA-10614: a load or unload does nothing once one of a later leader epoch has run.

        Args:
            place: the offsets partition.
            order: the order of the task.

        Returns:
            whether to run it.
        """
        return order > place.latest

    def on_task(self, kind: str, number: int, order: int) -> None:
        """Run a load (its first or a later step) or an unload.

        Args:
            kind: load or unload.
            number: the number of the offsets partition.
            order: the order of the task.
        """
        place = self.table.place(number)
        if kind == LOAD_TIMER and place.load is not None and place.load.order == order:
            self._read(place, place.load)
        elif self.coordinator_epoch_order(place, order):
            place.latest = order
            if kind == LOAD_TIMER:
                self._begin(place, order)
            else:
                self._unload(place)

    def _unload(self, place: Place) -> None:
        for group in self.table.of_place(place.number):
            for told in self.on_unload:
                told(group)
            del self.table.groups[group.group_id]
        epoch, place.owned_epoch, place.load = place.owned_epoch, NOT_OWNED, None
        self._tell(Name.GROUPS_UNLOADED, place, epoch)

    # ---- loading

    def _begin(self, place: Place, order: int) -> None:
        partition = self.table.partitions.get(TopicPartition(OFFSETS_TOPIC, place.number))
        if partition is None:
            return
        if self.table.of_place(place.number):
            self._unload(place)
        log = partition.log
        place.load = Load(order, order // 2, log.log_start_offset, log.log_end_offset)
        self._read(place, place.load)

    def _read(self, place: Place, load: Load) -> None:
        """One step: read as much as fits into the buffer."""
        partition = self.table.partitions.get(TopicPartition(OFFSETS_TOPIC, place.number))
        if partition is None or load.read:
            return
        options = self.table.broker_context.options.groups
        data = b""
        if load.next_offset < load.end_offset:
            data = partition.log.read(
                load.next_offset, max_bytes=options.offsets_load_buffer_bytes, end_offset=load.end_offset
            )
        headers = list(read_headers(data))
        self.apply_whole_load(load, data, headers)
        if headers:
            load.next_offset = headers[-1].next_offset
        if self.stop_on_empty_read(load, headers):
            load.read = True
            self._finish(place, load, partition)
            return
        at = self.table.broker_context.now + options.load_step_ms * MILLISECOND
        self.table.broker_context.outbox.append(SetTimer((LOAD_TIMER, place.number, load.order), at))

    def stop_on_empty_read(self, load: Load, headers: Sequence[BatchHeader]) -> bool:
        """Protection KAFKA-9065: compaction may have removed the last records below the end. Then there is
        nothing more to read although the end is not reached.

        Args:
            load: the load.
            headers: the headers of the batches that were read.

        Returns:
            whether the load is complete.
        """
        return not headers or load.next_offset >= load.end_offset

    def apply_whole_load(self, load: Load, data: bytes, headers: Sequence[BatchHeader]) -> None:
        """Protection KAFKA-5600: apply every batch that was read, not only the first.

        Args:
            load: the load.
            data: the batches.
            headers: their headers.
        """
        for header in headers:
            self.apply_batch(load, data, header)

    def apply_batch(self, load: Load, data: bytes, header: BatchHeader) -> None:
        """Apply the records of one batch in the order of the log; a tombstone deletes. A batch that cannot be
        decoded is skipped.

        Args:
            load: the load.
            data: the buffer.
            header: the header of the batch.
        """
        try:
            records = () if header.is_control else read_records(data, header)
        except CorruptBatchError:
            records = ()
        for record in records:
            key = decode_key(record.key)
            if isinstance(key, GroupKey):
                group = None if record.value is None else decode_group(record.value)
                load.groups.pop(key.group, None)
                load.removed[key.group] = None
                if group is not None:
                    load.groups[key.group] = group
                    del load.removed[key.group]
            elif key is not None:
                place = (key.group, key.partition)
                offset = None if record.value is None else decode_offset(record.value)
                load.offsets.pop(place, None)
                if offset is not None:
                    load.offsets[place] = StoredOffset(offset, record.offset)

    def _finish(self, place: Place, load: Load, partition: Partition) -> None:
        """Everything is read: serve the groups once the records are below the high watermark, too."""
        if partition.high_watermark < load.end_offset:
            return
        place.load, place.owned_epoch = None, load.epoch
        for group_id, value in load.groups.items():
            assert isinstance(value, GroupValue)
            group = self.table.groups[group_id] = group_of(group_id, place.number, value)
            # members about to join at the previous coordinator have the whole retention time here
            group.since_ms = self.table.now_ms
        for (group_id, key), stored in load.offsets.items():
            assert isinstance(stored, StoredOffset) and isinstance(stored.value, OffsetValue)
            known = self.table.groups.get(group_id) or self.table.create(group_id)
            known.offsets[key] = stored
        self._tell(Name.GROUPS_LOADED, place, load.epoch, load.end_offset)
        for group_id in load.removed:
            self._tell(Name.GROUP_REMOVED, place, load.epoch, detail=group_id)
        for group in self.table.of_place(place.number):
            self.table.tell(group, "loaded")
            for told in self.on_loaded:
                told(group)

    def _tell(self, name: Name, place: Place, epoch: int, offset: int = -1, detail: str = "") -> None:
        key = TopicPartition(OFFSETS_TOPIC, place.number)
        self.table.broker_context.record(name, key, leader_epoch=epoch, offset=offset, detail=detail)
