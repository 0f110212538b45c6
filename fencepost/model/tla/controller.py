"""Constants and states of the controller model, between Python (controller/controller_state.py) and TLA+
(Controller.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Iterable, Mapping
from typing import cast

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
    members,
)
from fencepost.model.tlc.values import Function, Value, as_value, record, show

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

DELETIONS = ("none", "under way", "overlooked")
"""TLA+'s words for a deletion in a controller's context, in the order of the numbers."""


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return {
        "BrokerCount": show(constants.brokers),
        "LastEpoch": show(constants.epochs),
        "SessionCount": show(constants.sessions),
        "WriteCount": show(constants.writes),
        "CrashCount": show(constants.crashes),
        "SpareCount": show(constants.spare),
        "ReassignmentCount": show(constants.reassignments),
        "DeletionCount": show(constants.deletions),
        "ShutdownCount": show(constants.shutdowns),
        "UnheardCount": show(constants.unheard),
        "Drop": show(frozenset(constants.drop)),
    }


# ---- to TLA+


def state_to_tla(state: ControllerState) -> dict[str, Value]:
    """The variables of Controller.tla in this state."""
    count, membership = len(state.hosts), state.membership
    nothing = Context(NO_PARTITION, (NONE,) * count, 0, 0, NONE, 0, (0,) * count, (NONE,) * count, 0)

    def some(brokers: int) -> Value:
        return frozenset(members(brokers, count))

    return {
        "running": _each(host.running for host in state.hosts),
        "incarnation": _each(host.incarnation for host in state.hosts),
        "born": _each(host.born for host in state.hosts),
        "holds": _each(control.epoch for control in state.controls),
        "knows": _each(_context_to_tla(control.context or nothing) for control in state.controls),
        "kept": _each(some(control.kept) for control in state.controls),
        "obeyed": _each(replica.obeyed for replica in state.replicas),
        "told": _each(
            record(
                leaderEpoch=replica.leader_epoch,
                leader=replica.leader,
                version=replica.version,
                replicas=some(replica.replicas),
                leaving=some(replica.leaving),
            )
            for replica in state.replicas
        ),
        "stored": _each(replica.stored for replica in state.replicas),
        "controller": membership.controller,
        "controllerEpoch": membership.epoch,
        "registration": _each(membership.registrations),
        "registered": membership.registered,
        "unheard": membership.unheard,
        "partition": _partition_to_tla(state.partition, count),
        "sent": frozenset(
            record(
                controllerEpoch=batch.controller_epoch,
                leaderEpoch=batch.leader_epoch,
                leader=batch.leader,
                version=batch.version,
                replicas=some(batch.replicas),
                live=_each(batch.live),
                leaving=some(batch.leaving),
            )
            for batch in state.sent
        ),
        "led": frozenset(
            record(leaderEpoch=epoch, broker=broker, process=born) for epoch, broker, born in state.led
        ),
        "crashes": state.crashes,
        "assignment": some(state.admin.assignment),
        "target": some(state.admin.target),
        "completed": some(state.admin.completed),
        "asked": state.admin.asked,
        "deleting": state.admin.deleting,
        "stopping": frozenset(
            record(broker=broker, incarnation=incarnation) for broker, incarnation in state.stopping
        ),
    }


def _each(values: Iterable[Value]) -> Value:
    return as_value(enumerate(values))


def _partition_to_tla(partition: Partition, count: int) -> Value:
    return record(
        leader=partition.leader,
        leaderEpoch=partition.leader_epoch,
        isr=frozenset(members(partition.isr, count)),
        controllerEpoch=partition.controller_epoch,
        version=partition.version,
        stamp=partition.stamp,
    )


def _context_to_tla(context: Context) -> Value:
    count = len(context.live)
    return record(
        partition=_partition_to_tla(context.partition, count),
        live=_each(context.live),
        assignment=frozenset(members(context.assignment, count)),
        target=frozenset(members(context.target, count)),
        step=context.step,
        deletion=DELETIONS[context.deletion],
        phases=_each(PHASES[phase] for phase in context.phases),
        leaving=_each(context.leaving),
        out=frozenset(members(context.out, count)),
    )


# ---- and back


def state_from_tla(variables: Mapping[str, object]) -> ControllerState:
    """The state in which Controller.tla's variables have these values."""

    def of(name: str) -> list[int]:
        return _numbers(variables[name])

    return ControllerState(
        hosts=tuple(
            Host(bool(running), incarnation, born)
            for running, incarnation, born in zip(of("running"), of("incarnation"), of("born"), strict=True)
        ),
        controls=tuple(
            Control(epoch, _context(value), _some(kept))
            for epoch, value, kept in zip(
                of("holds"), _values(variables["knows"]), _values(variables["kept"]), strict=True
            )
        ),
        replicas=_replicas(variables),
        membership=Membership(
            cast(int, variables["controller"]),
            cast(int, variables["controllerEpoch"]),
            tuple(of("registration")),
            cast(int, variables["registered"]),
            cast(int, variables["unheard"]),
        ),
        partition=_partition(variables["partition"]),
        sent=tuple(
            sorted(_batch(cast(Function, value)) for value in cast(frozenset[Value], variables["sent"]))
        ),
        led=tuple(
            sorted(
                (one["leaderEpoch"], one["broker"], one["process"])
                for one in map(_record, cast(frozenset[Value], variables["led"]))
            )
        ),
        crashes=cast(int, variables["crashes"]),
        admin=Admin(
            _some(variables["assignment"]),
            _some(variables["target"]),
            _some(variables["completed"]),
            cast(int, variables["asked"]),
            bool(variables["deleting"]),
        ),
        stopping=tuple(
            sorted(
                (one["broker"], one["incarnation"])
                for one in map(_record, cast(frozenset[Value], variables["stopping"]))
            )
        ),
    )


