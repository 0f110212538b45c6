"""The disk as the kernel sees it: real processes write, map and rename files, and the power fails."""

import errno
import mmap
import os
import signal
import subprocess
import sys

import pytest

from fencepost.sim.randomness import Randomness
from fencepost.systems.disk import mounted
from fencepost.systems.disk.mounted import MountedDisk, missing
from fencepost.systems.disk.unmounting import is_mounted, unmount
from fencepost.traces.errors import EnvironmentError_

LOSING = next(
    seed
    for seed in range(10_000)
    if Randomness(seed).below(50, "power loss writes d/synced", 1, 1) == 0
    and Randomness(seed).below(50, "power loss torn d/synced", 1, 1) == 0
)
"""A seed that keeps nothing of that file's unsynced writes, and a fiftieth of the first one."""
mounts = pytest.mark.skipif(bool(missing()), reason=missing() or "a disk")


@pytest.fixture
def disk(tmp_path):
    """Mounted, empty."""
    made = MountedDisk(tmp_path / "mnt", 1, seed=LOSING)
    made.open()
    yield made
    made.close()
    made.close()
    assert not is_mounted(tmp_path / "mnt") and not any((tmp_path / "mnt").iterdir())


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@mounts
def test_what_is_synced_survives_and_mapped_memory_does_not(disk):
    """A killed process had written into memory only: that is unsynced like any other write. New processes
    read what the disk has, not what the kernel remembers."""
    (disk.folder / "d").mkdir()
    (disk.folder / "d" / "synced").write_bytes(b"a" * 9000)
    for path in ("d/synced", "d", ""):
        sync(disk.folder / path)
    program = f"""
import mmap, os, signal
descriptor = os.open({str(disk.folder / "d" / "synced")!r}, os.O_RDWR)
memory = mmap.mmap(descriptor, 9000)
for place in range(0, 9000, 100):
    memory[place] = 98
open({str(disk.folder / "d" / "late")!r}, "wb").write(b"x")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert b"b" in (disk.folder / "d" / "synced").read_bytes()
    lost = disk.power_loss()
    assert {each["path"] for each in lost["files"]} >= {"d/synced"}
    left = (disk.folder / "d" / "synced").read_bytes()
    assert len(left) == 9000 and left.count(b"b") < 90
    assert (disk.folder / "d").is_dir()


@mounts
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_the_power_of_a_disk_that_takes_nothing_fails_too(disk, monkeypatch, number):
    """What a killed process had changed in memory cannot be written to a full or failing disk. It is lost, as
    everything unsynced may be, and the power loss goes on."""

    def refuse(folder):
        raise OSError(number, os.strerror(number), str(folder))

    path = disk.folder / "d" / "synced"
    path.parent.mkdir()
    path.write_bytes(b"a" * 5000)
    for each in (path, path.parent, disk.folder):
        sync(each)
    with path.open("r+b") as file:
        file.write(b"b" * 100)
    monkeypatch.setattr(mounted, "write_dirty_pages", refuse)
    assert [each["path"] for each in disk.power_loss()["files"]] == ["d/synced"]
    assert path.read_bytes().count(b"b") < 100


@mounts
def test_files_work_as_on_any_disk(disk):
    """Appending, mapping, cutting, renaming over, removing; a file that is removed while it is open."""
    path = disk.folder / "x"
    with path.open("wb") as file:
        file.write(b"one")
        file.flush()
        path.rename(disk.folder / "y")
        file.write(b"two")
    assert (disk.folder / "y").read_bytes() == b"onetwo" and not path.exists()
    with (disk.folder / "y").open("r+b") as file:
        file.truncate(3)
        file.truncate(5000)
        with mmap.mmap(file.fileno(), 5000) as memory:
            memory[4998:] = b"!!"
    assert (disk.folder / "y").read_bytes() == b"one" + bytes(4995) + b"!!"
    path.write_bytes(b"new")
    path.replace(disk.folder / "y")
    (disk.folder / "y").chmod(0o400)
    os.utime(disk.folder / "y", ns=(5, 7))
    found = (disk.folder / "y").stat()
    assert (found.st_size, found.st_mode & 0o777, found.st_mtime_ns) == (3, 0o400, 7)
    with (disk.folder / "y").open("rb") as file:
        (disk.folder / "y").unlink()
        assert file.read() == b"new"
    (disk.folder / "d").mkdir()
    with pytest.raises(FileExistsError):
        (disk.folder / "d").mkdir()
    (disk.folder / "d").rename(disk.folder / "e")
    assert [each.name for each in disk.folder.iterdir()] == ["e"]
    (disk.folder / "e").rmdir()


@mounts
def test_faults_reach_the_process(disk):
    """ENOSPC and EIO as system calls have them; nonsense is an answer, not the end."""
    disk.ask("limit", bytes=4096)
    with pytest.raises(OSError, match="No space left"):
        (disk.folder / "x").write_bytes(b"1" * 10_000)
    disk.ask("heal")
    (disk.folder / "x").write_bytes(b"1" * 10_000)
    disk.ask("fail", call="sync")
    with pytest.raises(OSError, match="Input/output error"):
        sync(disk.folder / "x")
    for nonsense in ("dance", ""):
        with pytest.raises(ValueError, match="expected a verb"):
            disk.ask(nonsense)
    with pytest.raises(ValueError, match="expected a JSON object"):
        disk.ask("fail", call="dance")


@mounts
def test_a_disk_that_nobody_serves_any_more_is_said_and_can_be_replaced(disk):
    """Its process was killed: one sentence; the folder is free for another disk."""
    process = disk._process
    process.kill()
    process.wait(60)
    with pytest.raises(EnvironmentError_, match="the process that serves a disk"):
        disk.ask("state")
    assert is_mounted(disk.folder)
    other = MountedDisk(disk.folder, 1)
    other.open()
    (disk.folder / "x").write_bytes(b"1")
    other.close()
    unmount(disk.folder)


def test_an_absent_device_is_one_sentence(monkeypatch, tmp_path):
    """Where /dev/fuse or the library is missing, no fault of disks is possible, and this says why."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "needs /dev/fuse" in missing()
    with pytest.raises(EnvironmentError_, match="needs /dev/fuse"):
        MountedDisk(tmp_path / "mnt", 1).open()
    monkeypatch.setattr("os.access", lambda path, mode: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert missing() == "needs mfusepy: install it with: pip install 'mfusepy>=3'"
