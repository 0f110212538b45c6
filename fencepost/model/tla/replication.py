"""Constants and states of the replication model, between Python (replication/replication_state.py) and TLA+
(Replication.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Mapping
from typing import cast

from fencepost.model.replication.replication_state import Constants, Replica, ReplicationState
from fencepost.model.tlc.values import Function, Value, as_value, show

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


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return {
        "ReplicaCount": show(constants.replicas),
        "LogSize": show(constants.log_size),
        "LastEpoch": show(constants.epochs),
        "ValueCount": show(constants.values),
        "CrashCount": show(constants.crashes),
        "LossCount": show(constants.losses),
        "ListCount": show(constants.lists),
        "LastLogStart": show(constants.log_starts),
        "OldFormat": show(bool(constants.old_format)),
        "Drop": show(frozenset(constants.drop)),
    }


def _records(rows: tuple[tuple[int, ...], ...], *fields: str) -> Value:
    return tuple(as_value(zip(fields, row, strict=True)) for row in rows)


def state_to_tla(state: ReplicationState) -> dict[str, Value]:
    """The variables of Replication.tla in this state."""
    numbered = list(enumerate(state.replicas))

    def each(values: list[Value]) -> Value:
        return as_value(enumerate(values))

    members = frozenset(number for number, _ in numbered)
    return {
        "log": each([_records(replica.log, "epoch", "value") for _, replica in numbered]),
        "cache": each([_records(replica.epochs, "epoch", "start") for _, replica in numbered]),
        "highWatermark": each([replica.high_watermark for _, replica in numbered]),
        "leaderEpoch": each([replica.epoch for _, replica in numbered]),
        "leader": each([replica.leader for _, replica in numbered]),
        "truncating": each([replica.truncating for _, replica in numbered]),
        "ends": each([as_value(enumerate(replica.ends)) for _, replica in numbered]),
        "quorum": tuple(
            as_value((("leader", leader), ("isr", frozenset(r for r in members if isr >> r & 1))))
            for leader, isr in state.quorum
        ),
        "committed": _records(state.committed, "epoch", "value", "exposedIn"),
        "appended": state.values,
        "crashes": state.crashes,
        "lost": state.lost,
        "listed": _records(state.listed, "epoch", "end"),
    }


def state_from_tla(variables: Mapping[str, object]) -> ReplicationState:
    """The state in which Replication.tla's variables have these values."""
    count = len(_mapping(variables["log"]))

    def of(name: str) -> list[Value]:
        values = _mapping(variables[name])
        return [values[number] for number in range(count)]

    def rows(value: Value, *fields: str) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(cast(int, _mapping(row)[field]) for field in fields)
            for row in cast(tuple[Value, ...], value)
        )

    replicas = tuple(
        Replica(
            log=cast(tuple[tuple[int, int], ...], rows(log, "epoch", "value")),
            epochs=cast(tuple[tuple[int, int], ...], rows(cache, "epoch", "start")),
            high_watermark=cast(int, watermark),
            epoch=cast(int, epoch),
            leader=cast(int, leader),
            truncating=cast(bool, truncating),
            ends=() if ends == () else tuple(cast(int, _mapping(ends)[number]) for number in range(count)),
        )
        for log, cache, watermark, epoch, leader, truncating, ends in zip(
            *(
                of(name)
                for name in ("log", "cache", "highWatermark", "leaderEpoch", "leader", "truncating", "ends")
            ),
            strict=True,
        )
    )
    quorum = tuple(
        (
            cast(int, _mapping(decision)["leader"]),
            sum(1 << cast(int, member) for member in cast(frozenset[Value], _mapping(decision)["isr"])),
        )
        for decision in cast(tuple[Value, ...], variables["quorum"])
    )
    committed = rows(cast(Value, variables["committed"]), "epoch", "value", "exposedIn")
    return ReplicationState(
        replicas=replicas,
        quorum=quorum,
        committed=cast(tuple[tuple[int, int, int], ...], committed),
        values=cast(int, variables["appended"]),
        crashes=cast(int, variables["crashes"]),
        lost=cast(int, variables["lost"]),
        listed=cast(tuple[tuple[int, int], ...], rows(cast(Value, variables["listed"]), "epoch", "end")),
    )


def _mapping(value: object) -> Function:
    assert isinstance(value, Function), value
    return value
