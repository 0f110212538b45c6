"""The invariants of the replication model, named as in the anomaly table.

Owns COMMIT-SAFE, LOG-MATCH, EPOCH-MONO, one leader per epoch, HW-MONO and HW-BOUNDS, on states and on steps;
and the `sometimes` goals that a useful exploration reaches. Must not know the bodies of actions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations, pairwise, permutations
from typing import Any

from fencepost.model.explore.transition_system import Action, Part, Value
from fencepost.model.replication.replication_state import (
    DOWN,
    GONE,
    Committed,
    Constants,
    Listed,
    Quorum,
    Replica,
    ReplicationState,
    log_start_offset,
)

ReplicaRecords = tuple[tuple[int, int], ...]
Shown = tuple[ReplicaRecords, int]
"""A replica's log and high watermark."""


def leader_holds_committed(leader: tuple[ReplicaRecords, int], committed: Committed) -> bool:
    """COMMIT-SAFE: a leader has every record that an exposed high watermark of its epoch or an earlier one
    covered.

    leader: a replica's log, and its epoch if it leads, else -1. Records that retention deleted count as
    present: HW-BOUNDS guarantees that they were committed.
    """
    log, own_epoch = leader
    return all(
        exposed_in > own_epoch or log[offset : offset + 1] in (((epoch, value),), (GONE,))
        for offset, (epoch, value, exposed_in) in enumerate(committed)
    )


def logs_match(one: Shown, other: Shown) -> bool:
    """LOG-MATCH: (offset, epoch) names one value, and two logs agree below the lower of their high
    watermarks, from the higher of their starts."""
    if one[0] == other[0]:
        return True
    lower = min(one[1], other[1])
    start = max(log_start_offset(one[0]), log_start_offset(other[0]))
    if one[0][start:lower] != other[0][start:lower]:
        return False
    return not any(a[0] == b[0] and a != b for a, b in zip(one[0], other[0], strict=False))


def epochs_grow_along_log(log: ReplicaRecords) -> bool:
    """EPOCH-MONO of a state: leader epochs never decrease along a log."""
    return all(earlier[0] <= later[0] for earlier, later in pairwise(log))


def lead_apart(one_number: int, other_number: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """No two replicas lead in one epoch; each is given as (the leader that it follows, epoch)."""
    return one[0] != one_number or other[0] != other_number or one[1] != other[1]


def listed_ends_grow(listed: Listed) -> bool:
    """HW-MONO: ListOffsets never returns less than an earlier answer of the same or an earlier leader epoch.
    (A deposed leader that does not know it may.)"""
    return all(one[0] > other[0] or one[1] <= other[1] for one, other in combinations(listed, 2))


def high_watermark_inside(shown: tuple[int, int, int]) -> bool:
    """HW-BOUNDS: log start offset <= high watermark <= log end offset, at each running replica."""
    start, high_watermark, end = shown
    return start <= high_watermark <= end


def exposes_one_content(before: ReplicationState, action: Action, after: ReplicationState) -> bool:
    """COMMIT-SAFE of a step: a high watermark never covers a record other than the one that an earlier high
    watermark covered.

    Args:
        before: the state before.
        action: the action.
        after: the state after.

    Returns:
        whether it holds.
    """
    if action[0] != "advance_high_watermark":
        return True
    leader = after.replicas[int(action[1])]
    return all(
        leader.log[offset] in ((epoch, value), GONE)
        for offset, (epoch, value, _) in enumerate(before.committed[: leader.high_watermark])
    )


def epochs_grow_at_brokers(before: ReplicationState, action: Action, after: ReplicationState) -> bool:
    """EPOCH-MONO of a step: a running broker's leader epoch never decreases.

    Args:
        before: the state before.
        action: the action.
        after: the state after.

    Returns:
        whether it holds.
    """
    return action[0] in ("crash", "restart") or all(
        one.epoch <= other.epoch for one, other in zip(before.replicas, after.replicas, strict=True)
    )


OF_STATES = ("COMMIT-SAFE", "LOG-MATCH", "EPOCH-MONO", "ONE-LEADER", "HW-MONO", "HW-BOUNDS")
"""The invariants of states. If several are violated, the first one names the violation."""

OF_STEPS: Mapping[str, Callable[[ReplicationState, Action, ReplicationState], bool]] = {
    "COMMIT-SAFE": exposes_one_content,
    "EPOCH-MONO": epochs_grow_at_brokers,
}


def _log(replica: Replica) -> Value:
    return replica.log


def _shown(replica: Replica) -> Value:
    return replica.log, replica.high_watermark


def _bounds(replica: Replica) -> Value:
    """A replica that is down satisfies HW-BOUNDS: its checkpoint is not in use."""
    if replica.leader == DOWN:
        return 0, 0, 0
    return log_start_offset(replica.log), replica.high_watermark, len(replica.log)


def _role(replica: Replica) -> Value:
    return replica.leader, replica.epoch


def _led_by(number: int, value: Any) -> Value:
    """A replica as a leader; the committed records unchanged."""
    if not isinstance(value, Replica):
        return value  # type: ignore[no-any-return]
    return value.log, value.epoch if value.leader == number else -1


def parts(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The invariants of states, partition by partition."""
    replicas = constants.replicas
    numbers, committed, listed = range(replicas), replicas + 1, replicas + 3
    pairs = tuple(combinations(numbers, 2))
    return {
        "COMMIT-SAFE": tuple(
            Part((n, committed), leader_holds_committed, partial(_led_by, n)) for n in numbers
        ),
        "LOG-MATCH": tuple(Part(pair, logs_match, _shown) for pair in pairs),
        "EPOCH-MONO": tuple(Part((n,), epochs_grow_along_log, _log) for n in numbers),
        "ONE-LEADER": tuple(Part(pair, partial(lead_apart, *pair), _role) for pair in pairs),
        "HW-MONO": (Part((listed,), listed_ends_grow),) if constants.lists else (),
        "HW-BOUNDS": tuple(Part((n,), high_watermark_inside, _bounds) for n in numbers),
    }


def _lead_both(one_number: int, other_number: int, one: Replica, other: Replica) -> bool:
    return one.leader == one_number and other.leader == other_number


def _fork(one: Replica, other: Replica) -> bool:
    return one.leader != DOWN and one.log[: len(other.log)] != other.log[: len(one.log)]


def _isr_is_its_leader(quorum: Quorum) -> bool:
    return quorum[-1][1] == 1 << quorum[-1][0]


def goals(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The goals that a useful exploration reaches."""
    replicas = constants.replicas
    numbers, quorum, committed = range(replicas), replicas, replicas + 1
    pairs = tuple(combinations(numbers, 2))
    return {
        "a record is committed": (Part((committed,), bool),),
        "two replicas lead at once": tuple(Part(pair, partial(_lead_both, *pair)) for pair in pairs),
        "two logs fork": tuple(Part(pair, _fork) for pair in permutations(numbers, 2)),
        "the ISR shrank to its leader": (Part((quorum,), _isr_is_its_leader),),
    }
