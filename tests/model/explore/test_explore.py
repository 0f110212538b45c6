"""model/explore: breadth-first exploration."""

import subprocess
import sys
from collections.abc import Iterable

import pytest
from attrs import frozen

from fencepost.model.explore import After, ExplorationOutcome, Limits, explore, fingerprint, render
from fencepost.traces.errors import FencepostError


@frozen
class Jugs:
    """Two jugs of 3 and 5 litres: the classic; four litres must never stand in the larger one."""

    action_names = ("fill", "empty", "pour", "spill")
    forbidden: int = 4

    @property
    def invariants(self) -> dict:
        return {"NOT-FOUR": lambda state: state[1] != self.forbidden}

    @property
    def step_invariants(self) -> dict:
        return {}

    @property
    def sometimes(self) -> dict:
        return {"both full": lambda state: state == (3, 5), "both half": lambda state: state == (2, 2)}

    def initial(self) -> Iterable[tuple[int, int]]:
        yield 0, 0

    def actions(self, state: tuple[int, int]) -> Iterable[tuple]:
        yield from (("fill", jug) for jug in (0, 1))
        yield from (("empty", jug) for jug in (0, 1))
        yield from (("pour", jug) for jug in (0, 1))

    def apply(self, state: tuple[int, int], action: tuple) -> tuple[int, int]:
        name, jug = action
        litres, size = list(state), (3, 5)
        if name == "pour":
            moved = min(litres[jug], size[1 - jug] - litres[1 - jug])
            litres[jug] -= moved
            litres[1 - jug] += moved
        else:
            litres[jug] = size[jug] if name == "fill" else 0
        return litres[0], litres[1]

    def describe(self, state: tuple[int, int]) -> str:
        return f"{state[0]} and {state[1]} litres"


def test_the_counterexample_is_a_shortest_path() -> None:
    """Rule: breadth first, so the first violation is reached by as few actions as any."""
    result = explore(Jugs())
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "NOT-FOUR")
    assert result.actions == (("fill", 1), ("pour", 1), ("empty", 0), ("pour", 1), ("fill", 1), ("pour", 1))
    assert [step.state for step in result.path][-1] == (3, 4)


def test_a_counterexample_reads_as_a_path() -> None:
    """Rule: each step shows its number, its action and the state after it."""
    text = render(Jugs(), explore(Jugs()))
    assert text.splitlines()[0].endswith("NOT-FOUR is violated in 6 steps")
    assert text.splitlines()[-2:] == ["6. pour(1)", "     3 and 4 litres"]


def test_everything_is_visited_once_and_counted() -> None:
    """Rule: without a violation each reachable state counts once; actions never taken and `sometimes` never
    reached are reported."""
    result = explore(Jugs(forbidden=99))
    assert (result.outcome, result.distinct, result.transitions) == (ExplorationOutcome.HOLDS, 16, 16 * 6)
    assert result.never_taken == ("spill",)
    assert result.never_reached == ("both half",)


@pytest.mark.parametrize("limits", [Limits(states=5), Limits(depth=2)])
def test_a_limit_is_not_a_proof(limits: Limits) -> None:
    """Rule: an exploration that met its bound says so."""
    result = explore(Jugs(forbidden=99), limits)
    assert result.outcome is ExplorationOutcome.BOUNDED
    assert render(Jugs(), result).startswith("bounded: ")


def test_a_step_invariant_names_the_step() -> None:
    """Rule: a broken step is the last of the path, also where the state that it leads to was known."""

    class Careful(Jugs):
        @property
        def step_invariants(self) -> dict:
            return {
                "NO-WASTE": lambda before, action, after: not (action == ("empty", 0) and before == (3, 0))
            }

    result = explore(Careful(forbidden=99))
    assert (result.invariant, result.actions) == ("NO-WASTE", (("fill", 0), ("empty", 0)))


def test_exploration_may_begin_after_a_prefix() -> None:
    """Rule: `After` starts where a history of enabled actions leads, and nowhere if one is not enabled."""
    result = explore(After(Jugs(), (("fill", 1), ("pour", 1))))
    assert result.actions == (("empty", 0), ("pour", 1), ("fill", 1), ("pour", 1))
    assert list(After(Jugs(), (("spill", 0),)).initial()) == []


def test_fingerprints_are_the_same_everywhere() -> None:
    """Rule: a state's fingerprint does not depend on the process, and tells states apart."""
    assert fingerprint(((1, 2), (3,))).hex() == "0fc454cfe8b3096a"
    assert fingerprint(((1,), (2, 3))) != fingerprint(((1, 2), (3,)))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system keeps the peak by process")
def test_memory_is_that_of_the_process_itself() -> None:
    """Rule: a worker that a large process starts has not used up its limit before it begins."""
    large = 256 << 20
    ballast = bytearray(large)
    code = "from fencepost.model.explore.process import resident_bytes; print(resident_bytes())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 << 20 < int(done.stdout) < large == len(ballast)


@pytest.mark.parametrize("limits", [{"states": -1}, {"states": 0}, {"depth": -1}, {"memory_mib": 0}])
def test_a_limit_that_allows_nothing_is_refused(limits: dict[str, int]) -> None:
    """Rule: a limit below the least sensible one is a mistake of the caller; nothing is explored without
    one."""
    ((name, value),) = limits.items()
    least = 0 if name == "depth" else 1
    with pytest.raises(FencepostError, match=rf"Limits\({name}\): expected at least {least}.*saw {value}$"):
        Limits(**limits)
    assert Limits(states=1, depth=0, memory_mib=1)
