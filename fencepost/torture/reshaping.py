"""A topic changes while clients use it: half of a partition is deleted, there is a partition more, or the
topic is deleted.

Owns the requests, made by our own client. Must not know what clients make of it: a position below the new
start of a log is out of range, and their `offset_reset` says where they go on; a new partition is found with
the next metadata.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fencepost.impl.messages import broker_api as kafka
from fencepost.torture.truth import NotYetError, addresses_of, ask
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.client import Access, Address, Link, look_around
from fencepost.wire.frames import ProtocolError
from fencepost.wire.plain import error_code, request

DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS, VERSION = 20, 21, 37, 1
TIMEOUT_MS = 2_000
"""Of the request: its leader waits so long for the other replicas."""
PATIENCE_S = 5.0
"""Longest time of all attempts: leaders may move."""
GONE_S = 40.0
"""Longest time until a topic is deleted: it needs every replica, and brokers may be down until the heal."""
PAUSE_S = 0.05


def delete_half(bootstrap_servers: str, topic: str, partition: int) -> int:
    """Delete the first half of what is in a partition now.

    Args:
        bootstrap_servers: HOST:PORT,... of the brokers.
        topic: of the partition.
        partition: its number.

    Returns:
        The new start of its log.

    Raises:
        EnvironmentError_: if no attempt succeeded within PATIENCE_S.
    """
    key = kafka.TopicPartition(topic, partition)

    async def attempt(addresses: Mapping[int, Address], metadata: kafka.MetadataResponse) -> int:
        return await _delete(addresses[_found(metadata, key).leader], key)

    return asyncio.run(_in_time(bootstrap_servers, attempt, f"half of {key} to be deleted"))


def grow(bootstrap_servers: str, topic: str, partitions: int) -> int:
    """Add partitions to a topic.

    Args:
        bootstrap_servers: HOST:PORT,... of the brokers.
        topic: its name.
        partitions: how many it has then.

    Returns:
        The same number.

    Raises:
        EnvironmentError_: if no attempt succeeded within PATIENCE_S.
    """

    async def attempt(addresses: Mapping[int, Address], metadata: kafka.MetadataResponse) -> int:
        if sum(each.partition.topic == topic for each in metadata.partitions) < partitions:
            rows = [{"name": topic, "count": partitions, "assignments": None}]
            body: dict[str, Any] = {"topics": rows, "timeout": TIMEOUT_MS, "validate_only": False}
            async with _linked(addresses[metadata.controller_id]) as link:
                (row,) = (await link.ask(request(CREATE_PARTITIONS, VERSION, body))).results
            if row.error_code:
                raise NotYetError(row.error_code)
        return partitions

    return asyncio.run(_in_time(bootstrap_servers, attempt, f"{topic} with {partitions} partitions"))


def delete(bootstrap_servers: str, topic: str) -> int:
    """Delete a topic; when this returns it is gone.

    Args:
        bootstrap_servers: HOST:PORT,... of the brokers.
        topic: its name.

    Returns:
        How many partitions are left of it: 0.

    Raises:
        EnvironmentError_: if no attempt succeeded within GONE_S.
    """

    async def attempt(addresses: Mapping[int, Address], metadata: kafka.MetadataResponse) -> int:
        body: dict[str, Any] = {"topic_names": [topic], "timeout": TIMEOUT_MS}
        async with _linked(addresses[metadata.controller_id]) as link:
            (row,) = (await link.ask(request(DELETE_TOPICS, VERSION, body))).responses
        if row.error_code and row.error_code != error_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise NotYetError(row.error_code)
        return 0

    return asyncio.run(_in_time(bootstrap_servers, attempt, f"{topic} to be deleted", GONE_S))


def wait_until_alone(bootstrap_servers: str, topic: str, partition: int) -> int:
    """Wait until nobody but a partition's leader is in sync.

    Args:
        bootstrap_servers: HOST:PORT,... of the brokers.
        topic: of the partition.
        partition: its number.

    Returns:
        The leader.

    Raises:
        EnvironmentError_: if others are in sync after PATIENCE_S.
    """
    key = kafka.TopicPartition(topic, partition)

    async def attempt(_: Mapping[int, Address], metadata: kafka.MetadataResponse) -> int:
        found = _found(metadata, key)
        if len(found.isr) != 1:
            raise NotYetError(found.isr)
        return int(found.leader)

    return asyncio.run(_in_time(bootstrap_servers, attempt, f"{key} with one replica in sync"))


def _found(metadata: kafka.MetadataResponse, key: kafka.TopicPartition) -> Any:
    """A partition's row; a broker leaves one without a leader out. Raises NotYetError."""
    for row in metadata.partitions:
        if row.partition == key:
            return row
    raise NotYetError(key)


Attempt = Callable[[Mapping[int, Address], kafka.MetadataResponse], Awaitable[int]]


async def _in_time(
    bootstrap_servers: str, attempt: Attempt, expected: str, patience_s: float = PATIENCE_S
) -> int:
    """Try until it succeeds: leaders and the controller may move."""
    why = "nothing"
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    return await attempt(*await look_around(addresses_of(bootstrap_servers), Access()))
                except (OSError, ProtocolError, KeyError, NotYetError) as error:
                    why = repr(error)
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        raise EnvironmentError_(
            expected=f"{expected} within {patience_s:g} s", seen=why, where="the brokers"
        ) from None


@asynccontextmanager
async def _linked(address: Address) -> AsyncIterator[Link]:
    link = Link(address)
    await link.open()
    try:
        yield link
    finally:
        await link.close()


async def _delete(leader: Address, key: kafka.TopicPartition) -> int:
    async with _linked(leader) as link:
        ends = [
            (await ask(link, kafka.ListOffsetsRequest(correlation_id=0, partition=key, timestamp=end))).offset
            for end in (kafka.EARLIEST, kafka.LATEST)
        ]
        middle = sum(ends) // 2
        rows = [{"partition_index": key.partition, "offset": middle}]
        body: dict[str, Any] = {"topics": [{"name": key.topic, "partitions": rows}], "timeout": TIMEOUT_MS}
        answer = await link.ask(request(DELETE_RECORDS, VERSION, body))
    ((row,),) = (topic.partitions for topic in answer.topics)
    if row.error_code:
        raise NotYetError(row.error_code)
    return int(middle)
