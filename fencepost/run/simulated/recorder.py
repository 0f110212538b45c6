"""The record of a simulated run, and the facts that its events add up to.

Owns what ZooKeeper's commits and the hosts' effects are in a trace. Must not act on what it hears.
"""

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import WatchKind
from fencepost.record.observed_state import Assignments, ObservedState
from fencepost.run.record import Record
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import Scheduler
from fencepost.sim.zookeeper import Commit
from fencepost.sim.zookeeper_tree import Change
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation


class Recorder(Record, Observer):
    """The record of a simulated run, in virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self.observed_state = ObservedState()
        self.scheduler: Scheduler | None = None
        # Whether ends may be trusted now (the final phase).
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

    def began(self, node: int, operation: Operation) -> None:
        """A client began an operation by itself, or has an answer to it.

        Args:
            node: the client's host.
            operation: the row so far.
        """
        self.row_began(operation)

    def completed(self, node: int, operation: Operation) -> None:
        """A client finished an operation.

        Args:
            node: the client's host.
            operation: the complete row.
        """
        self.row_done(operation)

    def trusted(self, operation: Operation) -> bool:
        """Whether this is an end that may be trusted, in the final phase."""
        return self.strong and self.observed_state.trusts(operation)
