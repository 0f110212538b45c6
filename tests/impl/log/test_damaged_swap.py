"""A compacted segment that waits to take its place (`.swap`) and was damaged by a disk that lied or rotted
(found by the storage profile, seed 1378)."""

import pytest
from log_lab import T, batch, disk_of, open_log, options, values

from fencepost.impl.log.layout import LOG, SWAP, segment_path

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
def test_the_old_segment_stays_where_it_is_still_there(rotten):
    """Rule: a start is not ended by a damaged swap, and records that the old segment still has are not given
    up for it."""
    disk = disk_of()
    data = torn_swap(disk)
    if rotten:
        swap = disk.open(segment_path(T, 0, LOG, SWAP))
        swap.truncate(0)
        swap.append(data[:-1] + bytes([data[-1] ^ 1]))
    log = open_log(disk, options=options(segment_bytes=100_000, **KEYED))
    assert values(log) == [b"v0", b"v1", b"v2"]
    assert not [name for name in disk.list(T) if name.endswith(SWAP)]


def test_the_swap_is_cut_where_nothing_else_is_left():
    """Rule: Kafka removes the old segments first; then what is good of the swap is the log."""
    disk = disk_of()
    torn_swap(disk)
    disk.remove(segment_path(T, 0, LOG))
    log = open_log(disk, options=options(segment_bytes=100_000, **KEYED))
    assert (values(log), log.log_end_offset) == ([b"v0", b"v1"], 2)
