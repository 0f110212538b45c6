"""Topics: create, delete, add partitions, describe (C14). Owns the checks and the single write of each; the
controller does the rest."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from attrs import frozen

from fencepost.impl.admin.cluster_state import (
    AdminError,
    Assignment,
    ChangedMeanwhileError,
    ClusterTopics,
    Topic,
    fitting,
    read_cluster,
    read_states,
)
from fencepost.impl.admin.configuration import CHANGE_PARENTS, change_of, check_config
from fencepost.impl.controller.placement import place_replicas
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition, is_legal_topic
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import JUTE_MAXBUFFER
from fencepost.impl.zookeeper.interface import Create, Failed, Multi, SetData, ZooKeeperError
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.kafka_names.outcomes import ErrorCode

METADATA_TOPIC = "__cluster_metadata"
"""Nobody may create it: tools take its directory for the controllers' log. Kafka refuses it, too (KafkaApis,
handleCreateTopicsRequest), with TOPIC_AUTHORIZATION_FAILED."""
MOST_PARTITIONS = JUTE_MAXBUFFER // len('"0":[1],')
"""The most partitions of a topic: with more, its node would not fit into a ZooKeeper request. It is checked
before replicas are placed, so that a large number costs nothing."""
MOST_SHOWN = 64
"""Characters, or numbers, of a wrong value in an error."""
Draw = Callable[[int], int]
"""From n to a number in 0 <= x < n: where the placement of replicas starts."""


@frozen(kw_only=True)
class PartitionDescription:
    """One partition in ZooKeeper."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    # None before its first leader. adding, removing: brokers, during a reassignment.
    state: LeaderAndIsr | None
    target: tuple[int, ...] | None
    deleting: bool

    @property
    def under_replicated(self) -> bool:
        """Whether some replica is not in sync."""
        return self.state is None or set(self.replicas) > set(self.state.isr)


