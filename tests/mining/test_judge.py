"""What a task does, called as a function without Spark: splits, judging, quarantine."""

import gc
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest
from log_histories import append, read
from log_histories import trace as history
from mining_results import findings_in, judge_here, plain, verdicts_in

from fencepost.checkers import judges
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.mining.inputs.splits import Split, work_of
from fencepost.mining.mine import _tasks as tasks_of
from fencepost.mining.results.proofs import proven
from fencepost.mining.results.result_rows import SCHEMAS, bugs_of
from fencepost.mining.spark_judge import without_collector
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.sealing import Sizes, seal
from fencepost.traces.store import TraceStore
from tests.checkers import lab


def test_the_traces_have_the_verdicts_they_were_made_for(mixed) -> None:
    """Each planted fault is found by the plain checker, and nothing is found in the legal traces."""
    expected = {
        "legal": (Decision.OK, None),
        "no_events": (Decision.OK, None),
        "too_weak": (Decision.ASSUMPTION_BROKEN, None),
        "two_leaders": (Decision.ILLEGAL, "two_leaders_one_epoch"),
        "lost_write": (Decision.ILLEGAL, "lost_write"),
        "inconsistent_offsets": (Decision.ILLEGAL, "inconsistent_offsets"),
        "phantom_record": (Decision.ILLEGAL, "inconsistent_offsets"),
    }
    for trace in mixed:
        verdict = combine(judge(trace))
        assert (verdict.decision, verdict.anomaly) == expected[trace.profile], trace.profile


def test_a_task_agrees_with_the_plain_checker(campaign: Path, mixed, tmp_path: Path) -> None:
    """Read from row groups and journals and judged by columns, each trace has the plain checker's verdicts
    and certificates."""
    result = judge_here(campaign, tmp_path)
    assert (verdicts_in(tmp_path), findings_in(tmp_path)) == plain(mixed)
    assert sum(result.counts.traces.values()) == len(mixed)
    assert result.counts.operations == sum(len(trace.operations) for trace in mixed)


def test_splits_are_row_groups_and_journals_each_run_once(campaign: Path, mixed) -> None:
    """The splits cover every run once: row groups of parts, and frames of journals that are not sealed."""
    work = work_of([campaign])
    assert work.unreadable == ()
    assert sum(split.group is not None for split in work.splits) > 2
    in_journals = [frame.trace_id for split in work.splits for frame in split.frames]
    assert sorted(in_journals) == [trace.trace_id for trace in mixed[20:]]


def test_a_run_in_a_part_and_in_a_journal_is_judged_once(tmp_path: Path, mixed) -> None:
    """Killed between writing a part and removing the journal, a campaign is still mined without doubles."""
    store = lab.stored(tmp_path / "in", mixed, sealed=False)
    (journal,) = store.journals()
    data = journal.read_bytes()
    seal(store)
    journal.write_bytes(data)
    judge_here(tmp_path / "in", tmp_path / "out")
    assert verdicts_in(tmp_path / "out") == plain(mixed)[0]


@pytest.mark.parametrize("table", ["traces", "operations", "events"])
def test_a_truncated_part_costs_only_itself(tmp_path: Path, mixed, table: str) -> None:
    """A truncated file is quarantined with its reason; the other parts are judged."""
    store = TraceStore.create(tmp_path / "in")
    for some in (mixed[:10], mixed[10:]):
        lab.stored(store, some)
    broken = store.parts()[0].of(table)
    broken.write_bytes(broken.read_bytes()[:-30])
    (unreadable,) = work_of([tmp_path / "in"]).unreadable
    assert "expected a whole Parquet file" in unreadable.reason
    assert broken.name in unreadable.reason
    judge_here(tmp_path / "in", tmp_path / "out")
    assert verdicts_in(tmp_path / "out") == plain(mixed[10:])[0]


def test_a_rotten_page_costs_its_row_group(tmp_path: Path, mixed) -> None:
    """Bytes that rot inside a file whose footer is whole are found when the row group is read, and
    quarantined."""
    store = lab.stored(tmp_path / "in", mixed, sizes=Sizes(group_operations=60))
    path = store.parts()[0].operations
    group = pq.read_metadata(path).row_group(0)
    data = bytearray(path.read_bytes())
    start = group.column(1).dictionary_page_offset or group.column(1).data_page_offset
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)
    result = judge_here(tmp_path / "in", tmp_path / "out")
    (quarantined,) = result.counts.quarantined
    assert "row group 0" in quarantined.place
    lost = (
        pq.ParquetFile(store.parts()[0].traces)
        .read_row_group(0, columns=["trace_id"])["trace_id"]
        .to_pylist()
    )
    assert verdicts_in(tmp_path / "out") == plain([trace for trace in mixed if trace.trace_id not in lost])[0]


