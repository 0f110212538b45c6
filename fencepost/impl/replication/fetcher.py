"""The follower's side of the data path: truncate until the logs agree, then fetch continuously (R1, R5, R6).

Owns one conversation per leader broker, with one request in flight, like Kafka's fetcher threads. Each
partition is first `truncating`, then `fetching`. An error delays it; a partition that is out of the leader's
range first asks where the leader's log starts. A response counts only if the partition still follows the same
leader in the same epoch as at the request (KAFKA-7786).
"""

from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.core_interface import SetTimer
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, read_header
from fencepost.impl.log.producer.producer_state import OutOfOrderSequenceError
from fencepost.impl.log.segmented_log import UnexpectedOffsetError
from fencepost.impl.log.values import runs_in_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

TIMEOUT_TIMER, BACKOFF_TIMER = "fetch_timeout", "fetch_backoff"
ANSWERS: dict[type, type] = {
    kafka.FetchRequest: kafka.FetchResponse,
    kafka.ListOffsetsRequest: kafka.ListOffsetsResponse,
    kafka.OffsetsForLeaderEpochRequest: kafka.OffsetsForLeaderEpochResponse,
}
Answer = kafka.FetchResponse | kafka.ListOffsetsResponse | kafka.OffsetsForLeaderEpochResponse
MAX_BYTES = 1_048_576
"""Bytes of one partition in one fetch: replica.fetch.max.bytes."""


@define
class Following:
    """One partition that is fetched."""

    # The partition.
    partition: Partition
    # The epoch in which it follows.
    leader_epoch: int
    # Whether the logs may still differ; fetching begins afterwards.
    truncating: bool = True
    # The leader reported OFFSET_OUT_OF_RANGE, and the start of its log is not known yet.
    out_of_range: bool = False
    # The leader's log starts below the end of this one, so this one ends beyond the leader's.
    beyond: bool = False
    # The epoch in the request in flight; -1 if there is none.
    asked_epoch: int = -1
    # Host time in nanoseconds before which it is not fetched.
    delayed_until: int = 0


@define
class Conversation:
    """The conversation with one leader."""

    # The broker id of the leader.
    leader: int
    # The partitions that are fetched from it.
    followings: dict[kafka.TopicPartition, Following] = field(factory=dict)
    # Correlation id of the unanswered request; 0 for none.
    in_flight: int = 0
    # The class of the expected response.
    awaited: type = object
    # Host time in nanoseconds by which the response must come.
    deadline: int = 0
    # Whether the timer for the deadline is set.
    watched: bool = False
    # The leader epoch of each partition in the request in flight.
    asked: dict[kafka.TopicPartition, int] = field(factory=dict)


