"""Processes of ours that are forked from one which has loaded their module, instead of each loading it.

Loading a campaign's worker takes half a second of processor time, a fork a hundredth of that. Who starts many
processes one after the other says so (`kept`); everybody else gets a new interpreter, as ever.

A fork has the hash seed of the process that it is forked from. So there is one such server for each module
and each setting of Python's own environment variables, PYTHONHASHSEED among them: a process has the hash seed
that it was started with, forked or not.

A server calls the module's function `load`, if it has one, and a forked process its function `main`.

Owns: servers, and the pipes to what they fork. Must not know the modules.
"""

import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Protocol

import msgspec
from attrs import define, field, frozen

from fencepost.processes.begin import settle

BEGIN = (sys.executable, "-m", "fencepost.processes.begin")
"""How a command line of a process of ours begins; the module follows."""
_LENGTH_BYTES = 4
"""Bytes of the number in front of a request: its length."""
_DESCRIPTORS = 4
"""Sent with a request: standard input, output and error, and the pipe for the process's number and return
code."""


class Process(Protocol):
    """What subprocess.Popen and Forked have in common."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


def start(command: tuple[str, ...], environment: Mapping[str, str], bufsize: int = -1) -> Process:
    """Start a process of its own session, with pipes to its standard input and output.

    Args:
        command: its command line. One of ours (BEGIN and a module) may be forked.
        environment: its environment variables.
        bufsize: of both pipes, as in subprocess.Popen.
    """
    if _kept and command[:-1] == BEGIN:
        return _kept[-1].fork(command[-1], environment, bufsize)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        bufsize=bufsize,
    )


@contextmanager
def kept() -> Iterator[None]:
    """While this is open, `start` forks: a server that it started serves every later call, too. Then the
    servers end. Their processes that still run go on."""
    servers = _Servers()
    _kept.append(servers)
    try:
        yield
    finally:
        _kept.remove(servers)
        servers.close()


# ---- this process: the client of the servers


@frozen
class _Request:
    """A process to be forked."""

    environment: dict[str, str]
    cwd: str


@define(eq=False)
class Forked:
    """A forked process, with the methods of subprocess.Popen that ours need."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    # Reads two lines: the process's number, later its return code.
    _told: IO[bytes]
    _pid: int = field(default=0, init=False)
    _code: int | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def pid(self) -> int:
        """Its number; waits until it is forked. 0 if its server ended before."""
        with self._lock:
            return self._number()

    def _number(self) -> int:
        if not self._pid:
            self._pid = int(self._told.readline() or b"0")
        return self._pid

    def poll(self) -> int | None:
        """Its return code, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Its return code, negative for a signal. Raises subprocess.TimeoutExpired after `timeout`
        seconds."""
        with self._lock:
            if self._code is None and self._number():
                if not _is_readable(self._told, timeout):
                    raise subprocess.TimeoutExpired("a forked process", timeout or 0)
                self._code = int(self._told.readline() or b"1")
            elif self._code is None:
                self._code = 1
            self._told.close()
            return self._code

    def kill(self) -> None:
        """End it at once, if it has not ended yet."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended just now, and its server has taken note
                os.kill(self.pid, signal.SIGKILL)


def _is_readable(pipe: IO[bytes], timeout: float | None) -> bool:
    """Whether it has something to read within so many seconds, or has ended."""
    with selectors.DefaultSelector() as selector:  # unlike select(), for any number of open files
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(timeout))


@define(eq=False)
class _Server:
    """A process that has loaded a module, and forks."""

    _popen: "subprocess.Popen[bytes]"
    _control: socket.socket
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @classmethod
    def load(cls, module: str, environment: Mapping[str, str]) -> "_Server":
        ours, theirs = socket.socketpair()
        with theirs:
            popen = subprocess.Popen(
                (*BEGIN, __name__, module),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        return cls(popen, ours)

    def fork(self, environment: Mapping[str, str], bufsize: int) -> Forked:
        line = msgspec.json.encode(_Request(dict(environment), str(Path.cwd())))
        stdin, to = os.pipe()
        back, stdout = os.pipe()
        report, status = os.pipe()
        length = len(line).to_bytes(_LENGTH_BYTES)
        with self._lock, suppress(BrokenPipeError):  # a server that has ended: so have the pipes
            socket.send_fds(self._control, [length], [stdin, stdout, 2, status])
            self._control.sendall(line)
        for descriptor in (stdin, stdout, status):
            os.close(descriptor)
        return Forked(
            os.fdopen(to, "wb", bufsize), os.fdopen(back, "rb", bufsize), os.fdopen(report, "rb", 0)
        )

    def close(self) -> None:
        self._control.close()
        self._popen.wait()


@define(eq=False)
class _Servers:
    """Servers by module and Python's own environment variables."""

    _servers: dict[tuple[str, tuple[tuple[str, str], ...]], _Server] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def fork(self, module: str, environment: Mapping[str, str], bufsize: int) -> Forked:
        pythons = sorted(item for item in environment.items() if item[0].startswith("PYTHON"))
        key = (module, tuple(pythons))
        with self._lock:
            if key not in self._servers:
                self._servers[key] = _Server.load(module, environment)
        return self._servers[key].fork(environment, bufsize)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


_kept: list[_Servers] = []
"""Open `kept`s, the innermost last."""


# ---- the server


def main() -> None:
    """Entry of a server: load the module that the command line names, then fork whatever is asked for until
    standard input closes."""
    gc.disable()
    module = resolve_name(sys.argv[1])
    load = getattr(module, "load", None)
    if load is not None:  # what the module otherwise imports when it is needed
        load()
    settle()
    control = socket.socket(fileno=os.dup(0))
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, int] = {}  # the pipe for the status of each process, by its number
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                os.read(woken, 1 << 10)
                _reap(running)
            if control in ready:
                head, descriptors, _, _ = socket.recv_fds(control, _LENGTH_BYTES, _DESCRIPTORS)
                if not head:
                    os._exit(0)
                request = msgspec.json.decode(
                    control.recv(int.from_bytes(head), socket.MSG_WAITALL), type=_Request
                )
                *standard, status = descriptors
                child = os.fork()
                if not child:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    selector.close()
                    for number in (control.detach(), woken, wake, status, *running.values()):
                        os.close(number)
                    _become(request, standard)
                    _end(module.main)
                running[child] = status
                _report(status, child)
                for number in standard:
                    os.close(number)


def _reap(running: dict[int, int]) -> None:
    """Report the return codes of all processes that have ended."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        pipe = running.pop(child)
        _report(pipe, os.waitstatus_to_exitcode(status))
        os.close(pipe)


def _report(pipe: int, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(pipe, b"%d\n" % number)


def _become(request: _Request, standard: list[int]) -> None:
    """In the forked process: take on the session, directory, environment and streams of a new one."""
    os.setsid()
    if sys.path[0] == str(Path.cwd()):
        sys.path[0] = request.cwd
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.environment)
    for number, given in enumerate(standard):
        os.dup2(given, number)
        os.close(given)


def _end(process: object) -> None:
    """Run the process and end with its exit code, without the clean-up of an interpreter."""
    assert callable(process)
    code = 0
    try:
        process()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
