"""The shipped models by name: the Python system, its TLA+ twin, and the map between the two.

Owns the list of models. Must not know their content. A new model adds its line to NAMES and its function
below.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from attrs import fields, frozen

from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.tla.variants import Row
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.protections import BY_BUG

NAMES: Mapping[str, str] = {
    "replication": "the data path: election, append, fetch, truncation, high watermark, ISR, crash "
    "(docs/spec/cluster.md R)",
    "controller": "the control plane: sessions, controller election, fenced writes, zombies, requests, "
    "leader election (docs/spec/cluster.md C)",
    "group": "consumer groups: membership, generations, offset commits, coordinator fail-over, expiry "
    "(docs/spec/cluster.md P3-P5)",
    "transaction": "transactions: epochs, decisions, markers, verification, coordinator fail-over, late "
    "requests (KIP-98, KIP-890)",
}
"""Name -> subject of the model, for people."""


@frozen(kw_only=True)
class Model:
    """One model. The functions take the constants and states of this model."""

    # The name of the model.
    name: str
    # An attrs class of bounds, each a number, and `drop`.
    constants: type[Any]
    # The protections that may be dropped.
    protections: frozenset[str]
    # Makes the system from constants and the invariants to check.
    system: Callable[[Any, tuple[str, ...]], SlottedSystem[Any]]
    # The names of all invariants.
    invariants: tuple[str, ...]
    # The TLA+ module of its twin.
    module: str
    # The twin's names of invariants and properties -> ours.
    property_names: Mapping[str, str]
    # The constants as TLA+ texts.
    constants_to_tla: Callable[[Any], dict[str, str]]
    # A state as TLA+ values.
    state_to_tla: Callable[[Any], dict[str, Any]]
    # A state from TLA+ values.
    state_from_tla: Callable[[Mapping[str, Any]], Any]
    # The matrix of variants of a size.
    variants: Callable[[str], tuple[Row, ...]]
    # The bounds that distinguish the rows of the matrix.
    columns: tuple[str, ...]

    @property
    def bounds(self) -> Mapping[str, int]:
        """Each constant except `drop`, with its default."""
        return {bound.name: bound.default for bound in fields(self.constants) if bound.name != "drop"}

    def constants_of(self, texts: Mapping[str, str], drop: Iterable[str] = ()) -> Any:
        """The constants from words of a command line.

        Args:
            texts: numbers as text, by the name of the bound.
            drop: protections to drop; the name of a bug that drops one is accepted, too.

        Returns:
            the constants.

        Raises:
            FencepostError: for an unknown name or an invalid number.
        """
        values: dict[str, Any] = {}
        for name, value in texts.items():
            if name not in self.bounds or not value.isdecimal():
                raise FencepostError(
                    expected=f"NAME=NUMBER with a name of {', '.join(sorted(self.bounds))}",
                    seen=f"{name}={value}",
                    where="the constants of a model",
                )
            values[name] = int(value)
        return self.constants(**values, drop={BY_BUG[name].name if name in BY_BUG else name for name in drop})


@cache
def shipped(name: str) -> Model:
    """The model with this name."""
    known = {
        "replication": _replication,
        "controller": _controller,
        "group": _group,
        "transaction": _transaction,
    }
    if name not in known:
        raise FencepostError(
            expected=f"a shipped model: {', '.join(NAMES)}",
            seen=unknown_name(name, NAMES),
            where="the name of a model",
        )
    return known[name]()


def model_of(constants: object) -> Model:
    """The model that these constants belong to."""
    for name in NAMES:
        if shipped(name).constants is type(constants):
            return shipped(name)
    raise AssertionError(f"{type(constants).__name__} belongs to no shipped model")


def _replication() -> Model:
    from fencepost.model.replication import replication_invariants as invariants
    from fencepost.model.replication.replication_state import DATA_PATH, Constants
    from fencepost.model.replication.replication_system import Replication
    from fencepost.model.tla import replication as twin
    from fencepost.model.tla import variants

    return Model(
        name="replication",
        constants=Constants,
        protections=DATA_PATH,
        system=Replication,
        invariants=tuple(invariants.OF_STATES),
        module="Replication",
        property_names=twin.INVARIANTS,
        constants_to_tla=twin.constants_to_tla,
        state_to_tla=twin.state_to_tla,
        state_from_tla=twin.state_from_tla,
        variants=variants.of_replication,
        columns=("replicas", "epochs", "crashes", "lists", "log_starts"),
    )


def _group() -> Model:
    from fencepost.model.group import group_invariants as invariants
    from fencepost.model.group.group_state import OF_GROUPS, Constants
    from fencepost.model.group.group_system import Groups
    from fencepost.model.tla import group as twin
    from fencepost.model.tla import variants

    return Model(
        name="group",
        constants=Constants,
        protections=OF_GROUPS,
        system=Groups,
        invariants=tuple(invariants.OF_STATES),
        module="Group",
        property_names=twin.INVARIANTS,
        constants_to_tla=twin.constants_to_tla,
        state_to_tla=twin.state_to_tla,
        state_from_tla=twin.state_from_tla,
        variants=variants.of_group,
        columns=("members", "partitions", "generations", "commits", "epochs", "expiries", "statics"),
    )


def _controller() -> Model:
    from fencepost.model.controller import controller_invariants as invariants
    from fencepost.model.controller.controller_state import CONTROL_PLANE, Constants
    from fencepost.model.controller.controller_system import Controller
    from fencepost.model.tla import controller as twin
    from fencepost.model.tla import variants

    return Model(
        name="controller",
        constants=Constants,
        protections=CONTROL_PLANE,
        system=Controller,
        invariants=invariants.NAMES,
        module="Controller",
        property_names=twin.INVARIANTS,
        constants_to_tla=twin.constants_to_tla,
        state_to_tla=twin.state_to_tla,
        state_from_tla=twin.state_from_tla,
        variants=variants.of_controller,
        columns=(
            "brokers",
            "spare",
            "epochs",
            "sessions",
            "writes",
            "crashes",
            "reassignments",
            "deletions",
            "shutdowns",
        ),
    )


def _transaction() -> Model:
    from fencepost.model.tla import transaction as twin
    from fencepost.model.tla import variants
    from fencepost.model.transaction import transaction_invariants as invariants
    from fencepost.model.transaction.transaction_state import OF_TRANSACTIONS, Constants
    from fencepost.model.transaction.transaction_system import Transactions

    return Model(
        name="transaction",
        constants=Constants,
        protections=OF_TRANSACTIONS,
        system=Transactions,
        invariants=tuple(invariants.OF_STATES),
        module="Transaction",
        property_names=twin.INVARIANTS,
        constants_to_tla=twin.constants_to_tla,
        state_to_tla=twin.state_to_tla,
        state_from_tla=twin.state_from_tla,
        variants=variants.of_transaction,
        columns=("version", "producers", "partitions", "transactions", "epochs", "extra", "offsets"),
    )
