"""tools/mutation: which faults there are, that the working tree is never touched, and that a score can be
believed and resumed."""

import ast
from pathlib import Path

import msgspec
import pytest
from attrs import evolve

from tools.mutation import __main__ as program
from tools.mutation.checkers import CHECKERS, TOP, Checker
from tools.mutation.faults import faults_of
from tools.mutation.ledger import REASONS, Ledger, Result, change, digest, reasons, score
from tools.mutation.pool import Pool
from tools.mutation.trial import Trial, reach

SOURCE = '''"""Words."""
from x import y
LIMIT: int = 3
def low_enough(low: int, high: int) -> bool:
    """More words."""
    assert low < high, "our own mistake"
    if not (0 <= low < LIMIT and high in (1, 2)):
        raise ValueError(f"{low + 1} words")
    return check(low, high, expected=4)
'''
EXPECTED = {
    "constant": {"3 -> 4", "3 -> 2", "0 -> 1", "1 -> 2", "1 -> 0", "2 -> 3", "2 -> 1"},
    "compared": {
        "not (0 <= low < LIMIT and high in (1, 2)) -> (0 <= low < LIMIT and high in (1, 2))",
        "0 <= low < LIMIT -> (0 < low < LIMIT)",
        "0 <= low < LIMIT -> (0 > low < LIMIT)",
        "0 <= low < LIMIT -> (0 <= low <= LIMIT)",
        "0 <= low < LIMIT -> (0 <= low >= LIMIT)",
        "high in (1, 2) -> (high not in (1, 2))",
    },
    "dropped bound": {
        "0 <= low < LIMIT -> (0 <= low)",
        "0 <= low < LIMIT -> (low < LIMIT)",
        "0 <= low < LIMIT and high in (1, 2) -> (0 <= low < LIMIT or high in (1, 2))",
        "0 <= low < LIMIT and high in (1, 2) -> (high in (1, 2))",
        "0 <= low < LIMIT and high in (1, 2) -> (0 <= low < LIMIT)",
    },
    "forgotten case": {
        "not (0 <= low < LIMIT and high in (1, 2)) -> False",
        "not (0 <= low < LIMIT and high in (1, 2)) -> True",
        "(1, 2) -> ((2,))",
        "(1, 2) -> ((1,))",
    },
    "swapped names": {
        "low -> high",
        "high -> low",
        "check(low, high, expected=4) -> check(high, low, expected=4)",
    },
    "deleted statement": {'raise ValueError(f"{low + 1} words") -> pass'},
    "constant answer": {"check(low, high, expected=4) -> True", "check(low, high, expected=4) -> False"},
}


def test_the_faults_of_a_source() -> None:
    """Rule: bounds, cases, names, answers and statements are changed; words, assertions, imports and
    annotations are not."""
    found: dict[str, set[str]] = {}
    for fault in faults_of("fencepost/f.py", SOURCE):
        found.setdefault(fault.kind, set()).add(change(evolve(fault, occurrence=0)))
    assert found == EXPECTED


