"""Consumer groups as a pure transition system: one group, its members, and the brokers that may coordinate
it.

Owns the slots, and which steps read and write which. brokers.py and member_steps.py have the steps;
coordinator_steps.py has a coordinator's handling of one group. Must not know an implementation, or time.

The offsets partition is replicated as in the replication model, so here its log is one: the current leader's.
No election loses durable records. An election keeps or truncates the records after them. A broker that does
not know the current epoch writes nothing that counts, and is not elected (it would not be in the ISR).
Learning an epoch and loading or unloading the group are two steps, as in Kafka: tasks wait.

Requests. JoinGroup is a request and a later response, from the same coordinator. SyncGroup, Heartbeat and
LeaveGroup are one step each. Commits wait in the order in which their member sent them; one may be lost or
refused at any time. The leader of the generation is the first member that syncs with an assignment: Kafka
chooses it earlier, but as freely.
"""

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import permutations
from typing import Any, ClassVar

from attrs import field, frozen

from fencepost.model.bounded_system import BoundedSystem
from fencepost.model.explore.transition_system import Part, Rule, Symmetry, rule_of
from fencepost.model.group import brokers as broker_steps
from fencepost.model.group import coordinator_steps as coordinator
from fencepost.model.group import group_invariants as invariants
from fencepost.model.group import member_steps as member_steps
from fencepost.model.group.group_state import (
    LATER,
    NONE,
    OUT,
    Broker,
    Constants,
    GroupState,
    Member,
    OffsetsLog,
    describe,
    renamed,
)


def _has_tasks(broker: Broker) -> bool:
    return broker.tasks != 0


def _has_sent(member: Member) -> bool:
    return bool(member.sent)