def create_topic(
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    draw: Draw,
    assignment: Assignment | None = None,
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> ZooKeeperSteps:
    """Place the replicas, or use an assignment, and create the topic's nodes.

    Args:
        name: the topic.
        partitions: the number of partitions.
        replication_factor: replicas of each partition.
        draw: chooses where the placement starts.
        assignment: the replicas of each partition; None: they are placed.
        config: overrides, which brokers get before there is a replica.
        validate_only: do everything but the write.

    Returns:
        the steps; their result is the assignment.

    Raises:
        AdminError: if the request is invalid.
        ReplicationFactorError: if there are fewer brokers than replicas.
    """
    config = config or {}
    check_name(name)
    if name == METADATA_TOPIC:
        raise AdminError(
            expected="another name: this one is the metadata log of KRaft's controllers",
            seen=repr(name),
            where="topic",
            code=ErrorCode.INVALID_TOPIC_EXCEPTION,
        )
    check_config(name, config)
    cluster: ClusterTopics = yield from read_cluster(())
    _may_be_created(name, cluster)
    if assignment is None:
        check_count(partitions, f"topic {name}")
        brokers = cluster.live_brokers(f"topic {name}")
        assignment = place_replicas(
            brokers,
            partitions=partitions,
            replication_factor=replication_factor,
            start=draw(len(brokers)),
            shift=draw(len(brokers)),
        )
    else:
        _may_be_assigned(name, assignment, cluster)
    create = Create(znodes.topic_path(name), znodes.encode_topic(dict(assignment)))
    fitting(create, f"topic {name}")
    if validate_only:
        return assignment
    yield CHANGE_PARENTS
    configuration = znodes.encode_configuration(config)
    rest = (change_of(name), create) if config else (create,)
    reply = yield Multi((Create(znodes.config_path(name), configuration), *rest))
    if isinstance(reply, Failed) and (reply.error, reply.index) == (ZooKeeperError.NODE_EXISTS, 0):
        reply = yield Multi((SetData(znodes.config_path(name), configuration), *rest))
    _done(reply, f"topic {name}", "a topic that no other client creates", code=ErrorCode.TOPIC_ALREADY_EXISTS)
    return assignment


def check_name(name: str) -> None:
    """Check that a topic may have this name (Kafka's Topic.validate). Raises AdminError."""
    if not is_legal_topic(name):
        raise AdminError(
            expected="a name of 1 to 249 letters, digits, dots, underscores and hyphens",
            seen=repr(name[:MOST_SHOWN]),
            where="topic",
            code=ErrorCode.INVALID_TOPIC_EXCEPTION,
        )


def check_count(partitions: int, where: str) -> None:
    """Check that a topic may have this number of partitions. Raises AdminError."""
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise AdminError(
            expected=f"from 1 to {MOST_PARTITIONS:,} partitions",
            seen=str(partitions),
            where=where,
            code=ErrorCode.INVALID_PARTITIONS,
        )


def _may_be_created(name: str, cluster: ClusterTopics) -> None:
    where = f"topic {name}"
    if name in cluster.names:
        gone = ", which is marked for deletion" if name in cluster.deleting else ""
        raise AdminError(
            expected="a new topic",
            seen=f"one that exists{gone}",
            where=where,
            code=ErrorCode.TOPIC_ALREADY_EXISTS,
        )
    collides = [other for other in cluster.names if other.replace(".", "_") == name.replace(".", "_")]
    if collides:
        raise AdminError(
            expected="a name that differs in more than dots and underscores from those of other topics",
            seen=f"topic {collides[0]}",
            where=where,
            code=ErrorCode.INVALID_TOPIC_EXCEPTION,
        )


def _may_be_assigned(name: str, assignment: Assignment, cluster: ClusterTopics, first: int = 0) -> None:
    """first: the number of the first partition."""
    numbers, factors = sorted(assignment), {len(replicas) for replicas in assignment.values()}
    if not numbers or numbers != list(range(first, first + len(numbers))):
        raise AdminError(
            expected=f"partitions numbered from {first} on without a gap",
            seen=", ".join(map(str, numbers[:MOST_SHOWN])) or "none",
            where=f"topic {name}",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
    for number, replicas in assignment.items():
        check_replicas(TopicPartition(name, number), replicas, cluster)
    if len(factors) > 1:
        raise AdminError(
            expected="as many replicas for every partition",
            seen=" and ".join(str(factor) for factor in sorted(factors)),
            where=f"topic {name}",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )


def check_replicas(
    key: TopicPartition, replicas: tuple[int, ...], cluster: ClusterTopics, where: str = ""
) -> None:
    """Check the replicas of a partition: at least one, none twice, all on live brokers.

    Args:
        key: the partition.
        replicas: its replicas.
        cluster: the state of the cluster.
        where: the place that an error names.

    Raises:
        AdminError: otherwise.
    """
    where = f"{where}: partition {key}" if where else f"partition {key}"
    wrong = _wrong_with(replicas, cluster)
    if wrong is not None:
        expected, seen = wrong
        raise AdminError(expected=expected, seen=seen, where=where, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT)


def _wrong_with(replicas: tuple[int, ...], cluster: ClusterTopics) -> tuple[str, str] | None:
    """Expected and seen; None if the value is right."""
    if not replicas:
        return "at least one replica", "none"
    if len(replicas) > len(cluster.brokers):
        return f"at most {len(cluster.brokers)} replicas, the number of brokers", str(len(replicas))
    if len(set(replicas)) < len(replicas):
        return "each broker once", f"replicas {', '.join(str(broker) for broker in replicas)}"
    dead = [broker for broker in replicas if broker not in cluster.brokers]
    if dead:
        alive = ", ".join(str(broker) for broker in cluster.brokers)
        return f"replicas on live brokers ({alive})", f"broker {dead[0]}"
    return None


def delete_topic(name: str) -> ZooKeeperSteps:
    """Mark a topic for deletion. The controller deletes the replicas and then the topic's nodes."""
    cluster: ClusterTopics = yield from read_cluster({name})
    cluster.topic(name, "delete")
    reply = yield Create(znodes.delete_topic_path(name))
    _done(reply, f"topic {name}", "a topic that is not marked for deletion yet")


def add_partitions(
    name: str,
    partitions: int,
    assignment: Sequence[tuple[int, ...]] | None = None,
    *,
    validate_only: bool = False,
) -> ZooKeeperSteps:
    """Increase the number of partitions. Replicas are placed as if all partitions had been placed at once.

    Args:
        name: the topic.
        partitions: the new number of partitions.
        assignment: the replicas of each new partition; None: they are placed.
        validate_only: do everything but the write.

    Returns:
        the steps; their result is the whole assignment.

    Raises:
        AdminError: if the request is invalid.
        ReplicationFactorError: if there are fewer brokers than replicas.
    """
    cluster: ClusterTopics = yield from read_cluster({name})
    topic = cluster.topic(name, "alter")
    where, count = f"topic {name}", len(topic.assignment)
    if partitions <= count:
        raise AdminError(
            expected=f"more than its {count} partitions: their number can only be increased",
            seen=str(partitions),
            where=where,
            code=ErrorCode.INVALID_PARTITIONS,
        )
    check_count(partitions, where)
    if any(key.topic == name for key in cluster.reassigning):
        raise AdminError(
            expected="a topic without a reassignment in progress",
            seen="a reassignment in progress",
            where=where,
            hint="wait until fencepost cluster reassign --verify says that it is completed",
            code=ErrorCode.REASSIGNMENT_IN_PROGRESS,
        )
    if assignment is None:
        added = _place_more(topic, partitions, cluster.live_brokers(where))
    else:
        added = dict(enumerate(assignment, count))
        _may_be_added(name, topic, partitions, added, cluster)
    everything = {**topic.assignment, **added}
    write = SetData(znodes.topic_path(name), znodes.encode_topic(everything), topic.version)
    fitting(write, where)
    if not validate_only:
        _done((yield write), where, "a topic that no other client changes")
    return everything


def _place_more(topic: Topic, partitions: int, brokers: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    count, start = len(topic.assignment), _start(brokers, topic.assignment)
    return place_replicas(
        brokers,
        partitions=partitions - count,
        replication_factor=topic.replication_factor,
        start=start,
        shift=start,
        first_partition=count,
    )


def _may_be_added(
    name: str, topic: Topic, partitions: int, added: Assignment, cluster: ClusterTopics
) -> None:
    where, more = f"topic {name}", partitions - len(topic.assignment)
    if len(added) != more:
        raise AdminError(
            expected=f"replicas for {more} more partitions",
            seen=f"for {len(added)}",
            where=where,
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
    _may_be_assigned(name, added, cluster, len(topic.assignment))
    factor = len(next(iter(added.values())))
    if factor != topic.replication_factor:
        raise AdminError(
            expected=f"{topic.replication_factor} replicas, as partition 0 has",
            seen=str(factor),
            where=where,
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )


def _start(brokers: tuple[int, ...], assignment: Assignment) -> int:
    """The broker of partition 0 at its placement; the first broker if that one is gone."""
    first = assignment[min(assignment)][0]
    return next((place for place, broker in enumerate(brokers) if broker >= first), 0)


def describe_topics(names: Collection[str] | None = None) -> ZooKeeperSteps:
    """PartitionDescriptions of these topics, or all, sorted. Raises AdminError for one that does not
    exist."""
    cluster: ClusterTopics = yield from read_cluster(names)
    for name in names or ():
        if name not in cluster.topics:
            cluster.topic(name, "describe")
    keys = cluster.partitions()
    states = cast(dict[TopicPartition, LeaderAndIsr], (yield from read_states(keys)))
    return [
        PartitionDescription(
            partition=key,
            replicas=cluster.topics[key.topic].assignment[key.partition],
            state=states.get(key),
            target=cluster.reassigning.get(key),
            deleting=key.topic in cluster.deleting,
        )
        for key in keys
    ]


def _done(reply: object, where: str, expected: str, code: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> None:
    """Check the reply to a write; another client may have been faster. code: the error code in that case;
    retriable by default."""
    if isinstance(reply, Failed):
        raise ChangedMeanwhileError(
            expected=expected,
            seen=f"that another was faster ({reply.error.value})",
            where=where,
            hint="ask again",
            code=code,
        )
