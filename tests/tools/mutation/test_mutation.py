"""tools/mutation: which faults there are, that the working tree is never touched, and that a score can be
believed and resumed."""

import ast
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest
from attrs import evolve

from tools.ledger import TOP
from tools.mutation import __main__ as program
from tools.mutation import workers
from tools.mutation.checkers.choice import Reached
from tools.mutation.checkers.subject import REASONS, Checkers, change, reasons
from tools.mutation.checkers.table import CHECKERS, Checker
from tools.mutation.engine import counts_of
from tools.mutation.finder import faults_of
from tools.mutation.workers import Ended, forked

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


LOSS = "fencepost/checkers/invariants/loss.py"


TRIAL = """
import sys
from functools import partial
from pathlib import Path
from attrs import evolve
from tools.ledger import TOP
from tools.mutation.checkers import choice
from tools.mutation.checkers.table import Checker
from tools.mutation.finder import faults_of
from tools.mutation.workers import in_a_child

choice.preload()
test, out = sys.argv[1:]
loss = "fencepost/checkers/invariants/loss.py"
reached = choice.reach_of(Checker(name="loss", sources=(loss,), tests=(test,)), Path(out))

def tried(fault):
    tests = tuple((name, 60.0) for name in reached.tests_of(wrong))
    print(in_a_child(partial(choice.tested, fault, tests), 60).answer)

faults = faults_of(loss, (TOP / loss).read_text("utf-8"))
wrong = next(one for one in faults if one.after == "(loss.start > offset < loss.end)")
tried(wrong)
tried(evolve(wrong, after=wrong.before))
package = loss.replace("loss.py", "__init__.py")
tried(evolve(wrong, file=package, start=0, end=0, after="raise ImportError('planted')\\n"))
"""
"""In a process of its own: pytest is begun inside of it."""


def tried(test: str, out: Path) -> subprocess.CompletedProcess[str]:
    """What becomes of three faults: a wrong one, one that changes nothing, and one of a package."""
    line = [sys.executable, "-c", TRIAL, test, str(out)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(line, cwd=TOP, env=environment, capture_output=True, text=True, check=False)


def test_a_fault_is_noticed_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    """Rule: a fault that a test sees is noticed, one that changes nothing survives, also in the source of a
    package; no file is changed."""
    test, sources = "tests/checkers/test_invariants_hw_mono.py", (TOP / LOSS).parent
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sources.glob("*.py")}
    done = tried(test, tmp_path)
    assert done.returncode == 0, done.stderr
    wrong, harmless, package = map(ast.literal_eval, done.stdout.splitlines())
    assert wrong[0] == 1 and wrong[1].startswith(test)
    assert harmless == (0, "") and package[0] != 0
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sources.glob("*.py")}
    assert after == before


def test_tests_that_fail_without_a_fault_are_told(tmp_path: Path) -> None:
    """Rule: nothing is measured against tests that fail by themselves."""
    broken = tmp_path / "test_broken.py"
    broken.write_text("def test_it():\n    assert False\n")
    done = tried(os.path.relpath(broken, TOP), tmp_path / "out")
    assert "expected tests that pass without a fault, saw" in done.stderr and "test_it" in done.stderr


class OneFile(Checker):
    """Of a file that is not there."""

    def files(self, top: Path = TOP) -> list[str]:
        return ["fencepost/f.py"]


def subject(tmp_path: Path) -> Checkers:
    """One file that is not there, with all its faults."""
    faults = faults_of("fencepost/f.py", SOURCE)
    made = Checkers(
        parts={"f": faults}, out=tmp_path, budget_s=5.0,
        checkers={"f": OneFile(name="f", sources=(), tests=())}, sources={"fencepost/f.py": "new"},
    )  # fmt: skip
    made.tests["f"] = "of today"
    return made


def test_results_are_kept_and_count_for_their_source_only(tmp_path: Path) -> None:
    """Rule: a run goes on where it was ended; an edited source costs its own results; survivors are told with
    their reason, and an equivalent one does not count against the score."""
    mine = subject(tmp_path)
    faults, ledger = mine.parts["f"], mine.ledger()
    for number, fault in enumerate(faults):
        outcome = "survived" if number == 0 else "noticed"
        result = mine.found(fault, outcome)
        ledger.add(result if number < 9 else evolve(result, source="old"))
    again = mine.ledger()
    made = counts_of(mine, faults, again)
    assert (made["tried"], made["faults"], made["outcomes"]["noticed"]) == (9, len(faults), 8)
    assert [one["reason"] for one in made["survivors"]] == [""] and made["score"] == 88.9
    assert sum(mine.wants(fault, mine.known(again, fault)) for fault in faults) == len(faults) - 9
    key = reasons(f"| `fencepost/f.py` | module | `` {change(faults[0])} `` | it is what it is |")
    mine._reasons = key
    made = counts_of(mine, faults, again)
    assert made["survivors"][0]["reason"] == "it is what it is" and made["equivalent"] == 0
    mine._reasons = dict.fromkeys(key, "equivalent: nothing tells them apart")
    made = counts_of(mine, faults, again)
    assert (made["equivalent"], made["score"], made["of all"]) == (1, 100.0, 88.9)


