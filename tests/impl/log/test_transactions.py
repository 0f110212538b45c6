"""Transactions in a log: what a reader of committed records may see, and the index of what was aborted."""

import pytest
from log_lab import T, batch, disk_of, open_log, options

from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.index.transaction_index import AbortedTransaction
from fencepost.impl.log.layout import TRANSACTION_INDEX
from fencepost.impl.log.producer.snapshot_files import find_aborted_again
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog
from fencepost.sim.disk_faults import DiskCall

WIDE = {"segment_bytes": 100_000}
COMPACT = {"compact": True, "contiguous": False, "delete": False}


def write(log: SegmentedLog, producer: int, sequence: int, *keys: bytes) -> None:
    """One transactional batch."""
    mine = {"producer_id": producer, "producer_epoch": 0, "transactional": True, "base_sequence": sequence}
    keys = keys or (b"k",)
    log.append_as_leader(batch(*(b"v" for _ in keys), keys=list(keys), **mine), 0)


def end(log: SegmentedLog, producer: int, *, commit: bool) -> None:
    """The marker of a transaction."""
    marker = EndTransaction(commit=commit, coordinator_epoch=0)
    fields = {"base_offset": 0, "leader_epoch": -1, "producer_epoch": 0, "timestamp_ms": 0}
    log.append_as_leader(end_transaction_batch(marker, producer_id=producer, **fields), 0)


def aborted(log: SegmentedLog, start: int = 0, stop: int = 1_000) -> list[tuple[int, int, int, int]]:
    """As numbers: producer, first and last offset, last stable offset."""
    return [
        (one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
        for one in log.aborted_transactions(start, stop)
    ]


def two_overlapping(log: SegmentedLog) -> None:
    """Offsets 0, 2 of producer 1, aborted at 4; 1, 3 of producer 2, committed at 5; 6 of producer 1, aborted
    at 7; 8 of producer 2, open."""
    for producer, sequence in ((1, 0), (2, 0), (1, 1), (2, 1)):
        write(log, producer, sequence)
    end(log, 1, commit=False)
    end(log, 2, commit=True)
    write(log, 1, 2)
    end(log, 1, commit=False)
    write(log, 2, 2)


ABORTED = [(1, 0, 4, 1), (1, 6, 7, 8)]


def test_the_last_stable_offset_is_the_first_undecided_record():
    """Rule: an open transaction bounds it, and so does one whose marker is not committed, since the next
    leader may not have it."""
    log = open_log(disk_of(), options=options(**WIDE))
    assert log.last_stable_offset(0) == 0
    two_overlapping(log)
    assert [log.last_stable_offset(high_watermark) for high_watermark in range(10)] == [
        *(0, 0, 0, 0, 0),  # both are undecided
        1,  # 4 is committed; producer 2 ends at 5
        6,  # 5 is committed
        6,
        8,  # 7 is committed; 8 is open
        8,
    ]


def test_aborted_transactions_of_a_range():
    """Rule: those with records in the range, whichever segment their markers stand in."""
    for segment_bytes in (100_000, 160):
        log = open_log(disk_of(), options=options(segment_bytes=segment_bytes))
        two_overlapping(log)
        assert len(log.segments) == (1 if segment_bytes == 100_000 else 5)
        assert aborted(log) == ABORTED
        assert (aborted(log, 0, 1), aborted(log, 2, 6), aborted(log, 5, 6)) == (ABORTED[:1], ABORTED[:1], [])
        assert aborted(log, 7, 8) == ABORTED[1:]


def test_an_entry_is_kafkas(disk):
    """Rule: 34 bytes: version 0, producer, first, last and last stable offset."""
    two_overlapping(open_log(disk, options=options(**WIDE)))
    data = disk.open(f"{T}/{0:020d}{TRANSACTION_INDEX}").read_at(0, 999)
    words = [(0).to_bytes(2, "big") + b"".join(n.to_bytes(8, "big") for n in entry) for entry in ABORTED]
    assert data == b"".join(words)


@pytest.mark.parametrize("segment_bytes", [100_000, 160])
def test_truncation_opens_a_transaction_again(segment_bytes):
    """Rule: with its marker a transaction's end is gone, from the index and from what bounds the last stable
    offset (KAFKA-12153)."""
    log = open_log(disk_of(), options=options(segment_bytes=segment_bytes))
    two_overlapping(log)
    log.truncate_to(7)
    assert (aborted(log), log.last_stable_offset(7)) == (ABORTED[:1], 6)
    log.truncate_to(4)
    assert (aborted(log), log.last_stable_offset(4)) == ([], 0)
    end(log, 1, commit=False)
    assert (aborted(log), log.last_stable_offset(5)) == (ABORTED[:1], 1)


@pytest.mark.parametrize("segment_bytes", [100_000, 160])
def test_recovery_finds_what_was_aborted(segment_bytes, disk):
    """Rule: after a crash the index says what the batches say, whatever the file held, and it is durable."""
    log = open_log(disk, options=options(segment_bytes=segment_bytes))
    two_overlapping(log)
    log.flush()
    for name in disk.list(T):
        if name.endswith(TRANSACTION_INDEX):
            disk.open(f"{T}/{name}").append(b"\x01" * 34)
    log = open_log(disk, options=options(segment_bytes=segment_bytes))
    assert (aborted(log), log.last_stable_offset(9)) == (ABORTED, 8)
    log.close()
    disk.power_loss()
    log = open_log(disk, options=options(segment_bytes=segment_bytes), clean=True)
    assert (aborted(log), log.last_stable_offset(9)) == (ABORTED, 8)


def test_a_transaction_inside_another_one_is_no_damage(disk):
    """Rule: the last stable offset after an abort lies before its first record while an older transaction is
    open; a file that says so is believed as it is (KIP-98). The swarm found it (profile transactions, seed
    828)."""
    log = open_log(disk, options=options(**WIDE))
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 2, commit=False)
    assert aborted(log) == [(2, 1, 2, 0)]
    log.close()
    log = open_log(disk, options=options(**WIDE), clean=True)
    assert [len(segment.transactions) for segment in log.segments.all] == [1]
    assert aborted(log) == [(2, 1, 2, 0)]


