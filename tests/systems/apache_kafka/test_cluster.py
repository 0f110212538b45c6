"""What Apache Kafka is started with; the brokers themselves are in test_systems.py, where they are asked
for."""

from pathlib import Path

import pytest

from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, SEPARATE, Release
from fencepost.systems.apache_kafka.node_files import as_node
from fencepost.systems.apache_kafka.settings import Ports, properties, with_kraft, with_zookeeper
from fencepost.traces.errors import FencepostError

PORTS = {1: Ports(1001, 1002, 1003), 2: Ports(2001, 2002, 2003)}


def lines(text):
    """The settings."""
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_version_decides_who_the_controllers_are():
    """3.x runs with ZooKeeper, 4.x with KRaft; a version goes into a file of Maven's, so that it is one."""
    assert [Release(version=version).kraft for version in RECOMMENDED] == [False, True]
    for wrong in ("4", "4.4", "4.4.0</version>", "latest", ""):
        with pytest.raises(FencepostError, match=r"expected a version such as"):
            Release(version=wrong)


def test_jars_of_a_folder_are_taken_as_they_are(tmp_path):
    """An unpacked release needs no Maven; a folder that is none is refused with the name of what is
    missing."""
    with pytest.raises(FencepostError, match=r"libs/kafka_\*\.jar"):
        Release(home=tmp_path).class_path()
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.4.0.jar").touch()
    assert Release(home=tmp_path).class_path() == f"{tmp_path}/libs/*"


def test_each_mode_gets_its_settings():
    """Three listeners with KRaft, two with ZooKeeper; the caller's settings win."""
    kraft = lines(properties(2, PORTS, "/d", with_kraft(2, PORTS), {"num.io.threads": "9"}))
    assert kraft["controller.quorum.voters"] == "1@127.0.0.1:1003,2@127.0.0.1:2003"
    assert kraft["listeners"].endswith("CTRL://127.0.0.1:2003") and kraft["num.io.threads"] == "9"
    assert kraft["transaction.state.log.min.isr"] == "2" and "zookeeper.connect" not in kraft
    old = {broker: Ports(ports.client, ports.inter) for broker, ports in PORTS.items()}
    zookeeper = lines(properties(1, old, "/d", with_zookeeper("127.0.0.1:5"), {}))
    assert zookeeper["zookeeper.connect"] == "127.0.0.1:5" and "CTRL://" not in zookeeper["listeners"]


def test_controllers_may_be_processes_of_their_own():
    """Brokers have no controller's port then, controllers no other; all vote by number, and only brokers
    count for copies."""
    ports = {1: Ports(1001, 1002), 2: Ports(2001, 2002), 101: Ports(control=9001), 102: Ports(control=9002)}
    broker = lines(properties(2, ports, "/d", with_kraft(2, ports), {}))
    assert broker["process.roles"] == "broker" and "CTRL://" not in broker["listeners"]
    assert broker["controller.quorum.voters"] == "101@127.0.0.1:9001,102@127.0.0.1:9002"
    assert broker["offsets.topic.replication.factor"] == "2"
    controller = lines(properties(101, ports, "/d", with_kraft(101, ports), {}))
    assert controller["process.roles"] == "controller" and controller["node.id"] == "101"
    assert controller["listeners"] == "CTRL://127.0.0.1:9001" and "advertised.listeners" not in controller
    cluster = ApacheKafka(directory=Path("x"), release=Release(controllers=SEPARATE))
    assert cluster.controllers == (101, 102, 103) and cluster.brokers == (1, 2, 3)
    assert "3 separate controllers" in cluster.inside().software
    with pytest.raises(FencepostError, match=r"3\.5 and later"):
        Release(version="3.4.0", controllers=SEPARATE)
    with pytest.raises(FencepostError, match="the controllers separate"):
        ApacheKafka(directory=Path("x"), separate=2)


def test_another_node_has_its_own_ids():
    """The cluster's id stays; the node's and the directory's change."""
    text = "#\nversion=1\ncluster.id=C\nnode.id=1\ndirectory.id=D\n"
    other = lines(as_node(text, 3).removeprefix("#\n"))
    assert (other["cluster.id"], other["node.id"]) == ("C", "3") and other["directory.id"] not in ("D", "")


def test_a_folder_without_a_cluster_is_one_sentence(tmp_path):
    """`down` and `status` of a folder in which nothing was started."""
    with pytest.raises(FencepostError, match="expected a cluster that was brought up here"):
        ApacheKafka.load(tmp_path)
    (tmp_path / "apache-kafka.json").write_text("[]")
    with pytest.raises(FencepostError, match="expected the state of a cluster"):
        ApacheKafka.load(tmp_path)
