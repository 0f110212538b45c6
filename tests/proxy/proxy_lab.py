"""A proxy with its record in a thread of its own, in front of whatever cluster."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencepost.proxy.server.listener import Proxy
from fencepost.proxy.server.record_files import Bounds
from fencepost.proxy.server.recording_proxy import Record, Recording
from fencepost.traces.parts import read_recording
from fencepost.traces.trace import Trace

HOST = "127.0.0.1"


class ProxyLab:
    """A running proxy. record: None if nothing is recorded."""

    def __init__(
        self, upstream: tuple[str, int], folder: Path | None, recording: dict[str, Any], **options
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.proxy = Proxy(upstream=upstream, **options)
        self.record: Record | None = None
        if folder is not None:
            self.record = Record(self.proxy, Recording(folder=folder, **recording))
        self.port = 0
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def run(self, work) -> Any:
        """Run a coroutine in the proxy's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def _begin(self) -> None:
        if self.record is not None:
            self.record.begin()
        self.port = await self.proxy.listen()

    async def _end(self) -> None:
        await self.proxy.close()
        if self.record is not None:
            self.record.end()

    def trace(self) -> Trace:
        """What was recorded; after the block."""
        assert self.record is not None
        return read_recording(self.record.files.run)


@contextmanager
def proxy_lab(
    upstream: str, folder: Path | None = None, recording: dict[str, Any] | None = None, **options
) -> Iterator[ProxyLab]:
    """A proxy for HOST:PORT, up for the block; with a folder it records."""
    host, _, port = upstream.split(",")[0].rpartition(":")
    quick = {"bounds": Bounds(part_ns=300_000_000)}
    lab = ProxyLab((host, int(port)), folder, quick | (recording or {}), **options)
    lab._thread.start()
    try:
        lab.run(lab._begin())
        yield lab
    finally:
        lab.run(lab._end())
        lab.loop.call_soon_threadsafe(lab.loop.stop)
        lab._thread.join()
        lab.loop.close()
