"""Topics: create, delete, add partitions, describe (C14). Owns the checks and the one write of each; the controller does the rest."""

from collections.abc import Callable, Collection, Mapping
from typing import cast

from attrs import frozen

from fencepost.impl.admin.cluster import (
    AdminError,
    Assignment,
    ClusterTopics,
    fitting,
    read_cluster,
    read_states,
)
from fencepost.impl.admin.configuration import CHANGE_PARENTS, change_of, check_config
from fencepost.impl.controller.placement import place_replicas
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition, is_legal_topic
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Failed, Multi, SetData, ZooKeeperError
from fencepost.impl.zookeeper.znodes import LeaderAndIsr

Draw = Callable[[int], int]
"""A number from 0 up to, not including, this one: where the placement of replicas starts."""


@frozen(kw_only=True)
class PartitionDescription:
    """One partition as ZooKeeper has it. state: None before it had its first leader. adding, removing: brokers, while it is reassigned."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    state: LeaderAndIsr | None
    target: tuple[int, ...] | None
    deleting: bool

    @property
    def under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return self.state is None or set(self.replicas) > set(self.state.isr)


def create_topic(
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    draw: Draw,
    assignment: Assignment | None = None,
    config: Mapping[str, str] | None = None,
) -> ZooKeeperSteps:
    """Place the replicas, or take an assignment, and create the topic's nodes; returns the assignment. config: overrides, which brokers are told of
    before there is a replica. Raises AdminError, ReplicationFactorError."""
    config = config or {}
    check_config(name, config)
    cluster: ClusterTopics = yield from read_cluster(())
    _may_be_created(name, cluster)
    if assignment is None:
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
    yield CHANGE_PARENTS
    configuration = znodes.encode_configuration(config)
    rest = (change_of(name), create) if config else (create,)
    reply = yield Multi((Create(znodes.config_path(name), configuration), *rest))
    if isinstance(reply, Failed) and (reply.error, reply.index) == (ZooKeeperError.NODE_EXISTS, 0):
        reply = yield Multi((SetData(znodes.config_path(name), configuration), *rest))
    _done(reply, f"topic {name}", "a topic that nobody else creates")
    return assignment


def _may_be_created(name: str, cluster: ClusterTopics) -> None:
    where = f"topic {name}"
    if not is_legal_topic(name):
        raise AdminError(
            expected="a name of 1 to 249 letters, digits, dots, underscores and hyphens",
            seen=repr(name),
            where="topic",
        )
    if name in cluster.names:
        gone = ", which is marked for deletion" if name in cluster.deleting else ""
        raise AdminError(expected="a new topic", seen=f"one that exists{gone}", where=where)
    collides = [other for other in cluster.names if other.replace(".", "_") == name.replace(".", "_")]
    if collides:
        raise AdminError(
            expected="a name that differs in more than dots and underscores from those of other topics",
            seen=f"topic {collides[0]}",
            where=where,
        )


def _may_be_assigned(name: str, assignment: Assignment, cluster: ClusterTopics) -> None:
    factors = {len(replicas) for replicas in assignment.values()}
    for number, replicas in assignment.items():
        check_replicas(TopicPartition(name, number), replicas, cluster)
    if len(factors) > 1:
        raise AdminError(
            expected="as many replicas for every partition",
            seen=" and ".join(str(factor) for factor in sorted(factors)),
            where=f"topic {name}",
        )


def check_replicas(
    key: TopicPartition, replicas: tuple[int, ...], cluster: ClusterTopics, where: str = ""
) -> None:
    """Replicas that a partition may be given: at least one, none twice, all on live brokers."""
    where = f"{where}: partition {key}" if where else f"partition {key}"
    listed = ", ".join(str(broker) for broker in replicas)
    if not replicas:
        raise AdminError(expected="at least one replica", seen="none", where=where)
    if len(replicas) > len(cluster.brokers):
        raise AdminError(
            expected=f"at most {len(cluster.brokers)} replicas, the number of brokers",
            seen=str(len(replicas)),
            where=where,
        )
    if len(set(replicas)) < len(replicas):
        raise AdminError(expected="each broker once", seen=f"replicas {listed}", where=where)
    dead = [broker for broker in replicas if broker not in cluster.brokers]
    if dead:
        alive = ", ".join(str(broker) for broker in cluster.brokers)
        raise AdminError(
            expected=f"replicas on live brokers ({alive})", seen=f"broker {dead[0]}", where=where
        )


def delete_topic(name: str) -> ZooKeeperSteps:
    """Mark it for deletion; the controller deletes the replicas and then its nodes."""
    cluster: ClusterTopics = yield from read_cluster({name})
    cluster.topic(name, "delete")
    reply = yield Create(znodes.delete_topic_path(name))
    _done(reply, f"topic {name}", "a topic that is not marked for deletion yet")


def add_partitions(name: str, partitions: int) -> ZooKeeperSteps:
    """Let the topic have so many; replicas are placed as if all had been placed at once. Returns the assignment."""
    cluster: ClusterTopics = yield from read_cluster({name})
    topic = cluster.topic(name, "alter")
    where, count = f"topic {name}", len(topic.assignment)
    if partitions <= count:
        raise AdminError(
            expected=f"more than its {count} partitions: their number can only be increased",
            seen=str(partitions),
            where=where,
        )
    if any(key.topic == name for key in cluster.reassigning):
        raise AdminError(
            expected="a topic whose partitions stay where they are",
            seen="a reassignment in progress",
            where=where,
            hint="wait until fencepost reassign --verify says that it is completed",
        )
    brokers = cluster.live_brokers(where)
    start = _start(brokers, topic.assignment)
    added = place_replicas(
        brokers,
        partitions=partitions - count,
        replication_factor=topic.replication_factor,
        start=start,
        shift=start,
        first_partition=count,
    )
    assignment = {**topic.assignment, **added}
    write = SetData(znodes.topic_path(name), znodes.encode_topic(assignment), topic.version)
    reply = yield fitting(write, where)
    _done(reply, where, "a topic that nobody else changes")
    return assignment


def _start(brokers: tuple[int, ...], assignment: Assignment) -> int:
    """Where partition 0 was placed; at the first broker if that one is gone."""
    first = assignment[min(assignment)][0]
    return next((place for place, broker in enumerate(brokers) if broker >= first), 0)


def describe_topics(names: Collection[str] | None = None) -> ZooKeeperSteps:
    """PartitionDescriptions of these topics, or all, sorted. Raises AdminError for one that does not exist."""
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


def _done(reply: object, where: str, expected: str) -> None:
    """A write that another one came before."""
    if isinstance(reply, Failed):
        raise AdminError(
            expected=expected,
            seen=f"that another was faster ({reply.error.value})",
            where=where,
            hint="ask again",
        )
