"""For each anomaly of consumer groups a minimal history that convicts, the nearest legal one, and what is a
fact with its cause."""

import pytest
from attrs import evolve
from group_histories import FAIL, UNKNOWN, append, commit, fetch, got, join, told, trace

from fencepost.checkers.groups import group_facts, judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.trace import Trace
from tests.checkers import lab

FIVE = tuple(append(50 + n, n) for n in range(5))

# what it is about, anomaly, its convicting operations, the history, the nearest legal history
CASES: list[tuple[str, str, tuple[int, ...], Trace, Trace]] = [
    (
        "two members are assigned a partition",
        "partition_assigned_twice",
        (2, 1),
        *lab.pair(lambda either: trace(join(1, "m1", 1, 0), join(2, "m2", either(1, 2), 0))),
    ),
    (
        "two members poll a partition, joins are not recorded",
        "partition_assigned_twice",
        (2, 1),
        *lab.pair(lambda either: trace(got(1, "m1", 1, 0), got(2, "m2", either(1, 2), 1))),
    ),
    (
        "a generation goes back",
        "generation_regressed",
        (2, 1),
        trace(join(1, "m1", 2, 0), join(2, "m1", 1, 0)),
        trace(join(1, "m1", 2, 0), join(2, "m2", 1, 1, at=(15, 30))),  # a tie is concurrent
    ),
    (
        "a member gets what is not its own",
        "unassigned_poll",
        (2, 1),
        *lab.pair(lambda either: trace(join(1, "m1", 1, *either((), (0,)), 1), got(2, "m1", 1, 0))),
    ),
    (
        "a stale commit is accepted",
        "stale_commit_accepted",
        (3, 2),
        trace(join(1, "m1", 1, 0), join(2, "m2", 2, 0), commit(3, "m1", 1, 5)),
        trace(join(1, "m1", 1, 0), join(2, "m2", 2, 0), commit(3, "m1", 1, 5, outcome=FAIL)),
    ),
    (
        "an acknowledged commit is not read back",
        "committed_offset_lost",
        (3, 2, 1),
        trace(commit(1, "m1", 1, 3), commit(2, "m1", 1, 5), fetch(3, 3)),
        trace(commit(1, "m1", 1, 3), commit(2, "m1", 1, 5, at=(14, 25)), fetch(3, 3)),  # concurrent commits
    ),
    (
        "nothing is read back",
        "committed_offset_lost",
        (2, 1),
        trace(commit(1, "m1", 1, 3), fetch(2, None)),
        trace(commit(1, "m1", 1, 3, outcome=UNKNOWN), fetch(2, None)),
    ),
    (
        "a fenced unknown commit cannot come back",
        "committed_offset_lost",
        (4, 3, 1),
        trace(*told("commit m1 1 3 outcome=unknown; join m2 2 0; commit m2 2 5; fetch 3")),
        trace(*told("commit m1 2 3 outcome=unknown; join m2 2 0; commit m2 2 5; fetch 3")),
    ),
    (
        "what nobody committed is read back",
        "committed_offset_unexplained",
        (2,),
        *lab.pair(lambda either: trace(commit(1, "m1", 1, either(3, 4)), fetch(2, 4))),
    ),
    (
        "what is committed later is read back",
        "committed_offset_unexplained",
        (1, 2),
        *lab.pair(lambda either: trace(either(fetch(1, 4), fetch(1, 4, at=(10, 20))), commit(2, "m1", 1, 4))),
    ),
    (
        "two fetches see two concurrent commits in both orders",
        "committed_offset_not_linearizable",
        (3, 4, 5),
        *lab.pair(
            lambda either: trace(
                *told("commit m1 1 3 at=0-100; commit m1 1 5 at=0-100; fetch 3; fetch 5"),
                fetch(5, either(3, 5)),
            )
        ),
    ),
    (
        "a group goes back behind its commit",
        "reprocessed_after_commit",
        (4, 2, 1),
        trace(got(1, "m1", 1, 0, 1), commit(2, "m1", 1, 2), join(3, "m2", 2, 0), got(4, "m2", 2, 1)),
        trace(got(1, "m1", 1, 0, 1), commit(2, "m1", 1, 2), join(3, "m2", 2, 0), got(4, "m2", 2, 2)),
    ),
    (
        "a group passes the record where it began",
        "processing_gap",
        (3, 52),
        trace(*FIVE, commit(0, "m1", 1, 2, at=(0, 1)), fetch(1, 2), got(3, "m1", 1, 3)),
        trace(*FIVE, commit(0, "m1", 1, 2, at=(0, 1)), fetch(1, 2), got(3, "m1", 1, 2)),
    ),
    (
        "a group passes a record",
        "processing_gap",
        (2, 51),
        *lab.pair(lambda either: trace(*FIVE, got(1, "m1", 1, 0), got(2, "m1", 1, either(2, 1)))),
    ),
]