def test_one_strange_trace_costs_only_itself(tmp_path: Path, mixed) -> None:
    """An outcome that this version does not know quarantines its trace; the others of the row group are
    judged as ever."""
    store = lab.stored(tmp_path / "in", mixed)
    path = store.parts()[0].operations
    table = pq.read_table(path)
    names = table["outcome"].to_pylist()
    position = table["trace_id"].to_pylist().index(3)
    names[position] = "teleport"
    index = table.schema.get_field_index("outcome")
    pq.write_table(table.set_column(index, table.schema.field(index), [names]), path)
    result = judge_here(tmp_path / "in", tmp_path / "out")
    (quarantined,) = result.counts.quarantined
    assert (quarantined.trace_id, "teleport" in quarantined.reason) == (3, True)
    assert verdicts_in(tmp_path / "out") == plain([trace for trace in mixed if trace.trace_id != 3])[0]


def test_damaged_journals_are_told(tmp_path: Path, mixed) -> None:
    """A journal frame whose checksum fails is quarantined with its place, a foreign file with the extension
    too."""
    from fencepost.traces.journal import scan

    store = lab.stored(tmp_path / "in", mixed[:5], sealed=False)
    (journal,) = store.journals()
    data = bytearray(journal.read_bytes())
    data[scan(journal).frames[2].offset + 3] ^= 4
    journal.write_bytes(data)
    (tmp_path / "in" / "journal" / "notes.journal").write_text("a shopping list, not a journal")
    reasons = sorted(found.reason for found in work_of([tmp_path / "in"]).unreadable)
    assert ["journal of version 1" in reasons[0], "checksum fails" in reasons[1]] == [True, True]
    judge_here(tmp_path / "in", tmp_path / "out")
    assert verdicts_in(tmp_path / "out") == plain(mixed[:2] + mixed[3:5])[0]


def test_a_judge_that_is_lied_to_answers_with_a_verdict(make, monkeypatch) -> None:
    """A trace that a judge refuses is Assumption broken, never an exception."""

    def refuses(trace):
        raise TraceError(expected="sense", seen="none", where="the trace")

    check = attrs.evolve(judges.CHECKS["invariants"], judge=refuses)
    monkeypatch.setitem(judges.CHECKS, "invariants", check)
    (verdict,) = judge(make(0, "legal"), ("invariants",))
    assert (verdict.decision, verdict.reason) == (
        Decision.ASSUMPTION_BROKEN,
        "the trace: expected sense, saw none",
    )


def test_a_profile_overrides_the_claims(tmp_path: Path, make) -> None:
    """A profile given to mining replaces the one of each trace's claims, in the columns as for one trace."""
    store = TraceStore.create(tmp_path / "in")
    trace = make(0, "lost_write")
    lab.stored(store, [trace], sealed=False)
    judge_here(tmp_path / "in", tmp_path / "content", checks=("log",), profile="content")
    judge_here(tmp_path / "in", tmp_path / "own", checks=("log",))
    decisions = [verdicts_in(tmp_path / name)[0, "log"][0] for name in ("content", "own")]
    (content,) = judge(attrs.evolve(trace, claims=attrs.evolve(trace.claims, check="content")), ("log",))
    assert decisions == [content.decision.value, "illegal"]


def test_the_sample_is_the_smallest_with_its_proof(campaign: Path, mixed, tmp_path: Path) -> None:
    """Of each anomaly the smallest trace is kept, with its certificate in words."""
    counts = judge_here(campaign, tmp_path).counts
    sample = proven(counts.samples, work_of([campaign]).splits)["lost_write"]
    smallest = min(len(trace.operations) for trace in mixed if trace.profile == "lost_write")
    assert sample.operations == smallest
    assert len(sample.proof) == len(sample.finding.operations) + len(sample.finding.events)
    assert sample.proof[0].startswith(f"op {sample.finding.operations[0]}")


