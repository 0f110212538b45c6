"""The cause of a finding by its neighbours: which nearest plans pass, where the closest of them parts, what
followed.

Owns: the order of asking, and which neighbour is the closest. Must not know: how runs are shown, Spark, where
the plan comes from.
"""

from collections.abc import Callable, Iterator

from attrs import frozen

from fencepost.campaign.causes.neighbours import Neighbour, neighbours
from fencepost.campaign.causes.parting import Parting, answered_differently, parting
from fencepost.campaign.shrink.oracle import ShownAnomaly
from fencepost.checkers.judges import checks_by_name, guarded
from fencepost.checkers.verdict import Decision, combine
from fencepost.report.event_words import answer_in_words, request_in_words, seconds
from fencepost.report.explain import event_line
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Trace

MOST_RUNS = 120
"""Neighbours that are run, a few hundred milliseconds each."""
ORDER = ("protection", "delay", "fault", "operation")
"""Which neighbours are the closest: a protection changes nothing until it is needed, an operation that is
missing changes much."""


@frozen(kw_only=True)
class Passing:
    """A neighbour that passes, and where its run parts from the failing one."""

    neighbour: Neighbour
    # None: no event on the partition differs.
    parting: Parting | None
    # The first operation with another answer, and what it is in the passing run; None if an event differs
    # before.
    answered: tuple[Operation, Operation | None] | None = None

    @property
    def parts(self) -> bool:
        """Whether the runs part at all."""
        return self.parting is not None or self.answered is not None


@frozen(kw_only=True)
class Cause:
    """What is known of a finding's cause."""

    plan: Plan
    # The run that they are held against.
    failing: Trace
    # The closest first.
    passing: tuple[Passing, ...]
    # Neighbours that were run.
    tried: int

    @property
    def closest(self) -> Passing | None:
        """The neighbour that parts last among those of the closest kind."""
        return next((one for one in self.passing if one.parts), None)


def cause_of(
    plan: Plan,
    shown: ShownAnomaly,
    on_run: Callable[[int], None] = lambda done: None,
    kinds: tuple[str, ...] = ORDER,
) -> Cause:
    """Run the neighbours of a failing plan. shown: its run, and the finding that is asked about. on_run:
    called with the number of runs so far. kinds: of neighbours that are asked."""
    tried, passing = 0, []
    for one in neighbours(plan):
        if one.kind not in kinds:
            continue
        if tried >= MOST_RUNS:
            break
        tried += 1
        on_run(tried)
        trace = _passes(one.plan, shown.target.checks)
        if trace is not None:
            found = parting(shown.trace.events, trace.events, shown.finding)
            answered = answered_differently(
                shown.trace.operations,
                trace.operations,
                shown.finding,
                None if found is None else shown.trace.events[found.position].time,
            )
            passing.append(Passing(neighbour=one, parting=found, answered=answered))
    passing.sort(key=_distance)
    return Cause(plan=plan, failing=shown.trace, passing=tuple(passing), tried=tried)


def _distance(one: Passing) -> tuple[int, int]:
    return ORDER.index(one.neighbour.kind), -(one.parting.position if one.parting else -1)


def _passes(plan: Plan, checks: tuple[str, ...]) -> Trace | None:
    """The plan's run, if every check says Ok; a plan that cannot be run does not pass."""
    try:
        trace = run(plan)
    except FencepostError:
        return None
    verdict = combine(tuple(guarded(check, trace) for check in checks_by_name(checks)))
    return trace if verdict.decision is Decision.OK else None


def operation_line(operation: Operation) -> str:
    """One operation: when it was answered, who asked, what, and the answer."""
    at = operation.invoke_time if operation.completion_time is None else operation.completion_time
    asked = request_in_words(operation)
    return f"{seconds(at)}, process {operation.process}: {asked}: {answer_in_words(operation)}"


def lines_of(cause: Cause) -> Iterator[str]:
    """For a person."""
    if not cause.passing:
        yield (
            f"none of the {cause.tried} nearest plans passes: no single fault, delay, operation or "
            f"protection is what it needs"
        )
        return
    yield f"{len(cause.passing)} of the {cause.tried} nearest plans pass:"
    for one in cause.passing[:6]:
        yield f"  {one.neighbour.says}"
    closest = cause.closest
    if closest is None:
        yield "their runs do not part on that partition before the verdict"
        return
    first = "no event differs; " if closest.parting is None else ""
    if closest.answered is not None:
        yield f"{first}the closest ({closest.neighbour.says}) answers a client differently:"
        for whose, asked in zip(("failing", "passing"), closest.answered, strict=True):
            yield f"  {whose}: {operation_line(asked) if asked is not None else 'no such operation'}"
    if closest.parting is None:
        return
    events = cause.failing.events
    if closest.answered is not None:
        yield "after that, events differ:"
    else:
        yield f"the closest ({closest.neighbour.says}) parts here:"
    yield f"  failing: {event_line(events[closest.parting.position])}"
    instead = closest.parting.instead
    yield f"  passing: {event_line(instead) if instead is not None else 'nothing more by this broker'}"
    yield "from there to the verdict:"
    for position in closest.parting.chain:
        yield f"  event {position} at {event_line(events[position])}"
