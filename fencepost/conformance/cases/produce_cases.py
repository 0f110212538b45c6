"""Produce: the request itself. What is in the batches is in record_cases.py and sequence_cases.py."""

from functools import partial

from fencepost.conformance.batches import good
from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.case_requests import EARLIEST, LATEST, fetch, list_offset, produce
from fencepost.conformance.lab import DELETE_RECORDS, METADATA, PRODUCE, Lab, outcome
from fencepost.wire.plain import request

MESSAGE_MAX_BYTES = 1_048_588


async def _appends(version: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    answers = [
        await lab.ask(
            topic.leader,
            PRODUCE,
            version,
            acks=-1,
            timeout=10_000,
            topic_data=[{"name": topic.name, "partition_data": [{"index": 0, "records": good(b"1", b"2")}]}],
        )
        for _ in range(2)
    ]
    return lab.facts(answers)


in_versions("produce.v%d_appends", "Two batches, one after the other, in version %d.", range(3, 10), _appends)


async def _acks(acks: int, lab: Lab) -> Facts:
    topic = await lab.topic()
    return [await produce(lab, topic, good(b"1"), acks=acks), await list_offset(lab, topic, LATEST)]


for _acks_wanted, _name, _what in (
    (1, "acks_1_appends", "A batch with acks=1, and the end of the log after it."),
    (2, "acks_2_is_refused", "A batch with acks=2, which no broker knows, and the end of the log after it."),
    (-2, "acks_minus_2_is_refused", "A batch with acks=-2, and the end of the log after it."),
    (32767, "acks_32767_is_refused", "A batch with acks=32767, and the end of the log after it."),
):
    case(f"produce.{_name}", _what)(partial(_acks, _acks_wanted))


@case("produce.acks_0_has_no_answer", "A batch with acks=0, then a Metadata request on the same connection.")
async def acks_0(lab: Lab) -> Facts:
    topic = await lab.topic()
    data = [{"name": topic.name, "partition_data": [{"index": 0, "records": good(b"1")}]}]
    body = request(PRODUCE, lab.run.best(PRODUCE), {"acks": 0, "timeout": 10_000, "topic_data": data})
    await topic.leader.ask(body, answered=False)
    next_answer = await lab.ask(topic.leader, METADATA, topics=[{"name": topic.name}])
    return [next_answer["topics"][0]["error_code"], await list_offset(lab, topic, LATEST)]


@case(
    "produce.acks_0_to_an_unknown_topic_closes",
    "A batch with acks=0 for a topic that is not there, then Metadata on the same connection.",
)
async def acks_0_unknown(lab: Lab) -> Facts:
    link = await lab.link()
    data = [{"name": lab.fresh("topic"), "partition_data": [{"index": 0, "records": good(b"1")}]}]
    body = request(PRODUCE, lab.run.best(PRODUCE), {"acks": 0, "timeout": 10_000, "topic_data": data})
    await link.ask(body, answered=False)
    answer = await outcome(lab.ask(link, METADATA, topics=[]))
    return answer if answer == "closed" else "answered"


@case("produce.unknown_topic", "A batch for a topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    return await produce(lab, (lab.fresh("topic"), await lab.link()), good(b"1"))


async def _to_partition(partition: int, lab: Lab) -> Facts:
    return await produce(lab, await lab.topic(), good(b"1"), partition=partition)


case("produce.unknown_partition", "A batch for partition 5 of a topic with one.")(partial(_to_partition, 5))
case("produce.negative_partition", "A batch for partition -1.")(partial(_to_partition, -1))


async def _to_name(name: str, lab: Lab) -> Facts:
    return await outcome(produce(lab, (name, await lab.link()), good(b"1")))


case("produce.empty_topic_name", "A batch for a topic with an empty name.")(partial(_to_name, ""))
case("produce.topic_name_with_a_slash", "A batch for the topic `a/b`.")(partial(_to_name, "a/b"))


@case("produce.to_an_internal_topic", "A batch for __consumer_offsets, which only brokers may write.")
async def internal(lab: Lab) -> Facts:
    await lab.group()
    name = "__consumer_offsets"
    leaders = await lab.leaders(name)
    return await produce(lab, (name, await lab.link(leaders[0])), good(b"1", key=b"k"))


@case("produce.to_a_broker_that_does_not_lead", "A batch for a broker that has no replica of the partition.")
async def not_leader(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await produce(lab, (topic.name, await lab.other(topic.leader)), good(b"1"))


async def _with_data(topic_data: list[dict[str, object]], lab: Lab) -> Facts:
    link = await lab.link()
    return lab.facts(await outcome(lab.ask(link, PRODUCE, acks=-1, timeout=10_000, topic_data=topic_data)))


case("produce.no_topics", "A request without topics.")(partial(_with_data, []))


@case("produce.no_partitions", "A request with a topic and no partitions of it.")
async def no_partitions(lab: Lab) -> Facts:
    topic = await lab.topic()
    return await _with_data([{"name": topic.name, "partition_data": []}], lab)


@case("produce.two_partitions_one_unknown", "Batches for partition 0, which is there, and 7, which is not.")
async def one_unknown(lab: Lab) -> Facts:
    topic = await lab.topic()
    parts = [{"index": index, "records": good(b"1")} for index in (0, 7)]
    answer = await lab.ask(
        topic.leader,
        PRODUCE,
        acks=-1,
        timeout=10_000,
        topic_data=[{"name": topic.name, "partition_data": parts}],
    )
    found = {part["index"]: part["error_code"] for part in answer["responses"][0]["partition_responses"]}
    return [found[0], found[7]]


async def _records_are(data: bytes | None, lab: Lab) -> Facts:
    return await outcome(produce(lab, await lab.topic(), data))


case("produce.null_records", "A partition without records: null.")(partial(_records_are, None))
case("produce.empty_records", "A partition without records: no bytes.")(partial(_records_are, b""))
case("produce.two_batches_in_one_partition", "Two batches for one partition in one request.")(
    partial(_records_are, good(b"1") + good(b"2"))
)
case("produce.garbage_instead_of_a_batch", "A hundred bytes that are no batch.")(
    partial(_records_are, bytes(range(100)))
)
case("produce.a_few_bytes_instead_of_a_batch", "Five bytes of value 0.")(partial(_records_are, bytes(5)))
case("produce.half_a_batch", "A batch without its last five bytes.")(
    partial(_records_are, good(b"12345678")[:-5])
)
case("produce.a_batch_and_more_bytes", "A batch and seven bytes after it.")(
    partial(_records_are, good(b"1") + bytes(7))
)


def _sized(size: int) -> bytes:
    """A batch of exactly so many bytes."""
    value = b"x" * (size - 80)
    return good(value + b"x" * (size - len(good(value))))


case("produce.largest_batch", "A batch of exactly message.max.bytes, 1,048,588.")(
    partial(_records_are, _sized(MESSAGE_MAX_BYTES))
)
case("produce.too_large_batch", "A batch of one byte more than message.max.bytes.")(
    partial(_records_are, _sized(MESSAGE_MAX_BYTES + 1))
)


@case(
    "produce.below_min_insync_replicas", "acks=all, then acks=1, for one replica with min.insync.replicas=2."
)
async def below_min_isr(lab: Lab) -> Facts:
    topic = await lab.topic(configs={"min.insync.replicas": "2"})
    return [
        await produce(lab, topic, good(b"1"), acks=-1),
        await produce(lab, topic, good(b"1"), acks=1),
        await list_offset(lab, topic, LATEST),
    ]


@case("produce.max_message_bytes_of_a_topic", "Batches of 900 and 1,100 bytes with max.message.bytes=1000.")
async def topic_limit(lab: Lab) -> Facts:
    topic = await lab.topic(configs={"max.message.bytes": "1000"})
    return [await produce(lab, topic, _sized(size)) for size in (900, 1_100)]


@case("produce.timeout_0", "acks=all with a time-out of 0.")
async def timeout_0(lab: Lab) -> Facts:
    return await produce(lab, await lab.topic(), good(b"1"), timeout=0)


@case("produce.negative_timeout", "acks=all with a time-out of -1.")
async def negative_timeout(lab: Lab) -> Facts:
    return await outcome(produce(lab, await lab.topic(), good(b"1"), timeout=-1))


@case("produce.offsets_are_consecutive", "Batches of 2, 1 and 3 records, and all of them fetched.")
async def consecutive(lab: Lab) -> Facts:
    topic = await lab.topic()
    sizes = (2, 1, 3)
    answers = [await produce(lab, topic, good(*[b"v"] * size)) for size in sizes]
    return [answers, await fetch(lab, topic, 0)]


@case("produce.log_start_offset", "A batch after the records below offset 2 were deleted.")
async def log_start(lab: Lab) -> Facts:
    topic = await lab.topic()
    await produce(lab, topic, good(b"1", b"2", b"3"))
    parts = [{"partition_index": 0, "offset": 2}]
    await lab.ask(
        topic.leader, DELETE_RECORDS, topics=[{"name": topic.name, "partitions": parts}], timeout=10_000
    )
    answer = await lab.ask(
        topic.leader,
        PRODUCE,
        acks=-1,
        timeout=10_000,
        topic_data=[{"name": topic.name, "partition_data": [{"index": 0, "records": good(b"4")}]}],
    )
    return [lab.facts(answer), await list_offset(lab, topic, EARLIEST)]


@case("produce.transactional_id_without_a_transaction", "A plain batch in a request with a transactional id.")
async def transactional_id(lab: Lab) -> Facts:
    return await produce(lab, await lab.topic(), good(b"1"), transactional_id=lab.fresh("txn"))
