"""Elections of a real cluster, and what they allow to be lost.

Owns what an unclean election means for the claims of a run (docs/reference/claims.md). Must not know where
events come from.

A leader outside the ISR continues the log that it has: what it lacks is lost, from the first offset of its
epoch on, and nothing else (KIP-101: a follower keeps what it shares with its leader). The leader says where
its epoch begins. If it has records of an epoch that others had cut off, the loss begins where that epoch
began; `log_begins` asks for it, because only its log knows.
"""

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from fencepost.systems.apache_kafka.inside.states import ELIGIBLE, LAST_KNOWN, UNCLEAN, Key
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import LossRange

EVERYTHING = 1 << 62
"""An end above every offset."""
UNKNOWN = -1


@frozen(kw_only=True)
class Election:
    """A leader epoch that began with a new decision of a controller."""

    key: Key
    # Of the decision.
    time: int
    leader: int
    leader_epoch: int
    # The ISR that was replaced; (): it was empty or there was none.
    isr_before: tuple[int, ...]
    # UNCLEAN: outside the ISR; ELIGIBLE: of the eligible leader replicas; LAST_KNOWN: the last member of an
    # ISR that became empty; empty: clean.
    kind: str
    # Where the epoch began, as its leader said; UNKNOWN: it did not lead, or its log is lost.
    start_offset: int = UNKNOWN
    # That the leader knew then: below it everything is committed, and it has it.
    high_watermark: int = UNKNOWN

    @property
    def clean(self) -> bool:
        """Whether nothing that was committed can be lost by it."""
        return self.kind in ("", ELIGIBLE, LAST_KNOWN)


def elections_of(events: Iterable[Event]) -> tuple[Election, ...]:
    """Every change of leader in these events, but for the first of a partition. events: of a whole run."""
    seen = tuple(events)
    began = {
        (event.topic, event.partition, event.leader_epoch, event.node): event
        for event in reversed(seen)
        if event.name is Name.BECAME_LEADER
    }
    known: dict[Key, tuple[int, tuple[int, ...]]] = {}
    found = []
    for event in seen:
        if event.name is not Name.PARTITION_STATE or event.topic is None:
            continue
        key = event.topic, event.partition
        epoch, isr = known.get(key, (UNKNOWN, ()))
        known[key] = event.leader_epoch, event.isr
        if event.leader < 0 or event.leader_epoch <= epoch or epoch == UNKNOWN:
            continue
        start = began.get((*key, event.leader_epoch, event.leader))
        found.append(
            Election(
                key=key,
                time=event.time,
                leader=event.leader,
                leader_epoch=event.leader_epoch,
                isr_before=isr,
                kind=event.cause if event.cause in (UNCLEAN, ELIGIBLE, LAST_KNOWN) else "",
                start_offset=UNKNOWN if start is None else start.offset,
                high_watermark=UNKNOWN if start is None else start.high_watermark,
            )
        )
    return tuple(found)


def losses_of(
    elections: Sequence[Election],
    log_begins: Callable[[Election], int] = lambda election: EVERYTHING,
) -> tuple[LossRange, ...]:
    """What unclean elections allow to be lost.

    Args:
        elections: of a run.
        log_begins: where the first record is, in the log of an election's leader, of an epoch that its
            predecessors did not continue; EVERYTHING: there is none.

    Returns:
        a range for each unclean election, from the start of its epoch on.
    """
    return tuple(
        LossRange(
            topic=one.key[0],
            partition=one.key[1],
            start=max(0, min(one.start_offset, log_begins(one))),
            end=EVERYTHING,
            reason=(
                f"broker {one.leader} was elected in leader epoch {one.leader_epoch} outside the ISR "
                f"{list(one.isr_before)}" + ("" if one.start_offset >= 0 else ", and did not say from where")
            ),
        )
        for one in elections
        if not one.clean
    )
