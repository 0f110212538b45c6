"""`watch`: a folder in which parts of traces keep arriving, judged while they arrive, on Spark Structured
Streaming.

Owns the stream from files to findings, its settings, the reported counts. Must not know the terminal;
how files are read (read.py), logs judged (shard.py) and tables written (out.py).

Spark lists the files and remembers in its checkpoint which micro-batch has which. Tasks read them (the
columns never pass through the JVM). Their news goes to the groups of logs; Spark keeps the memory of the
groups per micro-batch in the checkpoint. The driver writes their reports under the number of the micro-batch.
So a micro-batch that runs again after a crash starts from the same memory, reads the same files and replaces
its own tables.
"""

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from typing import Any

import msgspec
import pyarrow as pa

from fencepost.checkers.log.one_log import CHECK
from fencepost.mining.inputs.walk import circles
from fencepost.mining.spark.session import check_spark, session
from fencepost.mining.watch.counts import MicroBatch, Watched, batch_of
from fencepost.mining.watch.memory import group_of, memory_of, remember
from fencepost.mining.watch.out import Row, Table, WatchOut
from fencepost.mining.watch.read import PATTERN, SHARDS, Addressed, Chunk, FileRead, Folder, Unread
from fencepost.mining.watch.shard import ShardLimits
from fencepost.record.claimed.profiles import check_profile
from fencepost.traces.errors import EnvironmentError_, FencepostError

HORIZON = 10_000
LATENESS_S = 5.0
INTERVAL_S = 1.0
BATCH_INPUT_BYTES = 96 * 1024 * 1024
"""Bytes of the files of one micro-batch (one file at least): what arrives is judged in pieces of bounded
size. As JSON lines they hold 300,000 operations, which take 300 MB as Python values. Small files do not
count by number: a micro-batch costs a second, however few it takes."""
STATE_PARTITIONS = 4
"""Tasks of the stage that judges. Fixed for the life of a checkpoint; each costs two small files per
micro-batch."""
POLL_S = 0.2
"""How soon Ctrl-C takes effect."""
_SETTINGS = {
    "spark.sql.shuffle.partitions": str(STATE_PARTITIONS),
    # Spark keeps 100, each with the memory of what is under way
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",  # a row has up to 4,096 operations
    "spark.sql.files.maxPartitionBytes": "16m",  # large files are read by several processors
    "spark.sql.files.openCostInBytes": "65536",  # and small ones together
    "spark.sql.adaptive.enabled": "false",  # no choice is left to it in a stream
}
_FILES = "path string, modificationTime timestamp, length long, content binary"
_TOLD = "kind string, payload binary"
_KEY = ("source", "trace_id", "part", "shard")
_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("source", "string", pa.string()),
    ("trace_id", "long", pa.int64()),
    ("part", "string", pa.string()),
    ("shard", "long", pa.int64()),
    ("kind", "string", pa.string()),
    ("payload", "binary", pa.binary()),
)
_NEWS = ", ".join(f"{name} {kind}" for name, kind, _ in _COLUMNS)
_NEWS_ARROW = pa.schema([pa.field(name, kind) for name, _, kind in _COLUMNS])
MOST_NAMED = 5
"""Links that an error names."""
BATCH_BYTES = 8 * 1024 * 1024
"""News that travels in one Arrow batch."""

Tell = Callable[[MicroBatch, Watched], None]


