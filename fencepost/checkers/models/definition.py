"""Checks of a model class when it is defined.

Owns the rules for the attributes of a model class and the messages about them. Must not know calls, states,
or any particular model.
"""

from collections.abc import Collection

from fencepost.traces.errors import FencepostError

OF_THE_CLASS = ("name", "functions", "reads", "effects", "timed")
"""The attributes of a class that describe a model."""


def check_definition(model: type) -> None:
    """Check the attributes of a model class, and turn its function names into sets.

    Raises:
        FencepostError: if an attribute is not valid.
    """
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
    """The function names of one attribute as a set. Raises FencepostError."""
    given = getattr(model, name)
    if isinstance(given, str) or not isinstance(given, Collection):
        raise FencepostError(expected=f"a set of functions as `{name}`", seen=f"{given!r:.80}", where=where)
    if name == "functions":
        for function in given:
            if not isinstance(function, str):
                raise FencepostError(
                    expected="names of functions as `functions`", seen=repr(function), where=where
                )
        return frozenset(given)
    known: Collection[str] = frozenset(getattr(model, "functions", ()))
    for function in given:
        if function not in known:
            raise FencepostError(
                expected=f"`{name}` out of "
                f"{', '.join(sorted(known)) or 'its functions, of which there are none'}",
                seen=repr(function),
                where=where,
            )
    return frozenset(given)
