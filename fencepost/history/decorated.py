"""Decorated functions: each call of them is an operation.

Owns how a function's parameters become what is recorded, and the wrapper around it. Must not know when
operations begin or how they end.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Protocol, TypeVar

from fencepost.history.arguments import shown
from fencepost.traces.errors import FencepostError, unknown_name

Target = TypeVar("Target", bound=Callable[..., Any])


class Recorded(Protocol):
    """One call that is being recorded."""

    result: Any
    """What the call returned."""


def check_parameters(signature: inspect.Signature, *names: str | tuple[str, ...] | None) -> None:
    """Refuse names that are no parameters.

    Args:
        signature: of the function.
        names: what was given; None: nothing.

    Raises:
        FencepostError: for the first name that is no parameter.
    """
    several = (name if isinstance(name, tuple | list) else (name,) for name in names if name is not None)
    for one in chain.from_iterable(several):
        if not isinstance(one, str):
            raise FencepostError(
                expected="the name of a parameter, or several", seen=shown(one), where="a recorded function"
            )
        if one not in signature.parameters:
            raise FencepostError(
                expected=f"one of the parameters {', '.join(signature.parameters) or '(there are none)'}",
                seen=unknown_name(one, signature.parameters),
                where="a recorded function",
            )


def wrapped(
    target: Target, begin: Callable[[tuple[Any, ...], dict[str, Any]], AbstractContextManager[Recorded]]
) -> Target:
    """The function, or coroutine function, with a recording around each call. begin: makes one of the
    arguments."""
    wrapper: Any
    if inspect.iscoroutinefunction(target):

        @functools.wraps(target)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as recording:
                recording.result = await target(*args, **kwargs)
            return recording.result
    else:

        @functools.wraps(target)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as recording:
                recording.result = target(*args, **kwargs)
            return recording.result

    return wrapper  # type: ignore[no-any-return]
