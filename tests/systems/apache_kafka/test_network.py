"""A cut link: nobody hears of it, the cluster reacts as Kafka's does, and the heal restores everything.

The first half needs no Kafka: addresses, and which links a pair means. The second asks real brokers
(FENCEPOST_APACHE_KAFKA=1).
"""

import asyncio
import time

import pytest

from fencepost.systems.apache_kafka import network as n
from fencepost.systems.apache_kafka.jars import Release
from fencepost.systems.apache_kafka.settings import Ports, properties, with_kraft
from fencepost.traces.errors import EnvironmentError_, FencepostError
from tests.systems.apache_kafka.real_lab import VERSIONS, Lab, started


@pytest.fixture
def network(free_ports):
    """Two brokers and ZooKeeper, none of which is there."""
    ports = {1: Ports(*free_ports[:2]), 2: Ports(*free_ports[2:4])}
    made = n.Network.open(n.listeners_of(ports, f"127.0.0.1:{free_ports[4]}"))
    yield made
    made.close()
    made.close()


@pytest.fixture
def free_ports():
    from fencepost.impl.runtime.zookeeper.server import free_ports

    return free_ports(5)


def cut(network):
    """(source, target, listener, way) of everything in which nothing passes."""
    return {
        (int(each["source"]), int(each["target"]), each["listener"], way)
        for each in network.state()
        for way in each["cut"]
    }


def test_each_source_has_an_address_of_its_own_for_each_target():
    """A hosts file names every node; a broker reaches itself directly; numbers fit in a byte."""
    assert n.hosts_of(1, [1, 2, n.ZOOKEEPER]) == (
        "127.0.0.1 localhost broker-1\n127.1.1.2 broker-2\n127.1.1.201 zookeeper\n"
    )
    for wrong in (0, 203, -1):
        with pytest.raises(FencepostError, match="a node number from 1 to 200"):
            n.address_of(1, wrong)


def test_brokers_advertise_names_and_clients_get_addresses():
    """Settings: the broker listens on 127.0.0.1, and says otherwise."""
    ports = {1: Ports(1, 2, 3), 2: Ports(4, 5, 6)}
    text = properties(2, ports, "/d", with_kraft(2, ports, n.NAMES), {}, n.NAMES)
    lines = dict(line.split("=", 1) for line in text.splitlines())
    assert lines["listeners"] == "CLIENT://127.0.0.1:4,INTER://127.0.0.1:5,CTRL://127.0.0.1:6"
    assert lines["advertised.listeners"] == "CLIENT://127.1.202.2:4,INTER://broker-2:5"
    assert lines["controller.quorum.voters"] == "1@broker-1:3,2@broker-2:6"
    said = properties(2, ports, "/d", with_kraft(2, ports, n.NAMES), {}, n.NAMES, advertises_control=True)
    assert "INTER://broker-2:5,CTRL://broker-2:6\n" in said  # else others would pass the links of 2 by
    assert Release(version="4.0.0").advertises_control and not Release(version="3.9.2").advertises_control


def test_a_directed_pair_means_one_way_of_each_connection(network):
    """What 1 sends to 2 travels there on what 1 opened and back on what 2 opened; two names overlap, and each
    heal ends only its own."""
    network.cut("a", [(1, 2)])
    one_way = {(1, 2, "INTER", "there"), (2, 1, "INTER", "back")}
    assert cut(network) == one_way
    network.cut("b", n.both_ways([(1, 2)]), "INTER")
    assert cut(network) == one_way | {(1, 2, "INTER", "back"), (2, 1, "INTER", "there")}
    network.heal("b")
    assert cut(network) == one_way
    network.cut("c", [(1, n.ZOOKEEPER), (2, n.CLIENTS)])
    assert cut(network) == one_way | {
        (1, n.ZOOKEEPER, "ZOOKEEPER", "there"),
        (n.CLIENTS, 2, "CLIENT", "back"),
    }
    network.heal_all()
    assert cut(network) == set()


def test_a_cut_beats_a_delay_and_the_longest_delay_counts(network):
    """Whatever the order; a delay is back once the cut is healed."""
    network.delay("slow", [(1, 2)], 50)
    network.cut("off", [(1, 2)])
    network.delay("slower", [(1, 2)], 70)
    assert (1, 2, "INTER", "there") in cut(network)
    network.heal("off")
    (link,) = [each for each in network.state() if (each["source"], each["target"]) == ("1", "2")]
    assert link["delay_ms"] == {"there": 70, "back": 0} and not link["cut"]


def test_what_is_not_connected_cannot_be_cut(network):
    """One sentence, and nothing changes; so also after the end."""
    for pairs, listener in (([(1, 3)], "*"), ([(1, 2)], "CTRL"), ([(n.CLIENTS, n.ZOOKEEPER)], "*")):
        with pytest.raises(FencepostError, match="that are connected"):
            network.cut("x", pairs, listener)
    with pytest.raises(FencepostError, match="milliseconds"):
        network.delay("x", [(1, 2)], 0)
    assert network.cuts == {}
    network.close()
    with pytest.raises(EnvironmentError_, match="a network that is open"):
        network.state()


