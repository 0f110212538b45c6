"""Members and generations: which member may own which partition, and which commits are valid.

Owns partition_assigned_twice, partition_given_too_soon, generation_regressed, unassigned_poll and
stale_commit_accepted. Must not know offsets.
"""

from collections.abc import Iterator

from fencepost.checkers.groups.group_findings import finding
from fencepost.checkers.groups.history import NO_EPOCH, GroupHistory, GroupOperations, Join, Partition
from fencepost.checkers.verdict import Finding


def membership_findings(history: GroupHistory, group: GroupOperations) -> Iterator[Finding]:
    """Find violations of membership.

    Args:
        history: the groups of the trace.
        group: the group.

    Returns:
        at most one finding for each anomaly (and for each partition, if the anomaly is about one).
    """
    yield from _assigned_twice(group)
    yield from _given_too_soon(group)
    yield from _regressed(history, group)
    yield from _unassigned(group)
    yield from _stale_commits(history, group)


def _assigned_twice(group: GroupOperations) -> Iterator[Finding]:
    owner: dict[tuple[int, Partition], Join] = {}
    reported: set[Partition] = set()
    for join in group.joins:
        for partition in sorted(join.partitions):
            other = owner.setdefault((join.generation, partition), join)
            if other.member == join.member or partition in reported:
                continue
            reported.add(partition)
            yield finding(
                "partition_assigned_twice",
                partition=partition,
                operations=(join.op_id, other.op_id),
                expected=f"one member of group {group.name} with this partition in generation "
                f"{join.generation}",
                seen=f"operation {other.op_id} gave it to member {other.member}, operation {join.op_id} to "
                f"member {join.member}",
            )


def _given_too_soon(group: GroupOperations) -> Iterator[Finding]:
    """A cooperative member has its partitions until the answer to its SyncGroup: none of them may be in
    another member's assignment of that generation (KIP-429)."""
    for join, before in group.continued.values():
        for other in group.joins:
            given = sorted(before.partitions.keys() & other.partitions.keys())
            if other.generation != join.generation or other.member == join.member or not given:
                continue
            yield finding(
                "partition_given_too_soon",
                partition=given[0],
                operations=(other.op_id, join.op_id, before.op_id),
                expected=f"member {join.member} to give up in generation {join.generation} of group "
                f"{group.name} what it had by operation {before.op_id}, before another member gets it",
                seen=f"operation {other.op_id} gave it to member {other.member} in that generation",
            )
            return


def _regressed(history: GroupHistory, group: GroupOperations) -> Iterator[Finding]:
    """Check joins, in the order of invocation, against the highest generation known before each."""
    highest, op_id, at = -1, -1, 0
    epochs = {join.op_id: join.epoch for join in group.joins}
    for join in group.joins:
        while at < len(group.known) and group.known[at][0] + history.slack < join.invoke:
            if group.known[at][1] > highest:
                highest, op_id = group.known[at][1:]
            at += 1
        of_the_past = NO_EPOCH < join.epoch < epochs.get(op_id, NO_EPOCH)
        if join.generation < highest and not of_the_past:
            yield finding(
                "generation_regressed",
                operations=(join.op_id, op_id),
                expected=f"a generation of group {group.name} from {highest}, which operation {op_id} proves",
                seen=f"operation {join.op_id}, which began after that, joined generation {join.generation}",
            )
            return


def _unassigned(group: GroupOperations) -> Iterator[Finding]:
    assigned: dict[tuple[str, int], tuple[int, set[Partition]]] = {}
    for join in group.joins:
        assigned.setdefault((join.member, join.generation), (join.op_id, set()))[1].update(join.partitions)
    first: dict[tuple[int, Partition], tuple[str, int]] = {}
    for partition in sorted(group.got):
        for got in group.got[partition]:
            if got.generation < 0:
                continue
            joined = assigned.get((got.member, got.generation))
            other, poll = first.setdefault((got.generation, partition), (got.member, got.op_id))
            if joined is not None and partition not in joined[1]:
                yield finding(
                    "unassigned_poll",
                    partition=partition,
                    offset=got.offsets[0],
                    operations=(got.op_id, joined[0]),
                    expected=f"records of the partitions that operation {joined[0]} assigned to member "
                    f"{got.member}",
                    seen=f"operation {got.op_id} of that member and generation got offset {got.offsets[0]}",
                )
                break
            if joined is None and other != got.member:
                yield finding(
                    "partition_assigned_twice",
                    partition=partition,
                    operations=(got.op_id, poll),
                    expected=f"one member of group {group.name} with this partition in generation "
                    f"{got.generation}",
                    seen=f"operation {poll} of member {other} and operation {got.op_id} of member "
                    f"{got.member} got records of it",
                )
                break


def _stale_commits(history: GroupHistory, group: GroupOperations) -> Iterator[Finding]:
    for partition in sorted(group.commits):
        for commit in group.commits[partition]:
            if not commit.ok or commit.generation < 0:
                continue
            when, op_id = group.generation_known(commit.generation)
            if when + history.slack < commit.invoke:
                yield finding(
                    "stale_commit_accepted",
                    partition=partition,
                    offset=commit.offset,
                    operations=(commit.op_id, op_id),
                    expected=f"a commit of generation {commit.generation} to be refused once operation "
                    f"{op_id} had shown a higher one",
                    seen=f"operation {commit.op_id}, which began after that, was acknowledged",
                )
                break
