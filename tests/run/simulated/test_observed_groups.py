"""What a run adds to the rows of its groups: offsets that expired as they may, and groups that ended; and
plans with consumers."""

import msgspec
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.groups import judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.run.simulated.observed_groups import with_group_facts
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.plan import ASSIGNORS, ClusterOptions, GroupOptions, Plan
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
PLAN = Plan(seed=1, cluster=ClusterOptions(groups=GroupOptions(offsets_retention_ms=2_000)))


def phase(at_s: int, name: str, *members: str, generation: int = 1, epoch: int = -1) -> Event:
    detail = msgspec.json.encode({"group": "g", "generation": generation, "members": members}).decode()
    return Event(time=at_s * SECOND, name=Name.GROUP_PHASE, leader_epoch=epoch, cause=name, detail=detail)


def expiry(at_s: int, name: str) -> Event:
    detail = msgspec.json.encode({"group": "g", "topic": "t", "partition": 0}).decode()
    return Event(time=at_s * SECOND, name=Name.GROUP_OFFSET_EXPIRED, cause=name, detail=detail)


def ended(at_s: int) -> Event:
    return Event(time=at_s * SECOND, name=Name.GROUP_REMOVED, detail="g")


def row(
    op_id: int, at_s: int, member: str, function: Function = Function.JOIN, outcome: Outcome = Outcome.OK
) -> Operation:
    return Operation(
        op_id=op_id,
        process=1,
        function=function,
        invoke_time=at_s * SECOND,
        completion_time=at_s * SECOND + 1,
        outcome=outcome,
        group="g",
        member=member,
    )


def test_only_an_expiry_that_may_be_is_a_row() -> None:
    """Rule (KAFKA-13636, KAFKA-8069): an offset goes when its group was empty for the retention; in another
    state, or sooner, nothing excuses it."""
    life = [phase(1, "Stable", "a"), phase(2, "Empty")]
    rows = with_group_facts(PLAN, (), [*life, expiry(5, "Empty")])
    assert [(each.argument, each.offset, each.outcome) for each in rows] == [
        ("expired", None, Outcome.UNKNOWN)
    ]
    assert with_group_facts(PLAN, (), [*life, expiry(3, "Empty")]) == ()
    assert with_group_facts(PLAN, (), [*life, expiry(9, "PreparingRebalance")]) == ()


def test_only_a_commit_that_was_made_puts_an_expiry_off() -> None:
    """Rule (KIP-211): of a group without members each offset expires by its own commit; one that was refused
    changes nothing."""
    place = (Position(topic="t", partition=0, offset=4),)
    alone = evolve(row(1, 2, "a", Function.COMMIT), member=None, generation=-1, positions=place)
    refused = evolve(alone, op_id=2, invoke_time=4 * SECOND, completion_time=4 * SECOND + 1)
    for outcome, expired in ((Outcome.FAIL, 1), (Outcome.OK, 0)):
        later = evolve(refused, outcome=outcome)
        assert len(with_group_facts(PLAN, (alone, later), [expiry(5, "Empty")])) == 2 + expired


def test_a_group_that_ended_and_came_back_is_another_one() -> None:
    """Rule: rows belong to the group in which their member was first heard of; an unknown commit may be read
    back in the next one."""
    events = [phase(1, "Stable", "a"), ended(3), phase(4, "Stable", "b")]
    rows = (row(1, 1, "a"), row(2, 2, "a", Function.COMMIT, Outcome.UNKNOWN), row(3, 5, "b"), row(4, 6, "a"))
    told = with_group_facts(PLAN, rows, events)
    names = {each.op_id: each.group for each in told if each.op_id < 10}
    assert names == {1: "g", 2: "g", 3: "g#2", 4: "g"}
    assert [(each.group, each.argument) for each in told if each.op_id >= 10] == [("g#2", "earlier")]


def of_instance(
    op_id: int,
    at_s: int,
    instance: str,
    function: Function,
    *,
    until_s: int | None = None,
    generation: int = 1,
) -> Operation:
    """A row of a static member: its join, with partition t-0, or a poll that got the first record of it."""
    return Operation(
        op_id=op_id,
        process=int(instance),
        function=function,
        invoke_time=at_s * SECOND,
        completion_time=(until_s or at_s) * SECOND + 1,
        outcome=Outcome.OK,
        group="g",
        member=instance,
        generation=generation,
        positions=(Position(topic="t", partition=0, offset=-1),) if function is Function.JOIN else (),
        records=(Record(topic="t", partition=0, offset=0, value=7),) if function is Function.POLL else (),
        leader_epoch=2 if function is Function.JOIN else None,
    )


def instances(at_s: int, *members: str, generation: int = 1) -> Event:
    return phase(at_s, "Stable", *members, generation=generation, epoch=2)


def groups_verdict(rows: tuple[Operation, ...], *events: Event) -> tuple[Decision, str | None]:
    told = with_group_facts(PLAN, rows, events)
    verdict = judge_trace(Trace(trace_id=1, plan="", seed=1, software_version="", operations=told))
    return verdict.decision, verdict.anomaly


SLEEPER = (
    of_instance(1, 1, "4", Function.JOIN),
    of_instance(2, 6, "6", Function.JOIN),
    of_instance(3, 7, "6", Function.POLL),
    of_instance(4, 8, "4", Function.POLL),
)
"""Instance 4 sleeps from second 1 to 8; instance 6 has its partition by then, in a generation of the same
number."""


