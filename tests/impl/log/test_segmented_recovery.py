"""What is left of a log after crashes, damage and old checkpoints, case by case; the state machine tries the
combinations."""

import pytest
from log_lab import T, batch, disk_of, fill, open_log, options, records, values

from fencepost.impl.log.checkpoint import log_checkpoints
from fencepost.impl.log.layout import CLEAN_SHUTDOWN, LOG, RECOVERY_POINTS, SWAP, segment_path
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk import PowerLoss
from fencepost.sim.disk_faults import DiskCall

KEY = TopicPartition("t", 0)


def names(disk, ending: str) -> list[int]:
    """The base offsets of the files of one kind."""
    return [int(name[:20]) for name in disk.list(T) if name.endswith(ending)]


def test_a_torn_tail_is_cut(disk):
    """Rule: what follows the last whole batch was never there."""
    fill(open_log(disk), 5)
    disk.open(f"{T}/{3:020d}.log").append(batch(b"torn", base=5)[:40])
    log = open_log(disk)
    assert (values(log), log.log_end_offset) == ([b"v0", b"v1", b"v2", b"v3", b"v4"], 5)
    assert log.append_as_leader(batch(b"next"), 0).base_offset == 5


def test_a_bad_batch_takes_everything_behind_it(disk, log):
    """Rule: the log ends before the first batch whose checksum fails, later segments go with it, and epochs
    and producers with them."""
    fill(log, 4)
    log.append_as_leader(batch(b"p", producer_id=7, producer_epoch=0, base_sequence=0), 1)
    fill(log, 6, epoch=2, first=5)
    assert names(disk, ".log") == [0, 3, 6, 9]
    content = disk.open(f"{T}/{3:020d}.log")
    data = bytearray(content.read_at(0, 1_000))
    content.truncate(0)
    data[70 + 65] ^= 1
    content.append(bytes(data))
    log = open_log(disk)
    assert (values(log), log.log_end_offset, log.recovery_point) == ([b"v0", b"v1", b"v2", b"v3"], 4, 4)
    assert (log.epochs.entries, log.producers.producers) == ([(0, 0)], {})
    assert names(disk, ".log") == [0, 3] and max(names(disk, ".snapshot")) <= 4


def test_below_the_recovery_point_only_indexes_are_looked_at(disk):
    """Rule: a start reads what may have been lost, not the whole log; a missing index is made again."""
    fill(open_log(disk), 10)
    disk.remove(f"{T}/{3:020d}.index")
    whole = disk.open(f"{T}/{0:020d}.log")
    data = bytearray(whole.read_at(0, 1_000))
    data[-1] ^= 1  # damage that recovery does not see, since it does not read it
    whole.truncate(0)
    whole.append(bytes(data))
    log = open_log(disk, recovery_point=9)
    assert log.log_end_offset == 10
    assert [log.read(offset, max_bytes=1, end_offset=99)[7] for offset in range(10)] == list(range(10))
    assert 3 in names(disk, ".index")


def test_after_a_failed_sync_recovery_writes_anew():
    """Rule: pages that a failed sync gave up are read, count as clean, and are gone after a power loss,
    unless recovery writes them again."""

    class Trusting(LogRecovery):
        def make_durable(self, segment):
            segment.sync(indexes=True)

    def ends(recovery) -> set[int]:
        found = set()
        for seed in range(12):
            disk = disk_of(seed)
            log = open_log(disk)
            fill(log, 2)
            disk.fail_calls(DiskCall.SYNC)
            with pytest.raises(LogOfflineError):
                log.flush()
            disk.heal()
            log = open_log(disk, recovery=recovery)
            assert log.log_end_offset == log.recovery_point == 2
            log.flush()
            disk.power_loss()
            found.add(open_log(disk).log_end_offset)
        return found

    assert ends(LogRecovery) == {2}
    assert min(ends(Trusting)) < 2


def test_after_an_error_the_log_is_offline_until_it_is_opened_anew(disk, log):
    """Rule: nobody knows what the disk holds after an error, so that nothing is promised."""
    fill(log, 1)
    disk.limit_capacity(0)
    with pytest.raises(LogOfflineError, match="No space left"):
        fill(log, 1, first=1)
    disk.heal()
    for call in (lambda: fill(log, 1), log.flush, log.roll, lambda: log.truncate_to(0), log.close):
        with pytest.raises(LogOfflineError):
            call()
    assert values(open_log(disk)) == [b"v0"]


