"""Sealing loses no run and doubles none, whenever it is killed."""

import shutil
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.parquet.row_groups import groups_of
from fencepost.traces.schema import TABLES
from fencepost.traces.sealing import SealingFiles, Sizes, seal
from fencepost.traces.store import TraceStore, trace_ids_of
from tests.checkers import lab

TINY = Sizes(part_bytes=20_000, group_operations=12, group_events=100)
ONE_GROUP = Sizes(part_bytes=1, group_operations=12, group_events=100)


class Killed(BaseException):
    """The process dies here."""


class KilledAt(SealingFiles):
    """File operations that die at the nth call, before doing it, or after having done half of it."""

    def __init__(self, last: int, *, half: bool) -> None:
        self.last, self.half, self.calls = last, half, 0

    def _step(self, name: str, *arguments: Any) -> Any:
        self.calls += 1
        act = getattr(super(), name)
        if self.calls > self.last:
            if self.half and name in ("rename", "remove", "create"):
                act(*arguments)
            raise Killed
        return act(*arguments)

    def create(self, path: Path) -> Any:
        return self._step("create", path)

    def sync(self, file: Any) -> None:
        self._step("sync", file)

    def rename(self, source: Path, target: Path) -> None:
        self._step("rename", source, target)

    def remove(self, path: Path) -> None:
        self._step("remove", path)

    def sync_folder(self, path: Path) -> None:
        self._step("sync_folder", path)


def fill(path: Path, make_trace, numbers: range) -> TraceStore:
    """A store whose two workers finished `numbers` between them."""
    store = TraceStore.create(path)
    with store.writer(0) as even, store.writer(1) as odd:
        for number in numbers:
            (odd if number % 2 else even).append(make_trace(number, appends=number % 5))
    return store


def contents(path: Path) -> dict[int, str]:
    """Digest by trace id of every run that is found, each once."""
    traces = list(TraceStore.open(path))
    assert len({trace.trace_id for trace in traces}) == len(traces)
    assert all(trace.digest == digest_of(trace) for trace in traces)
    return {trace.trace_id: trace.digest for trace in traces}


@pytest.mark.parametrize("half", [False, True])
def test_killed_at_every_file_operation(tmp_path: Path, make_trace, half: bool) -> None:
    """Killed before or just after any file operation, the store has every run once, and the next sealing ends
    it."""
    fill(tmp_path / "start", make_trace, range(6))
    seal(TraceStore(tmp_path / "start"), sizes=ONE_GROUP)
    fill(tmp_path / "start", make_trace, range(6, 16))
    expected = contents(tmp_path / "start")
    assert len(expected) == 16
    for last in range(100):
        path = tmp_path / f"killed-{last}"
        shutil.copytree(tmp_path / "start", path)
        files = KilledAt(last, half=half)
        try:
            seal(TraceStore(path), sizes=ONE_GROUP, files=files)
        except Killed:
            assert contents(path) == expected, last
            seal(TraceStore(path), sizes=ONE_GROUP)
        else:
            assert files.calls == last
            assert len(TraceStore(path).parts()) >= 4
            break
        finally:
            assert contents(path) == expected, last
        assert TraceStore(path).journals() == ()
        names = {table: sorted(file.name for file in (path / table).iterdir()) for table in TABLES}
        assert names["traces"] == names["operations"] == names["events"]
        assert not any(name.endswith(".tmp") for name in names["traces"])
        shutil.rmtree(path)
    else:
        pytest.fail("the sealing never ended")


def test_a_sealing_that_forgot_what_is_sealed_would_double_runs(tmp_path: Path, make_trace) -> None:
    """The crash test can fail: with journals kept and the check of sealed ids off, runs are written twice."""
    store = fill(tmp_path, make_trace, range(4))
    journals = {path: path.read_bytes() for path in store.journals()}
    seal(store)
    for path, data in journals.items():
        path.write_bytes(data)
    assert seal(store).repeated == 4
    assert sum(pq.read_metadata(part.traces).num_rows for part in store.parts()) == 4
    for path, data in journals.items():
        path.write_bytes(data)
    from fencepost.traces import sealing

    forgetful = pytest.MonkeyPatch()
    forgetful.setattr(sealing._Sealer, "load", lambda self: 1)
    with forgetful.context():
        seal(store)
    forgetful.undo()
    assert sum(pq.read_metadata(part.traces).num_rows for part in store.parts()) == 8


def test_parts_do_not_depend_on_the_number_of_workers(tmp_path: Path, make_trace) -> None:
    """One worker or two, in any order: the sealed traces stand in the order of their ids."""
    fill(tmp_path / "two", make_trace, range(8))
    lab.stored(
        tmp_path / "one",
        (make_trace(number, appends=number % 5) for number in (5, 1, 7, 0, 2, 6, 3, 4)),
        sealed=False,
    )
    for name in ("one", "two"):
        seal(TraceStore(tmp_path / name))
    orders = [[trace.trace_id for trace in TraceStore(tmp_path / name)] for name in ("one", "two")]
    assert orders == [list(range(8))] * 2


