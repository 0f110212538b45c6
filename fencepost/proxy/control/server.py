"""A control port on asyncio: sockets, threads for verbs, the token's file.

Owns the listener on 127.0.0.1. Must not know HTTP (http.py), or what a verb does. A verb may block: it runs
in a thread, one at a time.
"""

import asyncio
import inspect
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from fencepost.proxy.control.http import Call, HttpConnection
from fencepost.traces.errors import EnvironmentError_, FencepostError, PlanError

LOG = logging.getLogger("fencepost.control")
HERE = "127.0.0.1"
"""Nobody on another machine gets in."""
TOKEN = "control-token"
"""Name of the file, readable by its owner only, that holds the token."""
MOST_CONNECTIONS = 64
"""At a time: a test suite uses one each."""
IDLE_S = 60.0
"""A client that sends nothing for so long is gone: Kafka's own connections idle for ten minutes, HTTP's
keep-alive usually for one."""
CHUNK = 64 * 1024

Verb = Callable[..., Any]


def make_token(folder: Path) -> str:
    """A new token, in a file of this folder that only its owner may read."""
    folder.mkdir(parents=True, exist_ok=True)
    token, path = secrets.token_urlsafe(24), folder / TOKEN
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(token + "\n", encoding="ascii")
    return token


@define(eq=False, kw_only=True)
class ControlServer:
    """verbs: what may be called, by name, with keyword arguments; each is a function."""

    verbs: Mapping[str, Verb]
    token: str = field(repr=False)
    _listener: asyncio.Server | None = field(default=None, init=False)
    _tasks: set["asyncio.Task[None]"] = field(factory=set, init=False)
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def listen(self, port: int = 0) -> int:
        """Take connections; answers the port (0: any free one). Raises EnvironmentError_."""
        try:
            self._listener = await asyncio.start_server(self._serve, HERE, port)
        except OSError as error:
            raise EnvironmentError_(
                expected=f"port {port} to be free",
                seen=str(error),
                where="the control port",
                hint="name another one, or 0 for any free one",
            ) from None
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._listener is not None:
            self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._talk(reader, writer)
        except (ConnectionError, TimeoutError):
            pass  # the client has gone
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = HttpConnection(self.verbs.keys(), self.token)
        while not http.closed:
            data = await asyncio.wait_for(reader.read(CHUNK), IDLE_S)
            call, out = http.receive(data)
            while call is not None or out:
                writer.write(out if call is None else await self._carry_out(http, call))
                await writer.drain()
                call, out = http.more()

    async def _carry_out(self, http: HttpConnection, call: Call) -> bytes:
        verb = self.verbs[call.verb]
        try:
            _check_arguments(verb, call)
            async with self._lock:
                return http.answer(await asyncio.to_thread(verb, **call.arguments))
        except FencepostError as error:
            return http.refuse(error)
        except Exception as error:
            LOG.exception("a mistake in fencepost itself, at %s", call.verb)
            return http.failed(f"a mistake in fencepost itself: {type(error).__name__}: {error}")


def _check_arguments(verb: Verb, call: Call) -> None:
    """Names and plain types, before anything happens. Raises PlanError."""
    parameters = inspect.signature(verb).parameters
    try:
        inspect.signature(verb).bind(**call.arguments)
    except TypeError as error:
        raise PlanError(
            expected=f"the arguments {', '.join(parameters) or 'of none'}",
            seen=str(error),
            where=f"/{call.verb}",
        ) from None
    for name, value in call.arguments.items():
        kinds = KINDS.get(str(parameters[name].annotation).replace("'", ""), ())
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise PlanError(
                expected=f"{name} of type {parameters[name].annotation}",
                seen=repr(value)[:80],
                where=f"/{call.verb}",
            )


NONE = type(None)
KINDS: Mapping[str, tuple[type, ...]] = {
    "<class str>": (str,),
    "<class int>": (int,),
    "<class bool>": (bool,),
    "int | None": (int, NONE),
    "str | None": (str, NONE),
}
"""Types of parameters that are checked, as annotations are written."""
