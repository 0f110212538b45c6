"""What a watch writes: one file per table and round, each complete or absent, and what the next watch has to
know.

Owns the output folder, its tables, the rounds that were done, and the lock on it. Must not know Spark,
judges.

    OUT/findings/part-00000007.parquet     of round 7; the columns of mining's findings
    OUT/verdicts/part-00000007.parquet     one row per check of a trace that ended; as mining's
    OUT/quarantine/part-00000007.parquet   as mining's
    OUT/rounds/round-00000007.json         which files were taken, and what was made of traces under way
    OUT/watch.json                         the options: a watch with other options cannot continue here

A round is done when its file in `rounds` is there, which is written last. What a round that was not done has
written is removed by the next watch, which takes the same files again.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from fencepost.mining.results.result_rows import SCHEMAS
from fencepost.mining.watch.under_way import PartNews, SoFar
from fencepost.traces.errors import FencepostError
from fencepost.traces.whole_file import whole, write_whole

Table = Literal["findings", "verdicts", "quarantine"]
TABLES: tuple[Table, ...] = ("findings", "verdicts", "quarantine")
ROUNDS, QUESTION, LOCK = "rounds", "watch.json", ".lock"

Row = tuple[Any, ...]


class Done(msgspec.Struct, array_like=True, frozen=True):
    """What a round did. Names are relative to the watched folder where they are written."""

    # Files that were taken: name and version.
    files: tuple[tuple[str, int], ...]
    news: tuple[PartNews, ...] = ()
    judged: tuple[SoFar, ...] = ()

    def renamed(self, new: Callable[[str], str]) -> "Done":
        """The same with other names of files and folders. new: of a name."""
        replace = msgspec.structs.replace
        return Done(
            tuple((new(name), version) for name, version in self.files),
            tuple(replace(one, source=new(one.source), place=new(one.place)) for one in self.news),
            tuple(replace(one, source=new(one.source)) for one in self.judged),
        )


_DECODER = msgspec.json.Decoder(Done)


@frozen(kw_only=True)
class WatchOut:
    """The output folder."""

    path: Path

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

    def begin(self) -> list[Done]:
        """The rounds that were done, in order; what another one wrote is removed. Raises FencepostError for
        one that cannot be read."""
        paths = sorted((self.path / ROUNDS).glob("round-*.json"))
        done = []
        for number, path in enumerate(paths):
            try:
                done.append(_DECODER.decode(path.read_bytes()))
            except msgspec.MsgspecError as error:
                raise FencepostError(
                    expected="what a watch remembers of a round",
                    seen=str(error),
                    where=str(path),
                    hint="watch into another folder (--out)",
                ) from None
            if path.name != _round(number):
                raise FencepostError(expected=_round(number), seen=path.name, where=str(self.path / ROUNDS))
        for table in TABLES:
            for path in (self.path / table).glob("part-*.parquet"):
                if path.name >= _part(len(done)):
                    path.unlink()
        return done

    def write(self, number: int, rows: dict[Table, list[Row]]) -> None:
        """Write the tables of a round. number: of the round; rows: by table."""
        for table in TABLES:
            if rows[table]:
                path = self.path / table / _part(number)
                path.parent.mkdir(exist_ok=True)
                schema = SCHEMAS[table]
                arrays = [
                    pa.array(values, type=column.type)
                    for values, column in zip(zip(*rows[table], strict=True), schema, strict=True)
                ]
                made = pa.Table.from_arrays(arrays, schema=schema)
                with whole(path) as draft:
                    pq.write_table(made, draft, compression="zstd")

    def commit(self, number: int, done: Done) -> None:
        """The round is done. number: of the round; done: what the next watch has to know."""
        path = self.path / ROUNDS / _round(number)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, msgspec.json.encode(done))

    def count(self, table: Table) -> int:
        """Rows of a table so far."""
        return sum(pq.read_metadata(path).num_rows for path in (self.path / table).glob("part-*.parquet"))


def _part(number: int) -> str:
    return f"part-{number:08}.parquet"


def _round(number: int) -> str:
    return f"round-{number:08}.json"
