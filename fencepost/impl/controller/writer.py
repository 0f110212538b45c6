"""The controller's writes to ZooKeeper: fenced by the version of /controller_epoch, and by CAS on each
partition's state (C3).

Owns the two checks and the handling of their failures, and how many writes or reads are in one request. Must
not know the purpose of a write.

    1. the controller pauses (GC); its session expires; another broker becomes controller and writes
       /controller_epoch
    2. the old one resumes in the middle of a procedure, on a new session, and writes what it had decided
    3. multi[check /controller_epoch version, write] refuses: the version moved; the old controller resigns

Groups: the members of a group are written together or not at all, so one conflict (a leader changed an ISR)
refuses them all. They are then written one by one, each under the same fence, so that the conflict affects no
other member.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from attrs import define

from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.procedures import Pipelined, ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import Size, groups, write_size
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.events import Name

ASSIGNMENT_ATTEMPTS = 16
"""Rounds of one change of a topic's node: each is lost to an admin tool that adds partitions."""
MOST_BELOW = 10_000
"""Requests for what lies below one node that is removed; our own nodes have two below them."""
Member = tuple[zk.WriteOperation, ...]
"""Writes that are applied together or not at all."""


class ControllerMovedError(Exception):
    """Another controller has taken over; a procedure that gets this resigns. It never leaves the
    controller."""


