"""The power losses of a run against a real system: what its disks said, as events and as offsets that may be
lost.

Owns the step from what a disk surely held to a range of offsets. Must not know a disk (systems/disk), or how
many replicas may lose a record (claims.py). A power loss of which a disk said nothing may cost everything.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from fencepost.record.claims import EVERYTHING
from fencepost.record.observed_state import Assignments, Key
from fencepost.run.durable import durable_event
from fencepost.systems.system import PowerLost
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import Plan

POWER_LOSS, REASSIGN = "power_loss", "reassign_"
"""The kind of fault, and how the kinds begin that move replicas."""
Range = tuple[int, int]
"""Offsets from the first to below the second one."""


def of_run(losses: Iterable[PowerLost], began: int, names: Mapping[str, str]) -> Iterator[tuple[int, Event]]:
    """What the disks said during a run, as events.

    Args:
        losses: of the cluster, which outlives the run.
        began: when the run began, in nanoseconds of the wall clock.
        names: the plan's name of each topic of the run, by the cluster's.

    Yields:
        the end of what the broker had written (-1: not known), and the event.
    """
    for loss in losses:
        for log in loss.logs:
            topic = names.get(log.topic)
            if loss.time >= began and topic is not None:
                event = durable_event(log, loss.time - began, loss.broker, POWER_LOSS, gaps=False)
                yield log.written, evolve(event, topic=topic)


def lost_power(
    plan: Plan, events: Iterable[Event], said: Iterable[tuple[int, Event]], assignments: Assignments
) -> dict[Key, dict[int, Range]]:
    """The replicas that lost power in a run. Where operators moved replicas, every broker may have been one.

    Args:
        plan: the run's.
        events: its record.
        said: what its disks said, as `of_run` has it.
        assignments: the replicas of each partition.

    Returns:
        the offsets that each may have lost, by partition and broker: from the lowest end of what its disk
        surely held to the highest end of what it had written.
    """
    hits = Counter(
        event.node for event in events if event.name is Name.FAULT_BEGAN and event.cause == POWER_LOSS
    )
    known: dict[tuple[Key, int], list[Range]] = {}
    for written, event in said:
        key = event.topic or "", event.partition
        known.setdefault((key, event.node), []).append(
            (event.end_offset, written if written >= 0 else EVERYTHING)
        )
    moved = any(fault.kind.startswith(REASSIGN) for fault in plan.faults)
    return {
        key: {
            node: _together(known.get((key, node), []), hits[node])
            for node in hits
            if moved or node in replicas
        }
        for key, replicas in assignments.items()
    }


def _together(ranges: list[Range], losses: int) -> Range:
    if len(ranges) < losses:
        return 0, EVERYTHING
    return min(start for start, _ in ranges), max(end for _, end in ranges)
