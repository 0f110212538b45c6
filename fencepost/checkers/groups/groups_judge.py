"""The groups check: does a consumer group share partitions and keep offsets as Kafka promises?
(docs/reference/anomalies.md)

Owns the order of the work, one verdict per trace, and the form over tables, which looks only at traces with
groups. The rules are in `membership`, `committed` and `processing`.
"""

from collections.abc import Sequence

import pyarrow as pa

from fencepost.checkers.arrow_arrays import arrow, table_column
from fencepost.checkers.decoded import judge_decoded
from fencepost.checkers.groups.committed import committed_findings, exact, older_commits, regressed_commits
from fencepost.checkers.groups.generations import membership_findings
from fencepost.checkers.groups.group_findings import CHECK, GroupFact
from fencepost.checkers.groups.history import GroupHistory, GroupOperations, history_of
from fencepost.checkers.groups.processing import processed
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.trace import Trace

COLUMNS = (
    *("trace_id", "op_id", "process", "session", "clock_id", "function", "outcome", "invoke_time"),
    *("completion_time", "topic", "partition", "acks", "offset", "records", "positions", "argument"),
    *("group", "member", "generation", "leader_epoch", "attempts", "isolation", "result"),
)
"""Columns of the `operations` table that the check reads."""


def judge_trace(trace: Trace) -> Verdict:
    """The verdict of the groups check on one trace."""
    if trace.claims.assumption_broken:
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=trace.claims.assumption_broken
        )
    if not any(operation.group is not None for operation in trace.operations):
        return Verdict(decision=Decision.OK, check=CHECK)
    if any(loss.topic == OFFSETS_TOPIC for loss in trace.claims.loss):
        return Verdict(
            decision=Decision.OK, check=CHECK
        )  # the groups' state may be lost, including generations
    history = history_of(trace)
    findings: list[Finding] = []
    undecided: list[str] = []
    for name in sorted(history.groups):
        group = history.groups[name]
        findings += membership_findings(history, group)
        of_offsets, open_ = _offset_findings(history, group, findings)
        findings += of_offsets
        undecided += open_
        for partition in group.partitions:
            findings += processed(history, group, partition, trace.claims).findings
    if findings:
        return Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(findings))
    if undecided:
        return Verdict(decision=Decision.UNKNOWN, check=CHECK, reason="; ".join(undecided))
    return Verdict(decision=Decision.OK, check=CHECK)


def _offset_findings(
    history: GroupHistory, group: GroupOperations, before: list[Finding]
) -> tuple[list[Finding], list[str]]:
    """The findings about committed offsets of a group. The exact check runs only if no short proof found a
    violation."""
    findings: list[Finding] = []
    undecided: list[str] = []
    broken = {(f.topic, f.partition) for f in before if f.anomaly == "stale_commit_accepted"}
    generations_broken = any(f.anomaly == "generation_regressed" for f in before)
    for partition in group.partitions:
        findings += regressed_commits(history, group, partition)
        short = list(committed_findings(history, group, partition))
        findings += short
        if short or partition in broken or generations_broken:
            continue
        found, reason = exact(history, group, partition)
        if found is not None:
            findings.append(found)
        elif reason:
            undecided.append(f"{partition[0]}-{partition[1]} of group {group.name}: {reason}")
    return findings, undecided


def group_facts(trace: Trace) -> tuple[GroupFact, ...]:
    """The facts about groups that are not violations, with their causes: records processed again, records
    never processed, older commits that won."""
    history = history_of(trace)
    facts: list[GroupFact] = []
    for name in sorted(history.groups):
        group = history.groups[name]
        for partition in group.partitions:
            facts += older_commits(group, partition)
            facts += processed(history, group, partition, trace.claims).facts
    return tuple(facts)


def judge_table(table: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    """Check the traces of a table.

    Args:
        table: rows of the `operations` table, with the columns COLUMNS.
        traces: their traces; operations and events may be missing.

    Returns:
        the verdicts that are not Ok, by trace id.

    Raises:
        TraceError: if a column is missing.
    """
    named = arrow.is_valid(table_column(table, "group"))
    return judge_decoded(table, traces, named, COLUMNS, judge_trace)
