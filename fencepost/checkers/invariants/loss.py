"""Loss that the claims allow, by partition and offset.

Owns the look-up. Each invariant decides for itself what a loss excuses.
"""

from collections.abc import Iterable

from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.trace import LossRange


def end_of_loss(allowed: Iterable[LossRange], partition: Key, offset: int) -> int:
    """The first offset from `offset` on that may not be lost; `offset` itself if it may not be lost. Ranges
    may overlap.

    Args:
        allowed: the loss that the claims allow.
        partition: topic and partition.
        offset: the offset to begin with.

    Returns:
        the offset.
    """
    for loss in sorted(allowed, key=lambda loss: loss.start):
        if (loss.topic, loss.partition) == partition and loss.start <= offset < loss.end:
            offset = loss.end
    return offset