def test_traces_are_whole_in_bounded_row_groups(tmp_path: Path, make_trace) -> None:
    """Row group i of a part's three files holds the same traces, each whole, and ends with the trace that
    fills it."""
    store = fill(tmp_path, make_trace, range(30))
    sealed = seal(store, sizes=TINY)
    assert len(sealed.parts) > 1
    seen: list[int] = []
    for part in store.parts():
        for table in TABLES:
            assert (
                pq.read_metadata(part.of(table)).metadata[b"fencepost.traces_whole_in_row_group"] == b"true"
            )
        for group, ids in zip(groups_of(part), trace_ids_of(part), strict=True):
            for table in ("operations", "events"):
                rows = pq.ParquetFile(part.of(table)).read_row_group(group.index)
                assert set(rows["trace_id"].to_pylist()) <= set(ids)
                assert rows.num_rows < 12 + 8 or table == "events"
            seen += ids
    assert seen == list(range(30))


def test_a_group_without_operations_keeps_the_three_files_aligned(tmp_path: Path, make_trace) -> None:
    """Traces that have no operations or no events at all are kept, in a row group of their own index."""
    store = TraceStore.create(tmp_path)
    bare = [attrs.evolve(make_trace(number), operations=(), events=()) for number in (1, 2)]
    lab.stored(store, bare)
    assert contents(tmp_path) == {trace.trace_id: digest_of(trace) for trace in bare}


def test_a_living_worker_keeps_its_journal(tmp_path: Path, make_trace) -> None:
    """Sealing beside a living worker leaves that worker's journal alone, and says so."""
    store = fill(tmp_path, make_trace, range(4))
    with store.writer(0) as writer:
        writer.append(make_trace(10))
        sealed = seal(store)
        assert (sealed.traces, sealed.busy) == (2, ("worker-0.journal",))
        writer.append(make_trace(12))
    assert set(contents(tmp_path)) == {0, 1, 2, 3, 10, 12}
    assert seal(store).traces == 4


def test_two_different_runs_under_one_id_are_refused(tmp_path: Path, make_trace) -> None:
    """A trace id names one run: another one under the same id is refused, and both stay where they are."""
    store = fill(tmp_path, make_trace, range(2))
    seal(store)
    lab.stored(store, [make_trace(1, appends=4)], sealed=False)
    with pytest.raises(TraceError, match="expected one run under trace id 1, saw two"):
        seal(store)
    assert len(store.journals()) == 1
    assert set(contents(tmp_path)) == {0, 1}


def test_nothing_to_seal_makes_no_part(tmp_path: Path) -> None:
    """Sealing an empty folder makes no part and is no error."""
    assert seal(TraceStore.create(tmp_path)).parts == ()


def _break(path: Path, how: str) -> None:
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:-20])
    elif how == "foreign":
        pq.write_table(pa.table({"a": [1]}), path)
    elif how == "not parquet":
        path.write_text("hello")
    elif how == "version":
        metadata[b"fencepost.schema_version"] = b"99"
        pq.write_table(table.replace_schema_metadata(metadata), path)
    elif how == "column":
        pq.write_table(table.drop_columns(["op_id"]), path)
    elif how == "type":
        pq.write_table(table.set_column(1, "op_id", table["op_id"].cast(pa.float64())), path)
    elif how == "torn apart":
        metadata[b"fencepost.traces_whole_in_row_group"] = b"false"
        pq.write_table(table.replace_schema_metadata(metadata), path)
    elif how == "other table":
        metadata[b"fencepost.table"] = b"events"
        pq.write_table(table.replace_schema_metadata(metadata), path)
    elif how == "groups":
        pq.write_table(table, path, row_group_size=3)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("truncated", "expected a whole Parquet file"),
        ("foreign", "Parquet without the key fencepost.schema_version"),
        ("not parquet", "expected a whole Parquet file"),
        ("version", "expected schema version 1, saw schema version 99"),
        ("column", "expected the column op_id, saw a table without it"),
        ("type", "expected the column op_id as int64, saw double"),
        ("torn apart", "expected each trace whole within one row group"),
        ("other table", "expected a part of the table operations, saw one of the table events"),
        ("groups", "expected as many row groups in all three tables"),
    ],
)
def test_an_unreadable_part_is_refused_in_one_sentence(
    tmp_path: Path, make_trace, how: str, said: str
) -> None:
    """A truncated, foreign or other file is refused by name, in one sentence."""
    store = fill(tmp_path, make_trace, range(4))
    seal(store)
    _break(store.parts()[0].operations, how)
    with pytest.raises(TraceError, match=said) as caught:
        list(TraceStore(tmp_path))
    assert "part-00000.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_without_a_trace_are_refused(tmp_path: Path, make_trace) -> None:
    """Operations whose trace has no row are a contradiction that is told, not dropped."""
    store = fill(tmp_path, make_trace, range(4))
    seal(store)
    path = store.parts()[0].traces
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(TraceError, match="expected a row in traces for every trace"):
        list(TraceStore(tmp_path))


def test_no_store_is_one_sentence(tmp_path: Path, make_trace) -> None:
    """A folder without traces, and a trace that is not there, are the caller's mistakes."""
    with pytest.raises(TraceError, match="no such folder"):
        TraceStore.open(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(TraceError, match="expected a folder of traces, saw a file"):
        TraceStore.open(tmp_path / "file")
    with pytest.raises(TraceError, match="without traces/ or journal/"):
        TraceStore.open(tmp_path)
    with pytest.raises(TraceError, match="expected trace 9, saw 2 other traces"):
        fill(tmp_path, make_trace, range(2)).read(9)
