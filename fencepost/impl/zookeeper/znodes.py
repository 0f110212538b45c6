"""Kafka's znodes: paths and JSON content (docs/spec/cluster.md, Z). Owns the formats. Must not know the
readers and writers."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from attrs import frozen
from msgspec.structs import force_setattr

from fencepost.impl.messages.broker_api import TopicPartition

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
CONFIG, TOPIC_CONFIGS = "/config", "/config/topics"
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


class LeaderAndIsr(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The content of a partition's state node."""

    # The leader; -1 if there is none.
    leader: int
    # The leader epoch; every election increases it.
    leader_epoch: int
    # The epoch of the controller that elected the leader; a leader's ISR change repeats it.
    controller_epoch: int
    # The in-sync replicas.
    isr: tuple[int, ...]
    # The version of the node, for conditional writes; -1 if it was not read.
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


def config_path(topic: str) -> str:
    """/config/topics/T"""
    return f"{TOPIC_CONFIGS}/{topic}"


def topic_of_config_path(path: str) -> str | None:
    """The topic of /config/topics/T; None for any other path."""
    parent, _, topic = path.rpartition("/")
    return topic if parent == TOPIC_CONFIGS else None


def encode_configuration(config: Mapping[str, str] | None = None) -> bytes:
    """/config/topics/T; without overrides by default."""
    return _dump({"version": 1, "config": dict(sorted((config or {}).items()))})


class _Configuration(msgspec.Struct):
    """The part of the JSON that decode_configuration reads."""

    config: dict[str, str]


def decode_configuration(data: bytes) -> dict[str, str]:
    """The overrides in /config/topics/T. Raises ValueError if the content is invalid."""
    return msgspec.json.decode(data, type=_Configuration).config


def encode_config_change(topic: str) -> bytes:
    """/config/changes/config_change_*"""
    return _dump({"version": 2, "entity_path": f"topics/{topic}"})


class _ConfigChange(msgspec.Struct):
    """The part of the JSON that decode_config_change reads."""

    entity_path: str


def decode_config_change(data: bytes) -> str | None:
    """The topic with the changed configuration; None for another kind of entity. Raises ValueError if the
    content is invalid."""
    kind, _, name = msgspec.json.decode(data, type=_ConfigChange).entity_path.partition("/")
    return name if kind == "topics" and name else None


def encode_cluster_id(cluster_id: str) -> bytes:
    """/cluster/id; the version is a text, as in Kafka."""
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """The id in /cluster/id."""
    return str(json.loads(data)["id"])


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


def decode_controller(data: bytes) -> int:
    """The broker named in /controller."""
    return int(json.loads(data)["brokerid"])


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

    partitions: dict[int, tuple[int, ...]]


_topic_of = msgspec.json.Decoder(_Topic).decode


def decode_topic(data: bytes) -> dict[int, tuple[int, ...]]:
    """Assigned replicas by partition number."""
    return _topic_of(data).partitions


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


_state_of = msgspec.json.Decoder(LeaderAndIsr).decode


def decode_state(data: bytes, zk_version: int, mzxid: int = -1) -> LeaderAndIsr:
    """The state of a partition.

    Args:
        data: the JSON.
        zk_version: the version of the node.
        mzxid: the transaction that wrote it.

    Returns:
        the state. The decoder makes the object, then version and transaction are set, before any other code
        sees it.
    """
    state = _state_of(data)
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
        {
            "version": 1,
            "broker": block.broker,
            "block_start": str(block.start),
            "block_end": str(block.end),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """The block of the last claim."""
    content = json.loads(data)
    return ProducerIdBlock(content["broker"], int(content["block_start"]), int(content["block_end"]))


LARGEST, LARGEST_DIGITS = 2**31 - 1, 10
"""Broker ids and epochs are 32-bit."""
_STATE_BYTES = len(
    encode_state(LeaderAndIsr(leader=LARGEST, leader_epoch=LARGEST, controller_epoch=LARGEST, isr=()))
)


def encode_isr_changes(keys: list[TopicPartition]) -> bytes:
    """/isr_change_notification/isr_change_*"""
    return _dump(
        {"version": 1, "partitions": [{"topic": key.topic, "partition": key.partition} for key in keys]}
    )


def decode_isr_changes(data: bytes) -> list[TopicPartition]:
    """The partitions with changed ISRs."""
    return [TopicPartition(entry["topic"], entry["partition"]) for entry in json.loads(data)["partitions"]]


def encode_partitions(keys: list[TopicPartition]) -> bytes:
    """/admin/preferred_replica_election"""
    return encode_isr_changes(keys)


def decode_partitions(data: bytes) -> list[TopicPartition]:
    """The partitions for a preferred election."""
    return decode_isr_changes(data)


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


def decode_reassignments(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The target replicas of each partition, in the order of the entries."""
    return {
        TopicPartition(entry["topic"], entry["partition"]): tuple(entry["replicas"])
        for entry in json.loads(data)["partitions"]
    }


def decode_origins(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The previous replicas, for entries that contain them."""
    return {
        TopicPartition(entry["topic"], entry["partition"]): tuple(entry["origin"])
        for entry in json.loads(data)["partitions"]
        if isinstance(entry.get("origin"), list)
    }
