"""Three brokers as real processes over a real ZooKeeper: they elect, survive their leader, and leave nothing
behind."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from fencepost.impl.log.values import batch_of
from fencepost.impl.messages.broker_api import FetchPartition, FetchRequest, ProduceRequest, TopicPartition
from fencepost.impl.runtime.codec import decode, encode
from fencepost.impl.runtime.tcp_frames import framed, greeting, read_frame
from fencepost.impl.runtime.zookeeper.server import HOST
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Created, GetData
from fencepost.traces.kafka_names.outcomes import ErrorCode

pytestmark = pytest.mark.java
BOUND_S = 600
TOPIC = "t"


def processes_of(directory: Path) -> list[int]:
    """Every process of this machine whose command names the directory, whatever started it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(directory).encode() in words:
                found.append(int(entry.name))
    return found


def eventually(condition):
    """What it answers once that is true; a bound, no measure."""
    deadline = time.monotonic() + BOUND_S
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)
    return answer


async def ask(port: int, request):
    """What a broker answers to a client."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(greeting(1000) + framed(encode(request)))
    answer = decode(await asyncio.wait_for(read_frame(reader), BOUND_S))
    writer.close()
    return answer


def asked(port: int, request):
    """The same, for a thread that waits."""
    return asyncio.run(ask(port, request))


def produce(port: int, value: int):
    """The answer to an append that all in-sync replicas must have."""
    key = TopicPartition(TOPIC, 0)
    return asked(
        port,
        ProduceRequest(
            correlation_id=value, partition=key, acks=-1, records=batch_of((value,)), timeout=10 * 10**9
        ),
    )


def fetch(port: int):
    """The answer to a client's fetch from the beginning."""
    part = FetchPartition(partition=TopicPartition(TOPIC, 0), offset=0)
    request = FetchRequest(correlation_id=1, replica_id=-1, max_wait=0, max_bytes=1 << 20, partitions=(part,))
    return asked(port, request).partitions[0]


@pytest.fixture
def directory(tmp_path):
    """A cluster's directory; whatever a test forgot is ended, and was a failure before that."""
    directory = tmp_path / "cluster"
    yield directory
    left = processes_of(directory)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"processes left behind: {left}"


def lines_go_through(directory: Path, fencepost, monkeypatch):
    """What `produce` sends, `consume` prints, and the history of both is judged Ok; mistakes are told before
    anything is sent."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.systems.processes import ProcessCluster

    cluster, history = ProcessCluster.load(directory), directory.parent / "history.jsonl"
    with BlockingZooKeeper(cluster.state.zookeeper) as zookeeper:
        assignment = znodes.encode_topic({0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)})
        assert isinstance(zookeeper.ask(Create(znodes.topic_path("lines"), assignment)), Created)
    where = ("--directory", directory)

    def standard_input(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    standard_input("".join(f"k{number % 7}:{number}\n" for number in range(1_000)))
    told = fencepost("cluster produce lines", *where, "--key-separator", ":", "--record", history, "--json")
    assert (told.code, told.json["ok"], told.json["lines"]) == (0, 1_000, 1_000), told.err
    assert sum(told.json["partitions"].values()) == 1_000

    told = fencepost(
        "cluster consume lines", *where, "--from-beginning", "--max", 1_000, "--record", history, "--json"
    )
    read = [json.loads(line) for line in told.out.splitlines()]
    assert sorted(int(record["value"]) for record in read) == list(range(1_000))
    for key in {record["key"] for record in read}:
        mine = [record for record in read if record["key"] == key]
        assert len({record["partition"] for record in mine}) == 1, "a key has one partition"
        values = [int(record["value"]) for record in mine]
        assert values == sorted(values), "and keeps its order"
    judged = fencepost("check", history, "--checks", "log,kafka", "--json")
    assert (judged.code, judged.json["decisions"]) == (0, {"ok": 1}), judged.out

    standard_input("no key\n")
    told = fencepost("cluster produce lines", *where, "--key-separator", ":")
    assert told.code == 2 and "line 1: expected a key, ':' and a value, saw no key" in told.sentence
    told = fencepost("cluster consume nosuch", *where)
    assert told.code == 2 and "saw 'nosuch'" in told.sentence
    told = fencepost("cluster consume lines", *where, "--partition", 9)
    assert told.code == 2 and "expected one of the partitions 0 to 2, saw 9" in told.sentence


def a_killed_producer_is_recorded(directory: Path, fencepost):
    """What was acknowledged before `kill -9` of `produce --record` stands in its history, and what was
    read later is nobody's invention."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.systems.processes import ProcessCluster
    from fencepost.traces.jsonlines import read_traces

    cluster, history = ProcessCluster.load(directory), directory.parent / "ahead.jsonl"
    with BlockingZooKeeper(cluster.state.zookeeper) as zookeeper:
        assignment = znodes.encode_topic({0: (2, 3), 1: (3, 2)})
        assert isinstance(zookeeper.ask(Create(znodes.topic_path("ahead"), assignment)), Created)
    command = [
        sys.executable, "-c", "from fencepost.cli import main; main()",
        "cluster", "produce", "ahead", "--directory", directory, "--record", history, "--partitioner",
        "round_robin",
    ]  # fmt: skip
    process = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def acknowledged() -> int:
        if not history.exists():
            return 0
        return sum(one.outcome.value == "ok" for trace in read_traces(history) for one in trace.operations)

    try:
        assert process.stdin is not None
        process.stdin.write(b"".join(b"%d\n" % number for number in range(500)))
        process.stdin.flush()
        eventually(lambda: acknowledged() == 500)
        process.stdin.write(b"".join(b"%d\n" % number for number in range(500, 2_000)))
        process.stdin.flush()
        eventually(lambda: acknowledged() > 500)
    finally:
        process.kill()
        process.communicate()
    where = ("--directory", directory, "--record", history)
    assert fencepost("cluster consume ahead", *where, "--from-beginning", "--timeout-ms", 2_000).code == 0
    assert acknowledged() > 500
    judged = fencepost("check", history, "--checks", "log,kafka", "--json")
    assert (judged.code, judged.json["decisions"]) == (0, {"ok": 1}), judged.out


