"""The recorder: when each operation of a client began and ended, and what came of it.

Owns: the clock, who did what, the trace that this makes. Must not know judges, pytest, or what is recorded.

The clock is read outside of the call: before it begins and after it has ended, so that the recorded interval
is never shorter than the true one. A shorter interval would convict the innocent; a longer one only ever
allows more. An exception leaves the outcome unknown (the operation may have happened, or may happen later),
unless the caller knows that its kind proves the contrary (`fail`).
"""

import inspect
import itertools
import sys
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator
from enum import Enum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

from attrs import define, evolve, field

from fencepost import __version__
from fencepost.history.arguments import (
    check_callable,
    check_errors,
    error_text,
    folder_of,
    json_text,
    make_folder,
    shown,
)
from fencepost.history.decorated import Target, check_parameters, wrapped
from fencepost.history.together import CLIENT, TIMEOUT_S, together
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.operations import LONGEST_NAME, Function, Operation, Outcome
from fencepost.traces.trace import Trace

Errors = tuple[type[BaseException], ...]


class _Unset(Enum):
    UNSET = "unset"


UNSET: Final = _Unset.UNSET
"""The result of an operation that was given none: not the same as None, which is a null."""
ANSWERING = frozenset(
    {Function.READ, Function.GET, Function.CONTAINS, Function.DEQUEUE, Function.CAS, Function.POLL}
    | {Function.LIST_OFFSETS, Function.FETCH_COMMITTED}
)
"""Functions that exist for their answer: a null instead of a missing result would be a false claim."""
TARGET, PROFILE = "recorded", "recorded"
NANOSECONDS_FROM_ZERO = 1_000
"""The first operation of a trace begins here: times of a monotonic clock mean nothing by themselves."""


@define(eq=False, kw_only=True)
class Recording:
    """One operation in progress: the block of a `with` or `async with`. Set `result` to the answer."""

    history: "History"
    op_id: int
    # Identifies the process: a thread, a task, or `process=`.
    label: Hashable
    function: Function
    # As JSON; None: none.
    key: str | None
    argument: str | None
    # Exceptions that prove that the operation had no effect.
    errors: Errors
    # File and line of the call.
    place: str = ""
    result: Any = UNSET
    # None while it follows from the end of the block: ok at its end, unknown (or fail) by an exception.
    outcome: Outcome | None = None
    error: str | None = None
    # Number of the process; -1 before the block begins.
    process: int = -1
    # Nanoseconds of the history's clock.
    invoke_time: int = 0

    def fail(self, error: str | BaseException | None = None) -> None:
        """It did not happen: the answer proves it."""
        self.outcome, self.error = Outcome.FAIL, error_text(error)

    def unknown(self, error: str | BaseException | None = None) -> None:
        """It may have happened: the answer does not tell."""
        self.outcome, self.error = Outcome.UNKNOWN, error_text(error)

    def __enter__(self) -> "Recording":
        client = CLIENT.get()
        if client is not None and _current_task() is None:
            client.begin()
        return self._begin()

    def _begin(self) -> "Recording":
        self.history._began(self)
        now = self.invoke_time = self.history.clock()
        if type(now) is not int:
            del self.history.open[self.op_id]
            raise FencepostError(
                expected="whole nanoseconds, as of time.monotonic_ns", seen=shown(now), where="History: clock"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        completion_time = self.history.clock()
        client = CLIENT.get()
        if client is not None:
            client.end()
        if error is not None:
            self.error = type(error).__name__
            self.outcome = self.outcome or (
                Outcome.FAIL if isinstance(error, self.errors) else Outcome.UNKNOWN
            )
        self.history._ended(self, completion_time)

    async def __aenter__(self) -> "Recording":
        client = CLIENT.get()
        if client is not None:
            await client.pause_task()
        return self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, where)

    def as_operation(self, outcome: Outcome, completion_time: int | None) -> Operation:
        """The row of the trace. outcome: of the operation; completion_time: nanoseconds, None if it has not
        completed."""
        result = json_text(
            None if self.result is UNSET else self.result,
            f"the result of {self.function} (operation {self.op_id})",
        )
        return Operation(
            op_id=self.op_id,
            process=self.process,
            function=self.function,
            invoke_time=self.invoke_time,
            outcome=outcome,
            completion_time=None if outcome is Outcome.UNKNOWN else completion_time,
            key=self.key,
            argument=self.argument,
            result=result if outcome is Outcome.OK else None,
            error=self.error,
        )


