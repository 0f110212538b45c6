"""COMPACTION: records that compaction removed. Compaction may remove every record of a key except the last
one (L4). So a topic that is only compacted keeps that record until the end.

Owns latest_value_lost.
"""

from collections.abc import Iterable

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Trace

TOMBSTONE = "tombstone"


def judge_compaction(findings: Findings, trace: Trace, compacted: frozenset[str]) -> None:
    """Look for the last record of each key.

    Args:
        findings: receives the findings.
        trace: the trace.
        compacted: topics that only compaction removes records from, by the plan.
    """
    changed = {event.topic for event in trace.events if event.name is Name.TOPIC_CONFIGURED}
    deleted = {one.topic for one in trace.operations if one.function is Function.DELETE_RECORDS}
    kept = compacted - changed - deleted
    if kept and not trace.claims.loss and not trace.claims.assumption_broken:
        _latest(
            findings,
            trace.operations,
            [event for event in trace.events if event.name is Name.REPLICA_LOG],
            kept,
        )


def _latest(
    findings: Findings, operations: Iterable[Operation], dumps: list[Event], topics: frozenset[str]
) -> None:
    """Whether each log that reaches beyond it has the last record of each key."""
    last: dict[tuple[str | None, int | None, str], tuple[int, int, int] | None] = {}
    for operation in operations:
        if operation.function is not Function.APPEND or operation.topic not in topics or not operation.key:
            continue
        place = operation.topic, operation.partition, operation.key
        known_place = bool(operation.records) and operation.records[-1].offset >= 0
        if operation.outcome is not Outcome.OK or operation.acks != ACKS_ALL or not known_place:
            last[place] = None  # it may be a later one, or a tombstone; or only a leader ever had it
            continue
        record = operation.records[-1]
        value = -1 if operation.argument == TOMBSTONE else record.value
        known = last.get(place, (-1, -1, -1))
        if known is not None and record.offset > known[0]:
            last[place] = record.offset, value, operation.op_id
    held: dict[tuple[str | None, int, int], tuple[set[int], Event]] = {}
    for event in dumps:
        held.setdefault((event.topic, event.partition, event.node), (set(), event))[0].update(event.values)
    for (topic, partition, node), (values, event) in sorted(held.items(), key=lambda item: item[0][1:]):
        for (of, number, key), latest in last.items():
            if (of, number) != (topic, partition) or latest is None:
                continue
            offset, value, op_id = latest
            if value >= 0 and event.log_start_offset <= offset < event.high_watermark and value not in values:
                findings.add(
                    "latest_value_lost",
                    expected=f"the last record of key {key}, at offset {offset}, to stay: compaction takes "
                    f"only earlier ones",
                    seen=f"broker {node}'s log from {event.log_start_offset} to {event.end_offset} does not "
                    f"have it",
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    operations=(op_id,),
                )