def a_group_goes_through(directory: Path, fencepost):
    """A consumer of a group reads and commits the lines; `groups` tells who is there, how far they are, and
    lets the group begin again once it is empty."""
    import asyncio

    from fencepost.impl.client.consumer.requests import ConsumerIdentity
    from fencepost.impl.runtime.client import running
    from fencepost.run.consumers import make_consumer
    from fencepost.systems.processes import ProcessCluster
    from fencepost.traces.plan import ConsumerOptions

    where = ("--directory", directory)
    assert fencepost("cluster groups list", *where).out == "no groups\n"
    assert (
        "expected a group, saw g, and no group at all"
        in fencepost("cluster groups describe g", *where).sentence
    )
    brokers = ProcessCluster.load(directory).state.brokers
    addresses = {number: (HOST, broker.port) for number, broker in brokers.items()}
    options = ConsumerOptions(
        commit="sync", session_timeout_ms=3_000, heartbeat_interval_ms=500, processing_ms=0
    )
    identity = ConsumerIdentity(process=1, group="g", topics=("lines",))
    committed: dict[int, int] = {}

    def done(row) -> None:
        if row.function == "commit" and row.outcome == "ok":
            committed.update({spot.partition: spot.offset for spot in row.positions})

    async def consume() -> None:
        async with running(make_consumer(identity, options, tuple(addresses)), addresses, done) as client:
            await asyncio.wait_for(client.until(lambda: sum(committed.values()) == 1_000), BOUND_S)

    asyncio.run(consume())
    told = fencepost("cluster groups describe g", *where, "--json")
    assert {part["partition"]: part["committed"] for part in told.json["partitions"]} == committed
    assert all(part["lag"] == 0 for part in told.json["partitions"])
    eventually(
        lambda: fencepost("cluster groups list", *where, "--json").json["groups"][0]["state"] == "Empty"
    )
    reset = ("cluster groups reset-offsets", "g", "--topic", "lines", "--to-earliest", *where)
    assert "nothing was changed" in fencepost(*reset).err
    assert fencepost(*reset, "--execute").code == 0
    told = fencepost("cluster groups describe g", *where, "--json")
    assert sum(part["lag"] for part in told.json["partitions"]) == 1_000


