"""The topics and partitions that the operations and faults of a plan name.

Owns the forms of targets that name one, and that each is there or comes later. Must not know faults.
"""

import re
from collections.abc import Iterator

from fencepost.traces.errors import PlanError, unknown_name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.plan import Plan

OF_PARTITION = re.compile(r"(?P<role>leader of |follower \d+ of |partition )(?P<topic>.+)-(?P<number>\d+)")
OF_TOPIC = re.compile(r"topic (?P<topic>.+)")
MOST_PARTITIONS = 8
"""Of one topic, after partitions were added."""
CREATES, GROWS = "create_topic", "add_partitions"
"""Kinds of fault after which there is a topic, or one partition more."""
Place = tuple[str, int]


def place_of(target: str) -> Place | None:
    """The topic and partition that a target names, if it names any; 0 where it names the topic alone."""
    if match := OF_PARTITION.fullmatch(target):
        return match["topic"], int(match["number"])
    match = OF_TOPIC.fullmatch(target)
    return None if match is None else (match["topic"], 0)


def check_names(plan: Plan, where: str) -> Plan:
    """The plan, if each topic and partition that it names is there or comes later. With another name a run
    would skip the fault, or wait for an answer.

    Args:
        plan: a person's, who may have mistyped a name.
        where: its file, for the error.

    Raises:
        PlanError: for the first name that means nothing.
    """
    known = _partitions(plan)
    for path, (topic, number), least in _named(plan):
        if topic in INTERNAL_TOPICS or (topic in known and number < max(known[topic], least)):
            continue
        expected, seen = f"a topic of the plan: {', '.join(known)}", unknown_name(topic, known)
        if topic in known:
            expected, seen = f"one of the {known[topic]} partitions of {topic}", f"{topic}-{number}"
        raise PlanError(expected=expected, seen=seen, where=f"{where}: {path}")
    return plan


def _partitions(plan: Plan) -> dict[str, int]:
    """The most partitions of each topic that there is at some time."""
    known = {topic.name: topic.partitions for topic in plan.cluster.topics}
    asked = [(one.kind, place[0]) for one in plan.faults if (place := place_of(one.target)) is not None]
    for kind, topic in asked:
        if kind == CREATES:
            known.setdefault(topic, 1)
    for kind, topic in asked:
        if kind == GROWS and topic in known:
            known[topic] += 1
    return known


def _named(plan: Plan) -> Iterator[tuple[str, Place, int]]:
    """Where a place is named, the place, and the fewest partitions to count with: an operation may be meant
    for one that an operator might add."""
    for index, one in enumerate(plan.operations):
        yield f"operations[{index}]", (one.topic, one.partition), MOST_PARTITIONS
    for index, fault in enumerate(plan.faults):
        for name in ("target", "other"):
            if (found := place_of(getattr(fault, name))) is not None:
                yield f"faults[{index}].{name}", found, 0
