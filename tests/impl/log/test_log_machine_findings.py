"""Defects of the log that the machine has found, each as the shortest test that shows it."""

import pytest
from log_lab import T, batch, disk_of, fill, open_log, options

from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.record_batch import CorruptBatchError, read_headers


def displace_last_batch_of_first_segment(disk) -> None:
    """Its base offset, which is under no checksum, becomes a huge one."""
    file = disk.open(f"{T}/{0:020d}.log")
    data = bytearray(file.read_at(0, 10_000))
    *_, last = read_headers(bytes(data))
    data[last.position] ^= 0x10
    file.truncate(0)
    file.append(bytes(data))


def test_the_cleaner_refuses_a_batch_whose_offset_rotted():
    """Rule: what no index could name is refused in a sentence, and never written anew."""
    disk = disk_of()
    log = open_log(disk, options=options(compact=True))
    for number in range(6):
        log.append_as_leader(batch(b"v%d" % number, keys=[b"k%d" % number], at=number), 0)
    displace_last_batch_of_first_segment(disk)
    with pytest.raises(CorruptBatchError, match="within 31 bits"):
        Cleaner(log).clean(first_dirty_offset=0, high_watermark=6, now_ms=0)


@pytest.mark.parametrize("clean", [False, True])
def test_a_start_cuts_before_a_batch_whose_offset_rotted(clean):
    """Rule: also below the recovery point, where no checksum is compared, a start ends in a log and not in a traceback."""
    disk = disk_of()
    log = open_log(disk)
    fill(log, 7)
    log.close()
    displace_last_batch_of_first_segment(disk)
    log = open_log(disk, recovery_point=7, clean=clean)
    assert log.log_end_offset == 2