def stops_in_order(directory, fencepost, broker):
    """SIGTERM of a real process is a controlled shutdown in its five steps: leaders move first, then it ends
    by itself, with its logs closed."""
    from fencepost.systems.processes import ProcessCluster

    told = fencepost("cluster stop", broker, "--directory", directory)
    assert (told.code, told.out) == (0, f"broker {broker} is dead\n")
    lines = (directory / f"broker-{broker}" / "events.jsonl").read_bytes().splitlines()
    states = [it["cause"] for it in map(json.loads, lines) if it["name"] == "broker_state"]
    assert states[-3:] == ["PendingControlledShutdown", "BrokerShuttingDown", "NotRunning"]
    moved = [
        json.loads(it["detail"])
        for log in sorted(directory.glob("broker-*/events.jsonl"))
        for it in map(json.loads, log.read_bytes().splitlines())
        if it["cause"] == "controlled_shutdown"
    ]
    assert moved[-1]["remaining"] == 0
    led = ProcessCluster.load(directory).wait_until(lambda seen: not seen.leaderless, "leaders elsewhere")
    assert not next(it for it in led.brokers if it.broker == broker).leads
    assert fencepost("cluster start", broker, "--directory", directory).code == 0
    ProcessCluster.load(directory).wait_until(lambda seen: seen.healthy, f"broker {broker} again")


def kafka_clients_go_through(directory: Path, fencepost):
    """librdkafka finds the cluster by what `cluster status` prints, produces idempotently, and reads all of
    it back; so does the tool by --bootstrap."""
    from confluent_kafka import Consumer, Producer

    told = fencepost("cluster status --directory", directory, "--json").json
    servers = told["bootstrap_servers"]
    assert servers == ",".join(broker["kafka"] for broker in told["brokers"])
    assert told["security_protocol"] == "PLAINTEXT"
    failures = []
    producer = Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "compression.codec": "lz4"}
    )
    for number in range(500):
        producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, record: failures.append(error))
    assert producer.flush(BOUND_S) == 0 and set(failures) == {None}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "kafka", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read: list[bytes] = []

    def all_read() -> bool:
        read.extend(record.value() for record in consumer.consume(500, 1.0) if record.error() is None)
        return len(read) >= 502

    eventually(all_read)
    consumer.close()
    assert sorted(int(value) for value in read) == sorted([*range(500), 41, 42])
    told = fencepost("cluster consume", TOPIC, "--bootstrap", servers, "--from-beginning", "--max", 502)
    assert (told.code, sorted(map(int, told.out.split()))) == (0, sorted([*range(500), 41, 42]))