def test_result_files_have_their_schemas(campaign: Path, mixed, tmp_path: Path) -> None:
    """Findings carry trace id, digest and certificate under the documented schema. A task writes the rows of
    all its splits together."""
    judge_here(campaign, tmp_path)
    for result in ("findings", "verdicts"):
        (path,) = (tmp_path / result).glob("part-*-here.parquet")
        file = pq.ParquetFile(path)
        assert file.schema_arrow.equals(SCHEMAS[result])
        assert file.num_row_groups == 1
    digests = {trace.trace_id: digest_of(trace) for trace in mixed}
    for row in pq.read_table(tmp_path / "findings").to_pylist():
        assert row["digest"] == digests[row["trace_id"]]
        assert row["operations"] or row["events"]


@pytest.mark.parametrize(
    ("splits", "megabytes", "tasks"),
    [(5, 100, 5), (100, 1, 16), (1_000, 1, 32), (1_000, 64, 1_000), (20_000, 64, 10_000)],
)
def test_small_row_groups_share_tasks(splits: int, megabytes: int, tasks: int) -> None:
    """Rule: a task takes row groups until it is worth beginning; few row groups have one each, and every one
    is in one task."""
    made = tuple(
        Split(source="s", place=f"{number:05}", size_bytes=megabytes << 20) for number in range(splits)
    )
    found = tasks_of(made)
    assert len(found) == tasks
    assert sorted(split.place for task in found for split in task) == [split.place for split in made]


@pytest.mark.parametrize(
    ("plan", "bugs"),
    [
        ('{"seed":1,"cluster":{"brokers":3,"groups":{"unload_ms":0},"bugs":[]},"network":{}}', ()),
        ('{"seed":1,"cluster":{"brokers":3,"groups":{"bugs":[]},"bugs":["b1","b2"]}}', ("b1", "b2")),
        ('{"network":{"bugs":[]},"cluster":{"brokers":3,"bugs":["b1"]}}', ("b1",)),
        ('{"seed": 1, "cluster": {"bugs": ["b1"]}}', ("b1",)),
        ('{"seed":1,"name":"\\"cluster\\":{\\"bugs\\":[]","cluster":{"bugs":["b1"]}}', ("b1",)),
        ('{"seed":1}', ()),
        ("no plan", ()),
        ("", ()),
    ],
)
def test_the_bugs_of_a_plan_are_told_without_decoding_most_plans(plan: str, bugs: tuple[str, ...]) -> None:
    """Rule: the short look at a plan never hides a planted bug."""
    assert bugs_of(plan) == bugs


def test_bad_inputs_are_refused(tmp_path: Path, campaign: Path) -> None:
    """No input, one that is no folder of traces, the same twice, and an unknown check are the caller's
    mistakes."""
    with pytest.raises(FencepostError, match="expected a folder of traces"):
        work_of([])
    with pytest.raises(FencepostError, match="expected a folder of traces"):
        work_of([tmp_path])
    with pytest.raises(FencepostError, match="each folder of traces once"):
        work_of([campaign, campaign / ".." / campaign.name])
    with pytest.raises(
        FencepostError,
        match="expected checks out of log, kafka, transactions, groups, exactly_once, invariants, "
        "conformance, liveness, application, "
        "saw 'lgo'",
    ):
        judge_here(campaign, tmp_path, checks=("lgo",))


def test_the_collector_waits_while_a_split_is_judged() -> None:
    """Rule: it runs again afterwards, also after an error, unless it was off before."""
    assert gc.isenabled()
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), without_collector():
        raise ValueError("broken")
    assert gc.isenabled()


def test_operations_are_cut_where_events_say_that_a_topic_was_deleted(tmp_path: Path) -> None:
    """Events are read where a topic was deleted, although the log check does not ask for them."""
    operations = (
        *(append(1, [1], 0, 10, 0), read(2, 0, [(0, 1)], 20, 30)),
        *(append(3, [3], 900, 910, 0), read(4, 0, [(0, 3)], 950, 960)),
    )
    gone = tuple(
        Event(time=time, name=Name.TOPIC_DELETION, topic="t", cause=cause)
        for time, cause in ((500, "requested"), (510, "done"))
    )
    for events, wanted in ((gone, "ok"), ((), "illegal")):
        path = tmp_path / wanted
        lab.stored(path, [attrs.evolve(history(*operations), events=events)])
        judge_here(path, tmp_path / f"{wanted} out", checks=("log",))
        assert verdicts_in(tmp_path / f"{wanted} out")[1, "log"][0] == wanted
