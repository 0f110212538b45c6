"""What arrives whole, foreign or damaged, and what an application appends to: what a watch makes of it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from damaged_stores import IDS, as_before, healthy, rewrite

from fencepost.mining.mine import mine
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import ExitCode
from tests.checkers import lab
from tests.mining.watch.watch_by_hand import END, Watch, append, read, trace

FOREIGN = {
    "empty.jsonl": b"",
    "text.jsonl": b"hello\n",
    "deep.jsonl": b"[" * 100_000,
    "binary.jsonl": bytes(range(256)),
    "orphan.jsonl": b'{"type":"operation","op_id":1}\n',
    "other.parquet": b"PAR1",
    "traces/part-00000.parquet": b"PAR1 cut",
    "traces/part-000001.parquet": b"PAR1 cut",
    "traces/mine.parquet": b"",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_quarantined_with_its_reason(name: str, watch: Watch) -> None:
    """Whatever arrives, one sentence says what was expected and seen, and nothing is raised."""
    path = watch.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(FOREIGN[name])
    assert watch.sit().exit_code is ExitCode.USAGE
    (row,) = watch.rows("quarantine")
    assert Path(name).name in row["place"] and "expected" in row["reason"] and "\n" not in row["reason"]
    assert not watch.rows("findings") and watch.sit().quarantined == 0


def test_a_whole_trace_that_contradicts_itself_is_quarantined(tmp_path: Path) -> None:
    """As in mining: the trace is named with what is wrong and not judged, its neighbour is."""
    twice = trace(append(1, [1], 0, 10, 0), append(1, [2], 20, 30, 1), trace_id=1)
    sound = trace(append(1, [1], 0, 10, 0), trace_id=2)
    watch = Watch(tmp_path)
    watch.see(*(evolve(one, digest=digest_of(one)) for one in (twice, sound)))
    (row,) = watch.rows("quarantine")
    assert row["trace_id"] == 1 and "contradicts itself: operation 1 shares its op id" in row["reason"]
    assert set(watch.decided()) == {2}


@pytest.mark.parametrize("before", [False, True], ids=["with checksums", "as before"])
@pytest.mark.parametrize("what", ["null", "dropped", "doubled"])
def test_damaged_rows_of_a_part_are_quarantined_and_convict_nobody(
    make, what: str, before: bool, watch: Watch
) -> None:
    """A part with a null, a row too few or too many: its traces are named, the others judged."""
    store = healthy(watch.folder / "campaign", make)
    change = {
        "null": lambda rows: rows.set_column(
            1,
            rows.schema.field(1).with_nullable(True),
            pa.array([None, *rows[1].to_pylist()[1:]], pa.int64()),
        ),
        "dropped": lambda rows: rows.slice(1),
        "doubled": lambda rows: pa.concat_tables([rows.slice(0, 1), rows]),
    }[what]
    rewrite(store.parts()[0].operations, change, group=0, as_before=before)
    if before:
        as_before(store)
    watch.sit()
    named = {row["trace_id"] for row in watch.rows("quarantine") if row["trace_id"] >= 0}
    judged = set(watch.decided())
    assert {3, 4, 5, 6, 7} & judged and not named & judged and 0 not in judged
    assert judged | named == set(IDS) or any(
        "traces is judged" in row["reason"] for row in watch.rows("quarantine")
    )


@pytest.mark.spark
def test_a_part_is_judged_as_mine_judges_it(tmp_path: Path, make, spark, watch: Watch) -> None:
    """Rule: the same findings and verdicts, row by row."""
    lab.stored(
        watch.folder / "campaign",
        (
            make(number, kind)
            for number, kind in enumerate(("legal", "lost_write", "inconsistent_offsets", "too_weak"))
        ),
    )
    watch.sit()
    mine([watch.folder / "campaign"], tmp_path / "mined", spark=spark, triage=False)
    for table in ("findings", "verdicts"):
        mined = [
            row for path in (tmp_path / "mined" / table).iterdir() for row in pq.read_table(path).to_pylist()
        ]
        assert mined and sorted(map(repr, watch.rows(table))) == sorted(map(repr, mined))


def consumer(path: Path, *events: tuple[str, int], first: int = 0) -> None:
    """Lines that an application appends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for number, (name, offset) in enumerate(events, start=first):
            row = {"event": name, "process": path.stem, "n": number, "group": "g"}
            place = {} if name in ("started", "stopped") else {"topic": "t", "partition": 0, "offset": offset}
            file.write(json.dumps(row | place) + "\n")


def test_files_of_events_are_one_run_that_grows(watch: Watch) -> None:
    """Rule: what an application has done twice is reported while it runs; what it has not done, when each
    process has stopped, and that only once. A half line at the end is waited for."""
    path = watch.folder / "billing" / "a.events"
    had = ("started", 0), ("assigned", 0), ("received", 0), ("received", 1), ("received", 2), ("processed", 1)
    consumer(path, *had, ("committed", 2))
    with path.open("a") as file:
        file.write('{"event":"revok')
    assert (watch.sit().exit_code, watch.sit().files) == (ExitCode.NOTHING_FOUND, 0)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    consumer(path, ("revoked", 0), ("processed", 2), first=7)
    watch.sit()
    assert [row[2] for row in watch.found()] == ["processed_after_revoked"] and not watch.rows("verdicts")
    consumer(path, ("stopped", 0), first=9)
    watch.sit()
    assert [row[2] for row in watch.found()] == ["processed_after_revoked", "record_never_processed"]
    assert [row["decision"] for row in watch.rows("verdicts")] == ["illegal"]
    assert not watch.rows("quarantine") and watch.sit().findings == 0
    assert all(
        "billing/a.events:" in row["seen"] and str(path) in row["seen"] for row in watch.rows("findings")
    )


def test_a_line_that_is_no_event_is_said_once(watch: Watch) -> None:
    """Rule: it is quarantined with its place, and the file is judged on."""
    path = watch.folder / "a.events"
    consumer(path, ("started", 0))
    with path.open("a") as file:
        file.write("hello\n")
    assert watch.sit().quarantined == 1
    consumer(path, ("assigned", 0), first=1)
    assert watch.sit().quarantined == 0
    (row,) = watch.rows("quarantine")
    assert "a.events:2" in row["reason"]


def test_notes_journals_and_hidden_files_are_skipped(watch: Watch) -> None:
    """Rule: in the folder of a campaign JSON lines are its notes; names with a dot or an underscore are not
    input."""
    for name in ("c/journal/x", "c/traces/x", "d/.x", "_e/x", ".f/x"):
        (watch.folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name in ("c/notes.jsonl", "d/.half.jsonl", "_e/x.jsonl", ".f/x.jsonl"):
        (watch.folder / name).write_text("{no\n")
    assert watch.sit().files == 0
    watch.write(evolve(trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 1)], 20, 30)), events=(END,)))
    assert watch.sit().files == 1
