"""A private real ZooKeeper server, from the jars in PySpark's wheel: a private directory, a free port of the
loopback interface.

Owns its configuration, its start and its end. Must not know its content. The data survives a kill (the page
cache survives a process), but not a power loss: `forceSync=no`, because the server is for tests.
"""

import secrets
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from attrs import define, frozen

from fencepost.impl.runtime.processes import ProcessId, end, send_signal, spawn, state, uninterrupted
from fencepost.processes.java import find_java
from fencepost.traces.errors import EnvironmentError_, MissingExtraError

HOST = "127.0.0.1"
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
ATTEMPTS = 3
"""Ports to try. Reason: another process may bind a free port before the server does."""
START_S = 300.0
"""How long a start may take. Reason: it takes 1.5 s of processor time, which is a second, or minutes on a
crowded machine. A server that died is noticed at once."""
PORTS = range(10_000, 32_768)
"""Where free ports are looked for. Outgoing connections have higher ones (ip_local_port_range, RFC 6335)."""
PROBES = 100
"""Tries for each free port. Reason: nearly all are free."""
POLL_S = 0.05
ANSWER_S = 2.0
"""A server that runs answers `srvr` in milliseconds."""
ANSWER_BYTES = 4_096
"""Bytes: the answer to `srvr` has about two hundred."""


@frozen(kw_only=True)
class ServerOptions:
    """The options of the server."""

    # Sessions expire at multiples of it.
    tick_time_ms: int = 200
    # The shortest session timeout that a client gets.
    minimum_session_timeout_ms: int = 400
    # The longest session timeout that a client gets.
    maximum_session_timeout_ms: int = 600_000
    # The heap of the Java process in MiB.
    heap_mb: int = 512
    # jute.maxbuffer.
    maximum_request_bytes: int = 1_048_575
    # The class path of ZooKeeper's jars; "" for those of PySpark's wheel.
    class_path: str = ""


DEFAULTS = ServerOptions()


@define
class ZooKeeperServer:
    """A running server."""

    # Its identity.
    process: ProcessId
    # Its port.
    port: int
    # Its data, configuration and log.
    directory: Path

    @property
    def address(self) -> str:
        """HOST:PORT"""
        return f"{HOST}:{self.port}"

    @classmethod
    def start(
        cls,
        directory: Path,
        options: ServerOptions = DEFAULTS,
        on_spawn: Callable[[str, ProcessId], None] | None = None,
        dies_with_us: bool = False,
        port: int = 0,
    ) -> "ZooKeeperServer":
        """Start a server, and wait until it answers. If the wait is interrupted, no process is left.

        Args:
            directory: its data, configuration and log.
            options: the options of the server.
            on_spawn: called with address and process before the wait, to record them. Without it, the server
                dies with the calling thread.
            dies_with_us: the server dies with the calling thread in any case.
            port: where it listens, again after its end; 0: a free port.

        Returns:
            the server.

        Raises:
            EnvironmentError_: if it does not start.
        """
        command = _command(options)
        directory.mkdir(parents=True, exist_ok=True)
        for _ in range(ATTEMPTS):
            at = port or free_ports(1)[0]
            configuration = directory / "zoo.cfg"
            configuration.write_text(_configuration(directory, at, options), encoding="utf-8")
            begun: list[ProcessId] = []
            try:
                with uninterrupted(), (directory / "zookeeper.log").open("ab") as log:
                    begun.append(
                        spawn(
                            [*command, str(configuration)], log, dies_with_us=dies_with_us or on_spawn is None
                        )
                    )
                    if on_spawn is not None:
                        on_spawn(f"{HOST}:{at}", begun[0])
                if _answers_soon(begun[0], at):
                    return cls(begun[0], at, directory)
            except BaseException:
                end(begun)
                raise
            end(begun)
        raise EnvironmentError_(
            expected=f"a ZooKeeper server that answers within {START_S:.0f} s",
            seen=_last_words(directory / "zookeeper.log"),
            where=str(directory),
        )

    def stop(self) -> None:
        """Stop the server; on return its process is gone. A second call has no effect."""
        end([self.process])

    def pause(self) -> None:
        """Pause the process (SIGSTOP)."""
        send_signal(self.process, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process (SIGCONT)."""
        send_signal(self.process, signal.SIGCONT)

    def __enter__(self) -> "ZooKeeperServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_ports(count: int) -> list[int]:
    """Different unused ports of the loopback interface. They are below those of outgoing connections: one of
    these, of anybody, could take a port before its server has it.

    Raises:
        EnvironmentError_: if there are none.
    """
    found: list[int] = []
    with ExitStack() as probes:
        for _ in range(PROBES * count):
            probe = probes.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind((HOST, PORTS[0] + secrets.randbelow(len(PORTS))))
                found.append(probe.getsockname()[1])
            if len(found) == count:
                return found
    raise EnvironmentError_(
        expected=f"{count} unused ports from {PORTS[0]} to {PORTS[-1]}", seen=str(len(found)), where=HOST
    )


def answers(host: str, port: int) -> bool:
    """Whether a ZooKeeper server answers at this address (the four-letter word `srvr`).

    Args:
        host: the host.
        port: the port.

    Returns:
        whether it serves.
    """
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(ANSWER_BYTES)
    except OSError:
        return False


OR_ELSE = ", or name a running server with --zookeeper HOST:PORT"


def check_client() -> None:
    """Fail before anything is made for a cluster with a ZooKeeper, if no client of it is installed. Raises
    MissingExtraError."""
    import_module("fencepost.impl.runtime.zookeeper.session")


def check_server() -> None:
    """Raises EnvironmentError_ if a server cannot be started on this machine, before anything is written."""
    find_java("ZooKeeper", or_else=OR_ELSE)
    jars()


def jars() -> Path:
    """The folder of PySpark's jars, which include ZooKeeper."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            package="pyspark", extra="zookeeper", needed_for="a ZooKeeper server of our own"
        )
    folder = Path(spec.origin).parent / "jars"
    if not list(folder.glob("zookeeper-[0-9]*.jar")):
        raise EnvironmentError_(
            expected="zookeeper-*.jar among PySpark's jars",
            seen="none",
            where=str(folder),
            hint="install the full pyspark package, not pyspark-client or pyspark-connect",
        )
    return folder


def _command(options: ServerOptions) -> list[str]:
    class_path = options.class_path or f"{jars()}/*"
    return [
        find_java("ZooKeeper", or_else=OR_ELSE),
        f"-Xmx{options.heap_mb}m",
        "-XX:+UseSerialGC",  # a small heap on few cores
        "-XX:TieredStopAtLevel=1",  # the second compiler costs a start 0.7 s of 1.7, and serves no such load
        "-XX:-UsePerfData",
        "-Dzookeeper.forceSync=no",
        f"-Djute.maxbuffer={options.maximum_request_bytes}",
        "-cp",
        class_path,
        MAIN,
    ]


def _configuration(directory: Path, port: int, options: ServerOptions) -> str:
    return "\n".join(
        (
            f"dataDir={(directory / 'data').absolute()}",
            f"clientPortAddress={HOST}",
            f"clientPort={port}",
            f"tickTime={options.tick_time_ms}",
            f"minSessionTimeout={options.minimum_session_timeout_ms}",
            f"maxSessionTimeout={options.maximum_session_timeout_ms}",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr",
            "",
        )
    )


def _answers_soon(process: ProcessId, port: int) -> bool:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and state(process) != "dead":
        if answers(HOST, port):
            return state(process) != "dead"
        time.sleep(POLL_S)
    return False


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "an empty log"
