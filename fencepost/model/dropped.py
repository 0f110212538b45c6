"""The constants of a model: bounds, and the protections that it drops, as its caller names them.

Owns what all models' constants have. Must not know a model.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import field, frozen

from fencepost.traces.errors import FencepostError, did_you_mean
from fencepost.traces.protections import BY_NAME


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@frozen(kw_only=True)
class Bounds:
    """The base of a model's constants. Raises FencepostError for a protection that the model cannot drop."""

    # The registered protections that the model can drop.
    PROTECTIONS: ClassVar[frozenset[str]]
    # What they protect, in words.
    AREA: ClassVar[str]

    # Protections to drop, by registered name.
    drop: frozenset[str] = field(default=(), converter=_names)

    @drop.validator
    def _can_be_dropped(self, attribute: Any, drop: frozenset[str]) -> None:
        unknown = sorted(drop - self.PROTECTIONS)
        if unknown:
            known = self.PROTECTIONS
            raise FencepostError(
                expected=f"names of protections of {self.AREA}",
                seen=", ".join(
                    name if name in BY_NAME else f"{name} (not registered){did_you_mean(name, known)}"
                    for name in unknown
                ),
                where="drop",
                hint=", ".join(sorted(known)),
            )

    def keeps(self, protection: str) -> bool:
        """Whether a protection is not dropped."""
        return protection not in self.drop
