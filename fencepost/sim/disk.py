"""A host's disk: the content of its files, the durable part of it, and the effect of a power loss.

Owns the file system of one host with the interface impl/core/file_system.py. Must not know the content.

A power loss leaves what a journalling file system in ordered mode (ext4, data=ordered) may leave, with no
guarantees beyond POSIX:

- A file's content is its durable content plus a *prefix of its unsynced writes* (appends and truncations, in
  order). The last write kept may be torn anywhere inside. Ext4 writes a file's data before it journals the
  new size, so no garbage and no hole appears. With `keeps_lengths` (data=writeback) appends after that prefix
  may keep their length, and each its data or zeros.
- Creating, renaming or removing a name is one step, and a directory keeps a *prefix of its unsynced steps*. A
  rename between two directories is kept or lost in both. `sync_directory` makes the steps of that directory
  durable, and those of other directories that renames tie to them. A file's own `sync` makes no name durable,
  and a rename does not sync the file (no auto_da_alloc).
- A process that crashes loses nothing: the page cache survives it.

A file is lost with its name. An unsynced truncation or removal may be undone. The other faults are set by
methods of `Disk` and last until `heal`, even if the host restarts:

- `limit_capacity`: an append beyond it raises ENOSPC, and writes the part that fits or nothing. Names and
  truncations always have space.
- `fail_calls`: EIO. A failing append writes some prefix of its bytes. A failing sync has written a prefix of
  the unsynced writes. The rest is lost although its pages count as clean: processes still read them, a later
  sync succeeds without them, and later writes follow a hole of zeros (Linux; Rebello et al., Can Applications
  Recover from fsync Failures?, ATC 2020). A directory's steps stay unsynced.
- `lie_about_syncs`: a sync returns and nothing is durable; a later honest sync makes everything durable.
- `slow_syncs`: each takes longer.
- `rot_bit`: a durable bit flips, once, and is read so from then on.
"""

from collections.abc import Callable

from attrs import Factory, define, field, frozen

from fencepost.sim.disk_content import FileContent
from fencepost.sim.disk_faults import ArmedError, DiskCall, DiskFaults, input_output_error, is_inside
from fencepost.sim.disk_logs import LogOnDisk, logs_on
from fencepost.sim.disk_loss import FileLoss, PowerLoss, PowerLossReport, file_losses
from fencepost.sim.disk_names import Directory, Names, Step
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MICROSECOND
from fencepost.traces.plan import DiskOptions

__all__ = ["Disk", "FileLoss", "OpenFile", "PowerLoss", "PowerLossReport", "RottenBit"]


