"""Cases against brokers that die of a frame or answer nonsense: one case is broken by it, and it is named."""

import asyncio
import gc
import json
import os
import signal
import struct
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest

from fencepost.cli import run as fencepost
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.traces.errors import ExitCode

pytest.importorskip("kio")

from fencepost.conformance.case import Case
from fencepost.conformance.cases import all_cases
from fencepost.conformance.runner import new_run, run_cases
from fencepost.impl.runtime.addresses import parse_address
from fencepost.wire.client import Access, look_around
from fencepost.wire.hook import PASS, Cut

STAND_IN = r"""
import asyncio, os, struct, sys
port = int(sys.argv[1])
APIS = struct.pack(">h", 0) + struct.pack(">i", 2) + struct.pack(">hhhhhh", 3, 1, 1, 18, 0, 0)
async def serve(reader, writer):
    try:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 <= length < 1000:
                break
            frame = await reader.readexactly(length)
            if len(frame) < 8:
                break
            key, version, number = struct.unpack_from(">hhi", frame)
            if version == 999:
                os._exit(3)
            if key == 18:
                body = APIS if version == 0 else struct.pack(">h", 35) + APIS[2:]
            elif key == 3:
                body = struct.pack(">iih9sihii", 1, 1, 9, b"127.0.0.1", port, -1, 1, 0)
            else:
                break
            writer.write(struct.pack(">ii", 4 + len(body), number) + body)
    except asyncio.IncompleteReadError:
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    if not port:
        return
    await server.serve_forever()
asyncio.run(main())
"""
"""A broker that names itself and dies of version 999. With port 0 it prints a free port and ends."""
KILLER = "frames.unknown_version"
SOUND = ("frames.empty_frame", "metadata.no_topics", "frames.correlation_id_is_the_request_s")


def start(port):
    """It, and its process."""
    process = subprocess.Popen([sys.executable, "-c", STAND_IN, str(port)], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


@contextmanager
def stand_in():
    """Its port."""
    free = subprocess.run([sys.executable, "-c", STAND_IN, "0"], stdout=subprocess.PIPE, check=True)
    port = int(free.stdout)
    process = start(port)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def told(capsys, *words):
    """Exit code and JSON of the command."""
    code = fencepost(["conformance", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_broker_that_dies_is_named_with_its_case(capsys, tmp_path):
    """Rule: cases of a broker that died are no differences of answers: what ran is named, the rest is skipped
    with the reason, and the report is written."""
    with stand_in() as port:
        words = ["--bootstrap", f"127.0.0.1:{port}", "--junit", str(tmp_path / "junit.xml")]
        code, seen = told(capsys, *words, "--only", "frames.*,metadata.*")
    cases = {each["name"]: each for each in seen["cases"]}
    died = {name for name, each in cases.items() if each["status"] == "died"}
    assert code is ExitCode.FINDINGS and KILLER in died and len(died) <= 8
    assert f"127.0.0.1:{port} stopped answering" in cases[KILLER]["reason"]
    assert all(name in cases[KILLER]["reason"] for name in died - {KILLER})
    rest = [each for each in cases.values() if "no broker answers any more" in each["reason"]]
    assert {each["status"] for each in rest} == {"skipped"} and len(rest) > 3
    assert f"127.0.0.1:{port} stopped answering" in (tmp_path / "junit.xml").read_text()


def test_a_broker_that_is_started_again_answers_the_rest(capsys, tmp_path):
    """Rule: with a way to start the broker, one case is named, and every other one has its own answer."""
    script = tmp_path / "again.py"
    script.write_text(
        "import subprocess, sys\n"
        f"words = [sys.executable, '-c', {STAND_IN!r}, sys.argv[1]]\n"
        "again = subprocess.Popen(words, stdout=subprocess.PIPE)\n"
        "again.stdout.readline()\n"
        f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{again.pid}} ')\n"
    )
    only = ",".join((KILLER, *SOUND))
    try:
        with stand_in() as port:
            command = f"{sys.executable} {script} {port}"
            code, seen = told(
                capsys, "--bootstrap", f"127.0.0.1:{port}", "--only", only, "--restart", command
            )
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
    cases = {each["name"]: each for each in seen["cases"]}
    assert code is ExitCode.FINDINGS and cases[KILLER]["status"] == "died"
    assert cases[KILLER]["reason"] == f"127.0.0.1:{port} stopped answering during this case"
    assert [cases[name]["status"] for name in ("metadata.no_topics", SOUND[2])] == ["equal", "equal"]
    assert "died" not in {cases[name]["status"] for name in SOUND}


def test_a_case_that_fails_ends_alone_and_leaves_no_topic():
    """Rule: whatever a case raises is its own answer; what it made is deleted, also where a broker cuts the
    first request to delete."""

    async def broken(lab):
        await lab.topic()
        struct.unpack(">i", b"")

    class _CutsOnce:
        left = 1

        def on_request(self, source, header, body):
            return PASS

        def on_answer(self, source, header, body, answer):
            if header.api_key == 20 and self.left:
                self.left -= 1
                return Cut()
            return PASS

    sound = [case for case in all_cases() if case.name in ("produce.v7_appends", "metadata.no_topics")]
    with Embedded(options=quick_options(brokers=1)) as cluster:
        for server in cluster.listeners._servers.values():
            server.hook = _CutsOnce()
        where = tuple(parse_address(each) for each in cluster.bootstrap_servers().split(","))
        run = new_run(where, Access())
        results = asyncio.run(run_cases(run, [Case("broken.case", "Nothing.", broken), *sound]))
        _, seen = asyncio.run(look_around(where, Access()))
    assert results[0].facts.startswith("an answer of another shape: error: unpack")
    assert all(isinstance(each.facts, dict | list) for each in results[1:])
    assert run.topics and not {each.partition.topic for each in seen.partitions} & run.topics
    assert run.left == []


def test_a_case_leaves_nothing_of_what_it_began(caplog):
    """Rule: a request that a case has begun and whose answer it no longer waits for, because another one
    failed, ends with the case, and no traceback is printed."""

    class _CutsJoins:
        """Of each group all but those of the first member, which asks twice."""

        def __init__(self):
            self.joined = Counter()

        def on_request(self, source, header, body):
            if header.api_key != 11:
                return PASS
            self.joined[body.group_id] += 1
            return Cut() if self.joined[body.group_id] > 2 else PASS

        def on_answer(self, source, header, body, answer):
            return PASS

    begun = ("heartbeat.while_the_group_syncs", "join_group.two_members", "sync_group.two_members")
    cases = [case for case in all_cases() if case.name in begun]
    assert len(cases) == len(begun)

    async def ask(where):
        results = await run_cases(new_run(where, Access()), cases)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return results, [task for task in left if "fencepost" in repr(task.get_coro())]

    with Embedded(options=quick_options(brokers=1)) as cluster:
        where = tuple(parse_address(each) for each in cluster.bootstrap_servers().split(","))
        for server in cluster.listeners._servers.values():
            server.hook = _CutsJoins()
        results, left = asyncio.run(ask(where))
        gc.collect()
    assert {each.facts for each in results} == {"closed"}
    assert left == []
    assert [line for line in caplog.messages if "never retrieved" in line] == []
