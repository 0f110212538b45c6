"""The process of a driver, and its commands.

Owns the process, its pipes, and when each command was sent and answered by our own clock. Must not know what
a command is for.

Our clock decides what is claimed: a command was invoked not later than we wrote its line, and completed not
later than we had read its answer. That interval is longer than the true one, so a judge that uses it
never convicts a correct client. A command is in `commands` before its line is written.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import msgspec
from attrs import define, field

from fencepost.impl.runtime.processes import death_with_us
from fencepost.torture.building import Built
from fencepost.torture.protocol import (
    MOST_LINE,
    DisturbedError,
    DriverError,
    Lines,
    Ready,
    error_in_words,
    ready_of,
)

READY_S = 60.0
"""Longest wait for a first line: a JVM on a busy machine."""
CALL_S = 90.0
"""Default for the longest wait for an answer: librdkafka's own longest is 60 s."""
WRITE_S = 60.0
"""A driver that does not read for so long has gone."""
END_S = 10.0
"""Time between `quit` and a kill."""
STDERR_S = 1.0
"""What a driver says of its end is waited for so long."""
MOST_COMMANDS = 2_000_000
"""Commands that are kept for the history."""
MOST_TROUBLES = 10_000
"""Unasked events that are kept, the newest."""
STDERR_BYTES = 1 << 16
USER_TICKS, SYSTEM_TICKS = 11, 12
"""Fields of /proc/PID/stat, counted after the name (proc(5))."""
ENCODER = msgspec.json.Encoder()
FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
"""Signals that end a process from outside: a terminal that closes, Ctrl-C, `kill`, a kernel that runs out of
memory. A crash has others (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL)."""
EXIT_CODE_OF_SIGNALS = 128
"""A process that handles a signal and ends, as a JVM does, or a shell around it, exits with this and the
signal's number."""


def ended_from_outside(code: int | None) -> str:
    """Which signal from outside ended a process.

    Args:
        code: its exit status as `Popen.returncode` has it; None: it runs.

    Returns:
        the name of the signal; "" if it runs, or ended by itself: a crash, or any other exit code.
    """
    ends = {-one for one in FROM_OUTSIDE} | {EXIT_CODE_OF_SIGNALS + one for one in FROM_OUTSIDE}
    return "" if code not in ends else signal.Signals(abs(code) % EXIT_CODE_OF_SIGNALS).name


