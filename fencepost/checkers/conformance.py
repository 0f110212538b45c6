"""Conformance: every protocol event of a trace is a step of the replication model.

Owns the verdict. The map from events to actions and its guards are model/refinement's. Must not know which system is judged, nor which bugs were planted in it.

A trace without replica events (a foreign history of client operations only) is Ok: nothing was claimed. One that shows replicas but never ZooKeeper's partition
states cannot be mapped: Assumption broken.
"""

from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.model.refinement import ACTIONS, Mismatch, Refinement
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace

CHECK = "conformance"

_REPLICA_EVENTS = frozenset(ACTIONS) - {Name.PARTITION_STATE, Name.BROKER_STARTED, Name.FAULT_BEGAN}


def judge(trace: Trace) -> Verdict:
    """The first event of each partition that no action of the model explains."""
    names = {event.name for event in trace.events}
    if not names & _REPLICA_EVENTS:
        return Verdict(decision=Decision.OK, check=CHECK, reason="the trace has no replica events")
    if trace.claims.assumption_broken:
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=trace.claims.assumption_broken
        )
    if Name.PARTITION_STATE not in names:
        reason = "the trace shows replicas but none of ZooKeeper's partition states"
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason)
    refinement = Refinement(
        allows_unclean=lambda topic: topic in _unclean_topics(trace),
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


def _unclean_topics(trace: Trace) -> frozenset[str]:
    """From the plan's cluster options; none for a foreign trace. Reading a plan costs as much as judging a trace, so it waits until it matters."""
    if not trace.plan:
        return frozenset()
    plan = plan_from_json(trace.plan, where=f"plan of trace {trace.trace_id}")
    return frozenset(topic.name for topic in plan.cluster.topics if topic.unclean_leader_election)


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