@contextmanager
def without_collection() -> Iterator[None]:
    """Values of operations hold no cycles, and looking for some among a million of them takes as long as
    judging does."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _reading(folder: Folder) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark calls with the paths of new files."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_collection():
            yield from _news_of(batches)

    def _news_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[Any, ...]] = []
        size_bytes = 0
        for batch in batches:
            times = batch.column(1).cast(pa.int64()).to_pylist()
            for path, modified_us in zip(batch.column(0).to_pylist(), times, strict=True):
                assert modified_us is not None
                local = "/" + str(path).removeprefix("file:").lstrip("/")
                for news in folder.read(local, modified_us):
                    rows.append(_news_row(news, local))
                    size_bytes += len(rows[-1][-1])
                    if size_bytes >= BATCH_BYTES:
                        yield _news_batch(rows)
                        rows, size_bytes = [], 0
        yield _news_batch(rows)

    return read


def _news_row(news: Addressed | Unread | FileRead, path: str) -> tuple[Any, ...]:
    if isinstance(news, Addressed):
        payload = msgspec.msgpack.encode(news.chunk)
        return news.chunk.source, news.trace_id, news.part, news.shard, "chunk", payload
    kind = "quarantine" if isinstance(news, Unread) else "file"
    row = (
        (news.source, news.place, news.trace_id, news.reason)
        if isinstance(news, Unread)
        else (news.place, news.modified_us, news.operations)
    )
    return path, -1, path, -1, kind, msgspec.msgpack.encode(row)


def _news_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_NEWS_ARROW)
    arrays = [pa.array(values, type=column.type) for values, column in zip(columns, _NEWS_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_NEWS_ARROW)


def _judging(limits: ShardLimits) -> Callable[[tuple[Any, ...], Iterable[Any], Any], Iterator[Any]]:
    """The function that Spark calls with the news and the memory of each group."""

    def judge(key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        source, trace_id, part, number = key
        messages: list[tuple[str, bytes]] = []
        chunks: list[Chunk] = []
        for frame in frames:
            for kind, payload in zip(frame["kind"], frame["payload"], strict=True):
                if kind == "chunk":
                    chunks.append(msgspec.msgpack.decode(payload, type=Chunk))
                else:
                    messages.append((kind, bytes(payload)))
        if chunks:
            with without_collection():
                shard = group_of(source, int(trace_id), part, int(number), limits)
                if state.exists:
                    remember(shard, bytes(state.get[0]))
                messages += [(kind, msgspec.msgpack.encode(row)) for kind, row in shard.advance(chunks)]
                if not shard.forgettable:
                    state.update((memory_of(shard),))
                elif state.exists:
                    state.remove()
        kinds = pa.array([kind for kind, _ in messages], pa.string())
        payloads = pa.array([payload for _, payload in messages], pa.binary())
        yield pa.table({"kind": kinds, "payload": payloads}).to_pandas()

    return judge


def _stream(spark: Any, folder: Folder, limits: ShardLimits) -> Any:
    """The stream from files to the reports of the groups: kind and payload."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    options = {
        "recursiveFileLookup": "true",
        "pathGlobFilter": PATTERN,
        "ignoreMissingFiles": "true",
        "maxBytesPerTrigger": str(BATCH_INPUT_BYTES),
    }
    files = spark.readStream.format("binaryFile").options(**options).schema(_FILES).load(folder.root)
    news = files.select("path", "modificationTime").mapInArrow(_reading(folder), _NEWS)
    groups = news.groupBy(*_KEY)
    return groups.applyInPandasWithState(
        _judging(limits), _TOLD, "memory binary", "update", GroupStateTimeout.NoTimeout
    )


def _drain(query: Any, watched: Watched) -> None:
    """Wait until the stream ends or is interrupted. A thread waits for the JVM, because an interruption of
    py4j's own waiting would be reported as an error."""
    from pyspark import InheritableThread

    ended = Flag()
    failures: list[Exception] = []

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception as error:
            failures.append(error)
        finally:
            ended.set()

    thread = InheritableThread(target=wait, daemon=True)
    thread.start()
    try:
        while not ended.wait(POLL_S):
            pass
    except KeyboardInterrupt:
        watched.interrupted = True
        query.stop()
    thread.join()
    if failures and not watched.interrupted:
        raise EnvironmentError_(
            expected="the stream to continue", seen=_said_by(failures[0]), where="judging on Spark"
        ) from failures[0]


