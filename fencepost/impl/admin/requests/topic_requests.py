"""CreateTopics, DeleteTopics, CreatePartitions, and topics that are created automatically when their metadata
is requested.

Owns the defaults, what each request waits for, and Kafka's responses (KafkaApis, ZkAdminManager,
DelayedCreatePartitions, DelayedDeleteTopics). Must not know the rules for topics: impl/admin checks and
writes. Only the active controller answers, because only it sees all effects:

    1. the checks and the write, which no timeout bounds
    2. the controller acts on it
    3. metadata shows the leaders: answered
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from attrs import define, field

from fencepost.impl.admin.cluster_state import AdminError, ChangedMeanwhileError
from fencepost.impl.admin.requests.desk import AdminDesk, Ticket
from fencepost.impl.admin.topic_administration import (
    Draw,
    add_partitions,
    check_name,
    create_topic,
    delete_topic,
)
from fencepost.impl.controller.controller import Controller
from fencepost.impl.controller.placement import ReplicationFactorError
from fencepost.impl.coordinator.internal_topic import InternalTopic
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedure, Procedures, ZooKeeperSteps
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

ATTEMPTS = 5
"""Rounds of one change. Reason: a round fails only if another client changes the same topic."""
MOST_CREATING = 1_000
"""The most topics that are created automatically at a time, and the most refusals that are remembered.
Further topics are created when their metadata is requested again."""
Keys = list[TopicPartition]
MOST_PARTITIONS_OF_A_REQUEST = 10_000
"""Over all topics of a request, as in Apache Kafka 4 (ReplicationControlManager, MAX_PARTITIONS_PER_BATCH).
With more, a request of a hundred bytes could keep a broker busy for seconds."""
Waits = dict[int, Keys]
"""By index in the request: the partitions that its response waits for."""
Task = tuple[str, Callable[[], ZooKeeperSteps]]
"""A topic's name and its steps, which return the partitions to wait for."""
TopicRequest = kafka.CreateTopicsRequest | kafka.CreatePartitionsRequest | kafka.DeleteTopicsRequest
TopicResponse = kafka.CreateTopicsResponse | kafka.CreatePartitionsResponse | kafka.DeleteTopicsResponse


