"""The current faults of a simulated disk: failing calls, a full disk, lying or slow syncs.

Owns the faults that are set, and which call is affected. Must not know files or names. sim/disk.py describes
the effect on a file.
"""

import errno
from collections.abc import Callable
from enum import StrEnum

from attrs import define, field


class DiskCall(StrEnum):
    """The calls that can fail. WRITE: an append, a truncation, or a change of a name. SYNC: of a file or a
    directory."""

    READ = "read"
    WRITE = "write"
    SYNC = "sync"


def input_output_error(path: str) -> OSError:
    """EIO, as `os` raises it."""
    return OSError(errno.EIO, "Input/output error", path)


def no_space_error(path: str) -> OSError:
    """ENOSPC, as `os` raises it."""
    return OSError(errno.ENOSPC, "No space left on device", path)


@define(kw_only=True)
class ArmedError:
    """EIO for calls of one kind."""

    call: DiskCall
    # The path of the file at its opening, or of the name or directory; empty: any.
    path: str
    # The first matching call from now that fails.
    nth: int
    # How many fail in a row; None: all from then on.
    times: int | None

    def strikes(self, call: DiskCall, path: str) -> bool:
        """Whether this `call` on `path` fails; counts it."""
        if call is not self.call or self.path not in ("", path) or self.times == 0:
            return False
        if self.nth > 1:
            self.nth -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


@define
class DiskFaults:
    """capacity: the most bytes of all files together; None: no bound. lies: syncs that will lie; None: all.
    extra_sync_cost: additional virtual nanoseconds of each sync. errors: in the order of setting."""

    capacity: int | None = None
    lies: int | None = 0
    extra_sync_cost: int = 0
    errors: list[ArmedError] = field(factory=list)

    def fails(self, call: DiskCall, path: str) -> bool:
        """Whether this `call` on `path` fails."""
        struck = [error.strikes(call, path) for error in self.errors]  # each of them counts the call
        return any(struck)

    def room_for(
        self, data: bytes, path: str, used: int, draw: Callable[[int, str], int]
    ) -> tuple[bytes, OSError | None]:
        """The part of an append that is written, and the error raised after it.

        Args:
            data: the bytes of the append.
            path: the file.
            used: bytes of all files.
            draw: draw(bound, purpose) is a number below the bound.

        Returns:
            the written part, and the error or None.
        """
        if self.fails(DiskCall.WRITE, path):
            return data[: draw(len(data) + 1, f"write {path}")], input_output_error(path)
        if self.capacity is None:
            return data, None
        room = max(0, self.capacity - used)
        if len(data) <= room:
            return data, None
        return data[:room] if draw(2, f"room {path}") else b"", no_space_error(path)

    def lies_now(self) -> bool:
        """Whether this sync lies; counts it."""
        if self.lies is None:
            return True
        if self.lies:
            self.lies -= 1
            return True
        return False
