"""However a trace arrives, a watch reports what `check` finds in the whole, each once, and early what
stands."""

from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import subject_of
from fencepost.mining.watch import under_way
from fencepost.mining.watch.out import WatchOut
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Outcome
from fencepost.traces.parts import joined
from fencepost.traces.trace import Trace
from tests.checkers.wild_histories import wild
from tests.mining.watch.watch_by_hand import END, Watch, append, files_of, history, low_watermark, read, trace


def subjects(made: Trace) -> set[tuple]:
    """What the judges find in the whole."""
    return {
        subject_of(one.check, one.anomaly, one.topic, one.partition)
        for verdict in judge(made)
        for one in verdict.findings
    }


def reported(watch: Watch) -> list[tuple]:
    """What a watch has reported, in order."""
    return [
        subject_of(row["check"], row["anomaly"], row["topic"], row["partition"])
        for row in watch.rows("findings")
    ]


@pytest.mark.parametrize("seed", range(40))
def test_any_split_into_files_and_sittings_gives_what_check_finds(tmp_path: Path, seed: int) -> None:
    """Rule: what is found early is found in the whole, unless the history contradicts itself; at the end all
    of it is reported, with the verdicts of each check."""
    draw = Random(seed)
    made = wild(seed) if seed % 4 == 0 else history(seed)
    made = evolve(made, trace_id=seed, digest="")
    latest = max(op.completion_time or op.invoke_time for op in made.operations)
    cuts = [draw.randint(0, latest) for _ in range(draw.randint(0, 4))]
    watch = Watch(tmp_path)
    parts = files_of(made, cuts, in_pairs=bool(seed % 3))
    whole = joined(parts)
    assert whole is not None
    verdicts = judge(whole)
    for part in parts:
        watch.write(part)
        if draw.random() < 0.7:
            watch.sit()
    watch.sit()
    early = set(reported(watch)) - subjects(whole)
    assert not early or any(one.reason for one in verdicts if one.check in {found[0] for found in early})
    assert set(reported(watch)) >= subjects(whole)
    rows = {row["check"]: (row["decision"], row["anomaly"]) for row in watch.rows("verdicts")}
    assert early or rows == {one.check: (one.decision.value, one.anomaly) for one in verdicts}
    assert not watch.rows("quarantine")
    assert watch.sit().exit_code is ExitCode.NOTHING_FOUND


def test_findings_are_reported_before_the_trace_ends(watch: Watch) -> None:
    """Rule: what is certain is reported as soon as time has come so far, and not again; what a later row may
    excuse waits for the end."""
    wrong = trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30))
    watch.write(evolve(wrong, events=(low_watermark(31),)))
    assert watch.sit().exit_code is ExitCode.FINDINGS
    assert [row[2] for row in watch.found()] == ["inconsistent_offsets"] and not watch.rows("verdicts")
    watch.write(evolve(wrong, operations=(), events=(END,)))
    assert watch.sit().findings == 1
    assert [row[2] for row in watch.found()] == ["inconsistent_offsets", "phantom_record"]
    assert watch.decided()[1][0] == "illegal"


def test_nothing_is_certain_before_its_low_watermark(watch: Watch) -> None:
    """Rule: rows after the watermark are not judged, nor the answers that came after it."""
    wrong = trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30))
    watch.write(evolve(wrong, events=(low_watermark(30),)))
    assert watch.sit().findings == 0
    watch.write(evolve(wrong, operations=(), events=(low_watermark(31),)))
    assert watch.sit().findings == 0, "the same rows are not judged again"
    watch.write(evolve(wrong, operations=(append(3, [3], 40, 50, 1),), events=(low_watermark(60),)))
    assert watch.sit().findings == 1


def test_a_numbered_mark_waits_for_the_files_before_it(watch: Watch) -> None:
    """Rule: a later file may be listed first; its mark and the end hold when all before it have come. Until
    then the trace is said to lack one."""
    parts = files_of(
        trace(append(1, [1], 5, 8, 0), read(2, 0, [], 30, 31, end=0), check="strong"), [20], in_pairs=False
    )
    watch.write(parts[1])
    early = watch.sit()
    assert (early.findings, early.incomplete, early.exit_code) == (0, 1, ExitCode.UNDECIDED)
    watch.write(parts[0])
    assert watch.sit().findings == 1
    assert [row[1:3] for row in watch.found()] == [("log", "lost_write")]


