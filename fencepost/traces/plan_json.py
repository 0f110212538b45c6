"""Plans as JSON: strict reading and canonical writing; and the topics and partitions that a plan names.

An unknown field, a wrong type or a value out of range is refused by its path. The fields, their types and
their bounds are read from the attrs classes of traces/plan.py; this module defines none. It owns the forms of
targets that name a topic, and that each is there or comes later; it must not know faults.
"""

import re
import types
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, get_args, get_origin

import attrs
import msgspec

from fencepost.traces.decoding import from_json
from fencepost.traces.errors import PlanError, did_you_mean, unknown_name
from fencepost.traces.kafka_names.inherited_settings import EVERY_BROKER
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.plan import Plan

HINT = "docs/reference/plans.md lists every field with its bounds"
OF_PARTITION = re.compile(r"(?P<role>leader of |follower \d+ of |partition )(?P<topic>.+)-(?P<number>\d+)")
OF_TOPIC = re.compile(r"topic (?P<topic>.+)")
MOST_PARTITIONS = 8
"""Of one topic, after partitions were added."""
CREATES, GROWS = "create_topic", "add_partitions"
"""Kinds of fault after which there is a topic, or one partition more."""
Place = tuple[str, int]
_KINDS: dict[type, str] = {int: "an integer", bool: "true or false", str: "a string"}


@attrs.frozen(kw_only=True)
class Bounds:
    """What a field allows."""

    # Inclusive, None where open.
    low: int | None = None
    high: int | None = None
    # The only values, () for any.
    options: tuple[Any, ...] = ()

    def expectation(self, value: Any) -> str | None:
        """What was expected of `value`, in words; None if it is within the bounds."""
        if self.options and value not in self.options:
            return " or ".join(_show(option) for option in self.options)
        if self.low is not None and value < self.low:
            return f"at least {self.low}"
        if self.high is not None and value > self.high:
            return f"at most {self.high}"
        return None


def bounds_of(attribute: "attrs.Attribute[Any]") -> Bounds:
    """The bounds that an attribute's attrs validators enforce."""
    validator: Any = attribute.validator
    low = high = None
    options: tuple[Any, ...] = ()
    for part in getattr(validator, "_validators", (validator,)):
        compare = getattr(part, "compare_op", None)
        if compare == ">=":
            low = part.bound
        elif compare == "<=":
            high = part.bound
        elif hasattr(part, "options"):
            options = tuple(part.options)
    return Bounds(low=low, high=high, options=options)


def plan_to_json(plan: Plan) -> str:
    """Canonical JSON: keys in field order, no white space. Equal plans give equal text."""
    return msgspec.json.encode(_said(plan)).decode()


def _said(value: Any) -> dict[str, Any]:
    """What JSON says of a value of a plan: every field, but for those that came later and hold their
    default."""
    kind: Any = type(value)
    names, values_of, nested, later = _writing(kind)
    said = dict(zip(names, values_of(value), strict=True))
    for name in nested:
        inner = said[name]
        if attrs.has(type(inner)):
            said[name] = _said(inner)
        elif inner and attrs.has(type(inner[0])):
            said[name] = [_said(each) for each in inner]
    for name, default in later:
        if getattr(value, name) == default:
            del said[name]
    return said