@define(eq=False, kw_only=True, repr=False)
class History:
    """Operations of any number of threads and asyncio tasks. Each thread, and each asyncio task, is a
    process; `process=` overrides that."""

    # Exceptions that prove that an operation had no effect.
    fail: Errors = ()
    # Nanoseconds that never go back, the same for all recorders.
    clock: Callable[[], int] = time.monotonic_ns
    # Where `assert_linearizable` saves the trace before it is judged; None: nowhere.
    folder: Path | None = None
    # The trace with what the caller knows about it (record/claimed); None: no claims.
    claimed: Callable[[Trace], Trace] | None = None
    # Completed operations, in the order of their completion.
    operations: list[Operation] = field(factory=list, init=False)
    # Operations in progress, by op id.
    open: dict[int, Recording] = field(factory=dict, init=False)
    # Whether two operations were ever in progress in one process.
    overlapping: bool = field(default=False, init=False)
    # Places of successful operations without a result, by op id.
    unanswered: dict[int, str] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _op_ids: Iterator[int] = field(factory=lambda: itertools.count(1), init=False)
    _thread: threading.local = field(factory=threading.local, init=False)
    _processes: dict[Hashable, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        check_errors(self.fail, "History")
        check_callable(self.clock, "a function that answers nanoseconds", "History: clock")
        if self.claimed is not None:
            check_callable(self.claimed, "a function from trace to trace", "History: claimed")
        if self.folder is not None:
            self.folder = folder_of(self.folder, "History: folder")

    def __repr__(self) -> str:
        return f"<History of {len(self.operations)} operations, {len(self.open)} under way>"

    def operation(
        self,
        function: str,
        *,
        key: object = None,
        argument: Any = None,
        fail: Errors = (),
        process: Hashable = None,
    ) -> Recording:
        """An operation to record: the block of a `with` or `async with` is the call.

        Args:
            function: what it is called in the model (docs/reference/models.md).
            key: which of several independent objects it concerns; None: there is only one.
            argument: what JSON can hold.
            fail: kinds of exceptions that mean that the operation had no effect.
            process: who does it; None: this thread or task.

        Raises:
            FencepostError: for an unknown function.
            TraceError: for a value that JSON cannot hold.
        """
        named = function_named(function)
        check_errors(fail, f"the operation {named}")
        if not isinstance(process, Hashable):
            raise FencepostError(
                expected="a number or a text", seen=shown(process), where=f"the operation {named}: process"
            )
        return Recording(
            history=self,
            op_id=next(self._op_ids),
            label=process,
            function=named,
            key=None if key is None else str(key),
            argument=json_text(argument, f"the argument of {function}"),
            errors=(*self.fail, *fail),
            place=_place(sys._getframe(1)),
        )

    def recorded(
        self,
        function: str,
        *,
        key: str | None = None,
        argument: str | tuple[str, ...] | None = None,
        fail: Errors = (),
    ) -> Callable[[Target], Target]:
        """Decorate a function or a coroutine function: each call is an operation, and what it returns is the
        result.

        Args:
            function: what it is called in the model.
            key: the name of the parameter that is the key.
            argument: the name of the parameter that is the argument; several names make a list.
            fail: kinds of exceptions that mean that the operation had no effect.
        """
        function_named(function)
        check_errors(fail, f"the recorded function {function}")

        def decorate(target: Target) -> Target:
            check_callable(target, "a function or a coroutine function to record", "a recorded function")
            signature = inspect.signature(target)

            def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                given = bound.arguments
                value: Any = None
                if argument is not None:
                    several = not isinstance(argument, str)
                    value = [given[name] for name in argument] if several else given[str(argument)]
                return self.operation(
                    function, key=given[key] if key is not None else None, argument=value, fail=fail
                )

            check_parameters(signature, key, argument)
            return wrapped(target, begin)

        return decorate

    def clients(
        self, count: int, function: Callable[[int], Any], *, seed: int = 0, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """Run `function(0)` to `function(count - 1)` at the same time. They begin together, with small pauses
        before operations (together.py).

        Args:
            count: how many clients.
            function: run in a thread for each client; a coroutine function is run in tasks.
            seed: of the pauses.
            timeout_s: seconds for all of them.

        Returns:
            Their results, in this order; to be awaited if `function` is a coroutine function.

        Raises:
            FencepostError: for a count below 1, or a client that does not end.
            Exception: what the first client that failed has raised.
        """
        return together(count, function, seed=seed, timeout_s=timeout_s)

    @property
    def overlapping_pairs(self) -> int:
        """How many pairs of operations of different processes on one key overlapped: without any, no race can
        have been met."""
        from fencepost.checkers.linearizability.overlap import overlapping_pairs

        return overlapping_pairs(self.trace().operations)

    def check_answered(self, reads: Collection[str] = ()) -> None:
        """Raise TraceError if an operation that succeeded was given no result, though its answer is what it
        is for. reads: more such functions."""
        with self._lock:
            operations = {operation.op_id: operation.function for operation in self.operations}
            forgotten = [
                (op_id, operations[op_id], place)
                for op_id, place in self.unanswered.items()
                if operations[op_id] in ANSWERING or operations[op_id] in reads
            ]
        for op_id, function, place in forgotten[:1]:
            raise _unanswered(op_id, function, place)

    def trace(self) -> Trace:
        """What was recorded so far, in the order of the invocations; operations under way are unknown."""
        from fencepost.traces.digest import digest_of

        with self._lock:
            done = [*self.operations]
            done += [one.as_operation(Outcome.UNKNOWN, None) for one in self.open.values()]
        done.sort(key=lambda operation: (operation.invoke_time, operation.op_id))
        if done:
            first = done[0].invoke_time - NANOSECONDS_FROM_ZERO
            done = [_moved(operation, first) for operation in done]
        trace = Trace(
            trace_id=0,
            plan="",
            seed=0,
            target=TARGET,
            software_version=__version__,
            profile=PROFILE,
            unique_values=False,
            concurrent_processes=self.overlapping,
            operations=tuple(done),
        )
        trace = trace if self.claimed is None else self.claimed(trace)
        return evolve(trace, digest=digest_of(trace))

    def save(self, path: Path | str) -> Trace:
        """Write the trace as JSON lines (`fencepost check FILE --model NAME` judges it again); answers it."""
        from fencepost.traces.jsonlines import write_traces

        path = folder_of(path, "save")
        trace = self.trace()
        make_folder(path.parent)
        write_traces(path, [trace])
        return trace

    # ---- for recordings

    def _began(self, recording: Recording) -> None:
        if recording.process >= 0:
            raise FencepostError(
                expected="a recording that is used once",
                seen="the same one again",
                where=f"operation {recording.op_id} ({recording.function})",
                hint="call operation() for each",
            )
        with self._lock:
            recording.process = self._process(recording.label)
            self.overlapping = self.overlapping or any(
                other.process == recording.process for other in self.open.values()
            )
            self.open[recording.op_id] = recording

    def _ended(self, recording: Recording, completion_time: int) -> None:
        outcome = recording.outcome or Outcome.OK
        unanswered = outcome is Outcome.OK and recording.result is UNSET
        forgotten = unanswered and recording.function in ANSWERING
        try:
            # what was answered is not known, so nothing is claimed
            operation = recording.as_operation(Outcome.UNKNOWN if forgotten else outcome, completion_time)
        finally:
            with self._lock:
                del self.open[recording.op_id]
        with self._lock:
            self.operations.append(operation)
            if unanswered:
                self.unanswered[recording.op_id] = recording.place
        if forgotten:
            raise _unanswered(recording.op_id, recording.function, recording.place)

    def _process(self, label: Hashable) -> int:
        """The number of who does it: one that is new gets the next."""
        who: Hashable = label
        if label is None:
            who = _current_task() or self._thread.__dict__.setdefault("who", object())
        if who not in self._processes:
            self._processes[who] = len(self._processes)
        return self._processes[who]


def function_named(name: str) -> Function:
    """The function of that name. Raises FencepostError."""
    try:
        return Function(name)
    except ValueError:
        raise FencepostError(
            expected=f"the name of a function, of at most {LONGEST_NAME} characters",
            seen=shown(name),
            where="the function of a recorded operation",
            hint="`fencepost check --models` lists which functions each model has",
        ) from None


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _unanswered(op_id: int, function: Function, place: str) -> TraceError:
    return TraceError(
        expected=f"a result of {function}",
        seen="that none was set in its block",
        where=f"operation {op_id} ({function}) at {place}",
        hint="set `.result` to what came back, None for a null; or call `.unknown()` where it is not known",
    )


def _moved(operation: Operation, by: int) -> Operation:
    end = operation.completion_time
    return evolve(
        operation, invoke_time=operation.invoke_time - by, completion_time=None if end is None else end - by
    )


def _current_task() -> Any:
    """The asyncio task that runs in this thread, None where none does. Nothing is imported for it: without
    asyncio there is none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
