"""What the controllers of a KRaft cluster decided, as events: from the log `__cluster_metadata`.

Owns what the records mean together. Must not know files beyond that log's folder, or judges. The log has
every decision in its order, with the time of its batch, so that nothing is missed between two looks.

The leader epoch of a partition is in no change record: it rises by one with each record that names a leader
(KIP-631, PartitionRegistration.merge), and the partition epoch with every record. In the words of events, the
epoch of the log's own leader is the controller epoch, and the partition epoch is the `zk_version`.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, evolve, field

from fencepost.impl.log.batch.control_records import ControlType, control_type
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.log.dump.dump import BatchSeen, Extent, walk_log
from fencepost.impl.log.metadata_records import TOPIC, decode_metadata
from fencepost.systems.apache_kafka.inside.live_files import ReadOnly
from fencepost.systems.apache_kafka.inside.partition_changes import (
    ELIGIBLE,
    LAST_KNOWN,
    MILLISECOND,
    NOBODY,
    UNCLEAN,
    event_of,
    reassigned,
)
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event, Name

MOST_BYTES = 256 * 1024 * 1024
"""Of one segment. Kafka rolls at 1 GiB by default; a cluster of tests writes 100 kB a minute at most."""
UNCHANGED = -2
"""The leader in a change record that names none."""
RECOVERING = 1
"""LeaderRecoveryState after an unclean election (KIP-704)."""
TOPIC_CONFIG = 2
_LEADER = struct.Struct(">hi")


@define
class Partition:
    """As the controllers have it now."""

    leader: int = NOBODY
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()
    recovering: bool = False

    @property
    def target(self) -> tuple[int, ...]:
        """Of a reassignment; none under way: ()."""
        moving = self.removing or self.adding
        return tuple(each for each in self.replicas if each not in self.removing) if moving else ()


@define
class MetadataFold:
    """Records in, events out. Times are wall-clock nanoseconds."""

    controller: int = NOBODY
    # Of the last leader of the quorum.
    controller_epoch: int = -1
    # Of the batch of the record in hand: that of its writer, who may be deposed.
    writer_epoch: int = -1
    # Name by id; deleted ones stay, so that late records have a name.
    topics: dict[str, str] = field(factory=dict)
    # By topic id and number.
    partitions: dict[tuple[str, int], Partition] = field(factory=dict)
    # Broker epoch of each that is registered.
    brokers: dict[int, int] = field(factory=dict)
    fenced: dict[int, bool] = field(factory=dict)
    # Overrides by topic name.
    configs: dict[str, dict[str, str]] = field(factory=dict)
    # Records of types that this version does not know.
    unreadable: int = 0
    # Events of a metadata transaction that has not ended (KIP-868).
    _pending: list[Event] | None = None

    def take(self, record: Record, epoch: int, *, control: bool) -> Iterator[Event]:
        """The events of one record. epoch: of its batch."""
        time, self.writer_epoch = record.timestamp_ms * MILLISECOND, epoch
        if control:
            yield from self._control(record, epoch, time)
            return
        found = decode_metadata(record.value)
        if found is None or found.wrong:
            self.unreadable += 1
            return
        handler = _HANDLERS.get(found.name)
        events = list(handler(self, found.fields, time)) if handler is not None else []
        if found.name == "BeginTransactionRecord":
            self._pending = []
        elif found.name == "AbortTransactionRecord":
            self._pending = None
        elif found.name == "EndTransactionRecord":
            events, self._pending = self._pending or [], None
        elif self._pending is not None:
            self._pending += events
            return
        yield from events

    def _control(self, record: Record, epoch: int, time: int) -> Iterator[Event]:
        if control_type(record) is not ControlType.LEADER_CHANGE or record.value is None:
            return
        _, self.controller = _LEADER.unpack_from(record.value)
        self.controller_epoch = epoch
        yield Event(
            time=time,
            name=Name.CONTROLLER_EPOCH,
            node=self.controller,
            controller_epoch=self.controller_epoch,
        )
        yield Event(
            time=time,
            name=Name.CONTROLLER_ZNODE,
            node=self.controller,
            leader=self.controller,
            controller_epoch=self.controller_epoch,
        )

    # ---- brokers

    def _registered(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        broker = fields["broker_id"]
        self.brokers[broker], self.fenced[broker] = fields["broker_epoch"], fields["fenced"]
        yield Event(time=time, name=Name.BROKER_REGISTERED, node=broker, broker_epoch=fields["broker_epoch"])
        if not fields["fenced"]:
            yield self._alive(broker, time)

    def _alive(self, broker: int, time: int) -> Event:
        """The counterpart of the broker's ephemeral node: it may lead from here on."""
        epoch = -1 if self.fenced.get(broker, True) else self.brokers.get(broker, -1)
        return Event(time=time, name=Name.BROKER_ZNODE, node=broker, broker_epoch=epoch)

    def _fence(self, broker: int, fenced: bool, time: int) -> Iterator[Event]:
        before = self.fenced.get(broker, True)
        self.fenced[broker] = fenced
        if before is not fenced:
            yield self._alive(broker, time)

    def _unregistered(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        yield from self._fence(fields["broker_id"], True, time)
        self.brokers.pop(fields["broker_id"], None)

    def _fenced(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        yield from self._fence(fields["id"], True, time)

    def _unfenced(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        yield from self._fence(fields["id"], False, time)

    def _registration_changed(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        change = fields.get("fenced", 0)
        if change:
            yield from self._fence(fields["broker_id"], change > 0, time)

    # ---- topics and partitions

    def _topic(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        self.topics[fields["topic_id"]] = fields["name"]
        yield from ()

    def _topic_removed(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        topic = fields["topic_id"]
        name = self.topics.get(topic, topic)
        removed: dict[str, Any] = {
            "time": time,
            "name": Name.TOPIC_DELETION,
            "node": self.controller,
            "topic": name,
        }
        yield Event(**removed, cause="requested")  # one record is the request and its end
        for key in [key for key in self.partitions if key[0] == topic]:
            del self.partitions[key]
            yield self._event(Name.ASSIGNMENT, time, key, replicas=())
        self.configs.pop(name, None)
        yield Event(**removed, cause="done")

    def _partition(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        key = fields["topic_id"], fields["partition_id"]
        before = self.partitions.get(key, Partition())
        made = self.partitions[key] = Partition(
            leader=fields["leader"],
            leader_epoch=fields["leader_epoch"],
            partition_epoch=fields["partition_epoch"],
            isr=_ids(fields["isr"]),
            replicas=_ids(fields["replicas"]),
            removing=_ids(fields["removing_replicas"]),
            adding=_ids(fields["adding_replicas"]),
            eligible=_ids(fields.get("eligible_leader_replicas")),
            last_known=_ids(fields.get("last_known_elr")),
            recovering=fields.get("leader_recovery_state", 0) == RECOVERING,
        )
        yield from self._changed(key, before, made, time)

    def _partition_changed(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        key = fields["topic_id"], fields["partition_id"]
        now = self.partitions.setdefault(key, Partition())
        before = evolve(now)
        leader = fields.get("leader", UNCHANGED)
        if leader != UNCHANGED:
            now.leader, now.leader_epoch = leader, now.leader_epoch + 1
        now.partition_epoch += 1
        for name, column in _CHANGES.items():
            if fields.get(column) is not None:
                setattr(now, name, _ids(fields[column]))
        if "leader_recovery_state" in fields:
            now.recovering = fields["leader_recovery_state"] == RECOVERING
        yield from self._changed(key, before, now, time)

    def _changed(self, key: tuple[str, int], before: Partition, now: Partition, time: int) -> Iterator[Event]:
        name = self.topics.get(key[0], key[0]), key[1]
        placed = (before.replicas, before.target), (now.replicas, now.target)
        written = list(reassigned(time, self.controller, name, *placed))
        # one record writes both; the ISR is out of the replicas before and after
        grows = not set(now.isr) <= set(before.replicas)
        if grows:
            yield from written
        yield self._event(
            Name.PARTITION_STATE,
            time,
            key,
            controller_epoch=self.writer_epoch,
            leader=now.leader,
            leader_epoch=now.leader_epoch,
            isr=now.isr,
            zk_version=now.partition_epoch,
            cause=_kind_of_election(before, now),
        )
        if not grows:
            yield from written

    def _event(self, name: Name, time: int, key: tuple[str, int], **columns: Any) -> Event:
        return event_of(name, time, self.controller, (self.topics.get(key[0], key[0]), key[1]), **columns)

    def _config(self, fields: Mapping[str, Any], time: int) -> Iterator[Event]:
        if fields["resource_type"] != TOPIC_CONFIG:
            return
        overrides = self.configs.setdefault(fields["resource_name"], {})
        if fields["value"] is None:
            overrides.pop(fields["name"], None)
        else:
            overrides[fields["name"]] = fields["value"]
        yield Event(
            time=time,
            name=Name.TOPIC_CONFIGURED,
            node=self.controller,
            topic=fields["resource_name"],
            detail=msgspec.json.encode(dict(sorted(overrides.items()))).decode(),
        )


_CHANGES = {
    "isr": "isr",
    "replicas": "replicas",
    "removing": "removing_replicas",
    "adding": "adding_replicas",
    "eligible": "eligible_leader_replicas",
    "last_known": "last_known_elr",
}
_HANDLERS = {
    "RegisterBrokerRecord": MetadataFold._registered,
    "UnregisterBrokerRecord": MetadataFold._unregistered,
    "FenceBrokerRecord": MetadataFold._fenced,
    "UnfenceBrokerRecord": MetadataFold._unfenced,
    "BrokerRegistrationChangeRecord": MetadataFold._registration_changed,
    "TopicRecord": MetadataFold._topic,
    "RemoveTopicRecord": MetadataFold._topic_removed,
    "PartitionRecord": MetadataFold._partition,
    "PartitionChangeRecord": MetadataFold._partition_changed,
    "ConfigRecord": MetadataFold._config,
}


def _ids(given: Any) -> tuple[int, ...]:
    return tuple(given or ())


def _kind_of_election(before: Partition, now: Partition) -> str:
    if not now.isr and now.eligible:
        return ELIGIBLE
    if not now.isr and now.last_known:
        return LAST_KNOWN
    if now.leader < 0 or now.leader_epoch <= before.leader_epoch or before.leader_epoch < 0:
        return ""
    if not before.isr and now.leader in before.last_known:
        return LAST_KNOWN
    if now.recovering and not before.recovering:
        return UNCLEAN
    if now.leader in before.isr:
        return ""
    return ELIGIBLE if now.leader in before.eligible else UNCLEAN


# ---- the files


def read_metadata_log(directories: Mapping[int, Path]) -> tuple[Event, ...]:
    """Every event of the longest log that a controller has.

    Args:
        directories: log directories by broker, as they are or copied.

    Returns:
        the events in order, times in nanoseconds of the wall clock.

    Raises:
        FencepostError: where there is none, or it begins with a snapshot: what was before is not known.
    """
    logs = {
        broker: found for broker, folder in directories.items() if (found := _segments(folder / f"{TOPIC}-0"))
    }
    if not logs:
        raise FencepostError(
            expected=f"a folder {TOPIC}-0 with a log",
            seen="none",
            where=", ".join(map(str, directories.values())),
        )
    read = {broker: _read(segments) for broker, segments in logs.items()}
    _, events = max(read.values(), key=lambda each: each[0])
    return events


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.log"))


def _read(segments: list[Path]) -> tuple[tuple[int, int], tuple[Event, ...]]:
    """((epoch, offset) of the last batch, events). The end of a log may be the remains of a crash."""
    if int(segments[0].stem):
        raise FencepostError(
            expected="a log of the controllers from its first record on",
            seen=f"one that begins at offset {int(segments[0].stem)}, after a snapshot",
            where=str(segments[0].parent),
            hint="read it before metadata.max.retention.bytes (100 MB) is reached",
        )
    fold, last = MetadataFold(), (-1, -1)
    events: list[Event] = []
    for path in segments:
        with ReadOnly(path, MOST_BYTES) as source:
            for seen in walk_log(source, Extent(), base_offset=int(path.stem), deep=True):
                if not isinstance(seen, BatchSeen) or seen.records is None:
                    return last, tuple(events)  # what follows a flaw is not known
                header = seen.header
                last = max(last, (header.leader_epoch, header.next_offset))
                for record in seen.records:
                    events += fold.take(record, header.leader_epoch, control=header.is_control)
    return last, tuple(events)
