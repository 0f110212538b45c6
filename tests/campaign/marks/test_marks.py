"""Marks: each is recognised where it happened and nowhere else, and the swarm reaches them."""

import pytest
from attrs import evolve

from fencepost.campaign.marks.marks import MARKS, NAMES, OR, marks_of
from fencepost.campaign.swarm.bounds import PERCENTAGES
from fencepost.campaign.swarm.file_steps import FIRST
from fencepost.campaign.swarm.mark_weights import marks_possible
from fencepost.campaign.swarm.profiles import PROFILES, profile_named
from fencepost.campaign.swarm.swarm import swarm
from fencepost.run.faults.table import FAULTS
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import REPLICA_DELETED, Name
from fencepost.traces.operations import COOPERATIVE, LATE, Function, Operation, Outcome, Position, Record
from fencepost.traces.plan import INSIDE
from tests.checkers.traces_by_hand import (
    ON,
    appends,
    copies,
    cuts,
    event,
    leads,
    recovers,
    shows,
    state,
    trace,
)

RECORDED = (5, 11, 69, 86, 99, 343, 445, 539, 542, 598)
"""Seeds that together reach every mark."""


def reached(*events, operations=()) -> set[str]:
    """The marks of a trace written by hand."""
    return set(marks_of(trace(*events, operations=tuple(operations))))


def group(phase: str, time: int = 0):
    """A group came into another phase."""
    detail = '{"group":"g","generation":1,"members":[],"leader":"","why":""}'
    return event(
        Name.GROUP_PHASE,
        node=1,
        topic="__consumer_offsets",
        partition=0,
        cause=phase,
        detail=detail,
        time=time,
    )


def loaded(node: int):
    """A broker became the coordinator."""
    return event(Name.GROUPS_LOADED, node=node, topic="__consumer_offsets", partition=0)


def settings(retention: str, node: int = 1):
    """A broker took over a topic's configuration."""
    return event(Name.TOPIC_CONFIGURED, node=node, topic="t", detail=f'{{"retention.ms":"{retention}"}}')


def deletion(cause: str):
    """A topic's deletion was asked for, or is done."""
    return event(Name.TOPIC_DELETION, node=1, topic="t", cause=cause)


def epoch(number: int):
    """A controller epoch began."""
    return event(Name.CONTROLLER_EPOCH, node=1, controller_epoch=number)


def row(function: Function, **columns) -> Operation:
    """A client's operation."""
    given = {"op_id": 1, "process": 0, "invoke_time": 2, "completion_time": 8, "outcome": Outcome.OK}
    return Operation(function=function, **{**given, **columns})


WROTE = (state(9, 1, 0, 1, 2), leads(1, 0, 1, 2), appends(1, 0, 0, 10, 11, 12))
SHORT, LONG = recovers(1, 2), recovers(1, 3)
MOVED = event(Name.REASSIGNMENT, node=-1, replicas=(2, 3), **ON)
FAILED_OVER = event(Name.MARK, node=1, cause="failed_over")
BY_HAND = {
    "bounced_unnoticed": (
        (event(Name.BROKER_ZNODE, node=1, broker_epoch=5), event(Name.BROKER_STARTED, node=1)),
        (event(Name.BROKER_ZNODE, node=1, broker_epoch=-1), event(Name.BROKER_STARTED, node=1)),
    ),
    "two_controllers": (
        (event(Name.CONTROLLER_ELECTED, node=1), event(Name.CONTROLLER_ELECTED, node=2)),
        (
            event(Name.CONTROLLER_ELECTED, node=1),
            event(Name.BROKER_STARTED, node=1),
            event(Name.CONTROLLER_ELECTED, node=2),
        ),
    ),
    "unclean_election": (
        (state(9, 1, 0, 1, 2), state(9, -1, 1, 1, 2), state(9, 3, 2, 3)),
        (state(9, 1, 0, 1, 2), state(9, -1, 1, 1, 2), state(9, 2, 2, 2)),
    ),
    "failed_over_while_reassigning": ((MOVED, FAILED_OVER), (MOVED, evolve(MOVED, replicas=()), FAILED_OVER)),
    "deletion_resumed": (
        (epoch(1), deletion("requested"), epoch(2), deletion("done")),
        (epoch(1), deletion("requested"), deletion("done"), epoch(2)),
    ),
    "zombie_leader_appended": (
        (*WROTE, state(9, 2, 1, 2), appends(1, 0, 3, 13)),
        (*WROTE, appends(1, 0, 3, 13)),
    ),
    "led_below_exposed": (
        (*WROTE, shows(1, 0, 3), leads(2, 1, 2, hw=2)),
        (*WROTE, shows(1, 0, 3), leads(2, 1, 2, hw=3)),
    ),
    "log_cut": ((*WROTE, cuts(1, 2, 1, end=3, to=1)), (*WROTE, cuts(1, 2, 1, end=3, to=3))),
    "cut_twice": (
        (*WROTE, cuts(1, 2, 1, end=3, to=2), cuts(1, 2, 2, end=2, to=1)),
        (*WROTE, cuts(1, 2, 1, end=3, to=2), copies(1, 1, 2, 20), cuts(1, 2, 2, end=3, to=1)),
    ),
    "cut_across_epochs": (
        (*WROTE, appends(1, 1, 3, 13), cuts(1, 2, 2, end=4, to=2)),
        (*WROTE, appends(1, 1, 3, 13), cuts(1, 2, 2, end=4, to=3)),
    ),
    "cut_below_exposed": (
        (*WROTE, shows(1, 0, 2), cuts(1, 2, 1, end=3, to=1)),
        (*WROTE, shows(1, 0, 1), appends(2, 1, 1, 20, 21), shows(2, 1, 3), cuts(1, 2, 1, end=3, to=1)),
    ),
    "torn_tail_cut": ((*WROTE, SHORT), (*WROTE, LONG)),
    "log_start_passed_follower": (
        (*WROTE, cuts(1, 2, 1, end=3, to=7, cause="full")),
        (*WROTE, cuts(1, 2, 1, end=3, to=0, cause="full")),
    ),
    "configured_back": (
        (settings("1"), settings("2"), settings("1")),
        (settings("1"), settings("2"), settings("2", node=2), settings("2")),
    ),
    "coordinator_failed_over": (
        (loaded(1), group("PreparingRebalance"), loaded(2)),
        (loaded(1), group("PreparingRebalance"), group("Stable"), loaded(2)),
    ),
    "compacted": (
        (event(Name.COMPACTED, node=1, detail='{"records_dropped":3,"bytes_before":9}', **ON),),
        (event(Name.COMPACTED, node=1, detail='{"records_dropped":0,"bytes_before":9}', **ON),),
    ),
}
"""By mark: events that show it, and the nearest that do not."""


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_a_mark_is_told_from_what_only_looks_like_it(name):
    """A mark that asks for what happened before is seen there, and not where one event is another."""
    shown, near = BY_HAND[name]
    assert name in reached(*shown)
    assert name not in reached(*near)


