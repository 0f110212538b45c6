"""`watch --transactions`: one more group gets every operation of a trace, and asks the checks of
transactions."""

import sys
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from fencepost.checkers import exactly_once
from fencepost.mining.watch.memory import group_of, remember
from fencepost.mining.watch.read import WHOLE
from fencepost.mining.watch.shard import ShardLimits
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Outcome
from tests.mining.watch.watch_by_hand import END, LIMITS, Watch, files_of, low_watermark

sys.path.insert(0, str(Path(__file__).parents[2] / "checkers" / "exactly_once"))
from exactly_once_naive import history

ASKED = evolve(LIMITS, transactions=True)


def ordered(seed: int):
    """A random history with op ids in the order of rows."""
    made = history(seed)
    return evolve(made, operations=tuple(sorted(made.operations, key=lambda op: op.op_id)))


def exactly_once_of(watch: Watch) -> list[str]:
    """The anomalies that the check found."""
    return sorted(row[5] for row in watch.reported["finding"] if row[4] == "exactly_once")


@pytest.mark.parametrize("seed", range(12))
def test_however_files_and_micro_batches_are_cut(tmp_path: Path, seed: int) -> None:
    """The memory goes through bytes after every micro-batch, and files come in any order: each anomaly of the
    whole trace once, and one verdict for each check."""
    rng, made = Random(seed), ordered(seed)
    watch = Watch(tmp_path, ASKED)
    paths = [watch.write(part) for part in files_of(made, rng, rng.randint(1, 5), in_pairs=bool(seed % 2))]
    rng.shuffle(paths)
    while paths:
        some = rng.randint(1, len(paths))
        watch.batch(paths[:some])
        paths = paths[some:]
    wanted = sorted({finding.anomaly for finding in exactly_once.judge_trace(made).findings})
    assert exactly_once_of(watch) == wanted
    decided = {row[2]: (row[3], row[5]) for row in watch.reported["verdict"]}
    assert decided["exactly_once"] == ("illegal" if wanted else "ok", len(wanted))
    assert decided["transactions"][0] == "ok" and len(watch.reported["verdict"]) == 2


def test_a_whole_trace_is_judged_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    """A trace with a digest: the same kinds of findings, in one micro-batch."""
    watch = Watch(tmp_path, ASKED)
    made = [evolve(ordered(seed), trace_id=seed, digest="0" * 32) for seed in range(8)]
    watch.batch([watch.write(*made)])
    verdicts = [exactly_once.judge_trace(one) for one in made]
    wanted = sorted(name for one in verdicts for name in {finding.anomaly for finding in one.findings})
    assert exactly_once_of(watch) == wanted != [] and not watch.memory


def test_nobody_pays_who_did_not_ask(tmp_path: Path) -> None:
    """Without the option no group gets every operation, and no check of transactions says anything."""
    watch = Watch(tmp_path, LIMITS)
    watch.batch([watch.write(*files_of(ordered(0), Random(0), 1, in_pairs=False))])
    assert all(key[3] < WHOLE for key in watch.memory) and not watch.reported["verdict"]


def test_what_is_torn_is_reported_before_the_trace_ends(tmp_path: Path) -> None:
    """A finding comes with the micro-batch that shows it, not with the end."""
    seed = next(n for n in range(99) if "torn_transaction" in str(exactly_once.judge_trace(ordered(n))))
    watch, made = Watch(tmp_path, ASKED), ordered(seed)
    watch.batch([watch.write(evolve(made, events=(low_watermark(2**39, 1),)))])
    assert "torn_transaction" in exactly_once_of(watch) and not watch.reported["verdict"]
    watch.batch([watch.write(evolve(made, operations=(), events=(evolve(END, offset=2),)))])
    assert exactly_once_of(watch).count("torn_transaction") == 1 and len(watch.reported["verdict"]) == 2


def test_an_aborted_record_that_is_read_is_reported_before_the_trace_ends(tmp_path: Path) -> None:
    """The log check says it: a reader of committed records is shown a record of a transaction that
    failed."""
    made = next(one for one in map(ordered, range(99)) if _shows_an_aborted_record(one))
    watch = Watch(tmp_path, ASKED)
    watch.batch([watch.write(evolve(made, events=(low_watermark(2**39, 1),)))])
    assert "failed_append_visible" in [row[5] for row in watch.reported["finding"]]


def _shows_an_aborted_record(made) -> bool:
    failed = {
        record.value
        for op in made.operations
        if op.function is Function.APPEND and op.outcome is Outcome.FAIL
        for record in op.records
    }
    return any(
        record.value in failed
        for op in made.operations
        if op.function is Function.POLL and op.isolation == "read_committed"
        for record in op.records
    )


def test_who_comes_too_late_makes_the_checks_undecided(tmp_path: Path) -> None:
    """An operation that arrives when later ones were judged: both checks end unknown, with its number."""
    watch, made = Watch(tmp_path, ASKED), ordered(3)
    first, *rest = sorted(made.operations, key=lambda op: op.invoke_time)
    assert first.function is Function.TXN
    watch.batch([watch.write(evolve(made, operations=tuple(rest), events=(low_watermark(2**39, 1),)))])
    late = evolve(rest[0], op_id=9_000, invoke_time=1, completion_time=2)
    watch.batch([watch.write(evolve(made, operations=(late,), events=(evolve(END, offset=2),)))])
    decided = {row[2]: (row[3], row[6]) for row in watch.reported["verdict"]}
    reason = "operation 9000 arrived when what happened after it had been judged"
    assert decided["transactions"] == ("unknown", reason)
    assert decided["exactly_once"][1] == reason


def test_a_memory_of_something_else_is_refused() -> None:
    """Bytes that are not a window's end the stream with one sentence."""
    group = group_of("a", 1, "", WHOLE, ShardLimits(horizon=5, lateness_ns=0, transactions=True))
    with pytest.raises(TraceError, match="what a watch remembers"):
        remember(group, b"\xc1")
