"""However news arrives, and however memory goes from process to process, a watch finds what the streaming
form finds."""

from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers.log import StreamingLogCheck, stream_trace
from fencepost.checkers.log.streaming.merge import Merge
from fencepost.checkers.log.streaming.saved_stream import VERSION, from_bytes, to_bytes
from fencepost.checkers.verdict import Decision
from fencepost.mining.watch.memory import remember
from fencepost.mining.watch.read import logs_of
from fencepost.mining.watch.shard import Shard, ShardLimits
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.parts import BEFORE
from tests.checkers.wild_histories import wild
from tests.mining.watch.watch_by_hand import (
    BOTH,
    END,
    LIMITS,
    Watch,
    append,
    beside,
    busy,
    files_of,
    history,
    low_watermark,
    plain,
    read,
    trace,
)

SEEDS = st.integers(0, 2**40)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS, count=st.integers(1, 6), in_pairs=st.booleans(), in_order=st.booleans())
def test_any_split_into_files_and_micro_batches_gives_what_the_streaming_form_finds(
    tmp_path_factory, seed: int, count: int, in_pairs: bool, in_order: bool
) -> None:
    """However a history is cut into files and these, in any order, into micro-batches, the same findings with
    the same certificates come out, each once."""
    rng, made = Random(seed), beside(history(seed), history(seed + 2))
    watch = Watch(tmp_path_factory.mktemp("watched"))
    paths = [watch.write(part) for part in files_of(made, rng, count, in_pairs=in_pairs)]
    if not in_order:
        rng.shuffle(paths)
    while paths:
        some = rng.randint(1, len(paths))
        watch.batch(paths[:some])
        paths = paths[some:]
    assert watch.findings() == plain(made, BOTH)
    assert not watch.reported["quarantine"]
    touched = {row[2] for row in watch.reported["log"]}
    decided = {topic: stream_trace(made, topic, 0).decision.value for topic in touched}
    assert sorted((row[2], row[4]) for row in watch.reported["log"]) == sorted(decided.items())
    whole = Watch(tmp_path_factory.mktemp("whole"))
    whole.batch([whole.write(evolve(made, digest="0" * 32))])
    assert whole.findings() == plain(made, BOTH) and not whole.memory


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 5_000), count=st.integers(1, 4), in_pairs=st.booleans())
def test_wild_histories_in_parts_are_judged_as_at_once(
    tmp_path_factory, seed: int, count: int, in_pairs: bool
) -> None:
    """The same of histories with several topics, groups, transactions, retention and compaction: findings and
    decisions of every log."""
    rng, made = Random(seed), wild(seed)
    made = evolve(made, digest="", operations=tuple(sorted(made.operations, key=lambda op: op.op_id)))
    logs = sorted(set().union(*(logs_of(op) or set() for op in made.operations)))
    verdicts = {log: stream_trace(made, *log, horizon=LIMITS.horizon) for log in logs}
    broken = {log for log, verdict in verdicts.items() if verdict.decision is Decision.ASSUMPTION_BROKEN}
    watch = Watch(tmp_path_factory.mktemp("wild"))
    paths = [watch.write(part) for part in files_of(made, rng, count, in_pairs=in_pairs)]
    rng.shuffle(paths)
    for path in paths:
        watch.batch([path])
    assert [row for row in watch.findings() if row[1:3] not in broken] == plain(made, logs)
    assert {row[2:4]: row[4] for row in watch.reported["log"]} == {
        log: verdicts[log].decision.value for log in logs
    }