def test_without_low_watermarks_rows_may_come_as_late_as_the_limit_says(tmp_path: Path) -> None:
    """Rule: judged is what is older than the latest time less the lateness; what came later than that and
    excuses what was reported is named in the verdict."""
    for lateness_s, early in ((500e-9, []), (50e-9, ["unordered_read"])):
        watch = Watch(tmp_path / str(lateness_s), lateness_s=lateness_s)
        watch.write(
            trace(
                append(1, [1], 0, 10, 0), read(2, 0, [(1, 2), (0, 1)], 400, 410), append(4, [4], 600, 610, 2)
            )
        )
        watch.sit()
        assert [row[2] for row in watch.found() if row[1] == "log"] == early
        watch.write(trace(append(3, [2], 390, 395, 1)))
        watch.see(evolve(trace(), events=(END,)))
        assert "unordered_read" in [row[2] for row in watch.found()]


def test_what_was_reported_and_is_not_in_the_whole_is_named(tmp_path: Path) -> None:
    """Rule: rows that came later than announced may excuse a finding; it stays, and the verdict says so."""
    watch = Watch(tmp_path, lateness_s=50e-9)
    watch.see(trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 400, 410), append(4, [4], 600, 610, 2)))
    assert [row[2] for row in watch.found()] == ["inconsistent_offsets"]
    watch.see(evolve(trace(evolve(append(1, [7], 0, 10, 0), outcome=Outcome.OK)), events=(END,)))
    decision, reason = watch.decided()[1]
    assert decision != "ok" and "not found in the whole: inconsistent_offsets" in reason


def test_an_ended_trace_takes_nothing_in(watch: Watch) -> None:
    """Rule: what comes after the end of a trace is quarantined, not judged as a new trace."""
    watch.see(evolve(trace(append(1, [1], 0, 10, 0)), events=(END,)))
    watch.see(trace(read(2, 0, [(0, 9)], 20, 30)))
    (row,) = watch.rows("quarantine")
    assert "expected no more of trace 1" in row["reason"] and watch.found() == []


@pytest.mark.parametrize("lost", ["torn", "gone"])
def test_a_missing_part_makes_its_trace_undecided(lost: str, watch: Watch) -> None:
    """Rule: what a part held that cannot be read convicts nobody; other traces of the folder go on."""
    watch.write(trace(append(1, [1], 0, 10, 0)), trace(append(1, [1], 0, 10, 0), trace_id=2))
    second = watch.write(trace(append(2, [2], 20, 30, 1)))
    if lost == "torn":
        second.write_bytes(second.read_bytes()[:-20])
    watch.sit()
    if lost == "gone":
        second.unlink()
    ends = [trace(read(3, 0, [(0, 1), (1, 2)], 40, 50), trace_id=n) for n in (1, 2)]
    watch.see(*(evolve(end, events=(END,)) for end in ends))
    decided = watch.decided()
    assert {number: decision for number, (decision, _) in decided.items()} == {1: "unknown", 2: "illegal"}
    assert "001.jsonl" in decided[1][1]


def test_a_trace_that_contradicts_itself_convicts_nobody(watch: Watch) -> None:
    """Rule: an answer without a time is no answer, and the verdicts say so."""
    watch.see(evolve(trace(evolve(append(1, [1], 0, 10, 0), completion_time=None)), events=(END,)))
    decision, reason = watch.decided()[1]
    assert decision == "assumption_broken" and "contradicts itself" in reason