def test_marks_of_operations_are_told_from_others():
    """A commit is crossed by a rebalance of its own group alone; a retry is a known duplicate only if another
    broker wrote its batch; errors are theirs."""
    commit = row(Function.COMMIT, group="g")
    assert "rebalance_during_commit" in reached(group("PreparingRebalance", time=5), operations=[commit])
    for other in (
        evolve(commit, group="h"),
        evolve(commit, invoke_time=6),
        evolve(commit, completion_time=4),
    ):
        assert "rebalance_during_commit" not in reached(
            group("PreparingRebalance", time=5), operations=[other]
        )
    known = retried()
    assert "duplicate_known" in reached(*WROTE, operations=[known])
    for other in (evolve(known, node=1), evolve(known, attempts=1), evolve(known, producer_id=None)):
        assert "duplicate_known" not in reached(*WROTE, operations=[other])
    refused = row(Function.COMMIT, outcome=Outcome.FAIL, error="ILLEGAL_GENERATION")
    assert reached(operations=[refused]) == {"commit_refused"}
    assert reached(operations=[evolve(refused, argument=LATE)]) == {"commit_refused", "late_commit_refused"}
    assert reached(operations=[evolve(refused, function=Function.JOIN)]) == set()
    strange = row(Function.JOIN, outcome=Outcome.FAIL, error="INCONSISTENT_GROUP_PROTOCOL")
    assert reached(operations=[strange]) == {"assignor_refused"}
    large = row(Function.APPEND, outcome=Outcome.FAIL, error="MESSAGE_TOO_LARGE")
    assert reached(operations=[large]) == {"too_large"}
    assert reached(operations=[evolve(large, function=Function.COMMIT)]) == set()
    sought = row(Function.ASSIGN, group="g", argument="seek")
    assert reached(operations=[sought]) == {"sought"}
    assert reached(operations=[evolve(sought, argument=None)]) == set()
    again = row(Function.SUBSCRIBE, group="g")
    assert reached(operations=[again]) == {"subscribed_again"}
    assert reached(operations=[evolve(again, group=None)]) == set()
    alone = row(Function.COMMIT, group="g", generation=-1)
    assert reached(operations=[alone]) == {"committed_alone"}
    for other in (evolve(alone, generation=1), evolve(alone, outcome=Outcome.FAIL)):
        assert reached(operations=[other]) == set()


def test_a_partition_that_moves_in_two_steps():
    """It is given up in one generation, and assigned to another member in a later one; an eager rebalance
    gives it at once."""
    has = (Position(topic="t", partition=0, offset=-1),)

    def join(member: str, generation: int, positions: tuple[Position, ...] = (), **more: object) -> Operation:
        more = {"argument": COOPERATIVE, **more}
        return row(
            Function.JOIN, group="g", member=member, generation=generation, positions=positions, **more
        )

    rows = [join("a", 1, has), join("a", 2), join("b", 3, has)]
    assert reached(operations=rows) == {"cooperative_rebalance", "moved_in_two_steps"}
    for others in (
        [*rows[:2], join("b", 2, has)],
        [*rows[:2], join("b", 3, has, argument=None)],
        [rows[0], rows[2]],
    ):
        assert reached(operations=others) == {"cooperative_rebalance"}


