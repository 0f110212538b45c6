"""The processes of services, as the cluster sees them: which of them a connection belongs to, and signals to
them.

Owns that lookup, and that no other process ever gets a signal. Must not know strikes, or how a service is
started.

A connection is found by the port of its client: /proc/net/tcp has the inode of each port's socket, and
/proc/PID/fd the inodes that a process has open. Without /proc no connection has a process, and no process is
struck.
"""

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

from attrs import define, field

PROC = Path("/proc")
MOST_KNOWN = 10_000
"""Connections whose process is remembered; the oldest go first."""
UNKNOWN = -1
MOST_LOOKS = 5
"""At a connection that belongs to none: one look may miss what a busy process has just opened, and each costs
about a millisecond."""


@define(eq=False)
class Processes:
    """Those of one cluster."""

    # A file descriptor for each process: a number may belong to another process later, its descriptor never.
    _open: dict[int, int] = field(factory=dict, init=False)
    # By connection.
    _known: dict[int, int] = field(factory=dict, init=False)
    # At connections that belong to none so far.
    _looks: Counter[int] = field(factory=Counter, init=False)

    def __contains__(self, process: int) -> bool:
        return process in self._open

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, process: int) -> None:
        """A service runs. process: its number; nothing happens if it has ended."""
        self._known.clear()
        self._looks.clear()
        with suppress(ProcessLookupError):
            self._open[process] = os.pidfd_open(process)

    def remove(self, process: int) -> None:
        """It has ended."""
        descriptor = self._open.pop(process, None)
        if descriptor is not None:
            os.close(descriptor)

    def signal(self, process: int, number: signal.Signals) -> None:
        """Send it a signal; nothing happens if it has ended.

        Args:
            process: its number.
            number: of the signal.
        """
        if process in self._open:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._open[process], number)

    def owner(self, source: int, port: int) -> int:
        """The process of a connection.

        Args:
            source: the connection.
            port: of its client; 0 where it is not known.

        Returns:
            The process; UNKNOWN if it is none of the services'.
        """
        if source not in self._known:
            while len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            found = self._of_port(port) if self._open and port else UNKNOWN
            self._looks[source] += 1
            if found == UNKNOWN and self._looks[source] < MOST_LOOKS:
                return UNKNOWN
            del self._looks[source]
            self._known[source] = found
        return self._known[source]

    def _of_port(self, port: int) -> int:
        wanted = _sockets_of_port(port)
        if wanted:
            for process in self._open:
                if any(wanted & _sockets(each) for each in _family(process)):
                    return process
        return UNKNOWN


def _sockets_of_port(port: int) -> set[str]:
    """Those of this machine whose end has this port, as /proc/PID/fd names them: other connections, also ones
    that were closed a while ago, may have the same port to another server."""
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(f":{port:04X}"):
                    found.add(f"socket:[{fields[9]}]")
    return found


def _sockets(process: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in (PROC / str(process) / "fd").iterdir():
            with suppress(OSError):
                found.add(str(entry.readlink()))
    return found


def _family(process: int) -> list[int]:
    """A process and those that it has started."""
    found = [process]
    for one in found:
        with suppress(OSError):
            for task in (PROC / str(one) / "task").iterdir():
                found += [int(word) for word in (task / "children").read_text().split()]
    return found
