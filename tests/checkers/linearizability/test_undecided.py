"""A history that stays undecided says where it is widest, and docs/how-to/undecided.md shows what helps."""

import re
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.linearizability import SearchLimits, judge_counted
from fencepost.checkers.linearizability.overlap import HELP, strong_enough, widest_in_words
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "undecided.md"
OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
FEW = SearchLimits(nodes=20_000)


def made(op_id: int, begin: int, end: int | None, outcome: Outcome = OK, **more: Any) -> Operation:
    """An add of a process of its own."""
    more.setdefault("function", Function.ADD)
    return Operation(
        op_id=op_id, process=op_id, invoke_time=begin, completion_time=end, outcome=outcome, **more
    )


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    """What the page's code defines."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "sums"}
    exec(code, names)
    return names


def sums(adds: int, read: int) -> Trace:
    """Adds of 4, 8, 16 and so on that nobody heard of, then a read."""
    operations = [made(n, 0, None, UNKNOWN, argument=str(4 << n)) for n in range(adds)]
    operations.append(made(adds, 5, 6, function=Function.READ, result=str(read)))
    return lab.trace(operations, trace_id=1, seed=0)


def test_the_page_is_right_about_its_models(models: dict[str, Any]) -> None:
    trace = sums(24, 3)
    without = strong_enough(trace, judge_counted(trace, models["Sum"](), FEW))
    assert without.decision is Decision.UNKNOWN
    assert without.reason == (
        "the limit of 20,000 remembered configurations was met; at most 25 operations were under way at "
        f"once, 24 of them of unknown outcome: 24, 23, 22, 21, 20, 19, 18, 17, ...; {HELP}"
    )
    assert without.reason.split("; at most")[1] in PAGE.read_text(encoding="utf-8")
    assert judge_counted(trace, models["GrowingSum"](), FEW).verdict.decision is Decision.ILLEGAL


@pytest.mark.parametrize("read", [0, 3, 4, 12, 13])
def test_both_models_of_the_page_agree(models: dict[str, Any], read: int) -> None:
    trace = sums(5, read)
    one, other = (judge_counted(trace, models[name]()).verdict.decision for name in ("Sum", "GrowingSum"))
    assert one is other is (Decision.ILLEGAL if read % 4 else Decision.OK)


def test_the_widest_place_is_counted() -> None:
    """Intervals are closed; what failed is not counted; an unknown outcome is under way to the end."""
    operations = [
        made(1, 0, 10),
        made(2, 10, 20),
        made(3, 10, 12, FAIL),
        made(4, 11, 30),
        made(5, 12, 13, UNKNOWN),
        made(6, 40, 50),
    ]
    assert widest_in_words(operations[:2]) == (
        "at most 2 operations were under way at once, 0 of them of unknown outcome: 2, 1"
    )
    assert widest_in_words(operations) == (
        "at most 3 operations were under way at once, 1 of them of unknown outcome: 5, 4, 2"
    )
