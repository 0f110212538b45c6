"""The log in segments: where records go, how they are found again, what is cut."""

import pytest
from log_lab import T, batch, disk_of, fill, open_log, options, records, values

from fencepost.impl.log.batch.header import CorruptBatchError, read_headers
from fencepost.impl.log.producer.producer_state import InvalidProducerEpochError, OutOfOrderSequenceError
from fencepost.impl.log.segmented_log import UnexpectedOffsetError


def bases(log) -> list[int]:
    """Where the segments begin."""
    return [segment.base_offset for segment in log.segments.all]


def test_a_leader_stamps_offset_and_epoch():
    """Rule: the broker gives offsets and epoch; the records' bytes stay the producer's."""
    log = open_log(disk_of())
    assert log.append_as_leader(batch(b"a", b"b"), 3).last_offset == 1
    assert log.append_as_leader(batch(b"c"), 4).base_offset == 2
    headers = [(one.base_offset, one.last_offset, one.leader_epoch) for one, _ in log.batches(check_crc=True)]
    assert headers == [(0, 1, 3), (2, 2, 4)]
    assert log.epochs.entries == [(3, 0), (4, 2)]


def test_log_append_time_is_the_brokers():
    """Rule: with message.timestamp.type=LogAppendTime every record has the broker's time, and the checksum
    holds."""
    log = open_log(disk_of(), options=options(log_append_time=True))
    log.append_as_leader(batch(b"a", b"b", at=5), 0, now_ms=777)
    assert [record.timestamp_ms for record in records(log)] == [777, 777]
    assert log.find_timestamp(777, end_offset=9).offset == 0 and log.find_timestamp(778, end_offset=9) is None


def test_a_follower_has_the_leaders_bytes():
    """Rule: what is fetched is appended as it is, and must begin at the log's end."""
    leader, follower = open_log(disk_of()), open_log(disk_of())
    fill(leader, 3, epoch=1)
    data = leader.read(0, max_bytes=10_000, end_offset=99)
    assert [header.base_offset for header in follower.append_as_follower(data)] == [0, 1, 2]
    assert follower.read(0, max_bytes=10_000, end_offset=99) == data
    assert follower.epochs.entries == leader.epochs.entries
    with pytest.raises(UnexpectedOffsetError):
        follower.append_as_follower(data)
    with pytest.raises(CorruptBatchError):
        follower.append_as_follower(data[:-1])


def test_an_empty_follower_may_begin_inside_a_batch():
    """Rule KAFKA-6975: the leader's log start lies inside a batch that comes whole."""
    leader, follower = open_log(disk_of()), open_log(disk_of())
    leader.append_as_leader(batch(b"a", b"b", b"c"), 0)
    follower.truncate_fully_and_start_at(1)
    follower.append_as_follower(leader.read(1, max_bytes=1, end_offset=9))
    assert (follower.log_start_offset, follower.log_end_offset, len(values(follower))) == (1, 3, 3)


def test_segments_roll_by_bytes_time_and_full_index():
    """Rule (L2): a segment ends when the next batch does not fit, is too late, or an index is full (the time
    index keeps room for its last entry)."""
    by_bytes = open_log(disk_of())
    fill(by_bytes, 7)
    assert bases(by_bytes) == [0, 3, 6]
    by_time = open_log(disk_of(), options=options(segment_bytes=10_000, segment_ms=20))
    fill(by_time, 7)
    assert bases(by_time) == [0, 3, 6]
    by_index = open_log(
        disk_of(), options=options(segment_bytes=10_000, segment_index_bytes=36, index_interval_bytes=0)
    )
    fill(by_index, 7)
    assert bases(by_index) == [0, 3, 6]


def test_a_read_is_bounded_and_whole():
    """Rule: whole batches up to the bound and the size, at least one, from the one that holds the offset."""
    log = open_log(disk_of(), options=options(segment_bytes=1_000))
    log.append_as_leader(batch(b"a", b"b"), 0)
    fill(log, 3)

    def read(offset: int, max_bytes: int, end: int) -> list[int]:
        data = log.read(offset, max_bytes=max_bytes, end_offset=end)
        return [header.base_offset for header in read_headers(data)]

    assert read(1, 10_000, 99) == [0, 2, 3, 4]
    assert read(0, 1, 99) == [0] and read(3, 149, 99) == [3, 4]
    assert read(0, 10_000, 3) == [0, 2] and read(0, 10_000, 1) == [] and read(5, 10_000, 99) == []


