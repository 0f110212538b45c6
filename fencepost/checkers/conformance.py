"""Conformance: every protocol event of a trace is a step of the replication model.

Owns the verdict. The map from events to actions and its guards are model/refinement's. Must not know which
system is judged, nor which bugs were planted in it.

A trace without replica events (a foreign history of client operations only) is Ok: nothing was claimed. One
that shows replicas but never ZooKeeper's partition states cannot be mapped: Assumption broken.
"""

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.model.refinement import ACTIONS, Mismatch, Refinement
from fencepost.traces.errors import PlanError
from fencepost.traces.events import UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace

CHECK = "conformance"
UNCLEAN = '"unclean.leader.election.enable":"true"'
"""In the detail of a topic_configured event, which is JSON without blanks."""

REPLICA_EVENTS = frozenset(ACTIONS) - {Name.PARTITION_STATE, Name.BROKER_STARTED, Name.FAULT_BEGAN}
"""Names of which a trace has one or more where it claims anything of replicas."""


def judge(trace: Trace) -> Verdict:
    """The first event of each partition that no action of the model explains."""
    claims = has_replica_events(trace)
    if not claims or why_undecided(trace):
        return of_unmapped(trace, claims=claims)
    refinement = Refinement(
        allows_unclean=lambda topic: topic in unclean_topics(trace),
        compacted=frozenset(trace.claims.compacted),
    )
    findings = []
    try:
        for position, event in enumerate(trace.events):
            mismatch = refinement.step(position, event)
            if mismatch is not None:
                findings.append(_finding(mismatch, event))
    except PlanError as error:
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=str(error))
    decision = Decision.ILLEGAL if findings else Decision.OK
    return Verdict(decision=decision, check=CHECK, findings=tuple(findings))


def of_unmapped(trace: Trace, *, claims: bool) -> Verdict:
    """The verdict on a trace that is not replayed. claims: it has replica events, which cannot be mapped."""
    if not claims:
        return Verdict(decision=Decision.OK, check=CHECK, reason="the trace has no replica events")
    return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=why_undecided(trace))


def has_replica_events(trace: Trace) -> bool:
    """Whether the trace claims anything of replicas."""
    return any(event.name in REPLICA_EVENTS for event in trace.events)


def why_undecided(trace: Trace) -> str:
    """Why the replica events of a trace cannot be mapped; "" if they can."""
    if trace.claims.assumption_broken:
        return trace.claims.assumption_broken
    if not any(event.name is Name.PARTITION_STATE for event in trace.events):
        return "the trace shows replicas but none of ZooKeeper's partition states"
    return ""


def unclean_topics(trace: Trace) -> frozenset[str]:
    """From the plan's cluster options, from what brokers applied later, and from what somebody asked for by
    name; none for a foreign trace. Reading a plan costs as much as judging a trace, so it waits until it
    matters."""
    if not trace.plan:
        return frozenset()
    plan = plan_from_json(trace.plan, where=f"plan of trace {trace.trace_id}")
    planned = {topic.name for topic in plan.cluster.topics if topic.unclean_leader_election}
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
