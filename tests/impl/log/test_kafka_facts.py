"""What real brokers were seen to do (tests/systems/apache_kafka/log_format), held fast on bytes of our own,
so that it stays true where no broker runs."""

from struct import pack

from log_lab import T, batch, disk_of, fill, open_log, options, values

from fencepost.impl.log.batch.header import read_headers
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.layout import CLEANED, INDEX, LOG, SWAP, TIME_INDEX, segment_path

WIDE = {"segment_bytes": 100_000, "contiguous": False}


def content(disk, name: str) -> bytes:
    """A file of the log."""
    return disk.open(f"{T}/{name}").read_at(0, 100_000)


def test_where_index_entries_stand(disk):
    """Fact: an entry is due when more than the interval lies behind the last one; it names the last offset
    and the position of the batch that follows; the time index has an entry with it, and one for the largest
    timestamp when the segment ends."""
    log = open_log(disk, options=options(index_interval_bytes=200, **WIDE))
    for number in range(8):
        log.append_as_leader(batch(b"a", b"b", at=1_000 + 10 * number), 0)
    log.close()
    sizes = [header.size for header in read_headers(content(disk, f"{0:020d}.log"))]
    assert len(set(sizes)) == 1 and 2 * sizes[0] < 200 < 3 * sizes[0]
    entries = [(7, 3 * sizes[0]), (13, 6 * sizes[0])]
    assert content(disk, f"{0:020d}{INDEX}") == b"".join(pack(">ii", *entry) for entry in entries)
    times = [(1_031, 7), (1_061, 13), (1_071, 15)]
    assert content(disk, f"{0:020d}{TIME_INDEX}") == b"".join(pack(">qi", *entry) for entry in times)


def test_an_index_of_a_killed_broker_is_room_without_entries(disk):
    """Fact: a killed broker leaves indexes of their full size; zeros from the beginning on are an empty
    index, not an entry for offset 0."""
    disk.make_directory(T)
    path = segment_path(T, 0, INDEX)
    disk.open(path).append(bytes(10_000))
    index = OffsetIndex(files=disk, path=path, base_offset=0, max_bytes=10_000)
    assert len(index) == 0 and not index.is_full


def test_an_epoch_that_wrote_nothing_goes_at_a_start(disk):
    """Fact: an elected leader notes its epoch at once; at a start the epoch is forgotten if no record came
    after it."""
    log = open_log(disk, options=options(**WIDE))
    fill(log, 3)
    log.epochs.assign(1, 3)
    log.close()
    assert open_log(disk, options=options(**WIDE), clean=True).epochs.entries == [(0, 0)]


def test_epochs_begin_at_the_log_start_at_the_latest():
    """Fact: after records were deleted, the epoch that goes on there begins there, also when it was made
    again out of the batches."""
    for lost in (False, True):
        disk = disk_of()
        log = open_log(disk, options=options(**WIDE))
        fill(log, 6)
        log.close()
        if lost:
            disk.remove(f"{T}/leader-epoch-checkpoint")
        again = open_log(disk, options=options(**WIDE), clean=True, log_start_offset=4)
        assert again.epochs.entries == [(0, 4)]


def test_a_compaction_that_kafka_did_not_finish_is_undone_or_finished():
    """Fact: a broker renames the log to .swap before its indexes; while one is .cleaned the old segments
    stay, afterwards they go."""
    for finished in (False, True):
        disk = disk_of()
        keyed = options(contiguous=False, compact=True, delete=False)
        log = open_log(disk, options=keyed)
        for number in range(7):
            log.append_as_leader(batch(b"v%d" % number, keys=[b"k"]), 0)
        before = values(log)
        old = {name: content(disk, name) for name in disk.list(T) if name.endswith(LOG)}
        log.roll()
        log.options = options(compact=True, delete=False, **WIDE)  # all old segments become one
        Cleaner(log).clean(first_dirty_offset=0, high_watermark=7, now_ms=0)
        assert values(log) == [b"v6"]
        cleaned = content(disk, f"{0:020d}{LOG}")
        disk.remove(f"{T}/{0:020d}{LOG}")
        for name, data in old.items():
            if disk.exists(f"{T}/{name}"):
                disk.remove(f"{T}/{name}")
            disk.open(f"{T}/{name}").append(data)
        disk.open(segment_path(T, 0, LOG, SWAP)).append(cleaned)
        if not finished:
            disk.open(segment_path(T, 0, INDEX, CLEANED)).append(b"")
        log = open_log(disk, options=keyed)
        assert (values(log), log.log_end_offset) == ([b"v6"] if finished else before, 7)
        assert not [name for name in disk.list(T) if name.endswith((SWAP, CLEANED))]
