"""An operator's requests about groups: members, committed offsets, and new offsets for an empty group.

Owns the brokers to ask, and the retries. Must not know sockets: `Asking` is a core like any other, for one
round of requests to given brokers.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from attrs import define, field, frozen

from fencepost.impl.core.core_interface import Effect, Input, MessageArrived, Send, Started
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.consumer_protocol import decode_assignment
from fencepost.impl.messages.group_api import (
    NO_GENERATION,
    CommittedOffset,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.errors import EnvironmentError_, FencepostError, unknown_name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Make = Callable[[int], kafka.Message]
"""Makes a request with this correlation id."""
Ask = Callable[[list[tuple[int, Make]]], Awaitable[list[kafka.Message | None]]]
"""Sends requests to brokers and waits for the responses; None for one that did not come in time."""
Pause = Callable[[], Awaitable[None]]
OfGroup = TypeVar("OfGroup", bound=DescribeGroupResponse | OffsetCommitResponse | OffsetFetchResponse)
"""A response of a group's coordinator."""
TURNS = 40
"""Rounds of a request that is answered "not yet", each after a pause. Reason: this is far longer than an
election."""


@define
class Asking:
    """A core that sends each broker its request at the start."""

    questions: list[tuple[int, Make]]
    heard: Callable[[], None] = lambda: None
    # By correlation id.
    answers: dict[int, kafka.Message] = field(factory=dict)

    def step(self, input: Input, now: int) -> list[Effect]:
        """Send everything at the start; then collect the responses.

        Args:
            input: the input.
            now: host time in nanoseconds.

        Returns:
            the effects.
        """
        if isinstance(input, Started):
            return [Send(node, make(number), (number,)) for number, (node, make) in enumerate(self.questions)]
        if isinstance(input, MessageArrived):
            self.answers[input.message.correlation_id] = input.message
            self.heard()
        return []

    @property
    def complete(self) -> bool:
        """Whether all brokers have answered."""
        return len(self.answers) == len(self.questions)


@frozen(kw_only=True)
class GroupListing:
    """A group and its coordinator."""

    group: str
    protocol_type: str
    state: str
    coordinator: int


@frozen(kw_only=True)
class GroupPartition:
    """A partition that a group has committed or consumes."""

    topic: str
    partition: int
    # -1 if not known.
    committed: int
    end: int
    # "" if no member consumes it.
    member: str

    @property
    def lag(self) -> int:
        """Records that are not committed yet; -1 if that is not known."""
        return self.end - self.committed if self.committed >= 0 and self.end >= 0 else -1


@frozen(kw_only=True)
class GroupDetails:
    """The description of a group."""

    # The group.
    group: str
    # Its state, in Kafka's names.
    state: str
    # The broker that coordinates it.
    coordinator: int
    # The assignor; "" if there is none.
    protocol: str
    # The current generation.
    generation: int
    # The member ids.
    members: tuple[str, ...]
    # The partitions that it has committed or consumes.
    partitions: tuple[GroupPartition, ...]


