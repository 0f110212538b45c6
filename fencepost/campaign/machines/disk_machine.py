"""The log machine on the simulated disk: power loss, lying syncs, input/output errors, a full disk, rotten bits.

Owns which faults strike, and what of the promises of log_machine.py is left when they do. A power loss takes what was not synced. After an error of the
disk every call is refused until the log is opened anew. A lying sync voids what it promised, a rotten bit what lies behind it; but neither lets
a record appear that nobody wrote.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from fencepost.campaign.machines.log_machine import KEY, LogMachine, produced
from fencepost.campaign.machines.log_model import Known
from fencepost.impl.log.layout import RECOVERY_POINTS, parse_segment_name
from fencepost.impl.log.segmented_log import LogOfflineError
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import DiskOptions


class DiskMachine(LogMachine):
    """disk: the files. armed: a fault may strike, so that calls may fail. was_struck: one did since the last start."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False

    def make_files(self) -> Disk:
        """A disk whose losses the first rule draws."""
        self.disk = Disk(node=1, randomness=Randomness(1), options=DiskOptions())
        return self.disk

    @initialize(losses=st.integers(0, 1_000))
    def draw(self, losses: int) -> None:
        """losses: which of the unsynced writes the power losses will take."""
        self.disk.randomness = Randomness(losses)

    def survive(self, action: Callable[[], Any]) -> bool:
        """Errors only when armed; a power loss takes the process and leaves what the disk kept."""
        try:
            action()
        except PowerLoss:
            self.lose_power()
            return False
        except (LogOfflineError, OSError):
            assert self.armed, "an error of the disk without a fault"
            return False
        return True

    # ---- faults

    def lose_power(self) -> None:
        """All is dark; the disk keeps what it must, and what it likes."""
        self.leave()
        self.disk.power_loss()
        self.heal_disk()

    def heal_disk(self) -> None:
        """No fault is left in waiting."""
        self.disk.heal()
        self.disk.disarm_power_loss()
        self.armed = False

    @rule()
    def power_loss(self) -> None:
        """Now, between two calls."""
        self.lose_power()
        self.start(at_least=self.model.durable)
        self.forget_lies()

    def well(self) -> bool:
        """For preconditions: the log is in service and no fault waits."""
        return self.in_service and not self.armed

    @precondition(well)
    @rule(calls=st.integers(1, 25))
    def arm_power_loss(self, calls: int) -> None:
        """Inside the so-many-th changing call from now."""
        self.disk.arm_power_loss(calls)
        self.armed = True

    @precondition(well)
    @rule(call=st.sampled_from(list(DiskCall)), nth=st.integers(1, 12), times=st.sampled_from([1, 2, None]))
    def fail(self, call: DiskCall, nth: int, times: int | None) -> None:
        """EIO."""
        self.disk.fail_calls(call, nth=nth, times=times)
        self.armed = True

    @precondition(well)
    @rule(room=st.integers(0, 400))
    def fill_up(self, room: int) -> None:
        """ENOSPC after so many more bytes."""
        used = sum(self.disk.open(path).size() for path in self.paths())
        self.disk.limit_capacity(used + room)
        self.armed = True

    @precondition(lambda self: self.well() and not self.options.compact)
    @rule(times=st.integers(1, 4))
    def lie(self, times: int) -> None:
        """The next syncs do nothing."""
        self.disk.lie_about_syncs(times)
        self.armed = self.model.lied = True

    @precondition(lambda self: self.armed)
    @rule()
    def heal(self) -> None:
        """The faults end. A log that was struck stays out of service."""
        self.heal_disk()

    def forget_lies(self) -> None:
        """After a power loss the truth is out; what was built on lies (producers, checkpoints) is thrown away."""
        if not self.model.lied or not self.in_service:
            return
        assert self.logs is not None
        self.logs.truncate_fully_and_start_at(KEY, self.model.end)
        self.logs.checkpoint()
        self.model.restart_at(self.model.end)
        self.model.lied = False

    @precondition(lambda self: self.logs is not None and bool(self.log.offline))
    @rule()
    def refuse(self) -> None:
        """Out of service means out of service, also when the disk is well again."""
        self.heal_disk()
        batch = [Known(offset=0, key=b"a", value=b"", timestamp_ms=self.now_ms, first=0, last=0)]
        log = self.log
        for call in (
            lambda: log.append_as_leader(produced(batch), self.epoch),
            log.flush,
            lambda: log.truncate_to(0),
            lambda: log.read(0, max_bytes=1, end_offset=1),
        ):
            try:
                call()
            except LogOfflineError:
                continue
            raise AssertionError(f"offline ({log.offline}), and it did not refuse")

    # ---- rot

    def paths(self) -> list[str]:
        """Every file."""
        top = [name for name in self.disk.list("") if name != str(KEY)]
        return top + [f"{KEY}/{name}" for name in self.disk.list(str(KEY))]

    @precondition(lambda self: self.in_service and not self.options.compact and not self.model.lied)
    @rule(pick=st.integers(0, 30))
    def rot(self, pick: int) -> None:
        """A bit turns over in a segment, an index or a snapshot while the log is closed; reading all of it finds a clean prefix."""
        self.heal_disk()
        self.leave()
        paths = [path for path in self.paths() if parse_segment_name(path.rpartition("/")[2])]
        self.disk.rot_bit(paths[pick % len(paths)])
        if self.disk.exists(RECOVERY_POINTS):
            self.disk.remove(RECOVERY_POINTS)
        self.epoch += 1  # no later batch is taken for one from before
        self.start(at_least=0)
        self.model.lied = True  # the leader epoch of a batch is outside its checksum
        self.forget_lies()

    @precondition(lambda self: self.in_service and len(self.log.segments) > 1)
    @rule(pick=st.integers(0, 30), offset=st.integers(0, 60))
    def rot_index(self, pick: int, offset: int) -> None:
        """A bit turns over in the offset index of an old segment; whoever reads finds the records all the same."""
        old = self.log.segments.all[pick % (len(self.log.segments) - 1)]
        old.release()
        self.disk.rot_bit(old.offsets.path)
        self.read(offset=old.base_offset + offset % 8, bound=self.model.end)

        def repair() -> None:
            old.rebuild_indexes()
            old.seal()

        if self.in_service:
            self.survive(repair)
