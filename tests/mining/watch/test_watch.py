"""A watch on Spark: what arrives is judged once, whenever the driver dies."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.mining.results.result_rows import SCHEMAS
from fencepost.mining.watch.out import WatchOut
from fencepost.mining.watch.watch import watch
from fencepost.run.simulated.run import run
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tests.checkers import lab

pytestmark = pytest.mark.spark

PLANTED = {"KIP-101": 23}
"""A seed whose run shows the bug to its clients (tests/bugs/test_bugs.py)."""


def plain(made: Trace) -> list[tuple]:
    """Trace, check, anomaly, log and certificate of what the judges find in a trace."""
    found = [finding for verdict in judge(evolve(made, events=())) for finding in verdict.findings]
    return [(made.trace_id, f.check, f.anomaly, f.topic, f.partition, f.operations) for f in found]


def found_in(out: Path) -> list[tuple]:
    """The same of what a watch wrote; every file of the table has its schema."""
    rows = []
    for path in (out / "findings").glob("*"):
        made = pq.read_table(path)
        assert made.schema.equals(SCHEMAS["findings"], check_metadata=True)
        rows += made.to_pylist()
    names = ("trace_id", "check", "anomaly", "topic", "partition")
    return sorted(
        (*(row[name] or "" for name in names[:4]), row["partition"], tuple(row["operations"])) for row in rows
    )


def arrive(path: Path, *traces: Trace) -> None:
    """A file of JSON lines arrives whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_traces(path.with_name("." + path.name), traces)
    path.with_name("." + path.name).rename(path)


def campaign(path: Path, traces: list[Trace]) -> None:
    """A sealed part of a campaign arrives."""
    store = TraceStore.open(path) if path.exists() else TraceStore.create(path)
    lab.stored(store, traces)
    (path / "verdicts.jsonl").write_text('{"seed":1}\n')  # the campaign's notes


def cut(made: Trace, time: int) -> tuple[Trace, Trace]:
    """A trace in two parts: what was invoked up to `time`, with a low watermark, and the rest with the
    end."""
    early = tuple(op for op in made.operations if op.invoke_time <= time)
    late = tuple(op for op in made.operations if op.invoke_time > time)
    mark = Event(time=time + 1, name=Name.MARK, cause="low_watermark", offset=1)
    end = Event(time=2**40, name=Name.PHASE, cause="end", offset=2)
    return (
        evolve(made, digest="", operations=early, events=(mark,)),
        evolve(made, digest="", operations=late, events=(end,)),
    )


def test_what_arrives_between_two_watches_is_judged_once(tmp_path: Path, make, spark) -> None:
    """Parts of campaigns, healthy and planted, traces under way and foreign files, in two sittings: exactly
    the findings of the judges, each once; a healthy run has none."""
    folder, out = tmp_path / "in", tmp_path / "out"
    healthy = [evolve(run(swarm(seed)), trace_id=seed) for seed in (1, 20)]
    planted = [evolve(run(swarm(seed, bugs=(bug,))), trace_id=100 + seed) for bug, seed in PLANTED.items()]
    live = [make(1, "lost_write"), make(2, "phantom_record"), make(3, "legal")]
    first, second = zip(*(cut(trace, 20) for trace in live), strict=True)
    campaign(folder / "campaign", healthy)
    arrive(folder / "live" / "a.jsonl", *first)
    (folder / "live" / "foreign.jsonl").write_text("{no\n")
    begun = watch(folder, out, checks=("log",), once=True, spark=spark)
    assert found_in(out) == [] and begun.exit_code is ExitCode.QUARANTINED
    assert begun.traces_under_way == 3 and begun.quarantined == 1

    campaign(folder / "campaign", planted)
    arrive(folder / "live" / "b.jsonl", *second)
    ended = watch(folder, out, checks=("log",), once=True, spark=spark)
    everything = [*healthy, *planted, *live]
    wanted = sorted(row for trace in everything for row in plain(trace) if row[1] == "log")
    assert found_in(out) == wanted
    assert {row[0] for row in wanted} == {1, 2, 123}
    assert (ended.exit_code, ended.findings, ended.findings_in_all) == (
        ExitCode.FINDINGS,
        len(wanted),
        len(wanted),
    )
    assert ended.traces_under_way == ended.waiting == 0
    verdicts = pq.read_table(out / "verdicts")
    assert verdicts.schema.equals(SCHEMAS["verdicts"], check_metadata=True)
    ended_live = [row["trace_id"] for row in verdicts.to_pylist() if row["source"] == str(folder / "live")]
    assert sorted(ended_live) == [1, 2, 3]
    assert [row["place"] for row in pq.read_table(out / "quarantine").to_pylist()] == [
        str(folder / "live" / "foreign.jsonl")
    ]

    again = watch(folder, out, checks=("log",), once=True, spark=spark)
    assert (again.exit_code, again.files, again.findings_in_all) == (ExitCode.NOTHING_FOUND, 0, len(wanted))


