"""Rw-register against its definition: every order of small histories tried by hand."""

import json
from itertools import chain, combinations, permutations
from random import Random
from typing import Any

import pytest

from fencepost.checkers.models.workloads import workload_named
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Claims, Trace

Steps = list[list[Any]]


def txn(op_id: int, steps: Steps, outcome: str = "ok", *, begin: int = 0, end: int = 100, process: int = -1):
    """A transaction as recorded: the reads of an invocation know nothing."""
    asked = [[kind, key, value if kind == "w" else None] for kind, key, value in steps]
    return Operation(
        op_id=op_id,
        process=op_id if process < 0 else process,
        function=Function.TXN,
        invoke_time=begin,
        completion_time=None if outcome == "unknown" else end,
        outcome=Outcome(outcome),
        argument=json.dumps(asked),
        result=json.dumps(steps) if outcome == "ok" else None,
    )


def judged(*operations: Operation, uncertain: int = 0, **parameters: Any):
    """The verdict on these."""
    claims = Claims(clock_uncertainty_ns=uncertain)
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", claims=claims, operations=operations)
    return workload_named("rw-register", parameters).judge(trace)


def runs(order: tuple[Operation, ...]) -> bool:
    """Whether these explain what they read if they run one after another."""
    state: dict[Any, Any] = {}
    for one in order:
        for kind, key, value in json.loads(one.result or one.argument or ""):
            if kind == "w":
                state[key] = value
            elif one.outcome is Outcome.OK and state.get(key) != value:
                return False
    return True


def by_hand(operations: list[Operation], *, realtime: bool = False, sessions: bool = False) -> bool:
    """Whether some order of what happened, and of some of what may have happened, explains all reads."""
    sure = [one for one in operations if one.outcome is Outcome.OK]
    maybe = [one for one in operations if one.outcome is Outcome.UNKNOWN]
    more = chain.from_iterable(combinations(maybe, size) for size in range(len(maybe) + 1))
    return any(
        runs(order)
        for extra in more
        for order in permutations([*sure, *extra])
        if not any(
            then.completion_time is not None
            and then.completion_time < first.invoke_time
            and (realtime or (sessions and first.process == then.process))
            for first, then in combinations(order, 2)
        )
    )


def made(random: Random) -> list[Operation]:
    """Small transactions; what they read is what a run gave, or anything that was written."""
    fresh = iter(range(1, 100))
    wanted = [
        [
            ["w", key, next(fresh)] if random.random() < 0.5 else ["r", key, None]
            for key in random.choices("xy", k=random.randint(1, 3))
        ]
        for _ in range(random.randint(2, 5))
    ]
    written = {key: [s[2] for t in wanted for s in t if s[:2] == ["w", key]] for key in "xy"}
    state: dict[Any, Any] = {}
    strange = random.choice((0, 0.1, 0.5))
    for steps in random.sample(wanted, len(wanted)):
        for step in steps:
            if step[0] == "w":
                state[step[1]] = step[2]
            else:
                free = random.random() < strange
                step[2] = random.choice([None, *written[step[1]]]) if free else state.get(step[1])
    operations = []
    for op_id, steps in enumerate(wanted):
        begin = random.randint(0, 20)
        outcome = random.choices(("ok", "unknown", "fail"), (8, 2, 1))[0]
        process = op_id if outcome != "ok" else random.randint(10, 11)
        operations.append(
            txn(op_id, steps, outcome, begin=begin, end=begin + random.randint(0, 9), process=process)
        )
    return operations


@pytest.mark.parametrize("order", [{}, {"sessions": True}, {"realtime": True}])
def test_the_verdict_is_that_of_trying_every_order(order) -> None:
    """Rule: legal exactly if some order explains every read, with the order of time as asked."""
    random = Random(str(order))
    seen: dict[bool, int] = {True: 0, False: 0}
    for _ in range(1500):
        operations = made(random)
        legal = by_hand(operations, **order)
        verdict = judged(*operations, **order)
        proves = any(one.outcome is Outcome.OK for one in operations)
        fine = Decision.OK if proves else Decision.ASSUMPTION_BROKEN
        assert verdict.decision is (fine if legal else Decision.ILLEGAL), operations
        seen[legal] += 1
    assert min(seen.values()) > 200


