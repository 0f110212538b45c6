"""Our own brokers against Apache Kafka's recorded answers, whole; and that a broker with a planted fault is
noticed."""

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
from dataclasses import replace
from xml.etree import ElementTree

import msgspec
import pytest
from attrs import evolve
from click.testing import CliRunner

from fencepost.cli import run as fencepost
from fencepost.console.junit import write_junit
from fencepost.impl.runtime.addresses import parse_address
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.plan import TransactionOptions

pytest.importorskip("kio")

from kio.schema.errors import ErrorCode

from fencepost.cli.conformance import junit_case
from fencepost.conformance import record
from fencepost.conformance.case import Case
from fencepost.conformance.cases import all_cases
from fencepost.conformance.record import Recorded, Status, recorded
from fencepost.conformance.runner import Result, new_run, run_cases
from fencepost.wire.client import Access, look_around
from fencepost.wire.hook import PASS, Cut, Replace
from tools import record_conformance

TRANSACTIONS = TransactionOptions(state_topic_partitions=2, version=2)
"""As Apache Kafka 4 has them, and as `fencepost cluster up` does."""


MOST_WITHOUT_RECORD = 2
"""Cases of transactions that 3.9.2 did not answer the same three times, on a crowded machine."""


def addresses(cluster):
    """Of its listeners."""
    return tuple(parse_address(each) for each in cluster.bootstrap_servers().split(","))


def results_of(cluster, *names):
    """Of these cases, or of all."""
    chosen = [case for case in all_cases() if not names or case.name in names]
    return asyncio.run(run_cases(new_run(addresses(cluster), Access()), chosen))


@pytest.fixture(scope="module")
def whole():
    """Results of every case against the embedded cluster, and the topics that are left."""
    with Embedded(options=evolve(quick_options(), transactions=TRANSACTIONS)) as cluster:
        results = results_of(cluster)
        _, seen = asyncio.run(look_around(addresses(cluster), Access()))
        return results, {each.partition.topic for each in seen.partitions}


def test_there_are_enough_cases_and_their_names_say_what_they_ask():
    """A hundred and fifty were promised; a name is API, dot, what is the case; a sentence is one."""
    cases = all_cases()
    assert len(cases) >= 150
    for case in cases:
        subject, _, what = case.name.partition(".")
        assert subject.replace("_", "").isalnum() and what.replace("_", "").isalnum(), case.name
        assert case.asked.rstrip().endswith((".", "?")), case.asked


@pytest.mark.parametrize("version", sorted(record.recorded()))
def test_our_brokers_answer_as_apache_kafka_or_the_table_says_why(whole, version):
    """Each case is equal, as another recorded release, or explained; nothing else, and nothing is skipped."""
    compared = record.compare(whole[0], version, record.departures_of_ours())
    odd = [
        (each.result.case.name, each.expected, each.result.facts)
        for each in compared
        if each.status is Status.DIFFERS
    ]
    assert odd == []
    assert {each.status for each in compared} <= {
        Status.EQUAL,
        Status.AS_ANOTHER,
        Status.DEPARTS,
        Status.NO_RECORD,
    }
    missing = {each.result.case.name for each in compared if each.status is Status.NO_RECORD}
    if version == "3.9.2":  # it does not speak the second version of transactions
        missing = {name for name in missing if not name.startswith("transactions.v2_")}
    assert len(missing) <= MOST_WITHOUT_RECORD, missing


def test_no_departure_is_out_of_date(whole):
    """Each row of the table is of a case that differs from every release."""
    known = {case.name for case in all_cases()}
    assert set(record.departures_of_ours()) <= known
    seen = {result.case.name: result.facts for result in whole[0]}
    for name in record.departures_of_ours():
        assert all(seen[name] != release.cases.get(name) for release in record.recorded().values()), name


def test_nothing_is_left(whole):
    """Topics that were made are deleted."""
    assert whole[1] <= {"__consumer_offsets", "__transaction_state"}


