"""Errors that a correct broker cannot give.

Owns these rules.

- A broker accepts the sequence after the last one that it has of a producer (KIP-98). If the append before
  was acknowledged with acks=all, every leader has it; unless the producer expired, or what said so is gone
  with its records. Another append of a producer's same or a later number, or of a later epoch, could explain
  a refusal: then the rule is silent.
- Offsets of a group are unstable while a transaction that commits some is open (KIP-447), so for no longer
  than a transaction may be.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.progress.answers import Client, committed, found
from fencepost.checkers.verdict import Finding
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Function, Operation, Outcome

MILLISECOND = 1_000_000


def sequences_refused(client: Client) -> Iterator[Finding]:
    """Appends that were refused as out of order although they were next."""
    for log, appends in sorted(client.appends.items()):
        if client.may_lose(log) or client.may_remove(log):
            continue
        for one in appends:
            if one.error != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or one.completion_time is None:
                continue
            before = _predecessor(client, one, appends)
            if before is not None:
                yield found(
                    "next_sequence_refused",
                    log,
                    offset=-1 if before.offset is None else before.offset,
                    proof=(one, before),
                    expected=f"sequence {one.sequence} of producer {one.producer_id} to be accepted, for "
                    f"the one before it was acknowledged with acks=all to operation {before.op_id}",
                    seen=f"operation {one.op_id} was refused with {one.error}",
                )
                break


def _predecessor(client: Client, one: Operation, appends: list[Operation]) -> Operation | None:
    """The append whose acknowledgement makes this one's sequence the next; None if something else may."""
    if one.producer_id is None or one.producer_id < 0 or one.sequence is None or one.completion_time is None:
        return None
    earlier = [
        other
        for other in appends
        if other is not one
        and other.producer_id == one.producer_id
        and other.invoke_time <= one.completion_time + client.slack
    ]
    epoch, before = one.producer_epoch, None
    for other in earlier:
        if other.producer_epoch is None or epoch is None or other.sequence is None:
            return None
        if other.producer_epoch > epoch:
            return None
        if other.producer_epoch < epoch:
            continue
        if other.sequence >= one.sequence:
            return None
        if other.records and other.sequence + len(other.records) == one.sequence:
            before = other
    if before is None or not committed(before) or before.completion_time is None:
        return None
    heard = before.completion_time + client.slack < one.invoke_time
    known_for = one.completion_time + client.slack - before.invoke_time
    kept = known_for < client.claims.producer_expiry_ms * MILLISECOND
    return before if heard and kept else None


def offsets_stay_unstable(client: Client) -> Iterator[Finding]:
    """Groups whose offsets were unstable for longer than any transaction may be open."""
    bound = client.claims.transaction_timeout_ms + client.claims.stall_ms
    first: dict[tuple[str, str | None, int | None], Operation] = {}
    convicted = set()
    for one in client.operations:
        if one.function is Function.TXN or (one.function is Function.COMMIT and one.producer_id is not None):
            first.clear()
        if one.function is not Function.FETCH_COMMITTED or one.group is None or one.completion_time is None:
            continue
        place = one.group, one.topic, one.partition
        if one.error != ErrorCode.UNSTABLE_OFFSET_COMMIT:
            if one.outcome is Outcome.OK:
                first.pop(place, None)
            continue
        begun = first.setdefault(place, one)
        assert begun.completion_time is not None
        lasted = one.invoke_time - begun.completion_time - client.slack
        if lasted > bound * MILLISECOND and one.group not in convicted:
            convicted.add(one.group)
            log = None if one.topic is None or one.partition is None else (one.topic, one.partition)
            yield found(
                "offsets_stay_unstable",
                log,
                offset=-1,
                proof=(one, begun),
                expected=f"the offsets of group {one.group} to be stable {bound} ms after operation "
                f"{begun.op_id}, since when no transaction began",
                seen=f"operation {one.op_id} was refused with {one.error}, {lasted // MILLISECOND} ms later",
            )
