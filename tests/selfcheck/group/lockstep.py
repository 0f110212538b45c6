"""A group coordinator and the model of it (model/group) side by side: who is who, what the model learns, and
what must agree.

Owns what both have come to, and what of it is compared: the state of the group, its generation, its members,
who of them has joined, what a fetch reads, how long the log is, and which commits are acknowledged. Must not
know which steps are taken (group_machine.py), nor how the brokers are moved.

A member of the model is a member id, as it is to Kafka, not a consumer. A consumer that comes back after it
left has another id, and after a fail-over that lost its leaving the group has a member that nobody is:

1. c-1 is in generation 1, durable
2. c-1 leaves, c-2 joins, nothing of it durable
3. the next coordinator knows c-1 and refuses c-2
"""

from functools import cache
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.model.group.group_state import GROUP_STATES, NONE, OUT, Constants, Member, ModelGroup, of
from fencepost.model.group.group_system import Groups
from fencepost.traces.kafka_names.outcomes import ErrorCode
from tests.selfcheck.group.brokers import TwoBrokers

MOST = 1_000
"""Bounds of the model that no example reaches: a step is a handful of the model's at most."""


@cache
def groups_of(members: int) -> Groups:
    """The model of a group in which so many member ids have been given out."""
    return Groups(
        Constants(
            members=members, partitions=1, brokers=2, generations=MOST, commits=MOST, epochs=MOST, expiries=0
        )
    )


class GroupLockstep(RuleBasedStateMachine):
    """`parts` can be replaced in a subclass, which is how planted bugs get in. names: the member id of each
    of the model's members, in the order in which they were given out; numbers: which of them each consumer
    has, NONE before its first; generations: as in the answers; joins, syncs: the requests that wait, by
    consumer; sent: (member, generation, offset) of commits on their way; written: the requests of commits
    that are not acknowledged yet."""

    parts: ClassVar[Parts] = Parts()

    def __init__(self) -> None:
        super().__init__()
        self.brokers = TwoBrokers(self.parts)
        (self.state,) = groups_of(0).initial()
        self.coordinator = 0
        self.names: list[str] = []
        self.numbers = [NONE, NONE]
        self.generations = [-1, -1]
        self.joins: dict[int, int] = {}
        self.syncs: dict[int, int] = {}
        self.sent: list[list[tuple[int, int, int]]] = [[], []]
        self.written: list[int] = []
        self.subscriptions = 0

    @property
    def node(self) -> int:
        """The coordinator's id."""
        return self.coordinator + 1

    @property
    def system(self) -> Groups:
        """The model, with the members that there have been."""
        return groups_of(len(self.names))

    @property
    def group(self) -> ModelGroup:
        """The model's, at the coordinator."""
        group = self.state.brokers[self.coordinator].group
        assert isinstance(group, ModelGroup), group
        return group

    def may(self, *action: Any) -> bool:
        """Whether the model has this action."""
        return action in set(self.system.actions(self.state))

    def take(self, *action: Any) -> None:
        """The model follows. What it cannot do is what the implementation must not."""
        assert self.may(*action), (
            f"the implementation did {action}, the model cannot:\n{self.system.describe(self.state)}"
        )
        self.state = self.system.apply(self.state, action)

    def follow(self) -> None:
        """The model learns what the answers that came meanwhile tell of."""
        seen = self.brokers.group(self.node)
        if seen is not None and seen.generation > self.group.generation:
            self.take("complete_join", self.coordinator)
        for member, request in sorted(self.joins.items()):
            answer = self.brokers.answers.get(request)
            if answer is None:
                continue
            del self.joins[member]
            if answer.error is ErrorCode.NONE:
                self.generations[member] = answer.generation_id
                self.take("joined", self.numbers[member], self.coordinator)

    def replicated(self) -> None:
        """Everything is durable on both sides; who waited for that is answered."""
        self.brokers.replicate()
        while self.may("replicate", self.coordinator):
            self.take("replicate", self.coordinator)
        for member, request in sorted(self.syncs.items()):
            answer = self.brokers.answers.get(request)
            if answer is not None:
                del self.syncs[member]
                if answer.error is ErrorCode.NONE:
                    self.take("sync", self.numbers[member], self.coordinator)
        self.are_answered(ErrorCode.NONE)
        self.follow()

    def are_answered(self, error: ErrorCode) -> None:
        """So are all commits that were written since everything was durable."""
        for request in self.written:
            answer = self.brokers.answers.get(request)
            assert answer is not None and answer.error is error, (answer, self.system.describe(self.state))
        self.written.clear()

    def has_joined(self, member: int, name: str) -> int:
        """The model's member for this id, which is a new one if nobody had it."""
        if name not in self.names:
            self.names.append(name)
            newcomer = Member(OUT, NONE, 0, NONE, ())
            self.state = self.state._replace(members=(*self.state.members, newcomer))
        self.numbers[member] = self.names.index(name)
        return self.numbers[member]

    # ---- what must agree

    @invariant()
    def agrees(self) -> None:
        """On the group at its coordinator, and on what is committed."""
        seen, group = self.brokers.group(self.node), self.group
        text = self.system.describe(self.state)
        if seen is None:
            assert group.generation == 0 and not group.members, text
        else:
            assert seen.phase == GROUP_STATES[group.state], (seen.phase, text)
            assert seen.generation == group.generation, (seen.generation, text)
            names = {self.names[number] for number in of(group.members)}
            assert set(seen.members) == names, (list(seen.members), self.names, text)
            if seen.phase is GroupPhase.PREPARING:
                joined = {name for name, member in seen.members.items() if member.join is not None}
                assert joined == {self.names[number] for number in of(group.joined)}, (joined, text)
        offset = 0 if group.offsets[0] == NONE else group.offsets[0] + 1
        read = self.brokers.committed(self.node)
        assert read == (offset or -1), (read, text)
        assert self.brokers.log_end_offset(self.node) == len(self.state.log.records), text
