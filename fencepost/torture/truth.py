"""The contents of a topic's log, read by our own client, never by the client that is judged.

Owns the read from one end to the other, with everything that a batch says about a record. Must not know what
was expected.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from fencepost.impl.log.batch.control_records import ControlType, control_type
from fencepost.impl.log.batch.record_batch import read_headers, read_records
from fencepost.impl.messages import broker_api as kafka
from fencepost.sim.scheduler import MILLISECOND
from fencepost.torture.protocol import DriverError
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.client import Access, Address, Link, look_around
from fencepost.wire.frames import ProtocolError
from fencepost.wire.outward import TRANSLATIONS

PATIENCE_S = 60.0
"""Longest read: leaders may still move when a run ends."""
FETCH_BYTES = 8 << 20
"""Of one fetch: a log of a scenario has about a megabyte."""
PAUSE_S = 0.05
COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"
OUTCOMES: Mapping[ControlType | None, str] = {ControlType.COMMIT: COMMITTED, ControlType.ABORT: ABORTED}
"""What a marker decides."""


@frozen(kw_only=True)
class Entry:
    """One record of a log."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    leader_epoch: int
    # Compression of its batch.
    codec: str
    # -1 without idempotence.
    producer_id: int
    producer_epoch: int
    sequence: int
    # Of its transaction: committed, aborted, or open as long as no marker is there; empty: it is in none.
    outcome: str = ""


Log = Mapping[int, tuple[Entry, ...]]
"""Records by partition."""


def addresses_of(bootstrap_servers: str) -> tuple[Address, ...]:
    """Host and port of each of HOST:PORT,..."""
    return tuple(
        (host, int(port)) for host, _, port in (one.rpartition(":") for one in bootstrap_servers.split(","))
    )


def read_log(bootstrap_servers: str, topic: str) -> Log:
    """All records of a topic up to its high watermarks. Raises DriverError if it cannot be read in time."""
    return asyncio.run(_read_topic(addresses_of(bootstrap_servers), topic))


def topics(bootstrap_servers: str) -> frozenset[str]:
    """The names of all topics, asked in a way that creates none.

    Raises: OSError, ProtocolError if no broker answers.
    """
    _, metadata = asyncio.run(look_around(addresses_of(bootstrap_servers), Access()))
    return frozenset(each.partition.topic for each in metadata.partitions)


async def _read_topic(bootstrap: tuple[Address, ...], topic: str) -> Log:
    why = "nothing"
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    addresses, metadata = await look_around(bootstrap, Access())
                    leaders = {
                        each.partition.partition: each.leader
                        for each in metadata.partitions
                        if each.partition.topic == topic
                    }
                    numbers = sorted(leaders)
                    read = [
                        _read_partition(addresses[leaders[number]], kafka.TopicPartition(topic, number))
                        for number in numbers
                    ]
                    if numbers:
                        return dict(zip(numbers, await asyncio.gather(*read), strict=True))
                    why = "no such topic"
                except (OSError, ProtocolError, KeyError, NotYetError) as error:
                    why = repr(error)
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        raise DriverError(
            expected=f"{topic} to be readable within {PATIENCE_S:g} s", seen=why, where="the final read"
        ) from None


class NotYetError(Exception):
    """The broker cannot answer now."""


async def _read_partition(address: Address, partition: kafka.TopicPartition) -> tuple[Entry, ...]:
    link = Link(address)
    await link.open()
    try:
        offset = (
            await ask(
                link,
                kafka.ListOffsetsRequest(correlation_id=0, partition=partition, timestamp=kafka.EARLIEST),
            )
        ).offset
        end = (
            await ask(
                link, kafka.ListOffsetsRequest(correlation_id=0, partition=partition, timestamp=kafka.LATEST)
            )
        ).offset
        entries: list[Entry] = []
        while offset < end:
            wanted = kafka.FetchRequest(
                correlation_id=0,
                replica_id=-1,
                max_wait=100 * MILLISECOND,
                max_bytes=FETCH_BYTES,
                partitions=(kafka.FetchPartition(partition=partition, offset=offset),),
            )
            (fetched,) = (await ask(link, wanted)).partitions
            if fetched.error is not ErrorCode.NONE:
                raise NotYetError(fetched.error)
            for entry, marker, after in _entries(fetched.records):
                if marker is not None and after > offset:
                    _decide(entries, *marker)
                if entry is not None and entry.offset >= offset:
                    entries.append(entry)
                offset = max(offset, after)
        return tuple(entries)
    finally:
        await link.close()


async def ask(link: Link, request: Any) -> Any:
    """The answer to a request of the core. Raises NotYetError for an error.

    Args:
        link: to the leader.
        request: the core's.
    """
    translation = TRANSLATIONS[type(request)]
    answer = translation.tell(request, await link.ask(translation.ask(link.dialogue, request)))
    error = getattr(answer, "error", ErrorCode.NONE)
    if error is not ErrorCode.NONE:
        raise NotYetError(error)
    return answer


def _decide(entries: list[Entry], producer_id: int, outcome: str) -> None:
    """A marker ends the open transaction of its producer id."""
    for place, entry in enumerate(entries):
        if entry.outcome == OPEN and entry.producer_id == producer_id:
            entries[place] = evolve(entry, outcome=outcome)


def _entries(data: bytes) -> Iterator[tuple[Entry | None, tuple[int, str] | None, int]]:
    """Each record, or None, the producer id and outcome of a marker, or None, and the offset after it."""
    for header in read_headers(data):
        after = header.base_offset + header.last_offset_delta + 1
        for record in read_records(data, header):
            offset = record.offset
            if header.is_control:
                kind = control_type(record)
                if kind in OUTCOMES:
                    yield None, (header.producer_id, OUTCOMES[kind]), offset + 1
                continue
            sequence = header.base_sequence + offset - header.base_offset if header.producer_id >= 0 else -1
            entry = Entry(
                offset=offset,
                key=record.key,
                value=record.value,
                headers=tuple((each.key, each.value) for each in record.headers),
                timestamp_ms=record.timestamp_ms,
                leader_epoch=header.leader_epoch,
                codec=header.codec,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                sequence=sequence,
                outcome=OPEN if header.is_transactional else "",
            )
            yield entry, None, offset + 1
        yield None, None, after
