"""Which protections each version of transactions needs: the explorer's table.

Owns the constants of each exploration and the form of the table (docs/explanation/model-transaction.md has
it, and a test compares). Must not know the model's content.

A version needs a protection if without it an invariant falls, or TXN-END does. For the second version all
protections that it does not need are dropped at once, in every row. That it holds nevertheless says more than
a row for each.
"""

from collections.abc import Iterator

from attrs import evolve, frozen

from fencepost.model.explore import ExplorationOutcome, explore
from fencepost.model.explore.eventually import stays_possible
from fencepost.model.transaction.transaction_state import Constants
from fencepost.model.transaction.transaction_system import Transactions
from fencepost.traces.protections import BY_NAME

ASSUMED = ("no_late_end", "no_late_marker", "deposed_is_silent")
"""What the first version assumes of the network. No broker and no client enforces it."""
ONLY_FIRST_NEEDS = (*ASSUMED, "settle", "still_guarded", "fence", "coordinator_fencing")
"""Protections without all of which the second version holds."""

ONE, TWO = Constants(transactions=1), Constants(transactions=2)
FAIL_OVER = evolve(ONE, epochs=1)
OFFSETS, PARTITIONS, SUCCESSOR = evolve(ONE, offsets=1), evolve(ONE, partitions=2), evolve(ONE, producers=2)
HOLDS = (TWO, evolve(TWO, epochs=1), PARTITIONS, SUCCESSOR)
"""Constants with which a version is shown to hold."""

ROWS: dict[str, tuple[Constants, Constants]] = {
    "no_late_end": (TWO, TWO),
    "no_late_marker": (TWO, TWO),
    "deposed_is_silent": (FAIL_OVER, FAIL_OVER),
    "settle": (TWO, TWO),
    "still_guarded": (ONE, ONE),
    "fence": (TWO, TWO),
    "coordinator_fencing": (evolve(TWO, epochs=1), evolve(TWO, epochs=1)),
    "marker_above_epoch": (TWO, TWO),
    "marker_again": (ONE, ONE),
    "check_marker": (TWO, TWO),
    "is_needed": (ONE, ONE),
    "check": (TWO, ONE),
    "epoch_fencing": (TWO, TWO),
    "loaded": (evolve(TWO, epochs=1), FAIL_OVER),
    "abort_open_first": (SUCCESSOR, SUCCESSOR),
    "one_at_a_time": (TWO, TWO),
    "decide_durably": (ONE, ONE),
    "to_mark": (PARTITIONS, PARTITIONS),
    "is_written": (ONE, ONE),
    "go_on_with_ends": (FAIL_OVER, FAIL_OVER),
    "last_stable_offset": (ONE, ONE),
    "aborted_transactions": (ONE, ONE),
    "count": (OFFSETS, OFFSETS),
    "ended": (OFFSETS, OFFSETS),
}
"""For each protection the smallest constants with which it matters in version 1 and in version 2."""


@frozen
class Fall:
    """Without a protection: the invariant that falls, and the steps of a shortest counterexample; "" and 0 if
    none falls."""

    invariant: str = ""
    steps: int = 0

    @property
    def text(self) -> str:
        """One cell of the table."""
        return f"{self.invariant}, {self.steps} steps" if self.invariant else "holds"


def first_fall(constants: Constants) -> Fall:
    """What falls with these constants: an invariant; if none does, TXN-END."""
    found = explore(Transactions(constants))
    if found.outcome is ExplorationOutcome.VIOLATED:
        return Fall(found.invariant or "", len(found.actions))
    assert found.outcome is ExplorationOutcome.HOLDS, constants
    system = Transactions(constants, ())
    for name, wanted in system.eventually.items():
        prospect = stays_possible(system, wanted)
        if prospect.stuck:
            return Fall(name, len(prospect.path) - 1)
    return Fall()


def without(protection: str, version: int) -> Constants:
    """The constants of one cell. In the second version what only the first one needs is dropped, too."""
    first, second = ROWS[protection]
    if version == 1:
        return evolve(first, drop={protection})
    return evolve(second, version=2, drop={protection, *ONLY_FIRST_NEEDS})


def falls() -> Iterator[tuple[str, Fall | None, Fall | None]]:
    """Each protection with what falls without it in version 1 and in version 2; None if the version does not
    have it, or if version 2 holds without it (`HOLDS` shows that for all of these at once)."""
    for protection in ROWS:
        has_it = protection not in ("marker_above_epoch", "marker_again")
        needs_it = protection not in ONLY_FIRST_NEEDS
        yield (
            protection,
            first_fall(without(protection, 1)) if has_it else None,
            first_fall(without(protection, 2)) if needs_it else None,
        )


def table() -> str:
    """The table as Markdown."""
    lines = ["| protection | bug | version 1 without it | version 2 without it |", "|---|---|---|---|"]
    for name, first, second in falls():
        one = "has none" if first is None else first.text
        other = "holds" if second is None else second.text
        lines.append(f"| {name} | {BY_NAME[name].bug} | {one} | {other} |")
    return "".join(f"{line}\n" for line in lines)
