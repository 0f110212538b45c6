"""The timeline of an Illegal verdict, for every model, judged by a decider or by the search."""

from random import Random

import pytest
from lin_histories import DRAW, history, model_of
from lin_unambiguous import NAMES, unambiguous

from fencepost.checkers.linearizability import judge_counted
from fencepost.checkers.models import MODELS
from fencepost.report.processes import process_lanes


@pytest.mark.parametrize(
    ("name", "deciders"), [*((name, False) for name in DRAW), *((name, True) for name in NAMES)]
)
def test_the_timeline_marks_the_convicting_operations(name: str, deciders: bool) -> None:
    """Every convicting operation has a lane with double lines and a mark where it begins and where it ends;
    nobody else has."""
    draw, drawn = unambiguous if deciders else history, 0
    for seed in range(60):
        trace = draw(name, Random(f"timeline {name} {seed}"))
        judged = judge_counted(trace, model_of(name), deciders=deciders)
        if judged.verdict.findings and judged.decided == (judged.parts if deciders else 0):
            finding = judged.verdict.findings[0]
            lines = process_lanes(trace, finding.operations).splitlines()
            assert all(f"op {op}]" in finding.seen for op in finding.operations[:8])
            marked = [line for line in lines if line.startswith(">>>")]
            assert len(marked) == 2 * len(finding.operations)
            assert {
                op for op in finding.operations if any(f"\u255a\u2550 op {op}" in line for line in marked)
            } == set(finding.operations)
            drawn += 1
            if drawn == 3:
                return
    raise AssertionError(f"only {drawn} illegal histories")


def test_every_model_is_drawn() -> None:
    """No model is left out of the tests of this folder."""
    assert set(DRAW) == set(MODELS) >= set(NAMES)
