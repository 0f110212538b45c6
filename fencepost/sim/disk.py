"""A host's disk: what its files hold, what of that is durable, and what a power loss leaves.

Owns the file system of one host behind the seam impl/files.py. Must not know what is written.

What a power loss leaves is what a journalling file system in ordered mode (ext4, data=ordered) may leave, read as narrowly as POSIX allows:

- A file's content is its durable content plus a *prefix of its unsynced writes* (appends and truncations, in order); the last one kept may
  be torn anywhere inside. Ext4 writes a file's data before it journals the new size, so that no garbage and no hole appears.
- A name's creation, renaming or removal is one step, and a directory keeps a *prefix of its unsynced steps*; a rename between two
  directories is kept or lost in both. `sync_directory` makes the steps of that directory durable, with those of other directories that
  renames tie to them. A file's own `sync` makes no name durable, and a rename does not sync the file (no auto_da_alloc).
- A process that crashes loses nothing: the page cache outlives it.

A file whose name is lost is lost; a truncation or removal that was not synced may come back. Final; later faults (full disk, I/O errors, a
lying fsync, rotten bits) are methods of `Disk` and one question in `_mutating`.
"""

from attrs import Factory, define, field, frozen

from fencepost.sim.disk_names import Directory, Names, Step
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MICROSECOND
from fencepost.traces.plan import DiskOptions


class PowerLoss(BaseException):
    """The power failed inside a file call: the step aborts, its effects are dropped."""


@frozen(kw_only=True)
class FileLoss:
    """What a power loss did to one file. kept: how many bytes at its beginning are as they were before; size_after: 0 if it is gone."""

    path: str
    size_before: int
    size_after: int
    kept: int

    @property
    def lost(self) -> int:
        """Bytes that were there before and are not any more."""
        return self.size_before - self.kept


@frozen(kw_only=True)
class PowerLossReport:
    """files: those that changed, by path. steps_lost: creations, renames and removals of names undone."""

    files: tuple[FileLoss, ...] = ()
    steps_lost: int = 0


@define(eq=False)
class FileContent:
    """A file, whatever its name. content: as a process sees it. durable: what is surely on the platter. unsynced: since then, in order, the
    bytes of an append or the new size of a truncation; content = durable with all of unsynced applied."""

    content: bytearray = Factory(bytearray)
    durable: bytearray = Factory(bytearray)
    unsynced: list[bytes | int] = Factory(list)

    def sync(self) -> None:
        """All of it is durable."""
        for write in self.unsynced:
            _apply(self.durable, write)
        self.unsynced.clear()

    def settle(self, kept: int, torn_to: int | None) -> None:
        """Keep the first `kept` unsynced writes, cut the next one to `torn_to` bytes, forget the others."""
        content = bytearray(self.durable)
        for write in self.unsynced[:kept]:
            _apply(content, write)
        if torn_to is not None:
            torn = self.unsynced[kept]
            assert isinstance(torn, bytes)
            content += torn[:torn_to]
        self.content, self.durable = content, bytearray(content)
        self.unsynced.clear()


def _apply(content: bytearray, write: bytes | int) -> None:
    if isinstance(write, int):
        del content[write:]
    else:
        content += write


