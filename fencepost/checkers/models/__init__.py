"""Sequential models by name. A model says what a system does when one client at a time uses it
(docs/reference/models.md)."""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import Any

from fencepost.checkers.models.base import IMPOSSIBLE, UNHEARD, Call, Model
from fencepost.checkers.models.containers import Counter, Queue, Set
from fencepost.checkers.models.leases import Lease
from fencepost.checkers.models.lists import AppendOnlyList
from fencepost.checkers.models.locks import FencedLock, Mutex, Semaphore
from fencepost.checkers.models.maps import Map
from fencepost.checkers.models.partition_log import Log
from fencepost.checkers.models.queue_models import AtLeastOnceQueue, UnorderedQueue
from fencepost.checkers.models.registers import CasRegister, KeyValue, Register
from fencepost.traces.errors import FencepostError, unknown_name

__all__ = ["IMPOSSIBLE", "MODELS", "UNHEARD", "Call", "Model", "model_named"]

MODELS: dict[str, type[Model]] = {
    model.name: model
    for model in (
        *(Register, CasRegister, KeyValue, Map, AppendOnlyList, Set),
        *(Queue, UnorderedQueue, AtLeastOnceQueue),
        *(Mutex, FencedLock, Semaphore, Lease, Counter, Log),
    )
}


def model_named(name: str, parameters: Mapping[str, Any] | None = None, *, where: str = "the model") -> Model:
    """Make the model called `name`.

    Args:
        name: one of `MODELS`, or `module:Class` for a model of your own.
        parameters: arguments of its constructor by name, as JSON values; most built-in models take `initial`.
        where: what an error message calls the model.

    Returns:
        a new instance of the model.

    Raises:
        FencepostError: if there is no such model, if its module cannot be imported, or if the constructor
            rejects the parameters.
    """
    cls = _imported(name, where) if ":" in name else MODELS.get(name)
    if cls is None:
        raise FencepostError(
            expected=f"a model out of {', '.join(MODELS)}, or module:Class",
            seen=unknown_name(name, MODELS),
            where=where,
        )
    try:
        return cls(**parameters or {})
    except FencepostError:
        raise
    except TypeError as error:
        wanted = ", ".join(list(signature(cls.__init__).parameters)[1:]) or "none"
        raise FencepostError(
            expected=f"its parameters ({wanted})", seen=str(error), where=f"{where} {name}"
        ) from None
    except (Exception, SystemExit) as error:  # the constructor of a caller's class may raise anything
        raise _unmade(name, where, error) from None


def _imported(name: str, where: str) -> type[Model]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except FencepostError:
        raise
    except ImportError as error:
        raise FencepostError(
            expected="a module that can be imported", seen=str(error), where=f"{where} {name}"
        ) from None
    except (Exception, SystemExit) as error:  # importing a caller's module may raise anything
        raise _unmade(name, where, error) from None
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise FencepostError(
            expected="a class derived from fencepost.checkers.models.Model",
            seen="nothing of that name" if found is None else type(found).__name__,
            where=f"{where} {name}",
        )
    return found


def _unmade(name: str, where: str, error: BaseException) -> FencepostError:
    return FencepostError(
        expected="a model that can be made", seen=f"{type(error).__name__}: {error}", where=f"{where} {name}"
    )
