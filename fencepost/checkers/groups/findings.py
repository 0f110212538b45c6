"""How the groups judge names what it found, and the facts that are no violation.

Owns the making of findings and the value of a fact. Must not know the rules.
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
    """A finding about a group, or about one partition of it."""
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
    """Something that a correct group may show, counted with its cause.

    kind: `reprocessed` (records that a group got again), `gap` (records that it never got),
    `older_commit_won` (what was read back is an older commit of unknown outcome, or a concurrent one, though
    a newer one was acknowledged). cause: `crash`, `rebalance`, `same_member`, `loss`,
    `commit_before_processing`, `unknown_outcome`, `concurrent` or `not_known`. count: records, or fetches;
    operations and offset: the first example.
    """

    kind: str
    cause: str
    group: str
    topic: str
    partition: int
    count: int
    offset: int
    operations: tuple[int, ...]
