"""Chance as a function of its cause, in integers: the same on every machine.

Owns the mixing. Must not know what is drawn.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def drawn(below: int, *cause: int | str) -> int:
    """A number from 0 to below - 1."""
    digest = blake2b(repr(cause).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % below


def one_of(count: int, *cause: int | str) -> bool:
    """True for one of so many causes.

    Args:
        count: how many.
        cause: numbers and words that tell draws apart.
    """
    return count == 1 or drawn(count, *cause) == 0


def choice(options: Sequence[T], *cause: int | str) -> T:
    """One of the options.

    Args:
        options: at least one.
        cause: numbers and words that tell draws apart.
    """
    return options[drawn(len(options), *cause)]