def test_what_survived_can_be_tried_again(tmp_path: Path) -> None:
    """Rule: after the tests changed, or without a reason, as the options say; what was noticed never is."""
    mine = subject(tmp_path)
    fault = mine.parts["f"][0]
    old = mine.found(fault, "survived", tests="of yesterday")
    assert not mine.wants(fault, old)
    mine.again = True
    assert mine.wants(fault, old) and not mine.wants(fault, evolve(old, tests="of today"))
    assert not mine.wants(fault, evolve(old, outcome="noticed"))
    mine.survivors = True
    assert mine.wants(fault, old) and not mine.wants(fault, None)


def test_tests_that_noticed_others_go_first(tmp_path: Path) -> None:
    """Rule: what noticed a fault in the same function, then in the file; quick ones next; within the
    budget."""
    mine = subject(tmp_path)
    fault = mine.parts["f"][-1]
    seconds = {"quick": 1.0, "slow": 3.0, "slower": 9.0}
    by_line = {("fencepost/f.py", fault.lines[0]): frozenset(seconds)}
    reached = Reached(by_line=by_line, seconds=seconds, slow=())
    assert mine.ordered(fault, reached) == ["quick", "slow"]
    assert mine.result(fault, Ended(answer=(1, "slower"))).by == "slower"
    assert mine.ordered(fault, reached)[0] == "slower"
    assert mine.result(fault, Ended(answer=None, died="time")).outcome == "noticed"
    assert mine.result(fault, Ended(answer=(0, ""))).outcome == "survived"


def burn() -> None:
    while True:
        pass


def sleep_with_a_child() -> None:
    if os.fork() == 0:
        signal.pause()
    signal.pause()


def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: by processor time, or by the clock if it only waits, with everything that it started; one that
    dies says nothing, and the others go on."""
    monkeypatch.setattr(workers, "WALL_FACTOR", 1)
    monkeypatch.setattr(workers, "LOOK_S", 0.1)
    todo = [("burns", burn, 1), ("waits", sleep_with_a_child, 1), ("dies", partial(os._exit, 3), 0),
            ("ends", partial(abs, -4), 0)]  # fmt: skip
    ended = dict(forked(todo, 2))
    assert (ended["burns"].died, ended["waits"].died, ended["dies"].died) == ("time", "time", "no answer")
    assert ended["ends"].answer == 4


def wait_long(pid: Path) -> None:
    pid.write_text(str(os.getpid()))
    time.sleep(600)


def test_no_process_outlives_who_asked(tmp_path: Path) -> None:
    """Rule: what was begun is killed when nobody takes its answer."""
    pid = tmp_path / "pid"

    def until_it_waits() -> int:
        while not pid.exists() or not pid.read_text():
            time.sleep(0.01)
        return os.getpid()

    asked = forked([("a", until_it_waits, 0), ("b", partial(wait_long, pid), 0)], 2)
    assert next(asked)[0] == "a"
    asked.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_the_command_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule: --report tries nothing; less than the target is exit code 1; a name that is none is told."""
    arguments = ["checkers", "invariants", "--report", "--json", "--out", str(tmp_path)]
    assert program.command.main(arguments, standalone_mode=False) == 1
    told = msgspec.json.decode(capsys.readouterr().out)["parts"]["invariants"]
    assert told["tried"] == 0 and told["faults"] > 400
    with pytest.raises(Exception, match="'nobody' is not one of 'log', 'invariants'"):
        program.command.main(["checkers", "nobody"], standalone_mode=False)


def test_a_sample_is_always_the_same_and_another_seed_gives_another_one(tmp_path: Path) -> None:
    """Rule: a larger sample contains a smaller one of its seed, so that a run goes on where it ended."""
    mine = subject(tmp_path)
    few, more, others = (
        {fault.name for fault in mine.chosen(count, seed)} for count, seed in ((4, "a"), (6, "a"), (4, "b"))
    )
    assert len(few) == 4 and few < more and few != others
    assert len(mine.chosen(None, "")) == len(mine.parts["f"])
    assert all("low" in fault.name for fault in mine.chosen(3, "", "low"))


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