@frozen(eq=False, slots=False)
class Groups(BoundedSystem[GroupState]):
    """The transition system for some constants (explore/slotted.py documents the methods).

    Slots: each broker, each member, the leaders by epoch, the log, the acknowledged commits, the used part of
    the bounds.
    """

    STATE: ClassVar[Any] = GroupState
    INVARIANTS: ClassVar[Any] = invariants
    IN_WORDS: ClassVar[Callable[[Any], str]] = describe

    constants: Constants
    checks: tuple[str, ...] = field(default=tuple(invariants.OF_STATES))

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of actions. Failovers, expiries, and actions that need a missing protection are absent if
        the constants exclude them."""
        constants = self.constants
        absent = set()
        if constants.epochs == 0 or constants.brokers < 2:
            absent |= {"elect", "learn", "load", "unload"}
        if constants.expiries == 0:
            absent |= {"expire_offset", "remove_group"}
        if constants.members == 2 * constants.statics:
            absent.add("leave")
        names = dict.fromkeys(name for rule in self.rules for name in rule.names)
        return tuple(name for name in names if name not in absent)

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Members may be renumbered, except the two processes of a static member."""
        fixed = 2 * self.constants.statics
        brokers, count = self.constants.brokers, self.constants.members
        rest = range(brokers + count, brokers + count + 4)
        return tuple(
            Symmetry(
                (*range(brokers), *(brokers + number for number in numbers), *rest),
                partial(renamed, numbers, brokers),
            )
            for numbers in permutations(range(count))
            if numbers != tuple(range(count)) and numbers[:fixed] == tuple(range(fixed))
        )

    @property
    def kinds(self) -> tuple[int, ...]:
        """All members are of one kind."""
        brokers = self.constants.brokers
        rest = range(brokers + 1, brokers + 5)
        return (*range(brokers), *(brokers,) * self.constants.members, *rest)

    @property
    def spread(self) -> tuple[int | None, ...]:
        """Brokers, members, and the rest."""
        return (self.constants.brokers, self.constants.members, None, None, None, None)

    def initial(self) -> Iterable[GroupState]:
        """Broker 0 leads the offsets partition and has loaded the group; there are no members, nothing is
        committed."""
        bounds = self.constants
        group = coordinator.new_group(bounds.partitions)
        yield GroupState(
            (Broker(0, True, 0, 0, group),) + (Broker(0, False, 0, 0, ()),) * (bounds.brokers - 1),
            (Member(OUT, NONE, 0, NONE, ()),) * bounds.members,
            (0,),
            OffsetsLog((), 0),
            ((NONE, NONE),) * bounds.partitions,
            (0, 0),
        )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of each broker, of each member, then of each member with each broker."""
        rule = partial(rule_of, self.constants)
        bounds = self.constants
        members = range(bounds.brokers, bounds.brokers + bounds.members)
        used = bounds.brokers + bounds.members + 3
        rules = [rule for number in range(bounds.brokers) for rule in self._of_broker(number)]
        for number, slot in enumerate(members):
            overtaken = () if self.constants.keeps("commit_async_not_retried") else ("retry_commit",)
            sent = Part((slot,), _has_sent)
            rules += [
                rule(("commit",), (slot, used), (slot, used), member_steps.commit, number),
                rule(("lose_commit", *overtaken), (slot,), (slot,), member_steps.lose, number, when=sent),
            ]
            rules += [
                rule for broker in range(bounds.brokers) for rule in self._of_pair(number, slot, broker)
            ]
        return tuple(rules)

    def _of_broker(self, number: int) -> list[Rule]:
        rule = partial(rule_of, self.constants)
        leaders = self.constants.brokers + self.constants.members
        log, acked, used = leaders + 1, leaders + 2, leaders + 3
        serves = Part((number,), self._serves)
        tasks = Part((number,), _has_tasks)
        written = (number, leaders, log)
        return [
            rule(("elect",), written, (leaders, log), broker_steps.elect, number),
            rule(("learn",), (number, leaders), (number,), broker_steps.learn, number),
            rule(("load", "unload"), written, (number,), broker_steps.run_task, number, when=tasks),
            rule(("complete_join",), written, (number, log), broker_steps.complete_join, number, when=serves),
            rule(
                ("session_timeout",), (number,), (number,), broker_steps.session_timeout, number, when=serves
            ),
            rule(("replicate",), (*written, acked), (number, log, acked), broker_steps.replicate, number),
            rule(
                ("expire_offset", "remove_group"),
                (*written, acked, used),
                (number, log, acked, used),
                broker_steps.expire,
                number,
                when=serves,
            ),
        ]

    def _of_pair(self, number: int, slot: int, broker: int) -> list[Rule]:
        rule = partial(rule_of, self.constants)
        leaders = self.constants.brokers + self.constants.members
        log, acked = leaders + 1, leaders + 2
        serves, pair = Part((broker,), self._serves), (slot, broker)
        rules = [
            rule(
                ("join", "joined", "sync", "heartbeat", "leave"),
                pair,
                pair,
                member_steps.membership,
                number,
                broker,
                when=serves,
            ),
            rule(
                ("assign",),
                (*pair, leaders, log),
                (broker, log),
                member_steps.assign,
                number,
                broker,
                when=serves,
            ),
            rule(
                ("handle_commit",),
                (*pair, leaders, log),
                (slot, log),
                member_steps.handle_commit,
                number,
                broker,
                when=Part(pair, self._may_handle),
            ),
        ]
        if self.constants.statics and number == LATER:
            step = partial(member_steps.replace_static, self.constants, number, broker)
            rules.append(Rule(("replace_static",), (*pair, leaders, log), (*pair, log), step, serves))
        if not self.constants.keeps("not_coordinator"):
            rules.append(
                rule(
                    ("acknowledge_unwritten",),
                    (*pair, acked),
                    (*pair, acked),
                    member_steps.acknowledge_unwritten,
                    number,
                    broker,
                    when=Part(pair, self._may_handle),
                )
            )
        return rules

    def _serves(self, broker: Broker) -> bool:
        return coordinator.serves(broker, guarded=self.constants.keeps("not_coordinator"))

    def _may_handle(self, member: Member, broker: Broker) -> bool:
        return _has_sent(member) and self._serves(broker)