def test_a_trace_under_way_that_is_too_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: it is not judged, and the verdict says what judges it."""
    monkeypatch.setattr(under_way, "ROWS_MAX", 2)
    watch = Watch(tmp_path)
    watch.write(trace(*(append(n, [n], 10 * n, 10 * n + 5, n) for n in range(3))))
    assert watch.sit().incomplete == 1
    watch.see(evolve(trace(), events=(END,)))
    decision, reason = watch.decided()[1]
    assert decision == "unknown" and "fencepost mine convert" in reason


def test_a_topic_that_was_deleted_waits_for_the_end(tmp_path: Path) -> None:
    """Rule: what follows a deletion may be of another topic of the name; in the whole it is known."""
    wrong = trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 700, 710))
    gone = [
        Event(time=time, name=Name.TOPIC_DELETION, topic="t", cause=cause)
        for time, cause in ((500, "requested"), (510, "done"))
    ]
    watch = Watch(tmp_path)
    watch.write(evolve(wrong, events=(*gone, low_watermark(800))))
    assert watch.sit().findings == 0
    watch.see(evolve(trace(), events=(END,)))
    assert {row[2] for row in watch.found()} == {
        one[1] for one in subjects(evolve(wrong, events=tuple(gone)))
    }


def test_a_mistake_of_ours_costs_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a judge that fails on one trace does not end the watch, and the verdict says that it is our
    mistake."""
    from fencepost.mining.watch import judging

    real = judging.judge

    def failing(made: Trace, names: tuple[str, ...]):
        assert made.trace_id != 2, "planted"
        return real(made, names)

    monkeypatch.setattr(judging, "judge", failing)
    watch = Watch(tmp_path)
    rows = append(1, [1], 0, 10, 0), read(2, 0, [(0, 1)], 20, 30)
    watch.see(*(evolve(trace(*rows, trace_id=number), events=(END,)) for number in (1, 2)))
    decided = watch.decided()
    assert (decided[1][0], decided[2][0]) == ("ok", "assumption_broken")
    assert "a mistake in fencepost" in decided[2][1] and "planted" in decided[2][1]


def test_a_growing_trace_is_not_judged_for_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: it is judged when it has grown by a share, after a quiet while, and in the last round."""
    monkeypatch.setattr(under_way, "FEW_ROWS", 10)
    one = under_way.UnderWay(source="in", trace_id=1)
    one.take(under_way.PartNews("in", 1, "a", rows=1_000), now_s=0.0)
    assert one.is_due(0.0, last=False)
    one.note(under_way.SoFar("in", 1, 1_000, ()))
    assert not one.is_due(100.0, last=True), "nothing new"
    one.take(under_way.PartNews("in", 1, "b", rows=200), now_s=100.0)
    assert not one.is_due(100.5, last=False)
    assert one.is_due(100.5, last=True) and one.is_due(103.0, last=False)
    one.take(under_way.PartNews("in", 1, "c", rows=300), now_s=101.0)
    assert one.is_due(101.0, last=False)


def test_a_round_that_was_not_finished_runs_again(watch: Watch) -> None:
    """Rule: killed behind the writing of the tables, and before the round is done, the next watch has every
    finding once."""
    watch.write(evolve(trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30)), events=(END,)))

    def killed(*_: object) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        watch.sit(tell=killed)
    written = watch.found()
    assert written and not list((watch.out / "rounds").glob("*"))
    again = watch.sit()
    assert watch.found() == written and again.findings_in_all == len(written)


def test_what_is_remembered_is_plain_and_checked(watch: Watch) -> None:
    """Rule: a file of a round that is none is refused in one sentence."""
    watch.see(trace(append(1, [1], 0, 10, 0)))
    (path,) = (watch.out / "rounds").iterdir()
    for bad in (b"", b"\x80\x04K.", b'[[["a"]]]', path.read_bytes()[:-1]):
        path.write_bytes(bad)
        with pytest.raises(FencepostError, match="expected what a watch remembers of a round"):
            WatchOut(path=watch.out).begin()


def test_a_folder_by_another_name_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    """Rule: a watch that goes on where the folder is called otherwise takes no file again."""
    parts = files_of(trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30)), [15], in_pairs=False)
    watch.see(parts[0])
    monkeypatch.chdir(tmp_path)
    watch.folder = Path("in")
    watch.write(parts[1])
    assert (watch.sit().files, watch.sit().files) == (1, 0)
    assert {row["source"] for row in watch.rows("findings")} == {"in"} and watch.decided()[1][0] == "illegal"
