"""What the sub-commands print and answer when all is well."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attrs import evolve
from rich.console import Console

from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.cli import SUB_COMMANDS, group
from fencepost.console.options import SeedRange
from fencepost.console.output import Output
from fencepost.record.claimed.profiles import PROFILES as CHECK_PROFILES
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.store import TraceStore
from tests.cli.conftest import COMMAND
from tests.command_tree import walk


def test_examples_name_profiles_that_exist() -> None:
    """Rule: what help shows can be typed in the next version too; names of 0.1 go."""
    texts = " ".join(command.help or "" for _, command in walk(group))
    named = set(re.findall(r"--profile (\S+)", texts))
    assert named and named <= {*PROFILES, *CHECK_PROFILES}


def test_the_help_of_all_imports_no_sub_command() -> None:
    """What `fencepost --help` loads is the command line's own: it names every sub-command, and no module of
    one, nor what they need."""
    heavy = ("numpy", "pyarrow", "pyspark", "kazoo", "fencepost.campaign", "fencepost.checkers")
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from fencepost.cli import run; run(['--help']); print(*sys.modules, "
            "file=sys.stderr)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(told.stderr.split())
    assert "rich_click" in loaded
    assert not loaded & {*heavy, *(f"fencepost.cli.{name}" for name in SUB_COMMANDS)}
    assert all(f" {name} " in told.stdout for name in SUB_COMMANDS)


def test_no_arguments_shows_the_help(fencepost) -> None:
    """`fencepost` alone tells what there is, and exits as a usage error."""
    told = fencepost()
    assert told.code == 2
    assert "campaign" in told.out + told.err


@pytest.mark.parametrize(("text", "means"), [("0:5", range(5)), ("7", range(7, 8)), ("3:4", range(3, 4))])
def test_seeds(text: str, means: range) -> None:
    """A:B leaves B out; N is one seed."""
    assert SeedRange().convert(text, None, None) == means


def test_a_campaign_says_what_it_found(fencepost, tmp_path) -> None:
    """A healthy campaign exits 0, stores every run, and with --json prints one object on standard output."""
    told = fencepost("campaign --seeds 0:4 --jobs 1 --out", tmp_path / "c", "--json")
    assert told.code == 0
    assert (told.json["seeds"], told.json["finished"], told.json["findings"], told.json["exit_code"]) == (
        4,
        4,
        0,
        0,
    )
    assert TraceStore.open(tmp_path / "c").trace_ids() == {0, 1, 2, 3}
    again = fencepost("campaign --seeds 0:5 --jobs 1 --out", tmp_path / "c", "--resume", "--json")
    assert (again.json["finished"], again.json["ran"]) == (5, 1)


def test_a_planted_campaign_names_its_first_seed(fencepost, planted) -> None:
    """Findings exit 1, and the summary ends with the command that shows the first one; that command works."""
    told = fencepost("campaign --seeds 0:10 --jobs 1 --bug KAFKA-6082 --out", planted, "--resume")
    assert told.code == 1
    replay = told.out.split("See the worst one: fencepost ")[1].split("\n")[0]
    shown = fencepost(*replay.split())
    assert shown.code == 1
    assert "the same as stored" in shown.out
    for part in ("expected:", "seen:", "Proof", ">>>", "virtual", "LEADS in epoch 0"):
        assert part in shown.out


def test_replay_of_a_seed_equals_replay_of_its_trace(fencepost, planted, tmp_path) -> None:
    """The stored run, the seed alone, and its plan in a file all give the same digest and verdicts."""
    stored = fencepost("replay", planted, "--trace", 3, "--json").json
    seed = fencepost("replay --seed 3 --bug KAFKA-6082 --json").json
    plan = tmp_path / "plan.json"
    plan.write_text(TraceStore.open(planted).read(3).plan)
    filed = fencepost("replay --plan", plan, "--json").json
    assert stored["repeats"] is True
    assert stored["digest"] == seed["digest"] == filed["digest"]
    assert stored["verdicts"] == seed["verdicts"] == filed["verdicts"]
    assert seed["replay"] == "fencepost replay --seed 3 --bug KAFKA-6082"


def test_check_agrees_with_the_campaign(fencepost, planted, tmp_path) -> None:
    """Stored traces, and the same ones as JSON lines, get the verdicts that the campaign counted."""
    campaign = fencepost(
        "campaign --seeds 0:10 --jobs 1 --bug KAFKA-6082 --out", planted, "--resume", "--json"
    ).json
    lines = tmp_path / "traces.jsonl"
    write_traces(lines, TraceStore.open(planted))
    for source in (planted, planted.parent, lines):
        told = fencepost("check", source, "--json")
        assert told.code == 1
        assert told.json["anomalies"] == campaign["anomalies"]
        assert told.json["traces"] == 10


def test_check_under_another_profile(fencepost, planted) -> None:
    """--checks and --profile reach the judges."""
    told = fencepost("check", planted, "--checks", "log", "--profile", "content", "--json")
    assert told.json["checks"] == ["log"]
    assert all(verdict["check"] == "all" for verdict in told.json["verdicts"])


def test_a_weak_run_is_not_ok(fencepost, planted, tmp_path) -> None:
    """A trace whose assumptions are broken, without findings, exits 3."""
    trace = TraceStore.open(planted).read(0)
    weak = evolve(trace, claims=evolve(trace.claims, assumption_broken="no final read"))
    write_traces(tmp_path / "weak.jsonl", [weak])
    told = fencepost("check", tmp_path / "weak.jsonl", "--json")
    assert told.code == 3
    assert "no final read" in told.json["verdicts"][0]["reason"]


def test_the_hunt_keeps_its_record(fencepost, tmp_path) -> None:
    """A hunt tells the seeds needed and the command that shows the finding by its name; a recorded bug is not
    hunted again."""
    first = fencepost("campaign bugs hunt KAFKA-6082 --seeds 60 --jobs 1 --out", tmp_path, "--json")
    assert first.code == 0
    (hunt,) = first.json["hunts"]
    assert hunt["anomaly"] == "fenced_controller_wrote"
    assert hunt["command"] == f"fencepost replay --seed {hunt['seeds_needed'] - 1} --bug KAFKA-6082"
    shown = fencepost(*hunt["command"].split()[1:], "--no-timeline", "--json")
    assert shown.code == 1 and shown.json["anomaly"] == hunt["anomaly"]
    again = fencepost("campaign bugs hunt KAFKA-6082 --seeds 60 --jobs 1 --out", tmp_path, "--json")
    assert again.json["hunts"] == first.json["hunts"]


def test_a_hunt_in_several_ranges_tells_the_median(fencepost, tmp_path) -> None:
    """Each range is hunted from its own first seed; the middle one of the figures is told, and a record with
    fewer ranges is not enough."""
    arguments = ["campaign bugs hunt KAFKA-1188 --seeds 60 --jobs 1 --out", tmp_path, "--json"]
    (alone,) = fencepost(*arguments).json["hunts"]
    told = fencepost(*arguments[:-1], "--ranges", 3, "--json")
    (hunt,) = told.json["hunts"]
    assert alone["ranges"] == [alone["seeds_needed"]] and hunt["ranges"][0] == hunt["seeds_needed"]
    assert len(hunt["ranges"]) == 3 and len(set(hunt["ranges"])) > 1
    shown = fencepost(*arguments[:-1], "--ranges", 3).out
    assert "median" in shown and f" {sorted(hunt['ranges'])[1]} " in shown
    first = 2_000_000 + hunt["ranges"][2] - 1
    command = ["replay", "--seed", first, "--bug", "KAFKA-1188", "--no-timeline"]
    assert fencepost(*command).code == 1


def test_a_hunt_that_finds_nothing_is_undecided(fencepost) -> None:
    """A bug that the budget of seeds does not show leaves the question open."""
    told = fencepost("campaign bugs hunt KAFKA-6082 --seeds 1 --jobs 1")
    assert told.code == 3
    assert "not in 1" in told.out


def test_the_bugs_are_listed(fencepost) -> None:
    """The list names each bug with the invariant that it breaks."""
    told = fencepost("campaign bugs list --json")
    assert told.code == 0
    assert {bug["bug"]: bug["breaks"] for bug in told.json["bugs"]}["KIP-101"] == "COMMIT-SAFE"


def test_progress_on_a_terminal_and_none_in_a_pipe() -> None:
    """A progress bar is drawn on a terminal; in a pipe nothing is written at all."""
    for terminal in (True, False):
        written = io.StringIO()
        output = Output()
        output.errors = Console(file=written, force_terminal=terminal, width=100)
        with output.progress("runs", 10) as bar:
            bar.to(4, "1 with findings")
            bar.progress.refresh()
        assert ("4/10" in written.getvalue()) is terminal
        assert bool(written.getvalue()) is terminal


def test_a_pipe_stays_silent_on_standard_error(tmp_path: Path) -> None:
    """A campaign whose output goes to pipes writes its summary to standard output and nothing beside it."""
    arguments = f"campaign --seeds 0:2 --jobs 1 --out {tmp_path / 'c'} --profile calm".split()
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout and "2 of 2" in done.stdout


def test_a_reader_that_leaves_changes_nothing() -> None:
    """`fencepost ... | head -0` ends quietly with the command's own exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, "campaign", "bugs", "list"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_every_finished_run(fencepost, tmp_path, signum) -> None:
    """Ctrl-C, or SIGTERM, ends a campaign with 130; --resume finishes it without running anything twice."""
    out, seeds = tmp_path / "c", "0:400"
    arguments = ["campaign", "--seeds", seeds, "--jobs", "1", "--out", str(out)]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    verdicts = out / "verdicts.jsonl"
    while process.poll() is None and not (verdicts.exists() and verdicts.stat().st_size):
        time.sleep(0.02)
    process.send_signal(signum)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    kept = TraceStore.open(out).trace_ids()
    assert kept
    told = fencepost(
        "campaign --seeds", f"0:{max(kept) + 2}", "--jobs", 1, "--out", out, "--resume", "--json"
    )
    assert told.json["finished"] == max(kept) + 2
    assert TraceStore.open(out).trace_ids() == set(range(max(kept) + 2))
