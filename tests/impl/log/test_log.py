"""The log of one replica: appends, reads, truncation, recovery, and what a power loss may leave of it."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencepost.impl.log.epochs import LeaderEpochCache
from fencepost.impl.log.log import LOG_FILE, Log, UnexpectedOffsetError
from fencepost.impl.log.records import HEADER_SIZE, Batch, decode_batches, encode_batch
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import DiskOptions

ONE_RECORD = len(encode_batch(0, 0, (1,)))
SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=8)
"""(records, how much the leader epoch grows) of each batch."""


def disk_of(seed: int = 1) -> Disk:
    return Disk(node=1, randomness=Randomness(seed), options=DiskOptions(write_us=0, fsync_us=0))


def open_log(disk: Disk, flush_messages: int = 0) -> Log:
    return Log.open(disk, "t-0", flush_messages=flush_messages, epoch_cache=LeaderEpochCache)


def fill(log: Log, shape: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Append batches of this shape; returns (leader epoch, value) by offset. Values are offsets + 100."""
    written, epoch = [], 0
    for count, growth in shape:
        epoch += growth
        values = tuple(100 + log.log_end_offset + index for index in range(count))
        log.append_as_leader(values, epoch)
        written += [(epoch, value) for value in values]
    return written


def content(log: Log) -> list[tuple[int, int]]:
    """(leader epoch, value) by offset."""
    return [(batch.leader_epoch, value) for batch in log.batches() for value in batch.values]


