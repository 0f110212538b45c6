"""What forked processes do: one for each mutant, and one that measures which lines the swarm reaches.

The parent imports what every mutant needs and none is made of: judges, traces, models. Must
not know outcomes apart from handing them on.
"""

import gc
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attrs import frozen

from tools.ledger import TOP, digest_of
from tools.mutation.fault import Fault, module_of
from tools.mutation.impl.log_machine import by_log_machine
from tools.mutation.impl.reach import Reached, measure, read, state_of_the_code
from tools.mutation.impl.trial import Outcome, try_it
from tools.mutation.planting import exchange, plant
from tools.mutation.workers import in_a_child

WARM_EXAMPLES = 5
"""Of the log machine: Hypothesis looks at every module that is loaded, once."""
REACH_CPU_S = 600.0
"""Of one run while kernels are compiled."""
LEFT = (Outcome.SURVIVED, Outcome.UNREACHED)
"""What no run convicts."""
Places = tuple[tuple[str, int], ...]
"""Profile and seed."""
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
    from fencepost.campaign.swarm.swarm import swarm
    from fencepost.checkers.judges import judge
    from fencepost.run.simulated.run import run

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


def mutant(work: Work, imported: frozenset[str]) -> tuple[Outcome, int, str, str, int, int]:
    """In a forked process: the mutant, tried. What it answers is as of `try_it`."""
    gc.unfreeze()
    fault, origin = work.fault, str(TOP / work.fault.file)
    try:
        after = fault.applied(work.source)
        if work.early or not exchange(work.source, after, origin):
            for name in imported:
                del sys.modules[name]
            plant(module_of(fault.file), after, origin)
    except SyntaxError as error:
        return Outcome.BROKEN, 0, str(error), "", -1, 0
    outcome = work.idle[0], 0, work.idle[1], "", -1, 0
    if work.runs:
        outcome = try_it(work.runs, patience=work.patience, passed=work.passed)
    if work.examples and outcome[0] in LEFT and (found := by_log_machine(work.examples)):
        outcome = found[0], outcome[1], found[1], "", -1, outcome[5]
    return outcome


def _measure(files: tuple[str, ...], runs: Places, faults: tuple[Fault, ...], path: Path) -> bool:
    measure(files, runs, faults).write(path)
    return True


def warm(runs: Runs) -> None:
    """A few healthy runs in a process like a mutant's. Raises AssertionError if one finds anything, or
    is not the run that was measured."""
    answer = in_a_child(partial(try_it, runs, limit_s=REACH_CPU_S)).answer
    assert answer is not None and answer[0] is Outcome.SURVIVED, f"the unmutated code is convicted: {answer}"
    assert answer[-1] == 0, "a run in a forked process differs from the one that was measured"


def measured(files: tuple[str, ...], runs: Places, faults: tuple[Fault, ...], folder: Path) -> Reached:
    """What these runs of the unmutated code come to, in these sources, and which of them these faults can
    change; kept in the folder. Raises AssertionError if one of them raises."""
    names = sorted(fault.name for fault in faults)
    path = folder / f"reach-{digest_of(repr((files, runs, names, state_of_the_code())).encode())}.json"
    if not path.exists():
        ended = in_a_child(partial(_measure, files, runs, faults, path))
        assert ended.answer, "a run of the unmutated code raised"
    found = read(path)
    assert found is not None
    return found
