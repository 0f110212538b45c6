"""A watch without Spark: each sitting is a watch of its own, which takes up what the one before wrote.

The histories are those of the judges' own tests.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Self
from unittest.mock import patch

import pyarrow.parquet as pq
from attrs import evolve

from fencepost.mining.watch import watch as watching
from fencepost.mining.watch.counts import Watched
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "checkers" / "log"))
from log_histories import append, random_trace, read, trace
from log_special_histories import special_trace

__all__ = ["END", "Watch", "append", "files_of", "history", "low_watermark", "read", "trace"]

END = Event(time=2**40, name=Name.PHASE, cause="end")


def low_watermark(time: int, files: int = -1) -> Event:
    """Everything before `time` has been written, in this file, which is number `files`, and those before
    it."""
    return Event(time=time, name=Name.MARK, cause="low_watermark", offset=files)


class InThisProcess:
    """In place of Spark."""

    def __init__(self, *_: object, **__: object) -> None:
        self.goes_on = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def spread(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [function(item) for item in items]


class Watch:
    """A folder to which files come, and a watch that looks at it once in a while."""

    def __init__(self, root: Path, **asked: Any) -> None:
        self.folder, self.out, self.files = root / "in", root / "out", 0
        self.folder.mkdir(parents=True)
        self.asked = {"lateness_s": 1.0, **asked}

    def write(self, *traces: Trace) -> Path:
        path = self.folder / f"{self.files:03}.jsonl"
        self.files += 1
        write_traces(path, traces)
        return path

    def sit(self, **more: Any) -> Watched:
        """One watch, until what is there has been judged."""
        with patch.object(watching, "Engine", InThisProcess):
            return watching.watch(self.folder, self.out, once=True, spark=object(), **self.asked | more)

    def see(self, *traces: Trace) -> Watched:
        """One more file, and what the watch says of it."""
        self.write(*traces)
        return self.sit()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """What was written so far."""
        parts = sorted((self.out / table).glob("part-*.parquet"))
        return [row for part in parts for row in pq.read_table(part).to_pylist()]

    def found(self) -> list[tuple[Any, ...]]:
        """Check, anomaly and place of each finding."""
        return sorted(
            (row["trace_id"], row["check"], row["anomaly"], str(row["topic"]), row["partition"])
            for row in self.rows("findings")
        )

    def decided(self, check: str = "log") -> dict[int, tuple[str, str]]:
        """Decision and reason by trace."""
        rows = (row for row in self.rows("verdicts") if row["check"] == check)
        return {row["trace_id"]: (row["decision"], row["reason"]) for row in rows}


def history(seed: int) -> Trace:
    """A random history, plain or of a log with retention, compaction and transactions; op ids in the order of
    rows."""
    rng = Random(seed)
    make = random_trace if seed % 2 else special_trace
    made = make(rng, profiles=("default", "strong", "content"), clocks=2)
    return evolve(
        made, operations=tuple(sorted(made.operations, key=lambda op: op.op_id)), trace_id=seed, digest=""
    )


def files_of(made: Trace, cuts: Iterable[int], *, in_pairs: bool) -> list[Trace]:
    """The history cut into files in the order of time, each with a low watermark up to which everything is
    written; the last one ends it. in_pairs: an invocation is written when it happens, and the whole operation
    when it completes."""
    latest = max((op.completion_time or op.invoke_time) for op in made.operations)
    parts = []
    before = -1
    for cut in [*sorted(cut for cut in cuts if cut <= latest), latest + 1]:
        rows = []
        for op in made.operations:
            written = op.invoke_time if op.completion_time is None or not in_pairs else op.completion_time
            if in_pairs and op.completion_time is not None and before < op.invoke_time <= cut:
                rows.append(evolve(op, completion_time=None, outcome=Outcome.UNKNOWN))
            if before < written <= cut:
                rows.append(op)
        files = len(parts) + 1
        events = (evolve(END, offset=files),) if cut > latest else (low_watermark(cut + 1, files),)
        parts.append(evolve(made, operations=tuple(rows), events=events))
        before = cut
    return parts
