"""Fetch."""

import asyncio
from functools import partial
from typing import Any

from fencepost.conformance.batches import good
from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.case_requests import fetch, fetch_answer, fetched, produce
from fencepost.conformance.lab import DELETE_RECORDS, FETCH, Lab, Topic, outcome


async def filled(lab: Lab, *, batches: int = 3, records: int = 2, size: int = 10) -> Topic:
    """A topic with so many batches."""
    topic = await lab.topic()
    for _ in range(batches):
        answer = await produce(lab, topic, good(*[b"v" * size] * records))
        assert answer["error"] == "NONE", answer
    return topic


async def _version(version: int, lab: Lab) -> Facts:
    topic = await filled(lab)
    answer = await fetch_answer(lab, topic, 0, version=version)
    (part,) = answer["responses"][0]["partitions"]
    batches = fetched(answer)[0]["batches"]
    part.pop("records")
    return [lab.facts(answer), batches]


in_versions("fetch.v%d_reads", "All of a log of three batches, in version %d.", range(4, 13), _version)


async def _at(offset: int, part: dict[str, Any], values: dict[str, Any], lab: Lab) -> Facts:
    return await outcome(fetch(lab, await filled(lab), offset, part=part, **values))


AT: dict[str, tuple[str, int, dict[str, Any], dict[str, Any]]] = {
    "from_the_middle_of_a_batch": ("From offset 3, in the middle of the second batch.", 3, {}, {}),
    "at_the_end": ("From the end of the log.", 6, {}, {}),
    "beyond_the_end": ("From one offset beyond the end.", 7, {}, {}),
    "far_beyond_the_end": ("From the largest offset.", (1 << 63) - 1, {}, {}),
    "negative_offset": ("From offset -1.", -1, {}, {}),
    "offset_minus_5": ("From offset -5.", -5, {}, {}),
    "partition_bytes_1": (
        "At most one byte of the partition: a whole batch comes all the same.",
        0,
        {"partition_max_bytes": 1},
        {},
    ),
    "partition_bytes_0": ("At most no byte of the partition.", 0, {"partition_max_bytes": 0}, {}),
    "partition_bytes_negative": ("At most -1 bytes of the partition.", 0, {"partition_max_bytes": -1}, {}),
    "partition_bytes_of_two_batches": (
        "At most 200 bytes of the partition; a batch has 85.",
        0,
        {"partition_max_bytes": 200},
        {},
    ),
    "max_bytes_1": ("At most one byte of all.", 0, {}, {"max_bytes": 1}),
    "max_bytes_0": ("At most no byte of all.", 0, {}, {"max_bytes": 0}),
    "max_bytes_negative": ("At most -1 bytes of all.", 0, {}, {"max_bytes": -1}),
    "min_bytes_0": (
        "At least no byte, from the end, waiting a minute at most.",
        6,
        {},
        {"min_bytes": 0, "max_wait": 5_000},
    ),
    "min_bytes_not_there": (
        "At least a megabyte, waiting 100 ms at most: what is there comes.",
        0,
        {},
        {"min_bytes": 1 << 20, "max_wait": 100},
    ),
    "negative_max_wait": ("Waiting -1 ms, from the end.", 6, {}, {"max_wait": -1}),
    "error_does_not_wait": (
        "An offset out of range, at least a megabyte, waiting 5 s at most.",
        99,
        {},
        {"min_bytes": 1 << 20, "max_wait": 5_000},
    ),
    "read_committed": ("With isolation level 1.", 0, {}, {"isolation_level": 1}),
    "isolation_level_7": ("With isolation level 7, which is none.", 0, {}, {"isolation_level": 7}),
    "unknown_partition": ("Of partition 9.", 0, {"partition": 9}, {}),
    "negative_partition": ("Of partition -1.", 0, {"partition": -1}, {}),
    "epoch_0": ("With current leader epoch 0, which it is.", 0, {"current_leader_epoch": 0}, {}),
    "unknown_epoch": ("With current leader epoch 99.", 0, {"current_leader_epoch": 99}, {}),
    "unknown_session": (
        "In a session that the broker does not know.",
        0,
        {},
        {"session_id": 12345, "session_epoch": 1},
    ),
    "session_id_0_with_epoch_5": (
        "Without a session, with session epoch 5.",
        0,
        {},
        {"session_id": 0, "session_epoch": 5},
    ),
    "new_session": (
        "A new session, which a broker may refuse to open.",
        0,
        {},
        {"session_id": 0, "session_epoch": 0},
    ),
    "a_rack": ("From the rack `nowhere`.", 0, {}, {"rack_id": "nowhere"}),
}