class OpenFile:
    """impl.files.File on a simulated disk."""

    __slots__ = ("_disk", "_file")

    def __init__(self, disk: "Disk", file: FileContent) -> None:
        self._disk, self._file = disk, file

    def append(self, data: bytes) -> int:
        """Write at the end."""
        file, data = self._file, bytes(data)
        position = len(file.content)
        failing = self._disk._mutating(self._disk.write_cost)
        file.content += data
        file.unsynced.append(data)
        if failing:
            raise PowerLoss
        return position

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`."""
        self._disk._alive()
        return bytes(self._file.content[position : position + size])

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        file = self._file
        if size >= len(file.content):
            return
        failing = self._disk._mutating(self._disk.write_cost)
        del file.content[size:]
        file.unsynced.append(size)
        if failing:
            raise PowerLoss

    def sync(self) -> None:
        """Make the content durable."""
        if self._disk._mutating(self._disk.sync_cost):
            raise PowerLoss
        self._file.sync()

    def size(self) -> int:
        """Bytes in the file."""
        return len(self._file.content)

    def close(self) -> None:
        """Nothing to release here."""


@define(eq=False, kw_only=True)
class Disk:
    """impl.files.FileSystem of one host. Paths have no leading "/"; the root is "".

    node: the host, part of the cause of its randomness. cost: virtual nanoseconds spent since `take_cost`. calls: mutating calls so far.
    """

    node: int
    randomness: Randomness
    options: DiskOptions = Factory(DiskOptions)
    cost: int = 0
    calls: int = 0
    write_cost: int = field(init=False)
    sync_cost: int = field(init=False)
    _names: Names[FileContent] = field(init=False, factory=lambda: Names(FileContent))
    _calls_left: int = 0
    _power_is_off: bool = False
    _power_losses: int = 0

    def __attrs_post_init__(self) -> None:
        self.write_cost = self.options.write_us * MICROSECOND
        self.sync_cost = self.options.fsync_us * MICROSECOND

    # ---- the seam

    def open(self, path: str, *, create: bool = True) -> OpenFile:
        """Open for reading and appending."""
        self._alive()
        file = self._names.find_file(path)
        if file is None:
            if not create:
                raise FileNotFoundError(path)
            step = self._names.creation(path, FileContent())
            self._take(step)
            file = self._names.find_file(path)
            assert file is not None
        return OpenFile(self, file)

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        self._alive()
        return self._names.find(path) is not None

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        parts = path.split("/") if path else []
        for depth in range(1, len(parts) + 1):
            ancestor = "/".join(parts[:depth])
            if not isinstance(self._names.find(ancestor), Directory):
                self._take(self._names.creation(ancestor, Directory(ancestor)))

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        self._alive()
        return self._names.children(path)

    def rename(self, source: str, target: str) -> None:
        """Atomically replace `target` by `source`."""
        self._take(self._names.renaming(source, target))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._take(self._names.removal(path))

    def sync_directory(self, path: str) -> None:
        """Make the steps of this directory durable."""
        if self._mutating(self.sync_cost):
            raise PowerLoss
        self._names.sync(path)

    def _take(self, step: Step) -> None:
        failing = self._mutating(self.write_cost)
        self._names.take(step)
        if failing:
            raise PowerLoss

    # ---- cost and faults

    def take_cost(self) -> int:
        """Virtual nanoseconds of the calls since the last time."""
        cost, self.cost = self.cost, 0
        return cost

    def arm_power_loss(self, calls: int) -> None:
        """The power fails inside the `calls`-th mutating call from now (1 = the next): reads and listings do not count."""
        assert calls >= 1, f"the power fails at a coming call, not {calls}"
        self._calls_left = calls

    def disarm_power_loss(self) -> None:
        """Forget an armed power loss."""
        self._calls_left = 0

    def crash(self) -> None:
        """The process dies; the page cache survives, so that nothing is lost."""
        self.cost = 0
        self._calls_left = 0

    def power_loss(self) -> PowerLossReport:
        """Lose what was not synced, and come back up. Keyed by the host, the number of its power losses, and the path."""
        self.crash()
        self._power_losses += 1
        before = {path: bytes(file.content) for path, file in self._names.files()}
        steps_lost = self._names.settle(lambda path, steps: self._draw(steps + 1, "names", path))
        for path, file in self._names.files():
            self._settle(path, file)
        self._power_is_off = False
        return PowerLossReport(files=self._losses(before), steps_lost=steps_lost)

    def _settle(self, path: str, file: FileContent) -> None:
        writes = len(file.unsynced)
        if not writes:
            return
        kept, torn_to = self._draw(writes + 1, "writes", path), None
        if self.options.torn_write and kept < writes:
            torn = file.unsynced[kept]
            if isinstance(torn, bytes):
                torn_to = self._draw(len(torn) + 1, "torn", path)
        file.settle(kept, torn_to)

    def _draw(self, bound: int, what: str, path: str) -> int:
        return self.randomness.below(bound, f"power loss {what} {path}", self.node, self._power_losses)

    def _losses(self, before: dict[str, bytes]) -> tuple[FileLoss, ...]:
        after = {path: bytes(file.content) for path, file in self._names.files()}
        losses = []
        for path in sorted(before.keys() | after.keys()):
            old, new = before.get(path, b""), after.get(path, b"")
            if old != new or (path in before) != (path in after):
                losses.append(
                    FileLoss(path=path, size_before=len(old), size_after=len(new), kept=_common(old, new))
                )
        return tuple(losses)

    def _alive(self) -> None:
        if self._power_is_off:
            raise PowerLoss

    def _mutating(self, cost: int) -> bool:
        """Every call that changes the disk comes here first. True: the power fails inside this one."""
        if self._power_is_off:
            raise PowerLoss
        self.cost += cost
        self.calls += 1
        if self._calls_left:
            self._calls_left -= 1
            if not self._calls_left:
                self._power_is_off = True
                return True
        return False


def _common(old: bytes, new: bytes) -> int:
    """Length of the common beginning."""
    shorter = min(len(old), len(new))
    if old[:shorter] == new[:shorter]:
        return shorter
    return next(index for index in range(shorter) if old[index] != new[index])
