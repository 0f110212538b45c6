"""A forked process for each mutant, and one that measures which lines the swarm reaches.

Owns processes. The parent imports what every mutant needs and none is made of: judges, traces, models. Must not know outcomes apart from handing them on.
"""

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import CodeType, FrameType
from typing import Any

from tools.mutants.subjects import IMPL, module_of
from tools.mutants.trial import Outcome, places, plant, try_it
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

MEMORY_BYTES = 4 << 30
"""Of one mutant: a loop that appends for ever ends there. A healthy run needs a few hundred megabytes with everything that is imported."""

REACH_CPU_S = 600.0
"""Of one run while its lines are counted, or while kernels are compiled."""


def preload() -> None:
    """Import and compile what all children share; never a module of impl/, which is what they replace."""
    import fencepost.checkers.conformance
    import fencepost.checkers.groups
    import fencepost.checkers.invariants
    import fencepost.checkers.kafka
    import fencepost.checkers.log  # noqa: F401
    from fencepost.checkers.judges import judge
    from fencepost.traces.trace import Trace

    assert callable(judge) and Trace is not None
    loaded = [name for name in sys.modules if name.startswith("fencepost.impl")]
    assert not loaded, f"a judge imports {loaded[:3]}"


def _mutant(
    answers: Connection, fault: Fault, source: bytes, profiles: tuple[str, ...], first: int, seeds: int
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        plant(module_of(fault.file), fault.applied(source), str(TOP / fault.file))
        outcome = try_it(places(profiles, first, seeds))
    except SyntaxError as error:
        outcome = (Outcome.BROKEN, 0, str(error), "", -1)
    answers.send((*outcome, resource.getrusage(resource.RUSAGE_SELF).ru_utime))


def _reach(answers: Connection, profiles: tuple[str, ...], first: int, seeds: int) -> None:
    top = str(TOP / IMPL)
    missing: dict[CodeType, set[int]] = {}
    reached: dict[str, set[int]] = {}

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        left = missing.get(code)
        if left is None:
            of_impl = code.co_filename.startswith(top)
            left = missing[code] = {line for *_, line in code.co_lines() if line} if of_impl else set()
        if not left:
            return None
        lines = reached.setdefault(code.co_filename.removeprefix(f"{TOP}/"), set())

        def on_line(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            left.discard(frame.f_lineno)
            return on_line if left else None

        lines.add(frame.f_lineno)
        left.discard(frame.f_lineno)
        return on_line

    sys.settrace(on_call)
    outcome = try_it(places(profiles, first, seeds), limit_s=REACH_CPU_S)
    sys.settrace(None)
    answers.send((outcome, {file: sorted(found) for file, found in reached.items()}))


def _child(target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _answer(process: BaseProcess, ours: Connection) -> Any:
    try:
        return ours.recv()
    except EOFError:
        return None  # killed, or out of memory in the middle of an allocation
    finally:
        ours.close()
        process.join()


def warm(profiles: tuple[str, ...], first: int) -> None:
    """A few healthy runs, so that what judges compile is on disk before a mutant's time is counted. Raises AssertionError if one of them finds anything."""
    answer = _answer(*_child(_unmutated, profiles, first))
    assert answer is not None and answer[0] is Outcome.SURVIVED, f"the unmutated code is convicted: {answer}"


def _unmutated(answers: Connection, profiles: tuple[str, ...], first: int) -> None:
    answers.send(try_it(places(profiles, first, len(profiles)), limit_s=REACH_CPU_S))


def lines_reached(profiles: tuple[str, ...], first: int, seeds: int) -> dict[str, list[int]]:
    """By source, the lines that so many healthy runs come to. Raises AssertionError if one of them finds anything."""
    answer = _answer(*_child(_reach, profiles, first, seeds))
    assert answer is not None and answer[0][0] is Outcome.SURVIVED, (
        f"the unmutated code is convicted: {answer and answer[0]}"
    )
    reached: dict[str, list[int]] = answer[1]
    return reached


def outcomes(
    todo: Sequence[tuple[Fault, bytes]], profiles: tuple[str, ...], first: int, seeds: int, jobs: int
) -> Iterator[tuple[Fault, tuple[Outcome, int, str, str, int, float]]]:
    """Each mutant with what became of it, as they come. A process that dies without a word ran out of memory: it never ended."""
    waiting = list(reversed(todo))
    running: dict[Connection, tuple[Fault, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                fault, source = waiting.pop()
                process, ours = _child(_mutant, fault, source, profiles, first, seeds)
                running[ours] = fault, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                fault, process = running.pop(ready)
                yield fault, _answer(process, ready) or (Outcome.NO_PROGRESS, 0, "out of memory", "", -1, 0.0)
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()