# ---- real brokers


@pytest.fixture(scope="module", params=VERSIONS)
def lab(request, tmp_path_factory):
    """A cluster of which every link can be cut."""
    with started(tmp_path_factory.mktemp("cluster"), request.param, proxied=True) as cluster:
        yield Lab(cluster)


@pytest.fixture(autouse=True)
def healed(request):
    """Each test begins with a full ISR and every broker alive."""
    yield
    if "lab" in request.fixturenames:
        lab = request.getfixturevalue("lab")
        lab.cluster.network.heal_all()
        lab.until(lambda: lab.cluster.healthy(), "a healthy cluster")


def test_a_cut_follower_leaves_the_isr_and_comes_back(lab):
    """Only the link between leader and one follower is cut, without a reset; the other follower stays. The
    follower lags once something is written that it does not get."""
    leader = lab.state().leader
    one, other = sorted({1, 2, 3} - {leader})
    lab.cluster.network.cut("off", n.both_ways([(leader, one)]), n.INTER)
    assert lab.append(leader, 1, acks=1).error == "NONE"
    lab.until(lambda: lab.isr() == {leader, other}, "an ISR without the follower")
    assert lab.append(leader, 1).error == "NONE"
    assert lab.live() == {1, 2, 3}
    lab.cluster.heal("off")
    lab.until(lambda: lab.isr() == {1, 2, 3}, "the follower back in the ISR")


def test_a_one_way_cut_stops_one_way(lab):
    """Client to leader cut: nothing is written. Leader to client cut: it is written, and only the answer
    does not come. After the heal the same connections go on."""
    leader = lab.state().leader
    address = (f"127.1.{n.CLIENTS}.{leader}", lab.cluster.running.ports[leader].client)
    before = lab.end(leader)

    async def work():
        loop = asyncio.get_running_loop()

        async def written():
            return await loop.run_in_executor(None, lab.end, leader) - before

        request = asyncio.ensure_future(lab.append_async(leader, 2, address=address))
        assert (await request).error == "NONE"
        network = lab.cluster.network
        from fencepost.wire.client import Link

        link = Link(address)
        await link.open()  # a connection that is there before the cut

        def ask():
            return asyncio.ensure_future(_append_over(link, lab))

        network.cut("back", [(leader, n.CLIENTS)])
        request = ask()
        while await written() < 2:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        assert not request.done()
        network.heal("back")
        assert (await request).responses[0].partition_responses[0].base_offset == before + 1
        network.cut("there", [(n.CLIENTS, leader)])
        request = ask()
        await asyncio.sleep(1)
        assert await written() == 2 and not request.done()
        network.heal("there")
        assert (await request).responses[0].partition_responses[0].base_offset == before + 2
        await link.close()

    asyncio.run(work())


async def _append_over(link, lab):
    from fencepost.impl.log.values import batch_of
    from fencepost.impl.messages.broker_api import ProduceRequest
    from fencepost.impl.messages.topic_partition import TopicPartition
    from fencepost.wire.outward import TRANSLATIONS

    request = ProduceRequest(
        correlation_id=1,
        partition=TopicPartition(lab.topic, 0),
        acks=-1,
        records=batch_of((3,)),
        timeout=60_000_000_000,
    )
    return await link.ask(TRANSLATIONS[ProduceRequest].ask(link.dialogue, request))


def test_a_broker_without_its_controller_is_given_up_and_returns(lab):
    """Broker 3 is cut off the controllers (KRaft) or ZooKeeper, and off nothing else: it is no longer alive
    for the cluster. After the heal it is."""
    kraft = lab.cluster.release.kraft
    pairs = [(3, 1), (3, 2)] if kraft else [(3, n.ZOOKEEPER)]
    lab.cluster.network.cut("off", n.both_ways(pairs), n.CTRL if kraft else n.SESSIONS)
    lab.until(lambda: lab.live() == {1, 2}, "a cluster without broker 3")
    lab.cluster.network.heal("off")
    lab.until(lambda: lab.live() == {1, 2, 3} and lab.isr() == {1, 2, 3}, "broker 3 back")


def test_a_delayed_link_makes_an_acknowledgement_late(lab):
    """Followers ask 300 ms late: acks=all cannot come sooner, acks=1 does not wait for them."""
    leader = lab.state().leader
    followers = [(each, leader) for each in (1, 2, 3) if each != leader]
    lab.append(leader, 4)
    lab.cluster.network.delay("slow", followers, 300)
    began = time.monotonic()
    assert lab.append(leader, 5).error == "NONE"
    assert time.monotonic() - began >= 0.3
