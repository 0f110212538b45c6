"""The live view of a running proxy: rates, lag, unknown outcomes, faults, and the findings of `watch`.

Owns the words and the process of `fencepost watch`. Must not know the protocol.
"""

import asyncio
import contextlib
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
from attrs import define, field
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fencepost.console.output import Output, add_row, table
from fencepost.report.event_words import printable

if TYPE_CHECKING:
    from fencepost.proxy.server.listener import Proxy
    from fencepost.proxy.server.recording_proxy import Record

MOST_FINDINGS = 8
"""Findings in the view; watch's own tables have all."""
MOST_LAGS = 10
"""Partitions of groups in the view, those with the largest lag first."""
WATCH_END_S = 30.0
"""How long to wait for `watch` to end after the proxy."""


@define(eq=False)
class View:
    """The live view."""

    proxy: "Proxy"
    # None: nothing is recorded.
    record: "Record | None"
    # The armed request faults.
    faults: Any
    output: Output
    # Whether to show the view; None: on a terminal only.
    shown: bool | None = None
    # The latest findings of `watch`; at most MOST_FINDINGS.
    findings: deque[str] = field(factory=lambda: deque(maxlen=MOST_FINDINGS))
    # How many findings `watch` reported.
    found: int = 0
    _live: Live | None = None
    _watch: "asyncio.subprocess.Process | None" = None
    _reading: "asyncio.Task[None] | None" = None
    # Counts at the last tick, by name.
    _before: dict[str, float] = field(factory=dict)
    # Changes per second of the counts, by name.
    _rates: dict[str, float] = field(factory=dict)
    # The last tick, in seconds on the monotonic clock.
    _at: float = field(factory=time.monotonic)

    async def begin(self, port: int, watched: str | None) -> None:
        """Print the proxy's addresses, and start the processes next to it. port: of the proxy; watched: the
        folder to judge while it is written, None for none."""
        where = f"{self.proxy.host}:{port}"
        brokers = (self.proxy.upstream, *self.proxy.alternatives)
        upstream = ",".join(f"{host}:{number}" for host, number in brokers)
        run = None if self.record is None else str(self.record.files.run)
        into = "nothing is recorded" if run is None else f"recording into {run}"
        self.output.say(f"proxy at {where} to {upstream}; {into}")
        self.output.emit({"type": "started", "listen": where, "upstream": upstream, "run": run})
        if watched is not None:
            await self._begin_watch(watched)
        on_terminal = self.output.people.is_terminal
        if self.shown if self.shown is not None else on_terminal:
            self._live = Live(
                self.picture(), console=self.output.people, transient=True, refresh_per_second=2
            )
            self._live.start()

    async def _begin_watch(self, folder: str) -> None:
        self._watch = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "from fencepost.cli import main; main()",
            "watch", folder, "--out", f"{folder.rstrip('/')}-watched", "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._reading = asyncio.ensure_future(self._read_findings(self._watch))

    async def _read_findings(self, watch: "asyncio.subprocess.Process") -> None:
        assert watch.stdout is not None
        with contextlib.suppress(ValueError):
            async for line in watch.stdout:
                self.hear(line)

    def hear(self, line: bytes) -> None:
        """Handle a line of `watch --json`."""
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return
        if isinstance(row, dict) and row.get("type") == "finding":
            self.found += 1
            words = (
                f"{row.get('anomaly')} at {row.get('topic')}-{row.get('partition')}, offset "
                f"{row.get('offset')}"
            )
            self.findings.append(words)
            self.output.emit(row)
            if self._live is None:
                self.output.say(printable(words, 400))

    def tick(self) -> None:
        """Update the rates, once a second."""
        now = time.monotonic()
        counts = self.counts()
        elapsed = max(1e-3, now - self._at)
        self._rates = {name: (value - self._before.get(name, 0)) / elapsed for name, value in counts.items()}
        self._before, self._at = counts, now
        if self._live is not None:
            self._live.update(self.picture())

    def counts(self) -> dict[str, float]:
        """Counts that only grow, by name."""
        counts: dict[str, float] = {
            "MB from clients": self.proxy.bytes_in / 1e6,
            "MB from brokers": self.proxy.bytes_out / 1e6,
        }
        if self.record is not None:
            recorder = self.record.recorder
            counts |= {
                "requests": recorder.requests,
                "records produced": recorder.records_in,
                "records acknowledged": recorder.appends.acknowledged,
                "records fetched": recorder.polls.records,
            }
        return counts

    def lags(self) -> list[tuple[str, str, int]]:
        """(group, partition, records between committed offset and high watermark), the largest first."""
        if self.record is None:
            return []
        recorder = self.record.recorder
        found = [
            (group, f"{topic}-{partition}", max(0, recorder.polls.high_watermarks[topic, partition] - offset))
            for (group, topic, partition), offset in recorder.committed.items()
            if (topic, partition) in recorder.polls.high_watermarks
        ]
        return sorted(found, key=lambda one: (-one[2], one))[:MOST_LAGS]

    def picture(self) -> Group:
        """The view as it is now."""
        rates = table("", ">so far", ">a second")
        for name, value in self.counts().items():
            add_row(
                rates,
                name,
                f"{value:,.1f}" if name.startswith("MB") else f"{value:,.0f}",
                f"{self._rates.get(name, 0):,.1f}",
            )
        parts: list[Table | Text] = [rates]
        if lags := self.lags():
            shown = table("group", "partition", ">lag")
            for row in lags:
                add_row(shown, *map(str, row))
            parts.append(shown)
        parts.append(Text(self.line()))
        parts += [Text(f"finding: {printable(one, 200)}", style="red") for one in self.findings]
        return Group(*parts)

    def line(self) -> str:
        """The state in one line."""
        words = [f"{len(self.proxy.connections)} connections"]
        if unreachable := self.proxy.upstreams.unreachable:
            words.append(f"{unreachable} closed because their broker could not be reached")
        if self.record is not None:
            recorder = self.record.recorder
            words.append(f"{recorder.appends.unknown} appends of unknown outcome")
            words.append(f"{self.record.files.bytes_written / 1e6:,.1f} MB recorded")
            if self.record.stopped:
                words.append(f"nothing is recorded any more: {self.record.stopped}")
        if self.faults is not None:
            words.append(f"{len(self.faults.active())} faults armed, {self.faults.struck} struck")
        if self._watch is not None:
            words.append(f"{self.found} findings")
        return "; ".join(words)

    async def end(self) -> None:
        """End the view and its process after the proxy has ended."""
        if self._live is not None:
            self._live.stop()
        if self._watch is not None:
            with contextlib.suppress(ProcessLookupError):
                self._watch.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._watch.wait(), WATCH_END_S)
            if self._reading is not None:
                self._reading.cancel()
        self.output.say(self.line())
        lost = {"brokers unreachable": self.proxy.upstreams.unreachable}
        self.output.emit({"type": "summary", **self.counts(), "findings": self.found, **lost})
