"""A Hypothesis state machine in which a group coordinator and the model of it (model/group) take the same
steps.

Owns the steps. Two consumers, two brokers, one partition. Each rule does one thing to the implementation,
lets the model take the actions that the answers tell of, and then both must agree (lockstep.py). Where the
implementation refuses, the model must have no such action; where it agrees, the model must have it.
"""

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.bugs.groups import ROWS
from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.rebalance import JOIN_TIMER, SESSION_TIMER
from fencepost.model.group.group_state import JOINING, NONE, OUT, OWNING, PREPARING, SYNCING, of
from fencepost.traces.kafka_names.outcomes import ErrorCode
from tests.selfcheck.group.brokers import GROUP
from tests.selfcheck.group.lockstep import GroupLockstep

MEMBERS = st.sampled_from([0, 1])
KEPT = (DURABLE, COPIED, EVERYTHING) = ("durable", "copied", "everything")
"""What the next coordinator has of the log."""
FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class GroupMachine(GroupLockstep):
    """`parts` can be replaced in a subclass, which is how planted bugs get in."""

    # ---- members

    @rule(member=MEMBERS)
    def join(self, member: int) -> None:
        """JoinGroup, of a consumer that may: under its id if the coordinator knows it, otherwise under a new
        one."""
        number, seen = self.numbers[member], self.brokers.group(self.node)
        known = seen is not None and number != NONE and self.names[number] in seen.members
        idle = number == NONE or self.state.members[number].state in (OUT, JOINING)
        if member in self.syncs or not (self.may("join", number, self.coordinator) if known else idle):
            return
        self.subscriptions += 1
        subscription = b"%d" % self.subscriptions
        request = self.brokers.join(self.node, self.names[number] if known else "", subscription)
        group = self.brokers.group(self.node)
        assert group is not None, self.brokers.answers[request]
        number = number if known else self.has_joined(member, list(group.members)[-1])
        self.take("join", number, self.coordinator)
        self.joins[member] = request
        self.follow()

    @rule(member=MEMBERS)
    def sync(self, member: int) -> None:
        """SyncGroup: the leader brings the assignment, which gives it everything; a follower asks when there
        is one."""
        number, seen = self.numbers[member], self.brokers.group(self.node)
        if seen is None or member in self.syncs or number == NONE:
            return
        name, generation = self.names[number], self.generations[member]
        if seen.leader == name and self.may("assign", number, self.coordinator, number):
            request = self.brokers.sync(self.node, name, generation, {name: b"\x00\x01"})
            self.take("assign", number, self.coordinator, number)
            self.syncs[member] = request
        elif self.may("sync", number, self.coordinator):
            request = self.brokers.sync(self.node, name, generation, {})
            assert self.brokers.answers[request].error is ErrorCode.NONE
            self.take("sync", number, self.coordinator)

    @rule(who=st.sampled_from([(0,), (1,), (0, 1), (1, 0)]))
    def settle(self, who: tuple[int, ...]) -> None:
        """These join, the time for the others is over, and the leader's assignment becomes durable: most of
        what goes wrong needs a stable group."""
        for member in who:
            self.join(member)
        if self.group.state == PREPARING:
            self.rebalance_time_out()
        for member in who:
            self.sync(member)
        self.replicated()
        for member in who:
            self.sync(member)

    @rule(member=MEMBERS, replicated=st.booleans())
    def commits(self, member: int, replicated: bool) -> None:
        """A commit that arrives at once.

        Args:
            member: the member's number.
            replicated: whether it is durable at once, too.
        """
        self.commit(member)
        self.commit_arrives(member)
        if replicated:
            self.replicated()

    @rule(member=MEMBERS)
    def commit_is_overtaken(self, member: int) -> None:
        """A commit that arrives when its sender is in the next generation."""
        self.commit(member)
        self.settle((1 - member, member))
        self.commit_arrives(member)

    @rule(member=MEMBERS)
    def heartbeat(self, member: int) -> None:
        """Who is fenced learns it."""
        number = self.numbers[member]
        if number == NONE or self.state.members[number].state not in (SYNCING, OWNING):
            return
        if member in self.syncs:
            return
        error = self.brokers.heartbeat(self.node, self.names[number], self.generations[member])
        fenced = self.may("heartbeat", number, self.coordinator)
        assert fenced == (error in FENCED), (error, self.system.describe(self.state))
        if fenced:
            self.take("heartbeat", number, self.coordinator)

    @rule(member=MEMBERS)
    def leave(self, member: int) -> None:
        """LeaveGroup."""
        number = self.numbers[member]
        if self.may("leave", number, self.coordinator):
            assert self.brokers.leave(self.node, self.names[number]) is ErrorCode.NONE
            self.take("leave", number, self.coordinator)
            self.follow()

    @rule(member=MEMBERS)
    def commit(self, member: int) -> None:
        """An owner sends a commit; the offset is one more than the model's number of it."""
        number = self.numbers[member]
        if not self.may("commit", number, 0):
            return
        self.take("commit", number, 0)
        self.sent[member].append((number, self.generations[member], self.state.used[0]))

    @rule(member=MEMBERS)
    def commit_arrives(self, member: int) -> None:
        """The oldest commit that a consumer has sent reaches the coordinator, whatever happened meanwhile."""
        if not self.sent[member]:
            return
        number, generation, offset = self.sent[member].pop(0)
        request = self.brokers.commit(self.node, self.names[number], generation, offset)
        answer = self.brokers.answers.get(request)
        if answer is None:
            self.take("handle_commit", number, self.coordinator)
            self.written.append(request)
        else:
            text = self.system.describe(self.state)
            assert answer.error is not ErrorCode.NONE, f"acknowledged, and on one broker only:\n{text}"
            assert not self.may("handle_commit", number, self.coordinator), (answer, text)
            self.take("lose_commit", number)

    # ---- time and brokers

    @rule()
    def replicate(self) -> None:
        """The other broker fetches."""
        self.replicated()

    @precondition(lambda self: self.group.state == PREPARING)
    @rule()
    def rebalance_time_out(self) -> None:
        """Who has not joined is out."""
        self.brokers.fire(self.node, JOIN_TIMER, GROUP)
        self.follow()

    @rule(nth=st.integers(0, 2))
    def session_time_out(self, nth: int) -> None:
        """A member is silent, unless it waits for an answer; perhaps nobody has its id any more."""
        waiting = {self.numbers[member] for member in (*self.joins, *self.syncs)}
        silent = [number for number in of(self.group.members) if number not in waiting]
        for number in silent[nth : nth + 1]:
            self.brokers.fire(self.node, SESSION_TIMER, GROUP, self.names[number])
            self.take("session_timeout", self.coordinator, number)
            self.follow()

    @precondition(lambda self: self.group.members)
    @rule()
    def retention_passes(self) -> None:
        """The group has members, so that it may consume everything: nothing of it expires, whatever its
        phase."""
        self.brokers.retention_passes(self.node)

    @rule(kept=st.sampled_from(KEPT))
    def fail_over(self, kept: str) -> None:
        """The other broker leads: with everything, with what it has copied though the leader has not heard
        that, or with what was durable only."""
        if kept == EVERYTHING:
            self.replicated()
        elif kept == COPIED:
            self.brokers.copy()
        self.take_over()

    @rule()
    def lead_for_a_moment(self) -> None:
        """The other broker leads, and this one again, before either has acted on it: the load and the unload
        of that moment come late."""
        self.take_over(tasks_late=True)
        self.take_over()
        self.brokers.late_tasks_run()

    def take_over(self, *, tasks_late: bool = False) -> None:
        """The other broker leads, and both learn of it."""
        old, new = self.coordinator, 1 - self.coordinator
        epoch = len(self.state.leaders)
        self.take("elect", new, self.brokers.log_end_offset(new + 1))
        self.brokers.elect(new + 1, tasks_late=tasks_late)
        self.coordinator = new
        self.take("learn", new, epoch)
        self.take("learn", old, epoch)
        if not tasks_late:
            self.take("load", new, epoch)
            self.take("unload", old, epoch)
        self.are_answered(ErrorCode.NOT_COORDINATOR)
        self.syncs.clear()
        self.joins.clear()


def planted(bug: str) -> type[GroupMachine]:
    """A machine whose coordinators have this bug."""
    role, part = next((role, part) for name, role, part, *_ in ROWS if name == bug)
    return type("Planted", (GroupMachine,), {"parts": evolve(Parts(), **{role: part})})
