"""What clients of Kafka's protocol ask beyond our own: bounds over all partitions, offsets by time,
isolation; and batches that nobody could read."""

import pytest
from impl_lab import CLIENT, MILLISECOND, T0, Lab

from fencepost.impl.log.batch.record_batch import Record, encode_batch, read_headers
from fencepost.impl.log.validation import MOST_PRODUCED_RECORDS
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

T1 = TopicPartition("t", 1)


def led_by_1(*keys: TopicPartition) -> Lab:
    """Broker 1 leads these partitions (t-0), 2 and 3 follow."""
    lab = Lab()
    for key in keys or (T0,):
        lab.lead(1, 0, key=key)
    return lab.settle()


def append(lab: Lab, batch: bytes, key: TopicPartition = T0, number: int = 1) -> kafka.ProduceResponse:
    """Broker 1's answer to an append with acks=1, once the followers have the batch."""
    request = kafka.ProduceRequest(
        correlation_id=number, partition=key, acks=1, records=batch, timeout=5_000 * MILLISECOND
    )
    answer = lab.ask(1, request)
    lab.settle()
    return answer


def batch_of_times(*times: int, size: int = 10, **options: object) -> bytes:
    """A produced batch with a record of `size` bytes for each of these times."""
    records = [Record(offset, time, None, b"x" * size) for offset, time in enumerate(times)]
    return encode_batch(records, base_offset=0, leader_epoch=-1, **options)


def fetch(
    lab: Lab, *wanted: kafka.FetchPartition, max_wait: int = 0, **bounds: object
) -> kafka.FetchResponse | None:
    """Broker 1's answer to a client's fetch, if it comes at once."""
    request = kafka.FetchRequest(
        correlation_id=99, replica_id=-1, max_wait=max_wait, max_bytes=1 << 20, partitions=wanted, **bounds
    )
    return lab.ask(1, request)


def wanted(key: TopicPartition, offset: int = 0, max_bytes: int = 0) -> kafka.FetchPartition:
    """A partition of a fetch."""
    return kafka.FetchPartition(partition=key, offset=offset, max_bytes=max_bytes)


def counts(answer: kafka.FetchResponse) -> list[int]:
    """Batches in each partition's answer."""
    return [len(list(read_headers(part.records))) for part in answer.partitions]


# ---- bounds


def test_total_max_bytes_bounds_the_answer_over_all_partitions() -> None:
    """KIP-74: partitions are filled in the order asked; the first batch comes whole even if it is larger than
    every bound."""
    lab = led_by_1(T0, T1)
    batch = batch_of_times(1, size=100)
    for number, key in enumerate((T0, T0, T1, T1)):
        append(lab, batch, key, number)
    size = len(batch)
    both = (wanted(T0), wanted(T1))
    assert counts(fetch(lab, *both, total_max_bytes=10 * size)) == [2, 2]
    assert counts(fetch(lab, *both, total_max_bytes=3 * size)) == [2, 1]
    assert counts(fetch(lab, *both, total_max_bytes=2 * size)) == [2, 0]
    assert counts(fetch(lab, *both, total_max_bytes=size)) == [1, 0]
    assert counts(fetch(lab, *both, total_max_bytes=1)) == [1, 0]
    assert counts(fetch(lab, wanted(T0, 2), wanted(T1), total_max_bytes=1)) == [0, 1], (
        "nothing came before it"
    )


def test_max_bytes_bounds_each_partition_by_itself() -> None:
    """partition_max_bytes: only the first batch of an answer may exceed it."""
    lab = led_by_1(T0, T1)
    batch = batch_of_times(1, size=100)
    for number, key in enumerate((T0, T0, T1, T1)):
        append(lab, batch, key, number)
    size = len(batch)
    answer = fetch(lab, wanted(T0, 0, size), wanted(T1, 0, 2 * size), total_max_bytes=1 << 20)
    assert counts(answer) == [1, 2]
    answer = fetch(lab, wanted(T0, 0, 1), wanted(T1, 0, 1), total_max_bytes=1 << 20)
    assert counts(answer) == [1, 0]


