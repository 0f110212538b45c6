"""Systems whose brokers are all in one process, which obeys lines and ends with its input.

Owns the process, its lines and the verbs that no such system has. Must not know what the process is.

The first line of its output is NODE=HOST:PORT for each broker, separated by spaces; the answer to each line
is `ok`, or `error` and a sentence.
"""

import asyncio
import contextlib
import subprocess
from typing import TYPE_CHECKING

from attrs import define, field

from fencepost.systems.children import end_child
from fencepost.systems.system import System, UnsupportedError
from fencepost.traces.errors import EnvironmentError_

if TYPE_CHECKING:
    from fencepost.wire.client import Address


@define(eq=False, kw_only=True, repr=False)
class OneProcess(System):
    """What such systems share."""

    # How many brokers.
    size: int = 3
    # Of all brokers, by id; known once it has started.
    addresses: "dict[int, Address]" = field(factory=dict, init=False)
    _process: "subprocess.Popen[str] | None" = field(default=None, init=False)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(range(1, self.size + 1))

    def command(self) -> list[str]:
        """The process. Raises EnvironmentError_ where it cannot be had."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it. Raises EnvironmentError_."""
        self._process = subprocess.Popen(
            self.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        for part in self._line().split():
            node, _, address = part.partition("=")
            host, _, port = address.rpartition(":")
            self.addresses[int(node)] = host, int(port)

    def close(self) -> None:
        """End the process. Closing again does nothing."""
        process, self._process = self._process, None
        if process is not None:
            end_child(process)

    def _line(self) -> str:
        line = ""
        if self._process is not None and self._process.stdout is not None:
            line = self._process.stdout.readline()
        if not line or line.startswith("error"):
            raise EnvironmentError_(
                expected="an answer", seen=line.strip() or "the end of the process", where=repr(self)
            )
        return line

    def do(self, *words: object) -> None:
        """Have the process obey one line. words: of the line. Raises EnvironmentError_."""
        if self._process is None or self._process.stdin is None:
            raise EnvironmentError_(expected="a system that runs", seen="no process", where=repr(self))
        with contextlib.suppress(OSError):  # the end of its output says so, too
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        self._line()

    def healthy(self) -> bool:
        """Whether every broker answers, knows the others, and every partition has a leader."""
        from fencepost.systems.agreement import all_agree

        return asyncio.run(all_agree(self.addresses))

    def bootstrap_servers(self) -> str:
        """Addresses for Kafka's clients."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    def runs(self, broker: int) -> bool:
        """Whether the broker is there."""
        return self._process is not None and broker in self.addresses

    def restart(self, broker: int) -> None:
        """Nothing: it runs. broker: any."""

    def cannot(self, expected: str = "", seen: str = "one for all") -> UnsupportedError:
        """All that it lacks, it lacks for one reason. seen: what there is instead."""
        return super().cannot("a process for each broker", seen)
