"""The state of the replication model: compact tuples, and their description in words.

Owns the layout of states, constants, and their description. Must not know actions or invariants.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from attrs import frozen

from fencepost.model.dropped import Bounds
from fencepost.model.explore.transition_system import Value
from fencepost.model.replication.epoch_truncation import Epochs
from fencepost.traces.errors import FencepostError

DATA_PATH = frozenset(
    {
        "truncate_by_epoch",
        "truncate_below_own_epoch",
        "assign_epoch_on_election",
        "fetch_fencing",
        "isr_expand_after_epoch_start",
        "leader_epoch_fencing",
        "broker_epoch_fencing",
        "offset_not_available",
        "undefined_has_no_end",
        "keep_checkpointed",
        "below_high_watermark",
        "high_watermark_within_log",
        "high_watermark_follows_log_start",
    }
)
"""The registered protections (traces/protections) that this model can drop."""

DOWN, NOBODY = -2, -1
"""In `Replica.leader`: the process is down; the process runs without a role."""

LogRecord = tuple[int, int]
"""(leader epoch, value id)."""

GONE: LogRecord = (-1, -1)
"""In a log: a record that retention deleted. Deleted records are the first ones, and the log starts after
them."""


Quorum = tuple[tuple[int, int], ...]
"""ZooKeeper's (leader, ISR as a bit set) of each leader epoch so far."""

Committed = tuple[tuple[int, int, int], ...]
"""Per offset (epoch, value, lowest leader epoch that exposed it)."""

Used = tuple[int, int, int]
"""Values appended, crashes, records lost: the used part of the bounds."""


Listed = tuple[tuple[int, int], ...]
"""The answers of leaders to ListOffsets(latest), in order: (leader epoch, end)."""


class Replica(NamedTuple):
    """One replica."""

    # Its records by offset.
    log: tuple[LogRecord, ...]
    # The leader epoch cache.
    epochs: Epochs
    # Its high watermark.
    high_watermark: int
    # The highest leader epoch that it knows (after a restart: one below the lowest that it may learn).
    epoch: int
    # The leader that it follows; itself if it leads; NOBODY or DOWN.
    leader: int
    # Whether it is a follower that has not yet agreed with its leader.
    truncating: bool
    # On a leader: each follower's log end by its last fetch in this epoch (-1: none yet). Its own slot has
    # the start offset of the epoch.
    ends: tuple[int, ...]


class ReplicationState(NamedTuple):
    """A state of the model."""

    # The replicas, by number.
    replicas: tuple[Replica, ...]
    # ZooKeeper's (leader, ISR as a bit set) of each leader epoch so far; the last one is current. Each has
    # the last ISR that its leader wrote. LeaderAndIsr of any of them may still arrive.
    quorum: Quorum
    # A ghost variable: per offset (epoch, value, lowest leader epoch that exposed it).
    committed: Committed
    # Values appended so far.
    values: int
    # Crashes so far.
    crashes: int
    # Records lost so far.
    lost: int
    # A ghost variable: answers to ListOffsets; empty unless the bounds enable them.
    listed: Listed = ()


@frozen(kw_only=True)
class Constants(Bounds):
    """The bounds of the model."""

    PROTECTIONS: ClassVar[frozenset[str]] = DATA_PATH
    AREA: ClassVar[str] = "the data path"

    # The number of replicas.
    replicas: int = 3
    # The most records in a log.
    log_size: int = 2
    # The highest leader epoch.
    epochs: int = 1
    # The most appends.
    values: int = 2
    # The most crashes of all replicas together.
    crashes: int = 0
    # The most records that crashes may remove from the ends of logs, together. Any loss is an accepted hazard
    # for COMMIT-SAFE (docs/spec/cluster.md, docs/explanation/model.md).
    losses: int = 0
    # The most answers to ListOffsets that are recorded. 0: none is sent, and there are no additional states.
    lists: int = 0
    # The highest log start offset that retention may set. 0: nothing is deleted, and there are no additional
    # states.
    log_starts: int = 0
    # 1 if records have no epochs, as before KIP-101, so that no replica has an epoch cache.
    old_format: int = 0

    def __attrs_post_init__(self) -> None:
        if self.old_format not in (0, 1):
            raise FencepostError(
                expected="0 or 1: one format of records", seen=str(self.old_format), where="old_format"
            )


def log_start_offset(log: tuple[LogRecord, ...]) -> int:
    """The log start offset: the one after the deleted records."""
    return log.count(GONE)


def renamed(numbers: Sequence[int], slot: int, value: Any) -> Value:
    """The value of a slot after replica r is renamed to numbers[r]."""
    count = len(numbers)
    if slot < count:
        return _renamed_replica(numbers, value)
    if slot == count:
        return tuple((numbers[leader], _renamed_set(numbers, isr)) for leader, isr in value)
    return value  # type: ignore[no-any-return]


def _renamed_replica(numbers: Sequence[int], replica: Replica) -> Replica:
    ends = list(replica.ends)
    for number, end in enumerate(replica.ends):
        ends[numbers[number]] = end
    leader = numbers[replica.leader] if replica.leader >= 0 else replica.leader
    return replica._replace(leader=leader, ends=tuple(ends))


def _renamed_set(numbers: Sequence[int], isr: int) -> int:
    return sum(1 << after for number, after in enumerate(numbers) if isr >> number & 1)


def describe(state: ReplicationState) -> str:
    """The state on one line per replica, one for ZooKeeper."""
    leader, isr = state.quorum[-1]
    members = [replica for replica in range(len(state.replicas)) if isr >> replica & 1]
    lines = [f"ZooKeeper: epoch {len(state.quorum) - 1}, leader {leader}, ISR {members}"]
    for number, replica in enumerate(state.replicas):
        role = {DOWN: "down", NOBODY: "no role", number: f"leads epoch {replica.epoch}"}.get(
            replica.leader, f"follows {replica.leader} in epoch {replica.epoch}"
        )
        records = " ".join("gone" if record == GONE else f"{record[0]}:{record[1]}" for record in replica.log)
        waiting = ", truncating" if replica.truncating else ""
        lines.append(f"{number}: [{records}] high watermark {replica.high_watermark}, {role}{waiting}")
    return "\n".join(lines)
