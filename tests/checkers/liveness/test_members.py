"""What a group owes while it has members."""

from attrs import evolve

from fencepost.checkers.liveness import judge
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from tests.checkers.liveness import test_rows as rows


def test_what_was_deleted_or_cleaned_is_not_handed_out() -> None:
    """Rule: a group that comes late gets what its log still has. Nor is it owed a commit."""
    append = rows.op(Function.APPEND, 50, 50.1, process=9, acks=-1, offset=5, key="k")
    start = rows.event(51, Name.LOG_START, node=1, topic="t", partition=0, log_start_offset=6)
    cleaned = rows.event(51, Name.COMPACTED, node=1, topic="t", partition=0, offset=6)
    for gone in (start, cleaned):
        assert "late_delivery" not in rows.found([*rows.MEMBER, append, gone])
    assert "late_delivery" in rows.found([*rows.MEMBER, evolve(append, key=None), cleaned])
    assert "late_delivery" in rows.found([*rows.MEMBER, append, evolve(start, log_start_offset=5)])
    joins = (
        rows.of_group(Function.POLL, 50.8, 50.9, records=(rows.record(5),)),
        rows.of_group(Function.JOIN, 52, 52.1),
    )
    assert "given_up_uncommitted" not in rows.found([*rows.MEMBER, start, *joins])
    assert "given_up_uncommitted" in rows.found([*rows.MEMBER, evolve(start, log_start_offset=5), *joins])


def test_what_a_group_committed_it_has_passed() -> None:
    """Rule: a member that commits first may end at work, so that the poll that brought a record is not there.
    A commit that was refused, or of the record's own offset, passes nothing."""
    append = rows.op(Function.APPEND, 50, 50.1, process=9, acks=-1, offset=5)
    passed = rows.of_group(Function.COMMIT, 50.8, 50.9, positions=(rows.place(6),))
    refused = evolve(passed, outcome=Outcome.FAIL, error="REBALANCE_IN_PROGRESS")
    assert "late_delivery" not in rows.found([*rows.MEMBER, append, passed])
    for other in (refused, evolve(passed, positions=(rows.place(5),))):
        assert "late_delivery" in rows.found([*rows.MEMBER, append, other])


def test_who_is_told_to_work_while_it_stands_still_works_after_that() -> None:
    """Rule: nobody polls until it is done."""
    of = {"process": 0, "key": "g", "function": "pause"}
    still = PlannedOperation(op_id=1, at_ms=39_000, records=80, **of)
    works = PlannedOperation(op_id=2, at_ms=43_000, records=250, argument="working", **of)
    append = rows.op(Function.APPEND, 48.1, 48.2, process=9, acks=-1, offset=5)
    trace = rows.trace_of(
        [*rows.MEMBER, append, rows.of_group(Function.POLL, 72.8, 72.9, records=(rows.record(5),))]
    )
    for told, late in ((still,), True), ((still, works), False):
        judged = judge(evolve(trace, plan=plan_to_json(evolve(rows.PLAN, operations=told))))
        assert ("late_delivery" in {finding.anomaly for finding in judged.findings}) == late


def test_who_sends_no_heartbeats_hears_late_that_it_has_another_coordinator() -> None:
    """Rule: the first request of a consumer that is no member may be refused long after the move, a later one
    not."""
    moved = [rows.fault(40, "crash", 3), rows.over(42, "crash", 3)]
    alone = {"member": "", "generation": -1}
    refused = rows.of_group(Function.COMMIT, 80, 80.1, outcome=Outcome.FAIL, error="NOT_COORDINATOR", **alone)
    for answered, wrong in (30, False), (75, True):
        heard = rows.of_group(Function.COMMIT, answered, answered + 0.1, **alone)
        assert ("needless_refusal" in rows.found([*moved, heard, refused])) is wrong


def test_a_group_that_was_made_again_is_another_one() -> None:
    """Rule: its first generation has a number that the former group had, and what that left uncommitted as it
    ended is not owed by it."""
    left = rows.of_group(Function.POLL, 40, 40.1, records=(rows.record(5),), positions=(rows.place(5),))
    begins = rows.of_group(Function.JOIN, 20, 20.1, positions=(rows.place(-1),))
    again = {"group": "g#2"}
    story = [begins, left, rows.of_group(Function.JOIN, 60, 60.1, positions=(rows.place(-1),), **again)]
    assert "missing_commit" not in rows.found([*story, *rows.polls(*range(61, 90), **again)])
    assert "missing_commit" in rows.found([*story, *rows.polls(*range(61, 90))])


def reader(process: int, begin: int, end: int, generation: int = 1) -> list[Operation]:
    """A member that reads t-0 from one second to another, and gets nothing."""
    who = {"process": process, "member": f"m{process}", "generation": generation}
    join = rows.of_group(Function.JOIN, begin, begin + 0.1, positions=(rows.place(-1),), **who)
    return [join, *rows.polls(*range(begin + 1, end), **who)]


def test_a_group_without_members_hands_out_nothing() -> None:
    """Rule: what was acknowledged while a group had no member is owed from when it has one again. One that
    lives on owes it at once."""
    append = rows.op(Function.APPEND, 50, 50.1, process=9, acks=-1, offset=5)
    gone, back = (
        [*reader(3, 20, 30), rows.op(Function.CRASH, 30, 30, process=3)],
        reader(4, 80, 95, generation=2),
    )
    who = {"process": 4, "member": "m4", "generation": 2}
    handed = rows.of_group(
        Function.POLL, 80.2, 80.3, records=(rows.record(5),), positions=(rows.place(5),), **who
    )
    stays = reader(5, 20, 80)
    assert "late_delivery" not in rows.found([*gone, append, *back, handed])
    assert "late_delivery" in rows.found([*gone, append, *back])
    assert "late_delivery" in rows.found([*gone, *stays, append, *back, handed])


def test_who_left_is_in_no_later_state_of_its_coordinator() -> None:
    """Rule: a rebalance that had begun goes on without who left. What a coordinator has loaded since is of
    its log, and a member may be in that."""
    left = rows.of_group(Function.LEAVE, 30, 30.1, member="m1", node=1)
    rebalancing = rows.in_group(29, "PreparingRebalance", "m1", "m2")
    for members, why, kept in ((("m2",), "", False), (("m1", "m2"), "", True), (("m1",), "loaded", False)):
        later = rows.in_group(31, "CompletingRebalance", *members, why=why)
        assert ("leaver_stays_member" in rows.found([rebalancing, left, later])) is kept
