"""Batches that a client may not append leave no trace in the log, and one that is in a log from before does
not keep a broker from starting or copying."""

import tracemalloc
from struct import pack_into

import pytest
from crc32c import crc32c
from impl_batches import tiny_records
from impl_lab import T0, Lab

from fencepost.impl.core.core_interface import Halt
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.validation import MOST_PRODUCED_RECORDS
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication import leader
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TopicOptions


def poisoned(body: bytes, attributes: int = 0, producer_id: int = -1) -> bytes:
    """One record by the header, these bytes as records, a checksum that holds."""
    good = encode_batch(
        [Record(0, 0, None, b"1")],
        base_offset=0,
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )
    data = bytearray(good[:61] + body)
    pack_into(">i", data, 8, len(data) - 12)
    pack_into(">h", data, 21, attributes)
    pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


GARBAGE = poisoned(b"\x01garbage")
POISON = {
    "control without body": poisoned(b"", 0x20, 0),
    "garbage": GARBAGE,
    "garbage under control": poisoned(b"\x01garbage", 0x20, 0),
}


def produced(lab: Lab, data: bytes, *, node: int = 1, acks: int = 1, key: TopicPartition = T0) -> ErrorCode:
    """What a client is answered."""
    number = 10_000 + len(lab.answers)
    request = kafka.ProduceRequest(
        correlation_id=number, partition=key, acks=acks, records=data, timeout=10**9
    )
    return lab.ask(node, request).error


@pytest.mark.parametrize("data", POISON.values(), ids=POISON)
def test_what_is_refused_is_not_in_the_log(data: bytes, lab: Lab) -> None:
    """Issue 27, point 15: refused before the append, the leader goes on, followers copy nothing of it, and
    every broker starts again."""
    assert produced(lab, data) is ErrorCode.INVALID_RECORD
    assert lab.partition(1).log.log_end_offset == 0 and not lab.recorded(Name.APPENDED)
    assert lab.produce(1, 11, acks=1).error is ErrorCode.NONE
    lab.settle()
    assert lab.values(1) == lab.values(2) == [11]
    for node in (1, 2, 3):
        lab.restart(node)
        assert lab.values(node) == [11]


@pytest.mark.parametrize("data", POISON.values(), ids=POISON)
def test_a_log_that_holds_such_a_batch_lives_on(data: bytes, lab: Lab) -> None:
    """From a broker that did not look: followers copy it, every broker recovers it after a crash, and what
    came after it stays."""
    lab.produce(1, 11, acks=1)
    log = lab.partition(1).log
    log.append_as_leader(data, 0)
    lab.produce(1, 12, acks=1)
    lab.advance(1_000, settle=True)
    assert [lab.partition(node).log.log_end_offset for node in (1, 2, 3)] == [3, 3, 3]
    for node in (1, 2, 3):
        lab.restart(node)
        assert lab.partition(node).log.log_end_offset == 3
    lab.led(2, 1).settle()
    assert lab.produce(2, 13, acks=1).error is ErrorCode.NONE
    lab.settle()
    assert lab.partition(3).log.log_end_offset == 4


def test_an_old_batch_on_a_compacted_topic_stops_the_cleaner_of_its_log_only() -> None:
    """KIP-346: the log is uncleanable, the broker is not."""
    lab = Lab(topic=TopicOptions(cleanup_policy="compact", segment_bytes=100, min_cleanable_dirty_ppm=0))
    lab.led(1, 0).settle()
    log = lab.partition(1).log
    log.append_as_leader(GARBAGE, 0)
    for number in range(3):
        data = encode_batch([Record(0, 0, b"k", b"%d" % number)], base_offset=0, leader_epoch=-1)
        assert produced(lab, data) is ErrorCode.NONE
    lab.advance(60_000, settle=True)
    core = lab.core(1)
    core.log_manager.clean()
    assert T0 in core.log_manager.uncleanable and log.log_end_offset == 4