def epochs_of(written: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The epoch entries that such content has."""
    entries: list[tuple[int, int]] = []
    for offset, (epoch, _) in enumerate(written):
        if not entries or entries[-1][0] != epoch:
            entries.append((epoch, offset))
    return entries


def decoded(data: bytes) -> list[Batch]:
    """The batches of a buffer."""
    return list(decode_batches(data))


# ---- append


def test_offsets_are_dense_across_batches() -> None:
    """Rule: a batch begins at the log end offset and moves it by its number of records."""
    log = open_log(disk_of())
    assert [log.append_as_leader((1, 2, 3), 0), log.append_as_leader((4,), 0)] == [0, 3]
    assert log.log_end_offset == 4


def test_a_follower_takes_batches_as_they_are_and_only_at_its_end() -> None:
    """Rule: a follower's log is a byte copy of its leader's; batches that do not continue it are refused before anything is written."""
    leader, follower = open_log(disk_of()), open_log(disk_of())
    fill(leader, [(2, 0), (1, 1), (3, 2)])
    data = leader.read(0, max_bytes=10_000, end_offset=leader.log_end_offset)
    follower.append_as_follower(data)
    assert content(follower) == content(leader)
    assert follower.epochs.entries == leader.epochs.entries == [(0, 0), (1, 2), (3, 3)]
    with pytest.raises(UnexpectedOffsetError, match="a batch at the log end offset 6"):
        follower.append_as_follower(data)
    assert follower.log_end_offset == 6


def test_flush_messages_syncs_after_so_many_records() -> None:
    """Rule: with flush.messages n, at most n - 1 records are lost by a power loss."""
    for seed in range(20):
        disk = disk_of(seed)
        log = open_log(disk, flush_messages=2)
        fill(log, [(1, 0)] * 5)
        disk.power_loss()
        assert open_log(disk).log_end_offset >= 4


# ---- read


def test_a_read_holds_whole_batches_below_its_end() -> None:
    """Rule: a read begins with the batch that holds the offset and shows no record at or above end_offset."""
    log = open_log(disk_of())
    fill(log, [(2, 0), (3, 0), (1, 0)])

    def read(offset: int, end: int) -> list[int]:
        return [batch.base_offset for batch in decoded(log.read(offset, max_bytes=10_000, end_offset=end))]

    assert read(0, 6) == [0, 2, 5]
    assert read(1, 6) == [0, 2, 5]
    assert read(3, 6) == [2, 5]
    assert read(0, 4) == [0]  # offset 3 is below the end, but its batch is not
    assert read(3, 4) == []
    assert read(6, 6) == read(5, 5) == []


@settings(max_examples=200)
@given(SHAPES, st.integers(0, 12), st.integers(0, 30), st.integers(0, 400))
@example([(1, 0), (1, 0)], 0, 2, 2 * ONE_RECORD)
@example([(1, 0), (1, 0), (1, 0)], 0, 3, 2 * ONE_RECORD)
def test_a_read_is_as_long_as_its_bounds_allow(
    shape: list, offset: int, end_offset: int, max_bytes: int
) -> None:
    """Rule: as many whole batches as end at or below end_offset and fit max_bytes; the first one even if it does not fit."""
    log = open_log(disk_of())
    fill(log, shape)
    end_offset = min(end_offset, log.log_end_offset)
    seen = decoded(log.read(offset, max_bytes=max_bytes, end_offset=end_offset))
    allowed = [
        batch for batch in log.batches() if batch.next_offset > offset and batch.next_offset <= end_offset
    ]
    if offset >= end_offset or not allowed or allowed[0].base_offset > offset:
        assert seen == []
        return
    expected, size = [], 0
    for batch in allowed:
        size += batch.size
        if expected and size > max_bytes:
            break
        expected.append(batch.base_offset)
    assert [batch.base_offset for batch in seen] == expected


# ---- truncation


@given(SHAPES, st.integers(0, 30))
def test_truncation_cuts_whole_batches_and_never_extends(shape: list, offset: int) -> None:
    """Rule: after truncation to an offset the log ends there, or at the start of the batch that held it, and its epochs with it."""
    disk = disk_of()
    log = open_log(disk)
    written = fill(log, shape)
    bases = [*log.bases, log.log_end_offset]
    log.truncate_to(offset)
    expected = max(base for base in bases if base <= offset)
    assert log.log_end_offset == expected
    assert content(log) == written[:expected]
    assert log.epochs.entries == epochs_of(written[:expected])
    assert log.append_as_leader((7,), 50) == expected
    assert content(open_log(disk)) == [*written[:expected], (50, 7)]


def test_truncation_is_durable() -> None:
    """Rule: a record that was cut does not come back after a power loss."""
    for seed in range(20):
        disk = disk_of(seed)
        log = open_log(disk)
        fill(log, [(1, 0), (1, 0), (1, 1)])
        log.flush()
        log.truncate_to(1)
        disk.power_loss()
        assert content(open_log(disk)) == [(0, 100)]


def test_truncation_at_the_end_forgets_an_epoch_without_records() -> None:
    """Rule (KAFKA-10706): truncating to the log end or beyond still drops epochs that begin there, or truncation asks for ever."""
    log = open_log(disk_of())
    fill(log, [(2, 0)])
    log.epochs.assign(5, 2)
    log.truncate_to(2)
    assert log.epochs.latest_epoch() == 0


# ---- recovery


@given(SHAPES, st.data())
def test_recovery_cuts_a_torn_tail_and_rebuilds_index_and_epochs(shape: list, data: st.DataObject) -> None:
    """Rule: whatever number of bytes survives, recovery keeps exactly the whole batches, with their epochs."""
    disk = disk_of()
    log = open_log(disk)
    written = fill(log, shape)
    log.epochs.assign(99, log.log_end_offset)
    kept = data.draw(st.integers(0, log.size))
    positions = [*log.positions, log.size]
    bases = [*log.bases, log.log_end_offset]
    log.file.truncate(kept)
    recovered = open_log(disk)
    end = max(base for base, position in zip(bases, positions, strict=True) if position <= kept)
    assert content(recovered) == written[:end]
    assert recovered.log_end_offset == end
    assert recovered.epochs.entries == epochs_of(written[:end])
    assert recovered.file.size() == recovered.size
    assert recovered.append_as_leader((1,), 100) == end


def test_recovery_stops_at_a_corrupt_batch() -> None:
    """Rule: what follows a batch with a wrong checksum is not trusted."""
    disk = disk_of()
    log = open_log(disk)
    fill(log, [(1, 0), (1, 0), (1, 0)])
    good = bytes(disk.open(f"t-0/{LOG_FILE}").read_at(0, log.size))
    bad = bytearray(good)
    bad[ONE_RECORD + HEADER_SIZE + 5] ^= 1
    log.file.truncate(0)
    log.file.append(bytes(bad))
    assert content(open_log(disk)) == [(0, 100)]


def test_recovery_stops_at_a_gap() -> None:
    """Rule: offsets of a log are dense; a batch that does not continue the one before it ends the log."""
    disk = disk_of()
    log = open_log(disk)
    fill(log, [(1, 0)])
    log.file.append(encode_batch(5, 0, (9,)))
    assert content(open_log(disk)) == [(0, 100)]


def _life(disk: Disk, acknowledged: list[tuple[int, int]]) -> None:
    """What a replica does to its files; a record counts as acknowledged once a flush returned."""
    log = open_log(disk)
    for epoch in range(3):
        log.epochs.assign(epoch, log.log_end_offset)
        log.append_as_leader((10 * epoch + 1, 10 * epoch + 2), epoch)
        log.append_as_leader((10 * epoch + 3,), epoch)
        log.flush()
        acknowledged[:] = content(log)
    acknowledged[:] = acknowledged[:4]  # from here on only these may be relied on
    log.truncate_to(4)


def _whole_life() -> list[tuple[int, int]]:
    return [(0, 1), (0, 2), (0, 3), (1, 11), (1, 12), (1, 13), (2, 21), (2, 22), (2, 23)]


@settings(max_examples=200)
@given(st.integers(1, 60), st.integers(0, 1_000_000))
def test_power_loss_at_any_file_call_leaves_a_sound_log(call: int, seed: int) -> None:
    """Rule: wherever the power fails, the recovered log is a prefix of what was written, holds all that was synced, and its epochs fit its records."""
    disk = disk_of(seed)
    disk.arm_power_loss(call)
    acknowledged: list[tuple[int, int]] = []
    try:
        _life(disk, acknowledged)
        disk.disarm_power_loss()
    except PowerLoss:
        pass
    disk.power_loss()
    log = open_log(disk)
    kept = content(log)
    assert kept == _whole_life()[: len(kept)]
    assert kept[: len(acknowledged)] == acknowledged[: len(kept)] and len(kept) >= min(3, len(acknowledged))
    assert log.epochs.entries == epochs_of(kept)
    again = LeaderEpochCache(disk, "t-0")
    again.load()
    assert again.entries == log.epochs.entries


class DiesAt:
    """A file system under which the process dies inside the n-th directory sync (a crash, not a power loss)."""

    def __init__(self, disk: Disk, died: Callable[[str], bool]) -> None:
        self._disk, self._died = disk, died

    def sync_directory(self, path: str) -> None:
        if self._died(path):
            raise KeyboardInterrupt
        self._disk.sync_directory(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self._disk, name)


def test_a_log_file_whose_name_was_never_synced_is_synced_by_the_next_process() -> None:
    """Rule: flushed records survive a power loss also if an earlier process died between creating the file and syncing its directory."""
    for seed in range(10):
        disk = disk_of(seed)
        with pytest.raises(KeyboardInterrupt):
            open_log(DiesAt(disk, lambda path: path == "t-0"))  # type: ignore[arg-type]
        log = open_log(disk, flush_messages=1)
        log._write(encode_batch(0, 0, (1,)), 0, 1)  # no new epoch, so that nothing else syncs the directory
        disk.power_loss()
        assert content(open_log(disk)) == [(0, 1)]