def _said_by(error: Exception) -> str:
    """The sentence of the Python error inside the JVM's message, or else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"(fencepost\.)?[\w.]*(Error|Exception): ", line)]
    named = [line for line in ours if "py4j" not in line and "spark" not in line.split(":")[0].lower()]
    return (named or lines or [type(error).__name__])[0].removeprefix("fencepost.traces.errors.")


def _checked(folder: Path, out: Path, limits: ShardLimits) -> None:
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "nothing there"
        raise FencepostError(expected="a folder to watch", seen=seen, where=str(folder))
    looping = circles(folder)
    if len(looping) > 1:
        raise FencepostError(
            expected="at most one link to a folder above itself",
            seen=", ".join(map(str, looping[:MOST_NAMED])),
            where=str(folder),
            hint="remove them: Spark's listing of the folder would not end",
        )
    inside, outside = out.resolve(), folder.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise FencepostError(
            expected="results outside the watched folder",
            seen=f"{out} and {folder}, one in the other",
            where="out",
        )
    if limits.horizon < 1 or limits.lateness_ns < 0:
        raise FencepostError(
            expected="a horizon of 1 or more and a lateness of 0 or more",
            seen=f"{limits.horizon} and {limits.lateness_ns} ns",
            where="watch",
        )
    check_profile(limits.profile)


def _more(limits: ShardLimits) -> dict[str, Any]:
    """What a watch asks in addition, left out where it does not: folders of before go on."""
    return {"transactions": True} if limits.transactions else {}


def watch(
    folder: Path,
    out: Path,
    *,
    limits: ShardLimits | None = None,
    once: bool = False,
    interval_s: float = INTERVAL_S,
    master: str | None = None,
    spark: Any = None,
    tell: Tell | None = None,
) -> Watched:
    """Judge what arrives in `folder`, until interrupted, or with `once` until what is there has been judged;
    continues where a watch into `out` stopped.

    interval_s: between looks at the folder. master: as for `session`. spark: a session to use. tell:
    called in the driver after each micro-batch. Raises FencepostError for folders that do not fit together,
    EnvironmentError_ if Spark fails.
    """
    limits = limits or ShardLimits(horizon=HORIZON, lateness_ns=int(LATENESS_S * 1e9))
    _checked(folder, out, limits)
    asked = {
        "watched": str(folder.resolve()), "check": CHECK, "shards": SHARDS, **_more(limits),
        "horizon": limits.horizon, "lateness_ns": limits.lateness_ns, "profile": limits.profile,
    }  # fmt: skip
    if spark is None:  # before anything is written
        check_spark()
    results = WatchOut(path=out)
    with results.held(asked):
        if spark is not None:
            return _watch(spark, folder, results, limits, once, interval_s, tell)
        with session(master, source=False, goes_on=lambda: "the next call continues") as own:
            return _watch(own, folder, results, limits, once, interval_s, tell)


def _watch(
    spark: Any,
    folder: Path,
    results: WatchOut,
    limits: ShardLimits,
    once: bool,
    interval_s: float,
    tell: Tell | None,
) -> Watched:
    watched = Watched(out=str(results.path))

    def write(frame: Any, number: int) -> None:
        batch, status = batch_of(number, ((row[0], bytes(row[1])) for row in frame.collect()))
        tables: dict[Table, list[Row]] = {
            "findings": batch.findings,
            "logs": batch.logs,
            "verdicts": batch.verdicts,
            "quarantine": batch.quarantine,
        }
        if not watched.batches:
            watched.findings_in_all = results.count("findings", but=number)
            watched.quarantined_in_all = results.count("quarantine", but=number)
        results.write(number, tables)
        watched.add(batch, status)
        watched.findings_in_all += len(batch.findings)
        watched.quarantined_in_all += len(batch.quarantine)
        if tell is not None:
            tell(batch, watched)

    own = spark.newSession()  # with separate settings
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    watched_folder = Folder(named=str(folder), root=str(folder.resolve()), transactions=limits.transactions)
    messages = _stream(own, watched_folder, limits)
    writer = messages.writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(results.checkpoint))
    trigger = {"availableNow": True} if once else {"processingTime": f"{int(interval_s * 1000)} milliseconds"}
    query = writer.trigger(**trigger).start()
    try:
        _drain(query, watched)
    finally:
        if query.isActive:
            query.stop()
    if not watched.batches:
        watched.findings_in_all = results.count("findings")
        watched.quarantined_in_all = results.count("quarantine")
    return watched
