"""The report of a power loss: its effect on the files of a simulated disk.

Owns which files changed, and how much at the beginning of each is unchanged. Must not know the cause.
"""

from collections.abc import Mapping

from attrs import frozen

from fencepost.impl.core.failures import EndInCall
from fencepost.sim.disk_logs import LogOnDisk


class PowerLoss(EndInCall):
    """The power failed inside a file call, or the process died: the step aborts, its effects are dropped."""


@frozen(kw_only=True)
class FileLoss:
    """The effect of a power loss on one file."""

    path: str
    size_before: int
    # 0 if it is gone.
    size_after: int
    # How many bytes at its beginning are unchanged.
    kept: int

    @property
    def lost(self) -> int:
        """Bytes that existed before and are lost."""
        return self.size_before - self.kept


@frozen(kw_only=True)
class PowerLossReport:
    """files: those that changed, by path. steps_lost: creations, renames and removals of names that were
    undone. logs: what no power loss could have taken. died: only the process did, and nothing is lost."""

    files: tuple[FileLoss, ...] = ()
    steps_lost: int = 0
    logs: tuple[LogOnDisk, ...] = ()
    died: bool = False


def file_losses(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[FileLoss, ...]:
    """The files that differ; before, after: content by path."""
    losses = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path, b""), after.get(path, b"")
        if old != new or (path in before) != (path in after):
            kept = _common(old, new)
            losses.append(FileLoss(path=path, size_before=len(old), size_after=len(new), kept=kept))
    return tuple(losses)


def _common(old: bytes, new: bytes) -> int:
    """The length of the common prefix."""
    shorter = min(len(old), len(new))
    if old[:shorter] == new[:shorter]:
        return shorter
    return next(index for index in range(shorter) if old[index] != new[index])