@cache
def _writing(
    kind: Any,
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """Of an attrs class: its fields, how to read them all, those that hold other values of a plan, and those
    that came later, with their defaults."""
    fields = attrs.fields(attrs.resolve_types(kind))
    names = tuple(field.name for field in fields)
    assert len(names) > 1, f"{kind.__name__} has a single field, which attrgetter hands over without a tuple"
    nested = tuple(field.name for field in fields if attrs.has(field.type) or get_origin(field.type) is tuple)
    later = tuple((field.name, field.default) for field in fields if "left_out" in field.metadata)
    return names, attrgetter(*names), nested, later


def plan_from_json(text: str | bytes, *, where: str = "plan") -> Plan:
    """The plan that `text` holds. Raises PlanError naming the field, what it should be and what it is."""
    try:
        data = from_json(text)
    except msgspec.DecodeError as error:
        raise PlanError(expected="JSON", seen=str(error), where=where, hint=HINT) from None
    plan = _read(Plan, data, where)
    assert isinstance(plan, Plan)
    return plan


def _refuse(where: str, expected: str, seen: str) -> PlanError:
    return PlanError(expected=expected, seen=seen, where=where, hint=HINT)


def _show(value: Any) -> str:
    """A value as JSON, cut to a length that still fits a sentence."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _read(kind: Any, data: Any, path: str) -> Any:
    """`data` as a value of type `kind`: an attrs class, tuple[X, ...], int, bool or str."""
    if get_origin(kind) is tuple:
        if not isinstance(data, list):
            raise _refuse(path, "a list", _show(data))
        item = get_args(kind)[0]
        return tuple(_read(item, value, f"{path}[{index}]") for index, value in enumerate(data))
    if attrs.has(kind):
        return _read_object(kind, data, path)
    assert kind in _KINDS, f"{path}: a plan has no fields of type {kind}"
    if type(data) is not kind:
        raise _refuse(path, _KINDS[kind], _show(data))
    return data


@cache
def _fields(kind: type) -> types.MappingProxyType[str, tuple[Any, Bounds, bool]]:
    """The type and bounds of each field of an attrs class, and whether the field is required."""
    return types.MappingProxyType(
        {
            attribute.name: (attribute.type, bounds_of(attribute), attribute.default is attrs.NOTHING)
            for attribute in attrs.fields(attrs.resolve_types(kind))
        }
    )


def _read_object(kind: Callable[..., Any], data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise _refuse(path, "a JSON object", _show(data))
    assert isinstance(kind, type)
    fields = _fields(kind)
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in fields:
            raise _refuse(
                f"{path}.{name}",
                "one of the fields " + ", ".join(fields),
                f"an unknown field{did_you_mean(name, fields)}",
            )
        field_type, bounds, _ = fields[name]
        values[name] = _read(field_type, value, f"{path}.{name}")
        expected = bounds.expectation(values[name])
        if expected is not None:
            raise _refuse(f"{path}.{name}", expected, _show(values[name]))
    for name, (_, _, required) in fields.items():
        if required and name not in values:
            raise _refuse(f"{path}.{name}", "a value", "none")
    try:
        return kind(**values)
    except ValueError as error:
        raise _refuse(path, "valid values", f"that {error}") from None


# ---- names


def place_of(target: str) -> Place | None:
    """The topic and partition that a target names, if it names any; 0 where it names the topic alone."""
    if match := OF_PARTITION.fullmatch(target):
        return match["topic"], int(match["number"])
    match = OF_TOPIC.fullmatch(target)
    return None if match is None else (match["topic"], 0)


def check_names(plan: Plan, where: str) -> Plan:
    """The plan, if each topic and partition that it names is there or comes later. With another name a run
    would skip the fault, or wait for an answer.

    Args:
        plan: a person's, who may have mistyped a name.
        where: its file, for the error.

    Raises:
        PlanError: for the first name that means nothing.
    """
    known = _partitions(plan)
    for path, (topic, number), least in _named(plan):
        if topic in (*INTERNAL_TOPICS, EVERY_BROKER) or (
            topic in known and number < max(known[topic], least)
        ):
            continue
        expected, seen = f"a topic of the plan: {', '.join(known)}", unknown_name(topic, known)
        if topic in known:
            expected, seen = f"one of the {known[topic]} partitions of {topic}", f"{topic}-{number}"
        raise PlanError(expected=expected, seen=seen, where=f"{where}: {path}")
    return plan


def _partitions(plan: Plan) -> dict[str, int]:
    """The most partitions of each topic that there is at some time."""
    known = {topic.name: topic.partitions for topic in plan.cluster.topics}
    asked = [(one.kind, place[0]) for one in plan.faults if (place := place_of(one.target)) is not None]
    for kind, topic in asked:
        if kind == CREATES:
            known.setdefault(topic, 1)
    for kind, topic in asked:
        if kind == GROWS and topic in known:
            known[topic] += 1
    return known


def _named(plan: Plan) -> Iterator[tuple[str, Place, int]]:
    """Where a place is named, the place, and the fewest partitions to count with: an operation may be meant
    for one that an operator might add."""
    for index, one in enumerate(plan.operations):
        for topic in one.topics:
            yield f"operations[{index}]", (topic, one.partition), MOST_PARTITIONS
    for index, fault in enumerate(plan.faults):
        for name in ("target", "other"):
            if (found := place_of(getattr(fault, name))) is not None:
                yield f"faults[{index}].{name}", found, 0
