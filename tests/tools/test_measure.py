"""tools/measure and tools/check: every name that the documents mention is one, and a change finds its
tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencepost.campaign.swarm.profiles import PROFILES
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


def test_the_marks_of_every_profile_are_measured() -> None:
    """Rule: a campaign of each, but of the calm one, of which no mark is expected."""
    asked = [words[words.index("--profile") + 1] for words in MEASURES["marks"].programs]
    assert set(asked) == set(PROFILES) - {"calm"} and len(asked) == len(set(asked))


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
    changed = ["docs/README.md", "tools/measure.py", "fencepost/begin.py", "drivers/sarama/main.go"]
    assert check.tests_of(changed) == [
        "tests/docs", "tests/test_architecture.py", "tests/tools", "tests/torture",
    ]  # fmt: skip
    assert check.tests_of(["tests/test_begin.py", "tests/test_gone.py", "tests/conftest.py"]) == [
        "tests/test_architecture.py", "tests/test_begin.py",
    ]  # fmt: skip


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
