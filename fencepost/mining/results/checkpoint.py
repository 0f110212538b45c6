"""What a mining keeps while it runs, so that an interrupted one can continue: the ended tasks and
their results.

Owns the hidden folder of work, the key of a task, the JSON of a result. Must not know Spark, judges.

    OUT/.work/asked.json            inputs, checks, profile: a mining with other options cannot continue here
    OUT/.work/files/RESULT/*.parquet   what attempts of tasks wrote
    OUT/.work/done/KEY.json         a task that ended: its counts, and the files of the attempt that ended it
"""

import contextlib
import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field, frozen

from fencepost.mining.inputs.history_files import HistoryFile
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.results.result_rows import Counts
from fencepost.report.record_counts import LogTotals
from fencepost.report.sample import Sample
from fencepost.traces.errors import FencepostError
from fencepost.traces.whole_file import write_whole

WORK = ".work"
MOST_TRIES = 10
"""Attempts to remove the folder of work. A process that still writes there writes one more task at most."""


@frozen(kw_only=True)
class TaskResult:
    """What a task answers."""

    counts: Counts
    # That it wrote, relative to the folder.
    files: tuple[str, ...]


@frozen(kw_only=True)
class _Answer:
    """A TaskResult in types that JSON has; fields as there."""

    files: tuple[str, ...]
    traces: dict[str, int]
    operations: int
    events: int
    decisions: list[tuple[str, str, int]]
    anomalies: dict[str, int]
    traces_with: dict[str, int]
    illegal: dict[str, int]
    statistics: list[tuple[str, str, str, str | None, int]]
    samples: dict[str, Sample] = field(factory=dict)
    quarantined: list[Unreadable] = field(factory=list)
    records: LogTotals = field(factory=LogTotals)


def to_json(result: TaskResult) -> bytes:
    """A task's answer."""
    counts = result.counts
    return msgspec.json.encode(
        _Answer(
            files=result.files,
            traces=dict(counts.traces),
            operations=counts.operations,
            events=counts.events,
            decisions=[(*key, count) for key, count in sorted(counts.decisions.items())],
            anomalies=dict(counts.anomalies),
            traces_with=dict(counts.traces_with),
            illegal=dict(counts.illegal),
            statistics=[(*key, count) for key, count in counts.statistics.items()],
            samples=counts.samples,
            quarantined=counts.quarantined,
            records=counts.records,
        )
    )


def _counter(kind: type, value: Any) -> Any:
    """The sums of records are counters."""
    if kind == Counter[str]:
        return Counter(msgspec.convert(value, dict[str, int]))
    raise NotImplementedError(kind.__name__)


def from_json(data: bytes) -> TaskResult:
    """The answer again. Raises msgspec.MsgspecError."""
    kept = msgspec.json.decode(data, type=_Answer, dec_hook=_counter)
    counts = Counts(
        traces=Counter(kept.traces),
        operations=kept.operations,
        events=kept.events,
        decisions=Counter({(check, decision): count for check, decision, count in kept.decisions}),
        anomalies=Counter(kept.anomalies),
        traces_with=Counter(kept.traces_with),
        illegal=Counter(kept.illegal),
        statistics=Counter({(a, b, c, anomaly): count for a, b, c, anomaly, count in kept.statistics}),
        samples=kept.samples,
        quarantined=kept.quarantined,
        records=kept.records,
    )
    return TaskResult(counts=counts, files=kept.files)


def key_of(splits: Sequence[Split | HistoryFile]) -> str:
    """The name of a task, derived from what it reads and not from its number."""
    identity = [
        (
            split.source,
            split.place,
            split.size_bytes,
            [frame.trace_id for frame in split.frames],
            split.repeated,
        )
        for split in splits
    ]
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:24]


def keep(folder: Path, key: str, result: TaskResult, *, attempt: str) -> None:
    """Save the result of a task that has ended, completely or not at all. folder: of the work; key: of the
    task; attempt: that ended it."""
    write_whole(folder / "done" / f"{key}.json", to_json(result))


def _is_whole(path: Path) -> bool:
    """Whether a file of results has its end; a machine that lost its power may have kept the name alone."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True


@frozen(kw_only=True)
class Work:
    """The folder of work of one mining."""

    # Of its results.
    out: Path

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.out.absolute() / WORK

    def begin(self, asked: dict[str, Any], *, resume: bool) -> None:
        """Create the folder, or continue it. asked: the options; resume: whether it may exist. Raises
        FencepostError if the output folder is in use, or holds work with other options."""
        question = self.folder / "asked.json"
        if question.exists():
            if not resume:
                raise FencepostError(
                    expected="a new or an empty folder for the results",
                    seen="a mining that did not end",
                    where=str(self.out),
                    hint="continue it (--resume, or resume=True), or remove the folder",
                )
            before = msgspec.json.decode(question.read_bytes())
            if before != msgspec.to_builtins(asked):
                raise FencepostError(
                    expected=f"the question that this mining began with, "
                    f"{msgspec.json.encode(before).decode()}",
                    seen=msgspec.json.encode(asked).decode(),
                    where=str(self.out),
                )
        elif self.out.exists() and not (self.out.is_dir() and set(self.out.iterdir()) <= {self.out / WORK}):
            raise FencepostError(
                expected="a new or an empty folder for the results",
                seen="that it is in use",
                where=str(self.out),
            )
        else:
            self.folder.mkdir(parents=True, exist_ok=True)  # it is there after a kill just here
            write_whole(question, msgspec.json.encode(asked))

    def done(self, keys: Iterable[str]) -> dict[str, TaskResult]:
        """The existing results of these tasks; one that is incomplete, or has incomplete files,
        does not count."""
        found = {}
        for key in keys:
            path = self.folder / "done" / f"{key}.json"
            if path.exists():
                with contextlib.suppress(msgspec.MsgspecError):
                    result = from_json(path.read_bytes())
                    if all(_is_whole(self.path_of(name)) for name in result.files):
                        found[key] = result
        return found

    def path_of(self, name: str) -> Path:
        """The place of an attempt's file: with the results, if an interrupted mining has moved it there
        already."""
        identity = self.out / name
        return identity if identity.exists() else self.folder / "files" / name

    def end(self) -> None:
        """Everything is in its place. A Python worker that outlived an earlier driver may still write here,
        so it takes a few tries."""
        for _ in range(MOST_TRIES):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
        shutil.rmtree(self.folder)

    def discard(self) -> None:
        """Nothing was judged: leave the output folder as it was found."""
        self.end()
        self.out.rmdir()
