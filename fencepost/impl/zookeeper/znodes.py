"""Kafka's znodes: paths and JSON content (docs/spec/cluster.md, Z). Owns the formats; must not know who reads
or writes them.

Whatever lies in ZooKeeper may come from another tool or from an operator's hand. What cannot be what its path
says is a BadZnodeError with path, expected and seen; it is never another exception.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from attrs import frozen
from msgspec import Meta
from msgspec.structs import force_setattr

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.messages.topic_partition import is_legal_topic
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import FencepostError
from fencepost.traces.kafka_names.inherited_settings import EVERY_BROKER

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"
ADMIN = "/admin"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN = "/admin/reassign_partitions"
CONFIG, TOPIC_CONFIGS, BROKER_CONFIGS = "/config", "/config/topics", "/config/brokers"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
CLUSTER, CLUSTER_ID, BROKER_SEQUENCE = "/cluster", "/cluster/id", "/brokers/seqid"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
PRODUCER_IDS = "/latest_producer_id_block"
TOPIC_BYTES = 4_096
"""Estimated size of a topic's node before it was read: a hundred partitions with three replicas take half of
it."""
PERSISTENT_PATHS = (BROKERS, BROKER_IDS, TOPICS, ISR_CHANGES, ADMIN, DELETE_TOPICS, CONTROLLER_EPOCH)
"""Created at start by the first broker that comes; parents before children."""


MOST_SHOWN = 64
"""Bytes of a node that an error shows."""
LARGEST, LARGEST_DIGITS = 2**31 - 1, 10
"""Broker ids, partition numbers and epochs are 32-bit."""
LARGEST_LONG = 2**63 - 1
"""Producer ids are 64-bit."""
MOST_PER_BLOCK = 1_000_000
"""Producer ids that a block may have: there is room for one after the last. Kafka's have 1,000."""
Number = Annotated[int, Meta(ge=0, le=LARGEST)]
"""A broker's id, a partition's number or an epoch."""
Replicas = Annotated[tuple[Number, ...], Meta(min_length=1)]
"""Ids of brokers, one at least."""
Decoded = TypeVar("Decoded")


class BadZnodeError(FencepostError, ValueError):
    """A node of ZooKeeper that is not what its path says."""


def _bad(path: str, expected: str, data: bytes, why: object = "") -> BadZnodeError:
    shown = repr(data[:MOST_SHOWN])[1:] + (
        f" and {len(data) - MOST_SHOWN:,} bytes more" * (len(data) > MOST_SHOWN)
    )
    return BadZnodeError(
        expected=expected,
        seen=shown + (f" ({why})" if why else ""),
        where=path,
        hint="mend or remove the node with ZooKeeper's tools",
    )


def _read(path: str, data: bytes, kind: type[Decoded], expected: str) -> Decoded:
    try:
        content: Decoded = from_json(data, kind)
        return content
    except msgspec.DecodeError as error:
        raise _bad(path, expected, data, error) from None


def _twice(ids: tuple[int, ...]) -> bool:
    return len(set(ids)) < len(ids)