def test_cases_of_the_group_without_a_name_do_not_meet():
    """They cannot have a fresh name: each leaves nothing to the others, in one run and in the next."""
    names = [f"{api}.empty_group_id" for api in ("offset_commit", "describe_groups", "delete_groups")]
    with Embedded(options=quick_options()) as cluster:
        for _ in range(3):
            seen = {one.case.name: one.facts for one in results_of(cluster, *names)}
            assert seen["delete_groups.empty_group_id"] == ["GROUP_ID_NOT_FOUND"], seen
            assert seen["describe_groups.empty_group_id"]["group_state"] == "Dead", seen


def test_every_recorded_case_is_one():
    """A name is never reused, and never dropped without its record."""
    known = {case.name for case in all_cases()}
    for version, release in record.recorded().items():
        assert set(release.cases) <= known, version


class _Faulty:
    """A hook that breaks answers of one API."""

    def __init__(self, key, breaks):
        self.key, self.breaks = key, breaks

    def on_request(self, source, header, body):
        return PASS

    def on_answer(self, source, header, body, answer):
        return self.breaks(body, answer) if header.api_key == self.key else PASS


def _produced(change):
    """Change the first partition of a produce's answer."""

    def breaks(body, answer):
        topic = answer.responses[0]
        part = change(topic.partition_responses[0])
        return Replace(replace(answer, responses=(replace(topic, partition_responses=(part,)),)))

    return breaks


FAULTS = {
    "acks 2 is let through": (
        0,
        lambda body, answer: (
            _produced(lambda part: replace(part, error_code=ErrorCode.none))(body, answer)
            if body.acks == 2
            else PASS
        ),
        {"produce.acks_2_is_refused"},
    ),
    "offsets begin with 1": (
        0,
        _produced(lambda part: replace(part, base_offset=part.base_offset + 1)),
        {"produce.v7_appends", "sequences.next_batch"},
    ),
    "connections end instead of an answer": (
        10,
        lambda body, answer: Cut() if body.key == "" else PASS,
        {"find_coordinator.empty_group"},
    ),
    "members are never unknown": (
        12,
        lambda body, answer: Replace(replace(answer, error_code=ErrorCode.none)),
        {"heartbeat.unknown_member", "heartbeat.old_generation"},
    ),
}
SOUND = "metadata.no_topics"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault):
    """The cases that a fault concerns differ, and one that it does not is equal."""
    key, breaks, noticed = FAULTS[fault]
    with Embedded(options=quick_options(brokers=1)) as cluster:
        for server in cluster.listeners._servers.values():
            server.hook = _Faulty(key, breaks)
        results = results_of(cluster, *noticed, SOUND)
    compared = {each.result.case.name: each.status for each in record.compare(results, "3.9.2", {})}
    assert compared == {**dict.fromkeys(noticed, Status.DIFFERS), SOUND: Status.EQUAL}


def test_junit_says_the_same(whole, tmp_path):
    """Every case is a test case; differences are failures with both sides; what is explained is skipped."""
    compared = record.compare(whole[0], "3.9.2", {})
    write_junit(tmp_path / "of" / "conformance.xml", "3.9.2", map(junit_case, compared))
    suite = ElementTree.parse(tmp_path / "of" / "conformance.xml").getroot().find("testsuite")
    failures = [each for each in compared if each.status is Status.DIFFERS]
    assert failures, "without the table of departures some differ"
    assert (int(suite.get("tests")), int(suite.get("failures"))) == (len(compared), len(failures))
    named = {f"{case.get('classname')}.{case.get('name')}": case for case in suite.iter("testcase")}
    assert len(named) == len(compared)
    for each in failures:
        message = named[f"conformance.{each.result.case.name}"].find("failure").get("message")
        assert message.startswith("expected ") and ", saw " in message


def test_a_broker_is_compared_with_the_release_that_is_most_like_it():
    """By the versions that it advertises; a release may also be named by its beginning."""
    for version, release in record.recorded().items():
        assert record.nearest(release.ranges) == version
    assert record.named("4") == "4.4.0" and record.named("3.9.2") == "3.9.2"
    with pytest.raises(FencepostError, match=r"expected one of 3.9.2, 4.4.0, saw 2.8"):
        record.named("2.8")


