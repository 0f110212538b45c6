"""One topic of one cluster, as a client that only reads sees it.

Owns the questions, how often each is repeated, and the sentence of each refusal. Must not know what is
compared. Nothing is written: not even the metadata of one topic is asked for by its name, which creates it
where a broker does so.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from fencepost.asked.broker_connections import Links
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.admin_api import DescribeConfigsRequest, DescribedResource, ResourceKind
from fencepost.impl.messages.group_api import FindCoordinatorRequest, OffsetFetchRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.errors import EnvironmentError_, FencepostError, did_you_mean
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.client import Access, Address, look_around
from fencepost.wire.frames import ProtocolError
from fencepost.wire.outward import TRANSLATIONS

PATIENCE_S = 30.0
"""For one answer, as Kafka's clients wait (request.timeout.ms)."""
TRIES = 60
PAUSE_S = 0.5
"""A leader that moves has a successor within half a minute, or its partition has none."""
FETCH_BYTES = 1024 * 1024
"""Of one answer: max.partition.fetch.bytes of Kafka's consumers. A larger batch comes whole."""
REFUSED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
AGAIN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""What a broker says while roles move."""


@frozen(kw_only=True)
class TopicPlace:
    """Where a topic is."""

    # source or target.
    word: str
    bootstrap: tuple[Address, ...]
    topic: str
    access: Access

    @property
    def text(self) -> str:
        """As it is typed."""
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap) + f"/{self.topic}"


@define(eq=False)
class TopicCluster:
    """Connections to it."""

    place: TopicPlace
    links: Links = field(init=False)
    # Leader by partition, -1 for none.
    leaders: dict[int, int] = field(factory=dict)

    async def open(self) -> None:
        """Find the topic.

        Raises:
            EnvironmentError_: no bootstrap server answers.
            FencepostError: there is no such topic.
        """
        addresses, metadata = await look_around(self.place.bootstrap, self.place.access)
        self.links = Links(dict(addresses), self.place.access)
        self._take(metadata)
        if not self.leaders:
            names = sorted({one.partition.topic for one in metadata.partitions})
            raise FencepostError(
                expected=f"the topic {self.place.topic}",
                seen=f"{len(names)} topics that this user may see, not it"
                + did_you_mean(self.place.topic, names),
                where=f"the {self.place.word} {self.place.text}",
                hint="a user needs DESCRIBE and READ on it",
            )

    async def close(self) -> None:
        """End the connections."""
        if hasattr(self, "links"):
            await self.links.close()

    def _take(self, metadata: kafka.MetadataResponse) -> None:
        self.leaders = {
            one.partition.partition: one.leader
            for one in metadata.partitions
            if one.partition.topic == self.place.topic
        }

    def key(self, partition: int) -> TopicPartition:
        """A partition of the topic."""
        return TopicPartition(self.place.topic, partition)

    # ---- questions

    async def start(self, partition: int) -> int:
        """The log start."""
        asked = kafka.ListOffsetsRequest(
            correlation_id=0, partition=self.key(partition), timestamp=kafka.EARLIEST
        )
        return int((await self._of_leader(partition, asked)).offset)

    async def end(self, partition: int, *, committed: bool = True) -> int:
        """The last stable offset or, if not committed, the high watermark. partition: which; committed:
        whether open transactions count."""
        key = self.key(partition)
        asked = kafka.ListOffsetsRequest(correlation_id=0, partition=key, read_committed=committed)
        return int((await self._of_leader(partition, asked)).offset)

    async def fetch(self, partition: int, offset: int) -> kafka.FetchedPartition | None:
        """Records from an offset on; None: it is below the log start. partition, offset: where."""
        asked = kafka.FetchRequest(
            correlation_id=0,
            replica_id=-1,
            max_wait=500_000_000,
            max_bytes=FETCH_BYTES,
            partitions=(kafka.FetchPartition(partition=self.key(partition), offset=offset, leader_epoch=-1),),
            read_committed=True,
        )
        answer: kafka.FetchedPartition = await self._of_leader(
            partition, asked, part=lambda whole: whole.partitions[0], known={ErrorCode.OFFSET_OUT_OF_RANGE}
        )
        return None if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE else answer

    async def cleanup_policy(self) -> str | None:
        """The setting; None where it is refused."""
        resource = DescribedResource(kind=ResourceKind.TOPIC, name=self.place.topic, keys=("cleanup.policy",))
        asked = DescribeConfigsRequest(correlation_id=0, resources=(resource,))
        answer = await self._repeat(self._any, asked, lambda whole: whole.resources[0], {*REFUSED})
        if answer.error is not ErrorCode.NONE:
            return None
        return next((one.value for one in answer.entries if one.name == "cleanup.policy"), None)

    async def committed(self, group: str) -> dict[int, int]:
        """What a group has committed, by partition. group: its id."""
        coordinator = await self._repeat(self._any, FindCoordinatorRequest(correlation_id=0, group_id=group))
        answer = await self._repeat(
            lambda attempt: coordinator.node, OffsetFetchRequest(correlation_id=0, group_id=group)
        )
        return {
            one.partition.partition: one.offset
            for one in answer.offsets
            if one.partition.topic == self.place.topic and one.offset >= 0
        }

    # ---- how they are asked

    async def _of_leader(
        self,
        partition: int,
        request: Any,
        part: Any = lambda whole: whole,
        known: set[ErrorCode] = frozenset(),  # type: ignore[assignment]
    ) -> Any:
        return await self._repeat(
            lambda attempt: self.leaders.get(partition, -1), request, part, known, partition
        )

    async def _repeat(
        self,
        broker: Any,
        request: Any,
        part: Any = lambda whole: whole,
        known: Any = frozenset(),
        partition: int | None = None,
    ) -> Any:
        """Ask until there is an answer. broker: whom, by the number of the attempt; part: of the answer that
        has the error; known: errors that are an answer."""
        translation, why = TRANSLATIONS[type(request)], "no leader"
        for attempt in range(TRIES):
            try:
                whole = await self.links.within(
                    broker(attempt), lambda link: translation.ask(link.dialogue, request), PATIENCE_S
                )
                answer = part(translation.tell(request, whole))
                if answer.error is ErrorCode.NONE or answer.error in known:
                    return answer
                why = str(answer.error)
                if answer.error not in AGAIN:
                    break
            except (OSError, TimeoutError, ProtocolError) as error:
                why = str(error) or type(error).__name__
            await asyncio.sleep(PAUSE_S)
            await self._look_again()
        raise self._failed(type(request).__name__.removesuffix("Request"), partition, why)

    def _any(self, attempt: int) -> int:
        brokers = sorted(self.links.addresses)
        return brokers[attempt % len(brokers)]

    async def _look_again(self) -> None:
        try:
            addresses, metadata = await look_around(self.place.bootstrap, self.place.access)
        except EnvironmentError_:
            return  # the next try says what is wrong
        self.links.addresses.update(addresses)
        self._take(metadata)

    def _failed(self, what: str, partition: int | None, why: str) -> EnvironmentError_:
        of = "" if partition is None else f" of partition {partition}"
        refused = any(why == str(one) for one in REFUSED)
        return EnvironmentError_(
            expected=f"an answer to {what}{of}",
            seen=why,
            where=f"the {self.place.word} {self.place.text}",
            hint="the user needs DESCRIBE and READ on the topic and DESCRIBE on the groups"
            if refused
            else "--resume goes on where this call ended",
        )


def same_partitions(source: TopicCluster, target: TopicCluster) -> None:
    """Raises FencepostError if one topic has a partition that the other has not. source, target: open."""
    counts: Mapping[str, int] = {one.place.word: len(one.leaders) for one in (source, target)}
    if source.leaders.keys() != target.leaders.keys():
        raise FencepostError(
            expected=f"as many partitions at the target as at the source, {counts['source']}",
            seen=str(counts["target"]),
            where=f"{source.place.text} and {target.place.text}",
            hint="with another count the records of a key are in other partitions, and nothing can be said "
            "of order or offsets",
        )
