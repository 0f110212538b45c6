"""Every kind of command that a message prints is run here, and has to give the finding that it was printed
for.

What no command can show again says so in place of one.
"""

import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from attrs import evolve, frozen

from fencepost.campaign.failure import Keeping, RunFailedError, assert_ok
from fencepost.campaign.shrink.text import write_plan
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.models import IMPOSSIBLE, Model, model_named
from fencepost.checkers.verdict import Finding, by_rank, combine
from fencepost.cli import demo, run
from fencepost.console.output import Output
from fencepost.history import History, NotLinearizableError, assert_linearizable
from fencepost.kafka import cluster as embedded_kafka
from fencepost.machines.cluster.found import Left, explanation
from fencepost.mining.results.result_rows import Counts, ResultWriter
from fencepost.report import commands
from fencepost.run.simulated.run import run as run_plan
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace

PACKAGE = Path(commands.__file__).parents[1]
LOSES = {"NO_COLOR": "1", "COLUMNS": "300"}
MODULE = '''
from fencepost.checkers.models import IMPOSSIBLE, Model


class Permits(Model):
    """n at most."""

    functions = frozenset({"acquire", "release"})
    effects = functions

    def __init__(self, n=9):
        self.n = n

    def init(self):
        return 0

    def step(self, state, call):
        after = state + (1 if call.function == "acquire" else -1)
        return after if 0 <= after <= self.n else IMPOSSIBLE
'''


@pytest.fixture
def permits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A model of somebody's own, in a module of a folder of its own."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "permits_of_theirs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    from importlib import import_module

    yield import_module("permits_of_theirs").Permits
    sys.modules.pop("permits_of_theirs", None)


def acquired(folder: Path, count: int) -> History:
    history = History(folder=folder)
    for number in range(count):
        with history.operation("acquire", process=number):
            pass
    return history


def again_in_words(history: History, model, **more) -> tuple[NotLinearizableError, str]:
    """A history that does not pass, and the last line of what it says."""
    with pytest.raises(NotLinearizableError) as failed:
        assert_linearizable(history, model, **more)
    return failed.value, str(failed.value).split("\n")[-1]


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command as somebody types it, with this Python's `fencepost`."""
    program = (
        f"fencepost() {{ {shlex.quote(sys.executable)} -c 'from fencepost.cli import main; main()' "
        f'"$@"; }}; '
    )
    path = str(PACKAGE.parent)
    return subprocess.run(
        ["/bin/sh", "-c", program + command], cwd=cwd, text=True, capture_output=True, check=False,
        env={**os.environ, **LOSES, "PYTHONPATH": path},
    )  # fmt: skip


def found(row: dict) -> tuple:
    """Decision, reason and the first finding of a row of `check --json`."""
    first = row["findings"][0] if row["findings"] else {}
    return row["decision"], row["reason"], first.get("seen"), tuple(first.get("operations", ()))


def expected(error: NotLinearizableError) -> tuple:
    verdict = error.verdict
    first = verdict.findings[0] if verdict.findings else None
    seen, operations = (None, ()) if first is None else (first.seen, first.operations)
    return verdict.decision.value, verdict.reason, seen, operations


def reads(folder: Path, *results: object) -> History:
    history = History(folder=folder)
    for result in results:
        with history.operation("read") as read:
            read.result = result
    return history


HISTORIES = {
    "by name": (lambda folder: reads(folder, 5), "register", {}),
    "a class of ours": (lambda folder: reads(folder, 5), type(model_named("register")), {}),
    "from another value": (lambda folder: reads(folder, 0, 1), model_named("register", {"initial": 0}), {}),
    "from a text with a quote": (
        lambda folder: reads(folder, "it's", "x"),
        model_named("register", {"initial": "it's"}),
        {},
    ),
    "with parameters": (lambda folder: acquired(folder, 3), model_named("semaphore", {"permits": 2}), {}),
    "nothing succeeded": (lambda folder: History(folder=folder), "register", {}),
    "too little overlap": (lambda folder: reads(folder, None), "register", {"minimum_overlap": 4}),
    "a folder with a blank": (lambda folder: reads(folder / "a b", 5), "register", {}),
}