def test_a_static_member_that_slept_belongs_to_the_group_that_ended() -> None:
    """Rule (seeds 3624, 1743): a poll belongs to the group in which its member joined that generation,
    whoever has the name of the group by now."""
    events = (instances(1, "4-1-26-1"), ended(4), instances(6, "6-1-26-3"))
    told = with_group_facts(PLAN, SLEEPER, events)
    assert [(row.op_id, row.group) for row in told] == [(1, "g"), (2, "g#2"), (3, "g#2"), (4, "g")]
    assert groups_verdict(SLEEPER, *events) == (Decision.OK, None)
    in_one_group = groups_verdict(SLEEPER, instances(1, "4-1-26-1"), instances(6, "4-1-26-1", "6-1-26-3"))
    assert in_one_group == (Decision.ILLEGAL, "partition_assigned_twice")


def test_two_owners_in_the_group_that_came_back_are_a_finding() -> None:
    """Rule: an ended group excuses only who joined that one; two members of its successor with one partition
    stay a finding."""
    again = of_instance(5, 9, "4", Function.JOIN)
    events = (
        instances(1, "4-1-26-1"),
        ended(4),
        instances(6, "6-1-26-3"),
        instances(9, "6-1-26-3", "4-1-26-4"),
    )
    verdict = groups_verdict((*SLEEPER, again, of_instance(6, 10, "4", Function.POLL)), *events)
    assert verdict == (Decision.ILLEGAL, "partition_assigned_twice")


def test_a_join_whose_answer_comes_after_the_end_belongs_to_the_group_that_told_it() -> None:
    """Rule: the last time that the coordinator told a member a generation, before the join was answered, says
    which group it joined."""
    late = of_instance(1, 1, "4", Function.JOIN, until_s=8)
    events = (instances(1, "4-1-26-1"), ended(4), instances(6, "6-1-26-3"))
    rows = (late, *SLEEPER[1:3], of_instance(4, 9, "4", Function.POLL))
    assert groups_verdict(rows, *events) == (Decision.OK, None)
    assert with_group_facts(PLAN, (late,), events)[0].group == "g"
    across = of_instance(1, 3, "4", Function.JOIN, until_s=8)  # asked before the end, taken by the next group
    told = with_group_facts(PLAN, (across,), (instances(1, "5-1-26-1"), ended(4), instances(6, "4-1-26-2")))
    assert told[0].group == "g#2"


def read_back(op_id: int, at_s: int, offset: int, until_s: int | None = None, epoch: int = 0) -> Operation:
    """What member a read back of t-0."""
    read = row(op_id, at_s, "a", Function.FETCH_COMMITTED)
    done = (until_s or at_s) * SECOND + 1
    return evolve(read, completion_time=done, topic="t", partition=0, offset=offset, leader_epoch=epoch)


def test_what_a_member_reads_back_is_of_the_group_that_has_the_name() -> None:
    """Rule (seed 4777): OffsetFetch names no member, so that one that slept through the end of its group is
    told the offsets of the next one; an offset that nobody committed, or that only the ended group had, stays
    a finding."""
    life = (
        phase(1, "Stable", "a", epoch=0),
        evolve(ended(3), leader_epoch=0),
        phase(4, "Stable", "b", epoch=0),
    )
    committed = row(2, 5, "b", Function.COMMIT)
    rows = (
        evolve(row(1, 4, "b"), generation=1),
        evolve(committed, topic="t", partition=0, offset=35, generation=1, leader_epoch=0),
    )
    assert groups_verdict((*rows, read_back(3, 6, 35)), *life) == (Decision.OK, None)
    assert groups_verdict((*rows, read_back(3, 6, 36)), *life)[1] == "committed_offset_unexplained"
    assert groups_verdict((*rows, read_back(3, 6, -1)), *life)[1] == "committed_offset_lost"

    def group_of(read: Operation) -> str | None:
        return with_group_facts(PLAN, (read,), life)[0].group

    assert (group_of(read_back(3, 2, -1)), group_of(read_back(3, 6, 35))) == ("g", "g#2")
    assert group_of(read_back(3, 2, -1, until_s=6)) == "g", "the end lies within it: its member says which"
    assert group_of(evolve(read_back(3, 2, -1, until_s=6), member="b")) == "g#2"
    assert group_of(read_back(3, 6, 9, epoch=-1)) == "g", "a coordinator that has not heard of the end"


def test_plans_of_groups_repeat_and_reach_what_they_are_for() -> None:
    """Rule: the same seed gives the same digest; a few seeds reach rebalances, fail-overs of coordinators,
    crashes and every style of commit."""
    assert run(swarm(5, "default+groups")).digest == run(swarm(5, "default+groups")).digest
    plans = [swarm(seed, "default+groups") for seed in range(60)]
    assert {plan.consumer.commit for plan in plans} == {"auto", "sync", "async", "before"}
    assert {plan.consumer.assignor for plan in plans} == {*ASSIGNORS}
    functions = {operation.function for plan in plans for operation in plan.operations}
    assert functions >= {"subscribe", "unsubscribe", "crash", "pause", "append"}
    assert any(
        fault.target.startswith("leader of __consumer_offsets") for plan in plans for fault in plan.faults
    )
