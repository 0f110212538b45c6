"""A consumer as a member of its group: finding the coordinator, joining, heartbeats, leaving (P5).

Owns member id, generation and assignment as the coordinator sent them. Must not know positions or records.
Membership ends as soon as the coordinator says so; the consumer decides to join again when it polls.
"""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from attrs import define, field

from fencepost.impl.client.consumer.assignors import (
    ASSIGNORS,
    COOPERATIVE_STICKY,
    Assignment,
    Subscriptions,
    given_up,
)
from fencepost.impl.client.consumer.requests import ConsumerDesk, positions_of
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import COOPERATIVE, LOST, Function, Operation, Outcome

FIND_TIMER, HEARTBEAT_TIMER, REJOIN_TIMER = ("find",), ("heartbeat",), ("rejoin",)
UNKNOWN = -1
JOIN_SLACK_MS = 5_000
"""JoinGroup is answered at the end of the rebalance, so the wait is the rebalance timeout plus this time, as
in Kafka's consumer."""
GONE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Errors after which the coordinator must be found again."""
NO_MEMBER = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
FATAL = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    }
)


class Stage(StrEnum):
    """The stages of membership."""

    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


def error_of(answer: Any) -> ErrorCode:
    """The error of a response; a missing response is a network error."""
    return ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error


@define
class GroupMember:
    """The membership of one consumer."""

    # Requests, timers and trace rows.
    desk: ConsumerDesk
    # Called after a change.
    wake: Callable[[], None]
    # Called with the new assignment.
    assigned: Callable[[tuple[TopicPartition, ...]], None]
    # The coordinator; -1 while it is not known.
    node: int = -1
    # Whether the coordinator is being looked for.
    finding: bool = False
    # The stage of membership.
    stage: Stage = Stage.OUT
    # Whether the member must join again.
    rejoin: bool = True
    # The topics of its last JoinGroup, or of those that it assigned itself.
    subscribed: tuple[str, ...] = ()
    # The member id; "" before the first.
    member_id: str = ""
    # The generation.
    generation: int = kafka.NO_GENERATION
    # The partitions in the previous generation.
    owned: tuple[TopicPartition, ...] = ()
    # What a cooperative member named as its own in its last JoinGroup: nobody else has got it since.
    claimed: tuple[TopicPartition, ...] = ()
    # The generation in which its consumer has its partitions; NO_GENERATION while it has none.
    held: int = kafka.NO_GENERATION
    # How many partitions each topic had when this member divided them as the group's leader, or UNKNOWN;
    # empty if it is not the leader.
    divided: dict[str, int] = field(factory=dict)
    # The operation of its last JoinGroup.
    last_join: int = -1
    # Why it can never join; NONE while it can.
    failed: ErrorCode = NO_ERROR

    @property
    def known_as(self) -> str:
        """The member's name in the trace: for a static member its instance, under any id."""
        return self.desk.identity.instance_id or self.member_id

    @property
    def must_join(self) -> bool:
        """Whether the next poll joins: also if the application has subscribed to other topics since."""
        return self.rejoin or self.subscribed != self.desk.identity.topics

    @property
    def cooperative(self) -> bool:
        """KIP-429: whether it keeps its partitions while its group rebalances, as all of its assignors allow
        that."""
        options = self.desk.options
        names = {options.assignor, options.second_assignor or options.assignor}
        return names == {COOPERATIVE_STICKY} and not self.desk.identity.standalone

    # ---- finding the coordinator

    def find(self) -> None:
        """Find the coordinator, unless it is known or being looked for."""
        if self.node >= 0 or self.finding:
            return
        self.finding = True
        group = self.desk.identity.group
        self.desk.ask(
            self.desk.whom_to_ask(),
            lambda number: kafka.FindCoordinatorRequest(correlation_id=number, group_id=group),
            self._found,
        )

    def _found(self, answer: Any) -> None:
        if error_of(answer) is NO_ERROR:
            self.finding, self.node = False, answer.node
            self.wake()
        else:
            self.desk.set_timer(FIND_TIMER, self.desk.options.retry_backoff_ms)

    def on_find_timer(self) -> None:
        """Ask again."""
        self.finding = False
        self.find()

    def lost(self) -> None:
        """The broker is no longer the coordinator."""
        self.node = -1
        self.find()

    # ---- joining

    def join(self) -> None:
        """Send JoinGroup."""
        identity, options = self.desk.identity, self.desk.options
        names = dict.fromkeys((options.assignor, options.second_assignor or options.assignor))
        protocols = tuple((name, self._subscription(name)) for name in names)
        self.stage, self.subscribed, self.rejoin = Stage.JOINING, identity.topics, True
        self.desk.cancel_timer(HEARTBEAT_TIMER)
        how, self.claimed = (COOPERATIVE, self.owned) if self.cooperative else (None, ())
        begun = self.desk.begin(Function.JOIN, member=self.known_as, argument=how)
        self.last_join = begun.op_id

        def request(number: int) -> kafka.JoinGroupRequest:
            return kafka.JoinGroupRequest(
                correlation_id=number,
                group_id=identity.group,
                client_id=identity.client_id,
                session_timeout_ms=options.session_timeout_ms,
                rebalance_timeout_ms=options.max_poll_interval_ms,
                member_id=self.member_id,
                group_instance_id=identity.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=protocols,
            )

        self.desk.ask(
            self.node,
            request,
            partial(self._joined, begun, self.node),
            options.max_poll_interval_ms + JOIN_SLACK_MS,
        )

    def _of_the_past(self, begun: Operation, error: ErrorCode) -> bool:
        """Whether that join was of the process that it was before it started over: such an answer says
        nothing to this one."""
        if begun.op_id != self.last_join:
            self.desk.end(begun, Outcome.FAIL, error)
        return begun.op_id != self.last_join

    def _subscription(self, name: str) -> bytes:
        """For this assignor. An eager member has nothing left that it would have to give up first."""
        owned = () if name == COOPERATIVE_STICKY and not self.cooperative else self.owned
        return encode_subscription(Subscription(topics=self.desk.identity.topics, owned=owned))

    def _joined(self, begun: Operation, node: int, answer: Any) -> None:
        error = error_of(answer)
        if self._of_the_past(begun, error):
            return
        if error is not NO_ERROR:
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            self._not_joined(begun, error)
            return
        if answer.generation_id > self.generation + 1:
            self.lose()  # in a generation without it others may have had its partitions
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.stage = Stage.SYNCING
        assignments: tuple[tuple[str, bytes], ...] = ()
        self.divided = {}
        if answer.members:
            assignments = self._assign(answer.protocol_name, answer.members)
            if answer.skip_assignment:
                assignments = ()  # KIP-814: the group keeps what it has; its leader watches the topics
        identity, generation = self.desk.identity, answer.generation_id

        def request(number: int) -> kafka.SyncGroupRequest:
            return kafka.SyncGroupRequest(
                correlation_id=number,
                group_id=identity.group,
                generation_id=generation,
                member_id=answer.member_id,
                group_instance_id=identity.instance_id,
                assignments=assignments,
            )

        timeout_ms = self.desk.options.max_poll_interval_ms + JOIN_SLACK_MS
        kept = len(answer.members) if answer.skip_assignment else 0
        self.desk.ask(node, request, partial(self._synced, begun, node, generation, kept), timeout_ms)

    def _assign(self, name: str, members: tuple[tuple[str, bytes], ...]) -> tuple[tuple[str, bytes], ...]:
        """The leader computes the assignments."""
        on_answer = {member: decode_subscription(data) for member, data in members}
        subscriptions = {member: one for member, one in on_answer.items() if one is not None}
        topics = tuple(sorted({topic for one in subscriptions.values() for topic in one.topics}))
        self.divided = self.desk.partitions(topics)
        shares = ASSIGNORS[name](subscriptions, self.divided)
        if name == COOPERATIVE_STICKY:
            shares = self.free_partitions(subscriptions, shares)
        return tuple((member, encode_assignment(keys)) for member, keys in shares.items())

    def free_partitions(self, members: Subscriptions, shares: Assignment) -> Assignment:
        """Protection KAFKA-15170: a partition that another member has goes to nobody yet (KIP-429): that
        member gives it up first, and joins again.

        Args:
            members: by member id.
            shares: of the assignor.

        Returns:
            the shares without such partitions.
        """
        return given_up(members, shares)

    def _synced(self, begun: Operation, node: int, generation: int, kept: int, answer: Any) -> None:
        """kept: members of a group that keeps what it has, to its leader that is back. Topics may have grown
        while it was away, and what others have it does not know, so that it asks with the next metadata."""
        error = error_of(answer)
        if self._of_the_past(begun, error):
            return
        if error is NO_ERROR and generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION  # membership ended meanwhile
        partitions = None if error is not NO_ERROR else decode_assignment(answer.assignment)
        if partitions is None:
            self._not_joined(begun, error)
            return
        self.stage, self.rejoin = Stage.STABLE, False
        if kept:
            its = Counter(key.topic for key in partitions)
            self.divided = {topic: its[topic] if kept == 1 else UNKNOWN for topic in self.divided}
        if not self.cooperative:
            self.hold(partitions)
        self.desk.end(
            begun,
            Outcome.OK,
            member=self.known_as,
            generation=self.generation,
            node=node,
            leader_epoch=answer.coordinator_epoch,
            positions=positions_of(dict.fromkeys(partitions, kafka.NO_OFFSET)),
        )
        self.desk.set_timer(HEARTBEAT_TIMER, self.desk.options.heartbeat_interval_ms)
        self.assigned(partitions)
        self.wake()

    def hold(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Its consumer has these partitions from now on."""
        given_up = tuple(key for key in self.claimed if key not in partitions)
        self.owned, self.held = partitions, self.generation
        self.rejoin = self.rejoin or self.must_join_again(given_up)

    def must_join_again(self, given_up: tuple[TopicPartition, ...]) -> bool:
        """Protection P5-REJOIN: a member that has given up what it claimed joins again at once, also if it
        lost that while it was joining: only then is it assigned to another one."""
        return bool(given_up)

    def lose(self) -> None:
        """Protection KAFKA-12983: a member that is none any more, or of which a generation knows nothing, has
        lost its partitions: others may have had them meanwhile."""
        if self.cooperative and self.held >= 0:
            self.owned = ()
            row = self.desk.begin(Function.ASSIGN, argument=LOST, member=self.known_as)
            self.desk.end(row, Outcome.OK)
        self.held = kafka.NO_GENERATION

    def _not_joined(self, begun: Operation, error: ErrorCode) -> None:
        self.desk.end(begun, Outcome.FAIL, error)
        self.stage = Stage.OUT
        self.refused(error)
        if self.failed is NO_ERROR:
            at_once = error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
            self.desk.set_timer(REJOIN_TIMER, 0 if at_once else self.desk.options.retry_backoff_ms)
            self.stage = Stage.JOINING  # until that timer fires

    def on_rejoin_timer(self) -> None:
        """Try again."""
        self.stage = Stage.OUT
        self.wake()

    def refused(self, error: ErrorCode) -> None:
        """The effect of an error on the coordinator and the membership."""
        if error in GONE:
            self.lost()
        elif error in NO_MEMBER:
            self.give_up_membership()
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin = True
        elif error in FATAL:
            self.failed = error

    def start_over(self) -> None:
        """Restart as a new process."""
        self.failed, self.stage, self.owned, self.last_join = NO_ERROR, Stage.OUT, (), -1
        self.give_up_membership()

    def assigned_alone(self, counts: dict[str, int]) -> None:
        """The consumer has assigned itself the partitions, so many of each topic: it is no member."""
        self.stage, self.rejoin, self.divided = Stage.STABLE, False, counts
        self.subscribed = self.desk.identity.topics

    def give_up_membership(self) -> None:
        """Membership has ended: join as a new member."""
        self.lose()
        self.member_id, self.generation, self.rejoin = "", kafka.NO_GENERATION, True
        self.divided = {}
        if self.stage is Stage.STABLE:
            self.stage = Stage.OUT
            self.desk.cancel_timer(HEARTBEAT_TIMER)

    def metadata_came(self) -> None:
        """A leader whose topics have grown asks for a rebalance, as Kafka's does."""
        if self.divided and self.divided != self.desk.partitions(tuple(self.divided)):
            self.rejoin = True
            self.wake()

    # ---- heartbeats

    def heartbeat(self) -> None:
        """Send a heartbeat, and again later."""
        if self.stage is not Stage.STABLE:
            return
        self.desk.set_timer(HEARTBEAT_TIMER, self.desk.options.heartbeat_interval_ms)
        if self.node < 0:
            self.find()
            return
        identity, member, generation = self.desk.identity, self.member_id, self.generation

        def request(number: int) -> kafka.HeartbeatRequest:
            return kafka.HeartbeatRequest(
                correlation_id=number,
                group_id=identity.group,
                generation_id=generation,
                member_id=member,
                group_instance_id=identity.instance_id,
            )

        def on_answer(answer: Any) -> None:
            if (member, generation) == (self.member_id, self.generation):
                self.refused(error_of(answer))
                self.wake()

        self.desk.ask(self.node, request, on_answer)

    def leave(self) -> None:
        """Leave the group without waiting for the response. A static member will come back and sends nothing
        (KIP-345)."""
        identity, member, node = self.desk.identity, self.member_id, self.node
        if member and node >= 0 and identity.instance_id is None:
            begun = self.desk.begin(Function.LEAVE, member=member)

            def on_answer(answer: Any) -> None:
                error = error_of(answer)
                heard = Outcome.OK if error is NO_ERROR else Outcome.FAIL
                self.desk.end(begun, Outcome.UNKNOWN if answer is None else heard, error, node=node)

            self.desk.ask(
                node,
                lambda number: kafka.LeaveGroupRequest(
                    correlation_id=number, group_id=identity.group, member_id=member, group_instance_id=None
                ),
                on_answer,
            )
        self.give_up_membership()