@pytest.mark.parametrize("missing", ["leader-epoch-checkpoint", ".snapshot", ".index", ".timeindex"])
def test_what_can_be_made_again_is_made_again(missing, disk, log):
    """Rule: only the batches are the truth; without any of the other files a clean log opens the same."""
    for number in range(8):
        produced = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}
        log.append_as_leader(batch(b"v%d" % number, at=number * 10, **produced), number // 3)
    entries, last = log.epochs.entries, log.producers.producers[7].last_sequence
    log.close()
    for name in disk.list(T):
        if name.endswith(missing):
            disk.remove(f"{T}/{name}")
    if missing != ".snapshot":
        disk.open(f"{T}/{8:020d}.snapshot").truncate(0)  # a stop was cut short: Kafka removes such a one
    log = open_log(disk, clean=True)
    assert (log.epochs.entries, log.producers.producers[7].last_sequence) == (entries, last)
    assert 8 not in names(disk, ".snapshot")
    assert log.find_timestamp(45, end_offset=99).offset == 5
    assert len(records(log)) == log.log_end_offset == 8


def test_preallocated_zeros_in_an_index_are_room_not_entries(disk, log):
    """Rule: an index as a running broker leaves it is read, and trimmed when it is written next."""
    fill(log, 9)
    log.close()
    for name in disk.list(T):
        if name.endswith("index"):
            disk.open(f"{T}/{name}").append(bytes(10_000))
    log = open_log(disk, clean=True)
    assert [log.read(offset, max_bytes=1, end_offset=99)[7] for offset in range(9)] == list(range(9))
    fill(log, 1, first=9)
    log.close()
    assert disk.open(f"{T}/{6:020d}.index").size() < 100


def test_offset_checkpoints_are_kafkas(disk):
    """Rule: recovery points and log starts have the format of Kafka's checkpoints."""
    log_checkpoints.write_offsets(disk, RECOVERY_POINTS, {KEY: 3, TopicPartition("a-b", 1): 4})
    assert disk.open(RECOVERY_POINTS).read_at(0, 99) == b"0\n2\na-b 1 4\nt 0 3\n"
    assert log_checkpoints.read_offsets(disk, RECOVERY_POINTS) == {KEY: 3, TopicPartition("a-b", 1): 4}


def test_the_clean_marker_is_gone_for_good_before_anything_is_loaded():
    """Rule KAFKA-10471: once taken, no power loss brings it back."""
    for seed in range(20):
        disk = disk_of(seed)
        log_checkpoints.put_clean_shutdown_marker(disk)
        disk.power_loss()
        assert log_checkpoints.take_clean_shutdown_marker(disk)
        disk.power_loss()
        assert not disk.exists(CLEAN_SHUTDOWN) and not log_checkpoints.take_clean_shutdown_marker(disk)


def test_a_start_that_was_interrupted_makes_the_next_one_unclean():
    """Rule KAFKA-10471: a crash while the logs are loaded is a crash; a directory that takes the marker away
    last is told by this test."""

    class Late(LogDirectory):
        def take_marker_first(self):
            self.clean = self.files.exists(CLEAN_SHUTDOWN)

        def loaded(self):
            log_checkpoints.take_clean_shutdown_marker(self.files)

    class Failing(SegmentedLog):
        @classmethod
        def open(cls, *_, **__):
            raise PowerLoss

    def second_start(directory: type[LogDirectory]) -> bool:
        disk = disk_of()
        first = directory.start(disk, {KEY: options()})
        fill(first.logs[KEY], 4)
        first.close()
        with pytest.raises(PowerLoss):
            directory.start(disk, {KEY: options()}, log_type=Failing)
        return directory.start(disk, {KEY: options()}).clean

    assert second_start(LogDirectory) is False
    assert second_start(Late) is True


@pytest.mark.parametrize("failing", [True, False])
def test_a_marker_that_was_half_taken_does_not_come_back(failing):
    """Rule KAFKA-10471: a start that failed, or died, before the marker's end was durable leaves the next one
    to see to it (found by the log machine, round 3013)."""

    def back(take) -> int:
        """In how many worlds a power loss brings the marker back after the second start."""
        count = 0
        for seed in range(20):
            disk = disk_of(seed)
            log_checkpoints.put_clean_shutdown_marker(disk)
            if failing:
                disk.fail_calls(DiskCall.SYNC, times=1)
                with pytest.raises(OSError, match="Input/output"):
                    take(disk)
                disk.heal()
            else:
                take(Dying(disk))
            assert not take(disk)
            disk.power_loss()
            count += disk.exists(CLEAN_SHUTDOWN)
        return count

    assert back(log_checkpoints.take_clean_shutdown_marker) == 0
    assert back(remove_marker) > 0


def remove_marker(disk) -> bool:
    """What Kafka does, and a sync of the directory."""
    if not disk.exists(CLEAN_SHUTDOWN):
        return False
    disk.remove(CLEAN_SHUTDOWN)
    disk.sync_directory("")
    return True


class Dying:
    """The disk of a process that is killed at its first sync."""

    def __init__(self, disk):
        self.disk, self.dead = disk, False

    def __getattr__(self, name):
        self.dead = self.dead or name == "sync_directory"
        return (lambda *_: False) if self.dead else getattr(self.disk, name)


def test_a_clean_stop_is_believed(disk):
    """Rule: after a clean stop nothing is read but ends and indexes, and everything is as it was."""
    first = LogDirectory.start(disk, {KEY: options()})
    fill(first.logs[KEY], 7)
    first.close()
    calls = disk.calls
    second = LogDirectory.start(disk, {KEY: options()})
    assert second.clean and values(second.logs[KEY]) == [b"v%d" % number for number in range(7)]
    assert disk.calls == calls + 3, "the marker's other name, the directory's sync, the marker's removal"


def test_a_log_whose_end_lies_below_its_start_begins_anew_there(disk):
    """Rule: records were deleted up to an offset that the rest of the log did not reach durably."""
    fill(open_log(disk), 2)
    log = open_log(disk, log_start_offset=5)
    assert (log.log_start_offset, log.log_end_offset, values(log), names(disk, ".log")) == (5, 5, [], [5])


def test_what_a_failed_removal_of_segments_left_goes_at_the_next_start(disk):
    """Rule (Kafka's removeStraySnapshots): a disk that fails after the segment leaves its snapshot, which
    nothing else would remove before the next retention."""
    log = open_log(disk, options=options(retention_ms=-1))
    fill(log, 10)
    log.close()
    for base in (0, 3):
        for kind in (".log", ".index", ".timeindex"):
            disk.remove(f"{T}/{base:020d}{kind}")
    assert names(disk, ".log") == [6, 9] and min(names(disk, ".snapshot")) == 3
    assert open_log(disk).log_start_offset == 6
    assert min(names(disk, ".snapshot")) == 6


# A compacted segment that waits to take its place (`.swap`) and was damaged by a disk that lied or rotted
# (found by the storage profile, seed 1378).


KEYED = {"contiguous": False, "compact": True, "delete": False}


def torn_swap(disk) -> bytes:
    """A log of three batches, and of its first two and a half a swap. Returns the log's bytes."""
    log = open_log(disk, options=options(segment_bytes=100_000, **KEYED))
    for number in range(3):
        log.append_as_leader(batch(b"v%d" % number, keys=[b"k%d" % number]), 0)
    log.close()
    data = disk.open(segment_path(T, 0, LOG)).read_at(0, 100_000)
    disk.open(segment_path(T, 0, LOG, SWAP)).append(data[: len(data) * 5 // 6])
    return data


@pytest.mark.parametrize("rotten", [False, True])
def test_the_old_segment_stays_where_it_is_still_there(rotten, disk):
    """Rule: a start is not ended by a damaged swap, and records that the old segment still has are not given
    up for it."""
    data = torn_swap(disk)
    if rotten:
        swap = disk.open(segment_path(T, 0, LOG, SWAP))
        swap.truncate(0)
        swap.append(data[:-1] + bytes([data[-1] ^ 1]))
    log = open_log(disk, options=options(segment_bytes=100_000, **KEYED))
    assert values(log) == [b"v0", b"v1", b"v2"]
    assert not [name for name in disk.list(T) if name.endswith(SWAP)]


def test_the_swap_is_cut_where_nothing_else_is_left(disk):
    """Rule: Kafka removes the old segments first; then what is good of the swap is the log."""
    torn_swap(disk)
    disk.remove(segment_path(T, 0, LOG))
    log = open_log(disk, options=options(segment_bytes=100_000, **KEYED))
    assert (values(log), log.log_end_offset) == ([b"v0", b"v1"], 2)