@define
class ControllerWriter:
    """Writes for the controller with the epoch in the context."""

    broker_context: BrokerContext

    def fenced_zookeeper_write(self, context: ControllerContext) -> tuple[zk.WriteOperation, ...]:
        """Protection KAFKA-6082: the check that every controller write has in the same transaction."""
        return (zk.Check(znodes.CONTROLLER_EPOCH, context.epoch_version),)

    def write(self, context: ControllerContext, *operations: zk.WriteOperation) -> ZooKeeperSteps:
        """Apply all operations or none. Returns MultiDone, or Failed with `index` counted among `operations`.
        Raises ControllerMovedError."""
        (reply,) = yield from self.write_all(context, (operations,))
        return reply

    def write_all(self, context: ControllerContext, members: Sequence[Member]) -> ZooKeeperSteps:
        """Apply each member independently of the others, in few round trips. No member may depend on another.

        Args:
            context: the controller's state.
            members: the groups of operations.

        Returns:
            the steps; their result has for each member what `write` returns.

        Raises:
            ControllerMovedError: if another controller has taken over.
        """
        assert context.epoch_version >= 0, (
            "a controller that was never elected writes nothing: its fence would fit any version"
        )
        fence = self.fenced_zookeeper_write(context)
        grouping, sizes = self.broker_context.grouping, [_size(member) for member in members]
        made = groups(range(len(members)), sizes.__getitem__, grouping, _size(fence))
        replies: list[Any] = [None] * len(members)
        alone: list[list[int]] = []
        for group, reply in zip(made, (yield from self._write(context, fence, members, made)), strict=True):
            if isinstance(reply, zk.MultiDone):
                done = iter(reply.replies)
                for place in group:
                    replies[place] = zk.MultiDone(tuple(islice(done, len(members[place]))))
            else:
                replies[group[0] : group[-1] + 1] = [reply] * len(group)
                alone += self.written_alone(group)
        single = yield from self._write(context, fence, members, alone)
        for (place,), reply in zip(alone, single, strict=True):
            replies[place] = reply
        return replies

    def written_alone(self, group: list[int]) -> list[list[int]]:
        """After one conflict, write the members of the refused group one by one."""
        return [[place] for place in group] if len(group) > 1 else []

    def _write(
        self,
        context: ControllerContext,
        fence: tuple[zk.WriteOperation, ...],
        members: Sequence[Member],
        made: list[list[int]],
    ) -> ZooKeeperSteps:
        """One multi for each group of members. Returns their replies, without the part of the fence."""
        requests = tuple(
            zk.Multi((*fence, *chain.from_iterable(members[place] for place in group))) for group in made
        )
        replies = (yield Pipelined(requests, self.broker_context.grouping.window)) if requests else []
        return [self._without_fence(context, reply, len(fence)) for reply in replies]

    def _without_fence(
        self, context: ControllerContext, reply: zk.MultiDone | zk.Failed, fence: int
    ) -> zk.MultiDone | zk.Failed:
        if isinstance(reply, zk.MultiDone):
            return zk.MultiDone(reply.replies[fence:])
        assert isinstance(reply, zk.Failed), reply
        if reply.index < fence:
            self.broker_context.record(
                Name.CONTROLLER_WRITE_REFUSED, controller_epoch=context.epoch, detail=reply.error.value
            )
            raise ControllerMovedError(f"/controller_epoch is no longer at version {context.epoch_version}")
        return zk.Failed(reply.error, reply.index - fence, reply.results[fence:])

    # ---- partition states

    def read_states(
        self, context: ControllerContext, keys: Collection[TopicPartition], *, watch: bool = False
    ) -> ZooKeeperSteps:
        """Read partitions' states into the context, in groups.

        Args:
            context: the controller's state.
            keys: the partitions.
            watch: whether to watch the states.

        Returns:
            the steps; their result is the partitions that have a state.

        Raises:
            ControllerMovedError: if a later controller wrote one of the states.
        """
        replicas = max((len(context.assignments.get(key, ())) for key in keys), default=0)
        nodes = dict.fromkeys(znodes.state_paths(keys), znodes.state_bytes(replicas))
        found = yield from read_nodes(self.broker_context.grouping, nodes, watch=watch, read=_decoded)
        states = {key: state for key, state in zip(keys, found, strict=True) if type(state) is LeaderAndIsr}
        if len(states) < len(nodes):
            self._refuse_states(nodes, found)
        for state in states.values():
            if state.controller_epoch > context.epoch:
                written_by = state.controller_epoch
                raise ControllerMovedError(f"controller epoch {written_by} wrote a partition's state")
        context.states.update(states)
        return states

    def _refuse_states(self, paths: Collection[str], found: Sequence[Any]) -> None:
        """A state that cannot be read is none: Kafka's TopicPartitionStateZNode.decode does likewise."""
        for path, node in zip(paths, found, strict=True):
            if isinstance(node, zk.Data):
                try:
                    znodes.decode_state(node.data, 0, path=path)
                except znodes.BadZnodeError as error:
                    self.broker_context.refuse_znode(error)

    def create_states(
        self, context: ControllerContext, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> ZooKeeperSteps:
        """Write the first states of new partitions, in groups. Returns the partitions with a state of this
        controller in the context afterwards."""
        parents = dict.fromkeys(znodes.partition_paths(key)[0] for key in states)
        yield from self.write_all(context, [(zk.Create(path),) for path in parents])
        members: list[Member] = []
        for key, state in states.items():
            _, partition, path = znodes.partition_paths(key)
            members.append((zk.Create(partition), zk.Create(path, znodes.encode_state(state))))
        replies = yield from self.write_all(context, members)
        return (yield from self._settle(context, states, replies))

    def update_states(
        self, context: ControllerContext, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> ZooKeeperSteps:
        """Replace states by CAS on the versions in the context, in groups. A conflict affects no other
        partition; its current state is read. Returns the partitions written."""
        replies = yield from self.write_all(
            context,
            [
                (zk.SetData(path, znodes.encode_state(state), context.states[key].zk_version),)
                for path, (key, state) in zip(znodes.state_paths(states), states.items(), strict=True)
            ],
        )
        return (yield from self._settle(context, states, replies))

    def _settle(
        self,
        context: ControllerContext,
        states: Mapping[TopicPartition, LeaderAndIsr],
        replies: Sequence[zk.MultiDone | zk.Failed],
    ) -> ZooKeeperSteps:
        """Note the versions of written states. For the others read the current state: it may be ours, from an
        attempt with a lost reply."""
        written: dict[TopicPartition, None] = {}
        conflicts = []
        for (key, state), reply in zip(states.items(), replies, strict=True):
            if isinstance(reply, zk.MultiDone):
                last = reply.replies[-1]
                version = last.stat.version if isinstance(last, zk.Done) and last.stat is not None else 0
                context.states[key] = _written(state, version)
                written[key] = None
            else:
                conflicts.append(key)
        current = yield from self.read_states(context, conflicts)
        for key, found in current.items():
            if znodes.encode_state(found) == znodes.encode_state(states[key]):
                written[key] = None
        return written

    # ---- assignments

    def update_assignments(
        self, context: ControllerContext, assignments: Mapping[TopicPartition, tuple[int, ...]]
    ) -> ZooKeeperSteps:
        """Write assigned replicas into their topics' nodes. Other clients write other partitions of these
        nodes.

        Args:
            context: the controller's state.
            assignments: the replicas of each partition.

        Returns:
            the steps; their result is the partitions that are now assigned so.
        """
        written: dict[TopicPartition, None] = {}
        topics: dict[str, dict[int, tuple[int, ...]]] = {}
        for key, replicas in assignments.items():
            topics.setdefault(key.topic, {})[key.partition] = replicas
        for _ in range(ASSIGNMENT_ATTEMPTS):
            nodes = {znodes.topic_path(topic): znodes.TOPIC_BYTES for topic in topics}
            replies = yield from read_nodes(self.broker_context.grouping, nodes)
            changes = {}
            for topic, reply in zip(list(topics), replies, strict=True):
                current = self._assigned(topic, reply) if isinstance(reply, zk.Data) else {}
                wanted = current | topics[topic]
                if wanted != current and current:
                    data = znodes.encode_topic(wanted)
                    changes[topic] = (zk.SetData(znodes.topic_path(topic), data, reply.stat.version),)
                elif current:
                    written |= {TopicPartition(topic, number): None for number in topics[topic]}
            replies = yield from self.write_all(context, list(changes.values()))
            lost = {}
            for topic, reply in zip(changes, replies, strict=True):
                if isinstance(reply, zk.MultiDone):
                    written |= {TopicPartition(topic, number): None for number in topics[topic]}
                else:
                    lost[topic] = topics[topic]
            topics = lost
            if not topics:
                break
        return [key for key in assignments if key in written]

    def _assigned(self, topic: str, node: zk.Data) -> dict[int, tuple[int, ...]]:
        try:
            return znodes.decode_topic(node.data, znodes.topic_path(topic))
        except znodes.BadZnodeError as error:
            self.broker_context.refuse_znode(error)
            return {}

    # ---- removal

    def delete_all(self, context: ControllerContext, paths: Sequence[str]) -> ZooKeeperSteps:
        """Remove nodes in order, in groups; those that are gone already are fine. Children come before
        parents: a group waits for the one before. What somebody else has put below one of them is removed,
        too.

        Args:
            context: the controller's.
            paths: of the nodes.
        """
        for group in groups(
            paths, lambda path: write_size(zk.Delete(path)), self.broker_context.grouping, FENCE_SIZE
        ):
            replies = yield from self.write_all(context, [(zk.Delete(path),) for path in group])
            for path, reply in zip(group, replies, strict=True):
                if not isinstance(reply, zk.MultiDone) and reply.error is zk.ZooKeeperError.NOT_EMPTY:
                    yield from self._delete_with_children(context, path)
                else:
                    assert isinstance(reply, zk.MultiDone) or reply.error is zk.ZooKeeperError.NO_NODE, reply

    def _delete_with_children(self, context: ControllerContext, path: str) -> ZooKeeperSteps:
        """Depth first. A node that gets new children all the time stays."""
        doomed = [path]
        for _ in range(MOST_BELOW):
            if not doomed:
                return
            reply = yield from self.write(context, zk.Delete(doomed[-1]))
            if isinstance(reply, zk.Failed) and reply.error is zk.ZooKeeperError.NOT_EMPTY:
                listed = yield zk.GetChildren(doomed[-1])
                doomed += [f"{doomed[-1]}/{name}" for name in zk.names_of(listed)]
            else:
                doomed.pop()

    def delete(self, context: ControllerContext, path: str) -> ZooKeeperSteps:
        """Remove a node; a missing node is fine.

        Args:
            context: the controller's state.
            path: the node.

        Returns:
            the steps.
        """
        yield from self.delete_all(context, (path,))


def _decoded(node: zk.Data) -> LeaderAndIsr | zk.Data:
    """The state, or the node as it is where it holds none."""
    try:
        return znodes.decode_state(node.data, node.stat.version, node.stat.mzxid)
    except znodes.BadZnodeError:
        return node


def _written(state: LeaderAndIsr, zk_version: int) -> LeaderAndIsr:
    """The state as written now."""
    return LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        isr=state.isr,
        zk_version=zk_version,
    )


def _size(operations: Member) -> Size:
    if len(operations) == 1:
        return write_size(operations[0])
    sizes = [write_size(operation) for operation in operations]
    return sum(request for request, _ in sizes), sum(answer for _, answer in sizes)


FENCE_SIZE = _size((zk.Check(znodes.CONTROLLER_EPOCH, 0),))
