"""A forked process for each mutant, and one that measures which lines the swarm reaches.

Owns processes. The parent imports what every mutant needs and none is made of: judges, traces, models. Must
not know outcomes apart from handing them on.
"""

import gc
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from attrs import frozen

from tools.mutants.log_machine import by_log_machine
from tools.mutants.patch import exchange
from tools.mutants.reach import Reached, measure, read, state_of_the_code
from tools.mutants.subjects import module_of
from tools.mutants.trial import Outcome, plant, try_it
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

WARM_EXAMPLES = 5
"""Of the log machine: Hypothesis looks at every module that is loaded, once."""
MEMORY_BYTES = 4 << 30
"""Of one mutant: a loop that appends for ever ends there. A healthy run needs a few hundred megabytes with
everything that is imported."""

REACH_CPU_S = 600.0
"""Of one run while kernels are compiled."""
LEFT = (Outcome.SURVIVED, Outcome.UNREACHED)
"""What no run convicts."""
Runs = tuple[tuple[str, int, str], ...]
"""Profile, seed, and the digest of the unmutated code's run, where it is known."""


@frozen(kw_only=True)
class Work:
    """One mutant to try."""

    fault: Fault
    # Of its file, without the fault.
    source: bytes
    # Those that it can change; if there are none, `idle` is the outcome.
    runs: Runs
    # Whether its statement runs while modules are imported.
    early: bool
    # See try_it.
    passed: bool
    patience: int
    # The outcome without a run, and its reason.
    idle: tuple[Outcome, str] = (Outcome.UNREACHED, "")
    # Of the log machine, if no run convicts it.
    examples: int = 0


def preload_judges() -> None:
    """Import what all children share; never a module of impl/, which some of them replace."""
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


def preload_runs(runs: Sequence[tuple[str, int]], *, log_machine: bool = False) -> frozenset[str]:
    """Import what a run needs and run a few plans, so that a mutant's process finds everything ready.

    Args:
        runs: profiles and seeds.
        log_machine: whether mutants will meet the log machine, too.

    Returns:
        The modules of this package that were imported for it: a process that has to import a mutated source
        removes them first.
    """
    known = set(sys.modules)
    from fencepost.campaign.run.run import run
    from fencepost.campaign.swarm.swarm import swarm
    from fencepost.checkers.judges import judge

    for profile, seed in runs:
        judge(run(swarm(seed, profile)))
    if log_machine:
        assert by_log_machine(WARM_EXAMPLES) is None, "the log machine convicts the unmutated code"
    gc.collect()
    gc.freeze()
    judges = "fencepost.checkers", "fencepost.traces", "fencepost.model"
    return frozenset(
        name
        for name in set(sys.modules) - known
        if name.startswith("fencepost.") and not name.startswith(judges)
    )


def _mutant(answers: Connection, work: Work, imported: frozenset[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    gc.unfreeze()
    fault, origin = work.fault, str(TOP / work.fault.file)
    try:
        after = fault.applied(work.source)
        if work.early or not exchange(work.source, after, origin):
            for name in imported:
                del sys.modules[name]
            plant(module_of(fault.file), after, origin)
        if work.runs:
            outcome = try_it(work.runs, patience=work.patience, passed=work.passed)
        else:
            outcome = (work.idle[0], 0, work.idle[1], "", -1, 0)
        if work.examples and outcome[0] in LEFT and (found := by_log_machine(work.examples)):
            outcome = (found[0], outcome[1], found[1], "", -1, outcome[5])
    except SyntaxError as error:
        outcome = (Outcome.BROKEN, 0, str(error), "", -1, 0)
    answers.send((*outcome, resource.getrusage(resource.RUSAGE_SELF).ru_utime))


def _measured(
    answers: Connection,
    files: tuple[str, ...],
    runs: tuple[tuple[str, int], ...],
    faults: tuple[Fault, ...],
    path: Path,
) -> None:
    measure(files, runs, faults).write(path)
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
    """A few healthy runs in a process like a mutant's. Raises AssertionError if one finds anything, or
    is not the run that was measured."""
    answer = _answer(*_child(_unmutated, runs))
    assert answer is not None and answer[0] is Outcome.SURVIVED, f"the unmutated code is convicted: {answer}"
    assert answer[-1] == 0, "a run in a forked process differs from the one that was measured"


def _unmutated(answers: Connection, runs: Runs) -> None:
    answers.send(try_it(runs, limit_s=REACH_CPU_S))


def measured(
    files: tuple[str, ...], runs: tuple[tuple[str, int], ...], faults: tuple[Fault, ...], folder: Path
) -> Reached:
    """What these runs of the unmutated code come to, in these sources, and which of them these faults can
    change; kept in the folder. Raises AssertionError if one of them raises."""
    names = sorted(fault.name for fault in faults)
    named = blake2b(repr((files, runs, names, state_of_the_code())).encode(), digest_size=8).hexdigest()
    path = folder / f"reach-{named}.json"
    if not path.exists():
        assert _answer(*_child(_measured, files, runs, faults, path)), "a run of the unmutated code raised"
    found = read(path)
    assert found is not None
    return found


def outcomes(
    todo: Sequence[Work], jobs: int, imported: frozenset[str]
) -> Iterator[tuple[Fault, tuple[Outcome, int, str, str, int, int, float]]]:
    """Each mutant with what became of it, as they come. A process that dies without a word ran out of memory:
    it never ended."""
    waiting = list(reversed(todo))
    running: dict[Connection, tuple[Fault, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                work = waiting.pop()
                process, ours = _child(_mutant, work, imported)
                running[ours] = work.fault, process
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
