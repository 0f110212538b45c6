"""Logs with allowed loss: judged with others as if it were not allowed, and alone only where that does not
pass."""

from random import Random

import pytest
from attrs import evolve
from log_histories import append, judge_traces, loss, random_trace, read, trace, with_claims
from log_special_histories import special_trace

from fencepost.checkers.log import log_judge as judging
from fencepost.checkers.log.log_rules import PROFILES
from fencepost.traces.trace import Trace


def lossy(count: int) -> list[Trace]:
    """Random histories with allowed loss, of every profile and of special logs too."""
    random = Random("allowed loss")
    made: list[Trace] = []
    while len(made) < count:
        one = random.choice((random_trace, special_trace))(random, profiles=tuple(PROFILES), clocks=2)
        one = with_claims(random, one)
        if one.claims.loss or one.claims.content_by_epoch:
            made.append(evolve(one, trace_id=len(made)))
    return made


def test_a_log_that_passes_without_its_allowance_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: allowed loss only takes demands away: what is said is the same as where every log is judged
    alone."""
    histories = lossy(600)
    together = judge_traces(histories)
    monkeypatch.setattr(judging, "suspects", lambda columns, rules, groups: groups)
    assert together == judge_traces(histories)
    assert len(together) > 30


def test_a_log_that_lost_nothing_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: an allowance that was not used costs nothing: the log is not judged alone."""
    whole = trace(
        append(1, [10], 0, 1, 0), append(2, [20], 2, 3, 1), read(3, 0, [(0, 10), (1, 20)], 4, 5, end=2)
    )
    allowed = evolve(whole, claims=evolve(whole.claims, loss=loss(0, 2)))

    def refuse(*_: object) -> None:
        raise AssertionError("judged alone")

    monkeypatch.setattr(judging, "examine", refuse)
    assert judge_traces([allowed, evolve(allowed, trace_id=allowed.trace_id + 1)]) == []
