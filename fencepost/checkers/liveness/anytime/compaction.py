"""COMPACTION: records that compaction removed. Compaction may remove every record of a key except the last
one (L4). So a topic that is only compacted keeps that record until the end.

Owns latest_value_lost.
"""

from collections.abc import Iterable

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Replicas, replicas_of
from fencepost.record.facts import Facts
from fencepost.traces.events import Name
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Trace

TOMBSTONE = "tombstone"
DUMPS = frozenset({Name.REPLICA_LOG, Name.LOG_RECOVERED, Name.FAULT_BEGAN})
"""The logs at the end, and whether they were read after what their disks lost."""


def judge_compaction(findings: Findings, trace: Trace, facts: Facts) -> None:
    """Look for the last record of each key, in topics that only compaction removes records from, by the plan.

    Args:
        findings: receives the findings.
        trace: the trace.
        facts: of the trace.
    """
    compacted = {topic.name for topic in facts.settings.cluster.topics if topic.cleanup_policy == "compact"}
    if not compacted or trace.claims.loss or trace.claims.assumption_broken:
        return
    changed = {event.topic for _, event in facts.of(Name.TOPIC_CONFIGURED)}
    deleted = {one.topic for one in trace.operations if one.function is Function.DELETE_RECORDS}
    kept = frozenset(compacted - changed - deleted)
    if kept:
        replicas = replicas_of(event for _, event in facts.of(*DUMPS))
        _latest(findings, trace.operations, replicas, kept)


def _latest(
    findings: Findings, operations: Iterable[Operation], replicas: Replicas, topics: frozenset[str]
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
    dumped = [
        (topic, partition, node, final)
        for (topic, partition), finals in replicas.final.items()
        for node, final in finals.items()
        if final.opened
    ]
    for topic, partition, node, final in sorted(dumped, key=lambda one: one[1:3]):
        values = set(final.log.values)
        for (of, number, key), latest in last.items():
            if (of, number) != (topic, partition) or latest is None:
                continue
            offset, value, op_id = latest
            if value >= 0 and final.log_start_offset <= offset < final.high_watermark and value not in values:
                findings.add(
                    "latest_value_lost",
                    expected=f"the last record of key {key}, at offset {offset}, to stay: compaction takes "
                    f"only earlier ones",
                    seen=f"broker {node}'s log from {final.log_start_offset} to {final.log.end_offset} does "
                    f"not have it",
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    operations=(op_id,),
                )
