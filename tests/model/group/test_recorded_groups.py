"""model/group/recorded_groups.py: what a coordinator loads of a group is what was written before; loads bent
by hand, and those of a coordinator with a planted bug, are not."""

import json

import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.impl.coordinator.group_loading import GroupLoading
from fencepost.model.group.recorded_groups import RecordedGroups
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from tests.checkers import lab

PLACE = {"topic": "__consumer_offsets", "partition": 0}


def told(cause: str, generation: int, *members: str, epoch: int = 0, why: str = "", time: int = 0) -> Event:
    """The event of a group; the first member leads."""
    detail = {
        "group": "g",
        "generation": generation,
        "members": members,
        "leader": members[0] if members else "",
        "why": why,
    }
    return lab.event(
        time, Name.GROUP_PHASE, 1, **PLACE, leader_epoch=epoch, cause=cause, detail=json.dumps(detail)
    )


def loads(epoch: int, *groups: Event, time: int = 0) -> tuple[Event, ...]:
    """A coordinator of this epoch takes over with these groups."""
    return (lab.event(time, Name.GROUPS_LOADED, 2, **PLACE, leader_epoch=epoch), *groups)


def removed(epoch: int) -> Event:
    """The tombstone is durable."""
    return lab.event(0, Name.GROUP_REMOVED, 1, **PLACE, leader_epoch=epoch, detail="g")


def unexplained(*events: Event) -> list[str]:
    """What each event that nothing explains shows."""
    groups = RecordedGroups()
    found = (groups.step(at, event) for at, event in enumerate((*events, lab.event(9, Name.PHASE, -1))))
    return [one.seen for one in found if one is not None]


A, B, AGAIN = "a-1-20-1", "b-1-20-2", "a-2-33-1"
FIRST = (told("CompletingRebalance", 1, A), told("Stable", 1, A))
SECOND = told("CompletingRebalance", 2, A, B)


def later(cause: str, generation: int, *members: str, epoch: int = 1) -> Event:
    """Loaded by the next coordinator."""
    return told(cause, generation, *members, epoch=epoch, why="loaded")


LATER = later("Stable", 1, A)
DEAD = told("Dead", 1)


@pytest.mark.parametrize(
    "events",
    [
        (*FIRST, *loads(1, LATER)),
        (*FIRST, SECOND, *loads(1, LATER)),
        (*FIRST, SECOND, *loads(1, later("Stable", 2, A, B))),
        (*FIRST, *loads(1, later("Stable", 1, AGAIN))),
        (*FIRST, told("Empty", 2), *loads(1, later("Empty", 2))),
        (*FIRST, *loads(1, LATER), *loads(2, later("Stable", 1, A, epoch=2))),
        (*FIRST, DEAD, *loads(1)),
        (*FIRST, DEAD, *loads(1, LATER)),
        (*FIRST, DEAD, removed(0), *loads(1)),
        (*FIRST, DEAD, removed(0), *FIRST, *loads(1, LATER)),
        (*FIRST, DEAD, *loads(1, removed(1), told("CompletingRebalance", 1, B, epoch=1)), removed(0)),
        (told("CompletingRebalance", 1, A), *loads(1)),
        loads(1, later("Empty", 0)),
    ],
)
def test_what_was_written_may_be_loaded(events: tuple[Event, ...]) -> None:
    """Rule: the last durable generation or a later one, with the same members by name; nothing of a group
    that may be removed, and of one that is not durable."""
    assert unexplained(*events) == []


@pytest.mark.parametrize(
    ("events", "seen"),
    [
        ((*FIRST, *loads(1)), "it was not loaded"),
        ((*FIRST, *loads(1, told("Stable", 1, A, epoch=1))), "it was not loaded"),
        ((*FIRST, DEAD, removed(0), *FIRST, *loads(1, LATER), *loads(2)), "it was not loaded"),
        ((*FIRST, *loads(1, later("Stable", 2, A))), "generation 2 of a"),
        ((*FIRST, *loads(1, later("Stable", 1, A, B))), "generation 1 of a, b"),
        ((*FIRST, *loads(1, later("Stable", 1, B))), "generation 1 of b"),
        ((*FIRST, *loads(1, later("Empty", 0))), "generation 0 of nobody"),
        ((*FIRST, SECOND, told("Stable", 2, A, B), *loads(1, LATER)), "generation 1 of a,"),
        ((*FIRST, DEAD, removed(0), *loads(1, LATER)), "generation 1 of a,"),
        ((*FIRST, DEAD, *loads(1, removed(1), LATER)), "generation 1 of a,"),
    ],
)
def test_anything_else_is_rejected(events: tuple[Event, ...], seen: str) -> None:
    """Rule: each guard has failed on purpose: one event is unexplained, with this reason."""
    (found,) = unexplained(*events)
    assert found.startswith(seen)


class Kept(dict[str, object]):
    """Takes nothing out."""

    def pop(self, *key: object) -> None:
        """Nothing happens."""


def test_a_load_that_passes_tombstones_over_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a group that was removed is not loaded; no client has to see it."""
    real = GroupLoading.apply_records

    def keeps_groups(self, load, header, records):
        if not isinstance(load.groups, Kept):
            load.groups = Kept(load.groups)
        real(self, load, header, records)

    def findings() -> list[str]:
        verdicts = judge(run(swarm(2, "default")))
        return [finding.anomaly for verdict in verdicts for finding in verdict.findings]

    assert findings() == []
    monkeypatch.setattr(GroupLoading, "apply_records", keeps_groups)
    assert findings() == ["conformance"]
