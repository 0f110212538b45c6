"""Traces of a plan for the judges of the meantime, made of operations by hand: the faults are over after 90
seconds."""

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
PHASES = (
    Event(time=SECOND, name=Name.PHASE, cause="safety"),
    Event(time=90 * SECOND, name=Name.PHASE, cause="heal"),
)


def anomalies_of(plan: Plan, operations: tuple[Operation, ...], events: tuple[Event, ...] = ()) -> set[str]:
    """What the judges find in a run of this plan."""
    trace = Trace(
        trace_id=1,
        plan=plan_to_json(plan),
        seed=1,
        software_version="0",
        events=tuple(sorted((*PHASES, *events), key=lambda event: event.time)),
        operations=operations,
        concurrent_processes=True,
    )
    return {one.anomaly for one in judge(trace).findings}
