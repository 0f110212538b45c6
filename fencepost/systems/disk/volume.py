"""One disk: names, files, faults and the loss of power, without FUSE.

Owns the rules, which are those of sim/disk.py: names are sim/disk_names.py, faults sim/disk_faults.py, draws
are keyed by the seed. Must not know who calls. Every method may be called from one thread at a time. Errors
are OSError with the number that a system call has.

Faults last until `heal`. A fault of syncs or calls can be limited to a part of the tree: `below` is a path,
and means everything below it.
"""

import errno
import time
from collections.abc import Callable, Iterator

from attrs import define, field, frozen

from fencepost.sim.disk_faults import ArmedError, DiskCall, DiskFaults, input_output_error, no_space_error
from fencepost.sim.disk_logs import LogOnDisk, logs_on
from fencepost.sim.disk_names import Directory, Names, Step
from fencepost.sim.randomness import Randomness
from fencepost.systems.disk.content import Pages, StoredFile, Write

MOST_BYTES = 1 << 30
"""Of all files together, in memory; beyond it the disk is full. Campaigns write some megabytes."""
MOST_UNSYNCED_BYTES = 256 * 1024 * 1024
"""Of all unsynced writes since the last write-back: beyond it, everything is written back at once, as a
kernel does with dirty pages are too many (vm.dirty_ratio), unless syncs lie."""


@frozen(kw_only=True)
class Lost:
    """What a power loss took from one file."""

    path: str
    size_before: int
    size_after: int
    writes: int
    # Writes since its last sync that survived.
    kept: int


@frozen(kw_only=True)
class Loss:
    """What a power loss took."""

    # Those with unsynced writes that did not all survive, and those whose name is gone.
    files: tuple[Lost, ...] = ()
    # Creations, renames and removals of names that were undone.
    steps: int = 0
    # What no power loss could have taken.
    logs: tuple[LogOnDisk, ...] = ()


