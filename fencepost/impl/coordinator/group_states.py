"""The states of a group as a table of legal transitions (P3). An illegal transition is an error in our
code."""

from enum import StrEnum


class GroupPhase(StrEnum):
    """Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_G = GroupPhase

GROUP_TRANSITIONS: dict[GroupPhase, frozenset[GroupPhase]] = {
    _G.EMPTY: frozenset({_G.PREPARING, _G.DEAD}),
    _G.PREPARING: frozenset({_G.COMPLETING, _G.EMPTY, _G.DEAD}),
    _G.COMPLETING: frozenset({_G.STABLE, _G.PREPARING, _G.DEAD}),
    _G.STABLE: frozenset({_G.PREPARING, _G.DEAD}),
    _G.DEAD: frozenset(),
}
