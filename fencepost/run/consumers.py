"""The application of a simulated consumer: it polls, works on what it got, commits in its plan's style, and
polls again.

Owns the loop. Must not know how a consumer does any of it. What a poll returned counts as processed at once,
except where commits come before the work (style `before`): there the poll ends, for the trace, when the work
is done, so that a crash in between leaves a gap that is seen.
"""

from collections.abc import Callable
from functools import partial

from attrs import define, evolve, field

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.coordinator_requests import ConsumerCoordinator
from fencepost.impl.client.consumer.fetch import ConsumedRecord, ConsumerFetcher
from fencepost.impl.client.consumer.requests import ConsumerIdentity
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import ConsumerOptions, PlannedOperation

RESTART_MS = 1_000
"""Until a consumer that has given up is started again."""
TENTH_MS, FIRST = 100, 8
BY_TIME = -3
"""What the trace says of a seek to a time, as it says LATEST and EARLIEST of the others."""


Wish = Callable[["PollLoop", Consumer], None]
"""What an application does before it polls again."""


@define
class PollLoop:
    """style: ConsumerOptions.commit. wishes: what comes before the next poll. closing: it ends in order."""

    style: str
    processing_ms: int
    wishes: list[Wish] = field(factory=list)
    closing: bool = False
    # Until when its work on records takes, if that is longer than processing_ms; host time in nanoseconds.
    busy_until: int = 0

    def _work(self, consumer: Consumer) -> None:
        left_ms = (self.busy_until - consumer.desk.now) // MILLISECOND
        consumer.sleep(max(self.processing_ms, left_ms))

    def go_on(self, consumer: Consumer) -> None:
        """Do what is wished for; then poll, or commit and close."""
        wishes, self.wishes = self.wishes, []
        for wish in wishes:
            wish(self, consumer)
        if self.closing:
            consumer.commit_sync()
        else:
            consumer.poll()

    def started(self, consumer: Consumer) -> None:
        """Begin."""
        consumer.poll()

    def polled(self, consumer: Consumer, records: list[ConsumedRecord]) -> None:
        """Work on the records, or commit first.

        Args:
            consumer: whose poll ended.
            records: what it returned.
        """
        if not records:
            self.go_on(consumer)
        elif self.style == "before":
            consumer.commit_sync()
        else:
            self._work(consumer)

    def woken(self, consumer: Consumer) -> None:
        """The work is done, or it is time to begin again."""
        if consumer.dead:
            consumer.start_over()
            return
        consumer.taken()
        if self.style == "sync":
            consumer.commit_sync()
            return
        if self.style == "async":
            consumer.commit_async()
        self.go_on(consumer)

    def committed(self, consumer: Consumer, error: ErrorCode) -> None:
        """Go on, whatever the answer was.

        Args:
            consumer: whose commit ended.
            error: of the coordinator.
        """
        if self.closing:
            consumer.close()
        elif self.style == "before":
            self._work(consumer)
        else:
            self.go_on(consumer)

    def assigned(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        """Nothing has to be prepared.

        Args:
            consumer: which has new partitions.
            partitions: all that it has now.
        """

    def revoked(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        """Nothing has to be put away.

        Args:
            consumer: which gives partitions up.
            partitions: those.
        """

    def failed(self, consumer: Consumer, error: ErrorCode) -> None:
        """The process ends, and is started again after a while. A static member that was given a new id while
        its group rebalanced, and whose coordinator failed before that was written, is fenced by its own
        old id: Kafka has this hazard, too.

        Args:
            consumer: which cannot go on.
            error: why.
        """
        consumer.sleep(RESTART_MS)


def seek(operation: PlannedOperation, loop: PollLoop, consumer: Consumer) -> None:
    """Seek in the partition that the operation names, or in all if it is not assigned: to the log start or
    end, to a time, or so many records back. Nobody can seek before something is assigned."""
    assigned = consumer.fetcher.assigned
    if not assigned:
        loop.wishes.append(partial(seek, operation))
        return
    keys = [key for key in assigned if key.partition == operation.partition] or list(assigned)
    asked = operation.argument
    if asked:
        since = consumer.desk.now // MILLISECOND - operation.records * TENTH_MS
        timestamp = {"earliest": kafka.EARLIEST, "latest": kafka.LATEST}.get(asked, max(0, since))
        consumer.record_seek(dict.fromkeys(keys, timestamp if timestamp < 0 else BY_TIME))
        for key in keys:
            consumer.seek_by_time(key, timestamp)
        return
    back, positions = operation.records, consumer.fetcher.positions
    offsets = {key: max(0, positions[key] - back) if key in positions else back % FIRST for key in keys}
    consumer.record_seek(offsets)
    for key, offset in offsets.items():
        consumer.seek(key, offset)


def resubscribe(topics: tuple[str, ...], loop: PollLoop, consumer: Consumer) -> None:
    """The `consumer` of this `loop` leaves the group and joins it again, with these topics."""
    consumer.subscribe_again(topics)


def subscribe(topics: tuple[str, ...], loop: PollLoop, consumer: Consumer) -> None:
    """The `consumer` of this `loop` joins again with these topics, and stays a member meanwhile."""
    consumer.subscribe(topics)


def work_long(duration_ms: int, consumer: Consumer) -> None:
    """The application of a `consumer` is at work for `duration_ms` from now on, if it has records."""
    if isinstance(consumer.application, PollLoop):
        consumer.application.busy_until = consumer.desk.now + duration_ms * MILLISECOND


def close(loop: PollLoop, consumer: Consumer) -> None:
    """The `consumer` of this `loop` commits, leaves the group and ends."""
    loop.closing = True


def make_consumer(
    identity: ConsumerIdentity,
    options: ConsumerOptions,
    brokers: tuple[int, ...],
    coordinator: type[ConsumerCoordinator] = ConsumerCoordinator,
    fetcher: type[ConsumerFetcher] = ConsumerFetcher,
) -> Consumer:
    """The core of a consumer's process.

    Args:
        identity: its group, member and topics.
        options: of the consumer.
        brokers: the numbers of all brokers.
        coordinator: the class of the part that talks to the group's coordinator.
        fetcher: the class of the part that reads.
    """
    return Consumer(
        identity,
        options,
        ClientMetadata(brokers),
        PollLoop(options.commit, options.processing_ms),
        coordinator,
        fetcher,
        open_rows=options.commit == "before",
    )


def make_transformer(
    identity: ConsumerIdentity,
    options: ConsumerOptions,
    brokers: tuple[int, ...],
    loop: TransformLoop,
    coordinator: type[ConsumerCoordinator] = ConsumerCoordinator,
) -> Consumer:
    """The core of a process that consumes, transforms and produces. It reads committed records, and only its
    transactions commit offsets.

    Args:
        identity: its group, member and topics.
        options: of the consumer.
        brokers: the numbers of all brokers.
        loop: what it does with records.
        coordinator: the class of the part that talks to the group's coordinator.
    """
    committed = evolve(options, commit="none", isolation="read_committed")
    return Consumer(identity, committed, ClientMetadata(brokers), loop, coordinator)
