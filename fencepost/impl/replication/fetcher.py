"""The follower's side of the data path: truncate until the logs agree, then fetch for ever (R1, R5, R6).

Owns one conversation per leader broker, with one request in flight, as Kafka's fetcher threads have. Each partition is
first `truncating`, then `fetching`; an error delays it. An answer counts only if the partition still follows the same
leader in the same epoch as when it was asked (KAFKA-7786).
"""

from attrs import define, field

from fencepost.impl.log.batch_header import CorruptBatchError
from fencepost.impl.log.segmented_log import UnexpectedOffsetError
from fencepost.impl.log.values import batches_of
from fencepost.impl.messages import (
    EpochQuery,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation
from fencepost.impl.seam import SetTimer
from fencepost.impl.shell import MILLISECOND, Shell
from fencepost.traces.events import Name
from fencepost.traces.outcomes import ErrorCode

TIMEOUT_TIMER, BACKOFF_TIMER = "fetch_timeout", "fetch_backoff"
MAX_BYTES = 1_048_576
"""Of one partition in one fetch: replica.fetch.max.bytes."""


@define
class Following:
    """One partition that is fetched. asked_epoch: the epoch of the question in flight; delayed_until: host time before which it rests."""

    partition: Partition
    leader_epoch: int
    truncating: bool = True
    asked_epoch: int = -1
    delayed_until: int = 0


@define
class Conversation:
    """With one leader. in_flight: correlation id of the request that is not answered yet, 0 for none. deadline: host time by
    which it must be answered; watched: whether the timer that looks after it is set."""

    leader: int
    followings: dict[TopicPartition, Following] = field(factory=dict)
    in_flight: int = 0
    deadline: int = 0
    watched: bool = False
    asked: dict[TopicPartition, int] = field(factory=dict)


@define
class ReplicaFetcher:
    """conversations: by leader broker id."""

    shell: Shell
    truncation: FollowerTruncation
    conversations: dict[int, Conversation] = field(factory=dict)

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
        now = self.shell.now
        ready = [
            following for following in conversation.followings.values() if following.delayed_until <= now
        ]
        if not ready:
            earliest = min(following.delayed_until for following in conversation.followings.values())
            self.shell.set_timer(
                (BACKOFF_TIMER, conversation.leader), (earliest - now + MILLISECOND - 1) // MILLISECOND
            )
            return
        queries = self._questions(ready)
        if queries:
            self._ask(conversation, queries)
        else:
            self._fetch(conversation, ready)

    def _questions(self, ready: list[Following]) -> tuple[EpochQuery, ...]:
        queries = []
        for following in ready:
            if not following.truncating:
                continue
            following.asked_epoch = self.truncation.question(following.partition)
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
        return tuple(queries)

    def _ask(self, conversation: Conversation, queries: tuple[EpochQuery, ...]) -> None:
        request = OffsetsForLeaderEpochRequest(
            correlation_id=self.shell.next_correlation_id(), replica_id=self.shell.node, queries=queries
        )
        asked = {query.partition: query.current_leader_epoch for query in queries}
        self._send(conversation, request, asked)

    def _fetch(self, conversation: Conversation, ready: list[Following]) -> None:
        request = FetchRequest(
            correlation_id=self.shell.next_correlation_id(),
            replica_id=self.shell.node,
            max_wait=self.shell.options.replica_fetch_wait_max_ms * MILLISECOND,
            max_bytes=MAX_BYTES,
            partitions=tuple(
                FetchPartition(
                    partition=following.partition.key,
                    offset=following.partition.log.log_end_offset,
                    leader_epoch=following.leader_epoch,
                )
                for following in ready
            ),
        )
        asked = {following.partition.key: following.leader_epoch for following in ready}
        self._send(conversation, request, asked)

    def _send(
        self,
        conversation: Conversation,
        request: FetchRequest | OffsetsForLeaderEpochRequest,
        asked: dict[TopicPartition, int],
    ) -> None:
        conversation.in_flight, conversation.asked = request.correlation_id, asked
        self.shell.send_periodic(conversation.leader, request)
        patience = (
            self.shell.options.replica_fetch_wait_max_ms + self.shell.options.controller_request_timeout_ms
        )
        conversation.deadline = self.shell.now + patience * MILLISECOND
        if not conversation.watched:
            self._watch(conversation)

    def _watch(self, conversation: Conversation) -> None:
        """One timer watches over all requests of a conversation: it is set again when it fires, not at every answer."""
        conversation.watched = True
        self.shell.outbox.append(SetTimer((TIMEOUT_TIMER, conversation.leader), conversation.deadline))

    def on_timer(self, kind: str | int, leader: int) -> None:
        """A request was not answered in time, or a delay is over."""
        conversation = self.conversations[leader]
        if kind == TIMEOUT_TIMER:
            conversation.watched = False
            if conversation.in_flight and self.shell.now < conversation.deadline:
                self._watch(conversation)
                return
            conversation.in_flight = 0
        self._go_on(conversation)

    # ---- answers

    def _answered(self, source: int, correlation_id: int) -> Conversation | None:
        conversation = self.conversations.get(source)
        if conversation is None or conversation.in_flight != correlation_id:
            return None
        conversation.in_flight = 0
        return conversation

    def _still(self, conversation: Conversation, key: TopicPartition) -> Following | None:
        following = conversation.followings.get(key)
        if following is None or conversation.asked.get(key) != following.leader_epoch:
            return None
        return following

    def on_epoch_ends(self, source: int, response: OffsetsForLeaderEpochResponse) -> None:
        """Cut the logs; partitions that agree begin to fetch, others ask again."""
        conversation = self._answered(source, response.correlation_id)
        if conversation is None:
            return
        for answer in response.ends:
            following = self._still(conversation, answer.partition)
            if following is None:
                continue
            if answer.error is not ErrorCode.NONE:
                self._delay(following)
            elif self.truncation.truncate_by_epoch(following.partition, answer):
                following.truncating = False
        self._go_on(conversation)

    def on_fetched(self, source: int, response: FetchResponse) -> None:
        """Append what came, move the high watermark, and fetch on."""
        conversation = self._answered(source, response.correlation_id)
        if conversation is None:
            return
        for answer in response.partitions:
            following = self._still(conversation, answer.partition)
            if following is None:
                continue
            if answer.error is ErrorCode.NONE:
                self._append(conversation, following.partition, answer)
            else:
                following.truncating = following.truncating or answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
                self._delay(following)
        self._go_on(conversation)

    def _append(self, conversation: Conversation, partition: Partition, answer: FetchedPartition) -> None:
        if answer.records:
            try:
                partition.log.append_as_follower(answer.records)
            except (UnexpectedOffsetError, CorruptBatchError) as unexpected:
                # the logs parted inside a batch: as Kafka does, this partition fails here and is fetched again after the next LeaderAndIsr
                del conversation.followings[partition.key]
                self.shell.record(
                    Name.FOLLOWER_FAILED, partition.key, leader=partition.leader, detail=str(unexpected)
                )
                return
            for header, values in batches_of(answer.records, check_crc=False):
                self.shell.record(
                    Name.APPENDED,
                    partition.key,
                    offset=header.base_offset,
                    leader_epoch=header.leader_epoch,
                    values=values,
                    cause="follower",
                )
        partition.set_high_watermark(
            min(answer.high_watermark, partition.log.log_end_offset), cause="follower"
        )

    def _delay(self, following: Following) -> None:
        following.delayed_until = self.shell.now + self.shell.options.replica_fetch_backoff_ms * MILLISECOND