@pytest.mark.parametrize("kind", HISTORIES)
def test_judge_it_again(fencepost, tmp_path: Path, kind: str) -> None:
    """Rule: the command (check_model) under a history that does not pass gives the same decision, reason and
    proof."""
    make, model, more = HISTORIES[kind]
    error, line = again_in_words(make(tmp_path), model, **more)
    assert line.startswith("judge it again: fencepost check "), line
    (row,) = fencepost(*shlex.split(line.partition("fencepost ")[2]), "--json").json["verdicts"]
    assert found(row) == expected(error)


def test_judge_it_again_with_a_model_of_ones_own(permits, tmp_path: Path) -> None:
    """Rule: the command finds the class where it is, and makes it of the same parameters; from its own folder
    it needs no help."""
    error, line = again_in_words(acquired(tmp_path / "kept", 3), permits(n=2))
    assert line.startswith(f"judge it again: PYTHONPATH={tmp_path / 'theirs'}"), line
    assert line.endswith("--model permits_of_theirs:Permits --parameter n=2"), line
    done = shell(line.partition(": ")[2] + " --json", tmp_path)
    assert done.returncode == 1, done.stderr
    (row,) = json.loads(done.stdout)["verdicts"]
    assert found(row) == expected(error)


@frozen
class Changing(Model):
    """Its state is not what it was made of."""

    functions = frozenset({"read"})
    reads = functions
    seen: list = []  # noqa: RUF008

    def step(self, state, call):
        self.seen.append(call)
        return IMPOSSIBLE


def test_what_cannot_be_judged_again_says_why(permits, tmp_path: Path) -> None:
    """Rule: where a command would judge something else (a local class, parameters that are no JSON, a model
    that was changed), none is printed."""

    class Local(permits):
        pass

    changed = permits(2)
    changed.n = 1
    history = acquired(tmp_path, 3)
    for model, why in (
        (Local(2), "the model Local cannot be imported by its name"),
        (changed, "the parameters of the model Permits are more than JSON can say"),
    ):
        assert again_in_words(history, model)[1] == f"no command judges it again: {why}"
    line = again_in_words(reads(tmp_path / "other", 1), Changing([1]))[1]
    assert (
        line == "no command judges it again: the parameters of the model Changing are more than JSON can say"
    )
    history.folder = None
    line = again_in_words(history, permits(2))[1]
    assert line == "no command judges it again: the history was not saved (give a folder)"


NAMED: dict[str, str | None] = {}
"""What each command has said: several messages print the same one, and its files do not change."""


def named(fencepost, command: str) -> str | None:
    """What the run of a replay command is named by, or the finding that it explains."""
    if command not in NAMED:
        words = shlex.split(command)
        assert words[:2] == ["fencepost", "replay"]
        shown = fencepost(*words[1:], "--no-timeline", "--json").json
        assert shown["replay"] == command
        NAMED[command] = shown["anomaly"]
    return NAMED[command]


SEED, BUG = 23, "KIP-101"
"""A run with findings of several names and several judges."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with that run."""
    folder = tmp_path_factory.mktemp("stored") / "a campaign"
    arguments = ["campaign", "--seeds", f"{SEED}:{SEED + 1}", "--bug", BUG, "--jobs", "1", "--out", folder]
    assert run(list(map(str, arguments))) == 1
    return folder


@pytest.fixture(scope="module")
def trace(stored: Path) -> Trace:
    found = TraceStore.open(stored).read(SEED)
    assert len({finding.anomaly for finding in findings_of(found)}) > 1
    return found


