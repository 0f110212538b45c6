"""What a cluster with ZooKeeper decided, as events: from ZooKeeper's own transaction log.

Owns what the transactions mean together. Must not know bytes (zookeeper_transactions.py) or judges. Watches
are one-shot and would miss what is overwritten between two looks. The log of the server has every write in
the order of commits, with its time and the session that wrote. The broker that created /brokers/ids/N in a
session is broker N.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from attrs import define, field

from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.znodes import BadZnodeError, LeaderAndIsr
from fencepost.systems.apache_kafka.inside.partition_changes import (
    MILLISECOND,
    NOBODY,
    UNCLEAN,
    Key,
    event_of,
    reassigned,
)
from fencepost.systems.apache_kafka.inside.zookeeper_transactions import Change, Kind, read_transactions
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event, Name


class _Moving(msgspec.Struct):
    """The reassignments in a topic's node (KIP-455)."""

    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}


@define
class ZooKeeperFold:
    """Changes in, events out. Times are wall-clock nanoseconds."""

    # Broker by session.
    sessions: dict[int, int] = field(factory=dict)
    states: dict[Key, LeaderAndIsr] = field(factory=dict)
    assigned: dict[Key, tuple[int, ...]] = field(factory=dict)
    # The target of each reassignment under way.
    moving: dict[Key, tuple[int, ...]] = field(factory=dict)
    # Nodes that are not what their path says.
    unreadable: int = 0

    def take(self, change: Change) -> Iterator[Event]:
        """The events of one change."""
        node = self.sessions.get(change.session, NOBODY)
        for place, handler in _PLACES:
            if change.path == place or (place.endswith("/") and change.path.startswith(place)):
                try:
                    events = list(handler(self, change, node, change.time_ms * MILLISECOND))
                except (BadZnodeError, msgspec.DecodeError, ValueError):
                    self.unreadable += 1
                    return
                yield from events
                return

    # ---- controllers and brokers

    def _controller(self, change: Change, node: int, time: int) -> Iterator[Event]:
        gone = change.kind is Kind.DELETED
        leader = NOBODY if gone else znodes.decode_controller(change.data)
        yield Event(time=time, name=Name.CONTROLLER_ZNODE, node=node if gone else leader, leader=leader)

    def _controller_epoch(self, change: Change, node: int, time: int) -> Iterator[Event]:
        epoch = znodes.decode_controller_epoch(change.data)
        if epoch > 0:  # Kafka creates the node with 0 and raises it at once
            yield Event(time=time, name=Name.CONTROLLER_EPOCH, node=node, controller_epoch=epoch)

    def _broker(self, change: Change, node: int, time: int) -> Iterator[Event]:
        broker = int(change.path.rpartition("/")[2])
        if change.kind is Kind.CREATED:
            self.sessions[change.session] = broker
            yield Event(time=time, name=Name.BROKER_ZNODE, node=broker, broker_epoch=change.zxid)
            yield Event(time=time, name=Name.BROKER_REGISTERED, node=broker, broker_epoch=change.zxid)
        elif change.kind is Kind.DELETED:
            yield Event(time=time, name=Name.BROKER_ZNODE, node=broker)

    # ---- topics and partitions

    def _topic(self, change: Change, node: int, time: int) -> Iterator[Event]:
        key = znodes.partition_of_state_path(change.path)
        if key is not None:
            yield from self._state(change, (key.topic, key.partition), node, time)
            return
        topic = znodes.topic_of_topic_path(change.path)
        if topic is None:
            return
        gone = change.kind is Kind.DELETED
        assignment = {} if gone else znodes.decode_topic(change.data, change.path)
        moving = _Moving() if gone else msgspec.json.decode(change.data, type=_Moving)
        known = {number for name, number in self.assigned if name == topic}
        for number in sorted(known | assignment.keys()):
            yield from self._assigned((topic, number), assignment.get(number, ()), moving, node, time)

    def _assigned(
        self, key: Key, replicas: tuple[int, ...], moving: _Moving, node: int, time: int
    ) -> Iterator[Event]:
        number = str(key[1])
        removing = moving.removing_replicas.get(number, ())
        under_way = bool(removing or moving.adding_replicas.get(number))
        target = tuple(each for each in replicas if each not in removing) if under_way else ()
        before = self.assigned.get(key, ()), self.moving.get(key, ())
        yield from reassigned(time, node, key, before, (replicas, target))
        self.assigned[key], self.moving[key] = replicas, target
        if not replicas:
            self.assigned.pop(key), self.moving.pop(key), self.states.pop(key, None)

    def _state(self, change: Change, key: Key, node: int, time: int) -> Iterator[Event]:
        if change.kind is Kind.DELETED:
            self.states.pop(key, None)
            return
        now = znodes.decode_state(change.data, change.version, change.zxid, change.path)
        before = self.states.get(key)
        self.states[key] = now
        elected = before is not None and now.leader_epoch > before.leader_epoch and now.leader >= 0
        unclean = elected and before is not None and now.leader not in before.isr
        yield event_of(
            Name.PARTITION_STATE,
            time,
            node,
            key,
            leader=now.leader,
            leader_epoch=now.leader_epoch,
            controller_epoch=now.controller_epoch,
            isr=now.isr,
            zk_version=change.version,
            cause=UNCLEAN if unclean else "",
        )

    def _deletion(self, change: Change, node: int, time: int) -> Iterator[Event]:
        word = {Kind.CREATED: "requested", Kind.DELETED: "done"}.get(change.kind)
        if word:
            topic = change.path.rpartition("/")[2]
            yield Event(time=time, name=Name.TOPIC_DELETION, node=node, topic=topic, cause=word)

    def _config(self, change: Change, node: int, time: int) -> Iterator[Event]:
        topic = znodes.name_of_config_path(change.path)
        if topic is None or change.kind is Kind.DELETED:
            return
        overrides = znodes.decode_configuration(change.data, change.path)
        detail = msgspec.json.encode(dict(sorted(overrides.items()))).decode()
        yield Event(time=time, name=Name.TOPIC_CONFIGURED, node=node, topic=topic, detail=detail)


Handler = Callable[[ZooKeeperFold, Change, int, int], Iterator[Event]]
_PLACES: tuple[tuple[str, Handler], ...] = (
    (znodes.CONTROLLER, ZooKeeperFold._controller),
    (znodes.CONTROLLER_EPOCH, ZooKeeperFold._controller_epoch),
    (f"{znodes.BROKER_IDS}/", ZooKeeperFold._broker),
    (f"{znodes.TOPICS}/", ZooKeeperFold._topic),
    (f"{znodes.DELETE_TOPICS}/", ZooKeeperFold._deletion),
    (f"{znodes.TOPIC_CONFIGS}/", ZooKeeperFold._config),
)


def read_zookeeper_log(directory: Path) -> tuple[Event, ...]:
    """Every event of a server's transaction logs.

    Args:
        directory: the server's dataDir, as it is or copied.

    Returns:
        the events in order, times in nanoseconds of the wall clock.

    Raises:
        FencepostError: where there is no log.
    """
    logs = sorted(directory.glob("version-2/log.*"), key=lambda path: int(path.suffix[1:], 16))
    if not logs:
        raise FencepostError(
            expected="ZooKeeper's transaction logs, version-2/log.*", seen="none", where=str(directory)
        )
    fold = ZooKeeperFold()
    events: list[Event] = []
    for change in read_transactions(logs):
        events += fold.take(change)
    return tuple(events)
