"""Planted bugs of a client and of a cluster: blame names the right side each time, and nobody where there is
none."""

import random
import time
from dataclasses import replace

import confluent_kafka as ck
import pytest
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.application.blame.join import Kind, Side, join
from fencepost.application.blame.lines import read_lines
from fencepost.application.tap import Tap
from fencepost.impl.log.batch.record_batch import read_headers, with_leader_fields
from fencepost.traces.plan import TopicOptions
from fencepost.wire.hook import PASS, Replace

RECORDS, BATCHES = 48, 6
TOPIC = "t%d"
PRODUCE, FETCH = 0, 1


class PlantedServer:
    """A cluster that goes wrong in one topic: what its answers say is changed at its own sockets."""

    def __init__(self) -> None:
        self.bug, self.topic, self.pick, self.struck = "", "", 0, 0

    def plant(self, bug: str, topic: str, seed: int) -> None:
        self.bug, self.topic, self.struck = bug, topic, 0
        self.pick = random.Random(seed).randrange(1, BATCHES - 1)

    def on_request(self, source, header, body):
        return PASS

    def on_answer(self, source, header, body, answer):
        if header.api_key == FETCH and self.bug in ("lost", "duplicate", "content"):
            return self._changed(answer, "responses", "topic", "partitions", self._fetched)
        if header.api_key == PRODUCE and self.bug == "wrong offset":
            return self._changed(answer, "responses", "name", "partition_responses", self._acknowledged)
        return PASS

    def _changed(self, answer, topics, name, partitions, change):
        before = self.struck
        made = tuple(
            replace(topic, **{partitions: tuple(map(change, getattr(topic, partitions)))})
            if getattr(topic, name) == self.topic
            else topic
            for topic in getattr(answer, topics)
        )
        return PASS if self.struck == before else Replace(replace(answer, **{topics: made}))

    def _acknowledged(self, partition):
        if partition.base_offset < 0 or partition.base_offset < self.pick * RECORDS // BATCHES:
            return partition
        self.struck += 1
        return replace(partition, base_offset=partition.base_offset + RECORDS)

    def _fetched(self, partition):
        data = partition.records
        if not data:
            return partition
        batches = [(header, data[header.position : header.end_position]) for header in read_headers(data)]
        first = self.pick * RECORDS // BATCHES
        place = next((i for i, (header, _) in enumerate(batches) if header.base_offset == first), None)
        if place is None:
            return partition
        self.struck += 1
        header, batch = batches[place]
        if self.bug == "lost":
            del batches[place]
        elif self.bug == "duplicate":
            if batches[-1][0].next_offset < RECORDS:
                return partition
            batches.append(
                (header, with_leader_fields(batch, base_offset=RECORDS, leader_epoch=header.leader_epoch))
            )
            partition = replace(partition, high_watermark=RECORDS + header.count)
        else:
            other = batches[place - 1][1] if place else batches[-1][1]
            moved = with_leader_fields(other, base_offset=first, leader_epoch=header.leader_epoch)
            batches[place] = (header, moved)
        return replace(partition, records=b"".join(each for _, each in batches))


class BuggyProducer(ck.Producer):
    """A client library that goes wrong, below the tap."""

    def plant(self, bug: str, seed: int) -> None:
        self.bug, self.count, self.kept = bug, 0, None
        self.at = random.Random(seed).randrange(5, RECORDS - 5)

    def produce(self, topic, value=None, key=None, **options):
        self.count += 1
        send = super().produce
        if self.count == self.at:
            if self.bug == "drops":
                return
            if self.bug == "lies":
                options["on_delivery"](None, Told(topic))
                return
            if self.bug == "sends twice":
                send(topic, value=value, key=key, **options)
            elif self.bug == "reorders":
                self.kept = (topic, value, key, options)
                return
        send(topic, value=value, key=key, **options)
        if self.kept is not None:
            topic, value, key, options = self.kept
            self.kept = None
            send(topic, value=value, key=key, **options)


def at_the_end(reader, topic):
    """Whether a consumer was answered up to the end of the log, which has one record less than was sent where
    one was dropped."""
    spot = ck.TopicPartition(topic, 0)
    _, high_watermark = reader.get_watermark_offsets(spot, cached=True)
    (position,) = reader.position([spot])
    return position.offset >= high_watermark >= RECORDS - 1


class Told:
    """What a lying client says of a record that it never sent."""

    def __init__(self, topic):
        self._topic = topic

    def topic(self):
        return self._topic

    def partition(self):
        return 0

    def offset(self):
        return 10 * RECORDS


