"""Constants and states of the group model, between Python (group/group_state.py) and TLA+ (Group.tla).

Owns the one-to-one map. Must not know the transitions of either side.
"""

from collections.abc import Iterable, Mapping
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
)
from fencepost.model.tlc.forms import (
    BITS,
    SAME,
    Form,
    Part,
    bounds_to_tla,
    columns,
    fields,
    numbered,
    row,
    sequence,
    state_form,
    variable,
    word,
)
from fencepost.model.tlc.values import Value, record

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

BOUNDS: Mapping[str, str] = {
    "MemberCount": "members",
    "PartitionCount": "partitions",
    "BrokerCount": "brokers",
    "LastGeneration": "generations",
    "CommitCount": "commits",
    "LastEpoch": "epochs",
    "ExpiryCount": "expiries",
    "StaticCount": "statics",
}
"""The TLA+ name of a bound -> the model's."""


def constants_to_tla(constants: Constants) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    return bounds_to_tla(constants, BOUNDS)


_EACH = numbered(SAME)
_GROUP = row(
    ModelGroup._make,
    state=word(*GROUP_STATES),
    generation=SAME,
    members=BITS,
    joined=BITS,
    assignment=_EACH,
    offsets=_EACH,
    static=SAME,
)


def _log_record(logged: OffsetsRecord, partitions: int) -> Value:
    """Every record has every field: TLC compares values of one shape."""
    kind, generation, members, partition, number, static = logged[0], NONE, 0, NONE, NONE, NONE
    assignment: tuple[int, ...] = (NONE,) * partitions
    if kind == COMMIT:
        _, generation, partition, number = logged
    elif kind == METADATA:
        _, generation, members, assignment, static = logged
    elif kind == EXPIRED:
        _, partition = logged
    return record(
        kind=KINDS[kind],
        generation=generation,
        members=BITS.to_tla(members),
        assignment=_EACH.to_tla(assignment),
        partition=partition,
        number=number,
        static=static,
    )


def _log_record_from(logged: Any) -> OffsetsRecord:
    kind = logged["kind"]
    if kind == "commit":
        return COMMIT, logged["generation"], logged["partition"], logged["number"]
    if kind == "group":
        return (
            METADATA,
            logged["generation"],
            BITS.from_tla(logged["members"]),
            _EACH.from_tla(logged["assignment"]),
            logged["static"],
        )
    return (EXPIRED, logged["partition"]) if kind == "expired" else (REMOVED,)


def _state(partitions: int) -> Part:
    """The form of a state of so many partitions; to read one it does not matter how many."""

    def told(broker: Broker) -> Iterable[Any]:
        return *broker[:-1], broker.group != (), broker.group or new_group(partitions)

    def broker(values: Any) -> Broker:
        *known, owns, group = values
        return Broker._make((*known, group if owns else ()))

    logged = Form(lambda one: _log_record(one, partitions), _log_record_from)
    return state_form(
        GroupState._make,
        columns(broker, told, epoch=SAME, leads=SAME, tasks=BITS, loaded=SAME, owns=SAME, group=_GROUP),
        columns(
            Member._make,
            phase=word(*MEMBER_STATES),
            generation=SAME,
            assigned=BITS,
            asked=SAME,
            sent=sequence(row(tuple, generation=SAME, partition=SAME, number=SAME)),
        ),
        variable("leaders", SAME),
        fields(OffsetsLog._make, log=sequence(logged), durable=SAME),
        variable("acked", numbered(row(tuple, number=SAME, epoch=SAME))),
        fields(tuple, commits=SAME, expiries=SAME),
    )


def state_to_tla(state: GroupState) -> dict[str, Value]:
    """The values of the variables of Group.tla."""
    return _state(len(state.acked)).to_tla(state)


state_from_tla = _state(0).from_tla
"""A state, from the values of the variables by name."""
