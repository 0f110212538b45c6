"""The record of a run: events and operations as they happen, and the facts they add up to.

Owns the lists. It hears ZooKeeper's commits and the hosts' effects; must not act on what it hears.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from attrs import evolve

from fencepost.campaign.observed.observed_state import Assignments, ObservedState
from fencepost.impl.client.attempt import Attempt, complete
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import WatchKind
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import Scheduler
from fencepost.sim.zookeeper import Commit
from fencepost.sim.zookeeper_tree import Change
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, remake_operation
from fencepost.traces.plan import PlannedOperation


class Recorder(Observer):
    """events: in the order in which they happened. strong: whether ends may be trusted now (the final phase).
    operations: completed ones; invoked: (operation, process, invoke time) of those under way, by op id;
    begun: (row, invoke time) of those under way that clients began by themselves; answered: when their
    answers came, of those that wait for something else to count."""

    def __init__(self) -> None:
        self.observed_state = ObservedState()
        self.events: list[Event] = []
        self.operations: list[Operation] = []
        self.invoked: dict[int, tuple[PlannedOperation, int]] = {}
        self.begun: dict[int, tuple[Operation, int]] = {}
        self.answered: dict[int, int] = {}
        self.scheduler: Scheduler | None = None
        self.strong = False

    @property
    def now(self) -> int:
        """Virtual time."""
        assert self.scheduler is not None
        return self.scheduler.now

    # ---- events

    def recorded(self, event: Event) -> None:
        """Take one event down."""
        self.events.append(event)
        self.observed_state.learn(event)

    def note(
        self, name: Name, *, node: int = -1, cause: str = "", detail: dict[str, Any] | None = None
    ) -> None:
        """Record an event of the run itself.

        Args:
            name: the event.
            node: where; -1: nowhere in particular.
            cause: its cause.
            detail: further values.
        """
        text = msgspec.json.encode(detail).decode() if detail else ""
        self.recorded(Event(time=self.now, name=name, node=node, cause=cause, detail=text))

    def busy(self, node: int, since: int) -> None:
        """A process had no time for anything else."""
        self.note(Name.BUSY, node=node, detail={"since": since})

    def committed(self, commit: Commit) -> None:
        """ZooKeeper committed a write."""
        for change in commit.changes:
            if change.path == znodes.CONTROLLER:
                self._controller(commit, change)
            elif change.path == znodes.CONTROLLER_EPOCH:
                epoch = int(change.data or b"0")
                self.recorded(
                    Event(
                        time=commit.time, name=Name.CONTROLLER_EPOCH, node=commit.node, controller_epoch=epoch
                    )
                )
            elif (key := znodes.partition_of_state_path(change.path)) is not None:
                self._state(commit, change, key)
            else:
                self._administration(commit, change)

    def _administration(self, commit: Commit, change: Change) -> None:
        """Of the other nodes: registrations, assignments, and what is below /admin."""
        gone = change.kind is WatchKind.DELETED
        parent, _, name = change.path.rpartition("/")
        if parent == znodes.BROKER_IDS and (broker := znodes.broker_of(name)) is not None:
            epoch = -1 if gone else change.zxid
            self.recorded(Event(time=commit.time, name=Name.BROKER_ZNODE, node=broker, broker_epoch=epoch))
        elif parent == znodes.TOPICS:
            known = {
                key: ids for key, ids in self.observed_state.assignments.items() if key[0] == name and ids
            }
            now = {} if gone else znodes.decode_topic(change.data)
            current = {(name, number): ids for number, ids in now.items()}
            self._replicas(commit, Name.ASSIGNMENT, known, current)
        elif change.path == znodes.REASSIGN:
            entries = {} if gone else znodes.decode_reassignments(change.data)
            current = {(key.topic, key.partition): ids for key, ids in entries.items()}
            self._replicas(commit, Name.REASSIGNMENT, self.observed_state.reassigning, current)
        elif parent == znodes.DELETE_TOPICS:
            cause = "done" if gone else "requested"
            self.recorded(
                Event(time=commit.time, name=Name.TOPIC_DELETION, node=commit.node, topic=name, cause=cause)
            )

    def _replicas(self, commit: Commit, name: Name, known: Assignments, current: Assignments) -> None:
        """One event for each partition of which something else is said now."""
        for key in sorted(known.keys() | current.keys()):
            if known.get(key, ()) != current.get(key, ()):
                topic, partition = key
                replicas = current.get(key, ())
                self.recorded(
                    Event(
                        time=commit.time,
                        name=name,
                        node=commit.node,
                        topic=topic,
                        partition=partition,
                        replicas=replicas,
                    )
                )

    def _controller(self, commit: Commit, change: Change) -> None:
        named = -1 if change.kind is WatchKind.DELETED else znodes.decode_controller(change.data)
        self.recorded(Event(time=commit.time, name=Name.CONTROLLER_ZNODE, node=commit.node, leader=named))

    def _state(self, commit: Commit, change: Change, key: TopicPartition) -> None:
        if change.kind is WatchKind.DELETED:
            return
        state = znodes.decode_state(change.data, change.version)
        self.recorded(
            Event(
                time=commit.time,
                name=Name.PARTITION_STATE,
                node=commit.node,
                topic=key.topic,
                partition=key.partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                controller_epoch=state.controller_epoch,
                isr=state.isr,
                zk_version=state.zk_version,
            )
        )

    # ---- operations

    def invoke(self, operation: PlannedOperation) -> None:
        """A client is about to begin an operation."""
        self.invoked[operation.op_id] = (operation, self.now)

    def began(self, node: int, operation: Operation) -> None:
        """A client began an operation by itself; or an answer came to one that is complete later, with its
        transaction.

        Args:
            node: the client's host.
            operation: the row so far.
        """
        if operation.op_id in self.begun:
            self.begun[operation.op_id] = (operation, self.begun[operation.op_id][1])
            self.answered[operation.op_id] = self.now
        else:
            self.begun[operation.op_id] = (operation, self.now)

    def completed(self, node: int, operation: Operation) -> None:
        """A client finished an operation.

        Args:
            node: the client's host.
            operation: the complete row.
        """
        under_way = self.begun if operation.op_id in self.begun else self.invoked
        _, invoke_time = under_way.pop(operation.op_id)
        answered = self.answered.pop(operation.op_id, self.now)
        completed = remake_operation(
            operation,
            invoke_time=invoke_time,
            completion_time=None if operation.completion_time is None else answered,
            strong=self.strong and self._by_current_leader(operation),
        )
        self.operations.append(completed)

    def _by_current_leader(self, operation: Operation) -> bool:
        """Whether this is an end that may be trusted: ListOffsets waits for the high watermark to reach the
        leader's epoch (KIP-207), and the leader that answered is the one that ZooKeeper names still, so that
        no other could have acknowledged anything meanwhile."""
        if operation.function is not Function.LIST_OFFSETS or operation.outcome is not Outcome.OK:
            return False
        assert operation.topic is not None and operation.partition is not None
        partition = self.observed_state.partition((operation.topic, operation.partition))
        return (operation.node, operation.leader_epoch) == (partition.leader, partition.leader_epoch)

    def finished_operations(self, undecided: Mapping[int, Operation] | None = None) -> tuple[Operation, ...]:
        """All operations by invoke time. Of those still under way an append is unknown and a read has learnt
        nothing. undecided: rows of some of them, where their clients know more."""
        hanging = [
            evolve(undecided[op_id], invoke_time=invoke_time, completion_time=None)
            if undecided and op_id in undecided
            else unfinished(
                planned, invoke_time, Outcome.UNKNOWN if planned.function == "append" else Outcome.FAIL
            )
            for op_id, (planned, invoke_time) in self.invoked.items()
        ]
        hanging += [evolve(row, invoke_time=invoke_time) for row, invoke_time in self.begun.values()]
        everything = self.operations + hanging
        return tuple(sorted(everything, key=lambda operation: (operation.invoke_time, operation.op_id)))


def crash_row(planned: PlannedOperation, session: int, now: int) -> Operation:
    """The row of a consumer's process that ends at once.

    Args:
        planned: as the plan has it.
        session: how often the process had begun before.
        now: nanoseconds.
    """
    return Operation(
        op_id=planned.op_id,
        process=planned.process,
        session=session,
        function=Function.CRASH,
        invoke_time=now,
        completion_time=now,
        outcome=Outcome.OK,
    )


def unfinished(planned: PlannedOperation, invoke_time: int, outcome: Outcome) -> Operation:
    """The row of an operation that nobody answered.

    Args:
        planned: as the plan has it.
        invoke_time: virtual nanoseconds.
        outcome: what is known of it.
    """
    attempt = Attempt(planned, TopicPartition(planned.topic, planned.partition))
    return evolve(
        complete(planned.process, attempt, outcome).operation, invoke_time=invoke_time, completion_time=None
    )
