"""Groups are loaded from the log of their offsets partition, and forgotten (P4).

Owns what its records say together. Must not know what members ask, nor when a load begins
(coordinated_partitions.py).
"""

from collections.abc import Callable
from typing import ClassVar

from attrs import define, field

from fencepost.impl.coordinator.consumer_group import Group, StoredOffset, group_of
from fencepost.impl.coordinator.coordinated_partitions import Load, PlaceLoading
from fencepost.impl.coordinator.group_records import (
    GroupKey,
    GroupValue,
    OffsetValue,
    decode_group,
    decode_key,
    decode_offset,
)
from fencepost.impl.coordinator.group_table import GroupLoad, GroupTable, Place
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import Record
from fencepost.traces.events import Name

LOAD_TIMER, UNLOAD_TIMER = "group_load", "group_unload"


@define
class GroupLoading(PlaceLoading):
    """on_loaded: takes each loaded group; on_unload: each that goes, while it is still there."""

    LOAD_TIMER: ClassVar[str] = LOAD_TIMER
    UNLOAD_TIMER: ClassVar[str] = UNLOAD_TIMER
    LOADED: ClassVar[Name] = Name.GROUPS_LOADED
    UNLOADED: ClassVar[Name] = Name.GROUPS_UNLOADED
    LOAD: ClassVar[type[Load]] = GroupLoad
    table: GroupTable
    on_loaded: list[Callable[[Group], None]] = field(factory=list)
    on_unload: list[Callable[[Group], None]] = field(factory=list)

    @property
    def buffer_bytes(self) -> int:
        """offsets.load.buffer.size."""
        return self.table.options.offsets_load_buffer_bytes

    def unload(self, place: Place) -> None:
        """Drop the groups."""
        for group in self.table.of_place(place.number):
            for callback in self.on_unload:
                callback(group)
            del self.table.groups[group.group_id]

    def apply_records(self, load: GroupLoad, header: BatchHeader, records: tuple[Record, ...]) -> None:
        """As in the base; a tombstone removes offsets of open transactions too."""
        if header.is_control:
            self._ended(load, header.producer_id, records)
            return
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
                stored = None if offset is None else StoredOffset(offset, record.offset)
                if header.is_transactional and stored is not None:
                    load.open.setdefault(header.producer_id, {})[place] = stored
                    continue
                load.offsets.pop(place, None)
                if stored is not None:
                    load.offsets[place] = stored
                elif record.value is None:
                    for waiting in load.open.values():
                        waiting.pop(place, None)

    def _ended(self, load: GroupLoad, producer_id: int, records: tuple[Record, ...]) -> None:
        """A marker: the offsets of the transaction count, unless later ones do, or never were."""
        offsets = load.open.pop(producer_id, {})
        marker = end_transaction_of(records[0]) if records else None
        if marker is None or not marker.commit:
            return
        for place, stored in offsets.items():
            known = load.offsets.get(place)
            assert isinstance(stored, StoredOffset)
            if not isinstance(known, StoredOffset) or known.stands_at < stored.stands_at:
                load.offsets[place] = stored

    def serve(self, place: Place, load: GroupLoad) -> None:
        """The groups with their offsets."""
        for group_id, value in load.groups.items():
            assert isinstance(value, GroupValue)
            group = self.table.groups[group_id] = group_of(group_id, place.number, value)
            # members about to join at the previous coordinator have the whole retention time here
            group.since_ms = self.table.now_ms
        for (group_id, key), stored in load.offsets.items():
            assert isinstance(stored, StoredOffset) and isinstance(stored.value, OffsetValue)
            known = self.group_of_offsets(group_id)
            if known is not None:
                known.offsets[key] = stored
        for producer_id, offsets in load.open.items():
            for (group_id, key), stored in offsets.items():
                assert isinstance(stored, StoredOffset)
                known = self.table.groups.get(group_id) or self.table.create(group_id)
                known.open.setdefault(producer_id, {})[key] = stored

    def group_of_offsets(self, group_id: str) -> Group | None:
        """Protection P5-LOADED: consumers that are no members have committed in a group of which the log has
        no other record."""
        return self.table.groups.get(group_id) or self.table.create(group_id)

    def served(self, place: Place, load: GroupLoad) -> None:
        """Each group is reported."""
        for group_id in load.removed:
            self.record(Name.GROUP_REMOVED, place, load.epoch, detail=group_id)
        for group in self.table.of_place(place.number):
            self.table.tell(group, "loaded")
            for callback in self.on_loaded:
                callback(group)
