"""Compaction keeps the latest record of each key, tombstones for their time, and what producers need; a crash
leaves the old or the new."""

import pytest
from log_lab import batch, disk_of, open_log, options, records

from fencepost.bugs.storage.removing import EndsWithTheLastRecord
from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.cleaner import Cleaner
from fencepost.sim.disk import PowerLoss

COMPACT = options(compact=True, delete=False, delete_retention_ms=100)


def keyed(*pairs: str, disk=None):
    """A log with one batch for each "key=value"; "key" alone is a tombstone. Its last segment is empty."""
    log = open_log(disk or disk_of(), options=COMPACT)
    for number, pair in enumerate(pairs):
        key, equals, value = pair.partition("=")
        log.append_as_leader(batch(value.encode() if equals else None, keys=[key.encode()], at=number), 0)
    log.roll()
    return log


def content(log) -> list[str]:
    """ "offset:key=value" of every record."""
    return [
        f"{one.offset}:{one.key.decode()}" + ("" if one.value is None else f"={one.value.decode()}")
        for one in records(log)
    ]


def clean(log, *, high_watermark: int = 99, first_dirty: int = 0, now_ms: int = 0):
    return Cleaner(log).clean(first_dirty_offset=first_dirty, high_watermark=high_watermark, now_ms=now_ms)


def test_the_latest_record_of_each_key_stays(disk):
    """Rule KIP-58: at its offset; reads pass over the holes, and a restart sees the same."""
    log = keyed("a=1", "b=1", "a=2", "c=1", "b=2", "a=3", disk=disk)
    done = clean(log)
    assert (done.first_dirty_offset, done.records_dropped) == (6, 3)
    assert content(log) == ["3:c=1", "4:b=2", "5:a=3"]
    assert log.read(0, max_bytes=1, end_offset=99)[7] == 3
    assert clean(log, first_dirty=6).records_dropped == 0
    log = open_log(disk, options=COMPACT)
    assert (content(log), log.log_end_offset) == (["3:c=1", "4:b=2", "5:a=3"], 6)


def test_what_is_not_committed_is_not_compacted():
    """Rule KAFKA-13194: an uncommitted record may be cut, and must not have taken a committed one with it."""
    log = keyed("a=1", "b=1", "c=1", "a=2", "b=2", "c=2")
    assert clean(log, high_watermark=5).first_dirty_offset == 3
    assert len(content(log)) == 6

    class Careless(Cleaner):
        def clean_below(self, high_watermark):
            return super().clean_below(1 << 40)

    Careless(log).clean(first_dirty_offset=0, high_watermark=5, now_ms=0)
    assert content(log) == ["3:a=2", "4:b=2", "5:c=2"]


def test_a_tombstone_stays_for_delete_retention_after_it_became_clean():
    """Rule KAFKA-4529, KIP-534: so that a reader who began before sees that the key is gone."""
    log = keyed("a=1", "a", "b=1")
    clean(log, now_ms=1_000)
    assert content(log) == ["1:a", "2:b=1"]
    for pair in ("c=1", "c=2"):
        log.append_as_leader(batch(b"x", keys=[pair.encode()], at=9), 0)
        log.roll()
        clean(log, now_ms=1_099)
    assert content(log)[:2] == ["1:a", "2:b=1"]
    log.append_as_leader(batch(b"x", keys=[b"d"], at=9), 0)
    log.roll()
    clean(log, now_ms=1_100)
    assert content(log)[0] == "2:b=1"


def test_the_last_batch_of_a_producer_stays_empty(disk):
    """Rule KAFKA-5490: its sequence number recognises a duplicate after a restart."""
    log = open_log(disk, options=COMPACT)
    sent = batch(b"1", keys=[b"a"], producer_id=7, producer_epoch=0, base_sequence=0)
    log.append_as_leader(sent, 0)
    log.append_as_leader(batch(b"2", keys=[b"a"]), 0)
    log.roll()
    clean(log)
    assert content(log) == ["1:a=2"]
    assert [(header.base_offset, header.count) for header, _ in log.batches()] == [(0, 0), (1, 1)]
    log = open_log(disk, options=COMPACT)
    assert log.append_as_leader(sent, 0).duplicate


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_batch_is_not_compressed(codec):
    """Rule: as Kafka's cleaner writes it (DefaultRecordBatch.writeEmptyHeader). librdkafka takes no bytes for
    broken compressed data, and its consumer ends there."""
    log = open_log(disk_of(), options=COMPACT)
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(b"1", keys=[b"a"], codec=codec, **producer), 0)
    log.append_as_leader(batch(b"2", keys=[b"a"], codec=codec), 0)
    log.roll()
    clean(log)
    found = [(header.count, header.codec) for header, _ in log.batches(check_crc=True)]
    assert found == [(0, "none"), (1, codec)]


