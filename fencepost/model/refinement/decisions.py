"""Steps of a trace that has no log of any replica: decisions of the controllers, and what brokers made of
them.

Owns the guards of PARTITION_STATE, BECAME_LEADER, BECAME_FOLLOWER and ISR_UPDATED that need no log. Must not
know where the events come from. Real brokers log roles and ISRs, and not what they append. So the lengths of
logs, high watermarks and who may join an ISR are not judged.

Controllers may write for a leader (AlterPartition, KIP-497), so that the writer is not judged. A partition
that was ever reassigned may change ISR, replicas and leader in one write, so that its elections are not
judged from then on. A broker may report an ISR although its role was not understood: only its content counts.
"""

from fencepost.model.refinement.quorum import overwrites, skips_an_epoch
from fencepost.model.refinement.refinement_state import Mismatch, PartitionState, QuorumState
from fencepost.model.replication import guards
from fencepost.traces.events import Event

WITH_COPIES = frozenset({"eligible", "last_known"})
"""Causes of a state after KIP-966, in which the ISR may be empty, and its next leader is known to have what
was committed, or to be the last that may have it."""


def partition_state(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """elect or shrink_by_controller (the epoch grows), or shrink_isr or expand_isr (it does not).

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    before = partition.quorum.get(partition.epoch)
    isr = tuple(sorted(event.isr))
    wrong: Mismatch | None = None
    if before is None or event.leader_epoch != partition.epoch:
        wrong = None if before is None else _elects(partition, position, event, before)
        partition.quorum[event.leader_epoch] = QuorumState(event.leader, [isr], position)
    else:
        wrong = _changes(partition, position, event, before)
        before.isrs.append(isr)
    partition.epoch, partition.zk_version = event.leader_epoch, event.zk_version
    return wrong


def _elects(partition: PartitionState, position: int, event: Event, before: QuorumState) -> Mismatch | None:
    previous = before.isrs[-1]
    skipped = skips_an_epoch(partition, position, event)
    if skipped is not None or partition.reassigned or event.cause in WITH_COPIES:
        return skipped
    if guards.may_elect(event.leader, previous, event.isr, unclean=partition.unclean()):
        return None
    return Mismatch(
        position=position,
        action="elect",
        expected=f"a leader from the ISR {list(previous)} and nobody added to it, as no unclean election was "
        "allowed",
        seen=f"leader {event.leader}, ISR {list(event.isr)} in leader epoch {event.leader_epoch}",
        because=before.position,
    )


def _changes(partition: PartitionState, position: int, event: Event, before: QuorumState) -> Mismatch | None:
    action = "shrink_isr" if set(event.isr) <= set(before.isrs[-1]) else "expand_isr"
    led = event.leader == guards.NO_LEADER or event.leader in event.isr
    if event.leader != before.leader or not led:
        return Mismatch(
            position=position,
            action=action,
            expected=f"leader {before.leader} to stay in the ISR during leader epoch {event.leader_epoch}",
            seen=f"leader {event.leader}, ISR {list(event.isr)}",
            because=before.position,
        )
    return overwrites(partition, position, event, action)


def became_leader(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """become_leader: the controllers named it, with an ISR that they had decided.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    return _takes_role(partition, position, event, event.node) or isr_updated(partition, position, event)


def became_follower(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """become_follower: of the leader that the controllers named.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    return _takes_role(partition, position, event, event.leader)


def _takes_role(partition: PartitionState, position: int, event: Event, leader: int) -> Mismatch | None:
    epoch, state = event.leader_epoch, partition.quorum.get(event.leader_epoch)
    view = partition.replica(event.node)
    known, view.leader_epoch, view.leader = view.leader_epoch, epoch, leader
    action = "become_leader" if leader == event.node else "become_follower"
    if state is None or state.leader != leader:
        return Mismatch(
            position=position,
            action=action,
            expected="the leader that the controllers named in that leader epoch"
            + (f", {state.leader}" if state else ", which they had not begun"),
            seen=f"broker {event.node} took {leader} as the leader of epoch {epoch}",
            because=state.position if state else -1,
        )
    if not guards.may_learn(-1 if known is None else known, epoch, same_incarnation=known is not None):
        return Mismatch(
            position=position,
            action=action,
            expected=f"a leader epoch above {known}, which broker {event.node} had learned since its start",
            seen=f"leader epoch {epoch}",
        )
    return None


def isr_updated(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """The ISR that a leader uses: the controllers have, or had, decided it in that epoch.

    Args:
        partition: the abstraction.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    state = partition.quorum.get(event.leader_epoch)
    if state is None or tuple(sorted(event.isr)) in state.isrs:
        return None
    return Mismatch(
        position=position,
        action="shrink_isr",
        expected=f"an ISR that was decided in leader epoch {event.leader_epoch}: "
        f"{[list(isr) for isr in state.isrs]}",
        seen=f"leader {event.node} uses {sorted(event.isr)}",
        because=state.position,
    )
