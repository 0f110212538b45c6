"""Operations of clients of a real cluster as one trace in a file: each run of a client tool adds its own.

Owns the file: `--record FILE` of `produce` and `consume`. Must not know clients. The runs of one FILE are
judged together, because a consumer's history without its producers' would show records that no client sent.
Each run has its own processes and its own clock; clocks of one machine err by at most CLOCK_UNCERTAINTY_NS.

A producer's run writes ahead: each append is in the file, with unknown outcome, before it is sent, and
again when it has completed. The file can be judged at any moment, also after `kill -9`.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from attrs import define, evolve, frozen

from fencepost import __version__
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import CUT_LINE, operation_line, read_traces, write_traces
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Claims, Trace
from fencepost.traces.whole_file import whole

CLOCK_UNCERTAINTY_NS = 10_000_000
"""Two processes read the wall clock when they start and count on from there. The system may have slewed the
clock between the two starts."""
PROFILE, TARGET = "client", "processes"
BEGUN = "client_run"
"""The cause of the mark for a run that has not ended; the mark's offset is the run's number."""
TAIL_BYTES = 1 << 16
"""Bytes of one step back from the end of a file, in search of its last whole line: most lines are shorter."""
REASON = "a producer retried appends of unknown outcome without idempotence"


@frozen(kw_only=True)
class Recorded:
    """What the file contains now."""

    # Of all runs.
    operations: int
    # Records read in this run that no run recorded as sent.
    strangers: int


def add_run(path: Path, operations: Sequence[Operation]) -> Recorded:
    """Add the operations of a run that has ended to the file `path`. operations: op ids and processes are
    numbered from 0.

    Raises TraceError for a file that holds something else, EnvironmentError_ when the disk refuses.
    """
    return RecordedRun.begin(path).end(operations)


@define(eq=False)
class RecordedRun:
    """A run that is recorded while it lasts: after `write` returns, the rows are in the file, whatever
    happens to this process."""

    path: Path
    # Of the run in the file; also its clock's id. Until the run ends, its op ids begin at (number + 1) << 32
    # and its processes at 1,000 * (number + 1), because their count is not known yet. Each write opens the
    # file by its path, because a run that ends rewrites the file.
    number: int

    @classmethod
    def begin(cls, path: Path, *, may_duplicate: bool = False) -> Self:
        """Open or create the file, and take a number. path: the file; may_duplicate: the run may write a
        record twice, so the claims allow duplicates until it has ended.

        Raises TraceError for a file that holds something else, EnvironmentError_ when the disk refuses.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            trace = _read(path)
            clocks = [one.clock_id for one in trace.operations] + [one.offset for one in _begun(trace)]
            run = cls(path, 1 + max(clocks, default=-1))
            if may_duplicate:
                trace = _claimed(trace, (*trace.claims.reasons, run._pending))
            mark = Event(time=time.time_ns(), name=Name.MARK, offset=run.number, cause=BEGUN)
            _write(path, evolve(trace, events=(*trace.events, mark), digest=""))
        return run

    @property
    def _pending(self) -> str:
        return f"run {self.number} sends without idempotence, and did not say how it ended"

    def write(self, operations: Iterable[Operation]) -> None:
        """Add rows: invocations before they are sent, and the complete rows when they are known. Raises
        OSError if the disk refuses."""
        data = b"".join(operation_line(self._numbered(one)) + b"\n" for one in operations)
        if not data:
            return
        with _locked(self.path), self.path.open("r+b") as file:
            end = _end_of_lines(file)
            try:
                file.seek(end)
                file.write(data)
                file.flush()
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise

    def _numbered(self, one: Operation) -> Operation:
        base = self.number + 1
        return evolve(
            one, op_id=(base << 32) + one.op_id, process=base * 1_000 + one.process, clock_id=self.number
        )

    def end(self, operations: Sequence[Operation], *, duplicates: bool = False) -> Recorded:
        """Replace what this run wrote by all its operations, numbered from 0. duplicates: it may have written
        records twice."""
        with _locked(self.path):
            before = _read(self.path)
            known = tuple(one for one in before.operations if one.clock_id != self.number)
            first_op = 1 + max((one.op_id for one in known if one.op_id < 1 << 32), default=-1)
            first_process = 1 + max((one.process for one in known), default=-1)
            added = tuple(
                evolve(
                    one, op_id=first_op + one.op_id, process=first_process + one.process, clock_id=self.number
                )
                for one in operations
            )
            everything = sorted((*known, *added), key=lambda one: (one.invoke_time, one.op_id))
            reasons = [reason for reason in before.claims.reasons if reason != self._pending]
            if duplicates and REASON not in reasons:
                reasons.append(REASON)
            trace = evolve(
                _claimed(before, reasons),
                operations=tuple(everything),
                events=tuple(one for one in before.events if one not in _begun(before, self.number)),
                digest="",
            )
            under_way = bool(_begun(trace))
            _write(self.path, trace if under_way else evolve(trace, digest=digest_of(trace)))
        return Recorded(operations=len(everything), strangers=_strangers(everything, added))


def _begun(trace: Trace, number: int | None = None) -> tuple[Event, ...]:
    """The marks of runs that have not ended, or of run `number` only."""
    return tuple(
        one
        for one in trace.events
        if (one.name, one.cause) == (Name.MARK, BEGUN) and number in (None, one.offset)
    )


def _claimed(trace: Trace, reasons: Iterable[str]) -> Trace:
    """The trace with these reasons why a record may be in the log twice."""
    found = tuple(reasons)
    return evolve(trace, claims=evolve(trace.claims, duplicates=bool(found), reasons=found))


def _write(path: Path, trace: Trace) -> None:
    with whole(path) as draft:
        write_traces(draft, [trace])


def _end_of_lines(file: BinaryIO) -> int:
    """Where the last complete line ends; a killed run may leave part of a line after it."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - TAIL_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def check_record(path: Path) -> None:
    """Fail before the work, not after it, if the file contains something else. Raises TraceError."""
    if path.exists():
        _read(path)


def _strangers(everything: Sequence[Operation], added: Sequence[Operation]) -> int:
    sent = {record.value for one in everything if one.function is Function.APPEND for record in one.records}
    return sum(
        record.value not in sent for one in added if one.function is Function.POLL for record in one.records
    )


def _read(path: Path) -> Trace:
    """The trace in the file; an incomplete last line of a killed run is ignored."""
    traces = _kept(path) if path.exists() and path.stat().st_size else [_empty()]
    if len(traces) != 1 or (traces[0].profile, traces[0].target) != (PROFILE, TARGET):
        seen = f"{len(traces)} traces, the first of profile {traces[0].profile} on {traces[0].target}"
        raise TraceError(
            expected="a history that `fencepost cluster produce` or `consume` recorded, or no file",
            seen=seen,
            where=str(path),
        )
    return traces[0]


def _kept(path: Path) -> list[Trace]:
    traces: list[Trace] = []
    try:
        traces.extend(read_traces(path))
    except TraceError as error:
        if not traces or error.expected != CUT_LINE:
            raise
    return traces


def _empty() -> Trace:
    return Trace(
        trace_id=0,
        plan="",
        seed=0,
        target=TARGET,
        software_version=__version__,
        profile=PROFILE,
        claims=Claims(clock_uncertainty_ns=CLOCK_UNCERTAINTY_NS),
        concurrent_processes=True,
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One run at a time: two runs that end together must not lose each other's operations."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
