"""The disks of a real cluster: each broker's log directory is a mounted disk that can lose power, lie about
fsync, fail and fill up.

Owns which broker has which disk. Must not know processes, or the rules of a disk (systems/disk). What is on
the disks is in memory, and gone after `close`: copy what is wanted before.

Kafka does not call fsync when it appends: it relies on replication. So if all brokers lose power,
acknowledged records may be lost although no disk lied. With `flush.messages=1` (of a topic, or
`log.flush.interval.messages`) each append is synced before it is acknowledged, and then only a lie loses it.
A flush syncs the folder of a partition, not the log directory in which that folder has its name; a kernel
journals it within seconds, which is `write_back` here.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.disk_logs import LogOnDisk
from fencepost.systems.disk.mounted import MountedDisk, missing
from fencepost.systems.system import PowerLost
from fencepost.traces.errors import FencepostError

SETTINGS: Mapping[str, str] = {"log.index.size.max.bytes": "65536"}
"""Settings for brokers on such disks: Kafka preallocates 10 MB for each index otherwise."""

__all__ = ["SETTINGS", "Disks", "missing"]


@define(eq=False)
class Disks:
    """The disks of a cluster, by broker."""

    disks: dict[int, MountedDisk] = field(factory=dict)
    _lost: list[PowerLost] = field(factory=list)

    @classmethod
    def open(cls, folders: Mapping[int, Path], seed: int = 0) -> "Disks":
        """Mount one for each broker. folders: where, by broker; seed: of what a power loss takes. Raises
        EnvironmentError_ where that is impossible; nothing is left then."""
        made = cls()
        try:
            for broker, folder in folders.items():
                disk = made.disks[broker] = MountedDisk(folder, broker, seed)
                disk.open()
        except BaseException:
            made.close()
            raise
        return made

    def power_loss(self, brokers: Iterable[int]) -> dict[int, dict[str, Any]]:
        """These brokers, which are dead, lose what was not synced. Returns what each lost: files
        (path, size_before, size_after, writes, kept), steps and logs (sim/disk_logs.py)."""
        lost = {broker: self._of(broker).power_loss() for broker in brokers}
        for broker, report in lost.items():
            logs = tuple(LogOnDisk(**log) for log in report["logs"])
            self._lost.append(PowerLost(time=time.time_ns(), broker=broker, logs=logs))
        return lost

    def power_losses(self) -> Sequence[PowerLost]:
        """Every power loss so far, in order."""
        return tuple(self._lost)

    def lie(self, broker: int, below: str = "") -> None:
        """Syncs return and make nothing durable. below: only of this folder, such as `t-0`."""
        self._of(broker).ask("lie", times=None, below=below)

    def fail(
        self, broker: int, call: DiskCall, *, nth: int = 1, times: int | None = 1, below: str = ""
    ) -> None:
        """EIO for the `nth` call from now and the `times` - 1 after it (None: all)."""
        self._of(broker).ask("fail", call=call.value, nth=nth, times=times, below=below)

    def fill(self, broker: int, room_bytes: int = 0) -> None:
        """The disk of a broker is full once room_bytes more are written."""
        disk = self._of(broker)
        disk.ask("limit", bytes=disk.ask("state")["used"] + room_bytes)

    def slow(self, broker: int, milliseconds: int) -> None:
        """Each sync of a broker takes longer by so many milliseconds."""
        self._of(broker).ask("slow", milliseconds=milliseconds)

    def write_back(self) -> None:
        """What a kernel does by itself within 30 seconds: all is durable, unless syncs lie."""
        for disk in self.disks.values():
            disk.ask("write_back")

    def heal(self, broker: int | None = None) -> None:
        """End the faults of one disk or of all; their effects stay."""
        for disk in self.disks.values() if broker is None else (self._of(broker),):
            disk.ask("heal")

    def close(self) -> None:
        """Unmount all. Closing again does nothing."""
        for disk in self.disks.values():
            disk.close()

    def _of(self, broker: int) -> MountedDisk:
        if broker not in self.disks:
            raise FencepostError(
                expected=f"one of the brokers {', '.join(map(str, self.disks))}",
                seen=str(broker),
                where="the disks",
            )
        return self.disks[broker]
