"""A consumer against a broker of a few lines: it answers at once whatever it is asked, as a test tells it
to."""

from typing import Any

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.fetch import ConsumedRecord
from fencepost.impl.client.consumer.requests import ConsumerIdentity
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import (
    CancelTimer,
    Complete,
    MessageArrived,
    Send,
    SetTimer,
    Started,
    TimerFired,
)
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages import group_api as groups
from fencepost.impl.messages.consumer_protocol import encode_assignment
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Operation
from fencepost.traces.plan import ConsumerOptions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MILLISECOND = 1_000_000
OK = ErrorCode.NONE


class Diary:
    """An application that writes down what it is told. polls: whether it polls again by itself."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.polls = True

    def got(self) -> list[tuple[str, int]]:
        """All records, in the order in which they came."""
        return [each for kind, records in self.entries if kind == "got" for each in records]

    def started(self, consumer: Consumer) -> None:
        consumer.poll()

    def polled(self, consumer: Consumer, records: list[ConsumedRecord]) -> None:
        if records:
            self.entries.append(("got", [(str(each.partition), each.record.offset) for each in records]))
        if self.polls:
            consumer.poll()

    def committed(self, consumer: Consumer, error: ErrorCode) -> None:
        self.entries.append(("committed", error))

    def woken(self, consumer: Consumer) -> None:
        self.entries.append("woken")

    def assigned(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        self.entries.append(("assigned", partitions))

    def revoked(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        self.entries.append(("revoked", partitions))

    def failed(self, consumer: Consumer, error: ErrorCode) -> None:
        self.entries.append(("failed", error))


class ConsumerLab:
    """logs: how many records each partition has. share: what is assigned, all if None. committed: what the
    coordinator knows. errors: the next answers to a kind of request, None for silence. asked: every request,
    in order. epoch, committed_epoch: of the leader and of committed offsets. late: answers that wait."""

    def __init__(self, coordinator: Any = None, silent: Any = None, **options: Any) -> None:
        options = {"commit": "none", "poll_timeout_ms": 100} | options
        self.diary = Diary()
        self.logs = {T0: 3, T1: 2}
        self.share: tuple[TopicPartition, ...] | None = None
        self.committed: dict[TopicPartition, int] = {}
        self.errors: dict[type, list[ErrorCode | None]] = {silent[0]: [None] * silent[1]} if silent else {}
        self.asked: list[Any] = []
        self.rows: list[Operation] = []
        self.late: dict[int, Any] = {}
        self.generation, self.skip_assignment, self.others = 0, False, 0
        self.epoch, self.committed_epoch = 0, -1
        self.now = 0
        self.timers: dict[Any, int] = {}
        more = {} if coordinator is None else {"coordinator_type": coordinator}
        self.consumer = Consumer(
            ConsumerIdentity(process=1, group="g", topics=("t",)),
            ConsumerOptions(**options),
            ClientMetadata((1, 2)),
            self.diary,
            **more,
        )
        self.effects(self.consumer.step(Started(), 0))
        self.advance(10)  # the id is told first

    def use(self, verb: Any) -> None:
        """The application does something of its own accord."""
        self.effects(self.consumer.use(verb, self.now))

    def effects(self, effects: list[Any]) -> None:
        """Carry out what the core asked for."""
        queue = list(effects)
        for _ in range(500):
            if not queue:
                return
            effect = queue.pop(0)
            if isinstance(effect, Send):
                self.asked.append(effect.message)
                answer = self.answer(effect.message)
                if answer is not None:
                    queue += self.consumer.step(MessageArrived(effect.target, answer), self.now)
            elif isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
            elif isinstance(effect, Complete):
                self.rows.append(effect.operation)
        raise AssertionError("the consumer never comes to rest")

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        end = self.now + milliseconds * MILLISECOND
        for _ in range(500):
            due = sorted((at, str(key), key) for key, at in self.timers.items() if at <= end)
            if not due:
                self.now = end
                return
            at, _, key = due[0]
            self.now = max(self.now, at)
            del self.timers[key]
            input = MessageArrived(1, self.late.pop(key[1])) if key[0] == "late" else TimerFired(key)
            self.effects(self.consumer.step(input, self.now))
        raise AssertionError("timers never end")

    def requests(self, kind: type) -> list[Any]:
        """Those of one kind."""
        return [message for message in self.asked if isinstance(message, kind)]

    # ---- the broker

    def answer(self, request: Any) -> Any:
        """What it says; a fetch that finds nothing is answered when its time is over."""
        waiting = self.errors.get(type(request), [])
        error = waiting.pop(0) if waiting else OK
        number = request.correlation_id
        if error is None:
            return None
        match request:
            case kafka.MetadataRequest():
                known = tuple(
                    kafka.PartitionMetadata(partition=key, leader=1, leader_epoch=self.epoch)
                    for key in self.logs
                )
                return kafka.MetadataResponse(correlation_id=number, partitions=known, live_brokers=(1, 2))
            case groups.FindCoordinatorRequest():
                return groups.FindCoordinatorResponse(correlation_id=number, error=error, node=2)
            case groups.JoinGroupRequest():
                return self.joined(request, error)
            case groups.SyncGroupRequest():
                share = tuple(self.logs) if self.share is None else self.share
                assignment = encode_assignment(share) if error is OK else b""
                return groups.SyncGroupResponse(correlation_id=number, error=error, assignment=assignment)
            case groups.HeartbeatRequest():
                return groups.HeartbeatResponse(correlation_id=number, error=error)
            case groups.LeaveGroupRequest():
                return groups.LeaveGroupResponse(correlation_id=number, error=error)
            case groups.OffsetCommitRequest():
                if error is OK:
                    self.committed.update({each.partition: each.offset for each in request.offsets})
                return groups.OffsetCommitResponse(correlation_id=number, error=error)
            case groups.OffsetFetchRequest():
                offsets = tuple(
                    groups.CommittedOffset(
                        partition=key, offset=self.committed.get(key, -1), leader_epoch=self.committed_epoch
                    )
                    for key in request.partitions
                )
                return groups.OffsetFetchResponse(correlation_id=number, error=error, offsets=offsets)
            case kafka.ListOffsetsRequest():
                offset = 0 if request.timestamp == kafka.EARLIEST else self.logs[request.partition]
                return kafka.ListOffsetsResponse(correlation_id=number, error=error, offset=offset)
            case kafka.FetchRequest():
                return self.fetched(request, error)
        raise AssertionError(request)

    def joined(self, request: groups.JoinGroupRequest, error: ErrorCode) -> Any:
        if error is OK and not request.member_id:
            error = ErrorCode.MEMBER_ID_REQUIRED
        if error is not OK:
            return groups.JoinGroupResponse(correlation_id=request.correlation_id, error=error, member_id="m")
        self.generation += 1
        return groups.JoinGroupResponse(
            correlation_id=request.correlation_id,
            error=OK,
            generation_id=self.generation,
            protocol_name=request.protocols[0][0],
            leader="m",
            member_id="m",
            members=tuple((f"m{other or ''}", request.protocols[0][1]) for other in range(self.others + 1)),
            skip_assignment=self.skip_assignment,
        )

    def fetched(self, request: kafka.FetchRequest, error: ErrorCode) -> Any:
        found = []
        for wanted in request.partitions:
            end = self.logs[wanted.partition]
            offsets = range(wanted.offset, end)
            if wanted.offset > end:
                found.append(
                    kafka.FetchedPartition(partition=wanted.partition, error=ErrorCode.OFFSET_OUT_OF_RANGE)
                )
                continue
            records = [Record(offset, 0, None, b"%d" % offset) for offset in offsets]
            data = encode_batch(records, base_offset=wanted.offset, leader_epoch=0) if records else b""
            found.append(
                kafka.FetchedPartition(
                    partition=wanted.partition,
                    error=error,
                    leader_epoch=0,
                    high_watermark=end,
                    log_start_offset=0,
                    records=data,
                )
            )
        answer = kafka.FetchResponse(correlation_id=request.correlation_id, partitions=tuple(found))
        if all(each.error is OK and not each.records for each in found):
            self.timers["late", request.correlation_id] = self.now + request.max_wait
            self.late[request.correlation_id] = answer
            return None
        return answer