@define
class GroupAdmin:
    """Requests about groups."""

    # Ids to ask.
    brokers: tuple[int, ...]
    ask: Ask
    pause: Pause

    async def list_groups(self) -> list[GroupListing]:
        """All groups of the cluster, by name."""
        answers = await self.ask([(broker, _list_groups) for broker in self.brokers])
        found = [
            GroupListing(group=group, protocol_type=kind, state=state, coordinator=broker)
            for broker, answer in zip(self.brokers, answers, strict=True)
            if isinstance(answer, ListGroupsResponse)
            for group, kind, state in answer.groups
        ]
        if all(answer is None for answer in answers):
            raise EnvironmentError_(expected="a broker that answers", seen="none", where="the cluster")
        return sorted(found, key=lambda listing: listing.group)

    async def coordinator(self, group: str) -> int:
        """The current coordinator of a group. Raises EnvironmentError_ if there is none."""
        seen = "no answer"
        for turn in range(TURNS):
            broker = self.brokers[turn % len(self.brokers)]
            (answer,) = await self.ask(
                [(broker, lambda number: FindCoordinatorRequest(correlation_id=number, group_id=group))]
            )
            seen = "no answer"
            if isinstance(answer, FindCoordinatorResponse):
                if answer.error is NO_ERROR:
                    return answer.node
                seen = str(answer.error)
            await self.pause()
        raise EnvironmentError_(
            expected="a coordinator",
            seen=seen,
            where=f"group {group}",
            hint="consumer groups need the topic __consumer_offsets: `fencepost cluster up` lets it be "
            "created",
        )

    async def _of_group(self, group: str, make: Make, kind: type[OfGroup]) -> tuple[int, OfGroup]:
        """Ask the coordinator, until a broker answers as the coordinator. kind: the type of the response."""
        seen = "no answer"
        for _ in range(TURNS):
            node = await self.coordinator(group)
            (answer,) = await self.ask([(node, make)])
            seen = str(ErrorCode.NETWORK_EXCEPTION)
            if isinstance(answer, kind):
                if answer.error not in _NOT_YET:
                    return node, answer
                seen = str(answer.error)
            await self.pause()
        raise EnvironmentError_(expected="an answer of the coordinator", seen=seen, where=f"group {group}")

    async def describe(self, group: str) -> GroupDetails:
        """State, members, and for each partition the committed offset and the log end. Raises FencepostError
        for an unknown group."""
        node, description = await self._of_group(
            group,
            lambda number: DescribeGroupRequest(correlation_id=number, group_id=group),
            DescribeGroupResponse,
        )
        if description.state == "Dead":
            groups = [listing.group for listing in await self.list_groups()]
            raise FencepostError(
                expected=f"one of the groups {', '.join(groups)}" if groups else "a group",
                seen=unknown_name(group, groups) if groups else f"{group}, and no group at all",
                where="the cluster",
            )
        committed = await self.committed(group)
        owners = {
            key: member.member_id
            for member in description.members
            for key in decode_assignment(member.assignment) or ()
        }
        keys = sorted({*committed, *owners})
        ends = await self.ends(keys, kafka.LATEST)
        return GroupDetails(
            group=group,
            state=description.state,
            coordinator=node,
            protocol=description.protocol_name,
            generation=description.generation_id,
            members=tuple(member.member_id for member in description.members),
            partitions=tuple(
                GroupPartition(
                    topic=key.topic,
                    partition=key.partition,
                    committed=committed.get(key, -1),
                    end=ends.get(key, -1),
                    member=owners.get(key, ""),
                )
                for key in keys
            ),
        )

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group; empty for an unknown one."""
        _, answer = await self._of_group(
            group,
            lambda number: OffsetFetchRequest(correlation_id=number, group_id=group),
            OffsetFetchResponse,
        )
        return {each.partition: each.offset for each in answer.offsets}

    # ---- logs

    async def partitions(self, topic: str) -> dict[TopicPartition, int]:
        """The partitions of a topic with their leaders."""
        for turn in range(TURNS):
            broker = self.brokers[turn % len(self.brokers)]
            (answer,) = await self.ask(
                [(broker, lambda number: kafka.MetadataRequest(correlation_id=number))]
            )
            if isinstance(answer, kafka.MetadataResponse):
                return {
                    entry.partition: entry.leader
                    for entry in answer.partitions
                    if entry.partition.topic == topic
                }
        raise EnvironmentError_(expected="a broker that answers", seen="none", where="the cluster")

    async def ends(self, keys: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The ends of logs, if their leaders answer.

        Args:
            keys: the partitions.
            timestamp: LATEST for the end, EARLIEST for the start.

        Returns:
            the offset of each answered partition.
        """
        leaders: dict[TopicPartition, int] = {}
        for topic in sorted({key.topic for key in keys}):
            leaders |= await self.partitions(topic)
        led = [key for key in keys if leaders.get(key, -1) >= 0]

        def question(key: TopicPartition) -> Make:
            return lambda number: kafka.ListOffsetsRequest(
                correlation_id=number, partition=key, timestamp=timestamp
            )

        answers = await self.ask([(leaders[key], question(key)) for key in led])
        return {
            key: answer.offset
            for key, answer in zip(led, answers, strict=True)
            if isinstance(answer, kafka.ListOffsetsResponse) and answer.error is NO_ERROR
        }

    # ---- new offsets

    async def commit(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        """Commit these offsets for a group without members. Raises FencepostError if it has members."""
        _, answer = await self._of_group(
            group,
            lambda number: OffsetCommitRequest(
                correlation_id=number,
                group_id=group,
                generation_id=NO_GENERATION,
                member_id="",
                group_instance_id=None,
                offsets=tuple(
                    CommittedOffset(partition=key, offset=offset) for key, offset in sorted(offsets.items())
                ),
            ),
            OffsetCommitResponse,
        )
        error = answer.error
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            raise FencepostError(
                expected="a group without members",
                seen="a group with members, which would overwrite the offsets",
                where=f"group {group}",
                hint="end its consumers first, and wait until their sessions are over",
            )
        if error is not NO_ERROR:
            raise EnvironmentError_(
                expected="offsets that are committed", seen=str(error), where=f"group {group}"
            )


_NOT_YET = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def _list_groups(number: int) -> ListGroupsRequest:
    return ListGroupsRequest(correlation_id=number)
