"""A consumer as a member of its group: finding the coordinator, joining, heartbeats, leaving (P5).

Owns member id, generation and assignment as the coordinator told them. Must not know positions or records.
Membership is given up as soon as the coordinator says that it is over; to join again is the consumer's
decision, which it makes when it polls.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from attrs import define

from fencepost.impl.client.consumer.assignors import ASSIGNORS
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
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.outcomes import NO_ERROR, ErrorCode

FIND_TIMER, HEARTBEAT_TIMER, REJOIN_TIMER = ("find",), ("heartbeat",), ("rejoin",)
JOIN_SLACK_MS = 5_000
"""JoinGroup is answered when the rebalance ends: so much is waited on top of its time-out, as Kafka's
consumer does."""
GONE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Look for the coordinator again."""
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
    """Of membership."""

    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


def error_of(answer: Any) -> ErrorCode:
    """What an answer says; none at all is the network's error."""
    return ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error


@define
class GroupMember:
    """wake: something has changed. node: the coordinator, -1 while it is not known. rejoin: the member has to
    join again. owned: what it had in the generation before. failed: why it can never join, NONE as long as it
    can. synced_as: the id under which it got an assignment last, so that this id is durable; fenced_as_known:
    under such an id it was fenced, which only another process with its instance may bring about."""

    desk: ConsumerDesk
    wake: Callable[[], None]
    assigned: Callable[[tuple[TopicPartition, ...]], None]
    node: int = -1
    finding: bool = False
    stage: Stage = Stage.OUT
    rejoin: bool = True
    member_id: str = ""
    generation: int = kafka.NO_GENERATION
    owned: tuple[TopicPartition, ...] = ()
    failed: ErrorCode = NO_ERROR
    synced_as: str = ""
    fenced_as_known: bool = False

    @property
    def known_as(self) -> str:
        """The member's name in the trace: a static member is its instance, whatever id it goes by."""
        return self.desk.identity.instance_id or self.member_id

    # ---- where it is

    def find(self) -> None:
        """Look for the coordinator, unless it is known or looked for."""
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
        """Whoever it was, it is the coordinator no more."""
        self.node = -1
        self.find()

    # ---- joining

    def join(self) -> None:
        """Send JoinGroup."""
        identity, options = self.desk.identity, self.desk.options
        subscription = Subscription(topics=identity.topics, owned=self.owned)
        self.stage = Stage.JOINING
        self.desk.cancel_timer(HEARTBEAT_TIMER)
        begun = self.desk.begin(Function.JOIN, member=self.known_as)

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
                protocols=((options.assignor, encode_subscription(subscription)),),
            )

        self.desk.ask(
            self.node,
            request,
            partial(self._joined, begun, self.node),
            options.max_poll_interval_ms + JOIN_SLACK_MS,
        )

    def _joined(self, begun: Operation, node: int, answer: Any) -> None:
        error = error_of(answer)
        if error is not NO_ERROR:
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            self._not_joined(begun, error)
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.stage = Stage.SYNCING
        assignments: tuple[tuple[str, bytes], ...] = ()
        if answer.members:
            assignments = self._assign(answer.protocol_name, answer.members)
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
        self.desk.ask(node, request, partial(self._synced, begun, node, generation), timeout_ms)

    def _assign(self, name: str, members: tuple[tuple[str, bytes], ...]) -> tuple[tuple[str, bytes], ...]:
        """The leader's work."""
        told = {member: decode_subscription(data) for member, data in members}
        subscriptions = {member: one for member, one in told.items() if one is not None}
        topics = tuple(sorted({topic for one in subscriptions.values() for topic in one.topics}))
        shares = ASSIGNORS[name](subscriptions, self.desk.partitions(topics))
        return tuple((member, encode_assignment(keys)) for member, keys in shares.items())

    def _synced(self, begun: Operation, node: int, generation: int, answer: Any) -> None:
        error = error_of(answer)
        if error is NO_ERROR and generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION  # membership was given up meanwhile
        partitions = None if error is not NO_ERROR else decode_assignment(answer.assignment)
        if partitions is None:
            self._not_joined(begun, error)
            return
        self.stage, self.rejoin, self.owned = Stage.STABLE, False, partitions
        self.synced_as = self.member_id
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

    def _not_joined(self, begun: Operation, error: ErrorCode) -> None:
        self.desk.end(begun, Outcome.FAIL, error)
        self.stage = Stage.OUT
        self.refused(error)
        if self.failed is NO_ERROR:
            at_once = error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
            self.desk.set_timer(REJOIN_TIMER, 0 if at_once else self.desk.options.retry_backoff_ms)
            self.stage = Stage.JOINING  # until that timer

    def on_rejoin_timer(self) -> None:
        """Try again."""
        self.stage = Stage.OUT
        self.wake()

    def refused(self, error: ErrorCode) -> None:
        """What an error says about the coordinator and our membership."""
        if error in GONE:
            self.lost()
        elif error in NO_MEMBER:
            self.give_up_membership()
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin = True
        elif error in FATAL:
            fenced = error is ErrorCode.FENCED_INSTANCE_ID
            self.fenced_as_known = self.fenced_as_known or (fenced and self.member_id == self.synced_as)
            self.failed = error

    def start_over(self) -> None:
        """As a process that is started anew."""
        self.failed, self.stage, self.owned = NO_ERROR, Stage.OUT, ()
        self.give_up_membership()

    def give_up_membership(self) -> None:
        """The group goes on without us: join as somebody new."""
        self.member_id, self.generation, self.rejoin = "", kafka.NO_GENERATION, True
        if self.stage is Stage.STABLE:
            self.stage = Stage.OUT
            self.desk.cancel_timer(HEARTBEAT_TIMER)

    # ---- heartbeats

    def heartbeat(self) -> None:
        """I am here; and again later."""
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

        def told(answer: Any) -> None:
            if (member, generation) == (self.member_id, self.generation):
                self.refused(error_of(answer))
                self.wake()

        self.desk.ask(self.node, request, told)

    def leave(self) -> None:
        """Go, and say so; nobody waits for the answer. A static member will come back and does not say
        anything (KIP-345)."""
        identity, member = self.desk.identity, self.member_id
        if member and self.node >= 0 and identity.instance_id is None:
            self.desk.ask(
                self.node,
                lambda number: kafka.LeaveGroupRequest(
                    correlation_id=number,
                    group_id=identity.group,
                    member_id=member,
                    group_instance_id=None,
                ),
                lambda _: None,
            )
        self.give_up_membership()
