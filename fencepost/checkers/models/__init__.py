"""Sequential models by name: what a system does when one client at a time uses it (docs/models.md)."""

from importlib import import_module
from typing import Any

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, Call, Model
from fencepost.checkers.models.containers import Counter, Queue, Set
from fencepost.checkers.models.locks import FencedLock, Mutex
from fencepost.checkers.models.log import Log
from fencepost.checkers.models.registers import CasRegister, KeyValue, Register
from fencepost.traces.errors import FencepostError

__all__ = ["IMPOSSIBLE", "MODELS", "UNHEARD", "Call", "Model", "model_named"]

MODELS: dict[str, type[Model]] = {
    model.name: model
    for model in (Register, CasRegister, KeyValue, Set, Queue, Mutex, FencedLock, Counter, Log)
}


def model_named(name: str, *initial: Any) -> Model:
    """The model called `name`, or `module:Class` for one of yours; initial: what it starts from, if not its default. Raises FencepostError."""
    cls = _imported(name) if ":" in name else MODELS.get(name)
    if cls is None:
        raise FencepostError(
            expected=f"a model out of {', '.join(MODELS)}, or module:Class", seen=repr(name), where="--model"
        )
    return cls(*initial)


def _imported(name: str) -> type[Model]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise FencepostError(
            expected="a module that can be imported", seen=str(error), where=f"--model {name}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise FencepostError(
            expected="a class derived from fencepost.checkers.models.Model",
            seen="nothing of that name" if found is None else type(found).__name__,
            where=f"--model {name}",
        )
    return found