class OpenFile:
    """impl.files.File on a simulated disk."""

    __slots__ = ("_disk", "_file", "_path")

    def __init__(self, disk: "Disk", file: FileContent, path: str) -> None:
        self._disk, self._file, self._path = disk, file, path

    def append(self, data: bytes) -> int:
        """Write at the end."""
        file, data, disk = self._file, bytes(data), self._disk
        position = len(file.content)
        failing = disk._mutating(disk.write_cost, DiskCall.APPEND, self._path)
        disk._show(file, data)
        written, error = disk._room_for(data, self._path)
        if written or error is None:
            file.content += written
            file.unsynced.append(written)
        if failing:
            raise PowerLoss
        if error is not None:
            raise error
        return position

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`."""
        self._disk._alive()
        self._disk._refuse(DiskCall.READ, self._path)
        return bytes(self._file.content[position : position + size])

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        file = self._file
        if size >= len(file.content):
            return
        failing = self._disk._mutating(self._disk.write_cost, DiskCall.TRUNCATE, self._path)
        if not failing:
            self._disk._refuse(DiskCall.TRUNCATE, self._path)
        del file.content[size:]
        file.unsynced.append(size)
        file.syncs.changed(size)
        self._disk._changed[self._path] = None
        if failing:
            raise PowerLoss

    def sync(self) -> None:
        """Make the content durable."""
        disk, file = self._disk, self._file
        failing = disk._syncing(self._path)
        file.syncs.called(len(file.content))
        if failing:
            disk._fail_sync(file, self._path)
        elif not disk._lying():
            if file.unsynced:
                file.syncs.obeyed(disk._names.tick())
            file.sync()

    def size(self) -> int:
        """The size of the file in bytes."""
        return len(self._file.content)

    def close(self) -> None:
        """No effect on the simulated disk."""


@frozen(kw_only=True)
class RottenBit:
    """The bit that flipped."""

    path: str
    # Byte in the file.
    position: int
    bit: int


@define(eq=False, kw_only=True)
class Disk:
    """impl.files.FileSystem of one host. Paths have no leading "/"; the root is ""."""

    # The host; part of the cause of its randomness.
    node: int
    # The draws of the run.
    randomness: Randomness
    # The costs of calls.
    options: DiskOptions = Factory(DiskOptions)
    # Virtual nanoseconds spent since `take_cost`.
    cost: int = 0
    # Mutating calls so far.
    calls: int = 0
    # Virtual nanoseconds of a write.
    write_cost: int = field(init=False)
    # Virtual nanoseconds of a sync.
    sync_cost: int = field(init=False)
    # The directories and files.
    _names: Names[FileContent] = field(init=False, factory=lambda: Names(FileContent))
    # Mutating calls until an armed power loss; 0 if none is armed.
    _calls_left: int = 0
    # The step in which it fails; "": any.
    _step: str = ""
    # Whether the process dies instead.
    _kills: bool = False
    # Whether the power failed during the current step.
    _power_is_off: bool = False
    # Power losses so far: part of the cause of their draws.
    _power_losses: int = 0
    # Called once inside the next append; None if not set.
    _look: Callable[[int], None] | None = None
    # The faults that are set; None without any.
    _faults: DiskFaults | None = None
    # Paths whose names changed, or that were cut, in the step that is under way.
    _changed: dict[str, None] = field(init=False, factory=dict)
    # Faults that drew a random number so far: part of the cause of the next draw.
    _struck: int = 0

    def __attrs_post_init__(self) -> None:
        self.write_cost = self.options.write_us * MICROSECOND
        self.sync_cost = self.options.fsync_us * MICROSECOND

    # ---- the interface

    def open(self, path: str, *, create: bool = True) -> OpenFile:
        """Open a file for reading and appending.

        Args:
            path: the file.
            create: create it if it does not exist.

        Returns:
            the open file.

        Raises:
            FileNotFoundError: if it does not exist and `create` is false.
        """
        self._alive()
        file = self._names.find_file(path)
        if file is None:
            if not create:
                raise FileNotFoundError(path)
            step = self._names.creation(path, FileContent())
            self._take(step, path, DiskCall.CREATE)
            file = self._names.find_file(path)
            assert file is not None
        else:
            self._refuse(DiskCall.OPEN, path)
        return OpenFile(self, file, path)

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
                self._take(self._names.creation(ancestor, Directory(ancestor)), ancestor, DiskCall.CREATE)

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        self._alive()
        return self._names.children(path)

    def rename(self, source: str, target: str) -> None:
        """Atomically replace `target` by `source`."""
        self._take(self._names.renaming(source, target), source, DiskCall.RENAME)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._take(self._names.removal(path), path, DiskCall.REMOVE)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with its files. It takes no time, and no power loss happens inside: Kafka does
        it in another thread, minutes later."""
        self._alive()
        for name in self._names.children(path):
            self._names.take(self._names.removal(f"{path}/{name}"))
        self._names.take(self._names.removal_of_directory(path))

    def sync_directory(self, path: str) -> None:
        """Make the steps of this directory durable."""
        failing = self._syncing(path)
        if failing or self._lying():
            self._names.refuse(path)
        else:
            self._names.sync(path)
        if failing:
            raise input_output_error(path)

    def _take(self, step: Step, path: str, call: DiskCall) -> None:
        failing = self._mutating(self.write_cost, call, path)
        if not failing:
            self._refuse(call, path)
        self._names.take(step)
        self._changed[path] = None
        if failing:
            raise PowerLoss

    # ---- cost and faults

    def take_cost(self) -> int:
        """Virtual nanoseconds of the calls since the last `take_cost`."""
        cost, self.cost = self.cost, 0
        self._changed.clear()
        return cost

    def arm_power_loss(self, calls: int, step: str = "", *, kills: bool = False) -> None:
        """The power fails inside the `calls`-th mutating call from now (1 = the next): reads and listings do
        not count, nor calls outside of this `step`, if it is one. kills: the process dies with that call, and
        nothing is lost."""
        assert calls >= 1, f"the power fails at a coming call, not {calls}"
        self._calls_left, self._step, self._kills = calls, step, kills

    def look_inside_append(self, look: Callable[[int], None]) -> None:
        """Simulate another thread that looks at the files once, during the next append. look is called with
        the number of visible bytes: half of them, then all."""
        self._look = look

    def disarm_power_loss(self) -> None:
        """Cancel an armed power loss."""
        self._calls_left = 0

    def limit_capacity(self, size: int | None) -> None:
        """Limit all files together to `size` bytes (None: no bound); existing content stays."""
        self._armed().capacity = size

    def fail_calls(
        self, call: DiskCall | None, *, nth: int = 1, times: int | None = 1, path: str = "", step: str = ""
    ) -> None:
        """EIO for the `nth` call of this kind (None: of any) from now and the `times` - 1 after it (None: all
        later ones), for one path or (empty) for any, inside of one step or (empty) anywhere."""
        assert nth >= 1 and (times is None or times >= 1), (nth, times)
        self._armed().errors.append(ArmedError(call=call, path=path, nth=nth, times=times, step=step))

    def lie_about_syncs(self, times: int | None = None) -> None:
        """The next `times` syncs (None: all) return without making anything durable."""
        self._armed().lies = times

    def slow_syncs(self, extra_us: int) -> None:
        """Each sync takes `extra_us` longer."""
        self._armed().extra_sync_cost = extra_us * MICROSECOND

    def heal(self) -> None:
        """End these faults; their effects stay."""
        self._faults = None

    def write_back(self) -> None:
        """The kernel writes old dirty pages and journals names on its own (vm.dirty_expire_centisecs):
        everything written so far is durable, at no cost to a process. No effect while syncs lie."""
        if self._faults is not None and self._faults.lies != 0:
            return
        for _, file in self._names.files():
            file.sync()
        self._names.sync_all()

    def size(self) -> int:
        """Bytes of all files together."""
        return sum(len(file.content) for _, file in self._names.files())

    def rot_bit(self, path: str = "") -> RottenBit | None:
        """Flip one durable bit of a file, or (empty) of any file; returns which. None if nothing is durable
        there."""
        files = [(name, file) for name, file in self._names.files() if path in ("", name)]
        total = sum(file.rottable() for _, file in files)
        if not total:
            return None
        place = self._draw_fault(8 * total, f"rot {path}")
        for name, file in files:
            if place < 8 * file.rottable():
                file.flip(place // 8, place % 8)
                return RottenBit(path=name, position=place // 8, bit=place % 8)
            place -= 8 * file.rottable()
        raise AssertionError("a place beyond all files")

    def rot_bit_within(self, path: str, spans: tuple[range, ...]) -> RottenBit | None:
        """Flip one durable bit of a file.

        Args:
            path: the file.
            spans: the ranges of its bytes to choose from.

        Returns:
            the bit; None if nothing is durable there.
        """
        file = self._names.find_file(path)
        end = file.rottable() if file is not None else 0
        places = [position for span in spans for position in span if position < end]
        if file is None or not places:
            return None
        place = self._draw_fault(8 * len(places), f"rot {path}")
        file.flip(places[place // 8], place % 8)
        return RottenBit(path=path, position=places[place // 8], bit=place % 8)

    def _armed(self) -> DiskFaults:
        if self._faults is None:
            self._faults = DiskFaults()
        return self._faults

    def _show(self, file: FileContent, data: bytes) -> None:
        look, self._look = self._look, None
        if look is None:
            return
        position = len(file.content)
        for seen in (len(data) // 2, len(data)):
            file.content += data[:seen]
            try:
                look(seen)
            finally:
                del file.content[position:]

    def _draw_fault(self, bound: int, what: str) -> int:
        self._struck += 1
        return self.randomness.below(bound, f"disk fault {what}", self.node, self._struck)

    def _refuse(self, call: DiskCall, path: str) -> None:
        if self._faults is not None and self._faults.fails(call, path):
            raise input_output_error(path)

    def _room_for(self, data: bytes, path: str) -> tuple[bytes, OSError | None]:
        """The part of an append that is written, and the error raised after it."""
        if self._faults is None:
            return data, None
        used = sum(len(file.content) for _, file in self._names.files())
        return self._faults.room_for(data, path, used, self._draw_fault)

    def _syncing(self, path: str) -> bool:
        """A sync begins; returns whether it fails."""
        slower = self._faults.extra_sync_cost if self._faults is not None else 0
        if self._mutating(self.sync_cost + slower, DiskCall.SYNC, path):
            raise PowerLoss
        return self._faults is not None and self._faults.fails(DiskCall.SYNC, path)

    def _lying(self) -> bool:
        return self._faults is not None and self._faults.lies_now()

    def _fail_sync(self, file: FileContent, path: str) -> None:
        file.fail_sync(self._draw_fault(len(file.unsynced) + 1, f"sync {path}"))
        raise input_output_error(path)

    def crash(self) -> None:
        """The process dies; the page cache survives, so nothing is lost."""
        self.cost = self._calls_left = 0
        self._power_is_off = False
        self._changed.clear()

    def power_loss(self) -> PowerLossReport:
        """Lose what was not synced, and restart. Keyed by the host, the number of its power losses, and the
        path."""
        if self._kills and self._power_is_off:
            self.crash()
            return PowerLossReport(died=True)
        logs = self.logs()
        self.crash()
        self._power_losses += 1
        before = self._contents()
        steps_lost = self._names.settle(lambda path, steps: self._draw(steps + 1, "names", path))
        for path, file in self._names.files():
            self._settle(path, file)
        return PowerLossReport(files=file_losses(before, self._contents()), steps_lost=steps_lost, logs=logs)

    def logs(self) -> tuple[LogOnDisk, ...]:
        """What a power loss now could not take from the replicas' logs on this disk."""
        return logs_on(self._names, under_way=self._changed if self._power_is_off else ())

    def look(self, path: str) -> bytes | tuple[str, ...] | None:
        """What an observer on this host reads now, at no cost, whatever faults are set and whether its broker
        runs.

        Args:
            path: the name.

        Returns:
            the content of a file, the sorted names in a directory, or None.
        """
        place = self._names.find(path)
        if isinstance(place, Directory):
            return tuple(sorted(place.names))
        return place.shown() if isinstance(place, FileContent) else None

    def _contents(self) -> dict[str, bytes]:
        return {path: bytes(file.content) for path, file in self._names.files()}

    def _settle(self, path: str, file: FileContent) -> None:
        writes = len(file.unsynced)
        if not writes:
            file.settle(0, None)
            return
        kept, torn_to = self._draw(writes + 1, "writes", path), None
        if self.options.torn_write and kept < writes:
            torn = file.unsynced[kept]
            if isinstance(torn, bytes):
                torn_to = self._draw(len(torn) + 1, "torn", path)
        lengths = self._draw(writes - kept + 1, "lengths", path) if self.options.keeps_lengths else 0
        whole = self._draw(1 << lengths, "data", path) if lengths else 0
        file.settle(kept, torn_to, [bool(whole >> place & 1) for place in range(lengths)])

    def _draw(self, bound: int, what: str, path: str) -> int:
        return self.randomness.below(bound, f"power loss {what} {path}", self.node, self._power_losses)

    def _alive(self) -> None:
        if self._power_is_off:
            raise PowerLoss

    def _mutating(self, cost: int, call: DiskCall, path: str) -> bool:
        """Called first by every call that changes the disk. True: the power fails inside this call."""
        if self._power_is_off:
            raise PowerLoss
        self.cost += cost
        self.calls += 1
        if self._calls_left and is_inside(self._step, call, path):
            self._calls_left -= 1
            if not self._calls_left:
                self._power_is_off = True
                return True
        return False