def test_departures_of_others(tmp_path):
    """A file of names and reasons; the longest name with a star wins; anything else is one sentence."""
    path = tmp_path / "departures.json"
    path.write_text(json.dumps({"produce.*": "new", "produce.v*": "old", "a.b": "exact"}))
    given = record.read_departures(path)
    assert [record.reason_for(name, given) for name in ("produce.x", "produce.v3_appends", "a.b", "z")] == [
        "new",
        "old",
        "exact",
        "",
    ]
    path.write_text('{"a": 1}')
    with pytest.raises(FencepostError, match="expected a JSON object of case names and reasons"):
        record.read_departures(path)


def test_the_command(tmp_path, capsys):
    """Cases are listed without a broker; a run of some prints counts and JSON; nobody there, or no such case,
    is exit code 2."""
    assert fencepost(["conformance", "--list", "--only", "produce.acks*"]) is ExitCode.NOTHING_FOUND
    assert "produce.acks_2_is_refused" in capsys.readouterr().out
    with Embedded(options=quick_options(brokers=1)) as cluster:
        where = [
            "--bootstrap",
            cluster.bootstrap_servers(),
            "--only",
            "produce.acks*",
            "--junit",
            str(tmp_path / "j.xml"),
        ]
        assert fencepost(["conformance", *where, "--json"]) is ExitCode.NOTHING_FOUND
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["equal"] == len(told["cases"]) >= 5 and (tmp_path / "j.xml").exists()
    for wrong in (
        ["--bootstrap", "127.0.0.1:1"],
        [],
        ["--bootstrap", "127.0.0.1:1", "--only", "nothing"],
        ["--bootstrap", "127.0.0.1:1", "--against", "1.0"],
    ):
        assert fencepost(["conformance", *wrong]) is ExitCode.USAGE
        assert "expected" in (told := capsys.readouterr().err) or "--bootstrap" in told


def test_each_release_is_recorded_by_itself(tmp_path, monkeypatch):
    """Rule: what is asked anew takes the place of its old answers, what changes between three times is named
    and left out, and every other release and case stays."""
    kept, anew = sorted(recorded())[:2]
    first, second, *_ = sorted(case.name for case in all_cases() if case.name in recorded()[anew].cases)
    steady, shaky = (next(one for one in all_cases() if one.name == name) for name in (first, second))
    rounds = [[Result(case=steady, facts=[0]), Result(case=shaky, facts=[time])] for time in (1, 2, 3)]
    monkeypatch.setattr(record_conformance, "TARGET", tmp_path / "recorded.json")
    monkeypatch.setattr(record_conformance, "asked", lambda *_: ({0: (3, 9)}, rounds))
    done = CliRunner().invoke(
        record_conformance.command, [anew, "9.9.9", "--only", first], standalone_mode=False
    )
    assert not done.exception and f"{anew}: ok: 1 cases; not steady: {second}" in done.output
    written = msgspec.json.decode((tmp_path / "recorded.json").read_bytes(), type=dict[str, Recorded])
    assert written[kept] == recorded()[kept] and written["9.9.9"].cases == {first: [0]}
    assert written[anew].cases == {**recorded()[anew].cases, first: [0]}
    assert written[anew].date == recorded()[anew].date


# Cases against brokers that die of a frame or answer nonsense: one case is broken by it, and it is named.


pytest.importorskip("kio")


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
SOUND_CASES = ("frames.empty_frame", "metadata.no_topics", "frames.correlation_id_is_the_request_s")


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
    only = ",".join((KILLER, *SOUND_CASES))
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
    assert [cases[name]["status"] for name in ("metadata.no_topics", SOUND_CASES[2])] == ["equal", "equal"]
    assert "died" not in {cases[name]["status"] for name in SOUND_CASES}


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
