"""The shipped models by name: the Python system, its TLA+ twin, and the map between the two.

Owns the list of models. Must not know their content. A new model adds its line to NAMES and its function
below.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from attrs import fields, frozen

from fencepost.model.explore.slotted import SlottedSystem
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
    # The module of fencepost/model/tla that maps constants and states to its TLA+ twin's and back.
    twin: Any

    @property
    def module(self) -> str:
        """The TLA+ module of its twin."""
        return self.name.capitalize()

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
    known = {made.__name__[1:]: made for made in (_replication, _controller, _group, _transaction)}
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

    return Model(
        name="replication",
        constants=Constants,
        protections=DATA_PATH,
        system=Replication,
        invariants=tuple(invariants.OF_STATES),
        twin=twin,
    )


def _group() -> Model:
    from fencepost.model.group import group_invariants as invariants
    from fencepost.model.group.group_state import OF_GROUPS, Constants
    from fencepost.model.group.group_system import Groups
    from fencepost.model.tla import group as twin

    return Model(
        name="group",
        constants=Constants,
        protections=OF_GROUPS,
        system=Groups,
        invariants=tuple(invariants.OF_STATES),
        twin=twin,
    )


def _controller() -> Model:
    from fencepost.model.controller import controller_invariants as invariants
    from fencepost.model.controller.controller_state import CONTROL_PLANE, Constants
    from fencepost.model.controller.controller_system import Controller
    from fencepost.model.tla import controller as twin

    return Model(
        name="controller",
        constants=Constants,
        protections=CONTROL_PLANE,
        system=Controller,
        invariants=invariants.NAMES,
        twin=twin,
    )


def _transaction() -> Model:
    from fencepost.model.tla import transaction as twin
    from fencepost.model.transaction import transaction_invariants as invariants
    from fencepost.model.transaction.transaction_state import OF_TRANSACTIONS, Constants
    from fencepost.model.transaction.transaction_system import Transactions

    return Model(
        name="transaction",
        constants=Constants,
        protections=OF_TRANSACTIONS,
        system=Transactions,
        invariants=tuple(invariants.OF_STATES),
        twin=twin,
    )
