"""Constants and states of the controller model, between Python (controller_state.py) and TLA+ (Controller.tla).

Owns: the one-to-one map, and the variants that are compared. Must not know how either side gets from state to state.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from attrs import evolve

from fencepost.model.controller_state import (
    NONE,
    Admin,
    Batch,
    Constants,
    Context,
    Control,
    Host,
    Membership,
    Partition,
    Replica,
    State,
    members,
)
from fencepost.model.tla.variants import Row
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
}
"""TLA+'s name of an invariant or property -> the model's."""

UNREAD = Partition(NONE, NONE, 0, NONE, NONE, NONE)


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
        "Drop": show(frozenset(constants.drop)),
    }


CONTROL = (
    "fenced_zookeeper_write", "controller_epoch_fencing", "epoch_read_in_election_only", "leader_epoch_fencing",
)  # fmt: skip
"""What can be missed without a crash."""

PROCESSES = ("broker_epoch_fencing", "re_elect", "keep_last_isr_member")
"""What needs another process, or nobody left."""


def variants(size: str) -> tuple[Row, ...]:
    """small: every state counted; medium: a third broker."""
    bases: tuple[tuple[Constants, tuple[str, ...]], ...]
    if size == "small":
        bases = (
            (Constants(sessions=2, writes=1), CONTROL),
            (Constants(epochs=1, crashes=1), PROCESSES),
            (
                Constants(spare=1, epochs=1, writes=4, sessions=0, reassignments=1),
                ("assigned_replicas_only",),
            ),
            (Constants(spare=1, epochs=1, writes=5, sessions=0, reassignments=2), ("stop_replica_fencing",)),
            (Constants(spare=1, epochs=3, writes=0, sessions=2, reassignments=1), ("reset_on_resign",)),
            (Constants(spare=1, writes=4, reassignments=1), ()),
        )
    else:
        bases = (
            (Constants(brokers=3, sessions=2, writes=1), CONTROL),
            (Constants(brokers=3, epochs=1, crashes=1, writes=1), PROCESSES[:2]),
        )
    return tuple(
        Row(constants=evolve(base, drop=drop), count=size == "small")
        for base, names in bases
        for drop in (frozenset[str](), *(frozenset({name}) for name in names))
    )


# ---- to TLA+


def state_to_tla(state: State) -> dict[str, Value]:
    """The variables of Controller.tla in this state."""
    count, membership = len(state.hosts), state.membership
    nothing = Context(UNREAD, (NONE,) * count, 0, 0, 0)

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
            )
            for replica in state.replicas
        ),
        "stored": _each(replica.stored for replica in state.replicas),
        "controller": membership.controller,
        "controllerEpoch": membership.epoch,
        "registration": _each(membership.registrations),
        "registered": membership.registered,
        "partition": _partition_to_tla(state.partition, count),
        "sent": frozenset(
            record(
                controllerEpoch=batch.controller_epoch,
                leaderEpoch=batch.leader_epoch,
                leader=batch.leader,
                version=batch.version,
                replicas=some(batch.replicas),
                live=_each(batch.live),
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
    )


# ---- and back


def state_from_tla(variables: Mapping[str, object]) -> State:
    """The state in which Controller.tla's variables have these values."""

    def of(name: str) -> list[int]:
        return _numbers(variables[name])

    told = [_record(value) for value in _values(variables["told"])]
    return State(
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
        replicas=tuple(
            Replica(
                obeyed,
                last["leaderEpoch"],
                last["leader"],
                last["version"],
                _some(last["replicas"]),
                bool(stored),
            )
            for obeyed, last, stored in zip(of("obeyed"), told, of("stored"), strict=True)
        ),
        membership=Membership(
            cast(int, variables["controller"]),
            cast(int, variables["controllerEpoch"]),
            tuple(of("registration")),
            cast(int, variables["registered"]),
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
        ),
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
        fields["leader"], fields["leaderEpoch"], _some(fields["isr"]), fields["controllerEpoch"], fields["version"], fields["stamp"]
    )  # fmt: skip


def _context(value: object) -> Context | tuple[()]:
    fields = cast(Mapping[str, object], value)
    partition = _partition(fields["partition"])
    if partition == UNREAD:
        return ()
    return Context(
        partition,
        tuple(_numbers(fields["live"])),
        _some(fields["assignment"]),
        _some(fields["target"]),
        cast(int, fields["step"]),
    )


def _batch(value: Function) -> Batch:
    fields = _record(value)
    live = tuple(_numbers(value["live"]))
    return Batch(
        fields["controllerEpoch"],
        fields["leaderEpoch"],
        fields["leader"],
        fields["version"],
        _some(fields["replicas"]),
        live,
    )
