"""The record of a run against a real system: events and operations, on disk before anything depends on them.

Owns the lists, the file and the names of topics. Must not know clients or clusters. The run's topic is fresh
in a cluster that lives longer, so it has another name there than in the plan; the record has the plan's.

An invocation is a line of the file before its client may send it. So the history of a run that was killed can
be judged: `fencepost check FILE`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from attrs import evolve

from fencepost.run.record import Record, unfinished
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Event
from fencepost.traces.jsonlines import event_line, lines_of, operation_line
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import PlannedOperation
from fencepost.traces.trace import Trace


class RealRecord(Record):
    """What happened so far, named as in the plan."""

    def __init__(
        self, names: Mapping[str, str], now: Callable[[], int], file: BinaryIO | None = None
    ) -> None:
        """Nothing happened yet.

        Args:
            names: the plan's name of each topic, by the cluster's.
            now: the clock, nanoseconds of the trace.
            file: where it is written ahead; None: nowhere.
        """
        super().__init__()
        self.names, self.file, self._now = names, file, now
        # Op ids of list_offsets with an end that may be trusted.
        self.trusted_ends: set[int] = set()

    @classmethod
    def open(
        cls, path: Path | None, names: Mapping[str, str], head: Trace, now: Callable[[], int]
    ) -> "RealRecord":
        """A record that is written to a file.

        Args:
            path: of the file; None: it is not.
            names: the plan's name of each topic, by the cluster's.
            head: the trace without operations.
            now: the clock, nanoseconds of the trace.

        Raises:
            EnvironmentError_: if the file cannot be written.
        """
        if path is None:
            return cls(names, now)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
            for line in lines_of(head):
                file.write(line.encode() + b"\n")
            file.flush()
        except OSError as error:
            raise EnvironmentError_(
                expected="a file to write the history to", seen=error.strerror or str(error), where=str(path)
            ) from None
        return cls(names, now, file)

    @property
    def now(self) -> int:
        """Nanoseconds of the trace."""
        return self._now()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def _write(self, line: bytes) -> None:
        if self.file is not None:
            self.file.write(line + b"\n")
            self.file.flush()

    def recorded(self, event: Event) -> None:
        """Take one event down."""
        super().recorded(event)
        self._write(event_line(event))

    def invoke(self, operation: PlannedOperation) -> None:
        """A client is about to send an operation."""
        super().invoke(operation)
        _, time = self.invoked[operation.op_id]
        self._write(operation_line(unfinished(operation, time, Outcome.UNKNOWN)))

    def row_began(self, operation: Operation) -> None:
        """A client began an operation by itself, or has an answer to it; its topic is the cluster's."""
        known = operation.op_id in self.begun
        super().row_began(operation)
        if not known:
            _, time = self.begun[operation.op_id]
            row = evolve(operation, invoke_time=time, completion_time=None)
            self._write(operation_line(self._named(row)))

    def row_done(self, operation: Operation) -> Operation:
        """A client has finished an operation; its topic is the cluster's. Returns the row of the record."""
        row = super().row_done(self._named(operation))
        self._write(operation_line(row))
        return row

    def _named(self, row: Operation) -> Operation:
        names = self.names
        topic = names.get(row.topic or "", row.topic)
        records = tuple(evolve(record, topic=names.get(record.topic, record.topic)) for record in row.records)
        places = tuple(evolve(place, topic=names.get(place.topic, place.topic)) for place in row.positions)
        result = row.result
        if row.function is Function.APPEND and isinstance(result, str):
            result = " ".join(map(self._source, result.split()))
        return evolve(row, topic=topic, records=records, positions=places, result=result)

    def _source(self, place: str) -> str:
        """Where a record came from that a transaction wrote: TOPIC-PARTITION@OFFSET."""
        topic, _, rest = place.rpartition("-")
        return f"{self.names.get(topic, topic)}-{rest}"

    def history(self, known: Mapping[int, Operation]) -> tuple[Operation, ...]:
        """All operations by invoke time. known: of those under way, where their clients know more."""
        rows = super().history(known)
        named = (row if row.completion_time is not None else self._named(row) for row in rows)
        return tuple(evolve(row, strong=True) if row.op_id in self.trusted_ends else row for row in named)
