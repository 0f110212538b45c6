"""The current faults of a simulated disk: failing calls, a full disk, lying or slow syncs.

Owns the faults that are set, and which call is affected. Must not know files or names. sim/disk.py describes
the effect on a file.
"""

import errno
from collections.abc import Callable, Mapping
from enum import StrEnum

from attrs import define, field

from fencepost.impl.log.layout import CLEANED, INDEXES, LOG, SNAPSHOT, SWAP, TEMPORARY
from fencepost.traces.plan import STEP_START, STEP_STOP


class DiskCall(StrEnum):
    """The calls that can fail. WRITE: any that changes a file or a name. SYNC: of a file or a directory."""

    READ = "read"
    WRITE = "write"
    SYNC = "sync"
    OPEN = "open"
    APPEND = "append"
    TRUNCATE = "truncate"
    CREATE = "create"
    RENAME = "rename"
    REMOVE = "remove"


_C = DiskCall
WRITES = (_C.APPEND, _C.TRUNCATE, _C.CREATE, _C.RENAME, _C.REMOVE)
_BESIDE = (*INDEXES, SNAPSHOT)
_Step = tuple[tuple[tuple[DiskCall, ...], tuple[str, ...]], ...]
STEPS: Mapping[str, _Step] = {
    "checkpoint": (((*WRITES, _C.SYNC), ("checkpoint", f"checkpoint{TEMPORARY}")),),
    "deletion": (((_C.REMOVE,), (LOG, *_BESIDE)),),
    "roll": (((_C.CREATE, _C.APPEND, _C.SYNC), _BESIDE), ((_C.CREATE,), (LOG,))),
    "swap": (((_C.SYNC, _C.RENAME), (CLEANED, SWAP)),),
    "truncation": (((_C.TRUNCATE,), (LOG, *INDEXES)), ((_C.REMOVE,), (SNAPSHOT,))),
    STEP_START: (((*_C,), ("",)),),
    STEP_STOP: (((*_C,), ("",)),),
}
"""Steps of a broker's work, as the calls that they consist of and the ends of the paths. All that a broker
does from its start, or from the request to stop, until the fault strikes is that step."""


def is_inside(step: str, call: DiskCall, path: str) -> bool:
    """Whether a call belongs to a step; every call does if the step is empty."""
    return not step or any(call in calls and path.endswith(ends) for calls, ends in STEPS[step])


def input_output_error(path: str) -> OSError:
    """EIO, as `os` raises it."""
    return OSError(errno.EIO, "Input/output error", path)


def no_space_error(path: str) -> OSError:
    """ENOSPC, as `os` raises it."""
    return OSError(errno.ENOSPC, "No space left on device", path)


@define(kw_only=True)
class ArmedError:
    """EIO for calls of one kind."""

    # The kind; of those inside of a step any.
    call: DiskCall | None
    # The path of the file at its opening, or of the name or directory; empty: any.
    path: str
    # The first matching call from now that fails.
    nth: int
    # How many fail in a row; None: all from then on.
    times: int | None
    # Only calls inside of this step; "": all.
    step: str = ""

    def strikes(self, call: DiskCall, path: str) -> bool:
        """Whether this `call` on `path` fails; counts it."""
        if self.times == 0 or self.path not in ("", path) or not is_inside(self.step, call, path):
            return False
        if self.call not in (None, call) and not (self.call is DiskCall.WRITE and call in WRITES):
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
        if self.fails(DiskCall.APPEND, path):
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
