"""What a disk says of a log is true: no power loss takes it, and the calls that a broker leaves out are seen.

The logs are those of the reference brokers, on simulated disks that lie, fail and lose power.
"""

import pytest

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.layout import CLEAN_SHUTDOWN, RECOVERY_POINTS
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness

SMALL = LogOptions(segment_bytes=300, contiguous=True)


def disk(seed=1):
    """An empty disk."""
    return Disk(node=1, randomness=Randomness(seed))


def batch(value):
    """One record."""
    return encode_batch([Record(0, value, None, b"%d" % value)], base_offset=0, leader_epoch=0)


def opened(files, options=SMALL, **given):
    """The log t-0 on this disk."""
    return SegmentedLog.open(files, "t-0", options=options, **given)


def append(log, *values):
    """As a leader of epoch 0."""
    for value in values:
        log.append_as_leader(batch(value), 0)


def said(files):
    """What the disk says of its one log."""
    (log,) = files.logs()
    return log


def test_what_was_synced_counts_to_its_last_whole_batch():
    """Rule: a sync that returned makes what was written before it sure; what follows is written only."""
    files = disk()
    log = opened(files)
    append(log, 1, 2)
    assert (said(files).end, said(files).asked, said(files).written) == (0, 0, 2)
    log.flush()
    append(log, 3)
    assert (said(files).end, said(files).asked, said(files).written) == (2, 2, 3)
    files.write_back()
    assert (said(files).end, said(files).asked) == (3, 2), (
        "the kernel's own write-back is no call of a broker"
    )
    log.truncate_to(1)
    assert (said(files).end, said(files).asked, said(files).written) == (1, 1, 1)


def test_a_lie_and_a_failure_make_nothing_sure_and_were_asked_for():
    """Rule: the disk's fault is no broker's, and excuses what it cost."""
    liar, failing = disk(), disk()
    liar_log, failing_log = opened(liar), opened(failing)
    append(liar_log, 1)
    append(failing_log, 1)
    liar.lie_about_syncs()
    liar_log.flush()
    assert (said(liar).end, said(liar).asked) == (0, 1)
    failing.fail_calls(DiskCall.SYNC)
    with pytest.raises(LogOfflineError):
        failing_log.flush()
    assert said(failing).asked == 1


def test_a_name_that_nobody_asked_to_sync_counts_and_one_that_the_disk_refused_does_not():
    """Rule: a missing call for the directory is the broker's fault."""

    def made(*, asks, lies=False):
        files = disk()
        files.make_directory("t-0")
        files.sync_directory("")
        file = files.open("t-0/00000000000000000000.log")
        if lies:
            files.lie_about_syncs(times=1)
        if asks:
            files.sync_directory("t-0")
        file.append(batch(1))
        file.sync()
        return said(files)

    assert made(asks=True).end == 1
    assert made(asks=False).end == 1
    assert made(asks=True, lies=True).end == 0


def test_a_file_that_was_synced_before_it_got_its_name_may_be_the_old_one():
    """Rule: between the rename of a file and the sync of its directory either file may come back."""
    files = disk()
    log = opened(files)
    append(log, 1)
    log.flush()
    copy = files.open("t-0/00000000000000000000.log.cleaned")
    copy.append(files.open("t-0/00000000000000000000.log").read_at(0, 1000))
    copy.append(batch(1)[:7] + b"\1" + batch(1)[8:])
    copy.sync()
    assert said(files).end == 1
    files.rename("t-0/00000000000000000000.log.cleaned", "t-0/00000000000000000000.log")
    assert (said(files).end, said(files).written) == (1, 2)
    files.sync_directory("t-0")
    assert said(files).end == 2


def test_a_gap_ends_a_log_that_was_never_compacted():
    """Rule: both ends are said, because the disk does not know the topic."""
    files = disk()
    log = opened(files)
    append(log, *range(9))
    log.flush()
    names = [name for name in files.list("t-0") if name.endswith(".log")]
    assert len(names) > 2
    files.remove(f"t-0/{names[1]}")
    files.sync_directory("t-0")
    assert said(files).end == int(names[1][:20]) and said(files).end_over_gaps == 9


def test_a_rotten_bit_ends_what_is_sure_and_nothing_is_said_of_calls():
    """Rule: recovery cuts the log there."""
    files = disk()
    log = opened(files, LogOptions(contiguous=True))
    append(log, 1, 2)
    log.flush()
    size = len(batch(1))
    assert files.rot_bit_within("t-0/00000000000000000000.log", (range(size + 30, 2 * size),)) is not None
    assert (said(files).end, said(files).asked, said(files).written) == (1, -1, -1)


def test_the_marker_of_a_clean_stop_and_the_recovery_point_are_said():
    """Rule: both are promises of the broker, and come with what it asked for."""
    files = disk()
    log = opened(files)
    append(log, 1)
    assert (said(files).clean, said(files).recovery_point) == (False, -1)
    log.close()
    files.open(CLEAN_SHUTDOWN)
    files.open(RECOVERY_POINTS).append(b"0\n1\nt 0 1\n")
    assert (said(files).clean, said(files).recovery_point, said(files).asked) == (True, 1, 1)


def life(files, seed):
    """Some calls of a log, of a disk that may lie or fail at times, until the power fails."""
    draw, log, number, step = Randomness(seed), opened(files), 0, 0

    def below(bound):
        nonlocal step
        step += 1
        return draw.below(bound, "step", step)

    files.arm_power_loss(1 + below(150))
    try:
        while True:
            files.take_cost()
            number += 1
            match below(12):
                case 0:
                    log.flush()
                case 1:
                    log.roll()
                case 2:
                    log.truncate_to(max(0, log.log_end_offset - below(6)))
                case 3 if below(3) == 0:
                    files.lie_about_syncs(times=1 + below(3))
                case 4 if below(6) == 0:
                    files.fail_calls(DiskCall.SYNC)
                case 5 if below(4) == 0:
                    log.abandon()
                    log = opened(files)
                case _:
                    append(log, number)
    except (PowerLoss, LogOfflineError):
        pass


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_power_loss_takes_what_was_said(first):
    """Rule: whatever calls came before, and wherever the power fails, the log that is opened next ends no
    earlier than the disk said; and often that is more than nothing."""
    more = 0
    for seed in range(first, first + 100):
        files = disk(seed)
        life(files, seed)
        files.heal()
        (promised,) = files.power_loss().logs or (None,)
        if promised is None:
            continue
        again = opened(files)
        assert again.log_end_offset >= promised.end, seed
        more += promised.end > 0
    assert more > 30
