"""The groups check against a right coordinator, planted faults, and an exhaustive search for committed
offsets."""

from itertools import combinations, permutations
from random import Random

import pytest
from group_histories import OK, UNKNOWN, commit, fetch, join, trace
from group_random import PLANTS, healthy

from fencepost.checkers.groups import judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function


def test_a_right_group_is_never_convicted() -> None:
    """Rebalances, crashes and lost answers of a right coordinator give no finding."""
    for seed in range(300):
        assert judge_trace(healthy(seed)).decision is Decision.OK, seed


@pytest.mark.parametrize("anomaly", PLANTS)
def test_each_planted_fault_is_found(anomaly: str) -> None:
    """A fault planted into a right history is found under its name, wherever the history has room for it."""
    planted = 0
    for seed in range(80):
        history = healthy(seed)
        operations = PLANTS[anomaly](Random(seed), list(history.operations))
        if operations is not None:
            planted += 1
            assert anomaly in {f.anomaly for f in judge_trace(trace(*operations)).findings}, seed
    assert planted >= 15


def ends(operation) -> float:
    return float("inf") if operation.outcome is UNKNOWN else operation.completion_time


def possible(operations) -> bool:
    """Whether some order of the operations, with any of the unknown commits left out, keeps real time and is
    what a register with fences does."""
    unknown = [o for o in operations if o.outcome is UNKNOWN]
    for count in range(len(unknown) + 1):
        for left_out in combinations(unknown, count):
            chosen = [o for o in operations if o not in left_out]
            for order in permutations(chosen):
                if all(
                    ends(b) >= a.invoke_time for n, a in enumerate(order) for b in order[n + 1 :]
                ) and right(order):
                    return True
    return False


def right(order) -> bool:
    offset, highest = None, -1
    for o in order:
        if o.function is Function.FETCH_COMMITTED:
            if o.offset != offset:
                return False
            continue
        if o.generation is not None and o.generation < highest:
            return False
        highest = max(highest, -1 if o.generation is None else o.generation)
        if o.function is Function.COMMIT:
            offset = o.offset
    return True


def random_register(seed: int):
    """A few commits, fetches and joins at random times; about half of them are impossible."""
    random, operations = Random(seed), []
    for op_id in range(1, random.randint(3, 6)):
        at = random.randint(0, 12)
        times, roll = (at, at + random.randint(0, 5)), random.random()
        if roll < 0.5:
            unknown = random.random() < 0.3
            generation = random.choice((None, 1, 1, 2))
            offset = random.randint(1, 2)
            more = {"outcome": UNKNOWN if unknown else OK}
            operations.append(
                commit(op_id, "m1", generation, offset, at=(times[0], None if unknown else times[1]), **more)
            )
        elif roll < 0.85:
            operations.append(fetch(op_id, random.choice((None, 1, 1, 2)), at=times))
        else:
            operations.append(join(op_id, "m1", random.choice((1, 2)), 0, at=times))
    return trace(*operations, trace_id=seed)


OF_OFFSETS = {
    *("stale_commit_accepted", "generation_regressed", "committed_offset_lost"),
    *("committed_offset_unexplained", "committed_offset_not_linearizable"),
}


def sweep(seed: int, count: int) -> tuple[list[int], int, dict[str, int]]:
    """Random register histories from `seed` on: those in which the check and the exhaustive search disagree,
    how many are illegal, and how often each anomaly was found."""
    mismatches: list[int] = []
    illegal = 0
    found: dict[str, int] = {}
    for number in range(seed, seed + count):
        history = random_register(number)
        if not any(o.function is not Function.JOIN for o in history.operations):
            continue
        names = {f.anomaly for f in judge_trace(history).findings}
        for name in names & OF_OFFSETS:
            found[name] = found.get(name, 0) + 1
        explained = possible(history.operations)
        illegal += not explained
        if bool(names & OF_OFFSETS) == explained:
            mismatches.append(number)
    return mismatches, illegal, found


def test_committed_offsets_are_decided_exactly() -> None:
    """The short proofs and the engine together convict exactly the histories that no order explains."""
    mismatches, _, found = sweep(0, 400)
    assert mismatches == []
    assert set(found) == OF_OFFSETS
