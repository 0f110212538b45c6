"""The folders of a cluster's nodes, without Kafka: which one its format step prepares, and what the others
get of it."""

import subprocess
from pathlib import Path

import pytest

from fencepost.systems.apache_kafka.jars import Release
from fencepost.systems.apache_kafka.node_files import NodeFiles
from fencepost.systems.apache_kafka.settings import Names, Ports

META = "version=1\nnode.id=0\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\ncluster.id=c\n"
LEVELS = Path("__cluster_metadata-0") / "00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def formatted(monkeypatch):
    """The folders that StorageTool was asked to format. It writes what the real one does for a controller."""
    asked = []

    def run(command, **options):
        properties = Path(command[-1])
        asked.append(properties.parent.name)
        data = properties.parent / "data"
        (data / LEVELS).parent.mkdir(parents=True)
        (data / LEVELS).write_bytes(b"levels")
        (data / "meta.properties").write_text(META)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(Release, "class_path", lambda self: "")
    return asked


def files(tmp_path, ports):
    return NodeFiles(
        directory=tmp_path, ports=ports, release=Release(version="4.4.0"), names=Names(), more={}
    )


def test_separate_controllers_get_the_feature_levels(tmp_path, formatted):
    """Rule: StorageTool writes them for controllers only, so a controller's folder is prepared; a broker gets
    its ids and nothing else."""
    ports = {1: Ports(1, 2), 2: Ports(3, 4), 101: Ports(control=5), 102: Ports(control=6)}
    files(tmp_path, ports).format("c")
    assert formatted == ["broker-101"]
    for node in ports:
        data = tmp_path / f"broker-{node}" / "data"
        assert f"node.id={node}\n" in (data / "meta.properties").read_text() or node == 101
        assert (data / LEVELS).exists() == (node > 100)


def test_brokers_that_are_controllers_too_all_get_them(tmp_path, formatted):
    """Rule: one step of Kafka's, for the first; and none where the folders are there already."""
    ports = {node: Ports(1, 2, 3) for node in (1, 2, 3)}
    made = files(tmp_path, ports)
    made.format("c")
    made.format("c")
    assert formatted == ["broker-1"]
    assert all((tmp_path / f"broker-{node}" / "data" / LEVELS).exists() for node in ports)
