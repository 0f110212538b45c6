"""Of each planted bug: where its smallest run parts from the run with the protection, and whether that is the
protection's own step.

Owns: which run is asked, and in what words a parting is held against the table of own steps. Must not know
groups or features.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fencepost.campaign.causes.cause import Cause, Passing, cause_of, operation_line
from fencepost.campaign.shrink.oracle import target_of
from fencepost.mining.triage.bugs import Bug
from fencepost.mining.triage.event_steps import steps_of
from fencepost.report.explain import event_line
from fencepost.run.simulated.run import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tools.triage.measure import Measured
from tools.triage.own_steps import is_own

OWN = "own"
"""Begins what is said of a parting that is the protection's own step."""


def partings(found: Measured, bugs: tuple[Bug, ...], out: Path, count: int) -> dict[str, str]:
    """Where the runs part, in words, by planted bug.

    Args:
        found: the groups held against the truth.
        bugs: the groups.
        out: the folder of the ground truth.
        count: how many bugs are asked at most.
    """
    by_number = {bug.number: bug for bug in bugs}
    store, said = TraceStore.open(out / "traces"), {}
    for one in [one for one in found.bugs if one.own][:count]:
        number = max(one.groups, key=lambda label: one.groups[label])
        plan = plan_from_json(store.read(by_number[number].smallest.trace_id).plan)
        try:
            said[one.bug] = words_of(one.bug, cause_of(plan, target_of(plan), kinds=("protection",)))
        except FencepostError as error:
            said[one.bug] = f"not again: {error}"
    return said


def words_of(bug: str, cause: Cause) -> str:
    """Where the runs part, after OWN or "other".

    Args:
        bug: the planted one.
        cause: of its run.
    """
    closest = cause.closest
    if closest is None:
        return "the runs do not part"
    own = any(is_own(bug, words) for words in _steps(cause.failing, closest))
    if closest.parting is not None and closest.answered is None:
        line = event_line(cause.failing.events[closest.parting.position])
    else:
        line = next(operation_line(one) for one in closest.answered or () if one is not None)
    return f"{OWN if own else 'other'}: {line} ({closest.neighbour.says})"


def _steps(failing: Trace, closest: Passing) -> list[str]:
    """The words, as of a feature, of what either run has where they part."""
    if closest.parting is None or closest.answered is not None:
        return _asked([one for one in closest.answered or () if one is not None])
    words, instead = [_as_step(failing.events, closest.parting.position)], closest.parting.instead
    if instead is not None:
        passing = run(closest.neighbour.plan).events
        words.append(_as_step(passing, passing.index(instead)))
    return words


def _asked(operations: Sequence[Operation]) -> list[str]:
    """As the words of a feature, with the isolation, and whether it is a producer id in which they differ."""
    ids = " with another producer id" if len({one.producer_id for one in operations}) > 1 else ""
    return [f"operation: {one.function.value} {one.isolation or ''}{ids}" for one in operations]


def _as_step(events: tuple[Event, ...], position: int) -> str:
    """An event with its relations to what was known before."""
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", events=events[: position + 1])
    steps = steps_of(tables_of([rows_of(trace)]).events, np.array([0], np.int64))
    return steps.words[steps.code[position]]
