"""tools/exact: the sweep counts what the comparison beside the tests says, keeps it, and goes on where it
ended."""

from pathlib import Path

import msgspec
import pytest

from tools.exact import __main__ as program
from tools.exact.__main__ import ledger_of, sum_of
from tools.exact.subjects import MODELS, SUBJECTS, Counted, counted
from tools.exact.sweep import Stretch
from tools.ledger import TOP, digest


def swept(capsys: pytest.CaptureFixture[str], out: Path, *arguments: str) -> tuple[int, dict]:
    code = program.command.main(
        [*arguments, "--json", "--jobs", "1", "--out", str(out)], standalone_mode=False
    )
    return int(code), msgspec.json.decode(capsys.readouterr().out)["subjects"][0]


def test_a_sweep_counts_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: every seed once, whatever was swept before; nothing is swept twice."""
    code, some = swept(capsys, tmp_path, "register", "--histories", "20")
    assert (code, some["histories"], some["wrong"]) == (0, 20, 0)
    assert 0 < some["illegal"] < 20
    lines = (tmp_path / "register.jsonl").read_text().count("\n")
    assert swept(capsys, tmp_path, "register", "--histories", "20") == (code, some)
    assert (tmp_path / "register.jsonl").read_text().count("\n") == lines


def test_a_mismatch_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: one mismatch that is known of makes the exit code 1; results of other code do not count."""
    source = digest(SUBJECTS["register"].files())
    ledger = ledger_of("register", tmp_path)
    ledger.add(Stretch(source=source, seed=0, histories=20, wrong=1, illegal=2, seconds=0.1))
    ledger.add(Stretch(source="another", seed=0, histories=20, wrong=5))
    code, told = swept(capsys, tmp_path, "register", "--histories", "20")
    assert (code, told["wrong"]) == (1, 1)
    assert sum_of("register", "a third", ledger).histories == 0


def test_every_subject_is_there() -> None:
    """Rule: each comparison of the table exists, beside its tests; every model is among them."""
    from fencepost.checkers.models import MODELS as KNOWN

    assert tuple(KNOWN) == MODELS
    for subject in SUBJECTS.values():
        assert (TOP / subject.module).exists(), subject.name
        assert subject.files(), subject.name
        assert hasattr(subject.load(), "mismatches" if subject.name in MODELS else "sweep"), subject.name


@pytest.mark.parametrize(
    ("answer", "means"),
    [
        (0, (0, None)),
        ([], (0, None)),
        (["a", "b"], (2, None)),
        ((1, 5), (1, 5)),
        (([], 7), (0, 7)),
        ((["a"], 2, {"x": 3}), (1, 2)),
    ],
)
def test_answers_of_comparisons(answer: object, means: tuple[int, int | None]) -> None:
    """Rule: a number, a collection of mismatches, or either with how many were illegal."""
    assert counted(answer, 9) == Counted(histories=9, wrong=means[0], illegal=means[1])
