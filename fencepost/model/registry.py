"""The shipped models by name: each as the Python system, its TLA+ twin, and the map between the two.

Owns: which models there are. Must not know what any of them says. A new model adds its line to NAMES and its
function below.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from attrs import fields, frozen

from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.tla.variants import Row
from fencepost.traces.errors import FencepostError
from fencepost.traces.names import unknown_name
from fencepost.traces.protections import BY_BUG

NAMES: Mapping[str, str] = {
    "replication": "the data path: election, append, fetch, truncation, high watermark, ISR, crash "
    "(docs/spec/cluster.md R)",
    "controller": "the control plane: sessions, controller election, fenced writes, zombies, requests, "
    "leader election (docs/spec/cluster.md C)",
    "group": "consumer groups: membership, generations, offset commits, coordinator fail-over, expiry "
    "(docs/spec/cluster.md P3-P5)",
}
"""Name -> what the model is about, for a person."""


@frozen(kw_only=True)
class Model:
    """constants: an attrs class of bounds, each a number, and `drop`. protections: what may be dropped.
    system: from constants and the invariants to look at. invariants: all of them by name. module: of the TLA+
    twin; property_names: its names of invariants and properties -> ours; variants: the matrix of a size;
    columns: the bounds that tell its rows apart. The functions take these constants and this model's states.
    """

    name: str
    constants: type[Any]
    protections: frozenset[str]
    system: Callable[[Any, tuple[str, ...]], SlottedSystem[Any]]
    invariants: tuple[str, ...]
    module: str
    property_names: Mapping[str, str]
    constants_to_tla: Callable[[Any], dict[str, str]]
    state_to_tla: Callable[[Any], dict[str, Any]]
    state_from_tla: Callable[[Mapping[str, Any]], Any]
    variants: Callable[[str], tuple[Row, ...]]
    columns: tuple[str, ...]

    @property
    def bounds(self) -> Mapping[str, int]:
        """Each constant but `drop`, with what it is by default."""
        return {bound.name: bound.default for bound in fields(self.constants) if bound.name != "drop"}

    def constants_of(self, texts: Mapping[str, str], drop: Iterable[str] = ()) -> Any:
        """The constants that words of a command line mean; a protection may be named by its bug, too."""
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
    """The model of this name."""
    known = {"replication": _replication, "controller": _controller, "group": _group}
    if name not in known:
        raise FencepostError(
            expected=f"a shipped model: {', '.join(NAMES)}",
            seen=unknown_name(name, NAMES),
            where="the name of a model",
        )
    return known[name]()


def model_of(constants: object) -> Model:
    """The model that these constants are of."""
    for name in NAMES:
        if shipped(name).constants is type(constants):
            return shipped(name)
    raise AssertionError(f"{type(constants).__name__} belongs to no shipped model")


def _replication() -> Model:
    from fencepost.model.replication import invariants as invariants
    from fencepost.model.replication.state import DATA_PATH, Constants
    from fencepost.model.replication.system import Replication
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
    from fencepost.model.group import invariants as invariants
    from fencepost.model.group.state import OF_GROUPS, Constants
    from fencepost.model.group.system import Groups
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
    from fencepost.model.controller import invariants as invariants
    from fencepost.model.controller.state import CONTROL_PLANE, Constants
    from fencepost.model.controller.system import Controller
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
