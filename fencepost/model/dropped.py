"""The protections that an instance of a model drops, as its caller names them.

Owns what is said of a name that the model cannot drop. Must not know a model.
"""

from collections.abc import Iterable

from fencepost.traces.errors import FencepostError, did_you_mean
from fencepost.traces.protections import BY_NAME


def dropped(names: Iterable[str], known: frozenset[str], area: str) -> frozenset[str]:
    """The field `drop` of a model's constants.

    Args:
        names: of protections, from the caller.
        known: the registered protections that the model can drop.
        area: what they protect, in words.

    Returns:
        the names as a set.

    Raises:
        FencepostError: for a name that is not known.
    """
    drop = frozenset(names)
    unknown = sorted(drop - known)
    if unknown:
        raise FencepostError(
            expected=f"names of protections of {area}",
            seen=", ".join(
                name if name in BY_NAME else f"{name} (not registered){did_you_mean(name, known)}"
                for name in unknown
            ),
            where="drop",
            hint=", ".join(sorted(known)),
        )
    return drop
