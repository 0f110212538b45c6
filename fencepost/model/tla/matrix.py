"""The matrix of variants that the explorer and TLC are compared on.

Owns: which constants, and how a row reads. Must not know how the comparison is made.
"""

from attrs import evolve, frozen

from fencepost.model.replication_state import Constants
from fencepost.model.tla.sameness import Comparison, Seen
from fencepost.traces.protections import BY_NAME

HEADINGS = (
    "replicas", "epochs", "crashes", "dropped", "result", "invariant", "steps", "distinct states", "depth", "explorer s", "TLC s", "same",
)  # fmt: skip

CONTROL = (
    "truncate_by_epoch", "truncate_below_own_epoch", "assign_epoch_on_election",
    "fetch_fencing", "isr_expand_after_epoch_start", "leader_epoch_fencing",
)  # fmt: skip
"""What can be missed without a crash."""


@frozen(kw_only=True)
class Row:
    """count: whether all states of a variant that fails are counted too, which takes a second, longer run on both sides."""

    constants: Constants
    count: bool = True

    @property
    def words(self) -> str:
        """The variant in a few words."""
        bounds = self.constants
        return f"{bounds.replicas} replicas, epochs 0..{bounds.epochs}, {dropped(bounds)}"


def dropped(constants: Constants) -> str:
    """What is dropped, by name and bug."""
    return ", ".join(f"{name} ({BY_NAME[name].bug})" for name in sorted(constants.drop)) or "nothing"


def rows_of(size: str) -> tuple[Row, ...]:
    """small: every state counted; medium: three replicas and epochs 0..2, where the protections are missed."""
    if size == "small":
        bases = (
            (Constants(replicas=2, epochs=2), CONTROL),
            (Constants(replicas=2, epochs=1, crashes=1), ("broker_epoch_fencing", "truncate_by_epoch")),
            (Constants(replicas=3, epochs=1), ("truncate_by_epoch", "fetch_fencing")),
        )
        return tuple(
            Row(
                constants=evolve(base, drop=drop), count="leader_epoch_fencing" not in drop
            )  # two million states for three steps
            for base, names in bases
            for drop in (frozenset[str](), *(frozenset({name}) for name in names))
        )
    base = Constants(replicas=3, epochs=2)
    return tuple(
        Row(constants=evolve(base, drop=drop), count=False)
        for drop in (frozenset[str](), *(frozenset({name}) for name in CONTROL))
    )


def cells(row: Row, comparison: Comparison) -> tuple[str, ...]:
    """One line of the table; where the two differ, both values, the explorer's first."""

    def both(field: str) -> str:
        one, other = (_cell(getattr(seen, field)) for seen in (comparison.explorer, comparison.tlc))
        return one if one == other else f"{one} / {other}"

    bounds = row.constants
    return (
        str(bounds.replicas),
        f"0..{bounds.epochs}",
        str(bounds.crashes),
        dropped(bounds),
        both("result"),
        both("invariant"),
        both("steps") if comparison.explorer.result == "violated" else "",
        both("distinct"),
        both("depth"),
        _seconds(comparison.explorer),
        _seconds(comparison.tlc),
        "yes" if comparison.same else "NO",
    )


def _cell(value: object) -> str:
    return (f"{value:,}" if value >= 0 else "") if isinstance(value, int) else str(value)


def _seconds(seen: Seen) -> str:
    return f"{seen.seconds:.1f}"
