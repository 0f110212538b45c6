"""The variants of the shipped models that the explorer and TLC are compared on.

Owns: which constants. Must not know how the comparison is made.
"""

from typing import Any

from attrs import evolve, frozen

from fencepost.model.group_state import OF_GROUPS
from fencepost.model.group_state import Constants as GroupConstants
from fencepost.model.replication_state import Constants
from fencepost.traces.protections import BY_NAME

DATA_PATH_CONTROL = (
    "truncate_by_epoch", "truncate_below_own_epoch", "assign_epoch_on_election",
    "fetch_fencing", "isr_expand_after_epoch_start", "leader_epoch_fencing",
)  # fmt: skip
"""What can be missed in the replication model without a crash."""


@frozen(kw_only=True)
class Row:
    """constants: of any shipped model. count: whether all states of a variant that fails are counted too, which takes a second, longer run on both sides."""

    constants: Any
    count: bool = True


def dropped(constants: Any) -> str:
    """What is dropped, by name and bug."""
    return ", ".join(f"{name} ({BY_NAME[name].bug})" for name in sorted(constants.drop)) or "nothing"


def of_replication(size: str) -> tuple[Row, ...]:
    """small: every state counted; medium: three replicas and epochs 0..2, where the protections are missed."""
    if size == "small":
        bases = (
            (Constants(replicas=2, epochs=2), DATA_PATH_CONTROL),
            (Constants(replicas=2, epochs=1, crashes=1), ("broker_epoch_fencing", "truncate_by_epoch")),
            (Constants(replicas=3, epochs=1), ("truncate_by_epoch", "fetch_fencing")),
            (Constants(replicas=2, epochs=1, lists=2), ("offset_not_available",)),
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
        for drop in (frozenset[str](), *(frozenset({name}) for name in DATA_PATH_CONTROL))
    )


def of_group(size: str) -> tuple[Row, ...]:
    """small: each protection where it is missed soonest, every state counted; medium: two members, two generations and a fail-over."""
    if size == "small":
        bases = (
            (
                GroupConstants(members=1, brokers=1, expiries=1),
                ("generation_fencing", "no_expiry_while_rebalancing"),
            ),
            (GroupConstants(members=1, brokers=1, generations=1, commits=2), ("commit_async_not_retried",)),
            (
                GroupConstants(members=1, generations=1, epochs=1),
                ("apply_whole_load", "not_coordinator"),
            ),
            (GroupConstants(members=1, generations=1, commits=0, epochs=2), ("coordinator_epoch_order",)),
            (GroupConstants(members=2, brokers=1), ("generation_fencing",)),
            (GroupConstants(members=2, brokers=1, partitions=2, generations=1), ()),
        )
        return tuple(
            Row(constants=evolve(base, drop=drop))
            for base, names in bases
            for drop in (frozenset[str](), *(frozenset({name}) for name in names))
        )
    base = GroupConstants(members=2, epochs=1, expiries=1)
    others = {
        "commit_async_not_retried": evolve(base, commits=2, generations=1, epochs=0, brokers=1),
        "coordinator_epoch_order": evolve(base, commits=0, generations=1, epochs=2),
    }
    return (
        Row(constants=GroupConstants(members=2, epochs=1)),
        *(
            Row(constants=evolve(others.get(name, base), drop=frozenset({name})), count=False)
            for name in sorted(OF_GROUPS)
        ),
    )
