"""Retention removes whole old segments for three reasons and never one that may hold an uncommitted
record."""

import pytest
from log_lab import T, batch, disk_of, fill, open_log, options, values

from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.retention import Retention


def left(high_watermark: int, *, now_ms: int = 0, start: int = 0, **changes) -> list[bytes]:
    """What retention leaves of ten records at times 0, 10, ... in segments of three."""
    log = open_log(disk_of(), options=options(retention_ms=-1, **changes))
    fill(log, 10)
    log.advance_log_start_offset(start)
    Retention(log).apply(high_watermark=high_watermark, now_ms=now_ms)
    return values(log)


def kept(first: int, last: int = 10) -> list[bytes]:
    return [b"v%d" % number for number in range(first, last)]


def test_by_time():
    """Rule: a segment goes when its latest record is older than retention.ms; the active one is rolled for
    it."""
    assert left(10, now_ms=120, retention_bytes=-1) == kept(0)
    log = open_log(disk_of(), options=options(retention_ms=50))
    fill(log, 10)
    assert [Retention(log).apply(high_watermark=10, now_ms=now) for now in (70, 71, 131, 1_000)] == [
        0,
        1,
        2,
        1,
    ]
    assert (values(log), log.log_start_offset, log.log_end_offset) == ([], 10, 10)


def test_what_compaction_emptied_goes_with_the_next_segment():
    """Rule: a segment without records has no age. It keeps nothing older from going, and does not go before
    what follows is too old (Kafka takes the time of its file, which compaction preserves)."""
    log = open_log(disk_of(), options=options(compact=True, delete=True, retention_ms=50))
    for at in range(10):
        log.append_as_leader(batch(b"%d" % at, keys=[b"k"], at=10 * at), 0)
    log.roll()
    Cleaner(log).clean(first_dirty_offset=0, high_watermark=99, now_ms=0)
    assert [segment.size > 0 for segment in log.segments.all] == [False, False, False, True, False]
    assert Retention(log).apply(high_watermark=99, now_ms=140) == 0
    assert Retention(log).apply(high_watermark=99, now_ms=141) == 4
    assert (values(log), log.log_start_offset) == ([], 10)


def test_by_bytes():
    """Rule: the oldest go as long as what stays is at least retention.bytes."""
    assert left(10, retention_bytes=10_000) == kept(0)
    assert left(10, retention_bytes=70 * 4) == kept(6)
    assert left(10, retention_bytes=0) == []


def test_by_log_start():
    """Rule KAFKA-7400: segments below the log start go whatever the policy says, also those of a compacted
    topic."""
    assert left(10, start=5) == kept(3)
    assert left(10, start=6, delete=False, compact=True) == kept(6)


@pytest.mark.parametrize("high_watermark", range(11))
def test_never_above_the_high_watermark(high_watermark):
    """Rule L4: a segment with an uncommitted record stays, whatever is due."""
    first = {10: 10}.get(high_watermark, high_watermark // 3 * 3)
    assert left(high_watermark, retention_bytes=0) == kept(first)


def test_a_policy_that_does_not_delete_deletes_nothing():
    """Rule: cleanup.policy=compact ignores retention.ms and retention.bytes."""
    assert left(10, retention_bytes=0, delete=False, compact=True) == kept(0)


def test_what_was_removed_stays_removed(disk):
    """Rule: the removal is durable when it returns, files of every kind included."""
    log = open_log(disk, options=options(retention_bytes=0))
    fill(log, 10)
    Retention(log).apply(high_watermark=9, now_ms=0)
    disk.power_loss()
    assert min(int(name[:20]) for name in disk.list(T) if name[0] == "0") == 9
    assert open_log(disk).log_start_offset == 9
