"""With nothing to break, every frame is equal on both sides but for addresses and ApiVersions: a tap on each
side says so."""

import socket
import struct

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec
from proxy_lab import proxy_lab
from tapped_sockets import Tapped
from wire_lab import wire_lab

from fencepost.proxy.chunks import Chunks
from fencepost.traces.plan import TopicOptions
from fencepost.wire.decoder import Places
from fencepost.wire.passing import answer_body, clamped, has_addresses, header_of, rewritten


@pytest.fixture(scope="module")
def lab():
    with wire_lab(TopicOptions(name="orders", partitions=3), brokers=3) as made:
        yield made


API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request that needs nothing before it."""
KINDS = {0, 1, 2, 3, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 22, 32}
"""APIs of which a request and its answer are compared at least: produce, fetch, list_offsets, metadata,
commits, coordinator, the group's, api_versions, topics, producer ids, configurations. Whatever else the
clients send is compared, too."""


def administer(bootstrap):
    """What an administrator asks."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("made", 1, 1)])["made"].result(60)
    admin.list_consumer_groups().result(60)
    admin.describe_consumer_groups(["g"])["g"].result(60)
    admin.list_offsets({ck.TopicPartition("orders", 0): OffsetSpec.latest()})[
        ck.TopicPartition("orders", 0)
    ].result(60)
    asked = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    admin.describe_configs([asked])[asked].result(60)
    admin.list_consumer_group_offsets([ck.ConsumerGroupTopicPartitions("g")])["g"].result(60)
    admin.delete_topics(["made"])["made"].result(60)


@pytest.mark.parametrize("recorded", [True, False])
def test_frames_are_equal_on_both_sides_but_for_addresses_and_versions(lab, tmp_path, monkeypatch, recorded):
    """Requests pass byte for byte; so do answers, and what differs is the address or the version."""
    tapped = Tapped(monkeypatch)
    with proxy_lab(f"127.0.0.1:{lab.ports[1]}", tmp_path / "live" if recorded else None) as proxy:
        producer = ck.Producer(
            {"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        for n in range(400):
            producer.produce("orders", b"%d" % n, key=b"%d" % n)
        producer.flush(600)
        consumer = ck.Consumer(
            {
                "bootstrap.servers": proxy.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe(["orders"])
        got = 0
        for _ in range(100):
            got += len(consumer.consume(500, 0.2))
            if got >= 400:
                break
        consumer.commit(asynchronous=False)
        consumer.close()
        assert got >= 400
        administer(proxy.bootstrap)
        assign = proxy.proxy.cluster.assign
        same = changed = 0
        kinds = set()
        for streams in tapped.streams.values():
            assert streams["from client"] == streams["to broker"]
            asked = {}
            for frame in Chunks(1 << 30).feed(bytes(streams["from client"])):
                header = header_of(frame)
                asked[header.correlation_id] = header
            given = Chunks(1 << 30).feed(bytes(streams["from broker"]))
            passed = Chunks(1 << 30).feed(bytes(streams["to client"]))
            assert len(given) == len(passed)
            for before, after in zip(given, passed, strict=True):
                kinds.add(asked[struct.unpack_from(">i", before, 4)[0]].api_key)
                if before == after:
                    same += 1
                    continue
                header = asked[struct.unpack_from(">i", before, 4)[0]]
                places = Places()
                if header.api_key == 18:
                    assert after == clamped(header.version, before)
                else:
                    assert has_addresses(header.api_key, header.version)
                    answer_body(header.api_key, header.version, before, places)
                    assert after == rewritten(header.api_key, header.version, before, places, assign)
                changed += 1
        assert same > 10 and changed > 3
        assert kinds >= KINDS, KINDS - kinds


def test_no_answer_waits_for_an_acknowledgement_of_tcp(lab):
    """Both sockets of a connection have TCP_NODELAY: with Nagle's algorithm an answer waited until the
    client's system acknowledged the answer before it, which it may delay by 40 ms."""
    with proxy_lab(lab.bootstrap) as proxied:
        host, port = proxied.bootstrap.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(API_VERSIONS)
            assert client.recv(4)

            async def delayed():
                sides = [
                    side.transport.get_extra_info("socket")
                    for each in proxied.proxy.connections.values()
                    for side in (each, each.broker)
                    if side is not None and side.transport is not None
                ]
                return [not each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in sides]

            found = proxied.run(delayed())
    assert len(found) >= 2
    assert not any(found)