KILLED = """
import os, signal, sys
from pathlib import Path
from fencepost.mining.watch import watch as watching

watching.ROUND_BYTES = 1
watching.watch(Path(sys.argv[1]), Path(sys.argv[2]), checks=("log",), master="local[1]", once=True,
      tell=lambda one, watched: one.number == 1 and os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_driver_killed_in_the_middle_loses_and_doubles_nothing(tmp_path: Path, make, spark) -> None:
    """kill -9 after the tables of a round and before it is done: the next watch has every finding once."""
    folder, out = tmp_path / "in", tmp_path / "out"
    live = [make(1, "lost_write"), make(2, "phantom_record"), make(3, "inconsistent_offsets")]
    first, second = zip(*(cut(trace, 20) for trace in live), strict=True)
    arrive(folder / "a.jsonl", *first)  # round 0
    arrive(folder / "b.jsonl", *second)  # round 1
    done = subprocess.run([sys.executable, "-c", KILLED, folder, out], timeout=600, check=False)
    assert done.returncode == -9
    written = found_in(out)
    assert written and (out / "findings" / "part-00000001.parquet").exists()
    assert [path.name for path in (out / "rounds").iterdir()] == ["round-00000000.json"]
    ended = watch(folder, out, checks=("log",), once=True, spark=spark)
    wanted = sorted(row for trace in live for row in plain(trace) if row[1] == "log")
    assert found_in(out) == written and ended.findings_in_all == len(wanted)
    assert [row[:-1] for row in written] == [row[:-1] for row in wanted]  # early, others may convict


def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Results in use, of another question, of a watch at work, inside what is watched, or nothing to watch:
    one sentence, and Spark is not started."""
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    held = WatchOut(path=tmp_path / "held")
    asked = {"lateness_ns": 1}
    with held.held(asked), pytest.raises(FencepostError, match="another one at work"), held.held(asked):
        pass
    with (
        pytest.raises(FencepostError, match=r"question that this watch began with \(lateness_ns: 1\), saw 2"),
        held.held({"lateness_ns": 2}),
    ):
        pass
    for there, out, sentence in (
        (folder, tmp_path / "used", "expected a new or an empty folder, or that of a watch before"),
        (folder, folder / "out", "one in the other"),
        (tmp_path / "none", tmp_path / "out", "expected a folder to watch, saw nothing there"),
        (tmp_path / "used" / "file", tmp_path / "out", "expected a folder to watch, saw a file"),
    ):
        with pytest.raises(FencepostError, match=sentence):
            watch(there, out)
    with pytest.raises(FencepostError, match="expected a profile"):
        watch(folder, tmp_path / "out", profile="wild")
    with pytest.raises(FencepostError, match="expected checks out of"):
        watch(folder, tmp_path / "out", checks=("wild",))
    assert json.loads((tmp_path / "held" / "watch.json").read_text()) == asked
