"""Constants and states of the controller model, between Python (controller/controller_state.py) and TLA+
(Controller.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Mapping
from typing import Any

from fencepost.model.controller.controller_state import (
    NO_PARTITION,
    NONE,
    PHASES,
    Admin,
    Constants,
    Context,
    Control,
    ControllerState,
    Host,
    Membership,
    Partition,
    Replica,
    RequestBatch,
)
from fencepost.model.tlc.forms import (
    BITS,
    SAME,
    Form,
    bounds_to_tla,
    columns,
    fields,
    members,
    numbered,
    row,
    state_form,
    variable,
    word,
)
from fencepost.model.tlc.values import Value

INVARIANTS: Mapping[str, str] = {
    "CtrlFence": "CTRL-FENCE",
    "CtrlFenceSteps": "CTRL-FENCE",
    "EpochMono": "EPOCH-MONO",
    "EpochMonoSteps": "EPOCH-MONO",
    "IsrInAr": "ISR-IN-AR",
    "IsrNonempty": "ISR-NONEMPTY",
    "Assign": "ASSIGN",
    "CommitSafe": "COMMIT-SAFE",
    "CommitSafeSteps": "COMMIT-SAFE",
    "DelComplete": "DEL-COMPLETE",
    "StopSafe": "STOP-SAFE",
    "Incarnation": "INCARNATION",
}
"""The TLA+ name of an invariant or property -> the model's."""

BOUNDS: Mapping[str, str] = {
    "BrokerCount": "brokers",
    "LastEpoch": "epochs",
    "SessionCount": "sessions",
    "WriteCount": "writes",
    "CrashCount": "crashes",
    "SpareCount": "spare",
    "ReassignmentCount": "reassignments",
    "DeletionCount": "deletions",
    "ShutdownCount": "shutdowns",
    "UnheardCount": "unheard",
}
"""The TLA+ name of a bound -> the model's."""


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return bounds_to_tla(constants, BOUNDS)


_EACH = numbered(SAME)
_PARTITION = row(
    Partition._make, leader=SAME, leaderEpoch=SAME, isr=BITS, controllerEpoch=SAME, version=SAME, stamp=SAME
)
_CONTEXT = row(
    Context._make,
    partition=_PARTITION,
    live=_EACH,
    assignment=BITS,
    target=BITS,
    step=SAME,
    deletion=word("none", "under way", "overlooked"),
    phases=numbered(word(*PHASES)),
    leaving=_EACH,
    out=BITS,
)
_KNOWN = Form(_CONTEXT.to_tla, lambda one: () if one["step"] == NONE else _CONTEXT.from_tla(one))
_BATCH = row(
    RequestBatch._make,
    controllerEpoch=SAME,
    leaderEpoch=SAME,
    leader=SAME,
    version=SAME,
    replicas=BITS,
    live=_EACH,
    leaving=BITS,
)
_REQUEST = row(tuple, leaderEpoch=SAME, leader=SAME, version=SAME, replicas=BITS, leaving=BITS)


def _told(replica: Replica) -> tuple[Any, ...]:
    *request, stored, leaving = replica[1:]
    return replica.obeyed, (*request, leaving), stored


def _replica(values: Any) -> Replica:
    obeyed, (*request, leaving), stored = values
    return Replica._make((obeyed, *request, stored, leaving))


_STATE = state_form(
    ControllerState._make,
    columns(Host._make, running=SAME, incarnation=SAME, born=SAME),
    columns(Control._make, holds=SAME, knows=_KNOWN, kept=BITS),
    columns(_replica, _told, obeyed=SAME, told=_REQUEST, stored=SAME),
    fields(
        Membership._make,
        controller=SAME,
        controllerEpoch=SAME,
        registration=_EACH,
        registered=SAME,
        unheard=SAME,
    ),
    variable("partition", _PARTITION),
    variable("sent", members(_BATCH)),
    variable("led", members(row(tuple, leaderEpoch=SAME, broker=SAME, process=SAME))),
    variable("crashes", SAME),
    fields(Admin._make, assignment=BITS, target=BITS, completed=BITS, asked=SAME, deleting=SAME),
    variable("stopping", members(row(tuple, broker=SAME, incarnation=SAME))),
)
state_from_tla = _STATE.from_tla
"""A state, from the values of the variables by name."""


def state_to_tla(state: ControllerState) -> dict[str, Value]:
    """The values of the variables of Controller.tla."""
    count = len(state.hosts)
    nothing = Context(NO_PARTITION, (NONE,) * count, 0, 0, NONE, 0, (0,) * count, (NONE,) * count, 0)
    controls = (control._replace(context=control.context or nothing) for control in state.controls)
    return _STATE.to_tla(state._replace(controls=tuple(controls)))
