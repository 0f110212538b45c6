"""A plan as a person reads it: only what differs from the defaults, a line each.

Owns the short form and how it reaches a file. Must not know where the plan comes from. What is left out has
its default when the plan is read (traces/plan_json.py), so the short form is a plan file like any other.
"""

from pathlib import Path
from typing import Any

import attrs
import msgspec

from fencepost.traces.plan import Plan
from fencepost.traces.whole_file import write_whole


def _short(value: Any) -> Any:
    """Of attrs values only the fields that have no default or another value."""
    if isinstance(value, tuple):
        return [_short(member) for member in value]
    if not attrs.has(type(value)):
        return value
    shown = {}
    for field in attrs.fields(type(value)):
        inner = getattr(value, field.name)
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory()
        if default is attrs.NOTHING or inner != default:
            shown[field.name] = _short(inner)
    return shown


def short_plan(plan: Plan) -> str:
    """The short form as JSON: each operation and each fault is one line."""
    lists = ("operations", "faults")
    rest = {
        name: value for name, value in {"version": plan.version, **_short(plan)}.items() if name not in lists
    }
    parts = [f"  {_json(name)}: {_json(value)}" for name, value in rest.items()]
    for name in lists:
        members = [f"    {_json(_short(one))}" for one in getattr(plan, name)]
        if members:
            parts.append(f"  {_json(name)}: [\n" + ",\n".join(members) + "\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def write_plan(path: Path, plan: Plan) -> None:
    """Write the short form. A reader sees the old file or the new one, never a part.

    Args:
        path: of the file.
        plan: what to write.
    """
    write_whole(path, short_plan(plan))
