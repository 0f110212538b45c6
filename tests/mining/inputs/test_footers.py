"""Reading a file row group by row group takes time in proportion to its row groups."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.mining.inputs import ungrouped_parts
from fencepost.traces.errors import TraceError
from fencepost.traces.sealing import Sizes
from tests.checkers import lab


def operations_of(path: Path, traces: list) -> Path:
    """The operations of traces, in several row groups."""
    store = lab.stored(path, traces, sizes=Sizes(group_operations=10))
    return store.parts()[0].operations


def rows_in(path: Path, groups: int) -> list[int]:
    """Rows of each row group, read by itself."""
    return [
        sum(batch.num_rows for batch in ungrouped_parts.batches_of(path, "operations", group, ["op_id"]))
        for group in range(groups)
    ]


def test_a_footer_is_read_once_and_again_if_the_file_is_another(tmp_path: Path, make) -> None:
    """Rule: a footer describes all row groups, so it is not read for each of them; a file that was replaced
    has another footer."""
    path = operations_of(tmp_path / "in", [make(number, "legal") for number in range(12)])
    groups = pq.read_metadata(path).num_row_groups
    assert groups > 3
    ungrouped_parts._footer.cache_clear()
    assert sum(rows_in(path, groups)) == pq.read_metadata(path).num_rows
    told = ungrouped_parts._footer.cache_info()
    assert (told.misses, told.hits) == (1, groups - 1)
    operations_of(tmp_path / "other", [make(7, "legal")]).replace(path)
    assert rows_in(path, 1) == [pq.read_metadata(path).num_rows]


def test_a_file_of_another_kind_is_refused_each_time(tmp_path: Path) -> None:
    """Rule: only footers of a known schema are kept."""
    path = tmp_path / "weather.parquet"
    pq.write_table(pa.table({"weather": ["rain"]}), path)
    for _ in range(2):
        with pytest.raises(TraceError, match=r"fencepost\.schema_version"):
            rows_in(path, 1)
    path.write_bytes(b"PAR1")
    for _ in range(2):
        with pytest.raises(TraceError, match=r"weather\.parquet"):
            rows_in(path, 1)
