"""Findings of the groups check, and the facts that are not violations.

Owns how findings are made and the value of a fact. Must not know the rules.
"""

from attrs import frozen

from fencepost.checkers.groups.history import Partition
from fencepost.checkers.verdict import Finding

CHECK = "groups"


def finding(
    anomaly: str,
    *,
    operations: tuple[int, ...],
    expected: str,
    seen: str,
    partition: Partition | None = None,
    offset: int = -1,
) -> Finding:
    """A finding about a group, or about one of its partitions.

    Args:
        anomaly: its name.
        operations: op ids of the proof, the convicting ones first.
        expected, seen: one clause each.
        partition: topic and partition; None: the finding is about the whole group.
        offset: the offset that it is about; -1 if none.

    Returns:
        the finding.
    """
    return Finding(
        anomaly=anomaly,
        check=CHECK,
        expected=expected,
        seen=seen,
        topic=partition[0] if partition else None,
        partition=partition[1] if partition else -1,
        offset=offset,
        operations=tuple(dict.fromkeys(operations)),
    )


@frozen(kw_only=True)
class GroupFact:
    """Something that a correct group may do, counted by cause."""

    # `reprocessed`: records that a group got again. `gap`: records that it never got. `older_commit_won`: a
    # fetch returned an older commit, of unknown outcome or concurrent, although a newer one was acknowledged.
    kind: str
    # `crash`, `rebalance`, `same_member`, `loss`, `expired`, `commit_before_processing`, `unknown_outcome`,
    # `concurrent` or `not_known`.
    cause: str
    # The consumer group.
    group: str
    # The topic.
    topic: str
    # The partition of the topic.
    partition: int
    # The number of records, or of fetches for `older_commit_won`.
    count: int
    # The offset of the first example.
    offset: int
    # The operations of the first example.
    operations: tuple[int, ...]
