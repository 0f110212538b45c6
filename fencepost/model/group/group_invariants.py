"""The invariants of the group model.

Owns OFFSET-SAFE, GENERATION-FENCE, GENERATION-MONO, ONE-CONSUMER, ONE-COORDINATOR and ONE-INSTANCE, on states
and steps; and the `sometimes` goals that a useful exploration reaches. Must not know the bodies of actions.
"""

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise, product

from fencepost.model.explore.transition_system import Action, Part, Value
from fencepost.model.group.group_state import (
    COMMIT,
    COMPLETING,
    EARLIER,
    LATER,
    METADATA,
    OWNING,
    STABLE,
    Acked,
    Broker,
    Constants,
    GroupState,
    Leaders,
    Member,
    ModelGroup,
    OffsetsLog,
)


def acknowledged_is_read(broker: Broker, acked: Acked) -> bool:
    """OFFSET-SAFE: a coordinator returns each commit that an epoch up to its own acknowledged, or a commit
    that was sent later.

    Args:
        broker: the coordinator.
        acked: the acknowledged commits.

    Returns:
        whether it holds.
    """
    group = broker.group
    return not isinstance(group, ModelGroup) or all(
        epoch > broker.loaded or group.offsets[partition] >= number
        for partition, (number, epoch) in enumerate(acked)
    )


def commits_are_of_their_generation(log: OffsetsLog) -> bool:
    """GENERATION-FENCE: in the log, a commit never follows a generation later than its own."""
    latest = 0
    for record in log.records:
        if record[0] == METADATA:
            latest = max(latest, record[1])
        elif record[0] == COMMIT and record[1] < latest:
            return False
    return True


def generations_grow_along_log(log: OffsetsLog) -> bool:
    """GENERATION-MONO of a state: no generation is written twice, and none after a later one. A static member
    that came back is written into its own generation."""
    generations = [(record[1], record[4]) for record in log.records if record[0] == METADATA]
    return all(one < other for one, other in pairwise(generations))


def own_apart(one: Member, other: Member) -> bool:
    """ONE-CONSUMER: within one generation, two members never own one partition. (The earlier process of a
    static pair may not know yet that it is fenced.)"""
    return one.generation != other.generation or not one.assigned & other.assigned


def one_of_the_pair(broker: Broker) -> bool:
    """ONE-INSTANCE: no group has both processes of a static member."""
    both = 1 << EARLIER | 1 << LATER
    return not isinstance(broker.group, ModelGroup) or broker.group.members & both != both


def stays_replaced(broker: Broker, later: Member, leaders: Leaders) -> bool:
    """ONE-INSTANCE: once the later process has its assignment, the current coordinator does not accept the
    earlier one as a member of that generation."""
    group = broker.group
    present = broker.leads and broker.epoch == broker.loaded == len(leaders) - 1
    if not isinstance(group, ModelGroup) or not present or later.state != OWNING:
        return True
    has_it = group.state in (COMPLETING, STABLE) and bool(group.members >> EARLIER & 1)
    return group.generation != later.generation or not has_it


def owns_if_leads(broker: Broker) -> bool:
    """ONE-COORDINATOR: a broker without pending tasks owns the group if and only if it leads the offsets
    partition."""
    return bool(broker.tasks) or (broker.group != ()) == broker.leads


def generations_grow_at_coordinators(before: GroupState, action: Action, after: GroupState) -> bool:
    """GENERATION-MONO of a step: in one coordinator epoch the group's generation never decreases.

    Args:
        before: the state before.
        action: the action.
        after: the state after.

    Returns:
        whether it holds.
    """
    return all(
        not isinstance(one.group, ModelGroup)
        or not isinstance(other.group, ModelGroup)
        or one.loaded != other.loaded
        or one.group.generation <= other.group.generation
        for one, other in zip(before.brokers, after.brokers, strict=True)
    )


OF_STATES = (
    "OFFSET-SAFE", "GENERATION-FENCE", "GENERATION-MONO", "ONE-CONSUMER", "ONE-COORDINATOR", "ONE-INSTANCE",
)  # fmt: skip
"""The invariants of states. If several are violated, the first one names the violation."""

OF_STEPS: Mapping[str, Callable[[GroupState, Action, GroupState], bool]] = {
    "GENERATION-MONO": generations_grow_at_coordinators
}


def _told(broker: Broker) -> Value:
    """The part of a broker that OFFSET-SAFE reads, as a broker."""
    group = broker.group
    if not isinstance(group, ModelGroup):
        return Broker(0, False, 0, broker.loaded, ())
    return Broker(0, False, 0, broker.loaded, ModelGroup(0, 0, 0, 0, (), group.offsets))


def _told_or_acked(value: Value) -> Value:
    return _told(value) if isinstance(value, Broker) else value


def _owned(member: Member) -> Value:
    return member._replace(state=OWNING, coordinator=0, sent=())


def parts(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The invariants of states, broker by broker and pair by pair. Slots: brokers, members, leaders, log,
    acked, used."""
    brokers, members = constants.brokers, constants.members
    leaders, log, acked = (brokers + members + at for at in range(3))
    static = {(brokers + EARLIER, brokers + LATER)} if constants.statics else set()
    pairs = [pair for pair in combinations(range(brokers, brokers + members), 2) if pair not in static]
    instance = [Part((b,), one_of_the_pair) for b in range(brokers)]
    instance += [Part((b, brokers + LATER, leaders), stays_replaced) for b in range(brokers) if static]
    return {
        "OFFSET-SAFE": tuple(Part((b, acked), acknowledged_is_read, _told_or_acked) for b in range(brokers)),
        "GENERATION-FENCE": (Part((log,), commits_are_of_their_generation),),
        "GENERATION-MONO": (Part((log,), generations_grow_along_log),),
        "ONE-CONSUMER": tuple(Part(pair, own_apart, _owned) for pair in pairs),
        "ONE-COORDINATOR": tuple(Part((b,), owns_if_leads) for b in range(brokers)),
        "ONE-INSTANCE": tuple(instance) if constants.statics else (),
    }


def _acknowledged(acked: Acked) -> bool:
    return any(number >= 0 for number, _ in acked)


def _both_own(one: Broker, other: Broker) -> bool:
    return one.group != () and other.group != ()


def _outlived(broker: Broker, member: Member) -> bool:
    group = broker.group
    return (
        isinstance(group, ModelGroup)
        and group.state == STABLE
        and any(generation < group.generation for generation, _, _ in member.sent)
    )


def _survived(broker: Broker) -> bool:
    return broker.loaded > 0 and isinstance(broker.group, ModelGroup) and max(broker.group.offsets) >= 0


def goals(constants: Constants) -> Mapping[str, tuple[Part, ...]]:
    """The goals that a useful exploration reaches."""
    brokers, members = constants.brokers, constants.members
    acked = brokers + members + 2
    pairs = tuple(combinations(range(brokers), 2))
    each = product(range(brokers), range(brokers, brokers + members))
    return {
        "a commit is acknowledged": (Part((acked,), _acknowledged),),
        "a commit outlives its generation": tuple(Part(pair, _outlived) for pair in each),
        "two brokers own the group": tuple(Part(pair, _both_own) for pair in pairs),
        "a commit outlives its coordinator": tuple(Part((b,), _survived) for b in range(brokers)),
    }
