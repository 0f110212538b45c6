"""What the two logs of decisions have in common: how a change of a partition becomes events.

Owns the order of these events and the causes of a partition state. Must not know where changes come from.
"""

from collections.abc import Iterator
from typing import Any

from fencepost.traces.events import Event, EventColumns, Name

MILLISECOND = 1_000_000
NOBODY = -1
UNCLEAN, ELIGIBLE, LAST_KNOWN = "unclean", "eligible", "last_known"
"""Causes of a partition state. UNCLEAN: elected outside the ISR. ELIGIBLE: the ISR is empty, or the leader
was not in it, but there are eligible leader replicas, which hold everything that was committed (KIP-966).
LAST_KNOWN: there are none of these either, because the last member of the ISR was killed and came back; the
controllers keep its name and elect it, also where unclean elections are off. It has what its disk kept."""
Key = tuple[str, int]
"""Topic and partition number."""
Placed = tuple[tuple[int, ...], tuple[int, ...]]
"""Replicas, and the target of the reassignment under way; none: ()."""


def event_of(name: Name, time: int, node: int, key: Key, **columns: Any) -> Event:
    """An event of a partition. name, time, node, columns: its fields; key: topic and partition number."""
    given: EventColumns = {"topic": key[0], "partition": key[1], **columns}  # type: ignore[typeddict-item]
    return Event(time=time, name=name, node=node, **given)


def reassigned(time: int, controller: int, key: Key, before: Placed, now: Placed) -> Iterator[Event]:
    """What an operator asked for comes before what the controller did about it, and its end comes last. Where
    there is nothing to move, as when replicas only go or a reassignment is cancelled, the replicas are
    written at once, and are what an operator asked for."""
    (old, old_target), (replicas, target) = before, now
    if target != old_target and target:
        yield event_of(Name.REASSIGNMENT, time, NOBODY, key, replicas=target)
    if replicas != old:
        carried_out = not (old and replicas) or target or set(replicas) == set(old_target)
        yield event_of(Name.ASSIGNMENT, time, controller if carried_out else NOBODY, key, replicas=replicas)
    if target != old_target and not target:
        node = controller if set(replicas) == set(old_target) else NOBODY
        yield event_of(Name.REASSIGNMENT, time, node, key, replicas=())
