"""Waiting for the processes of a cluster that was brought up. Must not know which cluster."""

import time
from collections.abc import Callable

from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

POLL_S = 0.5
"""Seconds between two looks at the processes."""


def serve(
    output: Output,
    tell: Callable[[], None],
    alive: Callable[[], object],
    end: Callable[[], object],
    *,
    detach: bool,
    notice: Callable[[], str] = lambda: "",
) -> ExitCode:
    """Report a cluster that has started, and wait until its processes have ended. tell: reports; alive:
    whether any runs; end: ends them all, at a Ctrl-C and at an error; detach: do not wait; notice:
    what has gone wrong since, in a sentence that is printed once."""
    noticed = ""
    try:
        tell()
        if detach:
            return ExitCode.NOTHING_FOUND
        output.note("Ctrl-C ends it")
        while alive():
            if (seen := notice()) != noticed:
                noticed = seen
                if seen:
                    output.note(seen)
            time.sleep(POLL_S)
    except BaseException:
        end()
        raise
    output.note("all its processes have ended")
    return ExitCode.NOTHING_FOUND
