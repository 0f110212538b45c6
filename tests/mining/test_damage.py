"""Damaged and missing rows of stored traces: no healthy trace gets another verdict, and none passes in
silence. SEEDS=n in the environment draws more."""

import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damaged_stores import IDS, as_before, checked, healthy, mined, rewrite

from fencepost.checkers.verdict import Decision
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.spark_judge import all_accounted
from fencepost.traces.errors import TraceError
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from tests.checkers import lab
from tests.selfcheck.amounts import amount

SEEDS = range(int(os.environ.get("SEEDS", "1")))
FLIPS = amount(4, 12)
"""Bits flipped in each file."""
BOTH = pytest.mark.parametrize("judged", [checked, mined], ids=["check", "mine"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, make) -> Path:
    """Healthy traces, as they were stored."""
    return healthy(tmp_path_factory.mktemp("whole") / "in", make).path


@pytest.fixture
def store(tmp_path: Path, whole: Path) -> TraceStore:
    """A folder of them to be damaged."""
    return TraceStore.open(shutil.copytree(whole, tmp_path / "in"))


def wrong(answer: tuple[dict[int, list[Decision]], list[str]]) -> list[str]:
    """What must not be said of a damaged folder of healthy traces."""
    verdicts, reasons = answer
    found = [f"{one} {what}" for one, what in verdicts.items() if what != [Decision.OK] or one not in IDS]
    if set(verdicts) != set(IDS) and not reasons:
        found.append(f"only {sorted(verdicts)}, in silence")
    return found


@pytest.mark.parametrize("before", [False, True], ids=["with checksums", "as before"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("table", TABLES)
@BOTH
def test_no_flipped_bit_gives_another_verdict(
    store: TraceStore, tmp_path: Path, judged, table, seed: int, before: bool
) -> None:
    """Rule: one bit at any place of a file never convicts a healthy trace, or hides one in silence. Footers
    of before have no checksum, and some end the process that decodes them: only pages are tried there."""
    if before:
        as_before(store)
    path = store.parts()[0].of(table)
    good, draw = path.read_bytes(), random.Random(f"{seed} {table} {before}")
    anywhere = range(len(good) - int.from_bytes(good[-8:-4], "little") - 8 if before else len(good))
    places = [anywhere, *_values_in(path, table)]
    for number in range(FLIPS):
        byte = draw.choice(draw.choice(places))
        bit = byte * 8 + draw.randrange(8)
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        assert wrong(judged(store.path, tmp_path / str(number))) == [], f"bit {bit}"


def _values_in(path: Path, table) -> list[range]:
    """Where a file has numbers that do not compress, so that most wrong bits decode in silence."""
    if table != "operations":
        return []
    names = ("records.list.element.value", "invoke_time")
    with pq.ParquetFile(path) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(at) for at in range(group.num_columns)]
    return [
        range(start, one.data_page_offset)
        for one in columns
        if one.path_in_schema in names and (start := one.dictionary_page_offset) is not None
    ]


@pytest.mark.parametrize("before", [False, True], ids=["with row counts", "as before"])
@pytest.mark.parametrize("table", ["operations", "events"])
def test_a_folder_with_half_of_its_rows_gone_is_not_ok(
    store: TraceStore, tmp_path: Path, table, before: bool
) -> None:
    """`check` finds it by the digests, `mine` by the numbers of rows that the part was written with, or in a
    part of before, which says none, by the digests; each names the traces that lack rows and judges the
    others."""
    rewrite(
        store.parts()[0].of(table), lambda rows: rows.slice(rows.num_rows // 2), group=1, as_before=before
    )
    if before:
        as_before(store)
    whole = {trace for group in (0, 2) for trace in _ids(store, group)}
    for judged in (checked, mined):
        verdicts, reasons = judged(store.path, tmp_path / judged.__name__)
        named = {one for one in IDS if any(f"trace {one}:" in reason for reason in reasons)}
        assert whole <= set(verdicts) and named and named | set(verdicts) == set(IDS)
        assert not named & set(verdicts), reasons
        assert wrong((verdicts, reasons)) == []


def _ids(store: TraceStore, group: int) -> list[int]:
    (found,) = (split.group for split in work_of([store.path]).splits if split.group.index == group)
    return list(range(found.first_trace, found.last_trace + 1))


def test_a_row_group_that_is_gone_from_all_three_files_is_noticed(store: TraceStore, tmp_path: Path) -> None:
    """The part says how many row groups it was written with."""
    for table in TABLES:
        rewrite(store.parts()[0].of(table), lambda rows: rows)
        path = store.parts()[0].of(table)
        _drop_last_group(path)
    for judged in (checked, mined):
        verdicts, reasons = judged(store.path, tmp_path / judged.__name__)
        assert verdicts == {} and "row groups that were written" in reasons[0]


def _drop_last_group(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(index) for index in range(file.num_row_groups - 1)]
        metadata = {key: value for key, value in file.metadata.metadata.items() if key != b"ARROW:schema"}
    schema = groups[0].schema.with_metadata(metadata)
    with pq.ParquetWriter(path, schema) as writer:
        for rows in groups:
            writer.write_table(rows.replace_schema_metadata(metadata), row_group_size=max(1, rows.num_rows))


def test_a_stored_run_that_was_damaged_is_not_read(store: TraceStore) -> None:
    """`show` and `replay` read one run: it is refused where its rows are not those that were stored."""
    rewrite(store.parts()[0].operations, lambda rows: rows.slice(1), group=0)
    store.refresh()
    with pytest.raises(TraceError, match="expected rows with the digest"):
        store.read(0)
    assert store.read(7).trace_id == 7
    with pytest.raises(TraceError, match="digest"):
        list(store)


def nulled(name: str, row: int):
    """A change: no value in this column of this row."""

    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(name)
        kept = rows[name].to_pylist()
        kept[row % len(kept)] = None
        column = pa.array(kept, rows.schema.field(at).type)
        return rows.set_column(at, rows.schema.field(at).with_nullable(True), column)

    return change


def dropped(row: int):
    """A change: one row less."""
    return lambda rows: pa.concat_tables(
        [rows.slice(0, row % rows.num_rows), rows.slice(row % rows.num_rows + 1)]
    )


def doubled(row: int):
    """A change: one row twice."""
    return lambda rows: pa.concat_tables(
        [rows.slice(0, row % rows.num_rows + 1), rows.slice(row % rows.num_rows)]
    )


CHANGES = [
    *((table, f"null {name}", name) for table in TABLES for name in SCHEMAS[table].names),
    *((table, what, what) for table in TABLES for what in ("dropped", "doubled")),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("table", "name"), [(table, name) for table, _, name in CHANGES])
def test_what_is_null_missing_or_double_is_quarantined_by_name(
    store: TraceStore, tmp_path: Path, table, name: str, seed: int
) -> None:
    """Rule: `check` and `mine` leave out the same, each trace has a verdict or a reason, and the others keep
    theirs; whether the part says how many rows it was written with or not."""
    draw = random.Random(f"{seed} {table} {name}")
    before = draw.random() < 0.5
    row, group = draw.randrange(1000), draw.randrange(2)
    change = {"dropped": dropped, "doubled": doubled}.get(name, lambda at: nulled(name, at))(row)
    required = name in ("dropped", "doubled") or not SCHEMAS[table].field(name).nullable
    path = store.parts()[0].of(table)
    stored = pq.read_table(path)
    rewrite(path, change, group=group, as_before=before)
    same = pq.read_table(path).equals(stored)  # there was a null before
    for judged in (checked, mined):
        verdicts, reasons = judged(store.path, tmp_path / judged.__name__)
        assert wrong((verdicts, reasons)) == [], reasons
        named = {one for one in IDS if any(f"trace {one}:" in reason for reason in reasons)}
        assert named | set(verdicts) == set(IDS) or any("traces is judged" in why for why in reasons), reasons
        lost_unseen = before and judged is mined and name in ("dropped", "doubled")
        assert reasons or same or lost_unseen or (judged is mined and not required)
        assert len(verdicts) >= 3, (verdicts, reasons)  # the other row groups, and most of this one


def test_a_trace_that_nothing_was_said_of_is_named(store: TraceStore) -> None:
    """Rule: traces in are verdicts and quarantined ones; a trace that a mistake of ours loses is named."""
    split = next(split for split in work_of([store.path]).splits)
    ids = _ids(store, split.group.index)
    told = list(all_accounted(split, []))
    assert [one.trace_id for one in told] == ids
    assert all("expected a verdict or a reason, saw neither" in one.reason for one in told)


def test_a_part_without_its_traces_is_named(make, tmp_path: Path) -> None:
    """Rule: operations of which the file of runs has gone are not passed over; while a journal is left they
    are of a seal that did not end, and nothing is lost."""
    store = lab.stored(tmp_path / "in", [make(1, "legal")], sealed=False)
    journal = next(iter(store.journals()))
    content = journal.read_bytes()
    seal(store)
    (part,) = store.parts()
    part.traces.unlink()
    (piece,) = work_of([store.path]).unreadable
    assert piece.place == str(part.operations) and "expected its file in traces/, saw none" in piece.reason
    journal.parent.mkdir(exist_ok=True)
    journal.write_bytes(content)
    found = work_of([store.path])
    assert not found.unreadable and len(found.splits) == 1
