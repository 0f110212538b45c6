"""A watch on Spark: what arrives is judged once, whenever the driver dies, and the tables hold what the
streaming form finds."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from attrs import evolve
from fencepost.mining.watch.read import logs_of
from fencepost.mining.watch.shard import ShardLimits

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers import exactly_once
from fencepost.checkers.log import stream_trace
from fencepost.mining.results.result_rows import SCHEMAS
from fencepost.mining.watch.out import LOGS, WatchOut
from fencepost.mining.watch.watch import watch
from fencepost.run.simulated.run import run
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "checkers" / "exactly_once"))
from exactly_once_naive import history as transformed

pytestmark = pytest.mark.spark

LIMITS = ShardLimits(horizon=2_000, lateness_ns=10**9)
PLANTED = {"KIP-101": 20}
"""A seed whose run shows the bug to its clients (tests/bugs/test_bugs.py)."""


def plain(made: Trace) -> list[tuple]:
    """Trace, anomaly, log, offset and certificate of what the streaming form finds in a trace."""
    logs = sorted(set().union(*(logs_of(op) or set() for op in made.operations)))
    found = [f for log in logs for f in stream_trace(made, *log, horizon=LIMITS.horizon).findings]
    return [(made.trace_id, f.anomaly, f.topic, f.partition, f.offset, f.operations) for f in found]


def found_in(out: Path) -> list[tuple]:
    """The same of what a watch wrote; every file of the table has its schema."""
    rows = []
    for path in (out / "findings").glob("*"):
        made = pq.read_table(path)
        assert made.schema.equals(SCHEMAS["findings"], check_metadata=True)
        rows += made.to_pylist()
    names = ("trace_id", "anomaly", "topic", "partition", "offset")
    return sorted((*(row[name] for name in names), tuple(row["operations"])) for row in rows)


def arrive(path: Path, *traces: Trace) -> None:
    """A file of JSON lines arrives whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_traces(path.with_name("." + path.name), traces)
    path.with_name("." + path.name).rename(path)


def campaign(path: Path, traces: list[Trace]) -> None:
    """A sealed part of a campaign arrives."""
    store = TraceStore.open(path) if path.exists() else TraceStore.create(path)
    with store.writer() as writer:
        for trace in traces:
            writer.append(trace)
    seal(store)
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
    the findings of the streaming form, each once; a healthy run has none."""
    folder, out = tmp_path / "in", tmp_path / "out"
    healthy = [evolve(run(swarm(seed)), trace_id=seed) for seed in (1, 20)]
    planted = [evolve(run(swarm(seed, bugs=(bug,))), trace_id=100 + seed) for bug, seed in PLANTED.items()]
    live = [make(1, "lost_write"), make(2, "phantom_record"), make(3, "legal")]
    first, second = zip(*(cut(trace, 20) for trace in live), strict=True)
    campaign(folder / "campaign", healthy)
    arrive(folder / "live" / "a.jsonl", *first)
    (folder / "live" / "foreign.jsonl").write_text("{no\n")
    numbers = []
    begun = watch(
        folder, out, limits=LIMITS, once=True, spark=spark, tell=lambda batch, _: numbers.append(batch.number)
    )
    assert found_in(out) == [] and begun.exit_code is ExitCode.QUARANTINED
    assert begun.logs_under_way == 3 and begun.quarantined == 1

    campaign(folder / "campaign", planted)
    arrive(folder / "live" / "b.jsonl", *second)
    ended = watch(folder, out, limits=LIMITS, once=True, spark=spark)
    everything = [*healthy, *planted, *live]
    wanted = sorted(row for trace in everything for row in plain(trace))
    assert found_in(out) == wanted
    assert {row[0] for row in wanted} == {1, 2, 120}
    assert (ended.exit_code, ended.findings, ended.findings_in_all) == (
        ExitCode.FINDINGS,
        len(wanted),
        len(wanted),
    )
    assert ended.logs_under_way == ended.held == 0
    logs = pq.read_table(out / "logs")
    assert logs.schema.equals(LOGS, check_metadata=True)
    ended_live = [row["trace_id"] for row in logs.to_pylist() if row["source"] == str(folder / "live")]
    assert sorted(ended_live) == [1, 2, 3]
    assert [row["place"] for row in pq.read_table(out / "quarantine").to_pylist()] == [
        str(folder / "live" / "foreign.jsonl")
    ]

    again = watch(folder, out, limits=LIMITS, once=True, spark=spark)
    assert (again.exit_code, again.files, again.findings_in_all) == (ExitCode.NOTHING_FOUND, 0, len(wanted))


KILLED = """
import os, signal, sys
from pathlib import Path
from fencepost.mining.watch import watch as watching
from fencepost.mining.watch.shard import ShardLimits as Limits