@pytest.mark.parametrize("name", ["invariants", "conformance"])
def test_every_fault_is_python_and_has_a_name_of_its_own(name: str) -> None:
    """Rule: a fault is one small change that still parses; its name tells it from every other."""
    names = []
    for file in CHECKERS[name].files():
        source = (TOP / file).read_text()
        faults = faults_of(file, source)
        names += [fault.name for fault in faults]
        for fault in faults[:: max(1, len(faults) // 3)]:
            changed = fault.applied(source.encode()).decode()
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), fault.name
    assert len(set(names)) == len(names) > 400


def test_every_checker_is_there() -> None:
    """Rule: the table names sources and tests that exist."""
    for checker in CHECKERS.values():
        assert checker.files(), checker.name
        assert any(list(TOP.glob(pattern)) for pattern in checker.tests), checker.name


def test_a_fault_is_noticed_in_a_copy(tmp_path: Path) -> None:
    """Rule: a fault that a test sees is noticed, one that changes nothing survives; the tree itself stays as
    it was, to the byte and second."""
    loss = "fencepost/checkers/invariants/loss.py"
    checker = Checker(name="loss", sources=(loss,), tests=("tests/checkers/test_invariants_hw_mono.py",))
    source = (TOP / loss).read_bytes()
    before = (source, (TOP / loss).stat().st_mtime_ns)
    faults = {change(fault): fault for fault in faults_of(loss, source.decode())}
    wrong = faults["loss.start <= offset < loss.end -> (loss.start > offset < loss.end)"]
    harmless = evolve(wrong, after=wrong.before, kind="none")
    ledger = Ledger(tmp_path / "loss.jsonl")
    with Pool(1) as pool:
        reached = reach(pool, checker, tmp_path / "reach.json")
        trial = Trial(
            pool=pool, reached=reached, ledger=ledger, digests={loss: digest(source)}, sources={loss: source}
        )
        told: list[str] = []
        trial.run([wrong, evolve(harmless, occurrence=7)], lambda done, result: told.append(result.outcome))
    assert sorted(told) == ["noticed", "survived"]
    assert not pool.folder.exists()
    assert ((TOP / loss).read_bytes(), (TOP / loss).stat().st_mtime_ns) == before
    by = {result.by.split("::")[0] for result in ledger.known.values()}
    assert by == {"", "tests/checkers/test_invariants_hw_mono.py"}


def test_results_are_kept_and_count_for_their_source_only(tmp_path: Path) -> None:
    """Rule: a run goes on where it was ended, a torn line costs one result, an edited source none but its
    own; survivors are told with their reason."""
    faults = faults_of("fencepost/f.py", SOURCE)
    digests = {"fencepost/f.py": "new"}
    ledger = Ledger(tmp_path / "l.jsonl")
    for number, fault in enumerate(faults):
        outcome = "survived" if number == 0 else "noticed"
        ledger.add(Result(name=fault.name, source="new" if number < 9 else "old", outcome=outcome))
    with ledger.path.open("ab") as file:
        file.write(b'{"name":"torn')
    again = Ledger(ledger.path)
    again.read()
    given = reasons(f"| `fencepost/f.py` | module | `` {change(faults[0])} `` | it is what it is |")
    made = score("f", faults, digests, again, given)
    assert (made.tried, made.of, made.noticed, made.unexplained) == (9, len(faults), 8, 0)
    assert made.survivors[0][2] == "it is what it is"
    assert score("f", faults, digests, again, {}).unexplained == 1
    assert (made.equivalent, round(made.percent, 1)) == (0, 88.9)
    same = dict.fromkeys(given, "equivalent: nothing tells them apart")
    assert (score("f", faults, digests, again, same).percent, made.percent_of_all) == (100.0, made.percent)


def test_the_command_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: --report tries nothing; less than the target is exit code 1; a name that is none is told."""
    arguments = ["invariants", "--report", "--json", "--out", str(tmp_path)]
    assert program.command.main(arguments, standalone_mode=False) == 1
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["checkers"][0]["tried"] == 0 and told["checkers"][0]["faults"] > 400
    with pytest.raises(Exception, match="expected checkers out of all, log"):
        program.command.main(["nobody"], standalone_mode=False)


def test_a_sample_is_always_the_same_and_another_seed_gives_another_one() -> None:
    """Rule: a larger sample contains a smaller one of its seed, so that a run goes on where it ended."""
    faults = faults_of("f", SOURCE)
    few, more, others = (
        {fault.name for fault in program.sampled(faults, count, seed)}
        for count, seed in ((4, "a"), (6, "a"), (4, "b"))
    )
    assert len(few) == 4 and few < more and few != others
    assert len(program.sampled(faults, None, "")) == len(faults)


def stale(text: str, sources: dict[str, str]) -> list[tuple[str, str, str]]:
    """The reasons for faults that no longer exist. sources: of files by name."""
    faults = {
        (file, fault.scope or "module", change(fault))
        for file, source in sources.items()
        for fault in faults_of(file, source)
    }
    return [row for row in reasons(text) if row not in faults]


def test_each_reason_is_for_a_fault_that_exists() -> None:
    """Rule: the file has the function, and the function the expression, that a row of docs/explanation/
    exactness.md is about."""
    text = REASONS.read_text(encoding="utf-8")
    files = sorted({file for file, _, _ in reasons(text)})
    assert len(files) > 20 and [file for file in files if not (TOP / file).exists()] == []
    sources = {file: (TOP / file).read_text(encoding="utf-8") for file in files}
    assert stale(text, sources) == []
    row = next(iter(reasons(text)))
    sources[row[0]] = "def other() -> int:\n    return 1\n"
    assert row in stale(text, sources)
