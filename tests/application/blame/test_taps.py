"""Taps around kafka-python and aiokafka, the command with --json, and the live view over the same record."""

import asyncio
import json

import pytest
from proxy_lab import proxy_lab
from rich.console import Console
from wire_lab import wire_lab

from fencepost.application.tap import Tap
from fencepost.cli import run
from fencepost.cli.proxy.view import View
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from fencepost.traces.plan import TopicOptions

COUNT = 30
TOPICS = ("python", "asyncio")


@pytest.fixture(scope="module")
def server():
    topics = tuple(TopicOptions(name=name, partitions=1, replication_factor=1) for name in TOPICS)
    with wire_lab(*topics, brokers=1) as lab:
        yield f"127.0.0.1:{lab.ports[1]}"


def kafka_python(bootstrap, tap):
    """Send and read a topic."""
    kafka = pytest.importorskip("kafka")
    producer = tap.producer(kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all"))
    for n in range(COUNT):
        producer.send("python", value=b"value %d" % n, key=b"k")
    producer.flush(600)
    producer.close()
    reader = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=10_000
    )
    consumer = tap.consumer(reader)
    place = kafka.TopicPartition("python", 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    got = 0
    for _ in consumer:
        got += 1
        if got == COUNT:
            break
    consumer.close()
    assert got == COUNT


def aiokafka(bootstrap, tap):
    """The same in an event loop."""
    library = pytest.importorskip("aiokafka")

    async def both():
        producer = tap.producer(library.AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all"))
        await producer.start()
        for n in range(COUNT):
            await producer.send_and_wait("asyncio", value=b"value %d" % n, key=b"k")
        await producer.stop()
        consumer = tap.consumer(
            library.AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        )
        await consumer.start()
        place = library.TopicPartition("asyncio", 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        for _ in range(COUNT):
            await asyncio.wait_for(consumer.getone(), 60)
        await consumer.stop()

    asyncio.run(both())


@pytest.mark.parametrize("client", [kafka_python, aiokafka])
def test_the_command_joins_both_sides(server, tmp_path, client, capsys):
    """Rule: a healthy run has no finding and every send and delivery matched; an acknowledgement that no
    broker gave is the client library's, in JSON, and the exit code says so. The view shows what went by."""
    live, taps = tmp_path / "live", tmp_path / "app.tap"
    with proxy_lab(server, live) as proxy:
        tap = Tap(taps, key=live / "key")
        client(proxy.bootstrap, tap)
        tap.close()
        view = View(proxy.proxy, proxy.record, None, Output(False))
        view.tick()
        console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        console.print(view.picture())
        shown = console.export_text()
    assert f"{COUNT}" in shown and "records acknowledged" in shown and "MB from clients" in shown
    assert run(["proxy", "blame", str(live), str(taps), "--json"]) == ExitCode.NOTHING_FOUND
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["findings"] == []
    assert said["counts"]["acknowledgements matched"] == said["counts"]["deliveries matched"] == COUNT
    lines = [json.loads(line) for line in taps.read_bytes().splitlines()]
    lie = next(line for line in lines if line["event"] == "acknowledged") | {
        "id": "nobody-1",
        "offset": COUNT + 5,
    }
    sent = next(line for line in lines if line["event"] == "sent") | {"id": "nobody-1"}
    taps.write_text("".join(json.dumps(line) + "\n" for line in [*lines[:-1], sent, lie, lines[-1]]))
    assert run(["proxy", "blame", str(live), str(taps), "--json"]) == ExitCode.FINDINGS
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {one["side"] for one in said["findings"]} == {"client library"} and said["exit_code"] == 1
