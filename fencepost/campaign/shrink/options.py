"""Shrinking options: whatever differs from its default goes back to it, and the numbers that have to stay
become round.

Owns: which fields of a plan are options. Must not know what they mean. The structure of a plan (how many
brokers, partitions, replicas; what an operation does and where; kinds and targets of faults) is not an
option, and times have passes of their own.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

import attrs

from fencepost.campaign.shrink.lists import Pass, Shrinking, leave_out, remove_from
from fencepost.campaign.shrink.times import rounded, rounder
from fencepost.traces.plan import Plan

Path = tuple[str | int, ...]
"""Names of fields and places in lists, from the plan to a value."""

STRUCTURE = frozenset(
    {
        *("seed", "version", "profile", "safety_ms", "brokers", "bugs", "name", "partitions"),
        *("replication_factor", "created_later", "op_id", "process", "at_ms", "function", "topic"),
        *("partition", "fault_id", "kind", "duration_ms", "target"),
    }
)
"""Fields that are not options."""


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Each option below a value: path, value, default."""
    for attribute in attrs.fields(type(value)):
        if attribute.name in STRUCTURE:
            continue
        inner, here = getattr(value, attribute.name), (*path, attribute.name)
        if isinstance(inner, tuple):
            for place, member in enumerate(inner):
                if attrs.has(type(member)):
                    yield from _leaves(member, (*here, place))
        elif attrs.has(type(inner)):
            yield from _leaves(inner, here)
        elif attribute.default is not attrs.NOTHING:
            yield here, inner, attribute.default


def deviations(plan: Plan) -> tuple[Path, ...]:
    """The options that differ from their defaults."""
    return tuple(path for path, value, default in _leaves(plan) if value != default)


def _value_at(plan: Plan, path: Path) -> Any:
    return next(value for there, value, _ in _leaves(plan) if there == path)


def with_value(owner: Any, path: Path, value: Any) -> Any:
    """A copy in which one value is another."""
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        inner = with_value(owner[step], rest, value) if rest else value
        return (*owner[:step], inner, *owner[step + 1 :])
    inner = with_value(getattr(owner, step), rest, value) if rest else value
    return attrs.evolve(owner, **{step: inner})


def with_defaults(plan: Plan, paths: Collection[Path]) -> Plan:
    """A copy of a plan in which some options have their defaults.

    Args:
        plan: the plan.
        paths: where the options are.
    """
    defaults = {path: default for path, _, default in _leaves(plan)}
    changed = plan
    for path in sorted(paths, key=str):
        changed = with_value(changed, path, defaults[path])
    return changed


def _alike(shrinking: Shrinking) -> None:
    """Fewer other options than the first ones: best, all processes have the same."""
    for name in ("clients", "consumers"):
        remove_from(shrinking, name)


def _to_defaults(shrinking: Shrinking) -> None:
    plan = shrinking.plan
    every = deviations(plan)
    leave_out(shrinking, every, lambda kept: with_defaults(plan, set(every) - set(kept)))


def _numbers(shrinking: Shrinking) -> None:
    """Numbers that cannot have their default become round; those of operations and faults lower, too."""
    for path in deviations(shrinking.plan):
        value = _value_at(shrinking.plan, path)
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        if path[0] in ("operations", "faults"):
            while shrinking.first(_within_bounds(shrinking.plan, path, rounder(value))) is not None:
                value = _value_at(shrinking.plan, path)
        else:
            shrinking.first(_within_bounds(shrinking.plan, path, rounded(value)))


def _within_bounds(plan: Plan, path: Path, values: Iterable[int]) -> Iterator[Plan]:
    for value in values:
        with suppress(ValueError):
            yield with_value(plan, path, value)


def option_passes() -> tuple[Pass, ...]:
    """The passes over options."""
    return (_alike, _to_defaults, _numbers)
