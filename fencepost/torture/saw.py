"""What the application of a run saw, kept next to what brokers recorded.

Owns the files and how the times of both become one. Must not know what is a bug.

    SEED.jsonl           the brokers' record with the application's events: `fencepost show` draws both
    SEED.events          the application's events (docs/reference/events.md); at_ns: a monotonic time
    SEED.commands.jsonl  every command with its answer, and the driver's events, as lines of its protocol
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve

from fencepost.application.event_columns import read_events
from fencepost.application.event_files import SUFFIX
from fencepost.application.event_lines import VERSION
from fencepost.checkers.application.application_judge import Claims
from fencepost.checkers.application.recorded import trace_of_events
from fencepost.torture.at_brokers.heard import time_of
from fencepost.torture.driver_process import Command, Event
from fencepost.torture.producing import Transaction
from fencepost.traces.digest import digest_of
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.trace import Trace

COMMANDS = ".commands.jsonl"
PARTITIONS = ("assigned", "revoked", "lost")
"""Events of drivers about partitions, which have the same names in files of events."""
Timed = tuple[int, dict[str, Any]]


def keep(
    path: Path,
    trace: Trace,
    commands: Sequence[Command],
    events: Sequence[Event],
    transactions: Sequence[Transaction],
    clock: Sequence[tuple[int, int]],
) -> None:
    """Write the three files.

    Args:
        path: of the trace.
        trace: what the brokers recorded.
        commands: of the run, in the order in which they were sent.
        events: of its driver.
        transactions: of the run: what was sent in one is acknowledged once it was committed.
        clock: pairs of the same moment, monotonic and of the trace, in nanoseconds, ascending.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(COMMANDS).write_bytes(b"".join(_raw(commands, events)))
    lines = _numbered(_lines(commands, events, transactions))
    file = path.with_suffix(SUFFIX)
    file.write_bytes(b"".join(msgspec.json.encode(line | {"at_ns": at}) + b"\n" for at, line in lines))
    read = read_events([file])
    lives = tuple(evolve(life, file=Path(life.file).name) for life in read.lives)
    added = trace_of_events(evolve(read, lives=lives), Claims()).events
    times = [time_of(at, clock) for at, _ in lines]
    headers = len(added) - len(times)
    stamped = (
        evolve(event, time=times[max(0, number - headers)] if times else 0)
        for number, event in enumerate(added)
    )
    joined = evolve(trace, events=(*trace.events, *stamped))
    write_traces(path, [evolve(joined, digest=digest_of(joined))])


def _raw(commands: Sequence[Command], events: Sequence[Event]) -> Iterator[bytes]:
    rows: list[Timed] = []
    for command in commands:
        words = {"id": command.number, "command": command.name, "client": command.client, **command.fields}
        times = {"sent_ns": command.sent_ns, "answered_ns": command.answered_ns}
        rows.append((command.sent_ns, {**words, **times, "answer": command.answer}))
    rows += [(one.at_ns, {**one.fields, "seen_ns": one.at_ns}) for one in events]
    for _, row in sorted(rows, key=lambda one: one[0]):
        yield msgspec.json.encode(row) + b"\n"


def _numbered(lines: Iterator[Timed]) -> list[Timed]:
    """In the order of their times; each process counts its own."""
    count: Counter[str] = Counter()
    made = []
    for at, line in sorted(lines, key=lambda one: one[0]):
        made.append((at, line | {"n": count[line["process"]]}))
        count[line["process"]] += 1
    return made


def _lines(
    commands: Sequence[Command], events: Sequence[Event], transactions: Sequence[Transaction]
) -> Iterator[Timed]:
    within = {append.number: one for one in transactions for append in one.appends}
    for command in commands:
        line = {"process": command.client}
        if command.name == "open":
            group = command.fields.get("config", {}).get("group")
            yield (
                command.sent_ns,
                {**line, "event": "started", "version": VERSION} | ({"group": group} if group else {}),
            )
        elif command.name == "append":
            yield (
                command.sent_ns,
                {**line, "event": "sent", "id": command.number, "topic": command.fields["topic"]},
            )
            yield from _result(command, within.get(command.number), line)
        elif command.ok and command.name in ("poll", "commit") and command.answered_ns is not None:
            polled = command.name == "poll"
            for row in (command.answer or {}).get("records" if polled else "offsets") or ():
                for kind in ("received", "processed") if polled else ("committed",):
                    where = {**_place(row), "offset": row["offset"]}
                    if row["offset"] >= 0:
                        yield command.answered_ns, {**line, "event": kind, **where}
    opened = {command.client for command in commands if command.name == "open"}
    for event in events:
        client = event.fields.get("client")
        for row in (event.fields.get("partitions") or ()) if client in opened else ():
            if event.fields["event"] in PARTITIONS:
                yield event.at_ns, {"process": client, "event": event.fields["event"], **_place(row)}


def _result(command: Command, transaction: Transaction | None, line: dict[str, str]) -> Iterator[Timed]:
    """What became of a send, if that is known."""
    end = command if transaction is None else transaction.end
    if end is None or end.answered_ns is None or command.answered_ns is None:
        return
    at = max(end.answered_ns, command.answered_ns)
    known = transaction is None or transaction.ended == "committed"
    offset = (command.answer or {}).get("offset")
    if command.ok and known and offset is not None and offset >= 0:
        where = {**_place(command.fields), "offset": offset}
        yield at, {**line, "event": "acknowledged", "id": command.number, **where}
    elif not command.ok or (transaction is not None and transaction.ended == "aborted"):
        why = command.error or "its transaction was aborted"
        yield at, {**line, "event": "failed", "id": command.number, "error": why}


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"topic": row["topic"], "partition": row["partition"]}
