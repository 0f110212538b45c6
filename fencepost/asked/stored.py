"""Groups and transactions as they are stored: the records of __consumer_offsets and __transaction_state.

Owns which records are kept, and which transaction each belongs to. Must not know what coordinators say. A
record in a transaction counts once its marker follows; without one it is not decided.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.asked.coordinators import assigned
from fencepost.asked.replica_reading import MOST_FETCHES, Extent, read
from fencepost.asked.step import NOBODY, Part, Scope, Step, put, seen
from fencepost.asked.survey import Survey
from fencepost.impl.coordinator import group_records as of_groups
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.transaction import transaction_records as of_transactions
from fencepost.traces.events import Question
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC

MOST_RECORDS = 20
"""Of one key, the latest ones: more than a group commits between two questions of a round."""
SPARE_OFFSETS = 500
"""Of a cluster in use only the last ones are read, in one answer: some 100 KiB."""
Key = of_groups.OffsetKey | of_groups.GroupKey | str


@define(eq=False)
class Kept:
    """A record that is kept."""

    offset: int
    value: Any
    # Of a record in a transaction, else -1.
    producer_id: int
    # Whether it counts; None while its transaction is not decided.
    committed: bool | None

    def row(self) -> list[Any]:
        """As in the detail of an event."""
        return [self.offset, self.value, self.producer_id, self.committed]


@define(eq=False)
class Shelf:
    """The records of one partition, by key."""

    key_of: Callable[[bytes | None], Key | None]
    value_of: Callable[[Key, bytes], Any]
    by_key: dict[Key, list[Kept]] = field(factory=dict)
    # Records of open transactions, by producer id.
    open: dict[int, list[Kept]] = field(factory=dict)

    def put(self, header: BatchHeader, records: tuple[Record, ...]) -> None:
        """Take a batch.

        Args:
            header: its header.
            records: its records.
        """
        for record in records:
            if header.is_control:
                if (end := end_transaction_of(record)) is not None:
                    for kept in self.open.pop(header.producer_id, ()):
                        kept.committed = end.commit
                continue
            key = self.key_of(record.key)
            if key is None:
                continue
            value = None if record.value is None else self.value_of(key, record.value)
            kept = Kept(record.offset, value, -1, committed=True)
            if header.is_transactional:
                kept.producer_id, kept.committed = header.producer_id, None
                self.open.setdefault(header.producer_id, []).append(kept)
            self.by_key.setdefault(key, []).append(kept)


def stored(scope: Scope, survey: Survey) -> Part:
    """The records of the run's groups and transactional ids; in a cluster in use only the last offsets of
    groups.

    Args:
        scope: of the round.
        survey: who leads.
    """
    for key, names in survey.coordinated().items():
        groups = key.topic == OFFSETS_TOPIC
        if scope.spare and not (groups and key in survey.high_watermarks):
            continue
        step = Step(
            broker=survey.leader(key),
            question=Question.OFFSET_RECORDS if groups else Question.TRANSACTION_RECORDS,
            request=None,
            key=key,
            leader=survey.leader(key),
        )
        if step.broker == NOBODY:
            yield from put(scope, step)
            continue
        start = survey.log_starts.get((key, step.broker), 0)
        if scope.spare:
            start = max(start, survey.high_watermarks[key] - SPARE_OFFSETS)
        most = 1 if scope.spare else MOST_FETCHES
        extent = yield from read(step, start, survey.partitions[key].leader_epoch, most)
        shelf = _groups(scope, names) if groups else _transactions(scope, names)
        for header, records in extent.batches:
            shelf.put(header, records)
        yield from _told(scope, step, extent, shelf)


def _told(scope: Scope, step: Step, extent: Extent, shelf: Shelf) -> Part:
    if extent.whole is None:
        return
    columns: dict[str, Any] = {
        "end_offset": extent.end_offset,
        "high_watermark": extent.high_watermark,
        "log_start_offset": extent.log_start_offset,
    }
    if extent.error and not extent.batches:
        yield seen(scope, step, extent.whole, error=extent.error)
        return
    for key, kept in sorted(shelf.by_key.items(), key=lambda item: str(item[0])):
        detail = {**_about(scope, key), "records": [one.row() for one in kept[-MOST_RECORDS:]]}
        if extent.cut:
            detail["cut"] = True
        yield seen(
            scope, step, extent.whole, error=extent.error, detail=detail, offset=kept[-1].offset, **columns
        )


def _about(scope: Scope, key: Key) -> dict[str, Any]:
    if isinstance(key, str):
        return {"transactional_id": key}
    of = scope.place(key.partition) if isinstance(key, of_groups.OffsetKey) else None
    return {"group": key.group, "of": of}


# ---- the two topics


def unread(data: bytes) -> dict[str, Any]:
    """In place of a value that is not known here: it is no tombstone. data: its bytes."""
    return {"version": int.from_bytes(data[:2], "big", signed=True), "bytes": len(data)}


def _groups(scope: Scope, names: list[str]) -> Shelf:
    def key_of(data: bytes | None) -> Key | None:
        key = of_groups.decode_key(data)
        meant = key is not None and key.group in names
        return key if meant and not (scope.spare and isinstance(key, of_groups.GroupKey)) else None

    def value_of(key: Key, data: bytes) -> Any:
        if isinstance(key, of_groups.OffsetKey):
            offset = of_groups.decode_offset(data)
            return unread(data) if offset is None else offset.offset
        group = of_groups.decode_group(data)
        if group is None:
            return unread(data)
        return {
            "generation": group.generation,
            "leader": group.leader,
            "protocol": group.protocol,
            "members": [[one.member_id, assigned(scope, one.assignment)] for one in group.members],
        }

    return Shelf(key_of, value_of)


def _transactions(scope: Scope, names: list[str]) -> Shelf:
    def key_of(data: bytes | None) -> Key | None:
        name = of_transactions.decode_key(data)
        return name if name in names else None

    def value_of(key: Key, data: bytes) -> Any:
        value = of_transactions.decode_value(data)
        if value is None:
            return unread(data)
        return {
            "state": value.phase.value,
            "producer_id": value.producer_id,
            "producer_epoch": value.producer_epoch,
            "started_ms": value.started_ms,
            "updated_ms": value.updated_ms,
            "timeout_ms": value.timeout_ms,
            "partitions": [scope.place(one) for one in value.partitions],
        }

    return Shelf(key_of, value_of)
