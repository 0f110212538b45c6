"""Shrinking times: faults become shorter, gaps close, numbers become round.

Owns: which times are tried instead of those of a plan. Must not know what happens at them.
"""

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from fencepost.campaign.shrink.lists import Pass, Shrinking, with_members
from fencepost.traces.plan import Plan


def rounder(value: int) -> Iterator[int]:
    """Lower numbers to try instead, the boldest first; none is tried twice."""
    seen = {value}
    step_down = _leading(_leading(value, 1) - 1, 1)
    bold = (0, _leading(value // 10, 1), _leading(value // 2, 1), step_down)
    for lower in (*bold, _leading(value, 1), _leading(value, 2)):
        if lower not in seen and 0 <= lower < value:
            seen.add(lower)
            yield lower


def rounded(value: int) -> Iterator[int]:
    """The number with fewer digits that are not 0, the roundest first."""
    for digits in (1, 2):
        if _leading(value, digits) != value:
            yield _leading(value, digits)


def _leading(value: int, digits: int) -> int:
    """A number of which only so many leading digits are left."""
    if value <= 0:
        return value
    scale: int = 10 ** max(0, len(str(value)) - digits)
    return value // scale * scale


def _durations(shrinking: Shrinking) -> None:
    for place in range(len(shrinking.plan.faults)):
        while True:
            plan = shrinking.plan
            fault = plan.faults[place]
            shorter = (evolve(fault, duration_ms=lower) for lower in rounder(fault.duration_ms))
            if shrinking.first(_with_member(plan, "faults", place, one) for one in shorter) is None:
                break


def _with_member(plan: Plan, name: str, place: int, member: Any) -> Plan:
    members = getattr(plan, name)
    return with_members(plan, name, (*members[:place], member, *members[place + 1 :]))


def moments(plan: Plan) -> list[int]:
    """When something begins, in order."""
    return sorted({one.at_ms for one in plan.operations} | {one.at_ms for one in plan.faults})


def earlier(plan: Plan, moment: int, by_ms: int) -> Plan:
    """Everything from a moment on happens so much earlier, the end of the safety phase too."""
    return evolve(
        plan,
        operations=tuple(
            evolve(one, at_ms=one.at_ms - by_ms) if one.at_ms >= moment else one for one in plan.operations
        ),
        faults=tuple(
            evolve(one, at_ms=one.at_ms - by_ms) if one.at_ms >= moment else one for one in plan.faults
        ),
        safety_ms=max(1, plan.safety_ms - by_ms),
    )


def _gaps(shrinking: Shrinking) -> None:
    """Each gap between two moments, and the one before the first, becomes smaller."""
    place = 0
    while place < len(times := [0, *moments(shrinking.plan)]) - 1:
        gap = times[place + 1] - times[place]
        plan = shrinking.plan
        smaller = (earlier(plan, times[place + 1], gap - lower) for lower in rounder(gap))
        found = shrinking.first(smaller)
        closed = len(moments(shrinking.plan)) + 1 < len(times)
        if found is None:
            place += 1
        elif closed and place > 0:
            place -= 1


def _safety(shrinking: Shrinking) -> None:
    """The safety phase ends earlier, with the last beginning at the earliest."""
    while True:
        plan = shrinking.plan
        last = max(moments(plan), default=0)
        rest = (last + 1, *(last + lower for lower in rounder(plan.safety_ms - last) if lower > 1))
        shorter = (evolve(plan, safety_ms=end) for end in rest if end < plan.safety_ms)
        if shrinking.first(shorter) is None:
            return


def _round(shrinking: Shrinking) -> None:
    """Each beginning becomes a round number, one after another: they move against each other by less than
    their last digits."""
    for name in ("faults", "operations"):
        for place in range(len(getattr(shrinking.plan, name))):
            plan = shrinking.plan
            one = getattr(plan, name)[place]
            rounded_down = [one.at_ms - one.at_ms % unit for unit in (1_000, 100, 10) if one.at_ms % unit]
            shrinking.first(
                _with_member(plan, name, place, evolve(one, at_ms=at_ms))
                for at_ms in dict.fromkeys(rounded_down)
            )


def time_passes() -> tuple[Pass, ...]:
    """The passes over times."""
    return (_durations, _gaps, _safety, _round)
