"""The service under test as a process of its own, which a test can kill.

Owns the process. Must not know what it does.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fencepost.traces.errors import EnvironmentError_

SERVERS = "BOOTSTRAP_SERVERS"
"""The environment variable in which a service finds the cluster."""
LOOK_S = 0.02
"""Between two looks."""
END_S = 10.0
"""How long a process may take to be gone once it is killed."""


@contextmanager
def service(
    command: Sequence[str], servers: str, environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a command for the block, and kill it (kill -9) at its end. Raises EnvironmentError_ where it cannot
    start."""
    try:
        process = subprocess.Popen(
            list(command),
            env={**os.environ, **(environment or {}), SERVERS: servers},
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise EnvironmentError_(
            expected="a command that starts", seen=str(error), where=" ".join(command)
        ) from None
    try:
        yield process
    finally:
        process.kill()
        process.wait(END_S)


def until(condition: Callable[[], Any], timeout_s: float) -> None:
    """Wait until a condition is true. Raises AssertionError."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition was not true within {timeout_s:g} s"
        time.sleep(LOOK_S)
