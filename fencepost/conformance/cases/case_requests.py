"""Requests that many cases send."""

from typing import Any

from fencepost.conformance.lab import FETCH, LIST_OFFSETS, PRODUCE, Lab, Topic, parts_of
from fencepost.wire.client import Link

LATEST, EARLIEST = -1, -2
MEBIBYTE = 1 << 20
Json = dict[str, Any]


async def produce(
    lab: Lab,
    topic: Topic | tuple[str, Link],
    data: bytes | None,
    *,
    acks: int = -1,
    version: int | None = None,
    partition: int = 0,
    timeout: int = 10_000,
    transactional_id: str | None = None,
) -> Json:
    """Error and base offset of one partition's part."""
    name, link = (topic.name, topic.leader) if isinstance(topic, Topic) else topic
    parts = [{"index": partition, "records": data}]
    answer = await lab.ask(
        link,
        PRODUCE,
        version,
        acks=acks,
        timeout=timeout,
        transactional_id=transactional_id,
        topic_data=[{"name": name, "partition_data": parts}],
    )
    (part,) = parts_of(answer)
    return {"error": part["error_code"], "base_offset": part["base_offset"]}


async def fetch_answer(
    lab: Lab,
    topic: Topic | tuple[str, Link],
    offset: int,
    *,
    version: int | None = None,
    part: Json | None = None,
    **values: Any,
) -> Any:
    """The whole answer about partition 0, as plain data. topic: or its name with the connection to ask;
    offset: to fetch from; version: of the request, None for the newest; part: other fields of the partition;
    values: other fields of the request."""
    name, link = (topic.name, topic.leader) if isinstance(topic, Topic) else topic
    wanted = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": MEBIBYTE,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        **(part or {}),
    }
    asked = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": MEBIBYTE,
        "session_epoch": -1,
        "topics": [{"topic": name, "partitions": [wanted]}],
        **values,
    }
    return await lab.ask(link, FETCH, version, **asked)


def fetched(answer: Any) -> list[Json]:
    """For each partition: error, bounds, and the batches as [first offset, last offset, records]."""
    from fencepost.conformance.batches import shape

    return [
        {
            "error": part["error_code"],
            "high_watermark": part["high_watermark"],
            "log_start_offset": part.get("log_start_offset"),
            "batches": shape(bytes.fromhex(part["records"] or "")),
        }
        for part in parts_of(answer)
    ]


async def fetch(lab: Lab, topic: Topic | tuple[str, Link], offset: int, **more: Any) -> Any:
    """The facts of a fetch of partition 0. topic, offset, more: as of `fetch_answer`."""
    found = fetched(await fetch_answer(lab, topic, offset, **more))
    return found[0] if len(found) == 1 else found


async def list_offset(
    lab: Lab, topic: Topic | tuple[str, Link], time: int, *, part: Json | None = None, **values: Any
) -> Json:
    """Error, offset and time of one answer."""
    name, link = (topic.name, topic.leader) if isinstance(topic, Topic) else topic
    wanted = {"partition_index": 0, "timestamp": time, "current_leader_epoch": -1, **(part or {})}
    topics = [{"name": name, "partitions": [wanted]}]
    answer = await lab.ask(link, LIST_OFFSETS, None, replica_id=-1, topics=topics, **values)
    found = list(parts_of(answer))
    (one,) = found or [{}]
    return {name: one.get(name) for name in ("error_code", "offset", "timestamp")}
