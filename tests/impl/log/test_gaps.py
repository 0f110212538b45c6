"""Gaps between offsets: normal where a log may have been compacted, damage where nobody ever did; and base
offsets that rot, which no checksum covers."""

import pytest
from log_lab import T, batch, disk_of, fill, open_log, options, values

from fencepost.impl.log.batch.header import read_headers
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.layout import LOG_STARTS
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.segmented_log import LogOfflineError, UnexpectedOffsetError
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk_faults import DiskCall

KEY = TopicPartition("t", 0)
AS_FOUND = options(contiguous=False)
COMPACT = options(contiguous=False, compact=True, delete=False)


class AsKafka(Cleaner):
    """The first batch of a leader epoch may go."""

    def first_of_epoch(self, header):
        return False


def compacted(disk) -> list[bytes]:
    """A log of nine offsets whose keys recur, compacted as Kafka does it and left as a crash leaves it;
    returns what is in it."""
    log = open_log(disk, options=COMPACT)
    for number in range(9):
        log.append_as_leader(batch(b"v%d" % number, keys=[b"ab"[number % 2 :][:1]]), number // 3)
    log.roll()
    AsKafka(log).clean(first_dirty_offset=0, high_watermark=9, now_ms=0)
    log.flush()
    return values(log)


@pytest.mark.parametrize("clean", [False, True])
def test_a_compacted_log_opens_whoever_opens_it(clean, disk):
    """Rule: nothing is lost because nobody said that the topic is compacted; epochs whose records are gone
    stay known."""
    before = compacted(disk)
    for settings in (AS_FOUND, COMPACT):
        log = open_log(disk, options=settings, clean=clean)
        assert (values(log), log.log_end_offset) == (before, 9) and before == [b"v7", b"v8"]
        assert log.epochs.entries == [(0, 0), (1, 3), (2, 6)]
        assert values(log)[0] in log.read(0, max_bytes=1, end_offset=99)


def test_where_nobody_compacts_a_gap_is_damage():
    """Rule: a log that is told to be contiguous ends where the gap begins, after a crash and after a clean
    stop."""
    for clean in (False, True):
        disk = disk_of()
        compacted(disk)
        assert open_log(disk, options=options(), clean=clean).log_end_offset == 0


def test_a_follower_appends_the_gaps_of_its_leader():
    """Rule: a follower takes what a compacted leader has; one of a contiguous log refuses it."""
    sent = batch(b"later", base=5, epoch=0)
    follower = open_log(disk_of(), options=AS_FOUND)
    follower.append_as_follower(sent)
    assert follower.log_end_offset == 6
    with pytest.raises(UnexpectedOffsetError):
        follower.append_as_follower(batch(b"again", base=5, epoch=0))
    with pytest.raises(UnexpectedOffsetError):
        open_log(disk_of(), options=options()).append_as_follower(sent)


@pytest.mark.parametrize("settings", [AS_FOUND, options()], ids=["gaps", "contiguous"])
@pytest.mark.parametrize("bit", [0, 3, 17])
def test_an_offset_that_rotted_is_told_by_the_next_batch(settings, bit, disk):
    """Rule: when a batch jumps ahead and the next one does not, it is the first whose offset is wrong, gaps
    or not."""
    wide = {"segment_bytes": 10_000}
    log = open_log(disk, options=options(**wide))
    fill(log, 8)
    log.flush()
    file = disk.open(f"{T}/{0:020d}.log")
    data = bytearray(file.read_at(0, 10_000))
    position = [header.position for header in read_headers(bytes(data))][4]
    data[position + 7 - bit // 8] ^= 1 << bit % 8
    file.truncate(0)
    file.append(bytes(data))
    log = open_log(disk, options=options(contiguous=settings.contiguous, **wide))
    assert values(log) == [b"v0", b"v1", b"v2", b"v3"]
    fill(log, 1, first=4)
    assert log.read(4, max_bytes=1, end_offset=5)[7] == 4


def test_the_directory_tells_of_a_bad_disk_in_words(disk):
    """Rule: a caller hears LogOfflineError, whichever file failed, never the operating system's error."""
    logs = LogDirectory.start(disk, {KEY: options()})
    fill(logs.logs[KEY], 3)
    disk.fail_calls(DiskCall.SYNC, times=None)
    logs.log_starts[KEY] = 0
    with pytest.raises(LogOfflineError, match="checkpoint the log directory"):
        logs.checkpoint()
    disk.heal()
    disk.fail_calls(DiskCall.READ, times=None)
    with pytest.raises(LogOfflineError, match="read t-0"):
        list(logs.logs[KEY].batches())
    disk.heal()
    with pytest.raises(LogOfflineError):
        logs.close()
    assert LogDirectory.start(disk, {KEY: options()}).clean is False
    assert disk.exists(LOG_STARTS)
