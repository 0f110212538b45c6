"""Porcupine on a sample of the traces that bench/mine.py mines: processor seconds per trace, in one process
on one core.

    python bench/mine_peer.py FOLDER [--traces 80] [--limit 2]

Each log of a trace is one history for the model `log` of bench/peers/porcupine: appends (not acknowledged by
all: of unknown outcome; failed: left out), and polls of records, which claim an end only where their reply is
a strong one. That is what the log check asks of the log's order in time, without epochs, batches that tear,
allowed loss, retention, compaction and transactions; a trace with any of these is left out, and so is what
the other checks ask.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

from checkers import answers_of, build
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace


def fits(trace: Trace) -> bool:
    """Whether the model can say all of the trace's logs."""
    claims = trace.claims
    plain = not (claims.loss or claims.content_by_epoch or claims.retention or claims.compacted)
    return plain and not claims.duplicates and not any(o.positions for o in trace.operations)


def row(operation: Operation) -> dict[str, Any] | None:
    """One operation as the harness reads it; None for one that says nothing of a log."""
    appends, ok = operation.function is Function.APPEND, operation.outcome is Outcome.OK
    reads = operation.function is Function.POLL and ok and operation.completion_time is not None
    if not (appends and operation.outcome is not Outcome.FAIL and operation.records) and not reads:
        return None
    values = [record.value for record in operation.records]
    offsets = [record.offset for record in operation.records]
    said = operation.end_offset if operation.strong and operation.end_offset is not None else -1
    return {
        "process": operation.process,
        "function": "append" if appends else "poll",
        "argument": values if appends else [offsets[0] if offsets else 0],
        "records": [] if appends else values,
        "result": (operation.offset or 0) if appends else said,
        "invoke": operation.invoke_time,
        "complete": operation.completion_time or 0,
        "unknown": appends and not (ok and operation.acks == ACKS_ALL),
    }


def histories_of(trace: Trace) -> list[list[dict[str, Any]]]:
    """The trace's logs."""
    logs: dict[tuple[str | None, int | None], list[dict[str, Any]]] = defaultdict(list)
    for operation in trace.operations:
        told = row(operation)
        if told is not None:
            logs[operation.topic, operation.partition].append(told)
    return list(logs.values())


def main() -> None:
    """Sample, ask, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=int, default=80)
    parser.add_argument("--limit", type=float, default=2.0, help="processor seconds for one log")
    options = parser.parse_args()
    binary = build()
    if binary is None:
        raise SystemExit(2)
    store = TraceStore.open(options.folder)
    traces = [trace for trace in map(store.read, range(options.traces)) if fits(trace)]
    histories = [history for trace in traces for history in histories_of(trace)]
    found = answers_of("log", histories, binary, options.limit)
    told = ", ".join(f"{found.answers.count(answer)} {answer}" for answer in sorted(set(found.answers)))
    seconds = sum(found.seconds)
    decided = sum(
        one for one, answer in zip(found.seconds, found.answers, strict=True) if answer != "Unknown"
    )
    print(
        f"{len(traces)} of {options.traces} traces, {len(histories)} logs ({told}), "
        f"{sum(map(len, histories))} operations: {seconds:.3f} processor seconds,"
        f" {seconds / len(traces) * 1e6:,.0f} us per trace ({decided / len(traces) * 1e6:,.0f} without what "
        f"it left unknown), {found.mebibytes:.0f} MiB"
    )


if __name__ == "__main__":
    main()