class LeaderAndIsr(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The content of a partition's state node."""

    leader: Annotated[int, Meta(ge=-1, le=LARGEST)]
    leader_epoch: Number
    controller_epoch: Number
    isr: tuple[Number, ...]
    zk_version: int = -1
    # The transaction that wrote the node; -1 if it was not read.
    mzxid: int = -1


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def broker_path(broker: int) -> str:
    """/brokers/ids/N"""
    return f"{BROKER_IDS}/{broker}"


def topic_path(topic: str) -> str:
    """/brokers/topics/T"""
    return f"{TOPICS}/{topic}"


def state_paths(keys: Iterable[TopicPartition]) -> list[str]:
    """/brokers/topics/T/partitions/P/state of each."""
    return [f"{TOPICS}/{topic}/partitions/{partition}/state" for topic, partition in keys]


def partition_paths(key: TopicPartition) -> tuple[str, str, str]:
    """The three nodes from a topic's partitions to the partition's state, parents first."""
    partitions = f"{TOPICS}/{key.topic}/partitions"
    return partitions, f"{partitions}/{key.partition}", f"{partitions}/{key.partition}/state"


def state_path(key: TopicPartition) -> str:
    """/brokers/topics/T/partitions/P/state"""
    return state_paths((key,))[0]


def delete_topic_path(topic: str) -> str:
    """/admin/delete_topics/T"""
    return f"{DELETE_TOPICS}/{topic}"


def broker_name(node: int | str) -> str:
    """The name under which configurations have a broker, or Kafka's <default>, beside topics. No topic may be
    called so."""
    return str(node) if node == EVERY_BROKER else f"<{node}>"


def is_of_brokers(name: str) -> bool:
    """Whether it is such a name, and not that of a topic."""
    return name.startswith("<")


def _entity(name: str) -> str:
    """What Kafka calls a topic, a broker or all brokers: topics/T, brokers/N, brokers/<default>."""
    if not is_of_brokers(name):
        return f"topics/{name}"
    return f"brokers/{name if name == EVERY_BROKER else name[1:-1]}"


def config_path(name: str) -> str:
    """/config/topics/T, /config/brokers/N, /config/brokers/<default>"""
    return f"{CONFIG}/{_entity(name)}"


def name_of_config_path(path: str) -> str | None:
    """The topic, or the name of brokers, that such a path is about; None for any other path."""
    parent, _, name = path.rpartition("/")
    if parent == BROKER_CONFIGS:
        return broker_name(name)
    return name if parent == TOPIC_CONFIGS else None


def encode_configuration(config: Mapping[str, str] | None = None) -> bytes:
    """/config/topics/T; without overrides by default."""
    return _dump({"version": 1, "config": dict(sorted((config or {}).items()))})


class _Configuration(msgspec.Struct):
    """The part of the JSON that decode_configuration reads."""

    config: dict[str, str]


def decode_configuration(data: bytes, path: str = TOPIC_CONFIGS) -> dict[str, str]:
    """The overrides of a topic.

    Args:
        data: of /config/topics/T.
        path: of the node, for the message.

    Raises:
        BadZnodeError: if it is something else.
    """
    return _read(path, data, _Configuration, 'a configuration, {"config":{"NAME":"VALUE"}}').config


def encode_config_change(topic: str) -> bytes:
    """/config/changes/config_change_*"""
    return _dump({"version": 2, "entity_path": _entity(topic)})


class _ConfigChange(msgspec.Struct):
    """The part of the JSON that decode_config_change reads."""

    entity_path: str


def decode_config_change(data: bytes, path: str = CONFIG_CHANGES) -> str | None:
    """The topic or brokers that a notification names; None if the configuration of a client or user changed.

    Args:
        data: of the notification.
        path: of the node, for the message.

    Raises:
        BadZnodeError: if it is something else.
    """
    expected = 'a notification, {"entity_path":"topics/NAME"}'
    kind, _, name = _read(path, data, _ConfigChange, expected).entity_path.partition("/")
    if kind == "brokers" and (name == EVERY_BROKER or name.isdecimal()):
        return broker_name(name)
    if kind != "topics":
        return None
    if not is_legal_topic(name):
        raise _bad(path, expected, data, "no topic may be called so")
    return name


def encode_cluster_id(cluster_id: str) -> bytes:
    """/cluster/id; the version is a text, as in Kafka."""
    return _dump({"version": "1", "id": cluster_id})


class _ClusterId(msgspec.Struct):
    """What decode_cluster_id reads of the JSON."""

    id: Annotated[str, Meta(min_length=1, max_length=MOST_SHOWN)]


def decode_cluster_id(data: bytes) -> str:
    """The id in /cluster/id. Raises BadZnodeError."""
    return _read(CLUSTER_ID, data, _ClusterId, 'a cluster\'s id, {"id":"TEXT"}').id


def broker_of(name: str) -> int | None:
    """The id of the broker with this name below /brokers/ids; None if no broker is called so."""
    return int(name) if is_number(name) else None


def is_number(text: str) -> bool:
    """Whether this is a 32-bit number as Kafka writes one: ASCII digits, none before it but zero itself."""
    digits = text.isascii() and text.isdecimal() and len(text) <= LARGEST_DIGITS
    return digits and int(text) <= LARGEST and text == str(int(text))


def decode_controller_epoch(data: bytes) -> int:
    """The number in /controller_epoch, which has a successor. Raises BadZnodeError."""
    text = data.decode("latin-1")
    if not is_number(text) or int(text) == LARGEST:
        raise _bad(CONTROLLER_EPOCH, f"a controller epoch, 0 to {LARGEST - 1}", data)
    return int(text)


def topic_of_topic_path(path: str) -> str | None:
    """The topic of /brokers/topics/T; None for any other path."""
    parent, _, topic = path.rpartition("/")
    return topic if parent == TOPICS else None


def partition_of_state_path(path: str) -> TopicPartition | None:
    """The partition with its state at this path; None for any other path."""
    parts = path.split("/")
    if (
        len(parts) == 7
        and parts[1:3] == ["brokers", "topics"]
        and parts[4] == "partitions"
        and parts[6] == "state"
        and is_number(parts[5])
    ):
        return TopicPartition(parts[3], int(parts[5]))
    return None


def encode_controller(broker: int, timestamp_ms: int) -> bytes:
    """The content of /controller.

    Args:
        broker: the id of the controller.
        timestamp_ms: the time of the election.

    Returns:
        the JSON.
    """
    return _dump({"version": 1, "brokerid": broker, "timestamp": str(timestamp_ms)})


class _Controller(msgspec.Struct):
    """What decode_controller reads of the JSON."""

    brokerid: Number


def decode_controller(data: bytes) -> int:
    """The broker named in /controller. Raises BadZnodeError."""
    return _read(CONTROLLER, data, _Controller, 'a broker, {"brokerid":N}').brokerid


def encode_broker(broker: int, timestamp_ms: int, port: int = 0) -> bytes:
    """/brokers/ids/N, version 4. port: 0 in the simulator, where there is no listener; then a number that
    distinguishes the brokers."""
    host, port = "127.0.0.1", port or 9092 + broker
    return _dump(
        {
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "endpoints": [f"PLAINTEXT://{host}:{port}"],
            "jmx_port": -1,
            "host": host,
            "timestamp": str(timestamp_ms),
            "port": port,
            "version": 4,
        }
    )


def encode_topic(assignment: dict[int, tuple[int, ...]]) -> bytes:
    """/brokers/topics/T"""
    return _dump(
        {"version": 1, "partitions": {str(number): list(ids) for number, ids in sorted(assignment.items())}}
    )


class _Topic(msgspec.Struct):
    """The part of the JSON that decode_topic reads."""

    partitions: Annotated[dict[Number, Replicas], Meta(min_length=1)]


_topic_of = msgspec.json.Decoder(_Topic).decode


def decode_topic(data: bytes, path: str = TOPICS) -> dict[int, tuple[int, ...]]:
    """The assigned replicas by partition number.

    Args:
        data: of /brokers/topics/T.
        path: of the node, for the message.

    Raises:
        BadZnodeError: if it is something else.
    """
    expected = 'assigned replicas, {"partitions":{"0":[1,2]}}, each broker once'
    try:
        partitions = _topic_of(data).partitions
    except (ValueError, RecursionError):
        partitions = _read(path, data, _Topic, expected).partitions
    for replicas in set(partitions.values()):
        if _twice(replicas):
            raise _bad(path, expected, data, f"{list(replicas)} names a broker twice")
    return partitions


class _State(msgspec.Struct, gc=False):
    """What encode_state writes, in Kafka's order of fields."""

    controller_epoch: int
    leader: int
    version: int
    leader_epoch: int
    isr: tuple[int, ...]


_encoded = msgspec.json.Encoder().encode


def encode_state(state: LeaderAndIsr) -> bytes:
    """/brokers/topics/T/partitions/P/state"""
    return _encoded(_State(state.controller_epoch, state.leader, 1, state.leader_epoch, state.isr))


def state_bytes(replicas: int) -> int:
    """The largest size of a partition's state with this many replicas, in bytes."""
    return _STATE_BYTES + (LARGEST_DIGITS + 1) * replicas


_STATE = 'a state, {"controller_epoch":N,"leader":N,"leader_epoch":N,"isr":[N]}, each broker once'
_state_of = msgspec.json.Decoder(LeaderAndIsr).decode


def decode_state(data: bytes, zk_version: int, mzxid: int = -1, path: str = TOPICS) -> LeaderAndIsr:
    """The state of a partition with its version.

    Args:
        data: of the node.
        zk_version: of the node's stat.
        mzxid: of the node's stat.
        path: of the node, for the message.

    Raises:
        BadZnodeError: if it is something else.
    """
    try:
        state = _state_of(data)
    except (ValueError, RecursionError):
        state = _read(path, data, LeaderAndIsr, _STATE)
    if _twice(state.isr):
        raise _bad(path, _STATE, data, "the ISR names a broker twice")
    force_setattr(state, "zk_version", zk_version)
    force_setattr(state, "mzxid", mzxid)
    return state


@frozen
class ProducerIdBlock:
    """Ids that one broker assigns: start to end, both included."""

    broker: int
    start: int
    end: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """/latest_producer_id_block"""
    return _dump(
        {"version": 1, "broker": block.broker, "block_start": str(block.start), "block_end": str(block.end)}
    )


class _ProducerIdBlock(msgspec.Struct):
    """What decode_producer_id_block reads of the JSON; 63-bit numbers are texts, as Kafka writes them."""

    broker: Number
    block_start: Annotated[str, Meta(pattern="^[0-9]{1,19}$")]
    block_end: Annotated[str, Meta(pattern="^[0-9]{1,19}$")]


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """The block that was claimed last. Raises BadZnodeError."""
    expected = 'a block of producer ids, {"broker":N,"block_start":"N","block_end":"N"}, start to end'
    content = _read(PRODUCER_IDS, data, _ProducerIdBlock, expected)
    start, end = int(content.block_start), int(content.block_end)
    if not start <= end <= LARGEST_LONG - MOST_PER_BLOCK:
        raise _bad(PRODUCER_IDS, expected, data)
    return ProducerIdBlock(content.broker, start, end)


_STATE_BYTES = len(
    encode_state(LeaderAndIsr(leader=LARGEST, leader_epoch=LARGEST, controller_epoch=LARGEST, isr=()))
)


def encode_isr_changes(keys: list[TopicPartition]) -> bytes:
    """/isr_change_notification/isr_change_*"""
    return _dump(
        {"version": 1, "partitions": [{"topic": key.topic, "partition": key.partition} for key in keys]}
    )


class _Partition(msgspec.Struct):
    """An entry of a list of partitions."""

    topic: str
    partition: Number


class _Partitions(msgspec.Struct):
    """What decode_partitions reads of the JSON."""

    partitions: list[_Partition]


def decode_partitions(data: bytes, path: str = PREFERRED_ELECTION) -> list[TopicPartition]:
    """The partitions of a notification of ISR changes, or those to be led by their preferred replica.

    Args:
        data: of the node.
        path: of the node, for the message.

    Raises:
        BadZnodeError: if it is something else.
    """
    content = _read(path, data, _Partitions, 'partitions, {"partitions":[{"topic":"T","partition":N}]}')
    return [TopicPartition(entry.topic, entry.partition) for entry in content.partitions]


def encode_partitions(keys: list[TopicPartition]) -> bytes:
    """/admin/preferred_replica_election"""
    return encode_isr_changes(keys)


def encode_reassignments(
    targets: dict[TopicPartition, tuple[int, ...]],
    origins: Mapping[TopicPartition, tuple[int, ...]] | None = None,
) -> bytes:
    """/admin/reassign_partitions. origins: the previous replicas of a partition, for a later controller;
    Kafka ignores the field."""
    known = origins or {}
    entries: list[dict[str, Any]] = [
        {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
        | ({"origin": list(known[key])} if key in known else {})
        for key, replicas in targets.items()
    ]
    return _dump({"version": 1, "partitions": entries})


class _Reassignment(msgspec.Struct):
    """An entry of /admin/reassign_partitions."""

    topic: str
    partition: Number
    # Checked by the controller, which refuses one target for itself.
    replicas: tuple[Number, ...]
    # The replicas that the partition had before, where they are known.
    origin: tuple[Number, ...] | None = None


class _Reassignments(msgspec.Struct):
    """What decode_reassignments reads of the JSON."""

    partitions: list[_Reassignment]


def _reassignments(data: bytes) -> list[_Reassignment]:
    expected = 'reassignments, {"partitions":[{"topic":"T","partition":N,"replicas":[N]}]}'
    return _read(REASSIGN, data, _Reassignments, expected).partitions


def decode_reassignments(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that each partition shall have, in the order of the entries. Raises BadZnodeError."""
    return {TopicPartition(entry.topic, entry.partition): entry.replicas for entry in _reassignments(data)}


def decode_origins(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Those of the entries that name the replicas that their partition had before. Raises BadZnodeError."""
    return {
        TopicPartition(entry.topic, entry.partition): entry.origin
        for entry in _reassignments(data)
        if entry.origin is not None
    }
