"""The log check by slot ranges never passes a log that the plain check would not, however it is cut; and
passes ordinary logs."""

from random import Random

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from log_histories import append, judge_trace, random_trace, read, trace, with_claims
from log_special_histories import special_trace
from log_strength import Strength
from ranges_twin import reasons_by_log, unread_by_log

from fencepost.checkers.log import judge_columns, log_columns
from fencepost.checkers.log.log_rules import rules_of
from fencepost.checkers.log.ranges import decide, partial, verdict
from fencepost.checkers.log.stacked import convicted, stack_of
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

PROFILES = ("default", "default", "strong", "session", "content")


def made_of(seed: int):
    rng = Random(seed)
    kind = rng.randrange(4)
    if kind == 0:
        return forgiving(special_trace(rng, profiles=PROFILES))
    made = random_trace(rng, profiles=PROFILES)
    made = forgiving(with_claims(rng, made) if kind == 1 else made)
    return read_committed(made) if rng.randrange(4) == 0 else made


def read_committed(made: Trace) -> Trace:
    """The history as clients that read committed records see it where nothing is transactional: each end that
    a read claims is a last stable offset, too."""

    def seen(one: Operation) -> Operation:
        if one.function not in (Function.READ, Function.POLL):
            return one
        positions = tuple(evolve(place, last_stable_offset=place.end_offset) for place in one.positions)
        return evolve(one, isolation="read_committed", last_stable_offset=one.end_offset, positions=positions)

    return evolve(made, operations=tuple(map(seen, made.operations)))


def forgiving(made: Trace) -> Trace:
    """The history where acks=1 may lose: of others with acks=1 slots cannot tell whether they are strong
    enough."""
    return evolve(made, claims=evolve(made.claims, acks_1_may_lose=True))


def disagreement(seed: int) -> str:
    """What the check by ranges missed: a verdict that is not Ok though no log was suspected. "" if
    nothing."""
    made = made_of(seed)
    columns = log_columns(columns_of_traces([made]))
    if columns.broken or made.claims.assumption_broken:
        return ""
    plain = judge_trace(made)
    reasons = reasons_by_log(made, Random(seed), width=Random(seed).choice((1, 2, 3, 8, 64)))
    if plain.decision is Decision.OK or any(reasons.values()):
        return ""
    return f"{plain}"


@settings(max_examples=amount(60, 150), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**40))
def test_nothing_is_passed_that_the_plain_check_does_not_pass(seed: int) -> None:
    """Cut into any batches and ranges, a history that is not Ok has a log that needs a closer look."""
    assert disagreement(seed) == ""


@settings(max_examples=amount(25, 60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**40))
def test_ordinary_logs_are_passed(seed: int) -> None:
    """Where the rules pass a log without holes, duplicates or anything special, the check by ranges passes it
    too: it does not suspect everything."""
    rng = Random(seed)
    made = forgiving(random_trace(rng, profiles=PROFILES, mutations=0))
    if rng.randrange(3) == 0:
        made = read_committed(made)
    columns = log_columns(columns_of_traces([made]))
    stack = stack_of(columns, rules_of(columns), np.arange(columns.groups))
    passed = stack is not None and not len(convicted(stack)[0]) and not columns.broken
    if passed and not judge_columns(columns, weak_is_ok=True) and not made.claims.duplicates:
        assert not any(reasons_by_log(made, rng, width=rng.choice((1, 2, 3, 8, 64))).values())


@settings(max_examples=amount(40, 100), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**40))
def test_unread_records_are_counted_alike(seed: int) -> None:
    """Of logs that slots can tell of, the ranges count as many unread acknowledged records as the
    definitions, wherever they are cut."""
    rng = Random(seed)
    made = made_of(seed)
    columns = log_columns(columns_of_traces([made]))
    if columns.broken or made.claims.duplicates:
        return
    for reasons, unread in unread_by_log(made, rng, width=rng.choice((1, 2, 3, 8, 64))):
        if not reasons:  # what is suspected is for the closer look
            assert unread == Strength(made).unread(-1), made


def test_a_range_that_forgets_who_was_read_is_noticed(monkeypatch) -> None:
    """The planted fault: ranges that call nothing unread."""
    made = trace(append(1, [100], 0, 1, 0), read(2, 0, [], 2, 3))
    assert [unread for _, unread in unread_by_log(made, Random(1), width=2)] == [1]
    monkeypatch.setattr(decide, "_unread", lambda slots, core, end, low: decide.np.empty((2, 0), int))
    assert [unread for _, unread in unread_by_log(made, Random(1), width=2)] == [0]


