"""What a watch writes: one file per table and micro-batch, each complete or absent, and the same again
if the micro-batch runs again.

Owns the output folder, its tables, and the lock on it. Must not know Spark, judges.

    OUT/findings/part-00000007.parquet     of micro-batch 7; the columns of mining's findings
    OUT/logs/part-00000007.parquet         one row per log of a trace that ended
    OUT/verdicts/part-00000007.parquet     one row per check of transactions of a trace that ended
    OUT/quarantine/part-00000007.parquet   as mining's
    OUT/checkpoint/                        Spark's: what has arrived, and the memory of traces under way
    OUT/watch.json                         the options: a watch with other options cannot continue here
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from fencepost.mining.results.result_rows import RESULTS_VERSION, SCHEMAS
from fencepost.traces.errors import FencepostError
from fencepost.traces.whole_file import whole, write_whole

Table = Literal["findings", "logs", "quarantine", "verdicts"]
TABLES: tuple[Table, ...] = ("findings", "logs", "quarantine", "verdicts")
_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("source", pa.string()), ("trace_id", pa.int64()), ("topic", pa.string()), ("partition", pa.int64()),
    ("decision", pa.string()), ("operations", pa.int64()), ("findings", pa.int64()), ("reason", pa.string()),
)  # fmt: skip
LOGS = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS]).with_metadata(
    {"fencepost.results_version": str(RESULTS_VERSION), "fencepost.result": "logs"}
)
_SCHEMAS: dict[Table, pa.Schema] = {
    "findings": SCHEMAS["findings"],
    "logs": LOGS,
    "quarantine": SCHEMAS["quarantine"],
    "verdicts": SCHEMAS["verdicts"],
}
CHECKPOINT, QUESTION, LOCK = "checkpoint", "watch.json", ".lock"

Row = tuple[Any, ...]


@frozen(kw_only=True)
class WatchOut:
    """The output folder."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Spark's."""
        return self.path.absolute() / CHECKPOINT

    @contextmanager
    def held(self, asked: dict[str, Any]) -> Iterator[None]:
        """The folder belongs to this watch, new or taken up again. Raises FencepostError if it holds
        something else, the answer to another question, or if another watch writes to it."""
        self._ask(msgspec.to_builtins(asked))
        with (self.path / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FencepostError(
                    expected="one watch per folder of results",
                    seen="another one at work",
                    where=str(self.path),
                    hint="end it, or give this one a separate folder (--out)",
                ) from None
            yield

    def _ask(self, asked: dict[str, Any]) -> None:
        question = self.path / QUESTION
        if not question.exists():
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise FencepostError(
                    expected="a new or an empty folder, or that of a watch before",
                    seen="that it is in use",
                    where=str(self.path),
                )
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(question, msgspec.json.encode(asked))
            return
        if not self.checkpoint.exists() and any((self.path / table).exists() for table in TABLES):
            raise FencepostError(
                expected=f"the folder {CHECKPOINT} next to the tables of a watch",
                seen="tables alone, which cannot be continued",
                where=str(self.path),
                hint="watch into another folder (--out)",
            )
        try:
            before: Any = msgspec.json.decode(question.read_bytes())
        except msgspec.MsgspecError as error:
            raise FencepostError(
                expected="what a watch asked", seen=str(error), where=str(question)
            ) from None
        if before != asked:
            names = sorted({*before, *asked}) if isinstance(before, dict) else []
            name = next((name for name in names if before.get(name) != asked.get(name)), "another question")
            raise FencepostError(
                expected=f"the question that this watch began with ({name}: {before.get(name)!r})",
                seen=repr(asked.get(name)),
                where=str(self.path),
                hint="ask the same, or watch into another folder (--out)",
            )

    def write(self, batch: int, rows: dict[Table, list[Row]]) -> None:
        """Write the tables of a micro-batch; they replace those of an earlier attempt. batch: its number;
        rows: by table."""
        for table in TABLES:
            path = self.path / table / f"part-{batch:08}.parquet"
            if rows[table]:
                path.parent.mkdir(exist_ok=True)
                schema = _SCHEMAS[table]
                arrays = [
                    pa.array(values, type=column.type)
                    for values, column in zip(zip(*rows[table], strict=True), schema, strict=True)
                ]
                made = pa.Table.from_arrays(arrays, schema=schema)
                with whole(path) as draft:
                    pq.write_table(made, draft, compression="zstd")
            else:
                path.unlink(missing_ok=True)

    def count(self, table: Table, *, but: int = -1) -> int:
        """Rows of a table so far, without those of one micro-batch."""
        parts = sorted((self.path / table).glob("part-*.parquet"))
        return sum(pq.read_metadata(path).num_rows for path in parts if path.stem != f"part-{but:08}")
