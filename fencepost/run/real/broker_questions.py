"""Questions to the brokers of a real system that are no operations of a history: topics made and deleted, who
leads, who controls.

Owns the requests. Must not know runs or plans. Each question has a time limit, because a broker may be
paused; the question then goes to the next broker.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from attrs import define, frozen

from fencepost.asked.broker_connections import Links
from fencepost.impl.messages.broker_api import MetadataRequest, PartitionMetadata
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.plan import TopicOptions
from fencepost.wire.frames import ProtocolError
from fencepost.wire.outward import TRANSLATIONS
from fencepost.wire.plain import plain, request

METADATA, CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_QUORUM = 3, 19, 20, 55
METADATA_TOPIC = "__cluster_metadata"
ANSWER_S = 1.0
"""Longest wait for one answer about who leads: a broker that stands still is passed over."""
ADMINISTRATION_S = 180.0
"""Longest wait until a topic is made. A machine with forty busy processes for two processors needed more than
twenty seconds now and then."""
PAUSE_S = 0.05
"""Between two attempts: a small part of an election."""


@frozen(kw_only=True)
class View:
    """What one broker says of some topics."""

    # Who says it.
    broker: int
    # -1: it names none.
    controller: int
    # The brokers that it knows to be alive.
    live: tuple[int, ...]
    partitions: tuple[PartitionMetadata, ...]


@define(eq=False)
class Asking(Links):
    """Questions, and the connections for them."""

    async def view(self, broker: int, *topics: str) -> View | None:
        """What a broker says of these topics; None if it does not answer."""
        asked = MetadataRequest(correlation_id=0, topics=topics)
        translation = TRANSLATIONS[MetadataRequest]
        try:
            answer = await self.within(broker, lambda link: translation.ask(link.dialogue, asked), ANSWER_S)
        except (OSError, ProtocolError, TimeoutError):
            return None
        self.addresses.update({each.node_id: (each.host, each.port) for each in answer.brokers})
        metadata = translation.tell(asked, answer)
        return View(
            broker=broker,
            controller=metadata.controller_id,
            live=metadata.live_brokers,
            partitions=tuple(each for each in metadata.partitions if each.partition.topic in topics),
        )

    async def quorum_leader(self, broker: int) -> int | None:
        """The active controller of a cluster with KRaft, as a broker says; None if it does not know, -1 if
        this is no cluster with KRaft."""
        topics = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
        try:
            async with asyncio.timeout(ANSWER_S):
                link = await self.link(broker)
            versions = link.dialogue.versions
            if versions is None or DESCRIBE_QUORUM not in versions.ranges:
                return -1
            answer = plain(
                await self.within(broker, request(DESCRIBE_QUORUM, 0, {"topics": topics}), ANSWER_S)
            )
        except (OSError, ProtocolError, TimeoutError):
            return None
        leaders = [part["leader_id"] for topic in answer["topics"] for part in topic["partitions"]]
        return leaders[0] if leaders and leaders[0] >= 0 else None

    async def create(self, name: str, options: TopicOptions, brokers: tuple[int, ...]) -> None:
        """Make a topic, each partition's replicas shifted by one, and wait until every broker names its
        leaders and full ISRs.

        Parameters:
          name: of the topic, instead of that in the options.
          options: its partitions and settings.
          brokers: all ids.
        Raises: EnvironmentError_ if it is not there in time.
        """
        body = {"topics": [_topic(name, options, brokers)], "timeout": 5_000, "validate_only": False}
        deadline, why = asyncio.get_running_loop().time() + ADMINISTRATION_S, "no answer"
        for broker in _turns(brokers):
            if asyncio.get_running_loop().time() > deadline:
                break
            await self._learn_of(broker)
            why = await self._create_once(broker, name, body)
            if why in ("NONE", "TOPIC_ALREADY_EXISTS"):
                why = "some broker does not name its leaders yet"
                if await self._known(name, options, brokers, deadline):
                    return
            await asyncio.sleep(PAUSE_S)
        raise EnvironmentError_(
            expected=f"the new topic {name} within {ADMINISTRATION_S:.0f} s", seen=why, where="the cluster"
        )

    async def _create_once(self, broker: int, name: str, body: dict[str, Any]) -> str:
        """Ask one broker for a topic; the name of the error. A fake without CreateTopics makes a topic, with
        as many partitions as it likes, when somebody wants to know about it."""
        try:
            async with asyncio.timeout(ANSWER_S):
                versions = (await self.link(broker)).dialogue.versions
            if versions is not None and CREATE_TOPICS not in versions.ranges:
                wanted = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
                await self.within(broker, request(METADATA, 8, wanted), ANSWER_S)
                return "NONE"
            answer = plain(await self.within(broker, request(CREATE_TOPICS, 4, body), 6.0))
            return str(answer["topics"][0]["error_code"])
        except (OSError, ProtocolError, TimeoutError) as error:
            return str(error) or type(error).__name__

    async def _known(
        self, name: str, options: TopicOptions, brokers: tuple[int, ...], deadline: float
    ) -> bool:
        for broker in brokers:
            while True:
                view = await self.view(broker, name)
                if view is not None and len(view.partitions) >= options.partitions and _whole(view):
                    break
                if asyncio.get_running_loop().time() > deadline:
                    return False
                await self._learn_of(broker)
                await asyncio.sleep(PAUSE_S)
        return True

    async def _learn_of(self, broker: int) -> None:
        """Ask the others for the address of a broker, if nobody has named it yet."""
        for known in () if broker in self.addresses else tuple(self.addresses):
            await self.view(known)

    async def delete(self, name: str, brokers: tuple[int, ...]) -> bool:
        """Delete a topic.

        Args:
            name: of the topic.
            brokers: to ask, one after the other.

        Returns:
            Whether a broker took the request.
        """
        body = {"topic_names": [name], "timeout": 5_000}
        for broker in brokers:
            try:
                answer = plain(await self.within(broker, request(DELETE_TOPICS, 3, body), 6.0))
            except (OSError, ProtocolError, TimeoutError):
                continue
            if answer["responses"][0]["error_code"] in ("NONE", "UNKNOWN_TOPIC_OR_PARTITION"):
                return True
        return False


def _turns(brokers: tuple[int, ...]) -> Iterator[int]:
    """All brokers, again and again; the caller has a time limit."""
    while True:
        yield from brokers


def _whole(view: View) -> bool:
    return all(each.leader >= 0 and set(each.isr) == set(each.replicas) for each in view.partitions)


def _topic(name: str, options: TopicOptions, brokers: tuple[int, ...]) -> dict[str, Any]:
    count = len(brokers)
    flush = {"flush.messages": str(options.flush_messages)} if options.flush_messages else {}
    settings = {
        **flush,
        "min.insync.replicas": str(options.min_insync_replicas),
        "unclean.leader.election.enable": str(options.unclean_leader_election).lower(),
    }
    return {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {
                "partition_index": number,
                "broker_ids": [
                    brokers[(number + place) % count] for place in range(options.replication_factor)
                ],
            }
            for number in range(options.partitions)
        ],
        "configs": [{"name": key, "value": value} for key, value in settings.items()],
    }