def test_a_mistake_of_ours_costs_one_log_and_is_told(tmp_path: Path, monkeypatch) -> None:
    """A judge that fails on one partition does not end the stream; what it failed on is said, and the other
    partition is judged."""
    real = StreamingLogCheck.invoke

    def failing(self, operation):
        assert self.topic != "u", "planted"
        real(self, operation)

    monkeypatch.setattr(StreamingLogCheck, "invoke", failing)
    watch = Watch(tmp_path)
    made = beside(trace(append(1, [1], 0, 10, 0)), trace(append(1, [1], 0, 10, 0)))
    watch.batch([watch.write(evolve(made, events=(END,)))])
    reported = {row[2]: (row[4], row[7]) for row in watch.reported["log"]}
    assert reported["t"] == ("ok", "") and reported["u"][0] == "assumption_broken"
    assert "operation 10001 is too much for the judge" in reported["u"][1] and "planted" in reported["u"][1]


def test_a_watch_that_does_not_wait_is_noticed(tmp_path: Path, monkeypatch) -> None:
    """The planted fault of the comparison above: news judged in the order of arrival gives other findings
    than the order of time."""
    late_ack = [
        append(1, [10], 5, 8, 0),
        read(2, 0, [], 30, 31, end=0),  # does not see what was acknowledged
    ]
    made = trace(*late_ack, check="strong")
    assert [row[0] for row in plain(made)] == ["stale_read"]
    for fault in (False, True):
        watch = Watch(tmp_path / str(fault))
        Path(watch.folder.root).mkdir()
        if fault:
            monkeypatch.setattr(Shard, "_low_watermark", lambda self: self.merge.newest + 1)
        first = watch.write(evolve(made, operations=made.operations[1:], events=()))
        watch.batch([first])
        second = watch.write(evolve(made, operations=made.operations[:1], events=(END,)))
        watch.batch([second])
        assert (watch.findings() == plain(made)) is not fault


def test_a_watch_that_forgets_between_micro_batches_is_noticed(tmp_path: Path) -> None:
    """The other planted fault: without the memory of the micro-batch before, what an earlier part shows
    convicts nobody."""
    made = trace(append(1, [10], 5, 8, 0), read(2, 0, [], 30, 31, end=0), check="strong")
    for fault in (False, True):
        watch = Watch(tmp_path / str(fault))
        Path(watch.folder.root).mkdir()
        watch.batch([watch.write(evolve(made, operations=made.operations[:1], events=(low_watermark(20),)))])
        if fault:
            watch.memory.clear()
        watch.batch([watch.write(evolve(made, operations=made.operations[1:], events=(END,)))])
        assert (watch.findings() == plain(made)) is not fault


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, horizon=st.sampled_from([1, 2, 3, 1_000]))
def test_what_a_stream_remembers_goes_through_bytes(seed: int, horizon: int) -> None:
    """A stream whose memory is written and read back after every moment says what one says that never was,
    with any horizon."""
    made = history(seed)
    about = {
        "topic": "t",
        "partition": 0,
        "claims": made.claims,
        "unique": made.unique_values,
        "horizon": horizon,
    }
    merge, check = Merge(horizon=1_000), StreamingLogCheck(**about)
    merge.add(made.operations)
    for moment in merge.release(2**63 - 1):
        (check.complete if moment.completes else check.invoke)(moment.operation)
        check = from_bytes(to_bytes(check), **about)
    assert check.verdict() == stream_trace(made, "t", 0, horizon=horizon)


def test_a_memory_that_was_tampered_with_is_refused() -> None:
    """Bytes that are no memory raise TraceError in one sentence, whatever they are; nothing in them is
    run."""
    about = {"topic": "t", "partition": 0, "claims": trace().claims, "unique": True, "horizon": 9}
    good = to_bytes(StreamingLogCheck(**about))
    for bad in (b"", b"\x80\x04K.", good[:-1], good.replace(bytes([VERSION]), b"\x07", 1), b"\x90"):
        with pytest.raises(TraceError, match="the memory of t-0: expected"):
            from_bytes(bad, **about)
        with pytest.raises(TraceError, match="the memory of trace 1 of s: expected"):
            remember(Shard(source="s", trace_id=1, part="", number=0, limits=LIMITS), bad)


