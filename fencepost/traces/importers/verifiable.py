"""What Kafka's VerifiableProducer and VerifiableConsumer print, as appends and polls.

Owns the events of these programs. Must not know files, judges.

An event has the time of its completion only. So a send may have begun with the first event, and an error may
have come after the record was written: its outcome is unknown. An error names no partition: it may have been
any one of the topic. Records that are read one after another are one poll for each partition; what they pass
over was not there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, evolve, field

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Tell
from fencepost.traces.importers.entry_places import is_integer
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome, Record

SUCCESS, ERROR, DATA = "producer_send_success", "producer_send_error", "record_data"
SILENT = frozenset({"tool_data", "records_consumed"})
"""Events that say nothing more of a log."""
BOUNDARIES = frozenset({"startup_complete", "shutdown_complete", "partitions_assigned", "partitions_revoked"})
"""After them a consumer may read from another offset."""
PRODUCER, CONSUMER = 0, 1
NANOSECONDS = 10**6
"""In the milliseconds of an event."""


@define
class VerifiableHistory:
    """Turns events into operations."""

    where: str
    operations: list[Operation] = field(factory=list)
    # Errors, which wait until all partitions are known: topic, value, time and words.
    errors: list[tuple[str, int, int, str]] = field(factory=list)
    # The records that are being read, by partition, and when the last one came.
    reading: dict[tuple[str, int], list[Record]] = field(factory=dict)
    read_until: int = 0
    # When the consumer did something before that.
    read_from: int | None = None
    # Partitions by topic.
    partitions: dict[str, set[int]] = field(factory=dict)
    # Texts that are no numbers, with the number that stands for each.
    texts: dict[str, int] = field(factory=dict)
    left_out: Counter[str] = field(factory=Counter)
    first: int | None = None

    def add(self, row: Any, line: int) -> None:
        """Take in the next event.

        Args:
            row: a JSON value.
            line: its number in the file.

        Raises:
            TraceError: for what it does not understand.
        """
        at = f"{self.where}:{line}"
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise TraceError(expected="an event with a name", seen=repr(row)[:80], where=at)
        if not is_integer(row.get("timestamp")):
            raise TraceError(
                expected="a timestamp in milliseconds", seen=repr(row.get("timestamp")), where=at
            )
        time, name = row["timestamp"] * NANOSECONDS, row["name"]
        self.first = time if self.first is None else min(self.first, time)
        if name == SUCCESS:
            self._sent(self._record(row, at), time)
        elif name == ERROR:
            self.errors.append((str(row.get("topic")), self._value(row, at), time, str(row.get("exception"))))
        elif name == DATA:
            self._read(self._record(row, at), time)
        elif name in BOUNDARIES:
            self._polled()
            self.read_from = time
        elif name not in SILENT:
            self.left_out[name] += 1

    def _value(self, row: dict[str, Any], at: str) -> int:
        value = row.get("value")
        if not isinstance(value, str):
            raise TraceError(expected="a text as value", seen=repr(value), where=at)
        if value.isdecimal() and value.isascii() and len(value) < 19 and str(int(value)) == value:
            return int(value)
        return self.texts.setdefault(value, -1 - len(self.texts))

    def _record(self, row: dict[str, Any], at: str) -> Record:
        topic: Any = row.get("topic")
        partition: Any = row.get("partition")
        offset: Any = row.get("offset")
        known = isinstance(topic, str) and is_integer(partition) and is_integer(offset)
        if not known or partition < 0 or offset < 0:
            raise TraceError(
                expected="topic, partition and offset of a record",
                seen=f"{topic!r}, {partition!r}, {offset!r}",
                where=at,
            )
        self.partitions.setdefault(topic, set()).add(partition)
        return Record(topic=topic, partition=partition, offset=offset, value=self._value(row, at))

    def _sent(self, record: Record, time: int) -> None:
        self.operations.append(
            Operation(
                op_id=0,
                process=PRODUCER,
                function=Function.APPEND,
                invoke_time=time,
                completion_time=time,
                outcome=Outcome.OK,
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                acks=ACKS_ALL,
                records=(record,),
            )
        )

    def _read(self, record: Record, time: int) -> None:
        found = self.reading.setdefault((record.topic, record.partition), [])
        if found and record.offset <= found[-1].offset:
            self._polled()  # it went back: another poll, or another consumer
            found = self.reading.setdefault((record.topic, record.partition), [])
        found.append(record)
        self.read_until = max(self.read_until, time)

    def _polled(self) -> None:
        for (topic, partition), records in self.reading.items():
            self.operations.append(
                Operation(
                    op_id=0,
                    process=CONSUMER,
                    function=Function.POLL,
                    invoke_time=-1 if self.read_from is None else self.read_from,
                    completion_time=self.read_until,
                    outcome=Outcome.OK,
                    topic=topic,
                    partition=partition,
                    offset=records[0].offset,
                    records=tuple(records),
                )
            )
        if self.reading:
            self.reading, self.read_from = {}, self.read_until

    def _unknown(self, first: int) -> Iterator[Operation]:
        """An append of unknown outcome to each partition that a failed send may have meant."""
        for topic, value, time, error in self.errors:
            for partition in sorted(self.partitions.get(topic, {0})):
                record = Record(topic=topic, partition=partition, offset=-1, value=value)
                yield Operation(
                    op_id=0,
                    process=PRODUCER,
                    function=Function.APPEND,
                    invoke_time=first,
                    completion_time=time,
                    outcome=Outcome.UNKNOWN,
                    topic=topic,
                    partition=partition,
                    error=error,
                    acks=ACKS_ALL,
                    records=(record,),
                )

    def all(self, tell: Tell) -> tuple[Operation, ...]:
        """All operations. tell: is called with what was assumed and left out."""
        self._polled()
        first = self.first or 0
        begun = [
            evolve(one, invoke_time=first)
            if one.function is Function.APPEND or one.invoke_time < 0
            else evolve(one, invoke_time=min(one.invoke_time, one.completion_time or first))
            for one in self.operations
        ]
        tell(f"{self.where}: sends are taken as sends with acks=all, the default of VerifiableProducer")
        if self.left_out:
            names = ", ".join(f"{count} {name}" for name, count in sorted(self.left_out.items()))
            tell(f"{self.where}: events without a group or a record are left out: {names}")
        rows = (*begun, *self._unknown(first))
        return tuple(evolve(row, op_id=op_id) for op_id, row in enumerate(rows))


def verifiable_operations(rows: Iterable[tuple[Any, int]], where: str, tell: Tell) -> tuple[Operation, ...]:
    """The operations of such an output. Raises TraceError with `where` and the line."""
    history = VerifiableHistory(where)
    for row, line in rows:
        history.add(row, line)
    return history.all(tell)