watching.BATCH_INPUT_BYTES = 1
limits = Limits(horizon=2_000, lateness_ns=10**9)
watching.watch(Path(sys.argv[1]), Path(sys.argv[2]), limits=limits, master="local[1]", once=True,
      tell=lambda batch, watched: batch.number == 1 and os.kill(os.getpid(), signal.SIGKILL))
"""


def test_transactions_are_judged_through_the_stream(tmp_path: Path, spark) -> None:
    """Rule (WATCH): with the option, the checks of transactions find through Spark each kind that they find
    in whole traces, torn transactions and records transformed twice among it, and each trace gets its
    verdicts."""
    folder, out = tmp_path / "in", tmp_path / "out"
    made = [evolve(transformed(seed), trace_id=seed) for seed in range(12)]
    ordered = [evolve(one, operations=tuple(sorted(one.operations, key=lambda op: op.op_id))) for one in made]
    first, second = zip(*(cut(one, 20) for one in ordered), strict=True)
    arrive(folder / "a.jsonl", *first)
    arrive(folder / "b.jsonl", *second)
    limits = evolve(LIMITS, transactions=True)
    ended = watch(folder, out, limits=limits, once=True, spark=spark)
    wanted = {
        one.trace_id: sorted({finding.anomaly for finding in exactly_once.judge_trace(one).findings})
        for one in ordered
    }
    assert len({name for names in wanted.values() for name in names}) > 2 and [] in wanted.values()
    found: dict[int, list[str]] = {one: [] for one in wanted}
    for row in pq.read_table(out / "findings").to_pylist():
        assert row["check"] != "transactions"
        if row["check"] == "exactly_once":
            found[row["trace_id"]].append(row["anomaly"])
    assert {one: sorted(names) for one, names in found.items()} == wanted
    verdicts = pq.read_table(out / "verdicts").to_pylist()
    decided = {(row["trace_id"], row["check"]): row["decision"] for row in verdicts}
    for one, names in wanted.items():
        assert decided[one, "exactly_once"] == ("illegal" if names else "ok")
        assert decided[one, "transactions"] == "ok"
    assert ended.exit_code is ExitCode.FINDINGS and ended.logs_under_way == 0


def test_a_driver_killed_in_the_middle_loses_and_doubles_nothing(tmp_path: Path, make, spark) -> None:
    """kill -9 behind the writing of a micro-batch and before Spark's commit of it: the next watch has every
    finding once."""
    folder, out = tmp_path / "in", tmp_path / "out"
    live = [make(1, "lost_write"), make(2, "phantom_record"), make(3, "inconsistent_offsets")]
    first, second = zip(*(cut(trace, 20) for trace in live), strict=True)
    arrive(folder / "a.jsonl", *first)  # micro-batch 0
    arrive(folder / "b.jsonl", *second)  # micro-batch 1
    done = subprocess.run([sys.executable, "-c", KILLED, folder, out], timeout=600, check=False)
    assert done.returncode == -9
    written, committed = found_in(out), out / "checkpoint" / "commits"
    assert written and (out / "findings" / "part-00000001.parquet").exists()
    assert not (committed / "1").exists() and (committed / "0").exists()
    ended = watch(folder, out, limits=LIMITS, once=True, spark=spark)
    wanted = sorted(row for trace in live for row in plain(trace))
    assert found_in(out) == wanted == written and ended.findings_in_all == len(wanted)


def test_tables_are_replaced_by_the_same_micro_batch(tmp_path: Path) -> None:
    """A micro-batch that is written twice stands once, also where the second time has nothing to say."""
    out = WatchOut(path=tmp_path)
    row = ("in", "in/file", 1, "why")
    nothing = {"findings": [], "logs": [], "verdicts": []}
    out.write(3, {**nothing, "quarantine": [row, row]})
    out.write(3, {**nothing, "quarantine": [row]})
    assert (out.count("quarantine"), out.count("quarantine", but=3)) == (1, 0)
    out.write(3, {**nothing, "quarantine": []})
    assert out.count("quarantine") == 0 and not list((tmp_path / "quarantine").iterdir())


def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Results in use, of another question, of a watch at work, inside what is watched, or nothing to watch:
    one sentence, and Spark is not started."""
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    held = WatchOut(path=tmp_path / "held")
    asked = {"horizon": 1}
    with held.held(asked), pytest.raises(FencepostError, match="another one at work"), held.held(asked):
        pass
    with (
        pytest.raises(FencepostError, match=r"question that this watch began with \(horizon: 1\), saw 2"),
        held.held({"horizon": 2}),
    ):
        pass
    (tmp_path / "held" / "findings").mkdir()
    with pytest.raises(FencepostError, match="expected the folder checkpoint next to"), held.held(asked):
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
        watch(folder, tmp_path / "out", limits=ShardLimits(horizon=1, lateness_ns=0, profile="wild"))
    assert json.loads((tmp_path / "held" / "watch.json").read_text()) == asked
