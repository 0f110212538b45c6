"""SYNCED on histories by hand: what a disk surely held is there after the restart, and a broker asked its
disk to sync what it says is synced."""

import json
from typing import Any

from attrs import evolve

from fencepost.checkers import invariants
from fencepost.model.lives import with_lives
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from tests.checkers.traces_by_hand import ON, appends, event, fault, healthy_start, recovers, starts, trace

START = healthy_start(10, 11, 12, 13)
"""Brokers 1 and 2 have four records."""


def found(*events: Event, flush: int = 0) -> list[tuple[str, tuple[int, ...]]]:
    """Names and certificates, counted from the end of START. flush: flush.messages of the topic."""
    topic = TopicOptions(flush_messages=flush)
    plan = plan_to_json(Plan(seed=1, cluster=ClusterOptions(topics=(topic,))))
    findings = invariants.judge(with_lives(trace(*START, *events, plan=plan)).trace).findings
    return [
        (one.anomaly, tuple(at - len(START) for at in one.events))
        for one in findings
        if one.anomaly in ("synced_record_lost", "sync_not_asked")
    ]


def off(node: int = 2) -> Event:
    """The power fails."""
    return fault("power_loss", node)


def holds(end: int, *, node: int = 2, cause: str = "power_loss", **said: Any) -> Event:
    """What its disk says."""
    detail = json.dumps({"asked": 4, "written": 4, "recovery_point": -1, "clean": False, **said})
    return event(Name.DURABLE, node=node, end_offset=end, cause=cause, detail=detail, **ON)


def configured(node: int, **overrides: str) -> Event:
    """A broker applied a configuration."""
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return event(Name.TOPIC_CONFIGURED, node=node, topic="t", detail=json.dumps(named))


def test_a_log_that_comes_back_shorter_than_its_disk_held_is_found() -> None:
    """Rule: minimal histories, Illegal and Ok; what was written and not synced may be lost."""
    assert found(off(), holds(4), recovers(2, 3, hw=3)) == [("synced_record_lost", (1, 2))]
    assert found(off(), holds(3), recovers(2, 3, hw=3)) == []
    assert found(off(), recovers(2, 0, hw=0)) == [], "a system whose disks say nothing"


def test_what_was_said_counts_until_the_log_is_opened() -> None:
    """Rule: a second power loss before that takes nothing back, a rotten bit does; a replica that was deleted
    is another."""
    assert found(off(), holds(4), off(), holds(2), recovers(2, 2, hw=2)) == [("synced_record_lost", (1, 4))]
    rotten = holds(2, cause="bit_rot")
    assert found(off(), holds(4), fault("bit_rot", 2), rotten, recovers(2, 2, hw=2)) == []
    assert found(off(), holds(4), recovers(2, 4, hw=2), recovers(2, 2, hw=2)) == []
    gone = event(Name.MARK, node=2, cause="replica_deleted", **ON)
    assert found(off(), holds(4), gone, recovers(2, 0, hw=0)) == []


def test_flush_messages_is_obeyed_by_what_a_broker_asks_of_its_disk() -> None:
    """Rule: fewer records than flush.messages follow the last one that it asked to sync. A lie of the disk
    changes nothing, because the broker had asked."""
    assert found(off(), holds(2, asked=2), flush=1) == [("sync_not_asked", (1,))]
    assert found(off(), holds(2, asked=2), flush=2) == [("sync_not_asked", (1,))]
    assert found(off(), holds(2, asked=2), flush=3) == []
    assert found(off(), holds(2, asked=2)) == []
    assert found(off(), holds(0, asked=4), flush=1) == [], "the disk lied"


def test_the_step_in_which_the_power_failed_is_not_judged() -> None:
    """Rule: it left no events. What it had written counts no more than what it had cut, and where it is not
    known what was asked, nothing is said."""
    assert found(off(), holds(4, written=6), flush=1) == []
    assert found(off(), holds(2, asked=2, written=2), flush=1) == []
    assert found(off(), holds(2, asked=-1), flush=1) == []
    assert found(off(), evolve(holds(2), detail="?"), flush=1) == []


