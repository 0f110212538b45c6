"""Consumer groups and transactions in words: members' requests and their answers, and what coordinators
report.

Owns the sentences, not yet escaped. Must not know when and where.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fencepost.traces.decoding import from_json
from fencepost.traces.events import OFFSET_DELETED, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome

MOST_NAMED = 8
"""Partitions that a line names."""


def group_detail(event: Event) -> dict[str, Any]:
    """The detail of a group event as an object; empty if it is not one."""
    try:
        facts = from_json(event.detail)
    except msgspec.DecodeError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _phase(event: Event) -> str:
    facts = group_detail(event)
    members = facts.get("members") or ()
    who = f"{len(members)} member{'' if len(members) == 1 else 's'}"
    return (
        f"group {facts.get('group')} is {event.cause}, generation {facts.get('generation')}, {who}: "
        f"{facts.get('why')}"
    )


def _expired(event: Event) -> str:
    facts = group_detail(event)
    offset = f"the offset of {facts.get('topic')}-{facts.get('partition')}"
    if event.cause == OFFSET_DELETED:
        return f"deletes {offset} of group {facts.get('group')}, as requested"
    return f"lets {offset} expire, group {facts.get('group')} is {event.cause}"


def _transaction_phase(event: Event) -> str:
    facts = group_detail(event)
    partitions = facts.get("partitions") or ()
    named = ", ".join(map(str, partitions[:MOST_NAMED])) or "no partition yet"
    why = f": {facts['why']}" if facts.get("why") else ""
    return (
        f"transaction {facts.get('transactional_id')} is {event.cause}, producer {facts.get('producer_id')} "
        f"in epoch {facts.get('producer_epoch')}, {named}{why}"
    )


def _marker(event: Event) -> str:
    facts = group_detail(event)
    end = "commit" if facts.get("commit") else "abort"
    marker = (
        f"the {end} marker of producer {facts.get('producer_id')} in epoch {facts.get('producer_epoch')}, "
        f"from coordinator epoch {facts.get('coordinator_epoch')}"
    )
    if event.name is Name.MARKER_REFUSED:
        return f"refuses {marker}: {facts.get('error')}"
    return f"appends {marker} at offset {event.offset}"


GROUP_EVENT_WORDS: dict[Name, Callable[[Event], str]] = {
    Name.GROUPS_LOADED: lambda e: (
        f"coordinates its groups in epoch {e.leader_epoch}, having read up to offset {e.offset}"
    ),
    Name.GROUPS_UNLOADED: lambda e: "coordinates its groups no more",
    Name.GROUP_PHASE: _phase,
    Name.GROUP_OFFSET_EXPIRED: _expired,
    Name.GROUP_REMOVED: lambda e: f"group {e.detail} has ended",
    Name.TRANSACTIONS_LOADED: lambda e: (
        f"coordinates its transactions in epoch {e.leader_epoch}, having read up to offset {e.offset}"
    ),
    Name.TRANSACTIONS_UNLOADED: lambda e: "coordinates its transactions no more",
    Name.TRANSACTION_PHASE: _transaction_phase,
    Name.MARKER_WRITTEN: _marker,
    Name.MARKER_REFUSED: _marker,
}


def _positions(operation: Operation) -> str:
    if operation.topic is not None:
        offset = "nothing" if operation.offset is None else str(operation.offset)
        return f"{operation.topic}-{operation.partition} {offset}"
    named = [
        f"{spot.topic}-{spot.partition}" + (f" {spot.offset}" if spot.offset >= 0 else "")
        for spot in operation.positions[:MOST_NAMED]
    ]
    more = len(operation.positions) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def group_request_in_words(operation: Operation) -> str:
    """A member's request."""
    generation = "" if operation.generation is None else f", generation {operation.generation}"
    group = f"group {operation.group}{generation}"
    if operation.function is Function.COMMIT:
        how = f" ({operation.argument})" if operation.argument else ""
        return f"commit{how} {_positions(operation)}, {group}"
    if operation.function is Function.JOIN:
        return f"join group {operation.group}"
    if operation.function is Function.FETCH_COMMITTED:
        return f"read back what group {operation.group} has committed"
    return f"{operation.function.value.replace('_', ' ')}, {group}"


def group_answer_in_words(operation: Operation) -> str:
    """The answer to a member, if it is more than yes or no; "" otherwise."""
    if operation.outcome is not Outcome.OK:
        return ""
    if operation.function is Function.JOIN:
        return f"generation {operation.generation}: {_positions(operation) or 'no partitions'}"
    if operation.function is Function.FETCH_COMMITTED:
        facts = ", ".join(
            f"{spot.topic}-{spot.partition} {'nothing' if spot.offset < 0 else spot.offset}"
            for spot in operation.positions[:MOST_NAMED]
        )
        return facts or _positions(operation)
    if operation.function is Function.POLL and operation.records:
        read: dict[str, list[int]] = {}
        for record in operation.records:
            read.setdefault(f"{record.topic}-{record.partition}", []).append(record.offset)
        return "offsets " + ", ".join(f"{min(o)} to {max(o)} of {name}" for name, o in sorted(read.items()))
    return ""