def test_memory_is_bounded_by_the_horizon(tmp_path: Path) -> None:
    """After the horizon is full the memory of a log no longer grows, though operations that never end keep
    coming."""
    watch, sizes = Watch(tmp_path, ShardLimits(horizon=50, lateness_ns=0)), []
    for n in range(12):
        watch.batch([watch.write(trace(*busy(10**8 + 100 * n, 100)))])
        sizes.append(sum(map(len, watch.memory.values())))
    assert max(sizes[6:]) <= max(sizes[:6]) + 64 < 40_000, sizes
    assert watch.findings() == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS, most=st.integers(1, 3))
def test_operations_that_are_dropped_in_flight_convict_nobody(seed: int, most: int) -> None:
    """With room for few operations in flight a stream finds nothing that it would not find with room for all,
    and is Ok of nothing that it would convict without having lost something."""
    made = history(seed)
    merge = Merge(horizon=1_000)
    check = StreamingLogCheck(
        topic="t", partition=0, claims=made.claims, unique=made.unique_values, most_in_flight=most
    )
    merge.add(made.operations)
    for moment in merge.release(2**63 - 1):
        (check.complete if moment.completes else check.invoke)(moment.operation)
        assert len(check.in_flight) <= most
    few, all_ = check.verdict(), stream_trace(made, "t", 0)
    assert {f.anomaly for f in few.findings} <= {f.anomaly for f in all_.findings}
    if all_.findings and few.decision is Decision.OK:
        assert check.abandoned


@pytest.mark.parametrize(("transactions", "convicted"), [(0, True), (1, False), (5, False)])
def test_appends_of_transactions_that_were_dropped_in_flight_convict_nobody(
    transactions: int, convicted: bool
) -> None:
    """A failed append that is shown convicts, but not within a transaction; nor where more began than are
    remembered."""
    one = evolve(append(1, [], 0, None), function=Function.TXN, topic=None, partition=None, acks=None)
    begun = [evolve(one, op_id=90 + n, process=1 + n, invoke_time=n) for n in range(transactions)]
    failed = append(1, [7], 10, 20, outcome=Outcome.FAIL, process=max(1, transactions))
    made = trace(*begun, failed, read(2, 0, [(0, 7)], 30, 40, isolation="read_uncommitted"), concurrent=True)
    check = StreamingLogCheck(topic="t", partition=0, claims=made.claims, unique=True, most_in_flight=3)
    merge = Merge(horizon=1_000)
    merge.add(made.operations)
    for moment in merge.release(2**63 - 1):
        (check.complete if moment.completes else check.invoke)(moment.operation)
    assert ("failed_append_visible" in {finding.anomaly for finding in check.verdict().findings}) is convicted


def test_more_appends_of_a_key_than_are_kept_excuse_everything_of_it() -> None:
    """In a compacted topic a skip convicts while all appends of its key are known, and not once there were
    too many."""
    for lost in (0, 80):
        rows = [append(1, [1], 0, 5, 0, key="k"), append(2, [2], 10, 15, 1, key="other")]

        rows += [
            evolve(
                append(10 + n, [10 + n], 20, 21, key="k"), outcome=Outcome.FAIL if n < 70 else Outcome.UNKNOWN
            )
            for n in range(lost)
        ]

        late = [
            evolve(op, completion_time=60) if op.outcome is Outcome.FAIL else evolve(op, completion_time=None)
            for op in rows[2:]
        ]
        shown = read(3, 0, [(1, 2)], 70, 80)
        verdict = stream_trace(trace(*rows[:2], *late, shown, compacted=("t",)), "t", 0)
        assert verdict.decision is (Decision.OK if lost else Decision.ILLEGAL)


