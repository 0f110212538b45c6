"""What a case works with: connections to the brokers, fresh topics and groups, and answers as facts.

Owns the connections of one case and the names of everything that was made in a run. Must not know what a case
asks, or what the right answer is. Nothing of a run is left: topics and groups are deleted at its end.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

from attrs import define, field, frozen

from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.client import CONNECT_S, Access, Address, Link
from fencepost.wire.frames import LENGTH_SIZE, ProtocolError, framed
from fencepost.wire.plain import plain, request
from fencepost.wire.versions import APIS

T = TypeVar("T")

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE_GROUPS, LIST_GROUPS = 11, 12, 13, 14, 15, 16
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS, DELETE_GROUPS = 19, 20, 21, 37, 42
REASSIGN = 45
ANSWER_S = 15.0
"""Longest wait for one answer: above every wait that a case requests."""
CLOSES_S = 5.0
"""Longest wait until a broker closes a connection that it should close."""
READY_S = 20.0
POLL_S = 0.02
KEEP = {"retention.ms": "-1"}
"""The records here have old times."""
NOT_PROMISED = frozenset(
    {
        *("throttle_time", "error_message", "batch_index_error_message", "host", "port", "rack", "node_id"),
        *("broker_id", "leader_id", "cluster_id", "controller_id", "member_id", "leader", "producer_id"),
        *("log_append_time", "client_host", "client_id", "log_dir", "session_id", "leader_epoch_of_broker"),
        *("snapshot_id", "current_leader", "preferred_read_replica", "documentation", "node_endpoints"),
    }
)
"""Fields that differ from broker to broker, and are no promise."""
COUNTED = frozenset({"replica_nodes", "isr_nodes", "offline_replicas", "brokers"})
"""Arrays that count, but for what is in them."""
WAITING = frozenset({"COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"})


class NotSpokenError(Exception):
    """The broker does not advertise the version that a case asks for, or the cluster is too small for it."""


class RefusedError(Exception):
    """The broker refused what a case needs first; that is its answer."""


@frozen
class Topic:
    """A topic of a case, and a connection to the leader of its partition 0."""

    name: str
    leader: Link


@define(eq=False, kw_only=True)
class Run:
    """What the cases of one run share."""

    # Addresses to ask for the cluster's brokers.
    bootstrap: tuple[Address, ...]
    # How to connect: TLS and SASL.
    access: Access = field(factory=Access)
    # Begins every name that is made.
    name: str = "conformance"
    # Address of each broker, by node id.
    brokers: dict[int, Address] = field(factory=dict)
    # Node id of the controller; -1: unknown.
    controller: int = -1
    # None: the broker names none.
    cluster_id: str | None = None
    # Versions that the broker advertises, by API key.
    ranges: dict[int, tuple[int, int]] = field(factory=dict)
    # Topics that the cases have made.
    topics: set[str] = field(factory=set)
    # Topics that are still there after all were deleted.
    left: list[str] = field(factory=list)
    # Groups that the cases have made.
    groups: set[str] = field(factory=set)
    # Held by a case that looks at the group of no characters, or makes it: it has no fresh name.
    nameless: asyncio.Lock = field(factory=asyncio.Lock)
    # Numbers for fresh names.
    numbers: "itertools.count[int]" = field(factory=lambda: itertools.count(1))

    async def look(self) -> None:
        """Ask for brokers and versions. Raises EnvironmentError_ if no broker answers."""
        reasons = []
        for address in self.bootstrap:
            link = Link(address, self.access)
            try:
                await link.open()
                assert link.dialogue.versions is not None
                self.ranges = dict(link.dialogue.versions.ranges)
                answer = plain(await link.ask(request(METADATA, self.best(METADATA), {"topics": []})))
            except (OSError, ProtocolError, TimeoutError) as error:
                reasons.append(f"{address[0]}:{address[1]}: {error or type(error).__name__}")
                continue
            finally:
                await link.close()
            self.brokers = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
            self.controller = answer.get("controller_id", -1)
            self.cluster_id = answer.get("cluster_id")
            return
        raise EnvironmentError_(
            expected="a Kafka broker that answers", seen="; ".join(reasons), where="the bootstrap servers"
        )

    def best(self, key: int) -> int:
        """The highest version that both sides speak. Raises NotSpokenError."""
        mine, (low, high) = APIS[key], self.ranges.get(key, (0, -1))
        version = min(mine.highest, high)
        if version < max(low, mine.lowest, mine.lowest_decoded):
            raise NotSpokenError(f"{mine.name}: the broker speaks {low} to {high}")
        return version

    def checked(self, key: int, version: int) -> int:
        """This version. Raises NotSpokenError if the broker does not advertise it."""
        low, high = self.ranges.get(key, (0, -1))
        if not low <= version <= high:
            raise NotSpokenError(f"{APIS[key].name} version {version}: the broker speaks {low} to {high}")
        return version


@define(eq=False)
class Lab:
    """The connections and fresh names of one case."""

    run: Run
    _links: list[Link] = field(factory=list)
    _writers: list[asyncio.StreamWriter] = field(factory=list)
    # What the case has begun.
    _begun: list[asyncio.Future[Any]] = field(factory=list)
    # What replaces a name of this run in the facts.
    _shown: dict[str, str] = field(factory=dict)

    # ---- connections

    async def link(self, broker: int | None = None) -> Link:
        """A new connection to a broker, or to the first one."""
        known = self.run.brokers
        link = Link(known[min(known) if broker is None else broker], self.run.access)
        self._links.append(link)
        await link.open()
        return link

    async def other(self, link: Link) -> Link:
        """A connection to another broker. Raises NotSpokenError where there is none."""
        for broker, address in sorted(self.run.brokers.items()):
            if address != link.address:
                return await self.link(broker)
        raise NotSpokenError("one broker; the case wants two")

    async def controller(self) -> Link:
        """A connection to the controller, or, with KRaft, to any broker."""
        return await self.link(self.run.controller if self.run.controller in self.run.brokers else None)

    async def raw(self) -> "Raw":
        """A connection to the first broker that knows no protocol."""
        return await self._raw(*self.run.brokers[min(self.run.brokers)])

    async def raw_to(self, link: Link) -> "Raw":
        """The same, to the broker that a link goes to."""
        return await self._raw(*link.address)

    async def _raw(self, host: str, port: int) -> "Raw":
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=self.run.access.tls, server_hostname=host if self.run.access.tls else None
            )
        if self.run.access.user:
            raise NotSpokenError("bytes by hand on a listener that wants a user")
        self._writers.append(writer)
        return Raw(reader, writer)

    async def close(self) -> None:
        """End every connection, and what was begun and not waited for."""
        for begun in self._begun:
            begun.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                await link.close()

    # ---- questions

    async def ask(self, link: Link, key: int, version: int | None = None, /, **values: Any) -> Any:
        """The answer as plain data. link: the connection; key: of the API; version: of the request, None for
        the newest; values: the request's fields. Raises OSError if the broker closes the connection,
        TimeoutError."""
        chosen = self.run.best(key) if version is None else self.run.checked(key, version)
        async with asyncio.timeout(ANSWER_S):
            return plain(await link.ask(request(key, chosen, values)))

    def begin(self, asked: Awaitable[T]) -> "asyncio.Future[T]":
        """Ask while the case goes on. asked: what is waited for; it ends with the case."""
        begun = asyncio.ensure_future(asked)
        self._begun.append(begun)
        return begun

    def facts(self, value: Any) -> Any:
        """What the protocol promises of an answer: without ids, times, ports and texts, and with names that
        do not change from run to run."""
        if isinstance(value, Mapping):
            return {
                name: len(each) if name in COUNTED and isinstance(each, list) else self.facts(each)
                for name, each in value.items()
                if name not in NOT_PROMISED
            }
        if isinstance(value, list):
            return [self.facts(each) for each in value]
        return self._shown.get(value, value) if isinstance(value, str) else value

    # ---- fresh names and topics

    def fresh(self, what: str) -> str:
        """An unused name. It is deleted at the end, as a topic and as a group."""
        name = f"{self.run.name}-{what}-{next(self.run.numbers)}"
        kind = self.run.groups if what == "group" else self.run.topics
        kind.add(name)
        self._shown[name] = f"{what}-{sum(each.startswith(what) for each in self._shown.values()) + 1}"
        return name

    async def topic(
        self, partitions: int = 1, configs: Mapping[str, str] | None = None, assignments: Any = ()
    ) -> Topic:
        """A topic of replication factor 1 that can be written to. assignments: broker of each partition."""
        name, link = self.fresh("topic"), await self.controller()
        wanted: dict[str, Any] = {
            "name": name,
            "num_partitions": -1 if assignments else partitions,
            "replication_factor": -1 if assignments else 1,
            "assignments": [
                {"partition_index": index, "broker_ids": [broker]} for index, broker in enumerate(assignments)
            ],
            "configs": [
                {"name": each, "value": value} for each, value in {**KEEP, **(configs or {})}.items()
            ],
        }
        answer = await self.ask(link, CREATE_TOPICS, topics=[wanted], timeout=10_000)
        error = answer["topics"][0]["error_code"]
        if error != "NONE":
            raise RefusedError(f"a topic with {dict(configs or {})}: {error}")
        return await self.opened(name, len(assignments) or partitions)

    async def opened(self, name: str, partitions: int = 1) -> Topic:
        """Wait until every partition of a topic has a leader, and every broker knows it: a leader may serve
        reads before its own metadata has the topic, and refuse writes. name: of the topic; partitions: how
        many it has."""
        deadline = asyncio.get_running_loop().time() + READY_S
        links = {broker: await self.link(broker) for broker in sorted(self.run.brokers)}
        while True:
            leaders = [await self.leaders(name, link) for link in links.values()]
            known = leaders[0]
            led = len(known) == partitions and min(known.values(), default=-1) >= 0
            if led and all(each == known for each in leaders) and await self._lead(name, known, links):
                return Topic(name, links[known[0]])
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"{name} has no leader after {READY_S:.0f} s")
            await asyncio.sleep(POLL_S)

    async def _lead(self, name: str, leaders: Mapping[int, int], links: Mapping[int, Link]) -> bool:
        for partition, broker in leaders.items():
            parts = [{"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}]
            topics = [{"name": name, "partitions": parts}]
            answer = await self.ask(links[broker], LIST_OFFSETS, replica_id=-1, topics=topics)
            if answer["topics"][0]["partitions"][0]["error_code"] != "NONE":
                return False
        return True

    async def leaders(self, name: str, link: Link | None = None) -> dict[int, int]:
        """The leader of each partition, as a broker knows them. name: of the topic; link: the connection to
        ask, None for the first broker's."""
        asked = link or await self.link()
        values = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        answer = await self.ask(asked, METADATA, **values)
        (topic,) = answer["topics"]
        return {each["partition_index"]: each["leader_id"] for each in topic["partitions"]}

    async def led_elsewhere(self) -> Topic:
        """A topic with a former leader change, so that its leader epoch is above 0. Raises NotSpokenError if
        there is only one broker."""
        if len(self.run.brokers) < 2:
            raise NotSpokenError("one broker; the case wants two")
        first, second, *_ = sorted(self.run.brokers)
        topic = await self.topic(assignments=[first])
        parts = [{"partition_index": 0, "replicas": [second]}]
        topics = [{"name": topic.name, "partitions": parts}]
        await self.ask(await self.controller(), REASSIGN, topics=topics, timeout=10_000)
        deadline = asyncio.get_running_loop().time() + READY_S
        while (await self.leaders(topic.name)).get(0) != second:
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError("the partition has not moved")
            await asyncio.sleep(POLL_S)
        return await self.opened(topic.name)

    async def everywhere(self, ask: Callable[[Link], Awaitable[Any]]) -> Any:
        """The answer of the first broker that does not call itself the wrong one: of what no coordinator can
        be looked up for."""
        answer = None
        for broker in sorted(self.run.brokers):
            answer = await ask(await self.link(broker))
            if "NOT_COORDINATOR" not in str(answer):
                return answer
        return answer

    async def group(self) -> tuple[str, Link]:
        """A name for a group, and a connection to the coordinator that serves it."""
        return await self.coordinated(self.fresh("group"))

    async def coordinated(self, name: str) -> tuple[str, Link]:
        """The same for a name that is known."""
        link, deadline = await self.link(), asyncio.get_running_loop().time() + READY_S
        while asyncio.get_running_loop().time() < deadline:
            found = await self.ask(link, FIND_COORDINATOR, key=name, key_type=0)
            if found["error_code"] == "NONE":
                coordinator = await self.link(found["node_id"])
                beat = await self.ask(coordinator, HEARTBEAT, group_id=name, generation_id=0, member_id="x")
                if beat["error_code"] not in WAITING:
                    return name, coordinator
            await asyncio.sleep(POLL_S)
        raise TimeoutError(f"no coordinator for {name} after {READY_S:.0f} s")


@define(eq=False)
class Raw:
    """A connection of bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.writer.write(data)

    def send_frame(self, body: bytes) -> None:
        """Bytes with their length."""
        self.send(framed(body))

    async def frame(self) -> bytes | None:
        """The next frame; None if the broker closed the connection. Raises TimeoutError."""
        try:
            async with asyncio.timeout(CLOSES_S):
                head = await self.reader.readexactly(LENGTH_SIZE)
                return await self.reader.readexactly(int.from_bytes(head, "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def end(self) -> str:
        """What happens next: answered, closed, or open (nothing, for a while)."""
        try:
            return "closed" if await self.frame() is None else "answered"
        except TimeoutError:
            return "open"


async def outcome(asked: Awaitable[Any]) -> Any:
    """What is answered, or "closed"."""
    try:
        return await asked
    except TimeoutError:  # an OSError, too
        raise
    except OSError:
        return "closed"


def parts_of(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The partitions of an answer, under any name that its API gives their array."""
    for topic in answer.get("topics") or answer.get("responses") or ():
        yield from topic.get("partitions") or topic.get("partition_responses") or ()