def findings_of(trace: Trace, checks: tuple[str, ...] = DEFAULT_CHECKS) -> list[Finding]:
    return by_rank(combine(judge(trace, checks)).findings)


def test_commands_of_stored_runs(fencepost, stored: Path, trace: Trace, tmp_path: Path) -> None:
    """Rule: `check` and mining explain a stored run by the finding that their command explains, for every
    anomaly and every list of judges."""
    headline = findings_of(trace)[0].anomaly
    assert named(fencepost, commands.replay_stored(stored, trace.trace_id)) == headline
    for check in ("log", "invariants", "conformance"):
        for finding in findings_of(trace, (check,))[:1]:
            command = commands.replay_stored(stored, trace.trace_id, checks=(check,))
            assert named(fencepost, command) == finding.anomaly
    counts = Counts()
    counts.add_verdicts(str(stored), trace, 1, judge(trace, DEFAULT_CHECKS))
    assert {one.anomaly for one in findings_of(trace)} == set(counts.samples)
    for anomaly, sample in counts.samples.items():
        assert named(fencepost, sample.replay) == anomaly
    with ResultWriter(tmp_path, "part") as writer:
        writer.add(str(stored), trace, judge(trace, DEFAULT_CHECKS))
    rows = pq.read_table(tmp_path / writer.file_of("findings")).to_pylist()
    first = {row["anomaly"]: row["replay"] for row in rows}
    assert set(first) == set(counts.samples)
    for anomaly, command in first.items():
        assert named(fencepost, command) == anomaly
        plain = commands.replay_stored(stored, trace.trace_id)
        assert named(fencepost, commands.explaining(plain, anomaly)) == anomaly
    assert commands.explaining("", headline) == ""
    shown = fencepost("check", stored, "--explain", "1").out
    replay = re.search(r"replay: +(fencepost replay .*)", shown)[1]
    assert re.search(r"(\w+) in trace \d+, found by", shown)[1] == named(fencepost, replay)
    checked = fencepost("check", stored, "--checks", "log", "--explain", "1").out
    replay = re.search(r"replay: +(fencepost replay .* --checks log)", checked)[1]
    assert re.search(r"(\w+) in trace \d+, found by", checked)[1] == named(fencepost, replay)
    assert "replay:" not in fencepost("check", stored, "--profile", "strong", "--explain", "1").out