def _replicas(variables: Mapping[str, object]) -> tuple[Replica, ...]:
    last_sent = [_record(value) for value in _values(variables["told"])]
    obeyed, stored = _numbers(variables["obeyed"]), _numbers(variables["stored"])
    return tuple(
        Replica(
            obeyed=highest,
            leader_epoch=last["leaderEpoch"],
            leader=last["leader"],
            version=last["version"],
            replicas=_some(last["replicas"]),
            stored=bool(has_log),
            leaving=_some(last["leaving"]),
        )
        for highest, last, has_log in zip(obeyed, last_sent, stored, strict=True)
    )


def _values(function: object) -> list[Value]:
    """A function of brokers, in their order."""
    assert isinstance(function, Function), function
    return [function[broker] for broker in range(len(function))]


def _numbers(function: object) -> list[int]:
    return [cast(int, value) for value in _values(function)]


def _record(value: object) -> Mapping[str, int]:
    return cast(Mapping[str, int], value)


def _some(value: object) -> int:
    return sum(1 << cast(int, member) for member in cast(frozenset[Value], value))


def _partition(value: object) -> Partition:
    fields = _record(value)
    return Partition(
        fields["leader"],
        fields["leaderEpoch"],
        _some(fields["isr"]),
        fields["controllerEpoch"],
        fields["version"],
        fields["stamp"],
    )


def _context(value: object) -> Context | tuple[()]:
    fields = cast(Mapping[str, object], value)
    if fields["step"] == NONE:
        return ()
    return Context(
        _partition(fields["partition"]),
        tuple(_numbers(fields["live"])),
        _some(fields["assignment"]),
        _some(fields["target"]),
        cast(int, fields["step"]),
        DELETIONS.index(cast(str, fields["deletion"])),
        tuple(PHASES.index(cast(str, phase)) for phase in _values(fields["phases"])),
        tuple(_numbers(fields["leaving"])),
        _some(fields["out"]),
    )


def _batch(value: Function) -> RequestBatch:
    fields = _record(value)
    live = tuple(_numbers(value["live"]))
    return RequestBatch(
        fields["controllerEpoch"],
        fields["leaderEpoch"],
        fields["leader"],
        fields["version"],
        _some(fields["replicas"]),
        live,
        _some(fields["leaving"]),
    )
