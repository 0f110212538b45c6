"""What is in a batch, good and bad: which ones a broker appends, and with which error it refuses the
others."""

from functools import partial

from fencepost.conformance.batches import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TIME_MS,
    TRANSACTIONAL,
    Batch,
    Rec,
    good,
    records,
)
from fencepost.conformance.case import Facts, case
from fencepost.conformance.cases.case_requests import LATEST, fetch, fetch_answer, list_offset, produce
from fencepost.conformance.lab import Lab, outcome, parts_of

TWO = records(b"1", b"2")
FAR_MS = 10_000_000_000_000
"""The year 2286."""


async def _sent(data: bytes, lab: Lab) -> Facts:
    topic = await lab.topic()
    return [await outcome(produce(lab, topic, data)), (await list_offset(lab, topic, LATEST))["offset"]]


BATCHES: dict[str, tuple[str, Batch]] = {
    "magic_0": ("A batch that says format 0.", Batch(magic=0)),
    "magic_1": ("A batch that says format 1.", Batch(magic=1)),
    "magic_3": ("A batch that says format 3, which no broker knows.", Batch(magic=3)),
    "negative_magic": ("A batch that says format -1.", Batch(magic=-1)),
    "wrong_checksum": ("A batch with a wrong checksum.", Batch(wrong_checksum=True)),
    "length_too_short": ("A batch whose length is 3 less than it is.", Batch(length_more=-3)),
    "length_too_long": ("A batch whose length is 3 more than it is.", Batch(length_more=3)),
    "count_too_high": ("Two records, and a header that says three.", Batch(records=TWO, count=3)),
    "count_too_high_and_last_delta": (
        "Two records, and a header that says three, with the last offset delta of three.",
        Batch(records=TWO, count=3, last_delta=2),
    ),
    "count_too_low": ("Two records, and a header that says one.", Batch(records=TWO, count=1)),
    "count_too_low_and_last_delta": (
        "Two records, and a header that says one, with the last offset delta of one.",
        Batch(records=TWO, count=1, last_delta=0),
    ),
    "negative_count": ("Two records, and a header that says -1.", Batch(records=TWO, count=-1)),
    "huge_count": ("A record, and a header that says 2,147,483,647.", Batch(count=(1 << 31) - 1)),
    "no_records": ("A batch of no records, last offset delta 0.", Batch(records=(), last_delta=0)),
    "no_records_no_delta": ("A batch of no records, last offset delta -1.", Batch(records=())),
    "last_delta_too_high": ("Two records, and a last offset delta of 5.", Batch(records=TWO, last_delta=5)),
    "last_delta_too_low": ("Two records, and a last offset delta of 0.", Batch(records=TWO, last_delta=0)),
    "negative_last_delta": ("Two records, and a last offset delta of -2.", Batch(records=TWO, last_delta=-2)),
    "record_deltas_equal": ("Two records with offset delta 0.", Batch(records=(Rec(), Rec()))),
    "record_deltas_descend": (
        "Two records with offset deltas 1 and 0.",
        Batch(records=(Rec(delta=1), Rec(delta=0))),
    ),
    "record_deltas_have_a_gap": (
        "Two records with offset deltas 0 and 2, last offset delta 2.",
        Batch(records=(Rec(), Rec(delta=2)), last_delta=2),
    ),
    "base_offset_is_ignored": ("A batch with base offset 77.", Batch(base_offset=77)),
    "negative_base_offset": ("A batch with base offset -5.", Batch(base_offset=-5)),
    "leader_epoch_is_ignored": ("A batch that says leader epoch 99.", Batch(leader_epoch=99)),
    "control_bit": ("A batch that says that it is a control batch.", Batch(attributes=CONTROL)),
    "control_and_transactional_bits": (
        "A batch that says that it is a control batch of a transaction.",
        Batch(attributes=CONTROL | TRANSACTIONAL, producer=(5, 0, -1)),
    ),
    "transactional_bit_without_producer": (
        "A batch that says that it is transactional, without a producer id.",
        Batch(attributes=TRANSACTIONAL),
    ),
    "log_append_time_bit": (
        "A batch that says that the broker gave it its time.",
        Batch(attributes=LOG_APPEND_TIME),
    ),
    "delete_horizon_bit": (
        "A batch that says that it has a delete horizon.",
        Batch(attributes=DELETE_HORIZON),
    ),
    "unused_attribute_bits": ("A batch with the attribute bits 7 to 14 set.", Batch(attributes=0x7F80)),
    "unknown_codec_5": ("A batch that says codec 5.", Batch(attributes=5)),
    "unknown_codec_7": ("A batch that says codec 7.", Batch(attributes=7)),
    "garbage_body": ("A batch with 50 bytes 0xFF instead of a record.", Batch(body=b"\xff" * 50)),
    "empty_body": ("A batch that says one record, and has none.", Batch(body=b"")),
    "body_longer_than_records": (
        "A record and ten bytes after it in the batch.",
        Batch(body=Rec().encoded() + bytes(10)),
    ),
    "gzip_garbage": (
        "A batch that says gzip, with bytes that are not.",
        Batch(codec="gzip", body=b"garbage" * 5),
    ),
    "snappy_garbage": (
        "A batch that says snappy, with bytes that are not.",
        Batch(codec="snappy", body=b"\xff" * 40),
    ),
    "lz4_garbage": (
        "A batch that says lz4, with bytes that are not.",
        Batch(codec="lz4", body=b"garbage" * 5),
    ),
    "zstd_garbage": (
        "A batch that says zstd, with bytes that are not.",
        Batch(codec="zstd", body=b"garbage" * 5),
    ),
    "gzip_count_too_high": (
        "Two records in gzip, and a header that says three, last offset delta 2.",
        Batch(records=TWO, codec="gzip", count=3, last_delta=2),
    ),
    "record_length_too_long": (
        "A record that says that it is longer than the batch.",
        Batch(records=(Rec(length=500),)),
    ),
    "record_length_negative": ("A record that says length -2.", Batch(records=(Rec(length=-2),))),
    "record_with_more_bytes": (
        "A record with four bytes after its headers.",
        Batch(records=(Rec(extra=bytes(4)),)),
    ),
    "null_value": (
        "A record with a null value in a topic that is not compacted.",
        Batch(records=(Rec(value=None),)),
    ),
    "empty_value": (
        "A record with an empty key and an empty value.",
        Batch(records=(Rec(value=b"", key=b""),)),
    ),
    "headers": (
        "A record with two headers of one key, one of them null.",
        Batch(records=(Rec(headers=((b"h", b"1"), (b"h", None))),)),
    ),
    "header_with_null_key": (
        "A record with a header without a key.",
        Batch(records=(Rec(headers=((None, b"1"),)),)),
    ),
    "header_key_not_utf8": (
        "A record with a header key that is not UTF-8.",
        Batch(records=(Rec(headers=((b"\xff\xfe", b"1"),)),)),
    ),
    "no_timestamp": ("A record with time -1.", Batch(first_time=-1)),
    "negative_timestamp": ("A record with time -1000.", Batch(first_time=-1000)),
    "max_timestamp_too_low": ("A batch with a maximum time below its record's.", Batch(max_time=TIME_MS - 5)),
    "max_timestamp_too_high": (
        "A batch with a maximum time above its record's.",
        Batch(max_time=TIME_MS + 5),
    ),
    "far_future": ("A record of the year 2286.", Batch(first_time=FAR_MS)),
    "producer_epoch_without_id": ("Producer id -1 with epoch 0 and sequence 0.", Batch(producer=(-1, 0, 0))),
    "producer_id_without_sequence": (
        "Producer id 7 with epoch 0 and sequence -1.",
        Batch(producer=(7, 0, -1)),
    ),
    "producer_id_without_epoch": ("Producer id 7 with epoch -1 and sequence 0.", Batch(producer=(7, -1, 0))),
    "producer_id_minus_2": ("Producer id -2.", Batch(producer=(-2, 0, 0))),
}
"""Name -> what is asked, and the batch."""

