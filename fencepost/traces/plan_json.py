"""Plans as JSON: strict reading (an unknown field or a value out of range is refused by name) and canonical writing."""

from typing import Any

import cattrs
import msgspec
from cattrs.preconf.json import make_converter
from cattrs.v import transform_error

from fencepost.traces.errors import PlanError
from fencepost.traces.plan import Plan

_converter = make_converter(forbid_extra_keys=True)
_HINT = "docs/plans.md lists every field with its bounds"


def plan_to_json(plan: Plan) -> str:
    """Canonical JSON: keys in field order, no white space. Equal plans give equal text."""
    return msgspec.json.encode(_converter.unstructure(plan)).decode()


def plan_from_json(text: str | bytes, *, where: str = "plan") -> Plan:
    """The plan that `text` holds. Raises PlanError naming the field, what it should be and what it is."""
    try:
        data: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise PlanError(expected="JSON", seen=str(error), where=where, hint=_HINT) from None
    if not isinstance(data, dict):
        raise PlanError(expected="a JSON object", seen=type(data).__name__, where=where, hint=_HINT)
    try:
        return _converter.structure(data, Plan)
    except (cattrs.BaseValidationError, ValueError, TypeError, KeyError) as error:
        raise PlanError(
            expected="the fields of a plan", seen="; ".join(transform_error(error, path="plan")), where=where, hint=_HINT
        ) from None
