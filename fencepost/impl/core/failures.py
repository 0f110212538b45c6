"""An implementation error: a step of a core ended in an assertion, or in an exception that nobody expects.

Owns what is recorded of it. Must not know who runs the core: hosts (sim/host.py) and drivers
(runtime/core_driver.py) end the process, record the event, and go on without it.

The process is gone with its step: nothing that the step wanted to send leaves. What it had recorded before it
failed did happen inside of it, and is kept: an assertion about a state comes after the events that led there.
"""

import re
from collections.abc import Iterable
from traceback import walk_tb
from types import FrameType

import msgspec

from fencepost.impl.core.core_interface import Effect, RecordEvent
from fencepost.traces.events import Name

MOST_FRAMES = 4
"""Of the stack, the innermost ones: who failed, and who asked for it."""
LONGEST_MESSAGE = 400
"""Characters of the exception's message: a state in words takes no more than a few lines."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""In the text of an object without one of its own. It differs from run to run, and a run has one digest."""


class StepFailedError(Exception):
    """A step failed; its __cause__ says how. recorded: what it had recorded before."""

    def __init__(self, effects: Iterable[Effect]) -> None:
        super().__init__("a step failed")
        self.recorded = [effect for effect in effects if type(effect) is RecordEvent]


class EndInCall(BaseException):
    """The process ends inside a file call, which only its file system knows. on_disk: what the step had
    recorded of the disk before."""

    on_disk: tuple[RecordEvent, ...] = ()

    def after(self, effects: Iterable[Effect]) -> None:
        """effects: of the step, which are dropped."""
        self.on_disk = tuple(each for each in effects if type(each) is RecordEvent and each.on_disk)


def events_of_failure(error: Exception, during: str) -> tuple[Exception, list[RecordEvent]]:
    """What failed, and what to record of it. error: what came out of the step. during: what was being
    stepped."""
    if not isinstance(error, StepFailedError):
        return error, [implementation_error(error, during)]
    cause = error.__cause__
    assert isinstance(cause, Exception), cause
    return cause, [*error.recorded, implementation_error(cause, during)]


def implementation_error(error: Exception, during: str) -> RecordEvent:
    """The event that says how a process ended.

    Args:
        error: what was raised.
        during: what the process was doing.
    """
    message = _ADDRESS.sub("", str(error)).strip()
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "..."
    frames = [
        f"{_place(frame)}:{line} {frame.f_code.co_qualname}" for frame, line in walk_tb(error.__traceback__)
    ]
    detail = {"says": message, "during": during, "at": frames[: -MOST_FRAMES - 1 : -1]}
    return RecordEvent(
        Name.IMPLEMENTATION_ERROR,
        {"cause": type(error).__name__, "detail": msgspec.json.encode(detail).decode()},
    )


def _place(frame: FrameType) -> str:
    """The file of a frame, below the package: the same on every machine."""
    _, package, below = frame.f_code.co_filename.rpartition("fencepost/")
    return below if package else below.rpartition("/")[2]
