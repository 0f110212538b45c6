"""The record of a run against a real system: events and operations, on disk before anything depends on them.

Owns the lists, the file and the names of topics. Must not know clients or clusters. The run's topic is fresh
in a cluster that lives longer, so it has another name there than in the plan; the record has the plan's.

An invocation is a line of the file before its client may send it. So the history of a run that was killed can
be judged: `fencepost check FILE`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from attrs import define, evolve, field

from fencepost.campaign.observed.observed_state import ObservedState
from fencepost.campaign.run.recorder import unfinished
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import event_line, lines_of, operation_line
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import PlannedOperation
from fencepost.traces.trace import Trace

FIRST_EPOCH, UNNAMED = 0, -1
"""Of a partition; in an answer that names none."""


@define(eq=False, kw_only=True)
class RealRecord:
    """What happened so far."""

    names: Mapping[str, str]
    """The plan's name of each topic, by the cluster's."""
    file: BinaryIO | None = None
    """Where it is written ahead; None: nowhere."""
    events: list[Event] = field(factory=list)
    operations: list[Operation] = field(factory=list)
    """Completed ones."""
    invoked: dict[int, tuple[PlannedOperation, int, int]] = field(factory=dict)
    """Of those under way, by op id: the operation, its process and its invoke time."""
    begun: dict[int, tuple[Operation, int]] = field(factory=dict)
    """Rows that a client began by itself and that are not complete: as far as they are known, and their
    invoke time, by op id."""
    answered: dict[int, int] = field(factory=dict)
    """When the answer came to a row that is complete later, with its transaction, by op id."""
    trusted: set[int] = field(factory=set)
    """Op ids of list_offsets with an end that may be trusted."""

    @classmethod
    def open(cls, path: Path | None, names: Mapping[str, str], head: Trace) -> "RealRecord":
        """A record that is written to `path`. head: the trace without operations.

        Raises EnvironmentError_."""
        if path is None:
            return cls(names=names)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
            for line in lines_of(head):
                file.write(line.encode() + b"\n")
            file.flush()
        except OSError as error:
            raise EnvironmentError_(
                expected="a file to write the history to",
                seen=error.strerror or str(error),
                where=str(path),
            ) from None
        return cls(names=names, file=file)

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def _write(self, line: bytes) -> None:
        if self.file is not None:
            self.file.write(line + b"\n")
            self.file.flush()

    # ---- events

    def recorded(self, event: Event) -> None:
        """Take one event down."""
        self.events.append(event)
        self._write(event_line(event))

    def note(
        self, time: int, name: Name, *, node: int = -1, cause: str = "", detail: dict[str, Any] | None = None
    ) -> None:
        """An event of the run itself. time: nanoseconds of the trace."""
        text = msgspec.json.encode(detail).decode() if detail else ""
        self.recorded(Event(time=time, name=name, node=node, cause=cause, detail=text))

    # ---- operations

    def invoke(self, operation: PlannedOperation, time: int) -> None:
        """A client is about to send an operation.

        Args:
            operation: of the plan; its topic is the plan's.
            time: nanoseconds.
        """
        self.invoked[operation.op_id] = (operation, operation.process, time)
        row = unfinished(operation, time, Outcome.UNKNOWN)
        self._write(operation_line(evolve(row, process=operation.process)))

    def completed(self, operation: Operation, time: int) -> Operation:
        """A client has finished an operation.

        Args:
            operation: its topic is the cluster's.
            time: nanoseconds.

        Returns:
            The row of the record.
        """
        if operation.op_id in self.begun:
            process, (_, invoke_time) = operation.process, self.begun.pop(operation.op_id)
            time = self.answered.pop(operation.op_id, time)
        else:
            _, process, invoke_time = self.invoked.pop(operation.op_id)
        row = self._named(
            evolve(
                operation,
                process=process,
                invoke_time=invoke_time,
                completion_time=None if operation.completion_time is None else time,
                clock_id=0,
            )
        )
        self.operations.append(row)
        self._write(operation_line(row))
        return row

    def began(self, operation: Operation, time: int) -> None:
        """A client began an operation by itself; or an answer came to one that is complete later.

        Args:
            operation: the row so far; its topic is the cluster's.
            time: nanoseconds.
        """
        if operation.op_id in self.begun:
            self.begun[operation.op_id] = (operation, self.begun[operation.op_id][1])
            self.answered[operation.op_id] = time
            return
        self.begun[operation.op_id] = (operation, time)
        self._write(operation_line(self._named(evolve(operation, invoke_time=time, completion_time=None))))

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

    def history(self, undecided: Mapping[int, Operation]) -> tuple[Operation, ...]:
        """All operations by invoke time. undecided: rows of some under way, where their clients know more; of
        the others an append is unknown and a read has learnt nothing."""
        rows = [evolve(row, strong=True) if row.op_id in self.trusted else row for row in self.operations]
        for op_id, (planned, process, time) in self.invoked.items():
            outcome = Outcome.UNKNOWN if planned.function == "append" else Outcome.FAIL
            row = unfinished(planned, time, outcome)
            if op_id in undecided:
                row = self._named(evolve(undecided[op_id], invoke_time=time, completion_time=None))
            rows.append(evolve(row, process=process))
        rows += [self._named(evolve(row, invoke_time=time)) for row, time in self.begun.values()]
        return tuple(sorted(rows, key=lambda row: (row.invoke_time, row.op_id)))

    def trust(self, row: Operation, state: ObservedState) -> bool:
        """Whether this end may be trusted: ListOffsets waits for the high watermark to reach the leader's
        epoch (KIP-207), and the leader that answered still leads in that epoch, so that no other could have
        acknowledged anything meanwhile. An answer without an epoch (librdkafka's mock) is trusted in the
        first one, in which nobody else has led.

        Parameters:
          row: a list_offsets.
          state: what was seen after it had ended.
        """
        if row.function is not Function.LIST_OFFSETS or row.outcome is not Outcome.OK:
            return False
        assert row.topic is not None and row.partition is not None
        known = state.partition((row.topic, row.partition))
        epoch = FIRST_EPOCH if row.leader_epoch in (None, UNNAMED) else row.leader_epoch
        if (row.node, epoch) != (known.leader, known.leader_epoch):
            return False
        self.trusted.add(row.op_id)
        return True
