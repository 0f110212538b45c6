"""The log machine on the simulated disk: power loss, lying syncs, input/output errors, a full disk, rotten
bits (disk_rot.py).

Owns which faults strike, and what of the promises of log_machine.py is left when they do. A power loss takes
what was not synced. After an error of the disk every call is refused until the log is opened anew. A lying
sync voids what it promised, but lets no record appear that nobody wrote.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from fencepost.impl.log.segmented_log import LogOfflineError
from fencepost.machines.log.life import KEY
from fencepost.machines.log.log_machine import LogMachine
from fencepost.machines.log.model import Known
from fencepost.machines.log.writing import BATCH, PRODUCERS, produced
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import DiskOptions

CALLS = st.sampled_from([call.value for call in DiskCall])
NTHS = st.sampled_from([1, 2, 1, 3, 1, 5, 8, 11])
"""At once most of the time, or inside the roll that an append may begin with."""
RESTARTS = st.lists(st.sampled_from(["crash", "power"]), max_size=2)


class FaultyDiskMachine(LogMachine):
    """disk: the files. armed: a fault may strike, so that calls may fail."""

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
    @rule(call=CALLS, nth=st.integers(1, 12), times=st.sampled_from([1, 2, None]))
    def fail(self, call: str, nth: int, times: int | None) -> None:
        """Let file calls fail with EIO.

        Args:
            call: the name of the file call.
            nth: which of the next ones fails first.
            times: how many fail; None: all from then on.
        """
        self.disk.fail_calls(DiskCall(call), nth=nth, times=times)
        self.armed = True

    @precondition(well)
    @rule(room=st.integers(0, 400))
    def fill_up(self, room: int) -> None:
        """ENOSPC after so many more bytes."""
        used = sum(self.disk.open(path).size() for path in self.paths())
        self.disk.limit_capacity(used + room)
        self.armed = True

    @precondition(well)
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
        """After a power loss the truth is out; what was built on lies (producers, checkpoints) is thrown
        away."""
        if not self.model.lied or not self.in_service:
            return
        assert self.logs is not None
        self.logs.truncate_fully_and_start_at(KEY, self.model.end)
        self.logs.first_dirty.pop(KEY, None)
        self.logs.checkpoint()
        self.model.restart_at(self.model.end)
        self.model.lied = False

    # ---- what follows an error

    @precondition(well)
    @rule(call=CALLS, nth=NTHS, keys=BATCH, roll=st.booleans(), again=st.booleans(), restarts=RESTARTS)
    def fail_while_writing(
        self, call: str, nth: int, keys: list[str], roll: bool, again: bool, restarts: list[str]
    ) -> None:
        """An append and a flush (or a roll) meet EIO at once; the disk is well again, and another append or
        restarts follow."""
        self.fail(call=call, nth=nth, times=1)
        self.append(keys=keys, tombstone=False, producer=7, ms=1)
        if self.in_service:
            (self.roll if roll else self.flush)()
        self.heal_disk()
        if again and self.in_service:
            self.append(keys=keys, tombstone=False, producer=8, ms=1)
        for restart in restarts:
            (self.crash_and_restart if restart == "crash" else self.power_loss)()

    @precondition(well)
    @rule(keys=BATCH, producer=PRODUCERS, back=st.integers(0, 3))
    def read_while_appending(self, keys: list[str], producer: int | None, back: int) -> None:
        """A reader without a bound of its own comes while an append is under way.

        Args:
            keys: of the records that are appended.
            producer: the producer's number; None: none.
            back: how far before the end the reader begins, in records.
        """
        self.disk.look_inside_append(lambda _: self.read(back=back, bound_back=-len(keys)))
        self.append(keys=keys, tombstone=False, producer=producer, ms=0)

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
