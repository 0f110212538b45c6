"""Three brokers, one offsets partition, and members by hand: each request is a call, its answer a value."""

from typing import Any, Self

from impl_counterparts import Asked
from impl_lab import Lab

from fencepost.impl.broker.broker import Broker
from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import GroupOptions, TopicOptions

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SESSION_MS, REBALANCE_MS = 3_000, 5_000
BROKERS = (1, 2)


class GroupLab(Lab):
    """Broker 1 leads __consumer_offsets-0 in epoch 0; broker 2 follows."""

    def __init__(
        self, *, topic: TopicOptions | None = None, groups: dict[str, Any] | None = None, **options: Any
    ) -> None:
        options = {"replica_fetch_wait_max_ms": 50} | options
        super().__init__(
            2,
            topic=topic or TopicOptions(name=OFFSETS_TOPIC, cleanup_policy="compact", replication_factor=2),
            groups=GroupOptions(**({"initial_rebalance_delay_ms": 0} | (groups or {}))),
            **options,
        )
        self.elect(1, 0)
        self.rest()

    @classmethod
    def moved(cls, brokers: int, **options: Any) -> "GroupLab":
        """As many brokers, with a controller of their own, and no topic yet."""
        lab = cls.__new__(cls)
        Lab.__init__(lab, brokers, scripted=False, **options)
        return lab.settle()

    def elect(
        self, leader: int, epoch: int, to: tuple[int, ...] | None = None, isr: tuple[int, ...] = BROKERS
    ) -> Self:
        """Another leader of the offsets partition, of which these brokers hear."""
        self.lead(leader, epoch, isr=isr, replicas=BROKERS, live=BROKERS, key=OFFSETS, to=to)
        return self

    def groups(self, node: int) -> dict[str, Group]:
        """What a broker has in memory."""
        core = self.core(node)
        assert isinstance(core, Broker)
        return core.groups.table.groups

    # ---- requests

    def join(
        self,
        node: int,
        member: str = "",
        *,
        instance: str | None = None,
        subscription: bytes = b"t",
        client: str = "c",
        group: str = "g",
        protocols: tuple[str, ...] = ("range",),
        timeouts_ms: tuple[int, int] = (SESSION_MS, REBALANCE_MS),
        may_skip_assignment: bool = True,
    ) -> Asked:
        """JoinGroup; a member without an id gets one first. timeouts_ms: of the session and of a
        rebalance; may_skip_assignment: whether it is of version 9."""
        request = kafka.JoinGroupRequest(
            correlation_id=self.number(),
            group_id=group,
            client_id=client,
            session_timeout_ms=timeouts_ms[0],
            rebalance_timeout_ms=timeouts_ms[1],
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=tuple((name, subscription) for name in protocols),
            may_skip_assignment=may_skip_assignment,
        )
        return self.send(node, request)

    def enter(self, node: int, client: str = "c", group: str = "g") -> Asked:
        """Both steps of a first join."""
        told = self.join(node, client=client, group=group).answer
        return self.join(node, told.member_id, client=client, group=group)

    def sync(
        self,
        node: int,
        joined: Any,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        group: str = "g",
    ) -> Asked:
        """SyncGroup after an answer to JoinGroup."""
        request = kafka.SyncGroupRequest(
            correlation_id=self.number(),
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            assignments=tuple((assignments or {}).items()),
        )
        return self.send(node, request)

    def heartbeat(self, node: int, joined: Any, *, instance: str | None = None) -> Any:
        """The error that a heartbeat is answered with."""
        request = kafka.HeartbeatRequest(
            correlation_id=self.number(),
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
        )
        return self.send(node, request).answer.error

    def leave(self, node: int, joined: Any = None, *, instance: str | None = None) -> Any:
        """The error that LeaveGroup is answered with. Without a member: an operator removes an instance."""
        request = kafka.LeaveGroupRequest(
            correlation_id=self.number(),
            group_id="g",
            member_id=joined.member_id if joined else "",
            group_instance_id=instance,
        )
        return self.send(node, request).answer.error

    def commit(
        self, node: int, offset: int, joined: Any = None, *, key: TopicPartition = T0, group: str = "g"
    ) -> Asked:
        """OffsetCommit of one partition; without a member: of somebody who assigns himself."""
        request = kafka.OffsetCommitRequest(
            correlation_id=self.number(),
            group_id=group,
            generation_id=joined.generation_id if joined else kafka.NO_GENERATION,
            member_id=joined.member_id if joined else "",
            group_instance_id=None,
            offsets=(kafka.CommittedOffset(partition=key, offset=offset),),
        )
        return self.send(node, request)

    def commit_and_rest(self, node: int, offset: int, joined: Any = None, **more: Any) -> None:
        """`commit`, and let everything arrive."""
        self.commit(node, offset, joined, **more)
        self.rest()

    def committed(self, node: int, key: TopicPartition = T0, group: str = "g") -> Any:
        """What OffsetFetch reads: the offset, or the error."""
        request = kafka.OffsetFetchRequest(correlation_id=self.number(), group_id=group, partitions=(key,))
        answer = self.send(node, request).answer
        return answer.offsets[0].offset if answer.offsets else answer.error

    def stable(self, node: int, *clients: str) -> list[Any]:
        """A stable group of one member per client; returns the answers to JoinGroup of the last generation,
        the leader's first."""
        ids = [self.join(node, client=client).answer.member_id for client in clients]
        joined = [self.join(node, member, client=client) for member, client in zip(ids, clients, strict=True)]
        while any(each.answer is None for each in joined):
            joined = [
                self.join(node, member, client=client) if each.answer else each
                for member, client, each in zip(ids, clients, joined, strict=True)
            ]
        generation = max(each.answer.generation_id for each in joined)
        joined = [
            self.join(node, member, client=client) if each.answer.generation_id < generation else each
            for member, client, each in zip(ids, clients, joined, strict=True)
        ]
        answers = [each.answer for each in joined]
        for answer in answers:
            self.sync(node, answer, {member: member.encode() for member in ids} if answer.members else None)
        self.rest()
        return answers

    def phases(self, node: int | None = None) -> list[str]:
        """The states that the group came into, in order."""
        return [event.cause for event in self.recorded(Name.GROUP_PHASE, node)]