class BuggyConsumer(ck.Consumer):
    """The same for reading."""

    def plant(self, bug: str, seed: int) -> None:
        self.bug, self.at = bug, random.Random(seed).randrange(5, RECORDS - 5)

    def consume(self, *arguments, **options):
        found = super().consume(*arguments, **options)
        for place, message in enumerate(found):
            if message.error() is None and message.offset() == self.at:
                if self.bug == "skips":
                    return found[:place] + found[place + 1 :]
                if self.bug == "delivers twice":
                    return [*found[: place + 1], *found[place:]]
        return found


@pytest.fixture(scope="module")
def server():
    planted = PlantedServer()
    topics = tuple(TopicOptions(name=TOPIC % n, partitions=1, replication_factor=1) for n in range(44))
    with wire_lab(*topics, brokers=1, server={"hook": planted}) as lab:
        yield planted, f"127.0.0.1:{lab.ports[1]}"


def run(server, tmp_path, number, *, of_client="", of_server="", seed=0, ids=True):
    """Produce and read a topic through the proxy with both sides tapped; what blame says."""
    planted, bootstrap = server
    topic = TOPIC % number
    planted.plant(of_server, topic, seed)
    with proxy_lab(bootstrap, tmp_path / "live") as lab:
        tap = Tap(tmp_path / "app.tap", key=tmp_path / "live" / "key", ids=ids)
        base = {"bootstrap.servers": lab.bootstrap, "log_level": 0}
        client = BuggyProducer(base | {"enable.idempotence": True, "linger.ms": 1})
        client.plant(of_client, seed)
        producer = tap.producer(client)
        for n in range(RECORDS):
            producer.produce(topic, value=b"value %d" % n, key=b"key")
            if (n + 1) % (RECORDS // BATCHES) == 0:
                producer.flush(600)
        producer.flush(600)
        reader = BuggyConsumer(
            base
            | {
                "group.id": "g",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )
        reader.plant(of_client, seed)
        consumer = tap.consumer(reader)
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + 600
        while not at_the_end(reader, topic) and time.monotonic() < deadline:
            consumer.consume(RECORDS * 2, 0.2)
        consumer.close()
        tap.close()
    planted.plant("", "", 0)
    return join(lab.trace(), read_lines(tmp_path / "app.tap"))


CLIENT = [
    ("drops", Kind.LOSS), ("lies", Kind.LOSS), ("sends twice", Kind.DUPLICATE), ("reorders", Kind.REORDERING),
    ("skips", Kind.LOSS), ("delivers twice", Kind.DUPLICATE),
]  # fmt: skip
SERVER = [("lost", Kind.LOSS), ("duplicate", Kind.DUPLICATE), ("content", None), ("wrong offset", None)]


@pytest.mark.parametrize("number", range(20))
def test_a_planted_bug_of_the_client_is_the_applications(server, tmp_path, number):
    """20 runs, six bugs: the application each time, the right kind, with the tap's line."""
    bug, kind = CLIENT[number % len(CLIENT)]
    blames = run(server, tmp_path, number, of_client=bug, seed=number).blames
    reported = bug == "lies"  # in a delivery report, which is the library's
    assert {blame.side for blame in blames} == {Side.CLIENT_LIBRARY if reported else Side.APPLICATION}, blames
    assert kind in {blame.kind for blame in blames}, blames
    assert all(blame.lines for blame in blames)
    if bug not in ("drops", "lies"):
        assert any(blame.frame is not None and blame.operations for blame in blames)


@pytest.mark.parametrize("number", range(20))
def test_a_planted_bug_of_the_cluster_is_the_clusters(server, tmp_path, number):
    """20 runs, four bugs: the cluster each time, with two operations and the frame."""
    bug, kind = SERVER[number % len(SERVER)]
    blames = run(server, tmp_path, 20 + number, of_server=bug, seed=number).blames
    assert {blame.side for blame in blames} == {Side.CLUSTER}, blames
    assert kind is None or kind in {blame.kind for blame in blames}, blames
    assert any(len(blame.operations) >= 2 and blame.frame is not None for blame in blames), blames


@pytest.mark.parametrize("ids", [True, False])
def test_nobody_is_blamed_where_nothing_went_wrong(server, tmp_path, ids):
    """Every send and every delivery is matched, with ids and without."""
    joined = run(server, tmp_path, 40 + ids, ids=ids)
    assert joined.blames == ()
    assert joined.counts["acknowledgements matched"] == joined.counts["deliveries matched"] == RECORDS
