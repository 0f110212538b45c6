"""What a class must say of itself to be a model, checked when the class is defined.

Owns: which attributes of a class make a model, and what is wrong with them. Must not know calls, states, or
any one model.
"""

from collections.abc import Collection

from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Function

OF_THE_CLASS = ("name", "functions", "reads", "effects", "timed")
"""What a model says by attributes of its class."""


def check_definition(model: type) -> None:
    """Refuse a class whose attributes make no model; keep its functions as sets. Raises FencepostError."""
    where = f"the model {model.__qualname__}"
    for name, annotation in vars(model).get("__annotations__", {}).items():
        if name in OF_THE_CLASS and "ClassVar" not in str(annotation):
            raise FencepostError(
                expected=f"`{name}` as an attribute of the class: `{name} = ...` or `{name}: ClassVar[...] "
                f"= ...`",
                seen="an annotation that makes it a parameter of a dataclass or attrs class",
                where=where,
            )
    for name in ("functions", "reads", "effects"):
        if name in vars(model):
            setattr(model, name, _functions(model, name, where))


def _functions(model: type, name: str, where: str) -> frozenset[str]:
    """The functions of one attribute. Raises FencepostError."""
    given = getattr(model, name)
    if isinstance(given, str) or not isinstance(given, Collection):
        raise FencepostError(expected=f"a set of functions as `{name}`", seen=f"{given!r:.80}", where=where)
    known: Collection[str] = frozenset(Function)
    if name != "functions":
        known = frozenset(getattr(model, "functions", ()))
    for function in given:
        if function not in known:
            raise FencepostError(
                expected=f"`{name}` out of "
                f"{', '.join(sorted(known)) or 'its functions, of which there are none'}",
                seen=repr(function),
                where=where,
            )
    return frozenset(given)
