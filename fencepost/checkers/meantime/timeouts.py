"""JUSTIFIED: a broker that runs answers every request, if only with an error.

Owns needless_timeout. Leaders may move, replicas too: a broker that is asked says at once that it is the
wrong one, and a request that waits is answered when the role ends. So a client's request times out only where
something is broken or was a little while ago. needless_retry (retries.py) is excused by each move of a
leader; this rule is not, and it includes the requests of consumers in groups. Reads operations, of single
traces.

An append with acks=0 has no answer, so that nobody waits for it, whatever is broken.

Not asked: networks that lose messages by chance; clients with less patience than an answer takes; topics that
come or go during the run; a partition that is added, until it has a leader; processes that write in
transactions.
"""

from collections.abc import Iterable

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.meantime.calm import is_asked, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.rebalances import MOVES, PAUSE_MS, is_prompt
from fencepost.checkers.meantime.retries import (
    TRIPS,
    Disturbances,
    disturbances_of,
    is_patient,
    settled_ns,
    takes_ms,
)
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome
from fencepost.traces.trace import Trace

UNANSWERED = frozenset({"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"})
"""Errors of a client that waited in vain."""
NO_ANSWER = "NETWORK_EXCEPTION"
"""The same of a consumer in a group. A coordinator may answer REQUEST_TIMED_OUT, which is an answer."""
OF_GROUPS = frozenset({Function.JOIN, Function.FETCH_COMMITTED, Function.COMMIT})
OF_CLIENTS = frozenset({Function.APPEND, Function.POLL, Function.LIST_OFFSETS})
BREAKING = frozenset(
    {
        Name.BROKER_STARTED,
        Name.BROKER_STATE,
        Name.BROKER_ZNODE,
        Name.CONTROLLER_EPOCH,
        Name.IMPLEMENTATION_ERROR,
        Name.LOG_DIRECTORY_FAILED,
        Name.SESSION_EXPIRED,
        Name.TRUNCATED,
    }
)
"""Besides faults and phases: events after which a broker may owe an answer."""
NEVER = 2**63
"""The time of a partition's first leader, before there is one."""
OPERATORS = frozenset(
    {
        "add_partitions",
        "alter_topic",
        "preferred_election",
        "reassign_back",
        "reassign_grow",
        "reassign_move",
        "reassign_reorder",
        "reassign_shrink",
    }
)
"""Requests of operators, which are recorded like faults and break nothing."""


def judge_timeouts(findings: Findings, trace: Trace, options: Options) -> None:
    """Look for requests that nobody answered; at most one finding for each partition.

    Args:
        findings: where a finding goes.
        trace: the operations and events.
        options: those of the plan.
    """
    for one in trace.operations:
        if one.function is Function.APPEND and one.acks == ACKS_NONE and _waits(one):
            findings.add(
                "needless_timeout",
                expected=f"process {one.process} to be done as soon as it has sent: acks=0 has no answer",
                seen=f"{one.outcome.value} after {one.attempts} attempts: {one.error or 'no error'}",
                topic=one.topic,
                partition=-1 if one.partition is None else one.partition,
                operations=(one.op_id,),
            )
    if not is_asked(options.network) or trace.claims.loss:
        return
    suspects = [one for one in _suspects(trace, options) if not _foreign(one)]
    if not suspects:
        return
    broken, (unsettled, added) = broken_times(trace.events, options), _unsettled(trace.events)
    settled = settled_ns(options)
    waits = (options.client.delivery_timeout_ms + options.client.request_timeout_ms) * MILLISECOND
    for one in suspects:
        until = one.invoke_time + waits if one.completion_time is None else one.completion_time
        led = added.get((one.topic, -1 if one.partition is None else one.partition), -1)
        if (
            one.topic in unsettled
            or one.invoke_time <= led
            or broken.within(one.invoke_time - settled, until)
        ):
            continue
        findings.add(
            "needless_timeout",
            expected=f"each request of process {one.process} to be answered: nothing was broken for "
            f"{settled // MILLISECOND} ms",
            seen=f"{one.function.value}: {one.outcome.value} after {one.attempts} attempts and "
            f"{(until - one.invoke_time) // MILLISECOND} ms at most: {one.error or 'no error'}",
            topic=one.topic,
            partition=-1 if one.partition is None else one.partition,
            operations=(one.op_id,),
        )


