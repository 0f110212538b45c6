"""JUSTIFIED: a client tries for its delivery time-out, and no longer.

Owns needless_failure. delivery.timeout.ms bounds an append with all its attempts, and any other operation of
these clients alike. Before it is over, an operation may fail only for an error that another attempt would get
again. One that takes longer keeps its application waiting. Reads operations, of single traces.

Not asked: consumers in groups; transactions; traces with a wrong clock, by which the client measures; appends
of pipelined producers, whose time counts from the first append of their batch.
"""

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.liveness.anytime.shrinks import CLOCKS
from fencepost.record.settings import MILLISECOND, Settings
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

FINAL = frozenset({"INVALID_RECORD", "INVALID_TIMESTAMP", "INVALID_TOPIC_EXCEPTION", "MESSAGE_TOO_LARGE"})
"""Errors that the same bytes would get again (KafkaProducer does not retry them either)."""
ASKED = frozenset({Function.APPEND, Function.DELETE_RECORDS, Function.LIST_OFFSETS, Function.POLL})
FIRST_OWN = 1_000_000
"""Op ids from here on are the run's own, with more patience than the plan's clients."""
BACKOFFS = 80
"""A client gives up after 254 requests, because its correlation ids have no room for more. Two of three may
follow without a back-off: one for metadata, one for the start of the log."""
SLACK_MS = 50
"""A timer that falls due while the client is busy waits for a step."""


def judge_failures(findings: Findings, trace: Trace, options: Settings) -> None:
    """Look for operations that ended too early or too late; at most one finding for each partition.

    Args:
        findings: where a finding goes.
        trace: the operations.
        options: those of the plan.
    """
    suspects = [one for one in trace.operations if _ends_wrongly(one, options)]
    if not suspects or any(one.name is Name.FAULT_BEGAN and one.cause in CLOCKS for one in trace.events):
        return
    transactional = {one.process for one in trace.operations if one.function is Function.TXN}
    for one in suspects:
        if one.process in transactional:
            continue
        findings.add(
            "needless_failure",
            expected=f"process {one.process} to try for {options.client.delivery_timeout_ms} ms "
            f"(delivery.timeout.ms)",
            seen=f"{one.function.value}: {one.outcome.value} after {_took(one) // MILLISECOND} ms and "
            f"{one.attempts} attempts: {one.error or 'no error'}",
            topic=one.topic,
            partition=-1 if one.partition is None else one.partition,
            operations=(one.op_id,),
        )


def _took(one: Operation) -> int:
    assert one.completion_time is not None
    return one.completion_time - one.invoke_time


def _ends_wrongly(one: Operation, options: Settings) -> bool:
    """Whether it failed before its time without such an error, or took longer."""
    if one.completion_time is None or one.group is not None or one.function not in ASKED:
        return False
    if one.op_id >= FIRST_OWN or (one.function is Function.APPEND and options.client.producer.pipelined):
        return False
    patience = options.client.delivery_timeout_ms * MILLISECOND
    soonest = min(patience, BACKOFFS * options.client.retry_backoff_ms * MILLISECOND)
    if one.outcome is Outcome.FAIL and one.error not in FINAL and _took(one) < soonest:
        return True
    return _took(one) > patience + SLACK_MS * MILLISECOND
