"""Records that clients sent, one by one, and the rows that they make together.

Owns what is known of a record. Must not know who found it out (client_record.py).
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from attrs import define, field

from fencepost.impl.log.batch.header import NO_PRODUCER_ID
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import (
    ACKS_NONE,
    Function,
    Operation,
    Outcome,
    Record,
    make_operation,
    make_record,
)


@define(eq=False)
class Sent:
    """One record that a client sent."""

    topic: str
    partition: int
    value: int
    """Its value id."""
    key: str | None
    process: int
    acks: int
    invoke_time: int
    request: int
    """Number of the last request that carried it; records of the same one are answered together."""
    place: int
    """In its batch."""
    number: int
    """In the order of first requests."""
    producer: int = NO_PRODUCER_ID
    """Id of the idempotent producer that sent it."""
    epoch: int = -1
    """That producer's epoch at the last attempt."""
    attempts: int = 1
    completion_time: int | None = None
    acknowledged: bool = False
    in_doubt: bool = False
    """Whether some attempt had no answer that tells."""
    error: ErrorCode = NO_ERROR
    """Of the last answer."""
    offset: int = -1
    leader_epoch: int = -1
    node: int = -1
    tombstone: bool = False

    @property
    def awaited(self) -> bool:
        """Whether its client waits for the answer to the last attempt."""
        return not (self.acknowledged or self.in_doubt) and self.completion_time is None

    @property
    def outcome(self) -> Outcome:
        """As far as is known now."""
        if self.acknowledged:
            return Outcome.OK
        return Outcome.UNKNOWN if self.in_doubt or self.completion_time is None else Outcome.FAIL


@define(eq=False)
class Taken:
    """What one produce request brought, so that it can be taken back."""

    sent: list[Sent] = field(factory=list)
    """Its records, in order."""
    fresh: list[Sent] = field(factory=list)
    """Those of them that no request before had brought."""
    before: list[tuple[tuple[Any, ...], Sent | None]] = field(factory=list)
    """Of each identity and content under which a fresh one is known: who was known under it before."""
    texts: list[int] = field(factory=list)
    """Value ids of which it brought the text."""
    alike: int = 0
    """Its records that are the same as another in all that can be seen."""

    def alone(self) -> bool:
        """Whether no other request has brought any of its records."""
        return len(self.fresh) == len(self.sent) and all(
            sent.attempts == 1 and not (sent.in_doubt or sent.acknowledged) for sent in self.fresh
        )


def rows_of(sent: Iterable[Sent]) -> Iterator[tuple[int, Operation]]:
    """The rows of appends, each with the number of its first record. sent: records, in any order."""

    def together(each: Sent) -> tuple[Any, ...]:
        """Equal for records of one row: their offsets follow one another, too."""
        fate = (each.request, each.outcome, each.completion_time, each.invoke_time, each.attempts)
        return (
            each.topic,
            each.partition,
            each.process,
            each.key,
            each.tombstone,
            *fate,
            each.offset - each.place if each.acknowledged else -1,
        )

    for _, group in groupby(sorted(sent, key=lambda each: (each.request, each.place)), together):
        records = list(group)
        yield min(each.number for each in records), _append(records[0], records)


def _append(first: Sent, sent: list[Sent]) -> Operation:
    placed = first.acknowledged and first.acks != ACKS_NONE
    return make_operation(
        op_id=0,
        process=first.process,
        function=Function.APPEND,
        invoke_time=first.invoke_time,
        completion_time=None if first.outcome is Outcome.UNKNOWN else first.completion_time,
        outcome=first.outcome,
        topic=first.topic,
        partition=first.partition,
        key=first.key,
        argument="tombstone" if first.tombstone else None,
        error=None if first.error is NO_ERROR else first.error.value,
        acks=first.acks,
        offset=first.offset if placed else None,
        leader_epoch=first.leader_epoch if placed else None,
        node=first.node,
        attempts=first.attempts,
        records=tuple(_record(each) for each in sent),
    )


def _record(sent: Sent) -> Record:
    return make_record(
        topic=sent.topic,
        partition=sent.partition,
        offset=sent.offset,
        value=sent.value,
        leader_epoch=sent.leader_epoch,
    )