def test_transactions_that_never_end_are_remembered_up_to_the_horizon(tmp_path: Path) -> None:
    """Memory no longer grows; a log that is first heard of when some were forgotten is undecided, and one
    from before is judged on."""
    watch, sizes = Watch(tmp_path, ShardLimits(horizon=20, lateness_ns=0)), []
    watch.batch([watch.write(trace(append(1, [1], 0, 5, 0)))])
    one = evolve(append(1, [], 0, None), function=Function.TXN, topic=None, partition=None, acks=None)
    for n in range(12):
        begun = [
            evolve(one, op_id=number, process=number, invoke_time=1_000 * n + number)
            for number in range(100 + 10 * n, 110 + 10 * n)
        ]
        watch.batch([watch.write(evolve(trace(*begun), events=(low_watermark(1_000 * n + 500),)))])
        sizes.append(sum(map(len, watch.memory.values())))
    assert max(sizes[6:]) <= max(sizes[:6]) + 64, sizes
    later = append(5_000, [5], 20_000, 20_001, 0, topic="u")
    wrong = read(5_001, 0, [(0, 9)], 20_010, 20_020)
    watch.batch([watch.write(evolve(trace(later, wrong), events=(END,)))])
    reported = {row[2]: (row[4], row[-1]) for row in watch.reported["log"]}
    assert reported["u"] == ("unknown", "more than 20 transactions were open before its first operation")
    assert reported["t"][0] == "illegal" and "inconsistent_offsets" in [row[0] for row in watch.findings()]


def test_files_after_one_that_never_arrives_are_remembered_up_to_the_horizon(tmp_path: Path) -> None:
    """Numbered files that came before an earlier one cost bounded memory; then the trace is undecided, and
    the reason names the missing file."""
    watch, sizes = Watch(tmp_path, ShardLimits(horizon=10, lateness_ns=0)), []
    for n in range(2, 30):
        mark = low_watermark(100 * n + 50, files=n)
        watch.batch([watch.write(evolve(trace(append(n, [n], 100 * n, 100 * n + 5, n - 2)), events=(mark,)))])
        sizes.append(sum(map(len, watch.memory.values())))
    assert max(sizes[14:]) <= max(sizes[:14]) + 64, sizes
    watch.batch([watch.write(evolve(trace(append(99, [99], 9_000, 9_001, 28)), events=(END,)))])
    ((*_, decision, _, findings, reason),) = watch.reported["log"]
    assert (decision, findings) == ("unknown", 0)
    assert reason == "file 1 of trace 1 did not arrive, and more than 10 later ones did"


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("unique", [False, True])
def test_what_was_there_before_a_recording_is_never_too_late(
    tmp_path: Path, transactional: bool, unique: bool
) -> None:
    """Rule: a record that was in a log before its recording began has no time in it. It may become known when
    everything at its time has been judged; its log is judged on, and a record without a sender is found."""
    sent = append(3, [50], 100, 110, 5)
    before = evolve(
        append(5, [10], 50, 60, 4),
        outcome=Outcome.UNKNOWN,
        completion_time=None,
        offset=None,
        argument=BEFORE,
    )
    begun = Operation(
        op_id=4, process=before.process, function=Function.TXN, invoke_time=50, outcome=Outcome.UNKNOWN,
        argument=BEFORE,
    )  # fmt: skip
    shown = read(6, 4, [(4, 10), (5, 50)], 2_000, 2_010)
    made = evolve(trace(sent), unique_values=unique)
    for strange in (False, True):
        folder = tmp_path / str(strange)
        folder.mkdir()
        watch = Watch(folder)
        watch.batch([watch.write(evolve(made, events=(low_watermark(1_000, 1),)))])
        late = (*((begun,) if transactional else ()), *(() if strange else (before,)), shown)
        watch.batch([watch.write(evolve(made, operations=late, events=(evolve(END, offset=2),)))])
        assert [row[5] for row in watch.reported["finding"]] == ["phantom_record"] * strange
        (verdict,) = watch.reported["log"]
        assert ("illegal" if strange else "ok") in verdict, verdict
