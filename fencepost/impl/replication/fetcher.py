"""The follower's side of the data path: truncate until the logs agree, then fetch for ever (R1, R5, R6).

Owns one conversation per leader broker, with one request in flight, as Kafka's fetcher threads have. Each
partition is first `truncating`, then `fetching`; an error delays it, and one that is out of the leader's
range asks first where the leader's log starts. An answer counts only if the partition still follows the same
leader in the same epoch as when it was asked (KAFKA-7786).
"""

from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import SetTimer
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError
from fencepost.impl.log.producer.state import OutOfOrderSequenceError
from fencepost.impl.log.segmented_log import UnexpectedOffsetError
from fencepost.impl.log.values import runs_in_batch
from fencepost.impl.messages.broker_api import (
    EARLIEST,
    EpochQuery,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation
from fencepost.traces.events import Name
from fencepost.traces.outcomes import NO_ERROR, ErrorCode

TIMEOUT_TIMER, BACKOFF_TIMER = "fetch_timeout", "fetch_backoff"
ANSWERS: dict[type, type] = {
    FetchRequest: FetchResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochResponse,
}
Answer = FetchResponse | ListOffsetsResponse | OffsetsForLeaderEpochResponse
MAX_BYTES = 1_048_576
"""Of one partition in one fetch: replica.fetch.max.bytes."""


@define
class Following:
    """One partition that is fetched. out_of_range: the leader said so, and where its log starts is not known
    yet; beyond: it starts below the end of this one, which therefore ends beyond the leader's. asked_epoch:
    the epoch of the question in flight; delayed_until: host time before which it rests."""

    partition: Partition
    leader_epoch: int
    truncating: bool = True
    out_of_range: bool = False
    beyond: bool = False
    asked_epoch: int = -1
    delayed_until: int = 0


@define
class Conversation:
    """With one leader. in_flight: correlation id of the request that is not answered yet, 0 for none;
    awaited: what kind of answer it wants. deadline: host time by which it must be answered; watched: whether
    the timer that looks after it is set."""

    leader: int
    followings: dict[TopicPartition, Following] = field(factory=dict)
    in_flight: int = 0
    awaited: type = object
    deadline: int = 0
    watched: bool = False
    asked: dict[TopicPartition, int] = field(factory=dict)


@define
class ReplicaFetcher:
    """conversations: by leader broker id. max_wait: how long a leader may hold a fetch back, nanoseconds;
    patience: how long its answer may take."""

    broker_context: BrokerContext
    truncation: FollowerTruncation
    conversations: dict[int, Conversation] = field(factory=dict)
    max_wait: int = field(init=False)
    patience: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        options = self.broker_context.options
        self.max_wait = options.replica_fetch_wait_max_ms * MILLISECOND
        self.patience = self.max_wait + options.controller_request_timeout_ms * MILLISECOND

    # ---- what to fetch

    def follow(self, partition: Partition) -> None:
        """Begin to follow the partition's leader in its epoch."""
        self.stop(partition.key)
        conversation = self.conversations.setdefault(partition.leader, Conversation(partition.leader))
        conversation.followings[partition.key] = Following(partition, partition.leader_epoch)
        self._go_on(conversation)

    def stop(self, key: TopicPartition) -> None:
        """Stop fetching this partition; answers in flight for it are dropped."""
        for conversation in self.conversations.values():
            conversation.followings.pop(key, None)

    # ---- the conversation

    def _go_on(self, conversation: Conversation) -> None:
        if conversation.in_flight or not conversation.followings:
            return
        now = self.broker_context.now
        ready = [
            following for following in conversation.followings.values() if following.delayed_until <= now
        ]
        if not ready:
            earliest = min(following.delayed_until for following in conversation.followings.values())
            self.broker_context.set_timer(
                (BACKOFF_TIMER, conversation.leader), (earliest - now + MILLISECOND - 1) // MILLISECOND
            )
            return
        unsettled = [following for following in ready if following.truncating or following.out_of_range]
        for following in unsettled:
            if following.out_of_range:
                self._ask_start(conversation, following)
                return
        if queries := unsettled and self._questions(unsettled):
            self._ask(conversation, queries)
        else:
            self._fetch(conversation, ready)

    def _questions(self, truncating: list[Following]) -> list[EpochQuery]:
        queries: list[EpochQuery] = []
        for following in truncating:
            following.asked_epoch = self.truncation.question(following.partition)
            if following.beyond and following.partition.log.epochs.latest_epoch() < 0:
                # nothing but an offset is left of this log (its records were deleted), and no epoch to ask
                # about: it is cut to where the leader's log ends
                following.asked_epoch = following.leader_epoch
            following.beyond = False
            if following.asked_epoch < 0:
                following.truncating = False
                continue
            queries.append(
                EpochQuery(
                    partition=following.partition.key,
                    current_leader_epoch=following.leader_epoch,
                    asked_epoch=following.asked_epoch,
                )
            )
        return queries

    def _ask(self, conversation: Conversation, queries: list[EpochQuery]) -> None:
        request = OffsetsForLeaderEpochRequest(
            correlation_id=self.broker_context.next_correlation_id(),
            replica_id=self.broker_context.node,
            queries=tuple(queries),
        )
        asked = {query.partition: query.current_leader_epoch for query in queries}
        self._send(conversation, request, asked)

    def _ask_start(self, conversation: Conversation, following: Following) -> None:
        request = ListOffsetsRequest(
            correlation_id=self.broker_context.next_correlation_id(),
            partition=following.partition.key,
            leader_epoch=following.leader_epoch,
            timestamp=EARLIEST,
            replica_id=self.broker_context.node,
        )
        self._send(conversation, request, {following.partition.key: following.leader_epoch})

    def _fetch(self, conversation: Conversation, ready: list[Following]) -> None:
        wanted, asked = [], {}
        for following in ready:
            partition, leader_epoch = following.partition, following.leader_epoch
            key, log = partition.key, partition.log
            asked[key] = leader_epoch
            wanted.append(
                FetchPartition(
                    partition=key,
                    offset=log.log_end_offset,
                    leader_epoch=leader_epoch,
                    log_start_offset=log.log_start_offset,
                )
            )
        request = FetchRequest(
            correlation_id=self.broker_context.next_correlation_id(),
            replica_id=self.broker_context.node,
            max_wait=self.max_wait,
            max_bytes=MAX_BYTES,
            partitions=tuple(wanted),
        )
        self._send(conversation, request, asked)

    def _send(
        self,
        conversation: Conversation,
        request: FetchRequest | OffsetsForLeaderEpochRequest | ListOffsetsRequest,
        asked: dict[TopicPartition, int],
    ) -> None:
        conversation.in_flight, conversation.asked = request.correlation_id, asked
        conversation.awaited = ANSWERS[type(request)]
        self.broker_context.send_periodic(conversation.leader, request)
        conversation.deadline = self.broker_context.now + self.patience
        if not conversation.watched:
            self._watch(conversation)

    def _watch(self, conversation: Conversation) -> None:
        """One timer watches over all requests of a conversation: it is set again when it fires, not at every
        answer."""
        conversation.watched = True
        self.broker_context.outbox.append(
            SetTimer((TIMEOUT_TIMER, conversation.leader), conversation.deadline)
        )

    def on_timer(self, kind: str | int, leader: int) -> None:
        """A request was not answered in time, or a delay is over."""
        conversation = self.conversations[leader]
        if kind == TIMEOUT_TIMER:
            conversation.watched = False
            if conversation.in_flight and self.broker_context.now < conversation.deadline:
                self._watch(conversation)
                return
            conversation.in_flight = 0
        self._go_on(conversation)

    # ---- answers

    def _answered(self, source: int, response: Answer) -> Conversation | None:
        conversation = self.conversations.get(source)
        if conversation is None or conversation.in_flight != response.correlation_id:
            return None
        if not conversation.in_flight or type(response) is not conversation.awaited:
            return None
        conversation.in_flight = 0
        return conversation

    def still_same_epoch(self, conversation: Conversation, key: TopicPartition) -> Following | None:
        """Protection KAFKA-7786: an answer counts only in the epoch in which it was asked for."""
        following = conversation.followings.get(key)
        if following is None or conversation.asked.get(key) != following.leader_epoch:
            return None
        return following

    def on_epoch_ends(self, source: int, response: OffsetsForLeaderEpochResponse) -> None:
        """Cut the logs; partitions that agree begin to fetch, others ask again."""
        conversation = self._answered(source, response)
        if conversation is None:
            return
        for answer in response.ends:
            following = self.still_same_epoch(conversation, answer.partition)
            if following is None:
                continue
            if answer.error is not NO_ERROR:
                self._delay(following)
            elif self.truncation.truncate_by_epoch(following.partition, answer):
                following.truncating = False
        self._go_on(conversation)

    def on_start_listed(self, source: int, response: ListOffsetsResponse) -> None:
        """Now it is known on which side of the leader's log this one is."""
        conversation = self._answered(source, response)
        if conversation is None:
            return
        (key,) = conversation.asked
        following = self.still_same_epoch(conversation, key)
        if following is not None:
            if response.error is not NO_ERROR:
                self._delay(following)
            else:
                following.out_of_range = False
                started_over = self.truncation.start_over_below_leaders_log(
                    following.partition, response.offset
                )
                following.truncating = following.beyond = not started_over
                if not started_over:
                    self._delay(following)
        self._go_on(conversation)

    def on_fetched(self, source: int, response: FetchResponse) -> None:
        """Append what came, move the high watermark, and fetch on."""
        conversation = self._answered(source, response)
        if conversation is None:
            return
        for answer in response.partitions:
            following = self.still_same_epoch(conversation, answer.partition)
            if following is None:
                continue
            if answer.error is NO_ERROR:
                self._append(conversation, following, answer)
            elif answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                following.out_of_range = True
            else:
                self._delay(following)
        self._go_on(conversation)

    def _append(self, conversation: Conversation, following: Following, answer: FetchedPartition) -> None:
        partition = following.partition
        if answer.records:
            try:
                headers = self._copy(partition, answer)
            except CorruptBatchError:
                self._delay(following)  # what the leader's disk spoilt may be whole again
                return
            except (UnexpectedOffsetError, OutOfOrderSequenceError) as unexpected:
                # the logs parted inside a batch (the second one: a log that checks its leader, KAFKA-6003):
                # as Kafka does, this partition fails here and is fetched again after the next LeaderAndIsr
                del conversation.followings[partition.key]
                self.broker_context.record(
                    Name.FOLLOWER_FAILED, partition.key, leader=partition.leader, detail=str(unexpected)
                )
                return
            for header in headers:
                self._appended(partition, answer.records, header)
        log = partition.log
        shown = answer.high_watermark
        partition.set_high_watermark(
            shown if shown < log.log_end_offset else log.log_end_offset, cause="follower"
        )
        if answer.log_start_offset > log.log_start_offset:
            partition.advance_log_start_offset(answer.log_start_offset, cause="leader")

    def _copy(self, partition: Partition, answer: FetchedPartition) -> list[BatchHeader]:
        """Append what was fetched. A log of which the leader has given up every offset begins anew where the
        leader's does: its records may be another leader's, no epoch tells any more, and it may end inside a
        batch (found by the swarm, storage seed 976; Kafka's follower fails there)."""
        try:
            return partition.log.append_as_follower(answer.records)
        except UnexpectedOffsetError:
            if partition.log.log_end_offset > answer.log_start_offset:
                raise
            partition.truncate_fully_and_start_at(answer.log_start_offset)
            return partition.log.append_as_follower(answer.records)

    def _appended(self, partition: Partition, records: bytes, header: BatchHeader) -> None:
        """One event for each run of records without a gap; the last one tells the log end if the batch goes
        on beyond its records (compaction)."""
        try:
            runs = runs_in_batch(records, header) or [(header.next_offset, ())]
        except (
            CorruptBatchError
        ):  # the leader has it in its log, so that it is copied; what it says nobody knows
            runs = [(header.next_offset, ())]
        for number, (base_offset, values) in enumerate(runs, 1):
            whole = number < len(runs) or base_offset + len(values) == header.next_offset
            self.broker_context.record(
                Name.APPENDED,
                partition.key,
                offset=base_offset,
                end_offset=-1 if whole else header.next_offset,
                leader_epoch=header.leader_epoch,
                values=values,
                cause="follower",
            )

    def _delay(self, following: Following) -> None:
        following.delayed_until = (
            self.broker_context.now + self.broker_context.options.replica_fetch_backoff_ms * MILLISECOND
        )