for _name, (_what, _batch) in BATCHES.items():
    case(f"records.{_name}", f"{_what} And the end of the log after it.")(partial(_sent, _batch.encoded()))


async def _codec(codec: str, lab: Lab) -> Facts:
    topic, data = await lab.topic(), good(b"1" * 50, b"2" * 50, codec=codec)
    sent = await produce(lab, topic, data)
    answer = await fetch_answer(lab, topic, 0)
    (part,) = parts_of(answer)
    return [sent, bytes.fromhex(part["records"])[16:] == data[16:]]


for _codec_name in ("none", "gzip", "snappy", "lz4", "zstd"):
    case(
        f"records.{_codec_name}_is_kept_byte_for_byte",
        f"A batch with codec {_codec_name}; whether it comes back as it was, but for base offset and epoch.",
    )(partial(_codec, _codec_name))


@case("records.compressed_batch_counts_as_it_is", "Two mebibytes of equal bytes in gzip: 2 kB on the wire.")
async def compresses_well(lab: Lab) -> Facts:
    return await produce(lab, await lab.topic(), good(b"x" * (2 << 20), codec="gzip"))


async def _compacted(data: bytes, lab: Lab) -> Facts:
    topic = await lab.topic(configs={"cleanup.policy": "compact"})
    return [await produce(lab, topic, data), (await list_offset(lab, topic, LATEST))["offset"]]


case("records.compacted_topic_needs_keys", "A record without a key in a compacted topic.")(
    partial(_compacted, good(b"1"))
)
case(
    "records.one_record_without_key_in_compacted_topic",
    "Two records, one without a key, in a compacted topic.",
)(partial(_compacted, Batch(records=(Rec(key=b"k"), Rec(delta=1))).encoded()))
case("records.tombstone", "A record with a key and a null value in a compacted topic.")(
    partial(_compacted, good(None, key=b"k"))
)


@case("records.log_append_time_topic", "An old record in a topic with message.timestamp.type=LogAppendTime.")
async def log_append_time(lab: Lab) -> Facts:
    topic = await lab.topic(configs={"message.timestamp.type": "LogAppendTime"})
    sent = await produce(lab, topic, good(b"1"))
    found = await list_offset(lab, topic, TIME_MS + 1)
    return [sent, found["offset"]]


@case(
    "records.recompressed_topic", "A gzip batch in a topic with compression.type=zstd: the codec it has then."
)
async def recompressed(lab: Lab) -> Facts:
    topic = await lab.topic(configs={"compression.type": "zstd"})
    sent = await produce(lab, topic, good(b"1" * 100, codec="gzip"))
    (part,) = parts_of(await fetch_answer(lab, topic, 0))
    return [sent, bytes.fromhex(part["records"])[22] & 7]


@case(
    "records.refused_batch_leaves_nothing", "A corrupt batch between two good ones, and all that is fetched."
)
async def refused(lab: Lab) -> Facts:
    topic = await lab.topic()
    sent = [
        await produce(lab, topic, each)
        for each in (good(b"1"), Batch(wrong_checksum=True).encoded(), good(b"2"))
    ]
    return [sent, await fetch(lab, topic, 0)]
