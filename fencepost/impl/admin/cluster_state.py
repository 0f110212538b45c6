"""The state of a cluster that an admin command needs before it writes, and its refusals. Owns the reading.
Must not know the request.

A command is a procedure of ZooKeeper requests (impl/core/procedures.py); its runner passes it the replies.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from attrs import frozen

from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import GROUPED, JUTE_MAXBUFFER, REQUEST_BYTES, write_size
from fencepost.impl.zookeeper.interface import Create, Data, GetChildren, GetData, SetData, names_of
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.kafka_names.outcomes import ErrorCode

Assignment = Mapping[int, tuple[int, ...]]
Named = TypeVar("Named", bound=Hashable)


class AdminError(FencepostError, ValueError):
    """The cluster cannot carry out a request in its current state; nothing was written. code: the error code
    of a broker's response."""

    def __init__(
        self,
        *,
        expected: str,
        seen: str,
        where: str,
        hint: str = "",
        code: ErrorCode = ErrorCode.INVALID_REQUEST,
    ) -> None:
        super().__init__(expected=expected, seen=seen, where=where, hint=hint)
        self.code = code


class ChangedMeanwhileError(AdminError):
    """The data had changed between read and write: another client was faster. A retry reads again."""


@frozen
class Topic:
    """Assigned replicas by partition number, and the version of the topic's node."""

    assignment: Assignment
    version: int

    @property
    def replication_factor(self) -> int:
        """The replication factor of the first partition."""
        return len(self.assignment[min(self.assignment)])


@frozen(kw_only=True)
class ClusterTopics:
    """The state of a cluster."""

    # Live brokers, sorted.
    brokers: tuple[int, ...]
    # The names of all topics.
    names: tuple[str, ...]
    # Those of the requested topics that exist.
    topics: Mapping[str, Topic]
    # Topics marked for deletion.
    deleting: frozenset[str]
    # The targets of the current reassignment; empty without one.
    reassigning: Mapping[TopicPartition, tuple[int, ...]]
    # Whether a preferred election is in progress.
    electing: bool

    def topic(self, name: str, where: str) -> Topic:
        """A topic that must exist and must not be marked for deletion.

        Args:
            name: the topic.
            where: the place that an error names.

        Returns:
            the topic.

        Raises:
            AdminError: if there is no such topic.
        """
        if name not in self.topics:
            raise AdminError(
                expected="a topic that exists",
                seen=unknown_name(name, self.names),
                where=where,
                hint="fencepost cluster topics list shows which do",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        if name in self.deleting:
            raise AdminError(
                expected="a topic that stays",
                seen=f"{name}, which is marked for deletion",
                where=where,
                code=ErrorCode.INVALID_TOPIC_EXCEPTION,
            )
        return self.topics[name]

    def live_brokers(self, where: str) -> tuple[int, ...]:
        """The brokers; at least one. Raises AdminError if there is none."""
        if not self.brokers:
            raise AdminError(
                expected="at least one live broker",
                seen="none",
                where=where,
                hint="start the cluster first",
                code=ErrorCode.INVALID_REPLICATION_FACTOR,
            )
        return self.brokers

    def partitions(self) -> list[TopicPartition]:
        """The partitions of the requested topics, sorted."""
        return sorted(
            TopicPartition(name, number) for name, topic in self.topics.items() for number in topic.assignment
        )


def read_cluster(names: Collection[str] | None = None) -> ZooKeeperSteps:
    """A ClusterTopics with these topics, or all. Raises AdminError for a node that cannot be read."""
    brokers, listed, deleting, reassigning, electing = yield (
        GetChildren(znodes.BROKER_IDS),
        GetChildren(znodes.TOPICS),
        GetChildren(znodes.DELETE_TOPICS),
        GetData(znodes.REASSIGN),
        GetData(znodes.PREFERRED_ELECTION),
    )
    existing = names_of(listed)
    wanted = [name for name in existing if names is None or name in names]
    nodes = {znodes.topic_path(name): znodes.TOPIC_BYTES for name in wanted}
    replies = yield from read_nodes(GROUPED, nodes)
    ids = (znodes.broker_of(name) for name in names_of(brokers))
    try:
        return ClusterTopics(
            brokers=tuple(sorted(broker for broker in ids if broker is not None)),
            names=existing,
            topics={
                name: Topic(znodes.decode_topic(reply.data, znodes.topic_path(name)), reply.stat.version)
                for name, reply in zip(wanted, replies, strict=True)
                if isinstance(reply, Data)
            },
            deleting=frozenset(names_of(deleting)),
            reassigning=(
                znodes.decode_reassignments(reassigning.data) if isinstance(reassigning, Data) else {}
            ),
            electing=isinstance(electing, Data),
        )
    except znodes.BadZnodeError as error:
        raise refused(error) from None


def refused(error: znodes.BadZnodeError) -> AdminError:
    """What a command that needs the node answers."""
    return AdminError(
        expected=error.expected,
        seen=error.seen,
        where=error.where,
        hint=error.hint,
        code=ErrorCode.UNKNOWN_SERVER_ERROR,
    )


def read_states(keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """The LeaderAndIsr of each partition that has one. Raises AdminError for one that cannot be read."""
    nodes = {znodes.state_path(key): znodes.state_bytes(8) for key in keys}
    replies = yield from read_nodes(GROUPED, nodes)
    try:
        return {
            key: znodes.decode_state(reply.data, reply.stat.version, path=path)
            for key, path, reply in zip(keys, nodes, replies, strict=True)
            if isinstance(reply, Data)
        }
    except znodes.BadZnodeError as error:
        raise refused(error) from None


def refuse_twice(names: Iterable[Named], what: str, where: str) -> None:
    """Check that no name occurs twice and that there is at least one.

    Args:
        names: topics or partitions.
        what: the kind of names, for the error.
        where: the place that an error names.

    Raises:
        AdminError: otherwise.
    """
    seen: dict[Named, None] = {}
    for name in names:
        if name in seen:
            raise AdminError(expected=f"each {what} once", seen=f"{name} twice", where=where)
        seen[name] = None
    if not seen:
        raise AdminError(expected=f"at least one {what}", seen="none", where=where)


def fitting(write: Create | SetData, where: str) -> Create | SetData:
    """The write, if it fits into one request. A larger node could be neither written nor read."""
    size = REQUEST_BYTES + write_size(write)[0]
    if size > JUTE_MAXBUFFER:
        raise AdminError(
            expected=f"at most {JUTE_MAXBUFFER:,} bytes in one ZooKeeper request (its jute.maxbuffer)",
            seen=f"{size:,}",
            where=where,
            hint="ask for fewer partitions at a time",
        )
    return write
