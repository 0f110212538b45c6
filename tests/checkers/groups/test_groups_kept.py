"""What the groups check says of seeded histories, and which facts it tells, stays what it was (kept.py)."""

from random import Random
from typing import Any

import pytest
from attrs import evolve
from group_random import PLANTS, healthy
from test_group_differential import random_register

from fencepost.checkers.groups import group_facts, judge_trace, processing
from fencepost.checkers.groups.history import history_of
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers.kept import differences, plain, words_of
from tests.checkers.wild_histories import bent, wild
from tests.selfcheck.amounts import amount

SEEDS, BLOCK = 480, 60


def _second_partition(random: Random, operation: Operation) -> Operation:
    """The operation on partition 1 as well as on 0, or in another group."""
    if random.random() < 0.15 and operation.group is not None:
        return evolve(operation, group="h")
    return operation


def _hurried(random: Random, operation: Operation) -> Operation:
    """The operation closer to the others, and longer, so that they overlap."""
    invoke = operation.invoke_time // 4 + random.randint(0, 3)
    complete = None if operation.completion_time is None else invoke + random.choice((0, 1, 2, 5, 10))
    return evolve(operation, invoke_time=invoke, completion_time=complete)


def history(seed: int) -> Trace:
    """A right group's history with a planted fault, and then bent in some places; in haste, perhaps; clocks
    may err, loss may be allowed."""
    random = Random(f"kept {seed}")
    trace = healthy(seed)
    operations = list(trace.operations)
    if random.random() < 0.6:
        planted = PLANTS[random.choice(sorted(PLANTS))](random, operations)
        operations = planted if planted is not None else operations
    for _ in range(random.choice((0, 1, 1, 2, 3, 4))):
        at = random.choice([n for n, o in enumerate(operations) if o.op_id < 1000] or [0])
        operations[at] = bent(random, operations[at])
    if random.random() < 0.2:
        operations = [_second_partition(random, operation) for operation in operations]
    if random.random() < 0.4:
        operations = [
            _hurried(random, o) if o.op_id < 1000 or random.random() < 0.3 else o for o in operations
        ]
    clocks, uncertain = random.choice(((1, 0), (1, 3), (2, 0), (3, 3), (3, 12)))
    operations = [evolve(o, clock_id=o.process % clocks) for o in operations]
    low = random.randint(0, 8)
    loss = (LossRange(topic="t", partition=0, start=low, end=low + random.randint(1, 3), reason="test"),)
    claims = Claims(
        loss=loss if random.random() < 0.3 else (), clock_uncertainty_ns=uncertain,
        retention=random.random() < 0.05, compacted=("t",) if random.random() < 0.05 else (),
    )  # fmt: skip
    return evolve(trace, operations=tuple(operations), claims=claims)


def register(seed: int) -> Trace:
    """Commits, fetches and joins of two such histories, one shortly after the other, by clocks that may
    err."""
    random = Random(f"register {seed}")
    first, second = random_register(2 * seed), random_register(2 * seed + 1)
    later = random.choice((0, 3, 6))
    moved = [
        evolve(
            o,
            op_id=o.op_id + 10,
            invoke_time=o.invoke_time + later,
            completion_time=None if o.completion_time is None else o.completion_time + later,
        )
        for o in second.operations
    ]
    operations = [evolve(o, clock_id=random.randrange(2)) for o in (*first.operations, *moved)]
    claims = Claims(clock_uncertainty_ns=random.choice((0, 0, 0, 1, 4)))
    return evolve(first, operations=tuple(operations), claims=claims)


def said(seed: int) -> Any:
    """Verdict, facts and relations of four histories."""
    told = []
    for trace in (history(2 * seed), history(2 * seed + 1), register(seed), wild(seed, ("groups",))):
        told.append((words_of(judge_trace(trace)), plain(group_facts(trace)), plain(history_of(trace))))
    return told


@pytest.mark.parametrize("begin", range(0, amount(2 * BLOCK, SEEDS), BLOCK))
def test_what_is_said_of_groups_stays(begin: int) -> None:
    """Rule: the same operations are convicted of the same anomaly at the same offset, and the same facts are
    told with the same cause."""
    assert differences("groups", said, range(begin, begin + BLOCK)) == []


def test_a_planted_fault_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a check that names every cause a rebalance differs on some seed."""
    monkeypatch.setattr(processing, "_cause", lambda *_: "rebalance")
    assert differences("groups", said, range(60))
