"""tools/measure and tools/check: every name that the documents mention is one, and a change finds its
tests."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencepost.traces.errors import FencepostError
from tools import check, measure
from tools.ledger import TOP
from tools.measure import FENCEPOST, MEASURES, Measure, every


def test_the_names_of_the_documents_exist() -> None:
    """Rule: a `make measure NAME=x` of any page is a measure."""
    pages = [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"NAME=([a-z][\w-]*)", page.read_text("utf-8"))}
    assert len(named) > 5 and named - set(every()) == set()


def test_its_programs_exist() -> None:
    """Rule: each is a module of tools, a file, or a command of ours."""
    for one in every().values():
        for words in one.programs:
            if words[1] == "-m" and words[2].startswith("tools."):
                found = TOP.joinpath(*words[2].split("."))
                assert found.with_suffix(".py").exists() or (found / "__main__.py").exists(), words
            elif words[0] != FENCEPOST and words[1] != "-m":
                assert (TOP / words[1]).exists(), words


def test_without_a_name_all_are_listed() -> None:
    """Rule: with what each takes and needs."""
    told = CliRunner().invoke(measure.command, [], standalone_mode=False)
    assert told.exit_code == 0 and all(name in told.output for name in MEASURES)


def test_an_unknown_name_gets_a_sentence() -> None:
    """Rule: it says which there are."""
    with pytest.raises(FencepostError, match=r"NAME: expected one of .*exact, .*, saw speeed"):
        measure.command.main(["speeed"], standalone_mode=False)


@pytest.mark.parametrize(("whatever", "ran"), [(False, "one\n"), (True, "one\ntwo\n")])
def test_the_first_code_counts(whatever: bool, ran: str, tmp_path: Path) -> None:
    """Rule: a measure ends at its first failure, unless the later programs write down what the first found;
    arguments go to the first."""
    path = tmp_path / "ran"
    code = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10)); sys.exit(int(sys.argv[3]))"
    first, second = (
        (sys.executable, "-c", code, str(path)),
        (sys.executable, "-c", code, str(path), "two", "0"),
    )
    made = Measure(says="", takes="", programs=(first, second), whatever=whatever)
    assert measure.run(made, ("one", "3")) == 3 and path.read_text() == ran


def test_a_change_finds_its_tests() -> None:
    """Rule: a folder of the package by its name, tests by themselves, everything else by the architecture."""
    assert check.tests_of(["fencepost/impl/log/log.py", "tests/tools/test_measure.py", "README.md"]) == [
        "tests/impl", "tests/test_architecture.py", "tests/tools",
    ]  # fmt: skip
    changed = ["docs/README.md", "tools/measure.py", "fencepost/moved.py", "drivers/sarama/main.go"]
    assert check.tests_of(changed) == [
        "tests/docs", "tests/test_architecture.py", "tests/tools", "tests/torture",
    ]  # fmt: skip
    assert check.tests_of(["tests/test_moved.py", "tests/test_gone.py", "tests/conftest.py"]) == [
        "tests/test_architecture.py", "tests/test_moved.py",
    ]  # fmt: skip


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two folders of tests and what their files took last."""
    monkeypatch.setattr(check, "TOP", tmp_path)
    for name in ("impl/test_slow", "impl/test_quick", "impl/test_new", "sim/test_sim", "test_architecture"):
        file = tmp_path / f"tests/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#" * len(name))
    seconds = {
        "tests/impl/test_slow.py": 70.0,
        "tests/impl/test_quick.py": 1.0,
        "tests/sim/test_sim.py": 30.0,
    }
    (tmp_path / check.SECONDS).parent.mkdir()
    (tmp_path / check.SECONDS).write_text(json.dumps(seconds))
    return tmp_path


def test_many_changes_are_tested_as_far_as_time_allows(house: Path) -> None:
    """Rule: what always runs and changed tests come first, then the quickest file of each folder, then the
    next of each; what does not fit is left out by name."""
    wanted = ["tests/impl", "tests/sim", "tests/test_architecture.py"]
    some, left = check.selection(wanted, [], seconds_in_all=60)
    assert some == [
        "tests/test_architecture.py", "tests/impl/test_quick.py", "tests/sim/test_sim.py",
        "tests/impl/test_new.py",
    ]  # fmt: skip
    assert left == ["tests/impl/test_slow.py"]
    every, none = check.selection(wanted, ["tests/impl/test_slow.py"], seconds_in_all=600)
    assert every[:2] == ["tests/test_architecture.py", "tests/impl/test_slow.py"] and none == []
    assert sorted(every) == sorted([*some, *left])


def test_no_test_begins_after_the_time(house: Path) -> None:
    """Rule: it is skipped and counted by file, and only what was done to its end is remembered."""
    (house / "tests/conftest.py").write_text((TOP / "tests/conftest.py").read_text())
    for name in ("impl/test_slow", "sim/test_sim"):
        (house / f"tests/{name}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    seconds = house / check.SECONDS
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--seconds={seconds}"]
    for until, outcome in ((4e9, "4 passed"), (1.0, "4 skipped")):
        seconds.write_text("{}")
        files = ["tests/impl/test_slow.py", "tests/sim/test_sim.py"]
        said = subprocess.run(
            [*line, f"--until={until}", *files], cwd=house, capture_output=True, text=True, check=False
        ).stdout
        assert outcome in said
        assert ("left out" in said and "tests/impl/test_slow.py" in said) == (until == 1.0)
        assert set(json.loads(seconds.read_text())) == (set() if until == 1.0 else set(files))


def test_what_git_does_not_know_yet_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: commits of the branch, edits and new files; without a main branch one sentence says so."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    monkeypatch.setattr(check, "TOP", tmp_path)
    git("init", "-q", "-b", "work")
    for name in ("kept", "edited"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "one")
    with pytest.raises(FencepostError, match="expected a branch main or origin/main, saw none"):
        check.changed()
    git("branch", "main")
    (tmp_path / "committed").write_text("1")
    git("add", ".")
    git("commit", "-qm", "two")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("1")
    assert sorted(check.changed()) == ["committed", "edited", "new"]


@pytest.mark.parametrize("jobs", ["auto", "2"])
def test_make_check_takes_what_jobs_is(jobs, monkeypatch):
    """Rule: JOBS is auto unless somebody says otherwise, and `make check` passes it on."""
    assert "JOBS ?= auto" in (TOP / "Makefile").read_text()
    ran = []
    monkeypatch.setattr(check.subprocess, "call", lambda line, **_: ran.append(line) or 0)
    assert CliRunner().invoke(check.command, ["--jobs", jobs], standalone_mode=False).exception is None
    assert len(ran) == 1
