"""Promises that need the settings of a run, and no calm: an early deletion is wrong in any trouble. Each has
handlers of events; one pass asks them all.

Owns the pass. Must not know rules.
"""

from collections.abc import Callable

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.liveness.anytime.acknowledged import judge_acknowledged
from fencepost.checkers.liveness.anytime.checkpoints import Checkpoints
from fencepost.checkers.liveness.anytime.compaction import judge_compaction
from fencepost.checkers.liveness.anytime.failures import judge_failures
from fencepost.checkers.liveness.anytime.inheritance import judge_inheritance
from fencepost.checkers.liveness.anytime.justified_elections import Elections
from fencepost.checkers.liveness.anytime.placement import Placement
from fencepost.checkers.liveness.anytime.repeats import judge_repeats
from fencepost.checkers.liveness.anytime.shrinks import Shrinks
from fencepost.record.facts import Facts
from fencepost.record.settings import MILLISECOND
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

Handler = Callable[[int, Event], None]


def judge_anytime(findings: Findings, trace: Trace, facts: Facts) -> None:
    """Ask all of them.

    Args:
        findings: receives the findings.
        trace: of a run with a plan; what real systems record is too little for these.
        facts: of the trace.
    """
    settings, cluster = facts.settings, facts.settings.cluster
    parts = (
        Elections(findings, set(settings.unclean)),
        Shrinks(findings, cluster.replica_lag_time_max_ms * MILLISECOND, trace.events),
        Checkpoints(findings, settings),
        Placement(findings),
    )
    handlers: dict[Name, list[Handler]] = {}
    for part in parts:
        for name, handler in part.handlers().items():
            handlers.setdefault(name, []).append(handler)
    for position, event in facts.of(*handlers):
        for handler in handlers[event.name]:
            handler(position, event)
    judge_compaction(findings, trace, facts)
    judge_inheritance(findings, facts)
    judge_failures(findings, trace, settings)
    judge_acknowledged(findings, facts)
    judge_repeats(findings, facts)
