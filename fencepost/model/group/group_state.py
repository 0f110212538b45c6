"""The state of the group model: compact tuples, and their description in words.

Owns the layout of states, constants, and their description. Must not know actions or invariants.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from attrs import frozen

from fencepost.model.dropped import Bounds
from fencepost.model.explore.transition_system import Value
from fencepost.traces.errors import FencepostError

OF_GROUPS = frozenset(
    {
        "generation_fencing",
        "commit_async_not_retried",
        "coordinator_epoch_order",
        "apply_whole_load",
        "no_expiry_while_rebalancing",
        "not_coordinator",
        "persist_static_member",
        "replace_static_member",
    }
)
"""The registered protections (traces/protections) that this model can drop."""

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = range(5)
GROUP_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
"""Kafka's names, in the order of the numbers."""

OUT, JOINING, SYNCING, OWNING = range(4)
MEMBER_STATES = ("Out", "Joining", "Syncing", "Owning")
"""OUT: no member. JOINING: waits for the response to JoinGroup. SYNCING: knows its generation. OWNING: has
its assignment."""

EARLIER, LATER = 0, 1
"""The static pair: two processes with one group.instance.id."""

NONE = -1
"""No member, no generation, no commit, no coordinator, no epoch."""

IN_FLIGHT = 2
"""The most commits of a member in flight. Reason: two are enough for one to overtake the other."""

COMMIT, METADATA, EXPIRED, REMOVED = range(4)

OffsetsRecord = tuple[Any, ...]
"""(COMMIT, generation, partition, number), (METADATA, generation, members, assignment, static), (EXPIRED,
partition) or (REMOVED,): the group's records in __consumer_offsets. A commit's number represents its offset:
commits are numbered in the order in which members send them."""

Leaders = tuple[int, ...]
"""The broker that leads the offsets partition, for each leader epoch so far; the last one is current."""

Acked = tuple[tuple[int, int], ...]
"""For each partition (number of the newest acknowledged commit, coordinator epoch that acknowledged it)."""

Used = tuple[int, int]
"""Commits sent, offsets expired: the used part of the bounds."""


class ModelGroup(NamedTuple):
    """A coordinator's state of the group."""

    # Index into GROUP_STATES.
    state: int
    # The generation.
    generation: int
    # The known members as a bit set.
    members: int
    # Those of them that wait in this rebalance, as a bit set.
    joined: int
    # For each partition its member; NONE until a member has synced.
    assignment: tuple[int, ...]
    # For each partition the number of the commit that a fetch returns.
    offsets: tuple[int, ...]
    # The process of the static pair that has the group.instance.id, or NONE.
    static: int = NONE


class Broker(NamedTuple):
    """One broker and the group."""

    # The leader epoch of the offsets partition that it knows, and whether it leads in it.
    epoch: int
    leads: bool
    # Epochs with a load or unload that has not run, as a bit set.
    tasks: int
    # The coordinator epoch, that of the task that ran last.
    loaded: int
    # () if it is not the coordinator.
    group: ModelGroup | tuple[()]


class Member(NamedTuple):
    """One consumer."""

    # Index into MEMBER_STATES.
    state: int
    # From its responses; assigned is a bit set of partitions.
    generation: int
    assigned: int
    # The broker that it waits for while it joins.
    coordinator: int
    # Its commits in flight, oldest first: (generation, partition, number).
    sent: tuple[tuple[int, int, int], ...]


class OffsetsLog(NamedTuple):
    """The leader's log of the offsets partition."""

    records: tuple[OffsetsRecord, ...]
    # The number of records below its high watermark; no clean election loses these.
    durable: int


class GroupState(NamedTuple):
    """A state of the model."""

    # The brokers, by number.
    brokers: tuple[Broker, ...]
    # The members, by number.
    members: tuple[Member, ...]
    # The leaders of the offsets partition, by epoch.
    leaders: Leaders
    # The log of the offsets partition.
    log: OffsetsLog
    # The acknowledged commits; a ghost variable.
    acked: Acked
    # The used part of the bounds.
    used: Used