@pytest.mark.parametrize(
    "anomaly,operations,illegal,legal", [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_anomaly_has_its_history(anomaly, operations, illegal, legal) -> None:
    """Each rule convicts its minimal history, by operations that prove it, and passes the nearest legal
    one."""
    verdict = judge_trace(illegal)
    assert [(f.anomaly, f.check) for f in verdict.findings] == [(anomaly, "groups")]
    found = verdict.findings[0].operations
    assert set(operations) <= set(found) if "linearizable" in anomaly else found == operations
    assert judge_trace(legal).decision is Decision.OK


FAR = 10**18


@pytest.mark.parametrize("illegal", [case[3] for case in CASES], ids=[case[0] for case in CASES])
def test_op_ids_may_be_as_large_as_they_like(illegal) -> None:
    """The same is found, and by the same operations, if each op id is higher by 10^18."""
    far = [evolve(one, op_id=one.op_id + FAR) for one in illegal.operations]
    (one,), (other,) = (judge_trace(each).findings for each in (illegal, evolve(illegal, operations=far)))
    assert other.anomaly == one.anomaly
    assert other.operations == tuple(op_id + FAR for op_id in one.operations)


ALLOWED: list[tuple[str, Trace]] = [
    (
        "a commit without a generation is not fenced",
        trace(join(1, "m1", 1, 0), join(2, "m2", 2, 0), commit(3, "", None, 5), fetch(4, 5)),
    ),
    (
        "a commit that began before the higher generation was known",
        trace(join(1, "m1", 1, 0), join(2, "m2", 2, 0), commit(3, "m1", 1, 5, at=(25, 40))),
    ),
    (
        "several partitions in one commit and one fetch",
        trace(join(1, "m1", 1, 0, 1), commit(2, "m1", 1, 5), fetch(3, 5), got(4, "m1", 1, 7, partition=1)),
    ),
    ("a lower commit later is read back", trace(commit(1, "m1", 1, 5), commit(2, "m1", 1, 3), fetch(3, 3))),
    (
        "an unknown commit takes effect late",
        trace(commit(1, "m1", 1, 3, outcome=UNKNOWN), commit(2, "m1", 1, 5), fetch(3, 5), fetch(4, 3)),
    ),
    (
        "clocks may err",
        trace(*told("join m1 1 0; join m2 2 0; commit m1 1 5 clock_id=1"), clock_uncertainty_ns=3),
    ),
    ("loss explains a gap", trace(*FIVE, got(1, "m1", 1, 0), got(2, "m1", 1, 2), loss=(1, 2))),
    ("retention explains a gap", trace(*FIVE, got(1, "m1", 1, 0), got(2, "m1", 1, 2), retention=True)),
    ("compaction explains a gap", trace(*FIVE, got(1, "m1", 1, 0), got(2, "m1", 1, 2), compacted=("t",))),
    ("records before the group began are no gap", trace(*FIVE, got(1, "m1", 1, 2))),
    (
        "a lower commit since explains why it came again",
        trace(*told("got m1 1 0 1; commit m1 1 2; commit m1 1 1; join m2 2 0; got m2 2 1")),
    ),
]


@pytest.mark.parametrize("history", [case[1] for case in ALLOWED], ids=[case[0] for case in ALLOWED])
def test_what_is_allowed(history) -> None:
    """What claims, unknown outcomes or the client's own choice explain is no finding."""
    assert judge_trace(history).findings == ()


FACTS: list[tuple[tuple[str, str, int, tuple[int, ...]], Trace]] = [
    (("reprocessed", "crash", 1, (4, 1)), trace(*told("got m1 1 0 1; crash m1; join m2 2 0; got m2 2 1"))),
    (("reprocessed", "rebalance", 2, (4, 1)), trace(*told("got m1 1 0 1; 3:join m2 2 0; got m2 2 0 1"))),
    (("reprocessed", "same_member", 1, (2, 1)), trace(got(1, "m1", 1, 0, 1), got(2, "m1", 1, 1))),
    (("reprocessed", "crash", 1, (3, 1)), trace(*told("got m1 - 0; 3:got m2 - 0 process=1 session=1"))),
    (
        ("gap", "commit_before_processing", 2, (2, 51)),
        trace(*FIVE, *told("got m1 1 0; commit m1 1 3; crash m1; join m2 2 0; got m2 2 3")),
    ),
    (("gap", "commit_before_processing", 4, (2, 51)), trace(*FIVE, *told("got m1 1 0; commit m1 1 5"))),
    (
        ("older_commit_won", "unknown_outcome", 1, (3, 1, 2)),
        trace(commit(1, "m1", 1, 3, outcome=UNKNOWN), commit(2, "m1", 1, 5), fetch(3, 3)),
    ),
    (
        ("older_commit_won", "concurrent", 1, (3, 1, 2)),
        trace(commit(1, "m1", 1, 3, at=(10, 25)), commit(2, "m1", 1, 5), fetch(3, 3)),
    ),
]


@pytest.mark.parametrize(
    "fact,history", FACTS, ids=[f"{case[0][0]}-{case[0][1]}-{n}" for n, case in enumerate(FACTS)]
)
def test_what_a_correct_group_may_show_is_a_fact_with_its_cause(fact, history) -> None:
    """A record got again, a record never got and an older commit that won are told with their cause, and are
    no finding."""
    assert [(f.kind, f.cause, f.count, f.operations) for f in group_facts(history)] == [fact]
    assert judge_trace(history).decision is Decision.OK


NO_FACTS: list[tuple[str, Trace]] = [
    ("records that the group has not reached yet", trace(*FIVE, got(1, "m1", 1, 0))),
    (
        "a commit beyond that may not have happened",
        trace(*FIVE, got(1, "m1", 1, 0), commit(2, "m1", 1, 5, outcome=UNKNOWN)),
    ),
    (
        "records below where the group began",
        trace(*FIVE, commit(0, "m1", 1, 2, at=(0, 1)), fetch(1, 2), got(3, "m1", 1, 2)),
    ),
    (
        "a lower commit that is read back was the newer one",
        trace(commit(1, "m1", 1, 5), commit(2, "m1", 1, 3), fetch(3, 3)),
    ),
    ("each record once", trace(got(1, "m1", 1, 0), got(2, "m1", 1, 1))),
]


@pytest.mark.parametrize("history", [case[1] for case in NO_FACTS], ids=[case[0] for case in NO_FACTS])
def test_what_is_no_fact_either(history) -> None:
    """What is merely not known, or not reached, is no fact."""
    assert group_facts(history) == ()


def test_a_trace_without_groups_and_one_too_weak() -> None:
    """Nothing to judge is Ok; a broken assumption is answered as such."""
    assert judge_trace(trace(*FIVE)).decision is Decision.OK
    assert judge_trace(trace(*FIVE, assumption_broken="x")).decision is Decision.ASSUMPTION_BROKEN
