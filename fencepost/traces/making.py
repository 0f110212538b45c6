"""Rows made quickly: the constructor of a frozen class without the cost of its being frozen.

Owns how a value is made. Must not know which class.

A frozen attrs class sets each field through `object.__setattr__`, a call for each. Here the fields are filled
into an open twin of the class, one with the same slots, which then becomes the class itself. The twin is
never visible outside, so a value is frozen for all its users.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T")


def maker_of(cls: Callable[P, T], *, keywords: bool = True) -> Callable[P, T]:
    """What makes a value of this class from its fields: equal to what the class itself makes, in half the
    time. keywords: or all fields in their order, in a quarter of it, for whole columns of them.

    The class is frozen and slotted, without a slot for weak references (CPython does not let a twin of it
    become the class then), and its fields are taken as they are: no converters, validators or factories.
    """
    kind: Any = cls
    fields: tuple[Any, ...] = attrs.fields(kind)
    for each in fields:
        factory = isinstance(each.default, attrs.Factory)  # type: ignore[arg-type]
        plain = each.init and not (each.converter or each.validator or factory)
        assert plain and not each.name.startswith("_"), f"{kind.__name__}.{each.name} is not taken as it is"
    names = [each.name for each in fields]
    assert sorted(kind.__slots__) == sorted(names), f"{kind.__name__} has other slots than its fields"

    def become(value: Any) -> None:
        value.__class__ = kind

    make: Callable[P, T] = attrs.make_class(
        f"Open{kind.__name__}",
        {each.name: attrs.field(default=each.default) for each in fields} if keywords else names,
        slots=True,
        kw_only=keywords,
        eq=False,
        weakref_slot=False,
        class_body={"__attrs_post_init__": become},
    )
    return make


def remaker_of(cls: Callable[..., T]) -> Callable[..., T]:
    """What makes a value of this class out of another one with some fields changed: `attrs.evolve` in a
    quarter of the time. The class is as for `maker_of`."""
    kind: Any = cls
    make, names = maker_of(cls, keywords=False), [each.name for each in attrs.fields(kind)]
    fields_of, places = attrgetter(*names), {name: place for place, name in enumerate(names)}

    def remake(value: T, **changes: Any) -> T:
        fields = list(fields_of(value))
        for name, changed in changes.items():
            fields[places[name]] = changed
        return make(*fields)

    return remake
