"""The meantime checks: was each decision during the run justified, and did the cluster make progress while
nothing was broken?

The invariants check what may never happen. The meantime checks ask for the reason of each decision that costs
availability (elections, removals from an ISR). They also ask for progress whenever nothing is broken, within
bounds that follow from the options (docs/reference/verdicts.md). Owns the one pass and the verdict. Must not
know which system recorded the trace. Only events in NAMES are read, which are few: the form over tables
decodes no others.
"""

from collections.abc import Callable, Iterable

from attrs import evolve

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.answered import Answered
from fencepost.checkers.meantime.answers import judge_answers
from fencepost.checkers.meantime.beliefs import Beliefs
from fencepost.checkers.meantime.calm import Calm, is_asked
from fencepost.checkers.meantime.checkpoints import Checkpoints
from fencepost.checkers.meantime.commits import judge_commits
from fencepost.checkers.meantime.delivery import Delivery, is_prompt
from fencepost.checkers.meantime.elections import Elections
from fencepost.checkers.meantime.failures import judge_failures
from fencepost.checkers.meantime.handover import Handover
from fencepost.checkers.meantime.options import options_of
from fencepost.checkers.meantime.placement import Placement
from fencepost.checkers.meantime.progress import Progress
from fencepost.checkers.meantime.rebalances import Rebalances
from fencepost.checkers.meantime.recovery import Recovery, bounds_of
from fencepost.checkers.meantime.reprocessing import judge_reprocessing
from fencepost.checkers.meantime.retention import Retention
from fencepost.checkers.meantime.retries import judge_retries
from fencepost.checkers.meantime.shrinks import Shrinks
from fencepost.checkers.meantime.steps import Steps
from fencepost.checkers.meantime.timeouts import judge_timeouts
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

CHECK = "meantime"
NAMES = frozenset(
    {
        Name.ANSWERED,
        Name.APPENDED,
        Name.ASSIGNMENT,
        Name.BECAME_FOLLOWER,
        Name.BECAME_LEADER,
        Name.BELIEF,
        Name.BROKER_STARTED,
        Name.BROKER_STATE,
        Name.BROKER_ZNODE,
        Name.COMPACTED,
        Name.CONTROLLER_EPOCH,
        Name.CONTROLLER_ZNODE,
        Name.CONTROL_REQUEST_APPLIED,
        Name.FAULT_BEGAN,
        Name.FAULT_ENDED,
        Name.GROUPS_LOADED,
        Name.GROUP_PHASE,
        Name.HIGH_WATERMARK,
        Name.IMPLEMENTATION_ERROR,
        Name.LOG_DIRECTORY_FAILED,
        Name.LOG_RECOVERED,
        Name.LOG_START,
        Name.ISR_PROPOSED,
        Name.ISR_UPDATED,
        Name.MARK,
        Name.PARTITION_STATE,
        Name.PHASE,
        Name.REASSIGNMENT,
        Name.TOPIC_CONFIGURED,
        Name.TOPIC_DELETION,
        Name.TRANSACTION_PHASE,
        Name.TRUNCATED,
    }
)
"""The events that the checks read."""
Handler = Callable[[int, Event], None]


def judge(trace: Trace) -> Verdict:
    """Run all meantime checks on a trace. A trace without a plan has no options, so nothing is checked."""
    verdict = judge_events(trace, enumerate(trace.events))
    options = options_of(trace.plan)
    if options is None or verdict.decision is Decision.ASSUMPTION_BROKEN:
        return verdict
    findings = Findings(CHECK)
    judge_answers(findings, trace, options.compacted)
    judge_retries(findings, trace, options)
    judge_timeouts(findings, trace, options)
    judge_failures(findings, trace, options)
    judge_reprocessing(findings, trace, options)
    judge_commits(findings, trace, options)
    if not findings.found:
        return verdict
    return evolve(verdict, decision=Decision.ILLEGAL, findings=(*verdict.findings, *findings.found.values()))


def judge_events(trace: Trace, events: Iterable[tuple[int, Event]]) -> Verdict:
    """As `judge`, for these events, each with its position in the trace."""
    if trace.claims.assumption_broken:
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=trace.claims.assumption_broken
        )
    options = options_of(trace.plan)
    if options is None:
        return Verdict(decision=Decision.OK, check=CHECK)
    findings = Findings(CHECK)
    unclean = {topic.name for topic in options.cluster.topics if topic.unclean_leader_election}
    handlers: dict[Name, list[Handler]] = {}
    calm, steps = Calm(), Steps()
    rebalances = Rebalances(findings, options, options.network.latency_max_us * 1_000, steps)
    parts: list[
        Answered
        | Beliefs
        | Calm
        | Checkpoints
        | Elections
        | Shrinks
        | Steps
        | Recovery
        | Rebalances
        | Delivery
        | Handover
        | Placement
        | Progress
        | Retention
    ] = [
        steps,
        beliefs := Beliefs(findings, options),
        Answered(findings),
        Elections(findings, unclean),
        Shrinks(findings, options.lag_ns, options.disk.fsync_us * 1_000, steps),
        Checkpoints(findings, options),
        Retention(findings, options),
        Placement(findings),
    ]
    bounds = bounds_of(options)
    if bounds is not None:
        parts.append(Recovery(findings, bounds, options.cluster.brokers))
        parts.append(rebalances)
    if is_asked(options.network):
        parts += [Handover(findings, calm, options), Progress(findings, calm, options, steps)]
        if is_prompt(options):
            parts.append(Delivery(findings, calm, options, steps))
    for part in (*parts, calm):
        for name, handler in part.handlers().items():
            assert name in NAMES, name
            handlers.setdefault(name, []).append(handler)
    for position, event in events:
        for handler in handlers.get(event.name, ()):
            handler(position, event)
    beliefs.end()
    rebalances.end()
    decision = Decision.ILLEGAL if findings.found else Decision.OK
    return Verdict(decision=decision, check=CHECK, findings=tuple(findings.found.values()))