@define
class ReplicaFetcher:
    """The fetcher of one broker."""

    broker_context: BrokerContext
    truncation: FollowerTruncation
    # By broker id of the leader.
    conversations: dict[int, Conversation] = field(factory=dict)
    # How long a leader may hold a fetch, in nanoseconds.
    max_wait: int = field(init=False)
    # How long the response may take, in nanoseconds.
    patience: int = field(init=False)
    # How long a partition waits after an error, in nanoseconds.
    backoff: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        options = self.broker_context.options
        self.max_wait = options.replica_fetch_wait_max_ms * MILLISECOND
        self.patience = self.max_wait + options.controller_request_timeout_ms * MILLISECOND
        self.backoff = options.replica_fetch_backoff_ms * MILLISECOND

    # ---- what to fetch

    def follow(self, partition: Partition) -> None:
        """Begin to follow the partition's leader in its epoch."""
        self.stop(partition.key)
        conversation = self.conversations.setdefault(partition.leader, Conversation(partition.leader))
        conversation.followings[partition.key] = Following(partition, partition.leader_epoch)
        self._go_on(conversation)

    def stop(self, key: kafka.TopicPartition) -> None:
        """Stop fetching this partition; responses in flight for it are dropped."""
        for conversation in self.conversations.values():
            conversation.followings.pop(key, None)

    # ---- the conversation

    def _go_on(self, conversation: Conversation) -> None:
        if conversation.in_flight or not conversation.followings:
            return
        now = self.broker_context.now
        ready = [
            following
            for following in conversation.followings.values()
            if not self._waits(following.delayed_until, self.backoff)
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

    def _questions(self, truncating: list[Following]) -> list[kafka.EpochQuery]:
        queries: list[kafka.EpochQuery] = []
        for following in truncating:
            following.asked_epoch = self.truncation.question(following.partition)
            if following.beyond and following.partition.log.epochs.latest_epoch() < 0:
                # This log has only an offset left (its records were deleted) and no epoch to ask about:
                # truncate it to the end of the leader's log.
                following.asked_epoch = following.leader_epoch
            following.beyond = False
            if following.asked_epoch < 0:
                following.truncating = False
                continue
            queries.append(
                kafka.EpochQuery(
                    partition=following.partition.key,
                    current_leader_epoch=following.leader_epoch,
                    asked_epoch=following.asked_epoch,
                )
            )
        return queries

    def _ask(self, conversation: Conversation, queries: list[kafka.EpochQuery]) -> None:
        request = kafka.OffsetsForLeaderEpochRequest(
            correlation_id=self.broker_context.next_correlation_id(),
            replica_id=self.broker_context.node,
            queries=tuple(queries),
        )
        asked = {query.partition: query.current_leader_epoch for query in queries}
        self._send(conversation, request, asked)

    def _ask_start(self, conversation: Conversation, following: Following) -> None:
        request = kafka.ListOffsetsRequest(
            correlation_id=self.broker_context.next_correlation_id(),
            partition=following.partition.key,
            leader_epoch=following.leader_epoch,
            timestamp=kafka.EARLIEST,
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
                kafka.FetchPartition(
                    partition=key,
                    offset=log.log_end_offset,
                    leader_epoch=leader_epoch,
                    log_start_offset=log.log_start_offset,
                )
            )
        request = kafka.FetchRequest(
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
        request: kafka.FetchRequest | kafka.OffsetsForLeaderEpochRequest | kafka.ListOffsetsRequest,
        asked: dict[kafka.TopicPartition, int],
    ) -> None:
        conversation.in_flight, conversation.asked = request.correlation_id, asked
        conversation.awaited = ANSWERS[type(request)]
        self.broker_context.send_periodic(conversation.leader, request)
        conversation.deadline = self.broker_context.now + self.patience
        if not conversation.watched:
            self._watch(conversation)

    def _watch(self, conversation: Conversation) -> None:
        """One timer serves all requests of a conversation. It is set again when it fires, not at every
        response."""
        conversation.watched = True
        self.broker_context.outbox.append(
            SetTimer((TIMEOUT_TIMER, conversation.leader), conversation.deadline)
        )

    def on_timer(self, kind: str | int, leader: int) -> None:
        """A request was not answered in time, or a delay is over.

        Args:
            kind: TIMEOUT_TIMER, or the timer of a delay.
            leader: the broker id of the leader.
        """
        conversation = self.conversations[leader]
        if kind == TIMEOUT_TIMER:
            conversation.watched = False
            if conversation.in_flight and self._waits(conversation.deadline, self.patience):
                self._watch(conversation)
                return
            conversation.in_flight = 0
        self._go_on(conversation)

    def _waits(self, until: int, longest: int) -> bool:
        """Whether a wait of at most `longest` nanoseconds until the host time `until` goes on. If the time of
        day was set back meanwhile, what is left seems longer than the whole wait: then it is over."""
        return 0 < until - self.broker_context.now <= longest

    # ---- responses

    def _answered(self, source: int, response: Answer) -> Conversation | None:
        conversation = self.conversations.get(source)
        if conversation is None or conversation.in_flight != response.correlation_id:
            return None
        if not conversation.in_flight or type(response) is not conversation.awaited:
            return None
        conversation.in_flight = 0
        return conversation

    def still_same_epoch(self, conversation: Conversation, key: kafka.TopicPartition) -> Following | None:
        """Protection KAFKA-7786: a response counts only in the epoch of its request.

        Args:
            conversation: the conversation with the leader.
            key: the partition.

        Returns:
            the partition's state; None if the response must be dropped.
        """
        following = conversation.followings.get(key)
        if following is None or conversation.asked.get(key) != following.leader_epoch:
            return None
        return following

    def on_epoch_ends(self, source: int, response: kafka.OffsetsForLeaderEpochResponse) -> None:
        """Truncate the logs. Partitions that agree begin to fetch; the others ask again.

        Args:
            source: the leader.
            response: the end offsets of the epochs that were asked for.
        """
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

    def on_start_listed(self, source: int, response: kafka.ListOffsetsResponse) -> None:
        """Now it is known on which side of the leader's log this one is.

        Args:
            source: the leader.
            response: the start of the leader's log.
        """
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

    def on_fetched(self, source: int, response: kafka.FetchResponse) -> None:
        """Append the records, move the high watermark, and fetch again.

        Args:
            source: the leader.
            response: one result per partition.
        """
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

    def _append(
        self, conversation: Conversation, following: Following, answer: kafka.FetchedPartition
    ) -> None:
        partition = following.partition
        if answer.records:
            try:
                headers = self._copy(partition, answer)
            except CorruptBatchError:
                self._delay(following)  # bytes that the leader's disk damaged may be readable later
                return
            except (UnexpectedOffsetError, OutOfOrderSequenceError) as unexpected:
                # The logs diverge inside a batch (the second case: a log that checks its leader, KAFKA-6003).
                # As in Kafka, this partition fails here and is fetched again after the next LeaderAndIsr.
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

    def _copy(self, partition: Partition, answer: kafka.FetchedPartition) -> list[BatchHeader]:
        """Append fetched records.

        If the leader no longer has any offset of this log, the log starts again where the leader's does. Its
        records may be from another leader, no epoch can show that any more, and it may end inside a batch
        (found by the swarm, storage seed 976; Kafka's follower fails there). A gap is copied, as in Kafka:
        the leader may have compacted its log in a time of which this broker never heard.
        """
        log, start = partition.log, answer.log_start_offset
        try:
            return log.append_as_follower(answer.records)
        except UnexpectedOffsetError:
            end, empty = log.log_end_offset, log.log_end_offset == log.log_start_offset
            if log.options.contiguous and read_header(answer.records).base_offset >= end >= start:
                partition.allow_gaps()
            elif end < start or (end == start and not empty):
                partition.truncate_fully_and_start_at(start)
            else:
                raise
            return self._copy(partition, answer)

    def _appended(self, partition: Partition, records: bytes, header: BatchHeader) -> None:
        """One event for each run of records without a gap. The last one has the log end, in case the batch
        continues after its records (compaction)."""
        try:
            runs = runs_in_batch(records, header) or [(header.next_offset, ())]
        except CorruptBatchError:  # the leader has it in its log, so it is copied; its content is not known
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
        following.delayed_until = self.broker_context.now + self.backoff
