"""A proxy from its start to Ctrl-C: its messages, and the tasks next to it.

Owns the order: record, listeners, view, and the end. Must not know options.
"""

import asyncio
import contextlib
import signal
import ssl
from pathlib import Path

from attrs import frozen

from fencepost.cli.proxy.breaking import Faults
from fencepost.cli.proxy.view import View
from fencepost.console.output import Output
from fencepost.proxy.control.server import ControlServer, make_token
from fencepost.proxy.record.values import Kept
from fencepost.proxy.server.listener import Proxy
from fencepost.proxy.server.record_files import Bounds
from fencepost.proxy.server.recording_proxy import Record, Recording, WhenFull
from fencepost.proxy.server.upstreams import Sides
from fencepost.traces.errors import ExitCode

PROGRESS_S = 1.0
"""Between two updates of the live view."""


@frozen(kw_only=True)
class Asked:
    """The command line."""

    # Brokers of the cluster: host and port of each; at least one.
    upstream: tuple[tuple[str, int], ...]
    # The address for clients.
    listen: tuple[str, int]
    # Seconds to wait for the first of them that answers.
    wait_s: float = 0.0
    # Folder of the record; None: nothing is recorded.
    folder: Path | None = None
    # What is kept of records: hash, full or size.
    kept: str = "hash"
    # What stops at the limit of the disk: stop-recording, or the traffic.
    when_full: str = "stop-recording"
    # Limit for all files in `folder`.
    disk_bytes: int = 10_000_000_000
    # A part is sealed when it is so large,
    part_bytes: int = 16_000_000
    # or so old.
    part_ns: int = 10_000_000_000
    # Compacted topics: their keys are recorded.
    compacted: frozenset[str] = frozenset()
    # Topics with writers that do not use the proxy.
    others: frozenset[str] = frozenset()
    # Let requests pass that cannot be read.
    pass_unknown: bool = False
    # TLS towards clients; None: none.
    listener_tls: ssl.SSLContext | None = None
    # TLS towards brokers; None: none.
    upstream_tls: ssl.SSLContext | None = None
    # Host name in brokers' certificates; "": their address.
    upstream_name: str = ""
    # Request faults in their grammar.
    faults: tuple[str, ...] = ()
    # Seed of the faults' random decisions.
    seed: int = 0
    # Control port, 0 for any free one; None: none.
    control: int | None = None
    # Judge the record while it is written.
    watched: bool = False
    # Show the live view; None: on a terminal only.
    view: bool | None = None


def recording_of(asked: Asked) -> Recording | None:
    """How to record; None if nothing is recorded."""
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
    """Serve until Ctrl-C or SIGTERM. asked: the options; output: for messages. Returns the exit code. Raises
    TraceError, EnvironmentError_, PlanError if it cannot start."""
    proxy = Proxy(
        upstream=asked.upstream[0],
        alternatives=asked.upstream[1:],
        host=asked.listen[0],
        first_port=asked.listen[1],
        sides=Sides(
            listener=asked.listener_tls, upstream=asked.upstream_tls, server_name=asked.upstream_name
        ),
        pass_unknown=asked.pass_unknown,
    )
    for reason in await proxy.upstreams.probe(asked.upstream, asked.wait_s):
        output.say(f"{reason}; another broker of --upstream answers")
    recording = recording_of(asked)
    record = None if recording is None else Record(proxy, recording)
    if record is not None:
        record.begin()
    breaks = bool(asked.faults) or asked.control is not None
    faults = Faults.of(proxy, record, asked.seed, asked.faults) if breaks else None
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    view = View(proxy, record, None if faults is None else faults.engine, output, shown=asked.view)
    control: ControlServer | None = None
    try:
        port = await proxy.listen()
        if asked.control is not None and faults is not None:
            folder = asked.folder or Path("out/proxy")
            control = ControlServer(verbs=faults.verbs(loop), token=make_token(folder))
            where = await control.listen(asked.control)
            output.say(f"control port at 127.0.0.1:{where}, its token in {folder}")
        await view.begin(port, str(asked.folder) if asked.watched else None)
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), PROGRESS_S)
            view.tick()
    finally:
        if control is not None:
            await control.close()
        await proxy.close()
        if record is not None:
            record.end()
        await view.end()
    return ExitCode.NOTHING_FOUND