def test_four_million_tiny_records_take_no_memory(lab: Lab) -> None:
    """Issue 27, point 19: 3.2 MB took a broker from 37 to 608 MB. It is refused before anything of it is
    decompressed. What is appended takes a broker and its followers some hundred bytes a record for a moment,
    so that the bound on records is one on memory."""
    largest = encode_batch([Record(0, 0, None, None)], base_offset=0, leader_epoch=-1)
    data = bytearray(largest)
    pack_into(">i", data, 23, MOST_PRODUCED_RECORDS)
    pack_into(">i", data, 57, MOST_PRODUCED_RECORDS + 1)
    pack_into(">I", data, 17, crc32c(data[21:]))
    many = tiny_records(count := 20_000)
    tracemalloc.start()
    try:
        assert produced(lab, bytes(data)) is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert produced(lab, many) is ErrorCode.NONE
        lab.settle()
        assert tracemalloc.get_traced_memory()[1] < 400 * count
    finally:
        tracemalloc.stop()
    assert lab.partition(2).log.log_end_offset == count


def test_no_client_writes_into_an_internal_topic() -> None:
    """INVALID_TOPIC_EXCEPTION for an append and for DeleteRecords, as Kafka; with acks=0 nothing is written
    either."""
    offsets = TopicPartition("__consumer_offsets", 0)
    lab = Lab().led(1, 0, key=offsets).settle()
    batch = encode_batch([Record(0, 0, b"\0\2\0\1g", None)], base_offset=0, leader_epoch=-1)
    assert produced(lab, batch, key=offsets) is ErrorCode.INVALID_TOPIC_EXCEPTION
    lab.ask(1, kafka.ProduceRequest(correlation_id=5, partition=offsets, acks=0, records=batch, timeout=0))
    assert lab.partition(1, offsets).log.log_end_offset == 0
    answer = lab.ask(1, kafka.DeleteRecordsRequest(correlation_id=6, partition=offsets, offset=0))
    assert answer.error is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    "key",
    [
        TopicPartition("x" * 300, 0),
        TopicPartition("x" * 250, 0),
        TopicPartition("x" * 249, 1_000_000),
        TopicPartition("", 0),
        TopicPartition("..", 0),
        TopicPartition("a/b", 0),
        TopicPartition("\0", 0),
        TopicPartition("ünïcödé", 0),
        TopicPartition("t", -1),
        TopicPartition("t", 1 << 31),
    ],
)
def test_a_replica_that_no_directory_can_hold_is_not_made(key: TopicPartition) -> None:
    """Issue 27, point 16: a topic of 300 characters in a LeaderAndIsr halted the broker. The other partitions
    of the request are taken."""
    lab = Lab()
    states = tuple(
        kafka.PartitionState(
            partition=each,
            controller_epoch=1,
            leader=1,
            leader_epoch=0,
            isr=(1,),
            zk_version=0,
            replicas=(1,),
        )
        for each in (key, T0)
    )
    lab.control(kafka.LeaderAndIsrRequest, 1, states)
    assert lab.drivers[1].core is not None and not [e for e in lab.events if isinstance(e, Halt)]
    assert set(lab.core(1).replicas.partitions) == {T0}
    (mark,) = [event for event in lab.recorded(Name.MARK, 1) if event.cause == "illegal_partition"]
    assert len(mark.detail) <= 300
    lab.restart(1)
    assert set(lab.core(1).replicas.partitions) == {T0}


def test_names_at_the_bound_are_legal() -> None:
    """249 characters, as in Kafka, and a directory of 255."""
    assert TopicPartition("x" * 249, 99_999).is_legal and not TopicPartition("x" * 249, 100_000).is_legal
    assert TopicPartition("x" * 244, (1 << 31) - 1).is_legal
    assert batch_of((1,))


def test_an_answer_to_a_fetch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a client asks for: a partition named 50 times, with all bytes there are."""
    monkeypatch.setattr(leader, "MOST_FETCHED_BYTES", 500)
    lab = Lab().led(1, 0, isr=(1,))
    for number in range(20):
        lab.produce(1, number + 1, acks=1)
    wanted = kafka.FetchPartition(partition=T0, offset=0)
    request = kafka.FetchRequest(
        correlation_id=-5, replica_id=-1, max_wait=0, max_bytes=(1 << 31) - 1, partitions=(wanted,) * 50
    )
    answer = lab.ask(1, request)
    sizes = [len(each.records) for each in answer.partitions]
    assert len(sizes) == 50 and 500 <= sum(sizes) < 500 + 100 and sizes[-1] == 0  # the last batch comes whole
