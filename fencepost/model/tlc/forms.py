"""One statement for both directions: how a model's values read in TLA+, and TLA+'s in the model.

Owns the forms and how they are put together. Must not know any model or specification.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from fencepost.model.tlc.values import Value, as_value, show

Make = Callable[[Iterable[Any]], Any]
"""A tuple from its fields: `tuple`, or the `_make` of a named one."""


@frozen
class Form:
    """A value of a model and its value in TLA+, each made of the other."""

    to_tla: Callable[[Any], Value]
    from_tla: Callable[[Any], Any]


@frozen
class Part:
    """A field of a state and the variables that say it, each made of the other."""

    to_tla: Callable[[Any], dict[str, Value]]
    from_tla: Callable[[Mapping[str, Any]], Any]


def _same(value: Any) -> Any:
    return value


SAME = Form(_same, _same)
BITS = Form(
    lambda bits: frozenset(number for number in range(bits.bit_length()) if bits >> number & 1),
    lambda members: sum(1 << member for member in members),
)
"""A set of numbers, which the model has as bits."""


def word(*words: str) -> Form:
    """A number, which is a word in TLA+. words: by number."""
    return Form(words.__getitem__, words.index)


def numbered(form: Form) -> Form:
    """A tuple, which is a function from 0 on. form: of its values."""
    return Form(
        lambda values: as_value(enumerate(map(form.to_tla, values))),
        lambda function: tuple(form.from_tla(function[number]) for number in range(len(function))),
    )


def sequence(form: Form) -> Form:
    """A tuple, which is a sequence. form: of its values."""
    return Form(
        lambda values: tuple(map(form.to_tla, values)), lambda values: tuple(map(form.from_tla, values))
    )


def members(form: Form) -> Form:
    """A sorted tuple, which is a set. form: of its values."""
    return Form(
        lambda values: frozenset(map(form.to_tla, values)),
        lambda values: tuple(sorted(map(form.from_tla, values))),
    )


def optional(form: Form) -> Form:
    """A tuple or (), which is a sequence of at most one. form: of the tuple."""
    return Form(
        lambda value: (form.to_tla(value),) if value else (),
        lambda values: form.from_tla(values[0]) if values else (),
    )


def row(make: Make, /, **forms: Form) -> Form:
    """A tuple, which is a record. forms: of its fields, in their order, by their names in TLA+."""
    part = fields(make, **forms)
    return Form(lambda value: as_value(part.to_tla(value).items()), part.from_tla)


def variable(name: str, form: Form) -> Part:
    """What one variable says. form: of its value."""
    return Part(lambda value: {name: form.to_tla(value)}, lambda variables: form.from_tla(variables[name]))


def fields(make: Make, /, **forms: Form) -> Part:
    """A tuple, each field of which is a variable. forms: of the fields, in their order."""
    return Part(
        lambda value: {
            name: form.to_tla(item) for (name, form), item in zip(forms.items(), value, strict=True)
        },
        lambda variables: make(form.from_tla(variables[name]) for name, form in forms.items()),
    )


def columns(make: Make, told: Callable[[Any], Iterable[Any]] = _same, /, **forms: Form) -> Part:
    """A tuple of rows, of which each field is a variable, a function from 0 on.

    Args:
        make: a row from its fields.
        told: a row's fields, if they are not the tuple's.
        forms: of the fields, in their order.
    """
    functions = {name: numbered(form) for name, form in forms.items()}

    def to_tla(rows: Iterable[Any]) -> dict[str, Value]:
        values = zip(*map(told, rows), strict=True)
        return {
            name: form.to_tla(column) for (name, form), column in zip(functions.items(), values, strict=True)
        }

    def from_tla(variables: Mapping[str, Any]) -> Any:
        values = (form.from_tla(variables[name]) for name, form in functions.items())
        return tuple(map(make, zip(*values, strict=True)))

    return Part(to_tla, from_tla)


def state_form(make: Make, *parts: Part) -> Part:
    """A state and all its variables. parts: of its fields, in their order."""

    def to_tla(state: Any) -> dict[str, Value]:
        told: dict[str, Value] = {}
        for part, value in zip(parts, state, strict=True):
            told |= part.to_tla(value)
        return told

    return Part(to_tla, lambda variables: make(part.from_tla(variables) for part in parts))


def bounds_to_tla(constants: Any, names: Mapping[str, str]) -> dict[str, str]:
    """A model's bounds, and what is dropped, as texts for TLC's configuration. names: TLA+'s name of a bound
    -> the model's."""
    told = {name: show(getattr(constants, bound)) for name, bound in names.items()}
    return told | {"Drop": show(frozenset(constants.drop))}
