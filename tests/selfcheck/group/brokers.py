"""Two brokers and one offsets partition, moved by hand: what the group machine does to the implementation.

Owns the brokers, their mail, and a client's requests. Must not know the model. Nothing happens by itself: a
request is answered in its step, or when `replicate` lets the other broker fetch, or when a timer is fired by
name; both brokers hear of an election at once.
"""

from collections.abc import Callable
from typing import Any

from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.committed_offsets import EXPIRY_TIMER
from fencepost.impl.coordinator.consumer_group import Group
from fencepost.impl.coordinator.group_loading import LOAD_TIMER, UNLOAD_TIMER
from fencepost.impl.core import core_interface
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.broker_api import (
    FetchResponse,
    LeaderAndIsrRequest,
    PartitionState,
    UpdateMetadataRequest,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.fetcher import BACKOFF_TIMER, TIMEOUT_TIMER
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import ClusterOptions, DiskOptions, GroupOptions, TopicOptions

BROKERS = (1, 2)
CLIENT = 1_000
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
T0 = TopicPartition("t", 0)
GROUP = "g"
FETCHING = (TIMEOUT_TIMER, BACKOFF_TIMER)
MOST_DELIVERIES = 400
START, PATIENCE = 1_000_000_000, 10_000_000_000
"""Host time, which stops except where a follower's patience ends: only what is fired happens."""
OPTIONS = ClusterOptions(
    brokers=2,
    topics=(TopicOptions(name=OFFSETS_TOPIC, cleanup_policy="compact", replication_factor=2),),
    groups=GroupOptions(initial_rebalance_delay_ms=0),
)


class TwoBrokers:
    """cores: by id. mail: between brokers, oldest first. answers: to the client, by correlation id. due:
    loads and unloads that wait; late: those that wait for `late_tasks_run`; fetching: time-outs of followers'
    requests. epoch: of the last election."""

    def __init__(self, parts: Parts | None = None) -> None:
        self.cores: dict[int, Broker] = {}
        self.mail: list[tuple[int, int, Any]] = []
        self.answers: dict[int, Any] = {}
        self.due: list[tuple[int, core_interface.TimerKey]] = []
        self.late: list[tuple[int, core_interface.TimerKey]] = []
        self.fetching: dict[tuple[int, core_interface.TimerKey], None] = {}
        self.epoch, self.now = -1, START
        self._last = 0
        for node in BROKERS:
            disk = Disk(node=node, randomness=Randomness(node), options=DiskOptions(write_us=0, fsync_us=0))
            self.cores[node] = make_broker(node, OPTIONS, disk, parts or Parts(), START)
            self._step(node, core_interface.Started())
            self.cores[node].broker_context.broker_epoch = node
        self.elect(1)

    def group(self, node: int) -> Group | None:
        """What a broker has in memory."""
        return self.cores[node].groups.table.groups.get(GROUP)

    # ---- steps

    def _step(self, node: int, input: Any) -> None:
        self._take(node, self.cores[node].step(input, self.now))

    def _take(self, node: int, effects: list[core_interface.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, core_interface.Send) and effect.target in self.cores:
                self.mail.append((node, effect.target, effect.message))
            elif isinstance(effect, core_interface.Send):
                self.answers[effect.message.correlation_id] = effect.message
            elif isinstance(effect, core_interface.SetTimer) and effect.key[0] in (LOAD_TIMER, UNLOAD_TIMER):
                self.due.append((node, effect.key))
            elif isinstance(effect, core_interface.SetTimer) and effect.key[0] in FETCHING:
                self.fetching[node, effect.key] = None
            elif isinstance(effect, core_interface.CancelTimer):
                self.fetching.pop((node, effect.key), None)

    def replicate(self) -> None:
        """Everything between the brokers arrives, and what was due runs."""
        for _ in range(MOST_DELIVERIES):
            if self.due:
                node, key = self.due.pop(0)
                self._step(node, core_interface.TimerFired(key))
            elif self.mail:
                source, target, message = self.mail.pop(0)
                self._step(target, core_interface.MessageArrived(source, message))
            elif self.fetching and self._behind():
                node, key = next(iter(self.fetching))  # what it waits for was lost with the last election
                del self.fetching[node, key]
                self.now += PATIENCE
                self._step(node, core_interface.TimerFired(key))
            else:
                return
        raise AssertionError(f"the brokers never come to rest: {self.mail[:3]}")

    def copy(self) -> None:
        """What the leader has sent arrives, and the leader does not learn of it: more than is durable
        survives an election now."""
        for answer in [each for each in self.mail if isinstance(each[2], FetchResponse)]:
            self.mail.remove(answer)
            source, target, message = answer
            self._step(target, core_interface.MessageArrived(source, message))

    def log_end_offset(self, node: int) -> int:
        """Of the offsets partition, at this broker."""
        return self.cores[node].replicas.partitions[OFFSETS].log.log_end_offset

    def _behind(self) -> bool:
        """Whether the leader waits for its follower, or the follower has not cut what it wrote as a leader:
        elected so, it would bring that back."""
        replicas = [core.replicas.partitions[OFFSETS] for core in self.cores.values()]
        waits = any(each.is_leader and each.high_watermark < each.log.log_end_offset for each in replicas)
        return waits or len({self.log_end_offset(node) for node in BROKERS}) > 1

    def elect(self, leader: int, *, tasks_late: bool = False) -> None:
        """Another leader epoch, of which both hear at once; what was on its way is lost. tasks_late: its load
        and its unload do not run yet."""
        self.epoch += 1
        self.mail.clear()
        state = PartitionState(
            partition=OFFSETS,
            controller_epoch=1,
            leader=leader,
            leader_epoch=self.epoch,
            isr=BROKERS,
            zk_version=self.epoch,
            replicas=BROKERS,
        )
        for node in BROKERS:
            self._last += 1
            for kind in (UpdateMetadataRequest, LeaderAndIsrRequest):
                request = kind(
                    correlation_id=self._last,
                    controller_id=99,
                    controller_epoch=1,
                    broker_epoch=node,
                    partitions=(state,),
                    live_brokers=BROKERS,
                )
                self._step(node, core_interface.MessageArrived(99, request))
        if tasks_late:
            self.late, self.due = [*self.late, *self.due], []
        self.replicate()

    def late_tasks_run(self) -> None:
        """The loads and unloads that were held back have their turn."""
        late, self.late = self.late, []
        for node, key in late:
            self._step(node, core_interface.TimerFired(key))

    def retention_passes(self, node: int) -> None:
        """So much time that every committed offset is old, and a look for those that nobody needs."""
        self.now += (OPTIONS.groups.offsets_retention_ms + 1) * MILLISECOND
        self._step(node, core_interface.TimerFired(EXPIRY_TIMER))

    def fire(self, node: int, *key: str) -> None:
        """A timer of the coordinator ends.

        Args:
            node: the broker's number.
            key: the timer's name, in parts.
        """
        self._step(node, core_interface.TimerFired(key))

    # ---- a client

    def ask(self, node: int, make: Callable[[int], Any]) -> int:
        """Send a request.

        Args:
            node: the broker's number.
            make: makes the request from its number.

        Returns:
            The number under which `answers` will have the answer.
        """
        self._last += 1
        self._step(node, core_interface.MessageArrived(CLIENT, make(self._last)))
        return self._last

    def join(self, node: int, member: str, subscription: bytes) -> int:
        """JoinGroup. A member without an id gets one first.

        Args:
            node: the broker's number.
            member: the member's name in this machine.
            subscription: the bytes of the member's subscription.

        Returns:
            The request's number.
        """

        def request(number: int) -> kafka.JoinGroupRequest:
            return kafka.JoinGroupRequest(
                correlation_id=number,
                group_id=GROUP,
                client_id="m",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=member,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=(("range", subscription),),
            )

        number = self.ask(node, request)
        answer = self.answers.get(number)
        if answer is not None and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            member = answer.member_id
            number = self.ask(node, request)
        return number

    def sync(self, node: int, member: str, generation: int, assignments: dict[str, bytes]) -> int:
        """SyncGroup.

        Args:
            node: the broker's number.
            member: the member's name in this machine.
            generation: as the member knows it.
            assignments: bytes by member; a member that does not lead sends none.

        Returns:
            The request's number.
        """
        return self.ask(
            node,
            lambda number: kafka.SyncGroupRequest(
                correlation_id=number,
                group_id=GROUP,
                generation_id=generation,
                member_id=member,
                group_instance_id=None,
                assignments=tuple(assignments.items()),
            ),
        )

    def heartbeat(self, node: int, member: str, generation: int) -> ErrorCode:
        """What Heartbeat is answered with.

        Args:
            node: the broker's number.
            member: the member's name in this machine.
            generation: as the member knows it.
        """
        number = self.ask(
            node,
            lambda number: kafka.HeartbeatRequest(
                correlation_id=number,
                group_id=GROUP,
                generation_id=generation,
                member_id=member,
                group_instance_id=None,
            ),
        )
        error: ErrorCode = self.answers[number].error
        return error

    def leave(self, node: int, member: str) -> ErrorCode:
        """What LeaveGroup is answered with.

        Args:
            node: the broker's number.
            member: the member's name in this machine.
        """
        number = self.ask(
            node,
            lambda number: kafka.LeaveGroupRequest(
                correlation_id=number, group_id=GROUP, member_id=member, group_instance_id=None
            ),
        )
        error: ErrorCode = self.answers[number].error
        return error

    def commit(self, node: int, member: str, generation: int, offset: int) -> int:
        """OffsetCommit of t-0.

        Args:
            node: the broker's number.
            member: the member's name in this machine.
            generation: as the member knows it.
            offset: what to commit.

        Returns:
            The request's number.
        """
        return self.ask(
            node,
            lambda number: kafka.OffsetCommitRequest(
                correlation_id=number,
                group_id=GROUP,
                generation_id=generation,
                member_id=member,
                group_instance_id=None,
                offsets=(kafka.CommittedOffset(partition=T0, offset=offset),),
            ),
        )

    def committed(self, node: int) -> int | ErrorCode:
        """What OffsetFetch reads of t-0."""
        number = self.ask(
            node,
            lambda number: kafka.OffsetFetchRequest(correlation_id=number, group_id=GROUP, partitions=(T0,)),
        )
        answer = self.answers[number]
        read: int | ErrorCode = answer.offsets[0].offset if answer.offsets else answer.error
        return read