@frozen(kw_only=True)
class Constants(Bounds):
    """The bounds of the model."""

    PROTECTIONS: ClassVar[frozenset[str]] = OF_GROUPS
    AREA: ClassVar[str] = "consumer groups"

    # The number of members.
    members: int = 2
    # The number of partitions to consume.
    partitions: int = 1
    # The number of brokers that may coordinate.
    brokers: int = 2
    # The most completed joins.
    generations: int = 2
    # The most commits sent by all members together.
    commits: int = 1
    # The highest leader epoch of the offsets partition, so a bound on failovers.
    epochs: int = 0
    # The most offsets that retention removes.
    expiries: int = 0
    # 1 if members 0 and 1 are an earlier and a later process of one static member (KIP-345), with one
    # group.instance.id.
    statics: int = 0

    def __attrs_post_init__(self) -> None:
        if self.statics not in (0, 1) or self.members < 2 * self.statics:
            raise FencepostError(
                expected="0, or 1 with two members or more",
                seen=f"{self.statics} with members {self.members}",
                where="statics",
            )


def of(bits: int) -> list[int]:
    """The numbers of a bit set."""
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def renamed(numbers: Sequence[int], brokers: int, slot: int, value: Any) -> Value:
    """The value of a slot after member m is renamed to numbers[m]."""
    if slot < brokers:
        return _renamed_broker(numbers, value)
    if slot == brokers + len(numbers) + 1:
        return OffsetsLog(tuple(_renamed_record(numbers, record) for record in value.records), value.durable)
    return value  # type: ignore[no-any-return]


def _renamed_broker(numbers: Sequence[int], broker: Broker) -> Broker:
    group = broker.group
    if not isinstance(group, ModelGroup):
        return broker
    return broker._replace(
        group=group._replace(
            members=_renamed_set(numbers, group.members),
            joined=_renamed_set(numbers, group.joined),
            assignment=_renamed_assignment(numbers, group.assignment),
            static=numbers[group.static] if group.static != NONE else NONE,
        )
    )


def _renamed_record(numbers: Sequence[int], record: OffsetsRecord) -> OffsetsRecord:
    if record[0] != METADATA:
        return record
    kind, generation, members, assignment, static = record
    renamed_static = numbers[static] if static != NONE else NONE
    return (
        kind,
        generation,
        _renamed_set(numbers, members),
        _renamed_assignment(numbers, assignment),
        renamed_static,
    )


def _renamed_assignment(numbers: Sequence[int], assignment: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(numbers[member] if member != NONE else NONE for member in assignment)


def _renamed_set(numbers: Sequence[int], bits: int) -> int:
    return sum(1 << numbers[member] for member in of(bits))


def describe(state: GroupState) -> str:
    """The state on one line for the log, one per broker and one per member."""
    records, durable = state.log
    text = " ".join(_record(record) for record in records)
    lines = [f"epoch {len(state.leaders) - 1}, leader {state.leaders[-1]}: [{text}] {durable} durable"]
    for number, broker in enumerate(state.brokers):
        role = "leads" if broker.leads else "follows in"
        tasks = f", to run: epochs {of(broker.tasks)}" if broker.tasks else ""
        lines.append(f"broker {number}: {role} epoch {broker.epoch}, {_group(broker)}{tasks}")
    for number, member in enumerate(state.members):
        sent = "".join(f", sent commit {one[2]} of generation {one[0]}" for one in member.sent)
        known = f" generation {member.generation}" if member.generation != NONE else ""
        owns = f" owns {of(member.assigned)}" if member.state == OWNING else ""
        lines.append(f"member {number}: {MEMBER_STATES[member.state]}{known}{owns}{sent}")
    return "\n".join(lines)


def _record(record: OffsetsRecord) -> str:
    if record[0] == COMMIT:
        return f"commit {record[3]} of partition {record[2]} in generation {record[1]};"
    if record[0] == METADATA:
        return f"generation {record[1]} members {of(record[2])} assignment {list(record[3])};"
    return f"partition {record[1]} expired;" if record[0] == EXPIRED else "group removed;"


def _group(broker: Broker) -> str:
    group = broker.group
    if not isinstance(group, ModelGroup):
        return "not the coordinator"
    known = f"{GROUP_STATES[group.state]} generation {group.generation} members {of(group.members)}"
    return f"coordinator of epoch {broker.loaded}: {known}, offsets {list(group.offsets)}"
