"""The end of a child process that ends by itself once its standard input is closed."""

import contextlib
import subprocess
from typing import Any

from fencepost.processes import forking

END_S = 20.0
"""Seconds until a child that does not end is killed. Reason: on a crowded machine, its own end takes
seconds."""


def end_child(process: "subprocess.Popen[Any] | forking.Process") -> None:
    """Close its pipes and wait until it has ended. One that does not end in END_S seconds is killed."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it has ended
            process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_S)
    if process.stdout is not None:
        process.stdout.close()
