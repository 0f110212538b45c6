"""What can be said of a trace under way: the prefix that is certain, and the findings that stand whatever
comes later.

Owns the cut at a moment, and which findings wait for the end. Must not know rules of judges, files, Spark.

The prefix at a moment has the operations that began before it. Those that had not completed by then have the
outcome unknown: they may have happened. A prefix of a legal history is legal, so a finding in it stands,
except those of traces/anomalies/until_end.py.
"""

from collections.abc import Iterable

from attrs import evolve

from fencepost.checkers.verdict import Finding, Verdict
from fencepost.traces.anomalies.until_end import UNTIL_END
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

_ANSWERS = frozenset({Function.POLL, Function.LIST_OFFSETS, Function.FETCH_COMMITTED, Function.JOIN})
"""What these have besides their names is in the answer."""
_ONE_PLACE_OF_SEVERAL = frozenset({"transactions", "exactly_once"})
"""Checks that report each anomaly once for a trace."""


def certain_prefix(trace: Trace, moment: int) -> Trace:
    """The trace as it was known at a moment.

    Args:
        trace: a trace of which every row before the moment is there.
        moment: nanoseconds, of the trace's own clock.

    Returns:
        the operations that began before the moment, and the events before it. It has no digest.
    """
    rows = (row for row in trace.operations if row.invoke_time < moment)
    return evolve(
        trace,
        digest="",
        operations=tuple(row if _answered(row, moment) else unanswered(row) for row in rows),
        events=tuple(event for event in trace.events if event.time < moment),
    )


def _answered(row: Operation, moment: int) -> bool:
    return row.completion_time is not None and row.completion_time < moment


def unanswered(row: Operation) -> Operation:
    """An operation as it was known when it began.

    Args:
        row: the operation, complete or not.

    Returns:
        the same without what an answer says.
    """
    row = evolve(
        row,
        outcome=Outcome.UNKNOWN,
        completion_time=None,
        error=None,
        end_offset=None,
        last_stable_offset=None,
        log_start_offset=None,
        leader_epoch=None,
        node=-1,
    )
    if row.function is Function.APPEND:
        records = tuple(evolve(record, offset=-1) for record in row.records)
        return evolve(row, offset=None, records=records)
    if row.function in _ANSWERS:
        return evolve(row, offset=None, result=None, records=(), positions=(), generation=None)
    return row


def standing(verdicts: Iterable[Verdict], prefix: Trace) -> tuple[Finding, ...]:
    """The findings of a prefix that no later row can withdraw.

    Args:
        verdicts: of the checks on the prefix.
        prefix: what they judged. Of a topic that was deleted in it nothing stands: what follows may be of
            another topic of the name.

    Returns:
        the findings, in the order of the verdicts. Each is proven by operations of known outcome.
    """
    deleted = {event.topic for event in prefix.events if event.name is Name.TOPIC_DELETION}
    open_ids = {row.op_id for row in prefix.operations if row.outcome is Outcome.UNKNOWN}
    return tuple(
        finding
        for verdict in verdicts
        for finding in verdict.findings
        if finding.anomaly not in UNTIL_END
        and open_ids.isdisjoint(finding.operations)
        and not (deleted and (finding.topic is None or finding.topic in deleted))
    )


Subject = tuple[str, str, str | None, int]
"""Check, anomaly, topic, partition."""


def subject_of(check: str, anomaly: str, topic: str | None, partition: int) -> Subject:
    """What is reported once of a trace under way.

    Args:
        check: that found it.
        anomaly: its name.
        topic: of the finding.
        partition: of the finding.

    Returns:
        the same; without the place where a check names one place of several, which may be another one later.
    """
    return (
        (check, anomaly, None, -1) if check in _ONE_PLACE_OF_SEVERAL else (check, anomaly, topic, partition)
    )
