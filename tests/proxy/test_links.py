"""Links in bytes only: a cut hears and says nothing, resets nothing, and what was under way arrives after the
heal."""

import asyncio
import json
import subprocess
import sys

import pytest

from fencepost.cli.proxy.links_command import obey, parse_link
from fencepost.proxy.server.links import Links, Pair, Way
from fencepost.traces.errors import EnvironmentError_, FencepostError

QUIET_S = 0.15


class Echo:
    """A broker that says what it hears."""

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.links = Links()
        self.address = self.server.sockets[0].getsockname()
        for pair in (Pair("1", "2", "INTER"), Pair("2", "1", "INTER"), Pair("1", "2", "CTRL")):
            await self.links.add(pair, self.address)
        return self

    async def serve(self, reader, writer):
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async def connect(self, pair=Pair("1", "2", "INTER")):  # noqa: B008
        return await asyncio.open_connection(*self.links.links[pair].address)

    async def __aexit__(self, *_):
        await self.links.close()
        self.server.close()


async def silent(reader):
    """Whether nothing comes for a while."""
    try:
        await asyncio.wait_for(reader.read(100), QUIET_S)
    except TimeoutError:
        return True
    return False


async def said(reader, count):
    return await asyncio.wait_for(reader.readexactly(count), 600)


@pytest.mark.parametrize("way", list(Way))
def test_a_cut_says_nothing_and_the_heal_brings_what_was_under_way(way):
    """In either way or both: no byte comes, no reset; after the heal all of it comes, in order, on the same
    connection."""

    async def work():
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"before")
            assert await said(reader, 6) == b"before"
            echo.links.cut("1", "2", "INTER", way)
            writer.write(b"during")
            assert await silent(reader)
            other, other_writer = await echo.connect(Pair("2", "1", "INTER"))
            other_writer.write(b"x")
            assert await said(other, 1) == b"x"
            assert echo.links.heal() == list(echo.links.links)
            writer.write(b" after")
            assert await said(reader, 12) == b"during after"

    asyncio.run(work())


def test_one_way_passes_while_the_other_is_cut():
    """Cut back: what the source says reaches the target."""

    async def work():
        heard = asyncio.Event()

        async def serve(reader, writer):
            await reader.read(10)
            heard.set()
            writer.write(b"answer")
            await asyncio.sleep(5)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        links = Links()
        await links.add(Pair("1", "2"), server.sockets[0].getsockname())
        reader, writer = await asyncio.open_connection(*links.links[Pair("1", "2")].address)
        links.cut(way=Way.BACK)
        writer.write(b"hello")
        await asyncio.wait_for(heard.wait(), 600)
        assert await silent(reader)
        await links.close()
        server.close()

    asyncio.run(work())


def test_a_connection_that_begins_during_a_cut_waits_and_goes_on():
    """It is accepted, as by a kernel whose process stands still."""

    async def work():
        async with Echo() as echo:
            echo.links.cut(target="2", listener="INTER")
            reader, writer = await echo.connect()
            writer.write(b"hello")
            assert await silent(reader)
            echo.links.heal()
            assert await said(reader, 5) == b"hello"

    asyncio.run(work())


def test_the_end_of_a_connection_is_not_heard_through_a_cut():
    """A side that closes is not news until the heal."""

    async def work():
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"a")
            await said(reader, 1)
            echo.links.cut()
            writer.write_eof()
            assert await silent(reader)
            echo.links.heal()
            assert await asyncio.wait_for(reader.read(), 600) == b""

    asyncio.run(work())


def test_a_delay_is_at_least_as_long_as_asked_and_keeps_order():
    """200 ms there and as much back; afterwards none."""

    async def work():
        async with Echo() as echo:
            reader, writer = await echo.connect()
            echo.links.delay(200, "1")
            loop = asyncio.get_running_loop()
            began = loop.time()
            writer.write(b"a")
            await asyncio.sleep(0.01)
            writer.write(b"b")
            assert await said(reader, 2) == b"ab"
            assert loop.time() - began >= 0.4

    asyncio.run(work())


def test_what_cannot_be_done_is_one_sentence():
    """An unknown pair, a delay beyond the bound, a pair twice, an address that is taken."""

    async def work():
        async with Echo() as echo:
            with pytest.raises(FencepostError, match="expected one of the links 1 -> 2"):
                echo.links.cut("7")
            with pytest.raises(FencepostError, match="milliseconds"):
                echo.links.delay(10**9)
            with pytest.raises(FencepostError, match="a new pair"):
                await echo.links.add(Pair("1", "2", "CTRL"), echo.address)
            with pytest.raises(EnvironmentError_, match="a free address"):
                await echo.links.add(Pair("3", "2"), echo.address, echo.address[:2])

    asyncio.run(work())


def test_lines_drive_the_process():
    """As a process: it says where its links are, does what a line asks, and answers what it cannot do."""
    command = [sys.executable, "-c", "from fencepost.cli import main; main()", "proxy", "links"]
    process = subprocess.Popen(
        [*command, "--link", "1,2,INTER=127.0.0.1:0>127.0.0.1:9"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = [
        '{"do":"cut","source":"1","way":"there"}',
        '{"do":"state"}',
        '{"do":"dance"}',
        "{",
        '{"do":"cut","source":7,"x":1}',
    ]
    out, _ = process.communicate("\n".join(lines) + "\n", timeout=600)
    answers = [json.loads(line) for line in out.splitlines()]
    assert answers[0]["links"][0]["upstream"] == "127.0.0.1:9"
    assert answers[1] == {"done": "cut", "links": ["1 -> 2 (INTER)"]}
    assert answers[2]["links"][0]["cut"] == ["there"]
    assert all("error" in answer for answer in answers[3:]) and len(answers) == 6
    assert process.returncode == 0


@pytest.mark.parametrize(
    "text", ["1,2", "1=127.0.0.1:1>127.0.0.1:2", "1,2=127.0.0.1:1", "1,2=x>127.0.0.1:2", "1,,2=a:1>b:2"]
)
def test_a_link_that_is_none_is_refused(text):
    """Names and addresses have to be there."""
    with pytest.raises(ValueError, match="expected"):
        parse_link(text)


def test_a_way_that_is_none_is_answered():
    """Not a traceback."""
    assert "error" in obey(Links(), b'{"do":"cut","way":"sideways"}')
