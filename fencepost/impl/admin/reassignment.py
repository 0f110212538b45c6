"""The reassignment tool (C13): generate, execute, verify, with Kafka's files. Owns the files and the checks;
the controller moves the replicas."""

from collections.abc import Collection
from enum import StrEnum

import msgspec
from attrs import frozen

from fencepost.impl.admin.cluster_state import AdminError, ClusterTopics, fitting, read_cluster, refuse_twice
from fencepost.impl.admin.topic_administration import Draw, check_replicas
from fencepost.impl.controller.placement import place_replicas
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Failed

Targets = dict[TopicPartition, tuple[int, ...]]
ANY_LOG_DIRECTORY = "any"

# ---- Kafka's files


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] | None = None


class _Reassignment(msgspec.Struct, forbid_unknown_fields=True):
    partitions: list[_Entry]
    version: int = 1


class _Moved(msgspec.Struct, forbid_unknown_fields=True):
    topic: str


class _Topics(msgspec.Struct, forbid_unknown_fields=True):
    topics: list[_Moved]
    version: int = 1


def decode_reassignment(data: bytes, where: str) -> Targets:
    """Decode a reassignment file.

    Args:
        data: the content.
        where: the file, for the error.

    Returns:
        the target of each partition.

    Raises:
        AdminError: if it is invalid, or a partition occurs twice.
    """
    try:
        read = msgspec.json.decode(data, type=_Reassignment)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AdminError(
            expected='{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
            seen=str(error),
            where=where,
        ) from None
    _version(read.version, where)
    refuse_twice(
        (TopicPartition(entry.topic, entry.partition) for entry in read.partitions), "partition", where
    )
    targets: Targets = {}
    for entry in read.partitions:
        key = TopicPartition(entry.topic, entry.partition)
        if any(name != ANY_LOG_DIRECTORY for name in entry.log_dirs or ()):
            raise AdminError(
                expected='log_dirs of "any": a broker has one log directory',
                seen=str(entry.log_dirs),
                where=f"{where}: partition {key}",
            )
        targets[key] = tuple(entry.replicas)
    return targets


def decode_topics(data: bytes, where: str) -> list[str]:
    """Decode a file of topics to move.

    Args:
        data: the content.
        where: the file, for the error.

    Returns:
        the topics.

    Raises:
        AdminError: if it is invalid, or a topic occurs twice.
    """
    try:
        read = msgspec.json.decode(data, type=_Topics)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AdminError(
            expected='{"version":1,"topics":[{"topic":"t"}]}', seen=str(error), where=where
        ) from None
    _version(read.version, where)
    names = [moved.topic for moved in read.topics]
    refuse_twice(names, "topic", where)
    return names


def _version(version: int, where: str) -> None:
    if version != 1:
        raise AdminError(expected="version 1", seen=str(version), where=where)


def encode_reassignment(targets: Targets) -> str:
    """As Kafka's own tool writes it."""
    entries = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "replicas": replicas,
            "log_dirs": [ANY_LOG_DIRECTORY] * len(replicas),
        }
        for key, replicas in targets.items()
    ]
    return msgspec.json.encode({"version": 1, "partitions": entries}).decode()


# ---- generate


@frozen
class Proposal:
    """The current and the proposed assignment of some topics."""

    current: Targets
    proposed: Targets


def generate(topics: Collection[str], brokers: Collection[int], draw: Draw, where: str) -> ZooKeeperSteps:
    """Compute a new assignment of these topics to these brokers with unchanged replication factors. Returns a
    Proposal; nothing is written."""
    cluster: ClusterTopics = yield from read_cluster(topics)
    targets = tuple(sorted(brokers))
    refuse_twice(targets, "broker", "--broker-list")
    current: Targets = {}
    proposed: Targets = {}
    for name in sorted(topics):
        topic = cluster.topic(name, where)
        current |= {TopicPartition(name, number): ids for number, ids in sorted(topic.assignment.items())}
        placed = place_replicas(
            targets,
            partitions=len(topic.assignment),
            replication_factor=topic.replication_factor,
            start=draw(len(targets)),
            shift=draw(len(targets)),
        )
        proposed |= {TopicPartition(name, number): ids for number, ids in placed.items()}
    for key, replicas in proposed.items():
        check_replicas(key, replicas, cluster, "--broker-list")
    return Proposal(current, proposed)


# ---- execute


def execute(targets: Targets, where: str) -> ZooKeeperSteps:
    """Check everything, then ask the controller with one write. It fails if a reassignment is in progress.

    Args:
        targets: the target of each partition.
        where: the place that an error names.

    Returns:
        the steps; their result is the previous assignment, for a rollback.
    """
    cluster: ClusterTopics = yield from read_cluster({key.topic for key in targets})
    current: Targets = {}
    for key, replicas in targets.items():
        topic = cluster.topic(key.topic, where)
        if key.partition not in topic.assignment:
            raise AdminError(
                expected=f"a partition of {key.topic}, of which there are {len(topic.assignment)}",
                seen=str(key),
                where=where,
            )
        check_replicas(key, replicas, cluster, where)
        current[key] = topic.assignment[key.partition]
    if cluster.reassigning:
        raise _in_progress(where)
    write = Create(znodes.REASSIGN, znodes.encode_reassignments(targets))
    reply = yield fitting(write, where)
    if isinstance(reply, Failed):
        raise _in_progress(where)
    return current


def _in_progress(where: str) -> AdminError:
    return AdminError(
        expected="no reassignment in progress",
        seen="there is an existing assignment running",
        where=where,
        hint="wait until fencepost cluster reassign --verify says that it is completed",
    )


# ---- verify


class ReassignmentProgress(StrEnum):
    """The result of the reassignment of a partition."""

    COMPLETED = "completed successfully"
    IN_PROGRESS = "is still in progress"
    FAILED = "failed"


@frozen(kw_only=True)
class Verified:
    """assigned: the current replicas; empty if the partition does not exist."""

    partition: TopicPartition
    progress: ReassignmentProgress
    assigned: tuple[int, ...]
    target: tuple[int, ...]

    def sentences(self) -> list[str]:
        """In Kafka's words."""
        lines = []
        if self.progress is ReassignmentProgress.FAILED:
            lines.append(
                f"ERROR: Assigned replicas ({_listed(self.assigned)}) don't match the list of replicas for "
                f"reassignment"
                f" ({_listed(self.target)}) for partition {self.partition}"
            )
        return [*lines, f"Reassignment of partition {self.partition} {self.progress}"]


def _listed(replicas: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in replicas)


def verify(targets: Targets) -> ZooKeeperSteps:
    """The result for each partition: in progress while the node names this target, completed if the replicas
    are the target in its order, otherwise failed."""
    cluster: ClusterTopics = yield from read_cluster({key.topic for key in targets})
    verified = []
    for key, target in targets.items():
        topic = cluster.topics.get(key.topic)
        assigned = topic.assignment.get(key.partition, ()) if topic else ()
        if key in cluster.reassigning:
            progress = (
                ReassignmentProgress.IN_PROGRESS
                if cluster.reassigning[key] == target
                else ReassignmentProgress.FAILED
            )
        else:
            progress = ReassignmentProgress.COMPLETED if assigned == target else ReassignmentProgress.FAILED
        verified.append(Verified(partition=key, progress=progress, assigned=assigned, target=target))
    return verified