def draw_of(name: str, now: int) -> Draw:
    """The start of the placement of a topic's replicas. It looks random from topic to topic, and is the same
    in every run of a plan.

    Args:
        name: the topic.
        now: host time in nanoseconds.

    Returns:
        a function from n to a number below n.
    """
    drawn = 0

    def draw(count: int) -> int:
        nonlocal drawn
        drawn += 1
        digest = hashlib.sha256(f"{name}:{now}:{drawn}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % count

    return draw


def persistent(attempt: Callable[[], ZooKeeperSteps]) -> ZooKeeperSteps:
    """Retry while other clients are faster. Raises AdminError, ReplicationFactorError."""
    for _ in range(ATTEMPTS - 1):
        try:
            return (yield from attempt())
        except ChangedMeanwhileError:
            continue
    return (yield from attempt())


@define
class TopicRequests:
    """Topic requests to one broker."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # This broker's controller.
    controller: Controller
    # The metadata from UpdateMetadata.
    metadata: MetadataCache
    # The waiting requests.
    desk: AdminDesk
    # Topics that coordinators create, by name.
    internal_topics: Mapping[str, InternalTopic]
    # Topics that are being created automatically.
    creating: set[str] = field(factory=set)
    # The error of the last attempt, for topics that could not be created.
    refused: dict[str, ErrorCode] = field(factory=dict)

    # ---- requests

    def create(self, source: int, request: kafka.CreateTopicsRequest) -> None:
        """Create topics. The response is sent when each of them has its leaders.

        Args:
            source: the client.
            request: the topics.
        """
        tasks = [
            (topic.name, partial(self._create, topic, request.validate_only)) for topic in request.topics
        ]
        total = sum(max(topic.partitions, len(topic.assignment)) for topic in request.topics)
        self._handle(
            source, request, kafka.CreateTopicsResponse, tasks, self._led, request.validate_only, total
        )

    def create_partitions(self, source: int, request: kafka.CreatePartitionsRequest) -> None:
        """Add partitions to topics. The response is sent when each has its leader.

        Args:
            source: the client.
            request: the topics and their new numbers of partitions.
        """
        tasks = [(topic.name, partial(self._grow, topic, request.validate_only)) for topic in request.topics]
        total = sum(topic.count for topic in request.topics)
        self._handle(
            source, request, kafka.CreatePartitionsResponse, tasks, self._led, request.validate_only, total
        )

    def delete(self, source: int, request: kafka.DeleteTopicsRequest) -> None:
        """Delete topics. The response is sent when nothing of them is left.

        Args:
            source: the client.
            request: the topics.
        """
        tasks = [(name, partial(self._delete, name)) for name in request.names]
        self._handle(source, request, kafka.DeleteTopicsResponse, tasks, self._gone, dry=False)

    def _handle(
        self,
        source: int,
        request: TopicRequest,
        response: type[TopicResponse],
        tasks: Sequence[Task],
        settled: Callable[[Keys], bool],
        dry: bool,
        partitions: int = 0,
    ) -> None:
        """settled: whether what a task waits for has come to pass. dry: nothing is written, so that there
        is nothing to wait for. partitions: how many the request asks for, over all topics."""

        def all_of(error: ErrorCode, message: str = "") -> TopicResponse:
            results = tuple(kafka.Result(name=name, error=error, message=message) for name, _ in tasks)
            return response(correlation_id=request.correlation_id, results=results)

        if not self.controller.state.active:
            self.broker_context.reply(source, all_of(ErrorCode.NOT_CONTROLLER), request.correlation_id)
            return
        if partitions > MOST_PARTITIONS_OF_A_REQUEST:
            most = f"{MOST_PARTITIONS_OF_A_REQUEST:,} partitions over all topics"
            refusal = all_of(ErrorCode.POLICY_VIOLATION, f"expected at most {most}, saw {partitions:,}")
            self.broker_context.reply(source, refusal, request.correlation_id)
            return
        overdue = partial(all_of, ErrorCode.REQUEST_TIMED_OUT)
        ticket = self.desk.admit(source, request.correlation_id, overdue)
        if ticket is not None:
            respond = partial(response, correlation_id=request.correlation_id)
            wait = None if dry else partial(self._wait, ticket, request.timeout_ms, settled, respond)
            self.procedures.start(self._carry_out(ticket, tasks, respond, wait))

    # ---- the steps of a request

    def _carry_out(
        self,
        ticket: Ticket,
        tasks: Sequence[Task],
        respond: Callable[..., TopicResponse],
        wait: Callable[[list[kafka.Result], Waits], None] | None,
    ) -> Procedure:
        """Run one task after another; they are independent."""
        twice = {name for name, count in Counter(name for name, _ in tasks).items() if count > 1}
        results: list[kafka.Result] = []
        waits: Waits = {}
        for place, (name, task) in enumerate(tasks):
            error, message = ErrorCode.NONE, ""
            if name in twice:
                error, message = ErrorCode.INVALID_REQUEST, "the request names this topic twice"
            else:
                try:
                    waits[place] = yield from task()
                except AdminError as refused:
                    error, message = refused.code, str(refused)
                except ReplicationFactorError as refused:
                    error, message = ErrorCode.INVALID_REPLICATION_FACTOR, str(refused)
            results.append(kafka.Result(name=name, error=error, message=message))
        if wait is None or not waits:
            self.desk.answer(ticket, respond(results=tuple(results)))
        else:
            wait(results, waits)

    def _wait(
        self,
        ticket: Ticket,
        timeout_ms: int,
        settled: Callable[[Keys], bool],
        respond: Callable[..., TopicResponse],
        results: list[kafka.Result],
        waits: Waits,
    ) -> None:
        def all_settled() -> TopicResponse | None:
            return respond(results=tuple(results)) if all(map(settled, waits.values())) else None

        def time_is_up() -> TopicResponse:
            for place, keys in waits.items():
                if not settled(keys):
                    results[place] = kafka.Result(name=results[place].name, error=ErrorCode.REQUEST_TIMED_OUT)
            return respond(results=tuple(results))

        self.desk.wait(ticket, timeout_ms, all_settled, time_is_up)

    def _create(self, topic: kafka.NewTopic, validate_only: bool) -> ZooKeeperSteps:
        where = f"topic {topic.name}"
        internal = self.internal_topics.get(topic.name)
        if internal is not None and not internal.count():
            raise AdminError(
                expected="a topic that is not the brokers' own: they have none of this name, and would write "
                "no record into it",
                seen=topic.name,
                where=where,
                code=ErrorCode.INVALID_TOPIC_EXCEPTION,
            )
        without = [name for name, value in topic.config if value is None]
        if without:
            raise AdminError(
                expected="a value for each setting",
                seen=f"none for {without[0]!r}",
                where=where,
                code=ErrorCode.INVALID_CONFIG,
            )
        chosen = (topic.partitions, topic.replication_factor) == (kafka.BROKERS_CHOICE, kafka.BROKERS_CHOICE)
        if topic.assignment and not chosen:
            raise AdminError(
                expected="either an assignment or the numbers of partitions and replicas",
                seen="both",
                where=where,
            )
        assignment = {each.partition: each.replicas for each in topic.assignment}
        if len(assignment) < len(topic.assignment):
            raise AdminError(
                expected="each partition once",
                seen="one twice",
                where=where,
                code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            )
        placed = yield from create_topic(
            topic.name,
            partitions=self._partitions(topic.partitions),
            replication_factor=self._replication_factor(topic.replication_factor),
            draw=draw_of(topic.name, self.broker_context.now),
            assignment=assignment or None,
            config={name: value for name, value in topic.config if value is not None},
            validate_only=validate_only,
        )
        return [TopicPartition(topic.name, number) for number in placed]

    def _partitions(self, asked: int) -> int:
        return self.broker_context.options.num_partitions if asked == kafka.BROKERS_CHOICE else asked

    def _replication_factor(self, asked: int) -> int:
        """The replication factor. The default is limited to the number of brokers, so that one broker
        suffices for everything."""
        if asked != kafka.BROKERS_CHOICE:
            return asked
        return min(
            self.broker_context.options.default_replication_factor, max(1, len(self.metadata.live_brokers))
        )

    def _grow(self, topic: kafka.MorePartitions, validate_only: bool) -> ZooKeeperSteps:
        placed = yield from persistent(
            lambda: add_partitions(topic.name, topic.count, topic.assignment, validate_only=validate_only)
        )
        return [TopicPartition(topic.name, number) for number in placed]

    def _delete(self, name: str) -> ZooKeeperSteps:
        """Mark a topic for deletion; returns the partitions to wait for. As in Kafka, a topic without
        metadata does not exist; for one that is already marked the request waits."""
        if not self.metadata.knows(name):
            raise AdminError(
                expected="a topic that exists",
                seen=name[:64],
                where="delete",
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        keys = self.controller.state.context.partitions_of(name) or [TopicPartition(name, 0)]
        try:
            yield from delete_topic(name)
        except ChangedMeanwhileError:
            pass
        except AdminError as refused:
            if refused.code is not ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise
        return keys

    # ---- conditions to wait for

    def _led(self, keys: Keys) -> bool:
        """Whether each partition has a leader by this broker's metadata."""
        return all(self.metadata.leader_of(key) >= 0 for key in keys)

    def _gone(self, keys: Keys) -> bool:
        """Whether clients and the controller see nothing of the topics any more, so that a topic of this name
        can be created again.

        Replicas on brokers that are down are deleted when those return; the request does not wait for them.
        Once another broker is the controller, nothing more is known.
        """
        if any(self.metadata.knows(key.topic) for key in keys[:1]):
            return False
        state = self.controller.state
        left = [key for key in keys if key in state.context.assignments]
        live = state.context.live_brokers
        return not state.active or all(
            any(broker not in live for broker in state.context.assignments[key]) for key in left
        )

    # ---- topics that are created automatically

    def auto_create(self, names: Collection[str]) -> dict[str, ErrorCode]:
        """Create unknown topics whose metadata was requested, with the defaults (auto.create.topics.enable).

        Returns the errors for the response: that there is no leader yet, until a later request finds one, or
        why there will be none.
        """
        return {name: self._auto_create(name) for name in names}

    def _auto_create(self, name: str) -> ErrorCode:
        try:
            check_name(name)
        except AdminError as refused:
            return refused.code
        if not self.broker_context.options.auto_create_topics_enable:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        internal = self.internal_topics.get(name)
        if internal is not None:
            if not internal.count():
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            internal.create()
        elif name not in self.creating and len(self.creating) < MOST_CREATING:
            self.creating.add(name)
            self.procedures.start(self._auto_creation(name))
        return self.refused.pop(name, ErrorCode.LEADER_NOT_AVAILABLE)

    def _auto_creation(self, name: str) -> Procedure:
        try:
            yield from self._create(kafka.NewTopic(name=name), False)
        except AdminError as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS and len(self.refused) < MOST_CREATING:
                self.refused[name] = refused.code
        except ReplicationFactorError:
            self.refused[name] = ErrorCode.INVALID_REPLICATION_FACTOR
        self.creating.discard(name)
