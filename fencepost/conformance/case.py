"""A case: a stable name, a sentence that says what is asked, and a function that asks it.

Owns the registry. Must not know how a case is run or what its answer is compared with. A case gets a new
lab, creates its own topics and groups there, and returns plain data: the facts of the answers that the
protocol promises (errors, offsets, shapes), never ids, times or ports.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from fencepost.conformance.lab import Lab

Facts = Any
"""JSON."""
Ask = Callable[["Lab"], Awaitable[Facts]]


@frozen
class Case:
    """One question."""

    # API or subject, a dot, and what is the case: `produce.acks_2_is_refused`. Never reused for another
    # question.
    name: str
    # One sentence: what is sent.
    asked: str
    ask: Ask


_CASES: dict[str, Case] = {}


def case(name: str, asked: str) -> Callable[[Ask], Ask]:
    """Register a function as a case. name: stable, unique; asked: one sentence."""

    def register(ask: Ask) -> Ask:
        assert name not in _CASES, f"two cases are named {name}"
        _CASES[name] = Case(name, asked, ask)
        return ask

    return register


def in_versions(
    name: str, asked: str, versions: range, ask: Callable[[int, "Lab"], Awaitable[Facts]]
) -> None:
    """Register one case for each version.

    Args:
        name: as of `case`; `%d` stands for the version.
        asked: as of `case`, with `%d` in place of the version.
        versions: of the API.
        ask: gets the version.
    """
    for version in versions:
        case(name % version, asked % version)(partial(ask, version))


def registered() -> tuple[Case, ...]:
    """Every case of the modules that were imported, by name; `cases.all_cases` imports all of them."""
    return tuple(_CASES[name] for name in sorted(_CASES))
