"""What pages tell a reader to type does what it is for: each command that needs neither a cluster nor a
toolchain nor more than a second is run, with small numbers. test_commands.py has the words of all of them.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.cli import run
from fencepost.kafka import cluster as embedded_kafka
from tests.docs.commands import USED, Shown, commands_of

NOT_RUN = {
    **dict.fromkeys(("mine", "watch", "demo", "package", "explain"), "Spark takes seconds to start"),
    **dict.fromkeys(("cluster",), "needs a cluster"),
    **dict.fromkeys(("proxy", "blame", "conformance", "doctor", "--source"), "needs another Kafka"),
    **dict.fromkeys(("torture", "kafka", "--system"), "needs a toolchain"),
    "tlc": "needs Java",
    "out/kafka": "is of a campaign on a real system",
    "out/live": "is a record of the proxy",
    "out/day": "is a record of doctor",
    "stale.edn": "is run by tests/cli/test_user_models.py",
    "sums.edn": "is run by tests/checkers/linearizability/test_undecided.py",
}
"""Why a command with this word is not run here. Its words are checked all the same."""
RUN = ("conformance --list", "cluster kafka versions", "torture drivers list")
"""Run nevertheless."""
SMALL = {"--jobs": "1", "--seconds": "1", "--times": "1"}
"""Options whose numbers are made small."""
LIMITS = {
    "shrink": ("--seconds", "1"),
    "campaign": ("--jobs", "1"),
    "campaign bugs": ("--no-shrink", "--jobs", "1"),
}
"""Options of commands that otherwise take longer."""
SEED = 23
"""Of a run in which KIP-101 is found: the one that pages replay."""


def is_run(shown: Shown) -> bool:
    """Whether a command of a page is run here."""
    known = " ".join(shown.words[1:]).startswith(RUN)
    return shown.words[0] == "fencepost" and shown.whole and (known or not set(shown.words) & set(NOT_RUN))


def small(words: tuple[str, ...]) -> list[str]:
    """A command with small numbers: one seed, one process, one second."""
    made: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        if before == "--seeds":
            low, _, high = word.partition(":")
            first = SEED if int(low) <= SEED < int(high) else int(low)
            word = f"{first}:{first + 1}"
        made.append(SMALL.get(before, word))
    limits = LIMITS.get(" ".join(words[:2]), LIMITS.get(words[0], ()))
    return made if not limits or limits[0] in words or "list" in words else [*made, *limits]


EDN = """{:process 1 :type :invoke :f :write :value 1} {:process 1 :type :ok :f :write :value 1}
{:process 2 :type :invoke :f :read :value nil} {:process 2 :type :ok :f :read :value 1}
"""
LOG = """INFO  jepsen.util - 1\t:invoke\t:write\t1
INFO  jepsen.util - 1\t:ok\t:write\t1
"""
EVENTS = """{"event":"started","process":"billing","n":0,"group":"billing"}
{"event":"received","process":"billing","n":1,"topic":"orders","partition":0,"offset":0}
{"event":"committed","process":"billing","n":2,"topic":"orders","partition":0,"offset":1}
"""
PUTS = """{:process 1 :type :invoke :f :put :key "a" :value "1"}
{:process 1 :type :ok :f :put :key "a" :value "1"}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader of the pages has already: a campaign with a finding, its plan and its history; histories
    of other systems; the log directories of a cluster."""
    folder = tmp_path_factory.mktemp("store")
    broken = folder / "broken"
    options = ["--seeds", f"{SEED}:{SEED + 1}", "--bug", "KIP-101", "--jobs", "1"]
    assert run(["campaign", *options, "--out", str(broken)]) == 1
    plan = folder / "plan.json"
    assert run(["shrink", str(broken), "--trace", str(SEED), "--seconds", "1", "--out", str(plan)]) == 1
    assert run(["mine", "convert", str(broken), "--out", str(folder / "history.jsonl")]) == 0
    (folder / "history.edn").write_text(EDN)
    (folder / "etcd.log").write_text(LOG)
    (folder / "histories").mkdir()
    (folder / "histories" / "puts.edn").write_text(PUTS)
    (folder / "app").mkdir()
    (folder / "app" / "billing.events").write_text(EVENTS)
    with embedded_kafka(directory=folder / "cluster") as kafka:
        kafka.create_topic("orders", partitions=1)
    return folder


READER_HAS = {
    **dict.fromkeys(("out/broken", "incoming/planted"), "broken"),
    **dict.fromkeys(("out/shrunk.json", "whole.json", "shrunk.json"), "plan.json"),
    "history.jsonl": "history.jsonl",
    **dict.fromkeys(("history.edn", "register.edn"), "history.edn"),
    "etcd.log": "etcd.log",
    "histories/": "histories",
    "app/": "app",
    **{f"copies/broker-{number}": f"cluster/broker-{number}" for number in (1, 2, 3)},
    "DIRECTORY": "cluster/broker-1",
}
"""What pages name and do not make, and what is there in its place."""


def bring(store: Path, words: list[str]) -> None:
    """Put what a command reads where it looks for it, and take away what it writes."""
    for before, word in zip(("", *words), words, strict=False):
        name = word.rpartition("=")[2]
        if before == "--out":
            shutil.rmtree(word, ignore_errors=True)
        elif name in READER_HAS and not Path(name).exists():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            source = store / READER_HAS[name]
            copy: Callable[..., object] = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, name)


@pytest.mark.parametrize(
    "page", [page for page in USED if any(map(is_run, commands_of(page)))], ids=lambda page: page.name
)
def test_commands_of_a_page_run(page: Path, store: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """Rule: the commands of a page, typed in its order, do what they are for: they find something or nothing,
    and refuse nothing."""
    monkeypatch.chdir(tmp_path)
    for shown in filter(is_run, commands_of(page)):
        words = small(shown.words[1:])
        bring(store, words)
        capsys.readouterr()
        code = run(words)
        said = capsys.readouterr().err
        assert code in (0, 1) and "Traceback" not in said, f"{shown}\n{said}"


def test_what_is_not_run_is_known() -> None:
    """Rule: each reason not to run a command belongs to one that a page has."""
    words = {word for page in USED for shown in commands_of(page) for word in shown.words}
    assert set(NOT_RUN) <= words