def transactions_go_through(directory: Path, fencepost):
    """librdkafka commits and aborts on brokers that are processes: readers of committed records are shown the
    committed ones."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    servers = fencepost("cluster status --directory", directory, "--json").json["bootstrap_servers"]
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "one"})
    producer.init_transactions(BOUND_S)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce("in-transactions", value, partition=0)
        producer.flush(BOUND_S)
        producer.commit_transaction(BOUND_S) if commit else producer.abort_transaction(BOUND_S)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "committed", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("in-transactions", 0, 0)])
    read: list[bytes] = []

    def any_read() -> bool:
        read.extend(record.value() for record in consumer.consume(10, 1.0) if record.error() is None)
        return bool(read)

    eventually(any_read)
    consumer.close()
    assert read == [b"committed"]


def the_tool_is_a_member(directory: Path, fencepost):
    """`consume --group` prints what nobody of the group has printed, commits it, and leaves; the whole
    history is judged Ok."""
    where, history = ("--directory", directory), directory.parent / "history.jsonl"
    line = "cluster consume lines --group tool --from-beginning"
    told = fencepost(line, *where, "--max", 600, "--record", history)
    first = told.out.splitlines()
    assert (told.code, len(first)) == (0, 600), told.err
    told = fencepost(
        "cluster consume lines", *where, "--group", "tool", "--from-beginning", "--max", 400, "--commit",
        "sync", "--record", history
    )  # fmt: skip
    assert sorted(map(int, first + told.out.splitlines())) == list(range(1_000))
    described = fencepost("cluster groups describe tool", *where, "--json").json
    assert sum(part["lag"] for part in described["partitions"]) == 0
    judged = fencepost("check", history, "--json")
    assert (judged.code, judged.json["decisions"]) == (0, {"ok": 1}), judged.out
    told = fencepost("cluster consume lines", *where, "--group", "tool", "--partition", 0)
    assert told.code == 2 and "expected --partition or --group, saw both" in told.sentence


def test_three_brokers_elect_survive_their_leader_and_leave_nothing(directory, fencepost, monkeypatch):
    """Rule: `up` gives a healthy cluster that takes writes; a killed leader is replaced and no acknowledged
    record is lost; lines go through; `stop` ends all."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.systems.processes import ProcessCluster

    where = ("--directory", directory)
    told = fencepost("cluster up --brokers 3", *where, "--session-timeout-ms", 1500, "--detach", "--json")
    assert (told.code, told.json["healthy"], len(told.json["brokers"])) == (0, True, 3), told.err
    cluster = ProcessCluster.load(directory)
    ports = {broker["broker"]: broker["port"] for broker in told.json["brokers"]}
    with BlockingZooKeeper(cluster.state.zookeeper) as zookeeper:
        registered = json.loads(zookeeper.ask(GetData(znodes.broker_path(2))).data)
        assert (registered["port"], registered["endpoints"]) == (ports[2], [f"PLAINTEXT://{HOST}:{ports[2]}"])
        path, assignment = znodes.topic_path(TOPIC), {0: (1, 2, 3), 1: (2, 3, 1)}
        assert isinstance(zookeeper.ask(Create(path, znodes.encode_topic(assignment))), Created)
    led = cluster.wait_until(lambda seen: seen.partitions == 2 and not seen.leaderless, "leaders")
    assert [broker.leads for broker in led.brokers] == [1, 1, 0]
    answer = eventually(lambda: (it := produce(ports[1], 41)).error is ErrorCode.NONE and it)
    assert answer.base_offset == 0

    assert fencepost("cluster kill 1", *where).out == "broker 1 is dead\n"
    assert fencepost("cluster kill 1", *where).sentence.startswith(
        "fencepost: broker 1: expected a broker that runs"
    )
    lost = cluster.wait_until(
        lambda seen: not seen.brokers[0].registered and not seen.brokers[0].leads and not seen.leaderless,
        "new leaders",
    )
    assert sum(broker.leads for broker in lost.brokers) == 2 and not lost.healthy
    leader = eventually(
        lambda: next((broker for broker in (2, 3) if fetch(ports[broker]).error is ErrorCode.NONE), None)
    )
    answer = eventually(lambda: (it := produce(ports[leader], 42)).error is ErrorCode.NONE and it)
    assert answer.base_offset >= 1, "the record that was acknowledged before the crash stands first"
    status = fencepost("cluster status", *where)
    assert status.code == 1 and "dead" in status.out

    assert fencepost("cluster start 1", *where).code == 0
    ProcessCluster.load(directory).wait_until(lambda seen: seen.healthy, "broker 1 again")
    assert fencepost("cluster status", *where).code == 0
    stops_in_order(directory, fencepost, leader)
    lines_go_through(directory, fencepost, monkeypatch)
    a_killed_producer_is_recorded(directory, fencepost)
    a_group_goes_through(directory, fencepost)
    the_tool_is_a_member(directory, fencepost)
    kafka_clients_go_through(directory, fencepost)
    transactions_go_through(directory, fencepost)
    assert fencepost("cluster stop", *where).out == "stopped\n"
    assert processes_of(directory) == []
    assert fencepost("cluster stop", *where).code == 0


