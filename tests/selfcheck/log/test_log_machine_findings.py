"""Defects of the log that the machine has found, each as the shortest test that shows it."""

import pytest

from fencepost.impl.log.batch.record_batch import CorruptBatchError, read_headers
from fencepost.impl.log.cleaner import Cleaner
from tests.impl.log.log_lab import T, batch, disk_of, fill, open_log, options


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
    """Rule: also below the recovery point, where no checksum is compared, a start ends in a log and not in a
    traceback."""
    disk = disk_of()
    log = open_log(disk)
    fill(log, 7)
    log.close()
    displace_last_batch_of_first_segment(disk)
    log = open_log(disk, recovery_point=7, clean=clean)
    assert log.log_end_offset == 2


def test_an_index_entry_beside_a_batch_cuts_no_answer():
    """Rule: what is read are whole batches, also where a bit of an index entry turned and the byte that it
    leads to looks like a batch's first: with leader epoch 2 the one before it does, magic and all."""
    disk = disk_of()
    settings = options(segment_bytes=10_000, index_interval_bytes=60)
    log = open_log(disk, options=settings)
    for number in range(8):
        log.append_as_leader(batch(b"v%d" % number), 2)
    log.close()
    index = disk.open(f"{T}/{0:020d}.index")
    data = bytearray(index.read_at(0, 1_000))
    assert len(data) >= 16, "a second entry that is not the last one"
    data[7] -= 1
    index.truncate(0)
    index.append(bytes(data))
    log = open_log(disk, options=settings, recovery_point=8, clean=True)
    first_entry = int.from_bytes(data[4:8], "big")
    answer = log.read(0, max_bytes=first_entry + 80, end_offset=7)
    headers = list(read_headers(answer))
    assert headers and headers[-1].end_position == len(answer)


@pytest.mark.parametrize("damage", ["lost", "bad"])
def test_a_snapshot_that_was_lost_is_made_again_before_its_batches_go(damage):
    """Rule KIP-360: a producer is known after a restart whose snapshot was lost at one start, and whose
    batches were deleted after it."""
    disk = disk_of()
    log = open_log(disk)
    log.append_as_leader(batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0), 0)
    log.roll()
    log.abandon()
    path = f"{T}/{1:020d}.snapshot"
    if damage == "lost":
        disk.remove(path)
    else:
        file = disk.open(path)
        file.truncate(3)
        file.sync()
    log = open_log(disk)
    log.remove_oldest(1)
    log.abandon()
    disk.power_loss()
    assert sorted(open_log(disk).producers.producers) == [7]
