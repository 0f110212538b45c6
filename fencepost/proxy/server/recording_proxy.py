"""A proxy with its record: who writes when, and what happens when there is no room.

Owns the wiring. Must not know sockets or rows.
"""

import asyncio
import logging
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from attrs import define, field, frozen

from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Kept, Values
from fencepost.proxy.server.listener import Proxy, trace_time
from fencepost.proxy.server.record_files import Bounds, RecordFiles, keep_ports, key_of, ports_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event
from fencepost.traces.jsonlines import event_line
from fencepost.traces.parts import RETRIED
from fencepost.traces.trace import Claims

LOG = logging.getLogger("fencepost.proxy")
TICK_S = 0.1
LOOK_TICKS = 10
"""A stopped proxy looks for room once a second: that walks the folder."""


class WhenFull(StrEnum):
    """What to do without room for the record."""

    STOP_RECORDING = "stop-recording"
    STOP_TRAFFIC = "stop-traffic"


@frozen(kw_only=True)
class Recording:
    """What is recorded where."""

    folder: Path
    kept: Kept = Kept.HASH
    bounds: Bounds = field(factory=Bounds)
    when_full: WhenFull = WhenFull.STOP_RECORDING
    # Topics (record/recorder.py).
    compacted: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


@define(eq=False)
class Record:
    """The record of one proxy, from `begin` to `end`."""

    proxy: Proxy
    recording: Recording
    recorder: Recorder = field(init=False)
    files: RecordFiles = field(init=False)
    # Why nothing is recorded any more; "" while it is.
    stopped: str = field(default="", init=False)
    _repeated: bool = field(default=False, init=False)
    # Since it stopped.
    _ticks: int = field(default=0, init=False)
    _ticking: asyncio.TimerHandle | None = field(default=None, init=False)

    def begin(self) -> None:
        """Before the proxy listens. Raises TraceError, EnvironmentError_."""
        self._begin_run()
        self.proxy.kept_ports = ports_of(self.recording.folder)
        self._tick()

    def _begin_run(self) -> None:
        recording, proxy = self.recording, self.proxy
        key = key_of(recording.folder)
        self.files = RecordFiles(
            folder=recording.folder,
            claims=Claims(compacted=tuple(sorted(recording.compacted))),
            kept=recording.kept.value,
            now=trace_time,
            low_watermark=lambda time: self.recorder.low_watermark(time),
            on_full=self._full,
            bounds=recording.bounds,
        )
        self.recorder = Recorder(
            lines=Lines(self.files.emit),
            values=Values(key=key, kept=recording.kept),
            compacted=recording.compacted,
            others=recording.others,
            began=trace_time(),
            keep=self.files.keep if recording.kept is Kept.FULL else None,
        )
        self.files.open()
        proxy.watcher = self.recorder
        proxy.on_unread = self.recorder.unread
        proxy.before_sending = self.files.flush

    def end(self) -> None:
        """After the proxy has closed."""
        if self._ticking is not None:
            self._ticking.cancel()
        if not self.stopped:
            self.recorder.close()
            self.files.close()
        keep_ports(self.recording.folder, self.proxy.kept_ports)

    def events(self, rows: Iterable[Event]) -> None:
        """Rows of somebody else's: faults."""
        for row in rows:
            self.files.emit(event_line(row) + b"\n")

    def _tick(self) -> None:
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        if self.stopped:
            self._look_for_room()
            return
        self.recorder.tick(trace_time())
        if self.recorder.appends.repeated and not self._repeated:
            self._repeated = True
            self.recorder.lines.event(trace_time(), "mark", cause=RETRIED)
        self.files.tick()

    def _look_for_room(self) -> None:
        """Traffic that stopped goes on in a new run as soon as there is room: nothing passed meanwhile. A
        record that missed traffic does not go on."""
        self._ticks += 1
        if self.recording.when_full is not WhenFull.STOP_TRAFFIC or self._ticks % LOOK_TICKS:
            return
        try:
            if not self.files.has_room_again():
                return
            self.files.close()
            self._begin_run()
        except (FencepostError, OSError):
            return  # it is as full as before
        self.stopped, self._repeated, self.proxy.refuses = "", False, lambda: ""
        LOG.warning("there is room again: traffic goes on, recorded in %s", self.files.run)

    def _full(self, reason: str) -> None:
        self.stopped = reason
        self.recorder.stopped = True
        if self.recording.when_full is WhenFull.STOP_TRAFFIC:
            LOG.error("no traffic any more: %s", reason)
            self.proxy.refuses = lambda: f"there is no room for the record: {reason}"
            asyncio.get_running_loop().call_soon(self.proxy.disconnect, "there is no room for the record")
        else:
            LOG.error("nothing is recorded any more: %s", reason)
