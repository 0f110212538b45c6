"""The state of the replication model: compact tuples, and the words to read them.

Owns: the layout of states, constants, and their description. Must not know actions or invariants.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from attrs import field, frozen

from fencepost.model.explore.system import Value
from fencepost.model.replication.epochs import Epochs
from fencepost.traces.errors import FencepostError
from fencepost.traces.names import did_you_mean
from fencepost.traces.protections import BY_NAME

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
"""The registered protections (traces/protections.py) that this model can drop."""

DOWN, NOBODY = -2, -1
"""In `Replica.leader`: the process is down; it runs and has no role."""

LogRecord = tuple[int, int]
"""(leader epoch, value id)."""

GONE: LogRecord = (-1, -1)
"""In a log: a record that retention deleted; those that are gone are the first ones, and the log starts after
them."""


Quorum = tuple[tuple[int, int], ...]
"""ZooKeeper's (leader, ISR as a bit set) of each leader epoch so far."""

Committed = tuple[tuple[int, int, int], ...]
"""Per offset (epoch, value, lowest leader epoch that exposed it)."""

Used = tuple[int, int, int]
"""Values appended, crashes, records lost: how much of the bounds is used."""


Listed = tuple[tuple[int, int], ...]
"""What leaders told clients by ListOffsets(latest), in order: (leader epoch, end)."""


class Replica(NamedTuple):
    """One replica.

    log: its records by offset. epochs: the leader epoch cache. high_watermark: what it believes to be
    committed. epoch: the highest leader epoch learned (after a restart: one below the lowest that it may
    learn). leader: whom it follows, itself if it leads, NOBODY or DOWN. truncating: a follower that has not
    yet agreed with its leader. ends: of a leader, each follower's log end as its last fetch in this epoch
    said (-1: none yet); the own slot holds the start offset of the epoch.
    """

    log: tuple[LogRecord, ...]
    epochs: Epochs
    high_watermark: int
    epoch: int
    leader: int
    truncating: bool
    ends: tuple[int, ...]


class ReplicationState(NamedTuple):
    """replicas: by number. quorum: ZooKeeper's (leader, ISR as a bit set) of each leader epoch so far, the
    last one current, each with the ISR that its leader wrote last: LeaderAndIsr of any of them may still be
    on its way. committed: a ghost: per offset (epoch, value, lowest leader epoch that exposed it). values,
    crashes, lost: how much of the bounds is used. listed: a ghost, empty unless the bounds ask for it.
    """

    replicas: tuple[Replica, ...]
    quorum: Quorum
    committed: Committed
    values: int
    crashes: int
    lost: int
    listed: Listed = ()


def _known_protections(names: Iterable[str]) -> frozenset[str]:
    """`names` as a set, or the caller's mistake in one sentence."""
    drop = frozenset(names)
    unknown = sorted(drop - DATA_PATH)
    if unknown:
        seen = ", ".join(
            name if name in BY_NAME else f"{name} (not registered){did_you_mean(name, DATA_PATH)}"
            for name in unknown
        )
        raise FencepostError(
            expected="names of protections of the data path",
            seen=seen,
            where="drop",
            hint=", ".join(sorted(DATA_PATH)),
        )
    return drop


@frozen(kw_only=True)
class Constants:
    """The bounds of the model. replicas; log_size: records in a log; epochs: highest leader epoch; values:
    appends; crashes: of all replicas together; losses: records that crashes may take from the ends of logs,
    together (any loss is an accepted hazard for COMMIT-SAFE: docs/spec/cluster.md,
    docs/explanation/model.md). lists: answers to ListOffsets that are remembered (0: nobody asks, and there
    are as many states as without them). log_starts: the highest offset that retention lets a log start at (0:
    nothing is deleted, and there are as many states as without it). old_format: 1 if records are not stamped
    with epochs, as before KIP-101, so that no replica has an epoch cache. drop: protections to do without, by
    registered name.
    """

    replicas: int = 3
    log_size: int = 2
    epochs: int = 1
    values: int = 2
    crashes: int = 0
    losses: int = 0
    lists: int = 0
    log_starts: int = 0
    old_format: int = 0
    drop: frozenset[str] = field(default=(), converter=_known_protections)

    def __attrs_post_init__(self) -> None:
        if self.old_format not in (0, 1):
            raise FencepostError(
                expected="0 or 1: one format of records", seen=str(self.old_format), where="old_format"
            )

    def keeps(self, protection: str) -> bool:
        """Whether it is not dropped."""
        return protection not in self.drop


def log_start_offset(log: tuple[LogRecord, ...]) -> int:
    """Where it starts: behind what is gone."""
    return log.count(GONE)


def renamed(numbers: Sequence[int], slot: int, value: Any) -> Value:
    """What the value of a slot becomes when replica r is called numbers[r]."""
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
