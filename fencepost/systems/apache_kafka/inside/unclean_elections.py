"""Elections of a real cluster.

Owns which changes of a leader were elections, and where the new epoch began. Must not know where events come
from, or what may be lost by them (run/real/claims.py).
"""

from collections.abc import Iterable

from attrs import frozen

from fencepost.systems.apache_kafka.inside.partition_changes import ELIGIBLE, LAST_KNOWN, UNCLEAN, Key
from fencepost.traces.events import Event, Name

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
