"""The journal keeps every finished run through torn tails, damage and full disks."""

import errno
import os
from pathlib import Path

import pytest

from fencepost.traces import journal as journal_module
from fencepost.traces.errors import EnvironmentError_, TraceError
from fencepost.traces.journal import JournalWriter, read_frames, scan


@pytest.fixture
def three(tmp_path: Path, make_trace) -> Path:
    """A journal with the runs 1, 2 and 3."""
    path = tmp_path / "worker-0.journal"
    with JournalWriter.open(path) as writer:
        for number in (1, 2, 3):
            writer.append(make_trace(number))
    return path


def ids(path: Path) -> list[int]:
    return [rows.trace_id for rows in read_frames(path, scan(path).frames)]


def test_every_torn_tail_is_cut_and_the_rest_kept(three: Path, make_trace) -> None:
    """Cut at any byte, a journal keeps the whole frames before the cut, and appending goes on behind them."""
    data = three.read_bytes()
    ends = [frame.offset + frame.length for frame in scan(three).frames]
    for size in range(len(data)):
        three.write_bytes(data[:size])
        whole = [number for number, end in zip((1, 2, 3), ends, strict=True) if end <= size]
        assert ids(three) == whole, size
        if size % 7 == 0:
            with JournalWriter.open(three) as writer:
                writer.append(make_trace(9))
            assert ids(three) == [*whole, 9], size


@pytest.mark.parametrize("tail", [b"\0" * 100, b"\xff" * 100, b"fencepost journal 1\n"])
def test_a_tail_of_garbage_is_cut(three: Path, tail: bytes) -> None:
    """Zeros or noise after the last frame, as a file system may leave after power loss, are a torn tail."""
    size = three.stat().st_size
    with three.open("ab") as file:
        file.write(tail)
    assert ids(three) == [1, 2, 3]
    assert scan(three).torn_bytes == len(tail)
    JournalWriter.open(three).close()
    assert three.stat().st_size == size


def test_a_damaged_frame_in_the_middle_costs_only_itself(three: Path) -> None:
    """A flipped bit loses its own run, says so, and keeps the runs behind it."""
    frame = scan(three).frames[1]
    data = bytearray(three.read_bytes())
    data[frame.offset + 5] ^= 1
    three.write_bytes(data)
    assert ids(three) == [1, 3]
    assert len(scan(three).damaged) == 1


def test_every_flipped_bit_is_noticed(three: Path) -> None:
    """No single flipped bit of a frame goes unnoticed: a run is read as it was written or not at all."""
    data = three.read_bytes()
    good = [tuple(map(repr, rows.operations)) for rows in read_frames(three, scan(three).frames)]
    for position in range(len(journal_module.MAGIC), len(data), 5):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        three.write_bytes(flipped)
        found = [tuple(map(repr, rows.operations)) for rows in read_frames(three, scan(three).frames)]
        assert len(found) < len(good)
        assert all(rows in good for rows in found)


def test_a_foreign_file_is_not_a_journal(tmp_path: Path) -> None:
    """A file that is no journal is refused, and never cut."""
    path = tmp_path / "a.journal"
    path.write_bytes(b"somebody's notes, longer than a header")
    with pytest.raises(TraceError, match="expected a journal of version 1"):
        scan(path)
    with pytest.raises(TraceError):
        JournalWriter.open(path)
    assert path.read_bytes().startswith(b"somebody's notes")
    with pytest.raises(TraceError, match="readable journal"):
        scan(tmp_path / "none")


def test_two_workers_never_share_a_journal(tmp_path: Path) -> None:
    """A journal belongs to one worker at a time; the second is told so."""
    with (
        JournalWriter.open(tmp_path / "a.journal"),
        pytest.raises(TraceError, match="no other campaign writing here"),
    ):
        JournalWriter.open(tmp_path / "a.journal")
    JournalWriter.open(tmp_path / "a.journal").close()


def test_a_full_disk_leaves_a_whole_journal(tmp_path: Path, make_trace, monkeypatch) -> None:
    """When the disk fills within a frame, the half frame is taken back and later runs are still found."""
    writes = {"left": 1}
    real = os.write

    def fills_up(descriptor: int, data: bytes) -> int:
        if writes["left"]:
            writes["left"] -= 1
            return real(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "a.journal"
    with JournalWriter.open(path) as writer:
        writer.append(make_trace(1))
        with monkeypatch.context() as patch:
            patch.setattr(journal_module.os, "write", fills_up)
            with pytest.raises(EnvironmentError_, match="No space left"):
                writer.append(make_trace(2))
        writer.append(make_trace(3))
    assert ids(path) == [1, 3]


def test_appends_are_synced_after_a_bounded_number_of_bytes(tmp_path: Path, make_trace, monkeypatch) -> None:
    """Power loss takes at most SYNC_BYTES of a worker's runs: an fsync follows as soon as so many are
    unsynced."""
    monkeypatch.setattr(journal_module, "SYNC_BYTES", 2000)
    with JournalWriter.open(tmp_path / "a.journal") as writer:
        for number in range(20):
            writer.append(make_trace(number))
            assert writer.end - writer.synced < 2000
        assert writer.synced > 0
