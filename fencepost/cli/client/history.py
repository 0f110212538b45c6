"""What clients of a real cluster did, as one trace in a file: each run of a client tool adds its operations.

Owns the file: `--record FILE` of `produce` and `consume`. Must not know clients. The runs of one FILE are judged together: a consumer's history without its
producers' would show records that nobody sent. Each run has processes and a clock of its own; clocks of one machine err by CLOCK_UNCERTAINTY_NS at most.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from fencepost import __version__
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Claims, Trace

CLOCK_UNCERTAINTY_NS = 10_000_000
"""Two processes read the wall clock when they start and count on from there: the system may have slewed it in between."""
PROFILE, TARGET = "client", "processes"
REASON = "a producer retried appends of unknown outcome without idempotence"


@frozen(kw_only=True)
class Recorded:
    """What stands in the file now. operations: of all runs; strangers: records read in this run that no run recorded the sending of."""

    operations: int
    strangers: int


def add_run(path: Path, operations: Sequence[Operation], *, duplicates: bool = False) -> Recorded:
    """Add the operations of one run, with its own numbering from 0 of op ids and processes. duplicates: it may have written records twice.

    Raises TraceError for a file that holds something else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        before = _read(path)
        known = before.operations
        first_op = 1 + max((one.op_id for one in known), default=-1)
        first_process = 1 + max((one.process for one in known), default=-1)
        clock = 1 + max((one.clock_id for one in known), default=-1)
        added = tuple(
            evolve(one, op_id=first_op + one.op_id, process=first_process + one.process, clock_id=clock)
            for one in operations
        )
        everything = sorted((*known, *added), key=lambda one: (one.invoke_time, one.op_id))
        trace = evolve(before, operations=tuple(everything), digest="")
        if duplicates and not before.claims.duplicates:
            trace = evolve(trace, claims=evolve(before.claims, duplicates=True, reasons=(REASON,)))
        draft = path.with_name(path.name + ".draft")
        write_traces(draft, [evolve(trace, digest=digest_of(trace))])
        draft.replace(path)
    return Recorded(operations=len(everything), strangers=_strangers(everything, added))


def check_record(path: Path) -> None:
    """Fail before the work, not after it, if the file holds something else. Raises TraceError."""
    if path.exists():
        _read(path)


def _strangers(everything: Sequence[Operation], added: Sequence[Operation]) -> int:
    sent = {record.value for one in everything if one.function is Function.APPEND for record in one.records}
    return sum(
        record.value not in sent for one in added if one.function is Function.POLL for record in one.records
    )


def _read(path: Path) -> Trace:
    traces = list(read_traces(path)) if path.exists() and path.stat().st_size else [_empty()]
    if len(traces) != 1 or (traces[0].profile, traces[0].target) != (PROFILE, TARGET):
        seen = f"{len(traces)} traces, the first of profile {traces[0].profile} on {traces[0].target}"
        raise TraceError(
            expected="a history that `fencepost produce` or `consume` recorded, or no file",
            seen=seen,
            where=str(path),
        )
    return traces[0]


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
    """One run at a time: two that end together must not lose each other's operations."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