def test_a_damaged_index_does_not_hinder_a_cut(disk):
    """Rule: a follower truncates whatever its transaction index holds; the index is made again first."""
    log = open_log(disk, options=options(**WIDE))
    two_overlapping(log)
    log.close()
    (name,) = [name for name in disk.list(T) if name.endswith(TRANSACTION_INDEX)]
    disk.open(f"{T}/{name}").append(b"\x7f" * 34)
    log = open_log(disk, options=options(**WIDE), clean=True)
    log.truncate_to(7)
    assert (aborted(log), log.last_stable_offset(7)) == (ABORTED[:1], 6)


@pytest.mark.parametrize("damage", [b"\x00" * 33, b"\x01" * 7, b"\x7f" * 34])
def test_a_damaged_index_is_made_again(damage, disk):
    """Rule: a reader never skips what it should see, nor sees what it should skip, because an index is
    bad."""
    log = open_log(disk, options=options(segment_bytes=160))
    two_overlapping(log)
    log.close()
    for name in disk.list(T):
        if name.endswith(TRANSACTION_INDEX):
            file = disk.open(f"{T}/{name}")
            file.truncate(0)
            file.append(damage + b"\x01")
    log = open_log(disk, options=options(segment_bytes=160), clean=True)
    assert aborted(log) == ABORTED
    end(log, 2, commit=False)
    assert aborted(log) == [*ABORTED, (2, 8, 9, 10)]


def test_compaction_keeps_what_was_aborted(disk):
    """Rule: the entries of all segments that were merged stand in the one that took their place, also after a
    crash (KAFKA-13727)."""
    log = open_log(disk, options=options(segment_bytes=160, **COMPACT))
    two_overlapping(log)
    end(log, 2, commit=True)
    log.roll()
    log.options = options(**WIDE, **COMPACT)
    Cleaner(log).clean(first_dirty_offset=0, high_watermark=99, now_ms=0)
    assert (len(log.segments), aborted(log)) == (2, ABORTED)
    for clean in (False, True):
        assert aborted(open_log(disk, options=log.options, clean=clean, recovery_point=10)) == ABORTED


def test_a_failed_index_write_leaves_no_offset_to_be_used_twice(disk):
    """Rule KAFKA-7866: the end of the log has moved before the index is written, and the log is offline until
    it is opened anew."""
    log = open_log(disk, options=options(**WIDE))
    write(log, 1, 0)
    disk.fail_calls(DiskCall.WRITE, nth=2)
    with pytest.raises(LogOfflineError):
        end(log, 1, commit=False)
    assert log.log_end_offset == 2
    disk.heal()
    log = open_log(disk, options=options(**WIDE))
    assert (log.log_end_offset, aborted(log)) == (2, [(1, 0, 1, 2)])


def test_these_tests_notice_an_index_that_is_not_kept():
    """Rule: a protection counts once the log without it was seen to fail."""

    class Forgetful(Cleaner):
        def _keep_aborted(self, group):
            pass

    log = open_log(disk_of(), options=options(segment_bytes=160, **COMPACT))
    two_overlapping(log)
    end(log, 2, commit=True)
    log.roll()
    log.options = options(**WIDE, **COMPACT)
    Forgetful(log).clean(first_dirty_offset=0, high_watermark=99, now_ms=0)
    assert aborted(log) != ABORTED


def test_an_index_is_made_again_out_of_the_batches_alone():
    """Rule: what finds aborted transactions again needs no other index and no snapshot."""
    log = open_log(disk_of(), options=options(segment_bytes=160))
    two_overlapping(log)
    holding = [segment for segment in log.segments.all if len(segment.transactions)]
    before = [list(segment.transactions.all()) for segment in holding]
    for segment in holding:
        find_aborted_again(log.files, T, log.segments.all, segment, type(log.producers))
    after = [list(segment.transactions.all()) for segment in holding]
    assert after == before and isinstance(after[0][0], AbortedTransaction)
