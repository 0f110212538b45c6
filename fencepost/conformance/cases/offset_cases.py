"""ListOffsets and DeleteRecords: where a log begins and ends."""

from functools import partial
from typing import Any

from fencepost.conformance.batches import TIME_MS, Batch, Rec, good
from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.case_requests import EARLIEST, LATEST, list_offset, produce
from fencepost.conformance.cases.fetch_cases import filled
from fencepost.conformance.lab import DELETE_RECORDS, LIST_OFFSETS, Lab, Topic, outcome, parts_of

STEP = tuple(Rec(delta=place, time=10 * place) for place in range(3))


async def _version(version: int, lab: Lab) -> Facts:
    topic, answers = await filled(lab), []
    for time in (EARLIEST, LATEST, TIME_MS):
        parts = [{"partition_index": 0, "timestamp": time, "current_leader_epoch": -1}]
        topics = [{"name": topic.name, "partitions": parts}]
        answers.append(await lab.ask(topic.leader, LIST_OFFSETS, version, replica_id=-1, topics=topics))
    return lab.facts(answers)


in_versions("list_offsets.v%d", "Both ends of a log, and a time, in version %d.", range(1, 7), _version)


async def _time(time: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    await produce(lab, topic, Batch(records=STEP).encoded())
    return await outcome(list_offset(lab, topic, time))


TIMES = {
    "first_time": ("The time of the first record.", TIME_MS),
    "time_before_all": ("A time before all records.", 5),
    "time_0": ("The time 0.", 0),
    "time_between": ("A time between the first and the second record.", TIME_MS + 3),
    "time_of_the_last": ("The time of the last record.", TIME_MS + 20),
    "time_after_all": ("A time after all records.", TIME_MS + 21),
    "earliest": ("The first offset.", EARLIEST),
    "latest": ("The end.", LATEST),
    "max_timestamp": ("The record of the largest time, -3, which version 7 brought.", -3),
    "earliest_local": ("The first local offset, -4, which version 8 brought.", -4),
    "time_minus_9": ("The time -9, which means nothing.", -9),
}
for _name, (_what, _wanted) in TIMES.items():
    case(f"list_offsets.{_name}", f"{_what} Three records, 10 ms apart, in one batch.")(
        partial(_time, _wanted)
    )


async def _part(part: dict[str, Any], lab: Lab) -> Facts:
    return await list_offset(lab, await filled(lab), LATEST, part=part)


case("list_offsets.unknown_partition", "The end of partition 9.")(partial(_part, {"partition_index": 9}))
case("list_offsets.negative_partition", "The end of partition -1.")(partial(_part, {"partition_index": -1}))
case("list_offsets.unknown_epoch", "The end, with current leader epoch 99.")(
    partial(_part, {"current_leader_epoch": 99})
)
case("list_offsets.epoch_0", "The end, with current leader epoch 0, which it is.")(
    partial(_part, {"current_leader_epoch": 0})
)


@case("list_offsets.fenced_epoch", "The end, with current leader epoch 0 after the leader has changed.")
async def fenced(lab: Lab) -> Facts:
    return await list_offset(lab, await lab.led_elsewhere(), LATEST, part={"current_leader_epoch": 0})


async def _empty(time: int, lab: Lab) -> Facts:
    return await list_offset(lab, await lab.topic(), time)


case("list_offsets.empty_log_earliest", "The first offset of a log without records.")(
    partial(_empty, EARLIEST)
)
case("list_offsets.empty_log_latest", "The end of a log without records.")(partial(_empty, LATEST))
case("list_offsets.empty_log_time", "A time, in a log without records.")(partial(_empty, TIME_MS))


@case("list_offsets.unknown_topic", "The end of a topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    return await list_offset(lab, (lab.fresh("topic"), await lab.link()), LATEST)


@case("list_offsets.from_a_broker_that_does_not_lead", "The end, from a broker without a replica.")
async def elsewhere(lab: Lab) -> Facts:
    topic = await filled(lab)
    return await list_offset(lab, (topic.name, await lab.other(topic.leader)), LATEST)


@case("list_offsets.read_committed", "The end with isolation level 1.")
async def committed(lab: Lab) -> Facts:
    return await list_offset(lab, await filled(lab), LATEST, isolation_level=1)


@case("list_offsets.partition_twice", "One partition twice in a request: the end and the first offset.")
async def twice(lab: Lab) -> Facts:
    topic = await filled(lab)
    parts = [
        {"partition_index": 0, "timestamp": time, "current_leader_epoch": -1} for time in (LATEST, EARLIEST)
    ]
    topics = [{"name": topic.name, "partitions": parts}]
    answer = await lab.ask(topic.leader, LIST_OFFSETS, replica_id=-1, topics=topics)
    return sorted((part["error_code"], part["offset"]) for part in parts_of(answer))


@case("list_offsets.of_nothing", "No topics.")
async def nothing(lab: Lab) -> Facts:
    return lab.facts(await lab.ask(await lab.link(), LIST_OFFSETS, replica_id=-1, topics=[]))


# ---- DeleteRecords


async def _delete(lab: Lab, topic: Topic, offset: int, partition: int = 0, version: int | None = None) -> Any:
    parts = [{"partition_index": partition, "offset": offset}]
    topics = [{"name": topic.name, "partitions": parts}]
    answer = await lab.ask(topic.leader, DELETE_RECORDS, version, topics=topics, timeout=10_000)
    return lab.facts(answer)["topics"][0]["partitions"]


async def _deleted(offset: int, partition: int, version: int | None, lab: Lab) -> Facts:
    topic = await filled(lab)
    answer = await _delete(lab, topic, offset, partition, version)
    return [answer, (await list_offset(lab, topic, EARLIEST))["offset"]]


DELETIONS: dict[str, tuple[str, int, int, int | None]] = {
    "v0": ("Below offset 2, in version 0.", 2, 0, 0),
    "v1": ("Below offset 2, in version 1.", 2, 0, 1),
    "in_the_middle_of_a_batch": ("Below offset 3.", 3, 0, None),
    "to_the_end": ("All: offset -1 means the high watermark.", -1, 0, None),
    "to_offset_0": ("Below offset 0: nothing.", 0, 0, None),
    "beyond_the_end": ("Below offset 7, beyond the end.", 7, 0, None),
    "offset_minus_2": ("Below offset -2.", -2, 0, None),
    "unknown_partition": ("Of partition 9.", 1, 9, None),
}
for _name, (_what, _offset, _partition, _in) in DELETIONS.items():
    case(f"delete_records.{_name}", f"{_what} The log has offsets 0 to 5; then its first offset.")(
        partial(_deleted, _offset, _partition, _in)
    )


@case("delete_records.again_below_the_start", "Below offset 4, then below offset 2.")
async def again(lab: Lab) -> Facts:
    topic = await filled(lab)
    return [await _delete(lab, topic, offset) for offset in (4, 2)]


@case("delete_records.unknown_topic", "Of a topic that is not there.")
async def delete_unknown(lab: Lab) -> Facts:
    return await _delete(lab, Topic(lab.fresh("topic"), await lab.link()), 1)


@case("delete_records.of_a_compacted_topic", "Of a topic that is compacted only.")
async def compacted(lab: Lab) -> Facts:
    topic = await lab.topic(configs={"cleanup.policy": "compact"})
    await produce(lab, topic, good(b"1", key=b"k"))
    return await _delete(lab, topic, 1)


@case("delete_records.at_a_broker_that_does_not_lead", "Asked of a broker without a replica.")
async def delete_elsewhere(lab: Lab) -> Facts:
    topic = await filled(lab)
    return await _delete(lab, Topic(topic.name, await lab.other(topic.leader)), 1)