def _waits(one: Operation) -> bool:
    """Whether a client waited for an answer although it had sent the request. What it may wait for before
    that is a leader; then its one request ends it well, and the error is of a look for the leader."""
    alone = one.attempts == 1 and one.outcome is Outcome.OK
    return one.attempts > 0 and not alone and one.error in UNANSWERED


def _foreign(one: Operation) -> bool:
    """Whether no request of the cluster is in question."""
    return one.acks == ACKS_NONE or one.argument in ("txn", "expired")


def _suspects(trace: Trace, options: Options) -> list[Operation]:
    """The operations of which a request was not answered."""
    transactional = {one.process for one in trace.operations if one.function is Function.TXN}
    clients, groups = is_patient(options), is_prompt(options)
    return [
        one
        for one in trace.operations
        if one.process not in transactional
        and (
            (groups and one.function in OF_GROUPS and one.group is not None and one.error == NO_ANSWER)
            or (clients and one.function in OF_CLIENTS and one.group is None and _waited(one, options))
        )
    ]


def _waited(one: Operation, options: Options) -> bool:
    """Whether a request waited in vain: the row says so, or it took longer than that many answers. A client
    that never knew a leader sent none."""
    if one.attempts == 0:
        return False
    if one.outcome is Outcome.UNKNOWN:
        return one.error in UNANSWERED
    if one.completion_time is None or (one.function is Function.APPEND and options.client.producer.pipelined):
        return False
    each = takes_ms(options) + options.client.retry_backoff_ms
    most = (one.attempts * each + each) * MILLISECOND + one.attempts * row_ns(options.network, TRIPS)
    return one.completion_time - one.invoke_time > max(most, options.client.request_timeout_ms * MILLISECOND)


def _unsettled(events: Iterable[Event]) -> tuple[set[str | None], dict[Key, int]]:
    """Topics that came after the beginning or were to go; and partitions that were added to the others, each
    with the time of its first leader."""
    topics: set[str | None] = set()
    added: dict[Key, int] = {}
    known: set[Key] = set()
    begun = False
    for event in events:
        key = event.topic, event.partition
        if event.name is Name.PHASE:
            begun = begun or event.cause == "safety"
        elif event.name is Name.ASSIGNMENT and key not in known:
            if begun and not any(topic == event.topic for topic, _ in known):
                topics.add(event.topic)
            elif begun:
                added[key] = NEVER
            known.add(key)
        elif event.name is Name.PARTITION_STATE and added.get(key) == NEVER and event.leader >= 0:
            added[key] = event.time
        elif event.name is Name.TOPIC_DELETION:
            topics.add(event.topic)
    return topics, added


def broken_times(events: Iterable[Event], options: Options) -> Disturbances:
    """When something was broken, a partition had no leader, or a consumer's process did not run as usual.

    Args:
        events: of the trace.
        options: of the plan, which says when processes of consumers come, stop and go.

    Returns:
        the moments and intervals.
    """
    kept, began = [], 0
    for event in events:
        if event.name is Name.PHASE and event.cause == "safety":
            began = event.time
        if event.cause not in OPERATORS or event.name not in (Name.FAULT_BEGAN, Name.FAULT_ENDED):
            kept.append(event)
    found = disturbances_of(kept, BREAKING)
    found.times += [event.time for event in kept if event.name is Name.PARTITION_STATE and event.leader < 0]
    for one in options.operations:
        if one.function in MOVES:
            at = began + one.at_ms * MILLISECOND
            length = one.records * PAUSE_MS * MILLISECOND if one.function == "pause" else 0
            found.broken.append((at, at + length))
    found.times.sort()
    return found
