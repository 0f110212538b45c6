"""Checkpoints of a directory of logs: what they say of offsets ends when other records may stand there."""

import pytest
from log_lab import batch, disk_of, fill, options, records, values

from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.segmented_log import LogOfflineError
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk import Disk
from fencepost.sim.disk_faults import DiskCall

KEY = TopicPartition("t", 0)
COMPACT = options(compact=True, delete=False)


class Believing(LogDirectory):
    """Checkpoints stay as they are until the next ones."""

    def lower_checkpoints(self, key, end_offset):
        """Nothing."""

    def forget_former(self, key):
        """Nothing."""


def start(disk: Disk, kind: type[LogDirectory] = LogDirectory, settings=None) -> LogDirectory:
    """Opened as after whatever happened before."""
    return kind.start(disk, {KEY: settings or options(segment_bytes=10_000)})


def clean(logs: LogDirectory) -> None:
    """All is committed; the first dirty offset is the directory's."""
    log = logs.logs[KEY]
    log.roll()
    done = Cleaner(log).clean(
        first_dirty_offset=logs.first_dirty.get(KEY, 0), high_watermark=log.log_end_offset, now_ms=0
    )
    logs.first_dirty[KEY] = done.first_dirty_offset


def left_by_compaction_after_a_cut(kind: type[LogDirectory], offset: int) -> list[int]:
    """Offsets of one key: two are compacted, the log begins anew at `offset`, two others follow, the process
    crashes, and they are compacted."""
    disk = disk_of()
    logs = start(disk, kind, COMPACT)
    for value in (b"0", b"1"):
        logs.logs[KEY].append_as_leader(batch(value, keys=[b"a"]), 0)
    clean(logs)
    logs.checkpoint()
    logs.truncate_fully_and_start_at(KEY, offset)
    for value in (b"2", b"3"):
        logs.logs[KEY].append_as_leader(batch(value, keys=[b"a"]), 1)
    logs.abandon()
    logs = start(disk, kind, COMPACT)
    clean(logs)
    return [record.offset for record in records(logs.logs[KEY])]


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_what_follows_a_cut_was_never_cleaned(offset):
    """Rule: the cleaner's checkpoint is lowered with the log (Kafka: maybeTruncateCheckpoint), so that a
    crash does not make dirty records clean."""
    assert left_by_compaction_after_a_cut(LogDirectory, offset) == [offset + 1]


def test_a_cleaner_checkpoint_that_outlives_the_cut_leaves_superseded_records():
    """Rule: the test above fails where only the memory is lowered."""
    assert left_by_compaction_after_a_cut(Believing, 0) == [0, 1]


def losses_after_a_failed_sync(kind: type[LogDirectory]) -> int:
    """In how many of ten worlds records are lost that a recovery had: a cut below the recovery point,
    appends, a failed sync, a crash, a power loss."""
    lost = 0
    for seed in range(10):
        disk = disk_of(seed)
        logs = start(disk, kind)
        fill(logs.logs[KEY], 10)
        logs.logs[KEY].flush()
        logs.checkpoint()
        logs.truncate_to(KEY, 5)
        fill(logs.logs[KEY], 3, first=20)
        disk.fail_calls(DiskCall.SYNC, times=1)
        with pytest.raises(LogOfflineError):
            logs.logs[KEY].flush()
        disk.heal()
        logs.abandon()
        logs = start(disk, kind)
        recovered = values(logs.logs[KEY])
        logs.abandon()
        disk.power_loss()
        lost += recovered != values(start(disk, kind).logs[KEY])
    return lost


def test_what_follows_a_cut_was_never_synced():
    """Rule: the recovery point's checkpoint is lowered with the log (Kafka: checkpointRecoveryOffsetsInDir),
    so that recovery writes anew what no sync reached."""
    assert losses_after_a_failed_sync(LogDirectory) == 0
    assert losses_after_a_failed_sync(Believing) > 0


@pytest.mark.parametrize(("kind", "expected"), [(LogDirectory, [b"v0", b"v1"]), (Believing, [])])
def test_a_replica_that_is_made_anew_is_another_one(kind, expected, disk):
    """Rule: no checkpoint of a deleted replica speaks of one that is created under its name; where it does,
    flushed records are gone."""
    logs = start(disk, kind)
    fill(logs.logs[KEY], 10)
    logs.logs[KEY].advance_log_start_offset(8)
    logs.checkpoint()
    logs.forget(KEY)
    disk.rename(str(KEY), f"{KEY}.0-delete")
    disk.sync_directory("")
    log = logs.open(KEY, options())
    fill(log, 2)
    log.flush()
    logs.abandon()
    assert values(start(disk, kind).logs[KEY]) == expected


def test_a_start_that_was_lowered_and_moved_back_is_written_again(disk):
    """Rule: a checkpoint is written where it differs from what the file says, not from what it said before a
    cut."""
    logs = start(disk)
    log = logs.logs[KEY]
    fill(log, 10)
    log.advance_log_start_offset(6)
    logs.checkpoint()
    logs.truncate_to(KEY, 3)
    fill(log, 7)
    log.advance_log_start_offset(6)
    logs.checkpoint()
    logs.abandon()
    assert start(disk).logs[KEY].log_start_offset == 6
