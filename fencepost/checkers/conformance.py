"""Conformance: every protocol event of a trace is a step of the replication model, and what coordinators tell
of transactions and groups follows from what they told before.

Owns the verdict. model/refinement maps events to actions and has the guards. Must not know which system
recorded the trace, or which bugs were planted in it.

A trace without replica events (a foreign history of client operations only) is Ok, because it claims nothing
about replicas. A trace with replica events but without ZooKeeper's partition states cannot be mapped:
Assumption broken.

A trace with the mark APPENDS_UNKNOWN is of brokers that do not say what they append, such as Apache Kafka's.
Of its events only those are judged that need no log (model/refinement/decisions.py).
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.model.group.recorded_groups import TOLD_OF_GROUPS, RecordedGroups
from fencepost.model.refinement import ACTIONS, Mismatch, Refinement
from fencepost.model.transaction.recorded_transactions import TOLD_OF_TRANSACTIONS, TransactionRefinement
from fencepost.record.settings import settings_of
from fencepost.traces.errors import PlanError
from fencepost.traces.events import APPENDS_UNKNOWN, UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace, plain

CHECK = "conformance"
COORDINATORS_TELL = frozenset(TOLD_OF_GROUPS) | frozenset(TOLD_OF_TRANSACTIONS)
"""What they say of groups and transactions."""
UNCLEAN = '"unclean.leader.election.enable":"true"'
"""A substring of the detail of a topic_configured event, which is JSON without blanks."""

REPLICA_EVENTS = frozenset(ACTIONS) - {Name.PARTITION_STATE, Name.BROKER_STARTED, Name.FAULT_BEGAN}
"""A trace with any of these events claims something about replicas."""


def judge(trace: Trace) -> Verdict:
    """For each partition the first event that no action of the model explains."""
    claims = has_replica_events(trace)
    if not claims or why_undecided(trace):
        return of_unmapped(trace, claims=claims)
    refinement = Refinement(
        allows_unclean=lambda topic: not unclean_topics(trace).isdisjoint((topic, plain(topic))),
        compacted=frozenset(trace.claims.compacted),
        logs_known=not any(
            event.cause == APPENDS_UNKNOWN for event in trace.events if event.name is Name.MARK
        ),
    )
    findings = []
    try:
        for position, event in enumerate(trace.events):
            mismatch = refinement.step(position, event)
            if mismatch is not None:
                findings.append(_finding(mismatch, event))
    except PlanError as error:
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=str(error))
    findings += [_finding(mismatch, trace.events[mismatch.position]) for mismatch in _of_coordinators(trace)]
    decision = Decision.ILLEGAL if findings else Decision.OK
    return Verdict(decision=decision, check=CHECK, findings=tuple(findings))


def _of_coordinators(trace: Trace) -> Iterator[Mismatch]:
    """The first event of transactions, and the first load of groups, that nothing explains. Nothing is said
    of a log that may have lost records."""
    lost = {loss.topic for loss in trace.claims.loss}
    for topic, told in ((STATE_TOPIC, TransactionRefinement()), (OFFSETS_TOPIC, RecordedGroups())):
        if topic not in lost:
            steps = (_step(told, *of) for of in enumerate(trace.events) if of[1].name in COORDINATORS_TELL)
            yield from islice(filter(None, steps), 1)


def _step(told: TransactionRefinement | RecordedGroups, position: int, event: Event) -> Mismatch | None:
    try:
        return told.step(position, event)
    except msgspec.DecodeError:
        return None  # a trace may come from any tool


def of_unmapped(trace: Trace, *, claims: bool) -> Verdict:
    """The verdict on a trace that is not replayed. claims: whether it has replica events, which cannot be
    mapped."""
    if not claims:
        return Verdict(decision=Decision.OK, check=CHECK, reason="the trace has no replica events")
    return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=why_undecided(trace))


def has_replica_events(trace: Trace) -> bool:
    """Whether the trace has replica events."""
    return any(event.name in REPLICA_EVENTS for event in trace.events)


def why_undecided(trace: Trace) -> str:
    """Why the replica events of a trace cannot be mapped; "" if they can."""
    if trace.claims.assumption_broken:
        return trace.claims.assumption_broken
    if not any(event.name is Name.PARTITION_STATE for event in trace.events):
        return "the trace shows replicas but none of ZooKeeper's partition states"
    return ""


def unclean_topics(trace: Trace) -> frozenset[str]:
    """The topics with unclean leader election: from the settings of the run (a foreign trace has none),
    from configurations that brokers applied later, and from requests by name."""
    settings = settings_of(trace.plan, trace.events)
    if settings is None and trace.plan:
        plan_from_json(trace.plan, where=f"plan of trace {trace.trace_id}")  # says what is wrong with it
    planned = frozenset() if settings is None else settings.unclean
    allowed = (
        event.topic or ""
        for event in trace.events
        if (event.name is Name.TOPIC_CONFIGURED and UNCLEAN in event.detail)
        or (event.name is Name.MARK and event.cause == UNCLEAN_REQUESTED)
    )
    return frozenset(planned.union(allowed))


def _finding(mismatch: Mismatch, event: Event) -> Finding:
    earlier = (mismatch.because,) if mismatch.because >= 0 else ()
    return Finding(
        anomaly="conformance",
        check=CHECK,
        expected=mismatch.expected,
        seen=f"{mismatch.action}: {mismatch.seen}",
        topic=event.topic,
        partition=event.partition,
        offset=mismatch.offset,
        events=(*earlier, mismatch.position),
    )
