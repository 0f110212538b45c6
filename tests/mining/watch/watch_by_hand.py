"""A watch without Spark: files in a folder, micro-batches of them, groups of logs whose memory goes through
bytes after every micro-batch.

The histories are those of the log judge's own tests.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random

from attrs import evolve

from fencepost.checkers.log import stream_trace
from fencepost.mining.watch.memory import group_of, memory_of, remember
from fencepost.mining.watch.read import Addressed, FileRead, Folder, Unread
from fencepost.mining.watch.shard import ShardLimits
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "checkers" / "log"))
from log_histories import append, random_trace, read, trace
from log_special_histories import special_trace

__all__ = [
    "BOTH",
    "END",
    "LIMITS",
    "Watch",
    "append",
    "beside",
    "busy",
    "files_of",
    "history",
    "low_watermark",
    "plain",
    "read",
    "trace",
]

LIMITS = ShardLimits(horizon=1_000, lateness_ns=10**9)


END = Event(time=2**40, name=Name.PHASE, cause="end")


def low_watermark(time: int, files: int = -1) -> Event:
    """Everything before `time` has been written, in this file, which is number `files`, and those before
    it."""
    return Event(time=time, name=Name.MARK, cause="low_watermark", offset=files)


class Watch:
    """A watch without Spark: files in a folder, micro-batches of them, groups whose memory is bytes in
    between."""

    def __init__(self, root: Path, limits: ShardLimits = LIMITS) -> None:
        self.folder = Folder(named=str(root), root=str(root), transactions=limits.transactions)
        self.limits, self.files = limits, 0
        self.memory: dict[tuple, bytes] = {}
        self.reported: dict[str, list[tuple]] = defaultdict(list)

    def write(self, *traces: Trace) -> Path:
        path = Path(self.folder.root) / f"{self.files:03}.jsonl"
        self.files += 1
        write_traces(path, traces)
        return path

    def batch(self, paths: Iterable[Path]) -> None:
        chunks: dict[tuple, list] = defaultdict(list)
        for number, path in enumerate(paths):
            for news in self.folder.read(str(path), number):
                if isinstance(news, Addressed):
                    chunks[news.chunk.source, news.trace_id, news.part, news.shard].append(news.chunk)
                elif isinstance(news, Unread):
                    self.reported["quarantine"].append((news.source, news.place, news.trace_id, news.reason))
                else:
                    assert isinstance(news, FileRead)
        for key, some in chunks.items():
            shard = group_of(*key, self.limits)
            if key in self.memory:
                remember(shard, self.memory.pop(key))
            for kind, row in shard.advance(some):
                self.reported[kind].append(row)
            if not shard.forgettable:
                self.memory[key] = memory_of(shard)

    def findings(self) -> list[tuple]:
        """anomaly, log, offset, expected, seen, operations, uncertainty of each finding."""
        return sorted(
            (row[5], row[6], *row[7:10], row[10], tuple(row[11]), row[13]) for row in self.reported["finding"]
        )


def plain(made: Trace, logs: Iterable[tuple[str, int]] = (("t", 0),)) -> list[tuple]:
    """The same of the streaming form."""
    found = [f for log in logs for f in stream_trace(made, *log, horizon=LIMITS.horizon).findings]
    return sorted(
        (f.anomaly, f.topic, f.partition, f.offset, f.expected, f.seen, f.operations, f.uncertainty_ns)
        for f in found
    )


def history(seed: int) -> Trace:
    """A random history, plain or of a log with retention, compaction and transactions; op ids in the order of
    rows."""
    rng = Random(seed)
    make = random_trace if seed % 2 else special_trace
    made = make(rng, profiles=("default", "strong", "content"), clocks=2)
    return evolve(made, operations=tuple(sorted(made.operations, key=lambda op: op.op_id)), trace_id=seed)


def beside(made: Trace, other: Trace) -> Trace:
    """Two histories as one of two partitions, under the claims of the first."""
    moved = [
        evolve(
            op,
            op_id=op.op_id + 10_000,
            process=op.process + 100,
            topic=op.topic and "u",
            records=tuple(evolve(r, topic="u", value=r.value + 10**6) for r in op.records),
            positions=tuple(evolve(place, topic="u") for place in op.positions),
        )
        for op in other.operations
    ]
    return evolve(made, operations=(*made.operations, *moved), concurrent_processes=True)


BOTH = (("t", 0), ("u", 0))


def files_of(made: Trace, rng: Random, count: int, *, in_pairs: bool) -> list[Trace]:
    """The history cut into files in the order of time, each with a low watermark up to which everything is
    written; the last one ends it. in_pairs: an invocation is written when it happens, and the whole operation
    when it completes."""
    latest = max((op.completion_time or op.invoke_time) for op in made.operations)
    cuts = [*sorted(rng.randint(0, latest) for _ in range(count - 1)), latest + 1]
    parts = []
    before = -1
    for cut in cuts:
        rows = []
        for op in made.operations:
            written = op.invoke_time if op.completion_time is None or not in_pairs else op.completion_time
            if not in_pairs:
                written = op.invoke_time  # as if its end could be foreseen: a whole row must not come late
            if in_pairs and op.completion_time is not None and before < op.invoke_time <= cut:
                rows.append(evolve(op, completion_time=None, outcome=Outcome.UNKNOWN))
            if before < written <= cut:
                rows.append(op)
        rng.shuffle(rows)
        last = cut > latest
        files = len(parts) + 1
        events = (evolve(END, offset=files),) if last else (low_watermark(cut + 1, files),)
        parts.append(evolve(made, operations=tuple(rows), events=events))
        before = cut
    return parts


def busy(first: int, count: int) -> list:
    """Appends one after another, each read back at once; every tenth read is never answered."""
    rows = []
    for n in range(first, first + count):
        rows.append(append(2 * n, [n], 100 * n, 100 * n + 10, n))
        heard = None if n % 10 == 0 else 100 * n + 30
        rows.append(evolve(read(2 * n + 1, n, [(n, n)], 100 * n + 20, 100 * n + 30), completion_time=heard))
    return rows
