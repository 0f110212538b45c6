"""tools/mutation/model: TLC's answers are read from the documentation, and a fault in a model is told apart
by them."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from tools.ledger import TOP
from tools.mutation.fault import Fault
from tools.mutation.model.recorded import PAGES, answers
from tools.mutation.model.subject import mutants_of, tried

FEW = 120
"""States of the two smallest rows of the groups' table."""


def test_the_answers_are_those_of_the_documentation() -> None:
    """Rule: the figures that both sides agreed on, smallest first; what was not counted is no answer."""
    assert [one.compared for one in answers("group", FEW)] == [
        ("holds", 0, 82, 14),
        ("violated", 13, 110, 15),
    ]
    assert len(answers("group", 20_000)) > len(answers("group", 1_000)) > 2
    for model in PAGES:
        assert all(one.distinct > 0 and one.depth > 0 for one in answers(model, 20_000))
    with pytest.raises(ValueError, match=r"group.md has no answer of TLC with at most 1 states"):
        answers("group", 1)


def test_the_faults_are_in_rules() -> None:
    """Rule: neither in what a state is, nor in words for people."""
    files = {Path(fault.file).name for fault in mutants_of("group")}
    assert files == {f"{name}.py" for name in RULES}


RULES = ("brokers", "coordinator_steps", "group_invariants", "group_system", "member_steps")
MEMBERS = "fencepost/model/group/member_steps.py"


def planted(before: str, after: str) -> Fault:
    """The fault that replaces this text, which occurs once."""
    text = (TOP / MEMBERS).read_text(encoding="utf-8")
    assert text.count(before) == 1
    start = len(text[: text.index(before)].encode())
    return Fault(
        file=MEMBERS,
        scope="",
        kind="planted",
        before=before,
        after=after,
        start=start,
        end=start + len(before.encode()),
        lines=(1, 1),
        at_import=False,
    )


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        ("if coordinator.is_answered(*pair, member, group):", "survived"),
        ("if False:", "told apart"),
        ("if coordinator.is_answered(pair, member, group):", "raised"),
    ],
    ids=["nothing", "a condition", "an exception"],
)
def test_a_fault_is_told_apart_and_none_is_not(after: str, outcome: str) -> None:
    """Rule (STYLE 12): a judge that convicts every source convicts none; an exception counts by itself."""
    fault = planted("if coordinator.is_answered(*pair, member, group):", after)
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process that has imported no model
        assert pool.apply(tried, (fault, answers("group", FEW)))[0] == outcome


def test_the_command_counts_and_goes_on(tmp_path: Path) -> None:
    """Rule: results are kept by the name of the mutant; the exit code says whether one survived."""
    line = [sys.executable, "-m", "tools.mutation", "model", "group", "--sample", "3", "--seed", "5"]
    line += ["--states", str(FEW), "--out", str(tmp_path), "--jobs", "1", "--json"]
    first = subprocess.run(line, capture_output=True, text=True, check=False)
    assert first.returncode in (0, 1), first.stderr
    kept = tmp_path / f"model-{FEW}.jsonl"
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 4
    again = subprocess.run(line, capture_output=True, text=True, check=False)
    assert again.stdout == first.stdout
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 4
