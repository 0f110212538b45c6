"""The streaming form against the checks of whole traces, on random long histories and at random cuts.

The promise: as long as a check has not given up, what it has reported is what the check of the whole trace
finds in all that has arrived. It never reports anything else, and remembers a bounded number of operations.
"""

from collections.abc import Sequence
from random import Random

import pytest
from applications import application, changed
from attrs import evolve
from streams import moments, strongest

from fencepost.checkers import exactly_once, transactions
from fencepost.checkers.transactions.streaming import CHECKS, TransactionWindow
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

JUDGES = {"transactions": transactions.judge_trace, "exactly_once": exactly_once.judge_trace}
AT_THE_END = frozenset({"output_missing", "output_without_commit"})
"""Later rows may excuse these."""
ONCE_DIFFERENT = (75, 136, 626, 697, 1191, 1626, 1946, 2303)
"""Seeds at which the two forms have differed."""
DECIDED = {Decision.OK, Decision.ILLEGAL, Decision.UNKNOWN}
CUT = 0.03
"""Of all moments, those at which findings are asked for."""


def compare(trace: Trace, horizon: int, draw: Random) -> dict[str, Decision]:
    """A trace through a window, compared with the checks of all that has arrived at random cuts and at the
    end. Returns the decisions."""
    header = evolve(trace, operations=())
    window = TransactionWindow(trace=header, horizon=horizon)
    ended: list[Operation] = []
    under_way: dict[int, Operation] = {}
    found: dict[str, list[str]] = {check: [] for check in CHECKS}
    for moment in moments(trace):
        operation = moment.operation
        if moment.completes:
            window.complete(operation)
            ended.append(under_way.pop(operation.op_id))
        else:
            window.invoke(operation)
            under_way[operation.op_id] = operation
        assert len(window.completed) + len(window.under_way) <= 4 * horizon
        if draw.random() < CUT:
            for finding in window.news():
                found[finding.check].append(finding.anomaly)
            aborted = [
                evolve(one, outcome=Outcome.FAIL, completion_time=None)
                for one in under_way.values()
                if one.function is Function.TXN
            ]
            arrived = evolve(header, operations=(*ended, *aborted))
            for check in CHECKS:
                agree(check, found[check], arrived, given_up=window.beyond[check] > 0, ended=False)
    decided = {}
    for verdict in window.end():
        found[verdict.check] += [finding.anomaly for finding in verdict.findings]
        given_up = f"beyond the horizon of {horizon}" in verdict.reason
        agree(verdict.check, found[verdict.check], trace, given_up=given_up, ended=True)
        assert given_up or verdict.decision is (Decision.ILLEGAL if found[verdict.check] else Decision.OK)
        assert verdict.decision is not Decision.OK or not given_up
        decided[verdict.check] = verdict.decision
    return decided


def agree(check: str, found: list[str], arrived: Trace, *, given_up: bool, ended: bool) -> None:
    """What was reported is what the check of the whole trace finds; or less, if it has given up."""
    wanted = {finding.anomaly for finding in JUDGES[check](arrived).findings}
    if not ended:
        wanted -= AT_THE_END
    reported = strongest(check, found)
    assert len(found) == len(set(found))
    if not given_up:
        assert reported == wanted, (check, arrived.seed)
    elif check == "exactly_once":
        assert reported <= wanted, arrived.seed
    elif reported:  # a stronger circle may be unknown
        assert wanted, arrived.seed


@pytest.mark.parametrize("span", [12, None], ids=["of near operations", "of any operations"])
@pytest.mark.parametrize(
    "seeds", [*(range(start, start + 10) for start in range(0, amount(20, 60), 10)), ONCE_DIFFERENT]
)
def test_what_is_reported_is_what_the_whole_history_says(seeds: Sequence[int], span: int | None) -> None:
    """Changed histories, with horizons of a few transactions and of many."""
    decided = set()
    for seed in seeds:
        draw = Random(seed)
        horizon = draw.choice((12, 24, 36))
        decided.update(compare(changed(seed, span=span), horizon, draw).values())
    assert decided == DECIDED


@pytest.mark.parametrize("horizon", [30, 45])
def test_a_healthy_history_is_ok_whatever_is_forgotten(horizon: int) -> None:
    """Rule: where nothing refers to what is much older, nothing is beyond the horizon."""
    for seed in range(amount(5, 12)):
        decided = compare(application(seed, steady=True), horizon, Random(seed))
        assert set(decided.values()) == {Decision.OK}, seed
