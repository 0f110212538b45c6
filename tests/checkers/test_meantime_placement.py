"""A group is where the hash of its name says."""

import json

import pytest

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.placement import Placement, place_of
from fencepost.traces.events import Event, Name

OFFSETS = "__consumer_offsets"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("", 0),
        ("g1", 3242),
        ("orders", -1008770331),
        ("polygenelubricants", -2147483648),
        ("größe", 98762257),
        ("注文", 890271),
        ("😀", 1772899),
    ],
)
def test_the_hash_is_that_of_java(name: str, number: int) -> None:
    """Rule (PLACED): String.hashCode, of which these values are known from a JVM; the smallest integer counts
    as 0."""
    for partitions in (1, 2, 3, 50):
        expected = 0 if number == -(1 << 31) else abs(number) % partitions
        assert place_of(name, partitions) == expected


def found(*partitions: int, group: str, served: int, added: tuple[int, ...] = ()) -> bool:
    """Whether a broker that serves the group in that partition is convicted."""
    findings = Findings("meantime")
    rule = Placement(findings)
    seen = json.dumps({"group": group, "why": "x"})
    phase = Event(time=1, name=Name.GROUP_PHASE, node=1, topic=OFFSETS, partition=served, detail=seen)
    first = Event(time=1, name=Name.GROUP_PHASE, node=1, topic=OFFSETS, partition=0, detail="{}")
    assigned = [
        Event(time=0, name=Name.ASSIGNMENT, topic=OFFSETS, partition=number, replicas=(1,))
        for number in partitions
    ]
    later = [
        Event(time=0, name=Name.ASSIGNMENT, topic=OFFSETS, partition=number, replicas=(1,))
        for number in added
    ]
    for position, event in enumerate((*assigned, first, *later, phase)):
        rule.handlers()[event.name](position, event)
    return bool(findings.found)


def test_who_is_served_elsewhere_is_misplaced() -> None:
    """Rule (PLACED): in every partition but one; nothing is asked without assignments, or once partitions
    were added."""
    assert [found(0, 1, 2, group="orders", served=number) for number in range(3)] == [False, True, True]
    assert [found(0, 1, group="g1", served=number) for number in range(2)] == [False, True]
    assert not found(group="orders", served=1)
    assert not found(0, 1, 2, group="orders", served=1, added=(3,))
    assert not found(0, 1, 2, group="", served=1)