def test_a_batch_reaches_where_nothing_else_does() -> None:
    """A read of the last record of an unknown batch places the others below it, in a range that no operation
    touches: passing over them is suspected."""
    made = trace(append(1, [100, 101, 102], 1, None), read(2, 2, [(4, 102)], 7, 8))
    assert judge_trace(made).anomaly == "skipped_offset"
    assert all(any(reasons_by_log(made, Random(1), width=width).values()) for width in (1, 2, 3, 5))


def _missed(seeds: range) -> bool:
    return any(disagreement(seed) for seed in seeds)


RULES = {
    "_occupied_in": lambda *_: False,
    "_pass": lambda slots, core, end: (False, False, False, decide.LONG_AGO, decide.NEVER, -1, -1, -1),
    "_resolve": lambda *_: 0,
}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_left_out_of_a_range_is_noticed(rule: str, monkeypatch) -> None:
    """Without one of the rules within a range, the first property fails: it can fail."""
    monkeypatch.setattr(decide, rule, RULES[rule])
    assert _missed(range(770, 1100))


def test_a_special_log_taken_for_an_ordinary_one_is_noticed(monkeypatch) -> None:
    """Last stable offsets below the end, log starts that move, compaction and transactions need the whole
    log: without that question the first property fails."""
    monkeypatch.setattr(partial, "_ends_only", lambda *_: True)
    assert _missed(range(430, 800))


def test_another_under_the_key_of_an_append_that_is_not_firm(monkeypatch) -> None:
    """What an acks=1 append was told holds under its leader epoch: another record there is suspected, by that
    rule alone."""
    told = append(1, [100], 0, 1, offset=0, acks=1, leader_epoch=1)
    made = trace(told, append(2, [200], 0, None), read(3, 0, [(0, 200, 1)], 2, 3), acks_1_may_lose=True)
    assert judge_trace(made).anomaly == "inconsistent_offsets"
    assert any(reasons_by_log(made, Random(1), width=2).values())
    monkeypatch.setattr(decide, "told_wrong", lambda *_: [])
    assert not any(reasons_by_log(made, Random(1), width=2).values())


def _suspected(made: Trace) -> list[bool]:
    """Cut in several ways into batches, ranges of one offset."""
    return [any(reasons_by_log(made, Random(n), width=1).values()) for n in range(12)]


def test_epochs_that_decrease_from_range_to_range(monkeypatch) -> None:
    """A lower leader epoch at a higher offset is suspected though no range holds both, by that rule alone."""
    made = trace(
        append(1, [100], 0, 1, offset=0, leader_epoch=2), append(2, [200], 2, 3, offset=1, leader_epoch=1)
    )
    assert judge_trace(made).anomaly == "epoch_regressed_in_log"
    assert all(_suspected(made))
    monkeypatch.setattr(verdict, "_epochs_regress", lambda *_: False)
    assert not any(_suspected(made))


def test_epochs_that_decrease_to_above_the_first() -> None:
    """Within one range an epoch is compared with the highest one below it, not with the first."""
    made = trace(*(append(n, [n], 2 * n, 2 * n + 1, n, leader_epoch=(1, 3, 2)[n]) for n in range(3)))
    assert judge_trace(made).anomaly == "epoch_regressed_in_log"
    assert any(reasons_by_log(made, Random(1), width=8).values())


def test_a_batch_is_in_every_range_between_its_ends() -> None:
    """Rule: an acknowledged batch of eight touches four ranges of two."""
    columns = log_columns(columns_of_traces([trace(append(1, [*range(8)], 0, 1, 0))]))
    assert partial._ranges(columns.appends, columns.reads, columns.reads.strong, 2).tolist() == [0, 1, 2, 3]


def test_a_session_that_goes_back_from_batch_to_batch(monkeypatch) -> None:
    """A process whose end goes back is suspected wherever its operations are cut; one that goes on is not."""
    ends = (3, 5, 4)
    polls = [
        read(n, 0, [], 10 * n, 10 * n + 5, end=end, strong=False, process=7, leader_epoch=1)
        for n, end in enumerate(ends)
    ]
    made = trace(*polls, check="session")
    assert judge_trace(made).anomaly == "high_watermark_regressed"
    assert all(_suspected(made))
    assert not any(_suspected(trace(*polls[:2], check="session")))
    monkeypatch.setattr(verdict, "sessions_in_question", lambda *_: [])
    assert not all(_suspected(made))


@pytest.mark.parametrize(("rule", "begin"), [("_bounds_break", 960), ("_holes_unfilled", 770)])
def test_a_rule_left_out_between_ranges_is_noticed(rule: str, begin: int, monkeypatch) -> None:
    """The same of the rules that no range can tell alone."""
    monkeypatch.setattr(verdict, rule, lambda *_: False)
    assert _missed(range(begin, 1100))