def test_flush_messages_counts_since_the_first_append_under_it() -> None:
    """Rule: a broker that applies another setting syncs with its next append. A new process knows the topic
    as it was created, until it has read the change: the looser setting counts."""
    one = configured(2, flush_messages="1")
    more = appends(2, 1, 4, 14)
    unsynced = (off(), holds(2, asked=2, written=5))
    assert found(one, *unsynced) == []
    assert found(one, more, *unsynced) == [("sync_not_asked", (3,))]
    assert found(configured(2, flush_messages=str((1 << 63) - 1)), more, *unsynced, flush=1) == []
    assert found(configured(2, retention_ms="9"), more, *unsynced, flush=1) == [("sync_not_asked", (3,))]
    assert found(one, starts(2), more, *unsynced) == []
    assert found(evolve(one, detail="?"), more, *unsynced, flush=1) == []


def test_a_recovery_point_says_no_more_than_was_asked() -> None:
    """Rule: a start reads no batch below it. A point that a longer log left is judged by the log's end."""
    assert found(off(), holds(2, asked=2, recovery_point=3)) == [("sync_not_asked", (1,))]
    assert found(off(), holds(2, asked=2, recovery_point=2)) == []
    assert found(off(), holds(2, asked=2, written=2, recovery_point=3)) == []


def test_a_roll_closes_what_was_synced() -> None:
    """Rule: what is below the newest segment was asked for before that segment was made; what is in it need
    not have been."""
    assert found(off(), holds(2, asked=2, rolled=3)) == [("sync_not_asked", (1,))]
    assert found(off(), holds(2, asked=2, rolled=2)) == []
    assert found(off(), holds(2, asked=2, rolled=-1)) == [], "not known"


def test_a_broker_that_does_not_say_what_it_appends_is_judged_by_its_disk() -> None:
    """Rule: a recovery point follows a sync that returned, on every system; its log ends where its disk says
    that it was written."""
    left = (off(4), holds(2, node=4, asked=2, recovery_point=3))
    assert found(*left) == [("sync_not_asked", (1,))]
    assert found(off(4), holds(2, node=4, asked=2, written=2, recovery_point=3)) == []
    assert found(off(4), holds(2, node=4, asked=3, recovery_point=3)) == []
    for took in ("lying_fsync", "bit_rot"):
        assert found(fault(took, 4), *left) == [], "a log that lost what was synced is shorter than its point"


def test_a_later_topic_of_a_name_has_the_settings_of_its_name() -> None:
    """Rule: flush.messages as the topic is created counts for each topic of the name."""
    again = (
        event(Name.ASSIGNMENT, replicas=(1, 2), **ON),
        event(Name.TOPIC_DELETION, topic="t", cause="requested"),
        *(event(Name.MARK, node=node, cause="replica_deleted", **ON) for node in (1, 2)),
        event(Name.ASSIGNMENT, **ON),
        event(Name.TOPIC_DELETION, topic="t", cause="done"),
        event(Name.ASSIGNMENT, replicas=(1, 2), **ON),
        recovers(2, 0, hw=0),
        appends(2, 0, 0, 21, 22),
        off(),
        holds(0, asked=0, written=2),
    )
    assert [name for name, _ in found(*again, flush=1)] == ["sync_not_asked"]
    assert found(*again) == []


def test_the_marker_of_a_clean_stop_says_that_all_was_synced() -> None:
    """Rule: the next start reads no batch at all. A replica that the process had not opened is none of its
    logs."""
    left = holds(2, asked=2, clean=True)
    assert found(off(), left) == [("sync_not_asked", (1,))]
    assert found(starts(2), off(), left) == []
    assert found(starts(2), recovers(2, 4, hw=4), off(), left) == [("sync_not_asked", (3,))]
    assert found(off(), holds(4, clean=True)) == []