def test_the_demo_explains_what_names_the_run(
    fencepost, stored: Path, trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule: the demo's finding is the one by which replay and every other command name that run, whatever
    mining's samples are of."""
    counts = Counts()
    counts.add_verdicts(str(stored), trace, 1, judge(trace, DEFAULT_CHECKS))
    samples = tuple(counts.samples[anomaly] for anomaly in sorted(counts.samples))
    assert len(samples) > 1
    for order in (samples, samples[::-1]):
        capsys.readouterr()
        demo._explain(SimpleNamespace(samples=order), stored, Output(False))
        said = capsys.readouterr().out
        replay = re.search(r"See it again: (.*)", said)[1]
        headline = re.search(r"(\w+) in trace \d+, found by", said)[1]
        assert headline == named(fencepost, replay) == findings_of(trace)[0].anomaly


def test_commands_of_a_campaign(fencepost, tmp_path: Path) -> None:
    """Rule: what a campaign prints (replay_stored, shrink_stored) shows and shrinks its first finding, by the
    judges that were asked; what shrinking prints shows the same."""
    line = f"campaign --seeds {SEED}:{SEED + 1} --bug {BUG} --jobs 1 --checks log --out"
    asked = [line, tmp_path / "c"]
    told = fencepost(*asked).out
    (failing,) = fencepost(*asked, "--resume", "--json").json["failing"]
    replay = re.search(r"See the worst one: (.*)", told)[1]
    assert replay.endswith(" --checks log") and named(fencepost, replay) == failing["anomaly"]
    shrink = shlex.split(re.search(r"Shrink it: (.*)", told)[1])
    more = ["--out", tmp_path / "small.json", "--seconds", "1", "--jobs", 1, "--json"]
    small = fencepost(*shrink[1:], *more).json
    assert named(fencepost, small["replay"]) == small["anomaly"]


def test_commands_of_a_seed_and_a_plan(fencepost, trace: Trace, tmp_path: Path) -> None:
    """Rule: a seed, and a plan with bugs of its own or of the command's, say of themselves what shows them
    again."""
    headline = findings_of(trace)[0].anomaly
    assert named(fencepost, commands.replay_seed(trace.seed, profile="default", bugs=(BUG,))) == headline
    plan = plan_from_json(trace.plan)
    healthy = tmp_path / "it's healthy.json"
    write_plan(healthy, evolve(plan, cluster=evolve(plan.cluster, bugs=())))
    for finding in {one.anomaly: one for one in findings_of(trace)}.values():
        command = commands.replay_plan(healthy, bugs=(BUG,), anomaly=finding.anomaly)
        assert named(fencepost, command) == finding.anomaly
    assert named(fencepost, commands.replay_plan(healthy)) is None
    refused = fencepost("replay --plan", healthy, "--anomaly", headline)
    assert refused.code == 2 and f"expected a run that shows {headline}, saw no finding" in refused.sentence


def kept(trace: Trace, folder: Path, checks: tuple[str, ...] = DEFAULT_CHECKS) -> str:
    """The report of a failure."""
    with pytest.raises(RunFailedError) as failed:
        assert_ok(trace, Keeping(folder=folder, shrink_s=0.0), checks)
    return str(failed.value)


def test_commands_of_a_failing_test(fencepost, trace: Trace, tmp_path: Path) -> None:
    """Rule: a run that fails in a test is shown again by its plan; one whose plan is missing, or does not
    repeat it, or that is undecided, by its trace."""
    finding = findings_of(trace)[0]
    report = kept(trace, tmp_path / "a plan")
    assert named(fencepost, re.search(r"replay: +(.*)", report)[1]) == finding.anomaly
    checked = (finding.check,)
    report = kept(trace, tmp_path / "checks", checked)
    assert named(fencepost, re.search(r"replay: +(.*)", report)[1]) == findings_of(trace, checked)[0].anomaly
    healthy = evolve(plan_from_json(trace.plan), cluster=evolve(plan_from_json(trace.plan).cluster, bugs=()))
    other = run_plan(healthy).plan
    for name, without in (("none", evolve(trace, plan="")), ("does not repeat", evolve(trace, plan=other))):
        report = kept(without, tmp_path / name)
        assert judged(fencepost, re.search(r"replay: +(.*)", report)[1]) == ("illegal", finding.anomaly)
    broken = evolve(trace, claims=evolve(trace.claims, assumption_broken="planted"))
    for checks in (DEFAULT_CHECKS, ("log",)):
        report = kept(broken, tmp_path / f"broken {len(checks)}", checks)
        assert judged(fencepost, re.search(r"judge it again: (.*)", report)[1]) == ("assumption_broken", None)


def judged(fencepost, command: str) -> tuple[str, str | None]:
    """What a check command says of the one trace of its file."""
    words = shlex.split(command)
    assert words[:2] == ["fencepost", "check"]
    (row,) = fencepost(*words[1:], "--json").json["verdicts"]
    return row["decision"], by_rank(Finding(**one) for one in row["findings"])[0].anomaly if row[
        "findings"
    ] else None


def test_commands_of_a_state_machine(fencepost, trace: Trace, tmp_path: Path) -> None:
    """Rule: what a Hypothesis machine leaves replays to what it told; where a judge of the machine's own
    found it, no command is told."""
    left = Left(plan=tmp_path / "a machine.json", program=tmp_path / "program.py")
    write_plan(left.plan, plan_from_json(trace.plan))
    for finding in {one.anomaly: one for one in findings_of(trace)}.values():
        words = explanation(finding, left)
        assert named(fencepost, re.search(r"replay: +(fencepost .*)", words)[1]) == finding.anomaly
    words = explanation(evolve(findings_of(trace)[0], check="mine"), left)
    assert "fencepost replay --plan" not in words and "does not ask the judge mine" in words
    path = tmp_path / "of a log.jsonl"
    write_traces(path, [evolve(trace, plan="")])
    assert judged(fencepost, commands.check_traces(path)) == ("illegal", findings_of(trace)[0].anomaly)


def shown(fencepost, command: str, tmp_path: Path) -> tuple[int, list[str]]:
    """Exit code of a command that writes a page, and the anomalies that it names; the page is there."""
    page = tmp_path / "page.html"
    told_ = fencepost(*shlex.split(command)[1:], "--html", page, "--json")
    assert page.stat().st_size > 10_000, command
    return told_.code, [one["anomaly"] for verdict in told_.json["verdicts"] for one in verdict["findings"]]


def test_what_was_sent_is_read_before_it_is_judged(
    fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: `produce --record` names the read (consume_recorded) without which nothing can be judged, and
    `consume --record` then names the `check` that passes."""
    record = tmp_path / "it's sent.jsonl"
    with embedded_kafka(brokers=1) as kafka:
        kafka.create_topic("orders", partitions=2)
        servers = kafka.bootstrap_servers
        lines = b"".join(b"%d\n" % number for number in range(20))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
        sent = fencepost("cluster produce orders --bootstrap", servers, "--record", record).err
        read = shlex.split(re.search(r"(fencepost cluster consume .*)", sent)[1])
        told = fencepost(*read[1:])
        assert told.code == 0 and sorted(map(int, told.out.split())) == list(range(20))
        check = re.search(r"(fencepost check .*)", told.err)[1]
    told = fencepost(*shlex.split(check)[1:], "--json")
    assert told.code == 0 and told.json["decisions"] == {"ok": 1}


def test_pages_show_what_was_found(fencepost, planted, tmp_path) -> None:
    """Rule: a command that makes a page is about the trace, and finds in it what was found."""
    trace = TraceStore.open(planted).read(6)
    wanted = [finding.anomaly for verdict in judge(trace, DEFAULT_CHECKS) for finding in verdict.findings]
    assert shown(fencepost, commands.show_stored(planted, trace.trace_id), tmp_path) == (1, wanted)


def test_commands_are_spelled_in_one_place() -> None:
    """Rule: no other module puts such a command together; so every kind is in this file, in the tests of
    the plugin (`one_seed`), or in those of real systems (`replay_rate`)."""
    spelled = re.compile(r"""f["'][^"'\n]*fencepost (replay|check|shrink|show) [^"'\n]*\{""")
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "commands.py" or path.parent.name != "report":
            assert not spelled.search(path.read_text()), path
    tests = (
        Path(__file__).read_text()
        + (Path(__file__).parents[1] / "pytest_plugin" / "test_plugin.py").read_text()
        + (Path(__file__).parents[1] / "campaign" / "test_real_worker.py").read_text()
    )
    for name in vars(commands):
        if inspect.isfunction(getattr(commands, name)) and not name.startswith("_"):
            assert name in tests, f"no test runs what {name} spells"


def test_check_names_a_trace_as_replay_does(fencepost, stored: Path) -> None:
    """Rule: one trace has one headline, in JSON too: the first finding of a verdict is the one that names the
    run. Seed 23 has seven kinds of finding, which the judges report in another order."""
    (verdict,) = fencepost("check", stored, "--json").json["verdicts"]
    assert len({one["anomaly"] for one in verdict["findings"]}) > 3
    headline = named(fencepost, commands.replay_stored(stored, SEED))
    assert verdict["anomaly"] == verdict["findings"][0]["anomaly"] == headline
