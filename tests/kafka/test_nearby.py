"""Consumers read from the broker in their rack (KIP-392), seen field by field."""

import asyncio

import pytest

import fencepost.kafka
from fencepost.torture.truth import addresses_of
from fencepost.wire.client import Link
from fencepost.wire.plain import request
from tests.kafka.raw import Raw

FETCH = 1
LOOKS = 600
"""Fetches until a follower knows the high watermark; each waits 100 ms at most."""


@pytest.fixture(scope="module")
def kafka():
    """Three brokers, and one record."""
    with fencepost.kafka.cluster() as cluster:
        cluster.create_topic("t", partitions=1)
        cluster.run.cluster.system.listeners.read_nearby()
        with Raw(cluster, "t", 0) as raw:
            assert raw.produce(b"a").error == "none"
        yield cluster


def fetched(kafka, broker, offset, *, rack="", version=11):
    """The answer of a broker about t-0."""

    async def ask():
        link = Link(addresses_of(kafka.bootstrap_servers)[broker - 1])
        await link.open()
        try:
            row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            row |= {"current_leader_epoch": -1}
            topics = [{"topic": "t", "partitions": [row]}]
            sizes = {"max_wait": 100, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
            fields = {"replica_id": -1, "rack_id": rack, "topics": topics, **sizes}
            answer = await link.ask(request(FETCH, version, fields))
            return answer.responses[0].partitions[0]
        finally:
            await link.close()

    return asyncio.run(ask())


def followers(kafka):
    leader = kafka.leader("t", 0)
    return leader, [broker for broker in (1, 2, 3) if broker != leader]


def test_a_leader_names_the_follower_in_the_rack_and_sends_no_records(kafka):
    """Rule: only for a client of that rack, and from version 11 on."""
    leader, (follower, _) = followers(kafka)
    near = fetched(kafka, leader, 0, rack=f"r{follower}")
    assert (near.preferred_read_replica, near.records or b"", near.high_watermark) == (follower, b"", 1)
    for rack in ("", f"r{leader}", "elsewhere"):
        row = fetched(kafka, leader, 0, rack=rack)
        assert row.preferred_read_replica == -1 and row.records
    assert fetched(kafka, leader, 0, version=10).records


def test_a_follower_answers_up_to_the_high_watermark_that_it_knows(kafka):
    """Rule: as the leader would, later; below version 11 it is none, and beyond its end nothing is there."""
    _, (follower, _) = followers(kafka)
    for _ in range(LOOKS):
        row = fetched(kafka, follower, 0, rack=f"r{follower}")
        assert row.error_code.name == "none"
        if row.records:
            break
    assert row.records and row.high_watermark == 1 and row.preferred_read_replica == -1
    assert fetched(kafka, follower, 0, version=10).error_code.name == "not_leader_or_follower"
    assert fetched(kafka, follower, 9).error_code.name == "offset_out_of_range"