@define(eq=False, kw_only=True)
class Volume:
    """A disk."""

    # The host; part of the cause of its randomness.
    node: int
    randomness: Randomness
    # Whether the last write that survives may be torn.
    torn_writes: bool = True
    # Waits in slow syncs.
    sleep: Callable[[float], None] = time.sleep
    faults: DiskFaults = field(init=False, factory=DiskFaults)
    # The parts of the tree about which syncs lie.
    lies_below: tuple[str, ...] = ()
    _names: Names[StoredFile] = field(init=False, factory=lambda: Names(StoredFile))
    _dirty: int = field(init=False, default=0)
    _losses: int = field(init=False, default=0)
    _struck: int = field(init=False, default=0)

    # ---- looking

    def find(self, path: str) -> StoredFile | Directory | None:
        """What has this name; "" is the root."""
        found = self._names.find(path)
        assert found is None or isinstance(found, StoredFile | Directory)
        return found

    def file(self, path: str) -> StoredFile:
        """The file of this name. Raises FileNotFoundError, IsADirectoryError."""
        found = self._names.find_file(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return found

    def children(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return self._names.children(path)

    def used(self) -> int:
        """Bytes that all files hold, without holes."""
        return sum(len(file.content.pages) for _, file in self._names.files()) * 4096

    # ---- files

    def read(self, file: StoredFile, path: str, position: int, size: int) -> bytes:
        """Up to `size` bytes. Raises OSError."""
        self._refuse(DiskCall.READ, path)
        return file.content.read(position, size)

    def write(self, file: StoredFile, path: str, position: int, data: bytes) -> int:
        """Write; returns how many bytes. file, path: where; position, data: what. Raises OSError, after part
        of the bytes if the disk is full or fails."""
        room, error = self._room_for(data, path, position)
        if room:
            self._change(file, (position, room))
        if error is not None:
            raise error
        return len(room)

    def truncate(self, file: StoredFile, path: str, size: int) -> None:
        """Cut a file, or continue it with a hole. path: its name; size: the new one. Raises OSError."""
        self._refuse(DiskCall.WRITE, path)
        if size != file.content.size:
            self._change(file, size)

    def _change(self, file: StoredFile, write: Write) -> None:
        file.write(write)
        file.mtime_ns = time.time_ns()
        self._dirty += 64 + (0 if isinstance(write, int) else len(write[1]))
        if self._dirty > MOST_UNSYNCED_BYTES:
            self.write_back()

    def sync(self, file: StoredFile, path: str) -> None:
        """fsync of a file. path: its name. Raises OSError."""
        self._slow()
        file.syncs.called(file.content.size)
        if self._fails(DiskCall.SYNC, path):
            file.fail_sync(self._draw_fault(len(file.unsynced) + 1, f"sync {path}"))
            raise input_output_error(path)
        if not self._lying(path):
            if file.unsynced:
                file.syncs.obeyed(self._names.tick())
            file.sync()

    # ---- names

    def create(self, path: str, mode: int = 0o644) -> StoredFile:
        """A new file. path: its name; mode: its permissions. Raises OSError."""
        made = StoredFile(mtime_ns=time.time_ns(), mode=mode)
        self._take(self._step(self._names.creation, path, made), path)
        return made

    def make_directory(self, path: str) -> None:
        """A new directory. Raises OSError."""
        self._take(self._step(self._names.creation, path, Directory(path)), path)

    def rename(self, source: str, target: str) -> None:
        """Atomically replace a target that is a file. Raises OSError."""
        if source != target:
            self._take(self._step(self._names.renaming, source, target), source)

    def remove(self, path: str) -> None:
        """A file. Raises OSError."""
        self._take(self._step(self._names.removal, path), path)

    def remove_directory(self, path: str) -> None:
        """An empty directory. Raises OSError."""
        self._take(self._step(self._names.removal_of_directory, path), path)

    def sync_directory(self, path: str) -> None:
        """Make the names in it durable. Raises OSError."""
        self._slow()
        failing = self._fails(DiskCall.SYNC, path)
        if failing or self._lying(path):
            self._names.refuse(path)
        else:
            self._names.sync(path)
        if failing:
            raise input_output_error(path)

    def _step(self, make: Callable[..., Step], *args: object) -> Step:
        """The step; its errors get the number that a system call has."""
        try:
            return make(*args)
        except OSError as error:
            if error.errno is None:
                number = next((code for kind, code in _NUMBERS.items() if isinstance(error, kind)), errno.EIO)
                raise OSError(number, str(error), str(args[0])) from None
            raise

    def _take(self, step: Step, path: str) -> None:
        self._refuse(DiskCall.WRITE, path)
        self._names.take(step)

    # ---- faults

    def limit_capacity(self, size: int | None) -> None:
        """The bytes that all files together may have (None: no bound); what is there stays."""
        self.faults.capacity = size

    def fail_calls(self, call: DiskCall, *, nth: int = 1, times: int | None = 1, below: str = "") -> None:
        """EIO for the `nth` call of this kind from now and the `times` - 1 after it (None: all)."""
        self.faults.errors.append(ArmedError(call=call, path=below, nth=nth, times=times))

    def lie_about_syncs(self, times: int | None = None, below: str = "") -> None:
        """The next `times` syncs (None: all) return and make nothing durable: below this part of the tree,
        and those that were named since the last heal."""
        self.faults.lies, self.lies_below = times, (*self.lies_below, below)

    def slow_syncs(self, extra_ms: int) -> None:
        """Each sync takes this much longer."""
        self.faults.extra_sync_cost = extra_ms

    def heal(self) -> None:
        """End these faults; their effects stay."""
        self.faults, self.lies_below = DiskFaults(), ()

    def write_back(self) -> None:
        """The kernel writes old dirty pages and journals names on its own: everything is durable. While syncs
        lie, only what they do not lie about."""
        for path, file in self._names.files():
            if not self._would_lie(path):
                file.sync()
        if not self._would_lie(""):
            self._names.sync_all()
        self._dirty = 0

    def power_loss(self) -> Loss:
        """Lose what was not synced. Files that are open elsewhere must not be used any more."""
        self._losses += 1
        logs = logs_on(self._names, threads=True)
        before = {path: (file, file.content.size, len(file.unsynced)) for path, file in self._names.files()}
        steps = self._names.settle(lambda path, count: self._draw(count + 1, "names", path))
        kept = {path: self._settle(path, file) for path, file in self._names.files()}
        self._dirty = 0
        return Loss(files=tuple(self._lost(before, kept)), steps=steps, logs=logs)

    def _settle(self, path: str, file: StoredFile) -> int:
        writes, torn_to = len(file.unsynced), 0
        kept = self._draw(writes + 1, "writes", path) if writes else 0
        if self.torn_writes and kept < writes:
            torn = file.unsynced[kept]
            if not isinstance(torn, int):
                torn_to = self._draw(len(torn[1]) + 1, "torn", path)
        file.settle(kept, torn_to)
        return kept

    def _lost(self, before: dict[str, tuple[StoredFile, int, int]], kept: dict[str, int]) -> Iterator[Lost]:
        for path, (_, size, writes) in sorted(before.items()):
            there = self._names.find_file(path)
            survived = kept.get(path, 0)
            if there is None or survived < writes:
                size_after = 0 if there is None else there.content.size
                yield Lost(path=path, size_before=size, size_after=size_after, writes=writes, kept=survived)

    # ---- helpers

    def _refuse(self, call: DiskCall, path: str) -> None:
        if self._fails(call, path):
            raise input_output_error(path)

    def _fails(self, call: DiskCall, path: str) -> bool:
        struck = [
            error.strikes(call, error.path)
            for error in self.faults.errors
            if error.call is call and is_below(path, error.path)
        ]
        return any(struck)

    def _would_lie(self, path: str) -> bool:
        return self.faults.lies != 0 and any(is_below(path, below) for below in self.lies_below)

    def _lying(self, path: str) -> bool:
        return self._would_lie(path) and self.faults.lies_now()

    def _slow(self) -> None:
        if self.faults.extra_sync_cost:
            self.sleep(self.faults.extra_sync_cost / 1000)

    def _room_for(self, data: bytes, path: str, position: int) -> tuple[bytes, OSError | None]:
        """The part of a write that is written, and the error after it."""
        if self._fails(DiskCall.WRITE, path):
            return data[: self._draw_fault(len(data) + 1, f"write {path}")], input_output_error(path)
        capacity = MOST_BYTES if self.faults.capacity is None else min(self.faults.capacity, MOST_BYTES)
        if self.faults.capacity is None and self._dirty < MOST_UNSYNCED_BYTES // 2:
            return data, None
        room = max(0, capacity - self.used())
        return (data, None) if len(data) <= room else (data[:room], no_space_error(path))

    def _draw(self, bound: int, what: str, path: str) -> int:
        return self.randomness.below(bound, f"power loss {what} {path}", self.node, self._losses)

    def _draw_fault(self, bound: int, what: str) -> int:
        self._struck += 1
        return self.randomness.below(bound, f"disk fault {what}", self.node, self._struck)


_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
}


def is_below(path: str, top: str) -> bool:
    """Whether a path is this one or below it; everything is below ""."""
    return not top or path == top or path.startswith(f"{top}/")


__all__ = ["Loss", "Lost", "Pages", "Volume", "is_below"]
