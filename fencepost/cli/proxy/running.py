"""A proxy from its start to Ctrl-C: what it says, and what runs next to it.

Owns the order: record, listeners, view, and the end. Must not know options.
"""

import asyncio
import contextlib
import signal
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from fencepost.console.output import Output
from fencepost.proxy.record.values import Kept
from fencepost.proxy.server.files import Bounds
from fencepost.proxy.server.listener import Proxy, Sides, trace_time
from fencepost.proxy.server.recorded import Record, Recording, WhenFull
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.wire.hook import Hook

PROGRESS_S = 1.0


@frozen(kw_only=True)
class Asked:
    """The command line."""

    upstream: tuple[str, int]
    listen: tuple[str, int]
    folder: Path | None = None
    kept: str = "hash"
    when_full: str = "stop-recording"
    disk_bytes: int = 10_000_000_000
    part_bytes: int = 16_000_000
    part_ns: int = 10_000_000_000
    compacted: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    pass_unknown: bool = False
    listener_tls: ssl.SSLContext | None = None
    upstream_tls: ssl.SSLContext | None = None
    upstream_name: str = ""
    faults: tuple[str, ...] = ()
    seed: int = 0
    watched: bool = False
    view: bool | None = None


def recording_of(asked: Asked) -> Recording | None:
    """What is recorded; None for nothing."""
    if asked.folder is None:
        return None
    return Recording(
        folder=asked.folder,
        kept=Kept(asked.kept),
        bounds=Bounds(part_bytes=asked.part_bytes, part_ns=asked.part_ns, disk_bytes=asked.disk_bytes),
        when_full=WhenFull(asked.when_full),
        compacted=asked.compacted,
        others=asked.others,
    )


async def run(asked: Asked, output: Output) -> ExitCode:
    """Serve until somebody ends it. Raises TraceError, EnvironmentError_, PlanError for what cannot begin."""
    from fencepost.cli.proxy.view import View

    proxy = Proxy(
        upstream=asked.upstream,
        host=asked.listen[0],
        first_port=asked.listen[1],
        sides=Sides(
            listener=asked.listener_tls, upstream=asked.upstream_tls, server_name=asked.upstream_name
        ),
        pass_unknown=asked.pass_unknown,
    )
    recording = recording_of(asked)
    record = None if recording is None else Record(proxy, recording)
    if record is not None:
        record.begin()
    faults = _faults(asked, proxy, record) if asked.faults else None
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    view = View(proxy, record, faults, output, shown=asked.view)
    try:
        port = await proxy.listen()
        await view.begin(asked, port)
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), PROGRESS_S)
            view.tick()
    finally:
        await proxy.close()
        if record is not None:
            record.end()
        await view.end()
    return ExitCode.NOTHING_FOUND


def _faults(asked: Asked, proxy: Proxy, record: Record | None) -> Any:
    """The engine of request faults, armed. Raises PlanError for a text that is no fault."""
    from fencepost.proxy.faults import FaultHook, RequestFaults, parse
    from fencepost.proxy.faults.words import events_of

    def struck(fault: Any) -> None:
        if record is not None and not record.stopped:
            record.events(events_of(fault))

    engine = RequestFaults(seed=asked.seed, record=struck)
    for text in asked.faults:
        engine.arm(parse(text), trace_time())

    def hook_for(node: int) -> "Hook":
        return FaultHook(faults=engine, broker=node, now=trace_time)

    proxy.hook_for = hook_for
    return engine
