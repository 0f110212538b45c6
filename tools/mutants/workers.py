"""A forked process for each mutant, and one that measures which lines the swarm reaches.

Owns processes. The parent imports what every mutant needs and none is made of: judges, traces, models. Must
not know outcomes apart from handing them on.
"""

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tools.mutants.reach import Reached, measure, read, state_of_the_code
from tools.mutants.subjects import module_of
from tools.mutants.trial import Outcome, plant, try_it
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

MEMORY_BYTES = 4 << 30
"""Of one mutant: a loop that appends for ever ends there. A healthy run needs a few hundred megabytes with
everything that is imported."""

REACH_CPU_S = 600.0
"""Of one run while kernels are compiled."""
Runs = tuple[tuple[str, int, str], ...]
"""Profile, seed, and the digest of the unmutated code's run, where it is known."""


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


def _mutant(answers: Connection, fault: Fault, source: bytes, runs: Runs) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        plant(module_of(fault.file), fault.applied(source), str(TOP / fault.file))
        outcome = try_it(runs)
    except SyntaxError as error:
        outcome = (Outcome.BROKEN, 0, str(error), "", -1, 0)
    answers.send((*outcome, resource.getrusage(resource.RUSAGE_SELF).ru_utime))


def _measured(
    answers: Connection, files: tuple[str, ...], runs: tuple[tuple[str, int], ...], path: Path
) -> None:
    measure(files, runs).write(path)
    answers.send(True)


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


def in_a_child(target: Callable[..., None], *arguments: object) -> Any:
    """What a forked process sends through the connection that is its first argument; None if it died."""
    return _answer(*_child(target, *arguments))


def warm(runs: Runs) -> None:
    """A few healthy runs, so that what judges compile is on disk before a mutant's time is counted. Raises
    AssertionError if one of them finds anything."""
    answer = _answer(*_child(_unmutated, runs))
    assert answer is not None and answer[0] is Outcome.SURVIVED, f"the unmutated code is convicted: {answer}"


def _unmutated(answers: Connection, runs: Runs) -> None:
    answers.send(try_it(runs, limit_s=REACH_CPU_S))


def measured(files: tuple[str, ...], runs: tuple[tuple[str, int], ...], folder: Path) -> Reached:
    """What these runs of the unmutated code come to, in these sources; kept in the folder. Raises
    AssertionError if one of them raises."""
    named = blake2b(repr((files, runs, state_of_the_code())).encode(), digest_size=8).hexdigest()
    path = folder / f"reach-{named}.json"
    if not path.exists():
        assert _answer(*_child(_measured, files, runs, path)), "a run of the unmutated code raised"
    found = read(path)
    assert found is not None
    return found


def outcomes(
    todo: Sequence[tuple[Fault, bytes, Runs]], jobs: int
) -> Iterator[tuple[Fault, tuple[Outcome, int, str, str, int, int, float]]]:
    """Each mutant with what became of it, as they come. A process that dies without a word ran out of memory:
    it never ended."""
    waiting = list(reversed(todo))
    running: dict[Connection, tuple[Fault, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                fault, source, runs = waiting.pop()
                process, ours = _child(_mutant, fault, source, runs)
                running[ours] = fault, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                fault, process = running.pop(ready)
                yield (
                    fault,
                    _answer(process, ready) or (Outcome.NO_PROGRESS, 0, "out of memory", "", -1, 0, 0.0),
                )
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()
