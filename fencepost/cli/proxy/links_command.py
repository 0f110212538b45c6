"""`fencepost proxy links`: links between brokers as a process, controlled by JSON lines on standard input."""

import asyncio
import sys
from typing import Any

import msgspec

from fencepost.proxy.server.links import Links, Pair, Way
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import ExitCode, FencepostError

LONGEST_LINE = 1 << 16
"""Bytes of a request on standard input: every request has fewer than a hundred."""
VERBS = ("cut", "delay", "heal", "state")


def listen_address(text: str) -> tuple[str, int]:
    """HOST:PORT as (host, port); port 0 is any free one. Raises ValueError."""
    from fencepost.impl.runtime.addresses import parse_address

    return (text[:-2], 0) if text.endswith(":0") and len(text) > 2 else parse_address(text)


def parse_link(text: str) -> tuple[Pair, tuple[str, int], tuple[str, int]]:
    """SOURCE,TARGET[,LISTENER]=HOST:PORT>HOST:PORT as (pair, listen, target). Raises ValueError."""
    from fencepost.impl.runtime.addresses import parse_address

    names, equals, addresses = text.partition("=")
    listen, arrow, target = addresses.partition(">")
    parts = [part.strip() for part in names.split(",")]
    if not (equals and arrow and 2 <= len(parts) <= 3 and all(parts)):
        raise ValueError(f"expected SOURCE,TARGET[,LISTENER]=HOST:PORT>HOST:PORT, saw {text!r}")
    return Pair(*parts), listen_address(listen.strip()), parse_address(target.strip())


def obey(links: Links, line: bytes) -> dict[str, Any]:
    """Carry out the command in a line. Returns the answer, also for a command that is impossible."""
    try:
        asked = from_json(line, dict[str, Any])
        verb = asked.pop("do", None)
        if verb not in VERBS:
            raise FencepostError(expected=f"do: one of {', '.join(VERBS)}", seen=repr(verb), where="a line")
        if verb == "state":
            return {"links": links.state()}
        if "way" in asked:
            asked["way"] = Way(asked["way"])
        pairs = getattr(links, verb)(**asked)
    except (msgspec.DecodeError, FencepostError, TypeError, ValueError) as error:
        return {"error": str(error)}
    return {"done": verb, "links": [str(pair) for pair in pairs]}


async def serve(asked: tuple[tuple[Pair, tuple[str, int], tuple[str, int]], ...]) -> ExitCode:
    """Pass bytes until standard input ends. Raises EnvironmentError_ for an address that is taken."""
    links = Links()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    try:
        for pair, listen, target in asked:
            await links.add(pair, target, listen)
        _say({"links": links.state()})
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            _say(obey(links, line))
    finally:
        await links.close()
    return ExitCode.NOTHING_FOUND


def _say(row: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
    sys.stdout.flush()
