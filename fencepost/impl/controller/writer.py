"""How the controller writes to ZooKeeper: fenced by the version of /controller_epoch, and by CAS on each partition's state (C3).

Owns the two checks and what their failure means. Must not know why anything is written.

    1. the controller pauses (GC); its session expires; another broker becomes controller and writes /controller_epoch
    2. the old one resumes in the middle of a procedure, on a new session, and writes what it had decided
    3. multi[check /controller_epoch version, write] refuses: the version moved; the old controller resigns
"""

from collections.abc import Generator
from typing import Any, TypeVar

from attrs import define

from fencepost.impl import znodes
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.messages import TopicPartition
from fencepost.impl.shell import Shell
from fencepost.impl.znodes import LeaderAndIsr
from fencepost.impl.zookeeper import (
    Check,
    Create,
    Data,
    Delete,
    Done,
    Failed,
    GetData,
    Multi,
    MultiDone,
    Request,
    SetData,
    WriteOperation,
    ZooKeeperError,
)
from fencepost.traces.events import Name

ASSIGNMENT_ATTEMPTS = 16
"""Rounds of one change of a topic's node: each is lost to an admin tool that adds partitions."""
GROUP_SIZE = 500
"""Writes in one multi: about 100 bytes each, so that a group is far below ZooKeeper's jute.maxbuffer of 1 MiB."""

Member = TypeVar("Member")
Steps = Generator[Request | tuple[Request, ...], Any, Any]


class ControllerMovedError(Exception):
    """Another controller has taken over; whoever sees this resigns. Never leaves the controller."""


@define
class ControllerWriter:
    """Writes on behalf of the controller whose epoch the context holds."""

    shell: Shell

    def fenced_zookeeper_write(self, context: ControllerContext) -> tuple[WriteOperation, ...]:
        """Protection KAFKA-6082: what every controller write carries in the same transaction."""
        return (Check(znodes.CONTROLLER_EPOCH, context.epoch_version),)

    def write(self, context: ControllerContext, *operations: WriteOperation) -> Steps:
        """Do all operations or none. Returns MultiDone, or Failed with `index` counted among `operations`. Raises ControllerMovedError."""
        assert context.epoch_version >= 0, (
            "a controller that was never elected writes nothing: its fence would fit any version"
        )
        fence = self.fenced_zookeeper_write(context)
        reply = yield Multi((*fence, *operations))
        if isinstance(reply, MultiDone):
            return MultiDone(reply.replies[len(fence) :])
        assert isinstance(reply, Failed), reply
        if reply.index < len(fence):
            self.shell.record(
                Name.CONTROLLER_WRITE_REFUSED, controller_epoch=context.epoch, detail=reply.error.value
            )
            raise ControllerMovedError(f"/controller_epoch is no longer at version {context.epoch_version}")
        return Failed(reply.error, reply.index - len(fence), reply.results[len(fence) :])

    # ---- partition states

    def read_state(self, context: ControllerContext, key: TopicPartition, *, watch: bool = False) -> Steps:
        """Read a partition's state into the context and return it, or None if it has none. Raises ControllerMovedError if a later controller wrote it."""
        reply = yield GetData(znodes.state_path(key), watch)
        if not isinstance(reply, Data):
            return None
        state = znodes.decode_state(reply.data, reply.stat.version, reply.stat.mzxid)
        self._not_written_by_successor(context, state)
        context.states[key] = state
        return state

    def _not_written_by_successor(self, context: ControllerContext, state: LeaderAndIsr) -> None:
        if state.controller_epoch > context.epoch:
            raise ControllerMovedError(f"controller epoch {state.controller_epoch} wrote a partition's state")

    def create_state(self, context: ControllerContext, key: TopicPartition, state: LeaderAndIsr) -> Steps:
        """Write a new partition's first state. Returns whether the context now holds a state of this controller's making."""
        partitions, partition, path = znodes.partition_paths(key)
        yield from self.write(context, Create(partitions))
        reply = yield from self.write(context, Create(partition), Create(path, znodes.encode_state(state)))
        if isinstance(reply, MultiDone):
            context.states[key] = _with_version(state, 0)
            return True
        current = yield from self.read_state(context, key)
        return current is not None and znodes.encode_state(current) == znodes.encode_state(state)

    def update_state(self, context: ControllerContext, key: TopicPartition, state: LeaderAndIsr) -> Steps:
        """Replace a partition's state by CAS on the version that the context holds. Returns False on a conflict, after reading what stands there."""
        expected = context.states[key].zk_version
        reply = yield from self.write(
            context, SetData(znodes.state_path(key), znodes.encode_state(state), expected)
        )
        if isinstance(reply, MultiDone):
            done = reply.replies[0]
            assert isinstance(done, Done) and done.stat is not None
            context.states[key] = _with_version(state, done.stat.version)
            return True
        current = yield from self.read_state(context, key)
        return current is not None and znodes.encode_state(current) == znodes.encode_state(state)

    def update_states(self, context: ControllerContext, states: dict[TopicPartition, LeaderAndIsr]) -> Steps:
        """As `update_state` for many, in groups. A conflict fails no other partition: the members of that group are written one by one. Returns the
        partitions written."""
        written: list[TopicPartition] = []
        for group in _groups(list(states)):
            reply = yield from self.write(
                context,
                *(
                    SetData(
                        znodes.state_path(key),
                        znodes.encode_state(states[key]),
                        context.states[key].zk_version,
                    )
                    for key in group
                ),
            )
            if isinstance(reply, MultiDone):
                for key, done in zip(group, reply.replies, strict=True):
                    assert isinstance(done, Done) and done.stat is not None
                    context.states[key] = _with_version(states[key], done.stat.version)
                written += group
                continue
            for key in group:
                if (yield from self.update_state(context, key, states[key])):
                    written.append(key)
        return written

    # ---- assignments

    def update_assignment(
        self, context: ControllerContext, key: TopicPartition, replicas: tuple[int, ...]
    ) -> Steps:
        """Write a partition's assigned replicas into its topic's node, of which others write other partitions. Returns whether it is written."""
        path = znodes.topic_path(key.topic)
        for _ in range(ASSIGNMENT_ATTEMPTS):
            current = yield GetData(path)
            if not isinstance(current, Data):
                return False
            assignment = znodes.decode_topic(current.data)
            if assignment.get(key.partition) == replicas:
                return True
            assignment[key.partition] = replicas
            data = znodes.encode_topic(assignment)
            reply = yield from self.write(context, SetData(path, data, current.stat.version))
            if isinstance(reply, MultiDone):
                return True
        return False

    # ---- removal

    def delete_all(self, context: ControllerContext, paths: list[str]) -> Steps:
        """Remove nodes in this order, in groups; those that are gone already are fine."""
        for group in _groups(paths):
            reply = yield from self.write(context, *(Delete(path) for path in group))
            if not isinstance(reply, MultiDone):
                for path in group:
                    yield from self.delete(context, path)

    def delete(self, context: ControllerContext, path: str) -> Steps:
        """Remove a node; one that is gone already is fine."""
        reply = yield from self.write(context, Delete(path))
        assert isinstance(reply, MultiDone) or reply.error is ZooKeeperError.NO_NODE, reply


def _groups(members: list[Member]) -> list[list[Member]]:
    return [members[begin : begin + GROUP_SIZE] for begin in range(0, len(members), GROUP_SIZE)]


def _with_version(state: LeaderAndIsr, version: int) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        isr=state.isr,
        zk_version=version,
    )
