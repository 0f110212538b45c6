"""A real ZooKeeper server of our own, from the jars inside PySpark's wheel: a private directory, a free port
of the loopback interface.

Owns its configuration, its start and its end. Must not know what is stored in it. It keeps its data across a
kill (the page cache outlives a process), not across a power loss: `forceSync=no`, because what it serves is a
test.
"""

import shutil
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from attrs import define, frozen

from fencepost.impl.runtime.processes import ProcessId, end, send_signal, spawn, state, uninterrupted
from fencepost.traces.errors import EnvironmentError_, MissingExtraError

HOST = "127.0.0.1"
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
ATTEMPTS = 3
"""Ports tried: another process may take the one that we found free before the server binds it."""
START_S = 300.0
"""A start takes 1.5 s of processor time: a second, or minutes on a crowded machine. A server that died is
noticed at once."""
POLL_S = 0.05
ANSWER_S = 2.0
ANSWER_BYTES = 4_096


@frozen(kw_only=True)
class ServerOptions:
    """tick_time_ms: sessions expire at multiples of it. heap_mb: of the Java process. maximum_request_bytes:
    jute.maxbuffer. class_path: of ZooKeeper's jars, empty for those of PySpark's wheel."""

    tick_time_ms: int = 200
    minimum_session_timeout_ms: int = 400
    maximum_session_timeout_ms: int = 600_000
    heap_mb: int = 512
    maximum_request_bytes: int = 1_048_575
    class_path: str = ""


DEFAULTS = ServerOptions()


@define
class ZooKeeperServer:
    """A server that answers. process: its identity; port: where it listens; directory: its data,
    configuration and log."""

    process: ProcessId
    port: int
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
    ) -> "ZooKeeperServer":
        """Start one on the data in `directory`, and wait until it answers. Whatever interrupts the waiting,
        no process is left.

        on_spawn: hears of address and process before they are waited for, and keeps them: without it, or with
        dies_with_us, the server dies with the thread that called.
        """
        command = _command(options)
        directory.mkdir(parents=True, exist_ok=True)
        for _ in range(ATTEMPTS):
            (port,) = free_ports(1)
            configuration = directory / "zoo.cfg"
            configuration.write_text(_configuration(directory, port, options), encoding="utf-8")
            begun: list[ProcessId] = []
            try:
                with uninterrupted(), (directory / "zookeeper.log").open("ab") as log:
                    begun.append(
                        spawn(
                            [*command, str(configuration)], log, dies_with_us=dies_with_us or on_spawn is None
                        )
                    )
                    if on_spawn is not None:
                        on_spawn(f"{HOST}:{port}", begun[0])
                if _answers_soon(begun[0], port):
                    return cls(begun[0], port, directory)
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
        """End it; on return its process is gone. Stopping again does nothing."""
        end([self.process])

    def pause(self) -> None:
        """Let it stand still (SIGSTOP)."""
        send_signal(self.process, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        send_signal(self.process, signal.SIGCONT)

    def __enter__(self) -> "ZooKeeperServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback interface that nobody uses now."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in sockets]


def answers(host: str, port: int) -> bool:
    """Whether a ZooKeeper server serves there (the four-letter word `srvr`)."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(ANSWER_BYTES)
    except OSError:
        return False


def java() -> str:
    """The Java program, or one sentence about its absence."""
    program = shutil.which("java")
    if program is None:
        raise EnvironmentError_(
            expected="Java 17 or later",
            seen="no program named java",
            where="PATH",
            hint="install a Java runtime, or name a running server with --zookeeper HOST:PORT",
        )
    return program


def check_server() -> None:
    """Raises EnvironmentError_ where a server cannot be started here, before anything is written."""
    java()
    jars()


def jars() -> Path:
    """The folder of PySpark's jars; ZooKeeper is among them."""
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
        java(),
        f"-Xmx{options.heap_mb}m",
        "-XX:+UseSerialGC",  # a small heap on few cores
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
