"""A driver of Spark that is interrupted, and what it leaves."""

import os
import signal
import subprocess

LIMIT_S = 600
"""Generous: for the end of a driver on a busy machine."""


def after_ctrl_c(driver: "subprocess.Popen[str]") -> tuple[str, str]:
    """(output, errors) of a driver that leads a process group, after Ctrl-C in its terminal, which every
    process of the group gets. None of them may be left."""
    os.killpg(driver.pid, signal.SIGINT)
    try:
        return driver.communicate(timeout=LIMIT_S)
    finally:
        left = group(driver.pid)
        if left:
            os.killpg(driver.pid, signal.SIGKILL)
        assert not left, left


def group(number: int) -> list[str]:
    """Command lines of the processes of a group."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pgid,stat,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return [row[2] for row in rows if row[0] == str(number) and not row[1].startswith("Z")]
