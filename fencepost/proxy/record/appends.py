"""Appends: from the request that carries a batch first to the answer that settles it.

Owns which requests are attempts of the same append, and its outcome. Must not know connections. A batch of an
idempotent producer is known again by producer id, epoch and sequence; any other by its checksum, as long as
no attempt was acknowledged. The invocation is a row before the request leaves; the whole is a row when the
outcome is known. An append with an attempt of unknown fate stays unknown unless a later attempt is
acknowledged. One that was refused is `fail` once nobody tries it again for RETRIED_NS: a client tries again
after most refusals, with the same batch.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from fencepost.impl.log.batch.header import NO_PRODUCER_ID, BatchHeader
from fencepost.proxy.record.lines import Lines, rows_of, run_text
from fencepost.traces.kafka_names.outcomes import ErrorCode, outcome_of_attempt
from fencepost.traces.operations import ACKS_NONE, Outcome

RETRIED_NS = 150_000_000_000
"""The default of delivery.timeout.ms is 120 s; after that a producer gives a batch up."""
MOST_OPEN = 100_000
"""Appends without an outcome, and acknowledged ones that a client may send again: the oldest are
forgotten."""
FINAL = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)  # fmt: skip
"""Refusals after which no client sends the same batch again."""
Identity = tuple[Any, ...]


def error_code(name: str) -> ErrorCode:
    """Kafka's error of this name; one that this project has no name for says nothing."""
    return ErrorCode[name] if name in ErrorCode.__members__ else ErrorCode.UNKNOWN_SERVER_ERROR


@define(eq=False, kw_only=True)
class Append:
    """A batch, or the part of it with one key."""

    op_id: int
    process: int
    time: int
    topic: str
    partition: int
    values: Sequence[int]
    acks: int
    header: BatchHeader
    # Its first record's place in the batch.
    first: int
    key: str | None
    node: int
    attempts: int = 1
    # Whether some attempt had no answer, or one that leaves open what happened.
    in_doubt: bool = False
    # What the last attempt proved, if it proved that nothing was written.
    refused: ErrorCode | None = None
    refused_time: int = 0
    done: bool = False

    def row(self) -> dict[str, Any]:
        """What both of its rows say."""
        row: dict[str, Any] = {
            "op_id": self.op_id,
            "process": self.process,
            "function": "append",
            "invoke_time": self.time,
            "topic": self.topic,
            "partition": self.partition,
            "acks": self.acks,
            "node": self.node,
        }
        if self.key is not None:
            row["key"] = self.key
        if self.attempts > 1:
            row["attempts"] = self.attempts
        header = self.header
        if header.producer_id != NO_PRODUCER_ID:
            row["session"] = max(0, header.producer_epoch)
            row["producer_id"], row["producer_epoch"] = header.producer_id, header.producer_epoch
            row["sequence"] = (header.base_sequence + self.first) & 0x7FFFFFFF
        return row


@define(eq=False)
class Appends:
    """lines: where rows go."""

    lines: Lines
    # Whether a plain producer tried again after an attempt of unknown fate.
    repeated: bool = False
    # Records that a broker has acknowledged.
    acknowledged: int = 0
    # By identity of their batch; an empty list: acknowledged.
    _open: "OrderedDict[Identity, list[Append]]" = field(factory=OrderedDict)
    # By op id, in the order in which they were refused.
    _refused: "OrderedDict[int, Append]" = field(factory=OrderedDict)

    @property
    def unknown(self) -> int:
        """How many have an attempt of unknown fate."""
        return sum(one.in_doubt for batch in self._open.values() for one in batch)

    def sent(self, identity: Identity, made: list[Append]) -> list[Append]:
        """A request carries a batch: its appends, which are `made` unless it is another attempt of known
        ones."""
        known = self._open.get(identity)
        if known is not None:
            self._open.move_to_end(identity)
            for append in known:
                append.attempts += 1
                append.node = made[0].node
                append.refused = None
                self._refused.pop(append.op_id, None)
                if identity[0] == "plain" and append.in_doubt:
                    self.repeated = True
            return known
        if made[0].acks != ACKS_NONE:
            self._open[identity] = made
            if len(self._open) > MOST_OPEN:
                self._forget()
        for append in made:
            row = append.row() | {"outcome": "unknown", "runs": self._runs(append, -1)}
            if append.acks == ACKS_NONE:
                row |= {"outcome": "ok", "completion_time": append.time}
            self.lines.operation(row)
        return made

    def answered(
        self,
        identity: Identity,
        appends: list[Append],
        time: int,
        error: str,
        base_offset: int,
        log_start: int,
    ) -> None:
        """A broker has answered a batch.

        Args:
            identity: of the batch.
            appends: the rows that wait for it.
            time: nanoseconds.
            error: Kafka's name; "": none.
            base_offset: of the batch, as answered.
            log_start: of the partition, as answered.
        """
        code = error_code(error)
        outcome = outcome_of_attempt(code, appended=base_offset >= 0)
        for append in appends:
            if append.done:
                continue
            if outcome is Outcome.OK:
                self._finish(
                    append, "ok", time, base_offset + append.first if base_offset >= 0 else -1, log_start
                )
                self.acknowledged += len(append.values)
            elif outcome is Outcome.UNKNOWN:
                append.in_doubt = True
            elif not append.in_doubt:
                append.refused, append.refused_time = code, time
                if code in FINAL:
                    self._finish(append, "fail", time)
                else:
                    self._refused[append.op_id] = append
        if outcome is Outcome.OK and identity in self._open:
            # sent again although it was acknowledged: nothing new, if the broker knows its producers
            if identity[0] == "plain":
                del self._open[identity]
            else:
                self._open[identity] = []
        elif code in FINAL:
            self._open.pop(identity, None)

    def lost(self, appends: list[Append]) -> None:
        """Nobody will say what became of an attempt."""
        for append in appends:
            append.in_doubt = True
            self._refused.pop(append.op_id, None)

    def tick(self, time: int) -> None:
        """Time has gone by: what was refused and not tried again has failed."""
        while self._refused:
            append = next(iter(self._refused.values()))
            if time - append.refused_time < RETRIED_NS:
                return
            del self._refused[append.op_id]
            self._finish(append, "fail", append.refused_time)

    def close(self) -> None:
        """Nothing more comes."""
        for append in self._refused.values():
            self._finish(append, "fail", append.refused_time)
        self._refused.clear()

    @property
    def earliest(self) -> int | None:
        """A completion of this time or later may still be written."""
        return min((one.refused_time for one in self._refused.values()), default=None)

    def _finish(self, append: Append, outcome: str, time: int, offset: int = -1, log_start: int = -1) -> None:
        append.done = True
        row = append.row() | {"outcome": outcome, "completion_time": time}
        if offset >= 0:
            row["offset"] = offset
        if log_start >= 0:
            row["log_start_offset"] = log_start
        if append.refused is not None and outcome == "fail":
            row["error"] = append.refused.value
        row["runs"] = self._runs(append, offset)
        self.lines.operation(row)

    def _runs(self, append: Append, offset: int) -> Any:
        return rows_of([run_text(append.topic, append.partition, offset, append.values)])

    def _forget(self) -> None:
        _, forgotten = self._open.popitem(last=False)
        for append in forgotten:
            self._refused.pop(append.op_id, None)