def test_the_last_committed_batch_of_a_producer_stays():
    """Rule KAFKA-5490: later batches, of the same or a later epoch, may be truncated, and must not have taken
    the last number that stays (seed 40006916 of the profile everything)."""
    for later in range(1, 8):
        for epoch in (0, 1):
            log = open_log(disk_of(), options=COMPACT)
            log.append_as_leader(
                batch(b"1", keys=[b"a"], producer_id=7, producer_epoch=0, base_sequence=0), 0
            )
            log.append_as_leader(batch(b"2", keys=[b"a"]), 0)
            log.roll()
            for number in range(later):
                sequence = number + 1 - epoch
                sent = batch(b"3", keys=[b"b"], producer_id=7, producer_epoch=epoch, base_sequence=sequence)
                log.append_as_leader(sent, 0)
            clean(log, high_watermark=2)
            assert [header.base_offset for header, _ in log.batches()][:2] == [0, 1]
            log.truncate_to(2)
            log.roll()
            clean(log, high_watermark=2)
            assert [(header.base_offset, header.count) for header, _ in log.batches()] == [(0, 0), (1, 1)]


def test_the_first_batch_of_a_leader_epoch_stays_empty():
    """Rule KIP-101: a follower of the cleaned log learns where each epoch began, or replicas that left it
    earlier truncate too little (seed 41000238 of the profile everything)."""
    log = open_log(disk_of(), options=COMPACT)
    for number, epoch in enumerate((0, 0, 2, 2, 5, 7, 7)):
        log.append_as_leader(batch(b"%d" % number, keys=[b"a"]), epoch)
    log.roll()
    clean(log)
    clean(log)
    assert content(log) == ["6:a=6"]
    follower = open_log(disk_of(), options=COMPACT)
    for header, data in log.batches():
        follower.append_as_follower(data[header.position : header.end_position])
    assert follower.epochs.entries == log.epochs.entries[1:] == [(2, 2), (5, 4), (7, 5)]
    assert follower.epochs.end_offset(0, 7) == log.epochs.end_offset(0, 7) == (0, 2)


@pytest.mark.parametrize("cleaner", [Cleaner, EndsWithTheLastRecord])
def test_a_replica_of_the_cleaned_log_reaches_its_end(cleaner, disk):
    """Rule (KAFKA-17076): the last batch of a pass stays, empty if need be, until a later pass ends after it;
    a replica that copies the log has its end. Planted: it ends below that, and below the high watermark."""
    log = keyed("a=1", "b=1", "a", disk=disk)
    for now_ms in (1_000, 1_100):
        cleaner(log).clean(first_dirty_offset=0, high_watermark=3, now_ms=now_ms)
    assert content(log) == ["1:b=1"]
    follower = open_log(disk_of(), options=COMPACT)
    for header, data in log.batches():
        follower.append_as_follower(data[header.position : header.end_position])
    assert follower.log_end_offset == (3 if cleaner is Cleaner else 2)
    log = open_log(disk, options=COMPACT)
    assert log.log_end_offset == 3
    log.append_as_leader(batch(b"2", keys=[b"b"], at=9), 0)
    log.roll()
    cleaner(log).clean(first_dirty_offset=3, high_watermark=4, now_ms=1_200)
    assert [header.base_offset for header, _ in log.batches()] == [3]


def test_aborted_records_displace_nothing():
    """Rule: a record of an aborted transaction never was; one of an open transaction is left alone; markers
    stay."""
    log = keyed("a=1")
    mine = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log.append_as_leader(batch(b"2", keys=[b"a"], base_sequence=0, **mine), 0)
    marker = EndTransaction(commit=False, coordinator_epoch=1)
    log.append_as_leader(
        end_transaction_batch(
            marker, base_offset=0, leader_epoch=-1, producer_id=7, producer_epoch=0, timestamp_ms=0
        ),
        0,
    )
    log.roll()
    log.append_as_leader(batch(b"3", keys=[b"a"], base_sequence=1, **mine), 0)
    log.roll()
    assert clean(log).first_dirty_offset == 3, "the open transaction bounds it"
    assert [one.value for one in records(log) if one.key == b"a"] == [b"1", b"3"]
    assert any(header.is_control for header, _ in log.batches())


def test_power_loss_at_any_call_leaves_the_old_segments_or_the_new():
    """Rule: of each key the latest is there, nothing comes back that a later record displaced for good, and
    the next pass ends the work."""
    wanted = ["5:b=2", "7:c=2", "8:a=4"]
    for call in range(1, 60):
        disk = disk_of(call)
        log = keyed("a=1", "b=1", "a=2", "c=1", "a=3", "b=2", "c=3", "c=2", "a=4", disk=disk)
        disk.arm_power_loss(call)
        try:
            clean(log)
            disk.disarm_power_loss()
        except PowerLoss:
            pass
        disk.power_loss()
        log = open_log(disk, options=COMPACT)
        assert set(wanted) <= set(content(log)) and log.log_end_offset == 9
        assert log.recovery_point == 9
        clean(log)
        assert content(log) == wanted


def test_these_tests_notice_a_tombstone_that_goes_at_once_and_a_producer_that_is_forgotten():
    """Rule: a protection counts once a cleaner without it was seen to fail (KAFKA-4529, KAFKA-5490)."""

    class Hasty(Cleaner):
        def tombstone_may_go(self, header):
            return True

        def last_of_producer(self, header):
            return False

    log = open_log(disk_of(), options=COMPACT)
    sent = batch(b"1", keys=[b"a"], producer_id=7, producer_epoch=0, base_sequence=0)
    log.append_as_leader(sent, 0)
    log.append_as_leader(batch(None, keys=[b"a"]), 0)
    log.roll()
    Hasty(log).clean(first_dirty_offset=0, high_watermark=99, now_ms=0)
    assert content(log) == [] and [header.base_offset for header, _ in log.batches()] == [1]
