"""A simulated host's disk with real files: a folder of the operating system with the interface of
sim/disk.py.

Owns the translation. Must not know what is written. It has only faults that need no control over the page
cache: EIO, ENOSPC and slow syncs. A fault that only a simulated disk can do (lose what was not synced, lie
about a sync, flip a durable bit) raises UnsupportedError.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from attrs import define, field

from fencepost.impl.runtime.real_file_system import RealFile, RealFiles
from fencepost.sim.disk import Disk, OpenFile, PowerLossReport, RottenBit
from fencepost.sim.disk_faults import DiskCall, input_output_error
from fencepost.systems.system import UnsupportedError


class RealOpenFile(OpenFile):
    """impl.files.File: a descriptor, and the disk that may refuse a call."""

    __slots__ = ("_real", "_real_disk", "_real_path")

    def __init__(self, disk: "RealDisk", file: RealFile, path: str) -> None:
        self._real_disk, self._real, self._real_path = disk, file, path

    def append(self, data: bytes) -> int:
        """Write at the end."""
        written, error = self._real_disk._room_for(data, self._real_path)
        position = self._real.append(written)
        if error is not None:
            raise error
        return position

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`."""
        self._real_disk._refuse(DiskCall.READ, self._real_path)
        return self._real.read_at(position, size)

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        self._real_disk._refuse(DiskCall.WRITE, self._real_path)
        self._real.truncate(size)

    def sync(self) -> None:
        """Make the content durable."""
        if self._real_disk._syncing(self._real_path):
            raise input_output_error(self._real_path)
        self._real.sync()

    def size(self) -> int:
        """Bytes in the file."""
        return self._real.size()

    def close(self) -> None:
        """Release the descriptor."""
        self._real.close()


@define(eq=False, kw_only=True)
class RealDisk(Disk):
    """impl.files.FileSystem of one host, below `root`."""

    # The folder; it is made if it is absent.
    root: Path
    _files: RealFiles = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.write_cost = self.sync_cost = 0  # they take real time
        self.root.mkdir(parents=True, exist_ok=True)
        self._files = RealFiles(self.root)

    # ---- the interface

    def open(self, path: str, *, create: bool = True) -> RealOpenFile:
        """Open a file for reading and appending. path: below the folder; create: make it if it is missing."""
        return RealOpenFile(self, self._files.open(path, create=create), path)

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        return self._files.exists(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        self._change(path, self._files.make_directory, path)

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return self._files.list(path) if (self.root / path).is_dir() else []

    def rename(self, source: str, target: str) -> None:
        """Atomically replace `target` by `source`."""
        self._change(source, self._files.rename, source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._change(path, self._files.remove, path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with the files in it."""
        self._files.remove_directory(path)

    def sync_directory(self, path: str) -> None:
        """Make the steps of this directory durable."""
        if self._syncing(path):
            raise input_output_error(path)
        self._files.sync_directory(path)

    def _change(self, path: str, change: Callable[..., None], *names: str) -> None:
        self._refuse(DiskCall.WRITE, path)
        change(*names)

    def _room_for(self, data: bytes, path: str) -> tuple[bytes, OSError | None]:
        if self._faults is None:
            return data, None
        return self._faults.room_for(data, path, self.size(), self._draw_fault)

    def look(self, path: str) -> bytes | tuple[str, ...] | None:
        """What an observer on this host reads now. path: the name."""
        place = self.root / path
        if place.is_dir():
            return tuple(self._files.list(path))
        return place.read_bytes() if place.is_file() else None

    def size(self) -> int:
        """Bytes of all files together."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    # ---- what only a simulated disk can do

    def write_back(self) -> None:
        """The operating system does it."""

    def arm_power_loss(self, calls: int, step: str = "", *, kills: bool = False) -> None:
        """Not here."""
        self._refuse_fault("a power loss")

    def power_loss(self) -> PowerLossReport:
        """Not here."""
        self._refuse_fault("a power loss")

    def lie_about_syncs(self, times: int | None = None) -> None:
        """Not here."""
        self._refuse_fault("a sync that lies")

    def rot_bit(self, path: str = "") -> RottenBit | None:
        """Not here."""
        self._refuse_fault("a bit that rots")

    def rot_bit_within(self, path: str, spans: tuple[range, ...]) -> RottenBit | None:
        """Raises UnsupportedError. path, spans: as of sim/disk.py."""
        self._refuse_fault("a bit that rots")

    def look_inside_append(self, look: Callable[[int], Any]) -> None:
        """Not here."""
        self._refuse_fault("a look inside an append")

    def _refuse_fault(self, what: str) -> NoReturn:
        raise UnsupportedError(
            expected="a fault that real files can have: EIO, no space, slow syncs",
            seen=what,
            where=f"the disk of broker {self.node}, in {self.root}",
            hint="leave the option directory out: the simulated disk can do it",
        )
