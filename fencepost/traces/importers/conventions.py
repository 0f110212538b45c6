"""What a foreign history does not say about itself, as its reader was asked to take it.

Owns the choices and their defaults. Must not know formats.
"""

from collections.abc import Callable
from typing import Literal

from attrs import frozen

from fencepost.traces.errors import FencepostError

Order = Literal["auto", "file"]
ORDERS: tuple[Order, ...] = ("auto", "file")
Tell = Callable[[str], None]
"""Is called with a sentence about what was taken, and how to say otherwise."""


@frozen(kw_only=True)
class Conventions:
    """How to read what can be read in two ways. The default says which way was taken."""

    # auto: complete times count; file: the order of the entries counts, whatever their times are.
    order: Order = "auto"
    # Whether values are [key value] of jepsen.independent; None: their shape decides.
    keyed: bool | None = None
    # Whether a failed cas proves that another value was there.
    failed_cas_observes: bool = False

    def __attrs_post_init__(self) -> None:
        if self.order not in ORDERS:
            raise FencepostError(
                expected=f"an order out of {', '.join(ORDERS)}", seen=repr(self.order), where="the order"
            )


DEFAULT = Conventions()


def silent(sentence: str) -> None:
    """Drop the sentence."""