def test_pause_resume_and_an_interrupt_that_leaves_nothing(directory, fencepost):
    """Rule: a paused broker loses its session and gets a new one when it goes on; Ctrl-C at `up` ends every
    process, paused ones too."""
    from fencepost.systems.processes import ProcessCluster

    command = [
        sys.executable,
        "-c",
        "from fencepost.cli import main; main()",
        "cluster",
        "up",
        "--brokers",
        "1",
    ]
    where = ("--directory", directory)
    with subprocess.Popen(
        [*command, *map(str, where), "--session-timeout-ms", "1000", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as up:
        try:
            assert msgspec.json.decode(up.stdout.readline())["healthy"]
            assert fencepost("cluster pause 1", *where).out == "broker 1 is paused\n"
            cluster = ProcessCluster.load(directory)
            cluster.wait_until(lambda seen: not seen.brokers[0].registered, "an expired session")
            assert fencepost("cluster resume 1", *where).out == "broker 1 is running\n"
            cluster.wait_until(lambda seen: seen.healthy, "a new session")
            again = fencepost("cluster up", *where)
            assert again.code == 2 and "expected a directory without a running cluster" in again.sentence
            fencepost("cluster pause 1", *where)
        finally:
            os.killpg(up.pid, signal.SIGINT)
        assert up.wait(BOUND_S) == 130
    assert processes_of(directory) == []


def test_a_broker_that_dies_on_the_way_up_ends_the_others(directory, fencepost, monkeypatch):
    """Rule: an error while the cluster starts is one sentence with the broker's last words, and no process is
    left."""
    from fencepost.systems import processes as cluster

    monkeypatch.setattr(
        cluster, "free_ports", lambda count: [1] * count
    )  # a port that no ordinary user may open
    monkeypatch.setattr(cluster, "HOST", "203.0.113.1")  # and an address that no machine has
    told = fencepost("cluster up --brokers 2 --directory", directory)
    assert told.code == 2 and "broker " in told.sentence and processes_of(directory) == []


MISTAKES = [
    (["status"], "expected a cluster that was brought up here, saw no cluster.json"),
    (["kill", "7"], "expected a cluster that was brought up here, saw no cluster.json"),
    (["up", "--brokers", "0"], "Invalid value for '--brokers'"),
    (["up", "--kafka-port", "70000"], "Invalid value for '--kafka-port'"),
    (["up", "--users", __file__], "expected NAME:PASSWORD"),
    (["up", "--zookeeper", "nowhere"], "expected HOST:PORT, saw 'nowhere'"),
    (["up", "--zookeeper", "127.0.0.1:1"], "expected a ZooKeeper server that answers `srvr`, saw no answer"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=str)
def test_mistakes_are_told_in_one_sentence(arguments, sentence, directory, fencepost):
    """Rule: what cannot be done is said with expected, seen and where, exit code 2."""
    told = fencepost("cluster", *arguments, "--directory", directory)
    assert told.code == 2 and sentence in told.sentence


def test_a_killed_command_takes_its_processes_with_it(directory):
    """Rule: after kill -9 of `cluster up` its ZooKeeper and its brokers end; those of --detach go on."""
    words = [sys.executable, "-m", "fencepost", "cluster", "up", "--brokers", "2", "--directory", directory]
    up = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = "the start"
        while line and "controller" not in line:
            line = up.stdout.readline()
        assert len(set(processes_of(directory)) - {up.pid}) >= 3
    finally:
        up.kill()
        up.communicate()
    eventually(lambda: not processes_of(directory))
    subprocess.run([*words, "--detach"], check=True, stdout=subprocess.DEVNULL)
    assert len(processes_of(directory)) >= 3
    stop = [sys.executable, "-m", "fencepost", "cluster", "stop", "--directory", directory]
    subprocess.run(stop, check=True, stdout=subprocess.DEVNULL)


def test_a_zookeeper_that_died_is_noticed_and_starts_again(directory, fencepost):
    """Rule: the command that waits says it, `status` says it, and the server comes back with what it knew."""
    words = [sys.executable, "-m", "fencepost", "cluster", "up", "--brokers", "2", "--directory", directory]
    up = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    where = ("--directory", directory)
    try:
        line = "the start"
        while line and "Ctrl-C" not in line:
            line = up.stderr.readline()
        before = fencepost("cluster status --json", *where).json
        assert fencepost("cluster start-zookeeper", *where).code == 2
        os.kill(
            json.loads((directory / "cluster.json").read_bytes())["zookeeper_process"]["pid"], signal.SIGKILL
        )
        assert "has died" in (said := up.stderr.readline()) and "start-zookeeper" in said
        dead = fencepost("cluster status --json", *where)
        assert (dead.code, dead.json["zookeeper_state"]) == (1, "is dead")
        assert fencepost("cluster start-zookeeper", *where).code == 0
        eventually(lambda: fencepost("cluster status --json", *where).json["healthy"])
        after = fencepost("cluster status --json", *where).json
        assert (after["zookeeper"], after["partitions"]) == (before["zookeeper"], before["partitions"])
    finally:
        fencepost("cluster stop", *where)
        up.communicate()
