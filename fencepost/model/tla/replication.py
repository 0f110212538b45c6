"""Constants and states of the replication model, between Python (replication/replication_state.py) and TLA+
(Replication.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Mapping

from fencepost.model.replication.replication_state import Constants, Replica, ReplicationState
from fencepost.model.tlc.forms import (
    BITS,
    SAME,
    bounds_to_tla,
    columns,
    numbered,
    row,
    sequence,
    state_form,
    variable,
)
from fencepost.model.tlc.values import show

INVARIANTS: Mapping[str, str] = {
    "CommitSafe": "COMMIT-SAFE",
    "CommitSafeSteps": "COMMIT-SAFE",
    "LogMatch": "LOG-MATCH",
    "EpochMono": "EPOCH-MONO",
    "EpochMonoSteps": "EPOCH-MONO",
    "OneLeader": "ONE-LEADER",
    "HwMono": "HW-MONO",
    "HwBounds": "HW-BOUNDS",
}
"""The TLA+ name of an invariant or property -> the model's."""

BOUNDS: Mapping[str, str] = {
    "ReplicaCount": "replicas",
    "LogSize": "log_size",
    "LastEpoch": "epochs",
    "ValueCount": "values",
    "CrashCount": "crashes",
    "LossCount": "losses",
    "ListCount": "lists",
    "LastLogStart": "log_starts",
}
"""The TLA+ name of a bound -> the model's."""


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return bounds_to_tla(constants, BOUNDS) | {"OldFormat": show(bool(constants.old_format))}


_STATE = state_form(
    ReplicationState._make,
    columns(
        Replica._make,
        log=sequence(row(tuple, epoch=SAME, value=SAME)),
        cache=sequence(row(tuple, epoch=SAME, start=SAME)),
        highWatermark=SAME,
        leaderEpoch=SAME,
        leader=SAME,
        truncating=SAME,
        ends=numbered(SAME),
    ),
    variable("quorum", sequence(row(tuple, leader=SAME, isr=BITS))),
    variable("committed", sequence(row(tuple, epoch=SAME, value=SAME, exposedIn=SAME))),
    variable("appended", SAME),
    variable("crashes", SAME),
    variable("lost", SAME),
    variable("listed", sequence(row(tuple, epoch=SAME, end=SAME))),
)
state_to_tla = _STATE.to_tla
"""The values of the variables of Replication.tla, from a state."""
state_from_tla = _STATE.from_tla
"""A state, from the values of the variables by name."""
