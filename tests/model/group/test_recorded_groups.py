"""model/group/recorded_groups.py: what a coordinator loads of a group is what was written before; loads bent
by hand, and those of a coordinator with a planted bug, are not."""

import json

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.impl.coordinator import group_loading
from fencepost.model.group.recorded_groups import RecordedGroups
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from tests.checkers import lab

PLACE = {"topic": "__consumer_offsets", "partition": 0}
A, B, AGAIN = "a-1-20-1", "b-1-20-2", "a-2-33-1"


def told(cause: str, generation: int, *members: str, epoch: int = 0, why: str = "") -> Event:
    """The event of a group; the first member leads."""
    detail = {"group": "g", "generation": generation, "members": members, "leader": "", "why": why}
    said = json.dumps(detail | {"leader": members[0]} if members else detail)
    return lab.event(0, Name.GROUP_PHASE, 1, **PLACE, leader_epoch=epoch, cause=cause, detail=said)


def loads(epoch: int, *generation: object) -> tuple[Event, ...]:
    """The coordinator of this epoch takes over, with a group in this generation."""
    begins = lab.event(0, Name.GROUPS_LOADED, 2, **PLACE, leader_epoch=epoch)
    return (begins, told(*generation, epoch=epoch, why="loaded")) if generation else (begins,)


def removed(epoch: int) -> Event:
    """The tombstone is durable."""
    return lab.event(0, Name.GROUP_REMOVED, 1, **PLACE, leader_epoch=epoch, detail="g")


FIRST = (told("CompletingRebalance", 1, A), told("Stable", 1, A))
SECOND = told("CompletingRebalance", 2, A, B)
ONE, TWO, DEAD = ("Stable", 1, A), ("Stable", 2, A, B), told("Dead", 1)
BEGUN = told("CompletingRebalance", 1, B, epoch=1)
CASES = (
    ((*FIRST, *loads(1, *ONE), *loads(2, *ONE)), None),
    ((*FIRST, SECOND, *loads(1, *ONE), *loads(2, *TWO)), None),
    ((*FIRST, *loads(1, "Stable", 1, AGAIN)), None),
    ((*FIRST, told("Empty", 2), *loads(1, "Empty", 2)), None),
    ((*FIRST, DEAD, *loads(1)), None),
    ((*FIRST, DEAD, *loads(1, *ONE)), None),
    ((*FIRST, DEAD, removed(0), *FIRST, *loads(1, *ONE)), None),
    ((*FIRST, DEAD, *loads(1), removed(1), BEGUN, removed(0), *loads(2, "Stable", 1, B)), None),
    ((FIRST[0], *loads(1)), None),
    ((*FIRST, *loads(2, *ONE), DEAD, removed(2), *loads(1, *ONE)), None),
    (loads(1, "Empty", 0), None),
    ((*FIRST, *loads(1, *ONE), *loads(2)), "group g was not loaded"),
    ((*FIRST, *loads(1, "Stable", 2, A)), "generation 2 of a,"),
    ((*FIRST, *loads(1, "Stable", 1, A, B)), "generation 1 of a, b,"),
    ((*FIRST, *loads(1, "Stable", 1, B)), "generation 1 of b,"),
    ((*FIRST, *loads(1, "Empty", 0)), "generation 0 of nobody,"),
    ((*FIRST, SECOND, told(*TWO), *loads(1, *ONE)), "generation 1 of a,"),
    ((*FIRST, DEAD, removed(0), *loads(1, *ONE)), "generation 1 of a,"),
)


@pytest.mark.parametrize(("events", "seen"), CASES)
def test_what_was_written_is_loaded(events: tuple[Event, ...], seen: str | None) -> None:
    """Rule: the last durable generation or a later one, with the same members by name, of a group that was
    not removed. Each guard has failed on purpose."""
    groups = RecordedGroups()
    steps = (groups.step(at, event) for at, event in enumerate((*events, lab.event(9, Name.PHASE))))
    found = [one.seen for one in steps if one is not None]
    assert [one.startswith(seen or "none") for one in found] == ([True] if seen else [])


def test_a_coordinator_that_loads_another_generation_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: the check `conformance` asks, and a healthy coordinator passes."""
    real = group_loading.group_of
    (healthy,) = judge(run(swarm(33, "default")), ("conformance",))
    monkeypatch.setattr(group_loading, "group_of", lambda *of: evolve(real(*of), generation=0))
    (found,) = judge(run(swarm(33, "default")), ("conformance",))
    assert not healthy.findings and "generation 0" in found.findings[0].seen