def retried() -> Operation:
    """An idempotent append of value 10 that was tried twice, and answered by broker 2."""
    record = Record(topic="t", partition=0, offset=0, value=10, leader_epoch=0)
    return row(Function.APPEND, producer_id=1, producer_epoch=0, attempts=2, node=2, records=(record,))


def test_a_replica_that_was_deleted_is_no_torn_log():
    """A log that begins anew after its replica was deleted has lost nothing."""
    deleted = event(Name.MARK, node=1, cause=REPLICA_DELETED, **ON)
    assert "torn_tail_cut" not in reached(*WROTE, deleted, recovers(1, 0))


def test_recorded_seeds_reach_every_mark():
    """The swarm reaches what it can: few seeds show all marks, and none that it cannot. Steps on files
    are in tests/run/faults/test_file_steps.py."""
    seen = {name for seed in RECORDED for name in marks_of(run(swarm(seed)))}
    seen |= {f"{step}_interrupted" for step in INSIDE}
    assert seen == set(marks_possible(PROFILES["default"])) == set(NAMES)


def test_a_calm_run_reaches_no_mark(monkeypatch):
    """Without faults, operators and groups nothing of the kind happens, but that logs forget: a mark that is
    always there says nothing."""
    off = ("administered", "groups", "transactions", "producers", "compacted", "limited", "moved_settings")
    bare = evolve(PROFILES["default"], small_segments=100, retained=100, **dict.fromkeys(off, 0))
    monkeypatch.setitem(PROFILES, "default", bare)
    plans = [swarm(seed, "default+calm") for seed in range(8)]
    assert not any(plan.faults for plan in plans)
    assert {name for plan in plans for name in marks_of(run(plan))} == {"log_start_moved"}
    quiet = evolve(bare, faults=(0, 0), unclean=0, quick=0)
    assert set(marks_possible(quiet)) == {"log_start_moved", "log_start_passed_follower"}


def test_the_table_is_sound():
    """Names are unique; what leads to a mark, or is needed for it, is a kind of fault or a percentage; each
    mark can be reached by some profile."""
    known = {*FAULTS, *PERCENTAGES}
    assert len(set(NAMES)) == len(MARKS) >= 25
    for mark in MARKS:
        assert (mark.on is None) == (mark.seen is None) != (mark.row_predicate is None)
        needed = {each for need in mark.needs for each in need.split(OR)}
        assert set(mark.leads) <= known and needed <= known and mark.leads, mark.name
        assert any(mark.name in marks_possible(profile) for profile in PROFILES.values()), mark.name


def test_a_profile_that_is_steered_leans_toward_the_mark_and_has_nothing_new():
    """What leads to a mark is drawn more often, out of what the profile has; the plan says to what it was
    steered, and is made again from that name."""
    plain, leaning = profile_named("default"), profile_named("default+torn_tail_cut+deletion_resumed")
    assert set(leaning.kinds) == set(plain.kinds) and leaning.kinds[: len(plain.kinds)] == plain.kinds
    assert leaning.kinds.count("power_loss") > 1 == leaning.kinds.count("loss")
    assert leaning.request_kinds.count("delete_topic") > 1
    assert leaning.administered > plain.administered and leaning.disks_lost > plain.disks_lost
    assert (leaning.compacted, leaning.groups) == (plain.compacted, plain.groups)
    plan = swarm(5, "default+torn_tail_cut")
    assert plan.profile == "default+torn_tail_cut" and plan == swarm(5, plan.profile)
    share = {
        name: sum(
            f.kind == "power_loss" and f.fault_id < FIRST for s in range(60) for f in swarm(s, name).faults
        )
        for name in ("default", plan.profile)
    }
    assert 2 * share[plan.profile] > 3 * share["default"]
    with pytest.raises(FencepostError, match="a mark after"):
        swarm(0, "default+earthquake")


def test_a_topic_of_the_same_name_reaches_marks_of_its_own():
    """What leaders had shown of the topic before says nothing of what is cut from the next one."""
    first = (leads(1, 0, 1, 2), appends(1, 0, 0, *range(10)), shows(1, 0, 10))
    second = (leads(1, 0, 1, 2), copies(2, 0, 0, 20, 21, 22), cuts(2, 1, 0, 3, 1))
    between = (
        event(Name.TOPIC_DELETION, topic="t", cause="requested"),
        *(event(Name.MARK, node=node, cause=REPLICA_DELETED, **ON) for node in (1, 2)),
        event(Name.ASSIGNMENT, **ON),
        event(Name.ASSIGNMENT, replicas=(1, 2), **ON),
    )
    assert "cut_below_exposed" in reached(*first, *second)
    assert "cut_below_exposed" not in reached(*first, *between, *second)
