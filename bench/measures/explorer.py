"""The explorer against TLC, on configurations of our own that TLC ends within a minute or two.

Each turn has a process of its own. Starting the JVM is included; loading compiled
kernels is not (`kernels s`; the first time on a machine they are compiled). Memory is the peak: of the Java
process or of the exploring one. Both look at all
invariants, and find as many distinct states, or the measure fails. With symmetry, states that differ only in
the names of what is alike count as one; the specifications have no symmetry set, so that TLC is without it.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve

from bench.costs import Cost, fresh
from bench.harness import Case, skipped
from fencepost.model.comparison.sameness import spec_of
from fencepost.model.controller.controller_state import Constants as Control
from fencepost.model.explore import Limits, explore
from fencepost.model.group.group_state import Constants as Groups
from fencepost.model.registry import model_of
from fencepost.model.replication.replication_state import Constants as Data
from fencepost.model.replication.replication_system import Replication
from fencepost.model.tlc import RunOptions, check, find_toolbox
from fencepost.traces.errors import FencepostError

CONFIGURATIONS: tuple[Any, ...] = (
    Data(replicas=2, epochs=2),
    Data(replicas=3, epochs=1),
    Data(replicas=2, epochs=3),
    Data(replicas=2, epochs=1, crashes=2, losses=1, drop={"broker_epoch_fencing"}),
    Data(replicas=3, epochs=1, crashes=1),
    Data(replicas=3, epochs=2),
    Control(sessions=2, writes=1),
    Control(epochs=1, deletions=1, shutdowns=1),
    Groups(members=2, generations=2, brokers=1),
    Groups(members=2, generations=1, commits=2, epochs=1),
)
QUICK = CONFIGURATIONS[3:4]
"""TLC ends it within three seconds: it is violated."""
LIMITS = Limits(states=50_000_000)
TURNS = 1


def _peak_mib(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _explored(work: Callable[[], Any]) -> Cost:
    """Cost of this process and its children, with what was found."""

    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(one.ru_utime + one.ru_stime for one in used)

    began, cpu = time.perf_counter(), cpu_s()
    found = work()
    wall_s = time.perf_counter() - began
    more = {"outcome": str(found.outcome), "states": found.distinct}
    return Cost(wall_s=wall_s, cpu_s=cpu_s() - cpu, more=more)


def ours(constants: Any, symmetry: bool) -> Cost:
    """Our explorer, in this process."""
    began = time.perf_counter()
    explore(Replication(Data(replicas=2)), symmetry=True)
    kernels_s = time.perf_counter() - began
    model = model_of(constants)
    system = model.system(constants, model.invariants)
    cost = _explored(lambda: explore(system, LIMITS, symmetry=symmetry))
    return evolve(cost, mib=_peak_mib(resource.RUSAGE_SELF), more={**cost.more, "kernels s": kernels_s})


def tlc(constants: Any) -> Cost:
    """TLC."""
    cost = _explored(lambda: check(spec_of(constants), RunOptions()))
    return evolve(cost, mib=_peak_mib(resource.RUSAGE_CHILDREN))


def words(constants: Any) -> str:
    """A configuration in a few words: the bounds that are not as by default."""
    model = model_of(constants)
    bounds = ", ".join(
        f"{name} {getattr(constants, name)}"
        for name, default in model.bounds.items()
        if getattr(constants, name) != default
    )
    dropped = f", without {', '.join(sorted(constants.drop))}" if constants.drop else ""
    return f"{model.name}: {bounds or 'as by default'}{dropped}"


def sides_of(constants: Any, compared: bool) -> dict[str, Callable[[], Cost]]:
    """The explorer, TLC if there is one, and the explorer with symmetry."""
    found: dict[str, Cost] = {}

    def plain() -> Cost:
        found["explorer"] = fresh(ours, constants, False)
        return found["explorer"]

    def theirs() -> Cost:
        cost, mine = fresh(tlc, constants), found["explorer"]
        names = ("outcome", "states") if cost.more["outcome"] == "holds" else ("outcome",)
        for name in names:  # a violation ends both early, at other states
            if cost.more[name] != mine.more[name]:
                raise SystemExit(
                    f"{words(constants)}: {name} {mine.more[name]} here, and by TLC {cost.more[name]}"
                )
        return cost

    symmetric = {"with symmetry": lambda: fresh(ours, constants, True)}
    return {"explorer": plain, **({"TLC": theirs} if compared else {}), **symmetric}


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Each configuration."""
    try:
        compared = bool(find_toolbox())
    except FencepostError as error:
        compared = False
        skipped("TLC", str(error))
    for constants in QUICK if asked.quick else CONFIGURATIONS:
        yield Case(name=words(constants), sides=sides_of(constants, compared), warm=False)