def test_a_read_never_sees_the_rest_of_a_failed_write(disk, log):
    """Rule KAFKA-2477: what is read ends where the last append that returned ended, whatever the file
    holds."""
    fill(log, 2)
    disk.open(f"{T}/{0:020d}.log").append(b"rest of a write that failed")
    data = log.read(0, max_bytes=10_000, end_offset=99)
    assert [header.base_offset for header in read_headers(data)] == [0, 1]


@pytest.mark.parametrize("offset", range(10))
def test_truncation_across_segments(offset, disk, log):
    """Rule (L1): the log ends at the offset, later segments are gone, and a restart sees the same."""
    fill(log, 5, epoch=1)
    fill(log, 5, epoch=2, first=5)
    log.truncate_to(offset)
    kept = [b"v%d" % number for number in range(offset)]
    assert (values(log), log.log_end_offset) == (kept, offset)
    assert log.epochs.entries == [entry for entry in [(1, 0), (2, 5)] if entry[1] < offset]
    disk.power_loss()
    assert values(open_log(disk)) == kept
    fill(log, 1, first=77)
    assert values(log) == [*kept, b"v77"]


def test_a_cut_inside_a_batch_takes_the_whole_batch():
    """Rule: a batch is one unit."""
    log = open_log(disk_of())
    fill(log, 1)
    log.append_as_leader(batch(b"a", b"b", b"c"), 0)
    log.truncate_to(2)
    assert (log.log_end_offset, values(log)) == (1, [b"v0"])


def test_full_truncation_starts_elsewhere(disk, log):
    """Rule: nothing of the old log is left, on the disk neither."""
    fill(log, 9)
    log.truncate_fully_and_start_at(100)
    fill(log, 1)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (100, 101, [(0, 100)])
    disk.power_loss()
    assert (bases(open_log(disk)), disk.exists(f"{T}/{0:020d}.log")) == ([100], False)


def produced(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    return batch(*[b"v"] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence)


def test_a_duplicate_is_answered_with_the_first_offsets(disk, log):
    """Rule KIP-98: any of the last five batches of a producer, sent again, is not written again; also after a
    restart, as far as the log tells."""
    for number in range(6):
        log.append_as_leader(produced(number * 2, 2), 0)
    for number in range(1, 6):
        again = log.append_as_leader(produced(number * 2, 2), 0)
        assert (again.duplicate, again.base_offset, again.last_offset) == (True, number * 2, number * 2 + 1)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(produced(0, 2), 0)
    assert log.log_end_offset == 12
    assert open_log(disk).append_as_leader(produced(10, 2), 0).duplicate


def test_sequences_have_no_gaps_and_epochs_fence():
    """Rule KIP-98, KIP-360: a gap is refused, an older epoch is refused, a new one begins at 0, an unknown
    producer anywhere; refusals write nothing."""
    log = open_log(disk_of())
    log.append_as_leader(produced(5), 0)
    for refused, error in (
        (produced(7), OutOfOrderSequenceError),
        (produced(6, epoch=1), OutOfOrderSequenceError),
        (produced(4), OutOfOrderSequenceError),
    ):
        with pytest.raises(error):
            log.append_as_leader(refused, 0)
    log.append_as_leader(produced(0, epoch=1), 0)
    with pytest.raises(InvalidProducerEpochError):
        log.append_as_leader(produced(6), 0)
    assert log.log_end_offset == 2


def test_sequences_wrap():
    """Rule: after 2^31 - 1 comes 0."""
    log = open_log(disk_of())
    log.append_as_leader(produced((1 << 31) - 2, 2), 0)
    assert not log.append_as_leader(produced(0), 0).duplicate
    assert log.append_as_leader(produced((1 << 31) - 2, 2), 0).duplicate


def test_the_flush_interval_is_kept():
    """Rule: with flush.messages the recovery point follows the end."""
    log = open_log(disk_of(), options=options(flush_messages=2))
    fill(log, 1)
    assert log.recovery_point == 0
    fill(log, 1)
    assert log.recovery_point == 2