def test_min_bytes_waits_for_more_over_all_partitions() -> None:
    """fetch.min.bytes: the answer comes when there is enough, or when the time is up, or at once with an
    error."""
    lab = led_by_1(T0, T1)
    batch = batch_of_times(1, size=100)
    append(lab, batch, T0)
    size = len(batch)
    both, wait = (wanted(T0), wanted(T1)), 500 * MILLISECOND
    assert counts(fetch(lab, *both, max_wait=wait, min_bytes=size)) == [1, 0]
    assert counts(fetch(lab, *both, max_wait=wait, min_bytes=0)) == [1, 0]
    assert fetch(lab, *both, max_wait=wait, min_bytes=size + 1) is None
    before = len(lab.answers)
    append(lab, batch, T1, 2)
    found = [mail.message for mail in lab.answers[before:] if isinstance(mail.message, kafka.FetchResponse)]
    assert [counts(answer) for answer in found] == [[1, 1]]
    unknown = fetch(lab, wanted(T0), wanted(TopicPartition("no", 0)), max_wait=wait, min_bytes=1 << 20)
    assert [part.error for part in unknown.partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_min_bytes_gives_what_there_is_when_the_time_is_up(lab: Lab) -> None:
    """fetch.max.wait.ms."""
    append(lab, batch_of_times(1))
    assert fetch(lab, wanted(T0), max_wait=500 * MILLISECOND, min_bytes=1 << 20) is None
    before = len(lab.answers)
    lab.advance(501, nodes=(1,))
    (answer,) = [mail.message for mail in lab.answers[before:] if mail.target == CLIENT]
    assert counts(answer) == [1]


# ---- isolation


def test_read_committed_stops_at_the_last_stable_offset(lab: Lab) -> None:
    """KIP-98: an open transaction hides what follows it; the field is told in either case."""
    append(lab, batch_of_times(1))
    append(
        lab, batch_of_times(2, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), number=2
    )
    append(lab, batch_of_times(3), number=3)
    assert lab.high_watermark(1) == 3
    for committed, batches in ((False, 3), (True, 1)):
        (part,) = fetch(lab, wanted(T0), read_committed=committed).partitions
        assert (part.high_watermark, part.last_stable_offset, len(list(read_headers(part.records)))) == (
            3,
            1,
            batches,
        )
    request = kafka.ListOffsetsRequest(correlation_id=7, partition=T0, read_committed=True)
    assert lab.ask(1, request).offset == 1


# ---- offsets by time


def test_the_first_record_as_late_as_asked_is_found(lab: Lab) -> None:
    """KIP-79: offset and time of the record, inside a batch too; nothing if all are earlier, or above the
    high watermark."""
    append(lab, batch_of_times(1_000, 1_100, 1_050))
    append(lab, batch_of_times(1_200, 1_300), number=2)
    found = {}
    for timestamp in (0, 1_000, 1_001, 1_101, 1_300, 1_301):
        answer = lab.ask(1, kafka.ListOffsetsRequest(correlation_id=9, partition=T0, timestamp=timestamp))
        assert answer.error is ErrorCode.NONE
        found[timestamp] = (answer.offset, answer.timestamp)
    assert found == {
        0: (0, 1_000),
        1_000: (0, 1_000),
        1_001: (1, 1_100),
        1_101: (3, 1_200),
        1_300: (4, 1_300),
        1_301: (-1, -1),
    }
    request = kafka.ProduceRequest(
        correlation_id=3, partition=T0, acks=1, records=batch_of_times(9_000), timeout=MILLISECOND
    )
    lab.ask(1, request)  # nobody has it but the leader
    answer = lab.ask(1, kafka.ListOffsetsRequest(correlation_id=9, partition=T0, timestamp=9_000))
    assert (answer.error, answer.offset) == (ErrorCode.NONE, -1)


# ---- metadata


def test_metadata_of_some_topics_names_replicas_and_what_is_unknown() -> None:
    """Only what was asked for; the order of an answer does not depend on the order of requests."""
    lab = led_by_1(T0, T1, TopicPartition("u", 0))
    answer = lab.ask(2, kafka.MetadataRequest(correlation_id=1, topics=("no", "t")))
    assert [(part.partition, part.leader, part.replicas, part.isr) for part in answer.partitions] == [
        (T0, 1, (1, 2, 3), (1, 2, 3)),
        (T1, 1, (1, 2, 3), (1, 2, 3)),
    ]
    assert answer.errors == (("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)
    assert answer.controller_id == lab.core(2).metadata.controller_id >= 0
    everything = lab.ask(2, kafka.MetadataRequest(correlation_id=1))
    assert {part.partition for part in everything.partitions} == {T0, T1, TopicPartition("u", 0)}
    assert everything.errors == ()


# ---- batches that nobody could read

GOOD = batch_of_times(1, 2)
ZEROES = 4 << 20


def forged(batch: bytes, **fields: tuple[int, int, int]) -> bytes:
    """A batch with other header fields (position, size, value) under a checksum that holds."""
    from crc32c import crc32c

    changed = bytearray(batch)
    for position, size, value in fields.values():
        changed[position : position + size] = value.to_bytes(size, "big", signed=True)
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


REFUSALS = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)
BAD = {
    "records that are none": forged(GOOD[:61] + b"\xff" * len(GOOD[61:])),
    "a codec that it is not in": forged(GOOD, attributes=(21, 2, 4)),
    "an unknown codec": forged(GOOD, attributes=(21, 2, 7)),
    "fewer records than it says": forged(GOOD, delta=(23, 4, 2), count=(57, 4, 3)),
    "no records": forged(GOOD[:61], length=(8, 4, 49), delta=(23, 4, -1), count=(57, 4, 0)),
    "more than a broker looks at": forged(
        GOOD, delta=(23, 4, MOST_PRODUCED_RECORDS), count=(57, 4, MOST_PRODUCED_RECORDS + 1)
    ),
    "a wrong checksum": GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
    "cut off": GOOD[:-1],
}


@pytest.mark.parametrize("batch", BAD.values(), ids=BAD)
def test_a_batch_that_nobody_could_read_is_refused_before_the_append(batch: bytes, lab: Lab) -> None:
    """A checksum says only that the bytes are as their writer meant them. CORRUPT_MESSAGE, nothing is
    written, and the broker lives: it looked at the records after the append once, and halted."""
    answer = append(lab, batch)
    assert answer.error in REFUSALS and answer.base_offset == -1
    assert lab.partition(1).log.log_end_offset == 0 and lab.recorded(Name.APPENDED) == []
    assert append(lab, GOOD, number=2).error is ErrorCode.NONE
    assert lab.high_watermark(1) == 2


def test_a_batch_that_grows_a_thousandfold_is_stored_small(lab: Lab) -> None:
    """4 MiB of zeroes in a few hundred bytes: one record, read once; nothing of it is remembered."""
    batch = encode_batch([Record(0, 1, None, bytes(ZEROES))], base_offset=0, leader_epoch=-1, codec="zstd")
    assert len(batch) < 2_000 < ZEROES
    assert append(lab, batch).error is ErrorCode.NONE
    assert lab.partition(3).log.log_end_offset == 1