@define(eq=False, kw_only=True)
class Command:
    """One command and its answer."""

    # Its id on the line.
    number: int
    name: str
    client: str
    # As on the line.
    fields: Mapping[str, Any]
    # Read before the line was written.
    sent_ns: int
    # The `done` or `refused`; None while there is none.
    answer: dict[str, Any] | None = None
    # Read after the answer was.
    answered_ns: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the library did it."""
        return self.answer is not None and bool(self.answer.get("ok"))

    @property
    def error(self) -> str:
        """What went wrong, in words."""
        return error_in_words(self.answer)


@define(eq=False, kw_only=True)
class Event:
    """What a driver said unasked."""

    # Read after the event was.
    at_ns: int
    fields: dict[str, Any]


@define(eq=False, kw_only=True)
class Driver:
    """A driver that runs. Use as a context manager; commands may be sent from any thread."""

    # library@version, for messages.
    name: str
    # The process of the driver.
    process: "subprocess.Popen[bytes]"
    # What its first line says.
    ready: Ready = field(init=False)
    # All that were sent since `forget`, in order.
    commands: list[Command] = field(factory=list, init=False)
    # The latest events.
    events: "deque[Event]" = field(factory=lambda: deque(maxlen=MOST_TROUBLES), init=False)
    # Why it cannot be used any more; empty while it can.
    failure: str = field(default="", init=False)
    # Whether we have killed it.
    _killed: bool = field(default=False, init=False)
    # Commands so far; the next one's id.
    _sent: int = field(default=0, init=False)
    # Its first line as it came; None before.
    _first: dict[str, Any] | None = field(default=None, init=False)
    # Commands without an answer, by id.
    _open: dict[int, Command] = field(factory=dict, init=False)
    # Notified at every line.
    _changed: threading.Condition = field(factory=threading.Condition, init=False)
    # Held while a command is written.
    _writing: threading.Lock = field(factory=threading.Lock, init=False)
    # The end of what the process wrote to stderr.
    _stderr: bytearray = field(factory=bytearray, init=False)
    # Set when stderr has been read to its end.
    _heard: threading.Event = field(factory=threading.Event, init=False)
    # Readers of stdout and stderr.
    _threads: list[threading.Thread] = field(factory=list, init=False)

    @classmethod
    def start(cls, built: Built) -> "Driver":
        """Start the process and wait for its first line. Raises DriverError."""
        # the death signal comes when the starting thread ends, and only the main thread lives as long as we
        in_main_thread = threading.current_thread() is threading.main_thread()
        try:
            process = subprocess.Popen(
                built.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=built.folder,
                env={**os.environ, **built.environment},
                start_new_session=True,
                bufsize=0,
                preexec_fn=death_with_us() if in_main_thread else None,
            )
        except OSError as error:
            raise DriverError(
                expected="a driver that starts", seen=str(error), where=" ".join(built.command[:2])
            ) from None
        driver = cls(name=str(built.wanted), process=process)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        for work in (driver._read, driver._read_stderr):
            thread = threading.Thread(target=work, name=f"driver {driver.name}", daemon=True)
            thread.start()
            driver._threads.append(thread)
        try:
            with driver._changed:
                driver._changed.wait_for(lambda: driver._first is not None or driver.failure, READY_S)
            if driver._first is None:
                raise driver.broken(f"a first line within {READY_S:g} s")
            driver.ready = ready_of(driver._first)
        except BaseException:
            driver.kill()
            raise
        return driver

    def __enter__(self) -> "Driver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    # ---- commands

    def send(self, name: str, client: str = "", **fields: Any) -> Command:
        """Write a command; its answer comes later. name: the command; client: its client, "" for none;
        fields: others of the line. Raises DriverError if the driver has gone."""
        with self._writing:
            number = self._sent
            if len(self.commands) >= MOST_COMMANDS:
                raise DriverError(
                    expected=f"at most {MOST_COMMANDS:,} commands", seen="more", where=self.name
                )
            words = {"id": number, "command": name, "client": client, **fields}
            command = Command(
                number=number, name=name, client=client, fields=fields, sent_ns=time.monotonic_ns()
            )
            with self._changed:
                if self.failure:
                    raise self.broken("a driver that runs")
                self._sent += 1
                self.commands.append(command)
                self._open[number] = command
            self._write(ENCODER.encode(words) + b"\n")
        return command

    def wait(self, commands: Iterable[Command], timeout_s: float = CALL_S) -> bool:
        """Wait for the answers. Returns whether all came within timeout_s."""
        commands = list(commands)
        deadline = time.monotonic() + timeout_s
        with self._changed:
            for command in commands:
                while command.answer is None:
                    left = deadline - time.monotonic()
                    if left <= 0 or self.failure:
                        return False
                    self._changed.wait(left)
        return True

    def ask(self, name: str, client: str = "", timeout_s: float = CALL_S, **fields: Any) -> Command:
        """Send a command and wait for its answer, which may be an error of the library. Parameters as of
        `send`; timeout_s: the longest wait. Raises DriverError if no answer comes, or if the driver
        refuses."""
        command = self.send(name, client, **fields)
        self.wait([command], timeout_s)
        if command.answer is None:
            raise self.broken(f"an answer to {name} of {client or 'the driver'} within {timeout_s:g} s")
        if command.answer["event"] == "refused":
            raise DriverError(
                expected=f"a driver that does {name}: {command.answer.get('expected')}",
                seen=f"refused: {command.answer.get('seen')}",
                where=self.name,
            )
        return command

    def call(self, name: str, client: str = "", timeout_s: float = CALL_S, **fields: Any) -> dict[str, Any]:
        """As `ask`, but returns the fields of `done`. Raises DriverError also if the library failed, instead
        of returning the error. name, client, timeout_s, fields: as there."""
        command = self.ask(name, client, timeout_s, **fields)
        if not command.ok:
            raise DriverError(expected=f"{name} to succeed", seen=command.error, where=self.name)
        assert command.answer is not None
        return command.answer

    @property
    def under_way(self) -> int:
        """Commands without an answer."""
        return len(self._open)

    @property
    def troubled(self) -> set[str]:
        """Clients that reported trouble."""
        return {one.fields.get("client", "") for one in list(self.events) if one.fields["event"] == "trouble"}

    def forget(self) -> None:
        """Begin a new history; what is under way is still answered."""
        with self._changed:
            self.commands = []
            self.events.clear()

    # ---- its end

    def end(self) -> None:
        """Let it end; after END_S it is killed. Ending again does nothing."""
        if self.process.poll() is None and not self.failure:
            with contextlib.suppress(DriverError):
                self.send("quit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
        self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(END_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _kill(self) -> None:
        if self.process.poll() is None:
            self._killed = True
            self.process.kill()

    def refuse_disturbed(self) -> None:
        """Raises DisturbedError if a signal from outside has ended the process: nobody knows what the library
        would have done."""
        if not self.failure or self._killed:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):  # its pipes close before its status is there
            self.process.wait(END_S)
        name = ended_from_outside(self.process.returncode)
        if name:
            raise DisturbedError(
                expected="a driver that ends by itself, or not at all",
                seen=f"that it was ended by {name}, which neither fencepost nor a crash sends",
                where=f"the driver of {self.name}",
                hint="run it again (torture: --resume); a system that runs out of memory sends SIGKILL, too",
            )

    def processor_s(self) -> float:
        """Processor time of its process so far; 0 where the system does not show it (it is in /proc on
        Linux)."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
                numbers = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            return 0.0
        return (int(numbers[USER_TICKS]) + int(numbers[SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")

    def last_words(self) -> str:
        """The end of its standard error."""
        return self._stderr.decode(errors="replace").strip()[-2_000:]

    def broken(self, expected: str) -> DriverError:
        """What is wrong with a driver that has ended or does not keep the protocol. expected: instead of
        that."""
        try:
            self.refuse_disturbed()
        except DisturbedError as error:
            return error
        words = self.last_words()
        return DriverError(
            expected=expected,
            seen=(self.failure or "none") + (f"; its standard error ends with: {words}" if words else ""),
            where=f"the driver of {self.name}",
        )

    # ---- its pipes

    def _write(self, line: bytes) -> None:
        if len(line) > MOST_LINE:
            raise DriverError(
                expected=f"commands of at most {MOST_LINE:,} bytes", seen=f"{len(line):,}", where=self.name
            )
        pipe = self.process.stdin
        assert pipe is not None
        left = memoryview(line)
        with selectors.DefaultSelector() as selector:
            try:
                while left:
                    try:
                        left = left[os.write(pipe.fileno(), left) :]
                    except BlockingIOError:
                        if not selector.get_map():
                            selector.register(pipe, selectors.EVENT_WRITE)
                        if not selector.select(WRITE_S):
                            self._fail(f"that it reads nothing for {WRITE_S:g} s")
                            break
            except (OSError, ValueError):
                self._fail("that it has ended")

    def _read(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None
        lines = Lines()
        try:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                for event in lines.feed(chunk):
                    self._take(event)
            code = self.process.wait(END_S)
            self._heard.wait(STDERR_S)  # a child of the driver may hold it open
            self._fail(f"that it ended with code {code}")
        except DriverError as error:
            self._kill()  # before it fails: whoever sees the failure knows who ended the process
            self._fail(str(error))
        except (OSError, subprocess.TimeoutExpired) as error:
            self._fail(str(error))

    def _take(self, event: dict[str, Any]) -> None:
        now = time.monotonic_ns()
        with self._changed:
            if self._first is None:
                self._first = event
            elif event["event"] in ("done", "refused") and event.get("id") is not None:
                number = event["id"]
                command = self._open.pop(number, None) if type(number) is int else None
                if command is None:
                    raise DriverError(
                        expected="one answer to each command", seen=f"another to {number}", where=self.name
                    )
                command.answer, command.answered_ns = event, now
            else:
                self.events.append(Event(at_ns=now, fields=event))
                return
            self._changed.notify_all()

    def _read_stderr(self) -> None:
        pipe = self.process.stderr
        assert pipe is not None
        with contextlib.suppress(OSError):
            while chunk := os.read(pipe.fileno(), 1 << 14):
                self._stderr += chunk
                del self._stderr[:-STDERR_BYTES]
        self._heard.set()

    def _fail(self, failure: str) -> None:
        with self._changed:
            self.failure = self.failure or failure
            self._changed.notify_all()
