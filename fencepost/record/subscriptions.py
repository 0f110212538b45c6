"""Which topics the consumers of a plan were to read, and when.

Owns the reading of a plan's operations. Must not know what consumers did, or what coordinators say.
"""

from collections.abc import Iterable

from fencepost.record.settings import MILLISECOND, Planned
from fencepost.traces.plan import PlannedOperation

ENDS_A_MEMBER = frozenset({"unsubscribe", "crash"})
OF_MEMBERS = ENDS_A_MEMBER | {"subscribe", "resubscribe", "transform", "assign"}
"""What a plan asks of a consumer's process that changes what it reads."""


def differ(operations: Iterable[Planned | PlannedOperation]) -> bool:
    """Whether consumers of a plan differ in their topics."""
    begins = OF_MEMBERS - ENDS_A_MEMBER
    return len({one.topic for one in operations if one.key and one.function in begins}) > 1


def subscriptions_of(
    operations: Iterable[Planned | PlannedOperation], begun: int, end: int
) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """When processes of a group were to read a topic.

    Args:
        operations: of a plan.
        begun: when the run began to work, nanoseconds.
        end: when it ended.

    Returns:
        stretches of time, ascending, by group and topic.
    """
    planned = [one for one in operations if one.key and one.function in OF_MEMBERS]
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    reads: dict[str, dict[int, tuple[str, ...]]] = {}
    since: dict[tuple[str, str], int] = {}
    for one in sorted(planned, key=lambda one: one.at_ms):
        moment, group = begun + one.at_ms * MILLISECOND, one.key or ""
        of = reads.setdefault(group, {})
        if one.function == "resubscribe" and not of.get(one.process):
            continue  # it does not run
        of[one.process] = () if one.function in ENDS_A_MEMBER else tuple(one.topic.split(","))
        now = {topic for topics in of.values() for topic in topics}
        for topic in now:
            since.setdefault((group, topic), moment)
        for place in [place for place in since if place[0] == group and place[1] not in now]:
            found.setdefault(place, []).append((since.pop(place), moment))
    for place, first in since.items():
        found.setdefault(place, []).append((first, end + 1))
    return found