for _name, (_what, _offset, _part, _values) in AT.items():
    case(f"fetch.{_name}", f"{_what} The log has offsets 0 to 5 in three batches.")(
        partial(_at, _offset, _part, _values)
    )


@case("fetch.empty_log", "From offset 0 of a log without records.")
async def empty_log(lab: Lab) -> Facts:
    return await fetch(lab, await lab.topic(), 0)


@case("fetch.unknown_topic", "Of a topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    return await fetch(lab, (lab.fresh("topic"), await lab.link()), 0)


@case("fetch.empty_topic_name", "Of a topic with an empty name.")
async def empty_name(lab: Lab) -> Facts:
    return await outcome(fetch(lab, ("", await lab.link()), 0))


@case("fetch.of_nothing", "No topics, waiting 0 ms.")
async def nothing(lab: Lab) -> Facts:
    answer = await lab.ask(await lab.link(), FETCH, replica_id=-1, session_epoch=-1, topics=[], max_wait=0)
    return lab.facts(answer)


@case("fetch.from_a_broker_without_the_partition", "From a broker that has no replica of the partition.")
async def elsewhere(lab: Lab) -> Facts:
    topic = await filled(lab)
    found = await fetch(lab, (topic.name, await lab.other(topic.leader)), 0)
    return found["error"]


@case("fetch.fenced_epoch", "With current leader epoch 0 after the leader has changed.")
async def fenced(lab: Lab) -> Facts:
    topic = await lab.led_elsewhere()
    return await fetch(lab, topic, 0, part={"current_leader_epoch": 0})


@case("fetch.from_a_former_leader", "From the broker that led before, without an epoch.")
async def former(lab: Lab) -> Facts:
    topic = await lab.led_elsewhere()
    found = await fetch(lab, (topic.name, await lab.link()), 0)
    return found["error"]


@case("fetch.below_the_log_start", "From offset 0, after the records below offset 4 were deleted.")
async def below_start(lab: Lab) -> Facts:
    topic = await filled(lab)
    parts = [{"partition_index": 0, "offset": 4}]
    deleted = [{"name": topic.name, "partitions": parts}]
    await lab.ask(topic.leader, DELETE_RECORDS, topics=deleted, timeout=10_000)
    return [await fetch(lab, topic, offset) for offset in (0, 3, 4)]


@case("fetch.two_partitions_share_max_bytes", "Two partitions with records, at most one byte of all.")
async def share(lab: Lab) -> Facts:
    first = min(lab.run.brokers)
    topic = await lab.topic(assignments=[first, first])
    for partition in (0, 1):
        await produce(lab, topic, good(b"1"), partition=partition)
    wanted = [{"partition": each, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for each in (0, 1)]
    topics = [{"topic": topic.name, "partitions": wanted}]
    found = fetched(await fetch_answer(lab, topic, 0, max_bytes=1, topics=topics))
    return [each["error"] for each in found], sum(len(each["batches"]) for each in found)


@case("fetch.one_good_and_one_unknown_partition", "Partition 0, which is there, and 9, which is not.")
async def good_and_unknown(lab: Lab) -> Facts:
    topic = await filled(lab)
    wanted = [{"partition": each, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for each in (0, 9)]
    topics = [{"topic": topic.name, "partitions": wanted}]
    answer = await fetch_answer(lab, topic, 0, topics=topics)
    found = {part["partition_index"]: part["error_code"] for part in answer["responses"][0]["partitions"]}
    return [found.get(0), found.get(9)]


@case("fetch.waits_for_records", "From the end, waiting 10 s at most; a record is written meanwhile.")
async def waits(lab: Lab) -> Facts:
    topic = await lab.topic()
    waiting = lab.begin(fetch(lab, topic, 0, max_wait=10_000))
    await asyncio.sleep(0.05)
    (address,) = (each for each in lab.run.brokers.items() if each[1] == topic.leader.address)
    await produce(lab, (topic.name, await lab.link(address[0])), good(b"1"))
    return await waiting


async def _diverging(epoch: int, offset: int, lab: Lab) -> Facts:
    topic = await filled(lab)
    answer = await fetch_answer(
        lab, topic, offset, version=12, part={"last_fetched_epoch": epoch, "current_leader_epoch": 0}
    )
    (part,) = answer["responses"][0]["partitions"]
    return [part["error_code"], part["diverging_epoch"]]


case("fetch.last_fetched_epoch_agrees", "Version 12, from offset 2, last fetched epoch 0.")(
    partial(_diverging, 0, 2)
)
case("fetch.last_fetched_epoch_is_unknown", "Version 12, from offset 2, last fetched epoch 5.")(
    partial(_diverging, 5, 2)
)
