"""The refinement map: recorded events as actions of the replication model, partition by partition.

Owns which event is which action (`ACTIONS`), and one abstraction per partition. An event that no action
explains is a `Mismatch`. Must not know verdicts. The guards are the model's own (guards.py and replica_log.py
of model/replication); here logs are unbounded and values are real ids.

The real run is more concurrent than the model, so the guards are applied in a way that accepts each behaviour
of a correct Kafka:

- A follower's append is compared with what its leader's log had *at any time* of that leader epoch (it only
  grows), not with the current log.
- A leader learns a follower's log end from a fetch. So its high watermark may use any end that the follower
  had in this epoch, even one that a power loss has removed since.
- LeaderAndIsr may be late or lost, so a role may be of any leader epoch above the replica's own.
- A leader that restarted while there was no controller may lead its old epoch again, with an older high
  watermark and perhaps a shorter log (an accepted hazard).
- Nothing is compared below the start of a leader's log. The leader has forgotten where its epochs begin
  there, so a follower's records may differ there, until it takes over that start.
- A replica that was deleted, by a reassignment or with its topic, has no log. A later replica on the same
  broker is a new one.
- The unsynced tail after a power loss, and the writes of a step that a crash interrupted, are unknown until
  another replica copies them.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.model.refinement import decisions
from fencepost.model.refinement.high_watermark import high_watermark
from fencepost.model.refinement.log_guards import appended, log_recovered, log_start, replica_log, truncated
from fencepost.model.refinement.quorum import isr_updated, partition_state
from fencepost.model.refinement.refinement_state import POWER_LOSS, Mismatch, PartitionState
from fencepost.model.refinement.roles import became_follower, became_leader, broker_started, interrupted
from fencepost.traces.events import REPLICA_DELETED, Event, Name

__all__ = ["ACTIONS", "STEPS_WITHOUT_LOGS", "Mismatch", "Refinement"]

ACTIONS: Mapping[Name, tuple[str, ...]] = {
    Name.PARTITION_STATE: ("elect", "shrink_by_controller", "shrink_isr", "expand_isr"),
    Name.BECAME_LEADER: ("become_leader",),
    Name.BECAME_FOLLOWER: ("become_follower",),
    Name.APPENDED: ("append", "fetch"),
    Name.TRUNCATED: ("truncate", "out_of_range"),
    Name.HIGH_WATERMARK: ("advance_high_watermark", "fetch"),
    Name.ISR_UPDATED: ("shrink_isr", "expand_isr"),
    Name.LOG_RECOVERED: ("restart",),
    Name.BROKER_STARTED: ("restart",),
    Name.FAULT_BEGAN: ("crash",),
    Name.REPLICA_LOG: ("the final state",),
}
"""The possible actions of model/replication/replication_system.py for each event. Every other event changes
nothing here
(a stutter), including those that move a log's start or compact it. The logs here keep all their records. A
log that was fetched from a later start, or with the gaps of compaction, has unknown records there."""

INTERRUPTING = frozenset({Name.FAULT_BEGAN, Name.LOG_DIRECTORY_FAILED, Name.IMPLEMENTATION_ERROR})
"""What may stop a process in the midst of a step."""
LOSING = frozenset((POWER_LOSS, "bit_rot"))
"""The faults that may remove records from a log."""

_STEPS: Mapping[Name, Callable[[PartitionState, int, Event], Mismatch | None]] = {
    Name.PARTITION_STATE: partition_state,
    Name.BECAME_LEADER: became_leader,
    Name.BECAME_FOLLOWER: became_follower,
    Name.APPENDED: appended,
    Name.TRUNCATED: truncated,
    Name.HIGH_WATERMARK: high_watermark,
    Name.ISR_UPDATED: isr_updated,
    Name.LOG_RECOVERED: log_recovered,
    Name.LOG_START: log_start,
    Name.REPLICA_LOG: replica_log,
}
STEPS_WITHOUT_LOGS: Mapping[Name, Callable[[PartitionState, int, Event], Mismatch | None]] = {
    Name.PARTITION_STATE: decisions.partition_state,
    Name.BECAME_LEADER: decisions.became_leader,
    Name.BECAME_FOLLOWER: decisions.became_follower,
    Name.ISR_UPDATED: decisions.isr_updated,
}


def _no_topic(topic: str) -> bool:
    return False


@define
class Refinement:
    """Replays one trace's events."""

    # Whether a topic allows unclean leader election; called only if a leader comes from outside the ISR.
    allows_unclean: Callable[[str], bool] = _no_topic
    # Topics with logs that may have gaps.
    compacted: frozenset[str] = frozenset()
    # Whether replicas reported what they appended; otherwise only what needs no log is judged (decisions.py).
    logs_known: bool = True
    # The abstraction of each partition.
    partitions: dict[tuple[str, int], PartitionState] = field(factory=dict)
    # Partitions with an unexplained event: their later events are skipped.
    diverged: set[tuple[str, int]] = field(factory=set)
    # The number of explained events of each name.
    steps: Counter[Name] = field(factory=Counter)
    # Hosts that had a fault so far, for partitions that have not occurred yet.
    interrupted: dict[int, str] = field(factory=dict)

    def step(self, position: int, event: Event) -> Mismatch | None:
        """Process the event at `position` of the trace; returns the mismatch if no action explains it."""
        take = (_STEPS if self.logs_known else STEPS_WITHOUT_LOGS).get(event.name)
        if take is None:
            self._host(event)
            return None
        assert event.topic is not None, event
        key = event.topic, event.partition
        if key in self.diverged:
            return None
        partition = self.partitions.get(key)
        if partition is None:
            partition = self.partitions[key] = self._new_partition(event.topic)
        mismatch = take(partition, position, event)
        if mismatch is None:
            self.steps[event.name] += 1
        else:
            self.diverged.add(key)
        return mismatch

    def _new_partition(self, topic: str) -> PartitionState:
        partition = PartitionState(lambda: self.allows_unclean(topic), compacted=topic in self.compacted)
        for node, fault in self.interrupted.items():
            interrupted(partition, node, fault)
        return partition

    def _host(self, event: Event) -> None:
        """An event of a host applies to all its replicas."""
        if event.name is Name.BROKER_STARTED:
            for partition in self.partitions.values():
                broker_started(partition, event.node)
        elif event.name in INTERRUPTING and event.node >= 0:
            fault = POWER_LOSS if event.cause in LOSING else event.cause or "a file call failed"
            self.interrupted[event.node] = fault
            for partition in self.partitions.values():
                interrupted(partition, event.node, fault)
        elif event.name is Name.REASSIGNMENT and event.topic is not None:
            moved = self.partitions.get((event.topic, event.partition))
            if moved is not None:
                moved.reassigned = True
        elif event.name is Name.MARK and event.cause == REPLICA_DELETED:
            assert event.topic is not None, event
            deleted_from = self.partitions.get((event.topic, event.partition))
            if deleted_from is not None:
                deleted_from.replicas.pop(event.node, None)