W1, W2 = [["w", "x", 1]], [["w", "x", 2]]


@pytest.mark.parametrize(
    ("transactions", "anomaly"),
    [
        ([([["w", "x", 1], ["r", "x", None]], "ok")], "own_write_missed"),
        ([(W1, "ok"), ([["r", "x", None], ["r", "x", 1]], "ok")], "own_write_missed"),
        ([([["r", "x", 1], ["w", "x", 1]], "ok")], "own_write_missed"),
        ([(W1, "fail"), ([["r", "x", 1]], "ok")], "failed_write_read"),
        ([([*W1, *W2], "ok"), ([["r", "x", 1]], "ok")], "intermediate_read"),
        ([(W1, "unknown"), ([["r", "x", 1]], "ok")], None),
        ([(W1, "unknown"), ([["r", "x", None]], "ok")], None),
        # a lost update: both read the same and overwrote it
        (
            [([["r", "x", None], ["w", "x", 1]], "ok"), ([["r", "x", None], ["w", "x", 2]], "ok")],
            "not_serializable",
        ),
        # a write skew
        (
            [([["r", "x", None], ["w", "y", 1]], "ok"), ([["r", "y", None], ["w", "x", 2]], "ok")],
            "not_serializable",
        ),
        # they read each other
        ([([*W1, ["r", "y", 2]], "ok"), ([["w", "y", 2], ["r", "x", 1]], "ok")], "not_serializable"),
    ],
)
def test_anomalies_by_their_names(transactions, anomaly) -> None:
    """Rule: each finding says what broke, and is proven by operations of the history."""
    verdict = judged(*(txn(number, *one) for number, one in enumerate(transactions)))
    assert verdict.anomaly == anomaly
    assert all(finding.operations and finding.seen for finding in verdict.findings)


def test_what_is_not_known_is_not_guessed() -> None:
    """Rule: a value that is written twice, or by nobody, or an answer to another question, is named."""
    twice = judged(txn(0, W1), txn(1, W1))
    assert twice.decision is Decision.ASSUMPTION_BROKEN and "operation 1" in twice.reason
    assert "by operation 0" in twice.reason
    nobody = judged(txn(0, [["r", "x", 7]]))
    assert nobody.decision is Decision.ASSUMPTION_BROKEN and "initial=" in nobody.reason
    assert judged(txn(0, [["r", "x", 7]]), initial=7).decision is Decision.OK
    assert judged(txn(0, [["r", "x", 8]]), initial=7).anomaly == "element_from_nowhere"
    assert "at first" in judged(txn(0, [["w", "x", 7]]), initial=7).reason


def test_times_of_uncertain_clocks_order_less() -> None:
    """Rule: a read that came too early for its write convicts only beyond the error of the clocks."""
    late = txn(0, W1, begin=0, end=10), txn(1, [["r", "x", None]], begin=20, end=30)
    assert judged(*late).decision is Decision.OK
    assert judged(*late, realtime=True).anomaly == "not_serializable"
    assert judged(*late, realtime=True, uncertain=5).decision is Decision.OK
    assert judged(*late, realtime=True, uncertain=4).anomaly == "not_serializable"


def test_a_long_history_is_decided() -> None:
    """Rule: an order is found without trying many; one wrong read among thousands is a circle."""
    random, state = Random(5), dict[int, Any]()
    rows = []
    for number in range(2000):
        key, other = random.randrange(10), random.randrange(10, 20)
        reads = [["r", one, state.get(one)] for one in (other, key)]
        rows.append(txn(number, [*reads, ["w", key, number]]))
        state[key] = number
        if number % 3 == 0:
            rows.append(txn(10_000 + number, [["w", other, -number - 1]], begin=number, end=number + 1))
            state[other] = -number - 1
    assert judged(*rows).decision is Decision.OK
    first = next(key for key in range(10) if state.get(key))
    wrong = txn(99_999, [["r", first, state[first]], ["w", first, -5000]])
    also = txn(99_998, [["r", first, state[first]], ["w", first, -5001]])
    assert judged(*rows, wrong, also).anomaly == "not_serializable"
