"""Constants and states of the group model, between Python (group/group_state.py) and TLA+ (Group.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fencepost.model.group.coordinator_steps import new_group
from fencepost.model.group.group_state import (
    COMMIT,
    EXPIRED,
    GROUP_STATES,
    MEMBER_STATES,
    METADATA,
    NONE,
    REMOVED,
    Broker,
    Constants,
    GroupState,
    Member,
    ModelGroup,
    OffsetsLog,
    OffsetsRecord,
    of,
)
from fencepost.model.tlc.values import Value, as_value, show

INVARIANTS: Mapping[str, str] = {
    "OffsetSafe": "OFFSET-SAFE",
    "GenerationFence": "GENERATION-FENCE",
    "GenerationMono": "GENERATION-MONO",
    "GenerationMonoSteps": "GENERATION-MONO",
    "OneConsumer": "ONE-CONSUMER",
    "OneCoordinator": "ONE-COORDINATOR",
    "OneInstance": "ONE-INSTANCE",
}
"""The TLA+ name of an invariant or property -> the model's."""

KINDS: Mapping[int, str] = {COMMIT: "commit", METADATA: "group", EXPIRED: "expired", REMOVED: "removed"}


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return {
        "MemberCount": show(constants.members),
        "PartitionCount": show(constants.partitions),
        "BrokerCount": show(constants.brokers),
        "LastGeneration": show(constants.generations),
        "CommitCount": show(constants.commits),
        "LastEpoch": show(constants.epochs),
        "ExpiryCount": show(constants.expiries),
        "StaticCount": show(constants.statics),
        "Drop": show(frozenset(constants.drop)),
    }


def _record(**fields: Value) -> Value:
    return as_value(fields.items())


def _numbered(values: Iterable[Value]) -> Value:
    return as_value(enumerate(values))


def _set(bits: int) -> Value:
    return frozenset(of(bits))


def state_to_tla(state: GroupState) -> dict[str, Value]:
    """The variables of Group.tla in this state."""
    partitions = len(state.acked)

    def each(rows: Iterable[Any], value: Callable[[Any], Value]) -> Value:
        return _numbered([value(row) for row in rows])

    brokers, members = state.brokers, state.members
    return {
        "epoch": each(brokers, lambda broker: broker.epoch),
        "leads": each(brokers, lambda broker: broker.leads),
        "tasks": each(brokers, lambda broker: _set(broker.tasks)),
        "loaded": each(brokers, lambda broker: broker.loaded),
        "owns": each(brokers, lambda broker: broker.group != ()),
        "group": each(brokers, lambda broker: _group_to_tla(broker.group or new_group(partitions))),
        "phase": each(members, lambda member: MEMBER_STATES[member.state]),
        "generation": each(members, lambda member: member.generation),
        "assigned": each(members, lambda member: _set(member.assigned)),
        "asked": each(members, lambda member: member.coordinator),
        "sent": each(members, _sent_to_tla),
        "leaders": state.leaders,
        "log": tuple(_log_record(record, partitions) for record in state.log.records),
        "durable": state.log.durable,
        "acked": each(state.acked, lambda pair: _record(number=pair[0], epoch=pair[1])),
        "commits": state.used[0],
        "expiries": state.used[1],
    }


def _group_to_tla(group: ModelGroup) -> Value:
    return _record(
        state=GROUP_STATES[group.state],
        generation=group.generation,
        members=_set(group.members),
        joined=_set(group.joined),
        assignment=_numbered(group.assignment),
        offsets=_numbered(group.offsets),
        static=group.static,
    )


def _sent_to_tla(member: Member) -> Value:
    return tuple(
        _record(generation=generation, partition=partition, number=number)
        for generation, partition, number in member.sent
    )


def _log_record(record: OffsetsRecord, partitions: int) -> Value:
    """Every record has every field: TLC compares values of one shape."""
    kind, generation, members, partition, number, static = record[0], NONE, 0, NONE, NONE, NONE
    assignment: tuple[int, ...] = (NONE,) * partitions
    if kind == COMMIT:
        _, generation, partition, number = record
    elif kind == METADATA:
        _, generation, members, assignment, static = record
    elif kind == EXPIRED:
        _, partition = record
    return _record(
        kind=KINDS[kind],
        generation=generation,
        members=_set(members),
        assignment=_numbered(assignment),
        partition=partition,
        number=number,
        static=static,
    )


def state_from_tla(variables: Mapping[str, Any]) -> GroupState:
    """The state in which Group.tla's variables have these values."""

    def rows(*names: str) -> Iterable[tuple[Any, ...]]:
        return zip(*(_in_order(variables[name]) for name in names), strict=True)

    brokers = tuple(
        Broker(epoch, leads, _bits(tasks), loaded, _group_from_tla(group) if owns else ())
        for epoch, leads, tasks, loaded, owns, group in rows(
            "epoch", "leads", "tasks", "loaded", "owns", "group"
        )
    )
    members = tuple(
        Member(
            MEMBER_STATES.index(phase),
            generation,
            _bits(assigned),
            asked,
            tuple((one["generation"], one["partition"], one["number"]) for one in sent),
        )
        for phase, generation, assigned, asked, sent in rows(
            "phase", "generation", "assigned", "asked", "sent"
        )
    )
    return GroupState(
        brokers,
        members,
        tuple(variables["leaders"]),
        OffsetsLog(tuple(_log_record_from(record) for record in variables["log"]), variables["durable"]),
        tuple((pair["number"], pair["epoch"]) for pair in _in_order(variables["acked"])),
        (variables["commits"], variables["expiries"]),
    )


def _in_order(values: Any) -> list[Any]:
    """A function on 0..n-1 as a list."""
    return [values[number] for number in range(len(values))]


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _group_from_tla(group: Any) -> ModelGroup:
    return ModelGroup(
        GROUP_STATES.index(group["state"]),
        group["generation"],
        _bits(group["members"]),
        _bits(group["joined"]),
        tuple(_in_order(group["assignment"])),
        tuple(_in_order(group["offsets"])),
        group["static"],
    )


def _log_record_from(record: Any) -> OffsetsRecord:
    kind = record["kind"]
    if kind == "commit":
        return COMMIT, record["generation"], record["partition"], record["number"]
    if kind == "group":
        return (
            METADATA,
            record["generation"],
            _bits(record["members"]),
            tuple(_in_order(record["assignment"])),
            record["static"],
        )
    return (EXPIRED, record["partition"]) if kind == "expired" else (REMOVED,)
