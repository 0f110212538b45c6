"""The record of a run: events and operations, as they happen.

Owns the lists. Must not know a clock, clients or clusters.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from attrs import evolve

from fencepost.impl.client.attempt import Attempt, complete
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, remake_operation
from fencepost.traces.plan import PlannedOperation


class Record:
    """What happened so far."""

    def __init__(self) -> None:
        # In the order in which they were heard of.
        self.events: list[Event] = []
        # Completed ones.
        self.operations: list[Operation] = []
        # Planned ones under way and when they were invoked, by op id. Times are nanoseconds of the trace.
        self.invoked: dict[int, tuple[PlannedOperation, int]] = {}
        # Rows under way that clients began by themselves, as far as they are known, and when; by op id.
        self.begun: dict[int, tuple[Operation, int]] = {}
        # When the answer came to a row that is complete later, with its transaction; by op id.
        self.answered: dict[int, int] = {}

    @property
    def now(self) -> int:
        """Nanoseconds of the trace."""
        raise NotImplementedError

    def recorded(self, event: Event) -> None:
        """Take one event down."""
        self.events.append(event)

    def note(
        self, name: Name, *, node: int = -1, cause: str = "", detail: dict[str, Any] | None = None
    ) -> None:
        """Record an event of the run itself.

        Args:
            name: the event.
            node: where; -1: nowhere in particular.
            cause: its cause.
            detail: further values.
        """
        text = msgspec.json.encode(detail).decode() if detail else ""
        self.recorded(Event(time=self.now, name=name, node=node, cause=cause, detail=text))

    def invoke(self, operation: PlannedOperation) -> None:
        """A client is about to begin an operation."""
        self.invoked[operation.op_id] = operation, self.now

    def row_began(self, operation: Operation) -> None:
        """A client began an operation by itself; or an answer came to one that is complete later.

        Args:
            operation: the row so far.
        """
        if operation.op_id in self.begun:
            self.begun[operation.op_id] = operation, self.begun[operation.op_id][1]
            self.answered[operation.op_id] = self.now
        else:
            self.begun[operation.op_id] = operation, self.now

    def row_done(self, operation: Operation) -> Operation:
        """A client finished an operation.

        Args:
            operation: the complete row, with times of the client's.

        Returns:
            the row of the record.
        """
        under_way = self.begun if operation.op_id in self.begun else self.invoked
        _, invoke_time = under_way.pop(operation.op_id)
        answered = self.answered.pop(operation.op_id, self.now)
        row = remake_operation(
            operation,
            invoke_time=invoke_time,
            completion_time=None if operation.completion_time is None else answered,
            strong=self.trusted(operation),
        )
        self.operations.append(row)
        return row

    def trusted(self, operation: Operation) -> bool:
        """Whether the row claims real-time consistency."""
        return False

    def crashed(self, planned: PlannedOperation, session: int) -> None:
        """A consumer's process ended at once.

        Args:
            planned: as the plan has it.
            session: how often the process had begun before.
        """
        self.operations.append(
            Operation(
                op_id=planned.op_id,
                process=planned.process,
                session=session,
                function=Function.CRASH,
                invoke_time=self.now,
                completion_time=self.now,
                outcome=Outcome.OK,
            )
        )

    def history(self, known: Mapping[int, Operation]) -> tuple[Operation, ...]:
        """All operations by invoke time. Of those under way an append is unknown and a read has learnt
        nothing.

        Args:
            known: rows of some of them, where their clients know more.
        """
        rows = [*self.operations]
        for op_id, (planned, time) in self.invoked.items():
            outcome = Outcome.UNKNOWN if planned.function == "append" else Outcome.FAIL
            rows.append(
                evolve(known[op_id], invoke_time=time, completion_time=None)
                if op_id in known
                else unfinished(planned, time, outcome)
            )
        rows += [evolve(row, invoke_time=time) for row, time in self.begun.values()]
        return tuple(sorted(rows, key=lambda row: (row.invoke_time, row.op_id)))


def unfinished(planned: PlannedOperation, invoke_time: int, outcome: Outcome) -> Operation:
    """The row of an operation that nobody answered.

    Args:
        planned: as the plan has it.
        invoke_time: nanoseconds.
        outcome: what is known of it.
    """
    attempt = Attempt(planned, TopicPartition(planned.topic, planned.partition))
    row = complete(planned.process, attempt, outcome).operation
    return evolve(row, invoke_time=invoke_time, completion_time=None)
