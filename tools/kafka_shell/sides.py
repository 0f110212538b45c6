"""Three brokers of Apache Kafka and three of ours: what the script is run against.

Owns their settings. Must not know what is asked of them. Both sides answer the same questions: where clients
connect, and where a broker's logs are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

import fencepost.kafka
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release

BROKERS = 3
SETTINGS = {
    "offsets.topic.num.partitions": "8",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "true",
}
"""As our brokers have them, so that what is printed is the same."""


@frozen(kw_only=True)
class Side:
    """A cluster that runs. bootstrap: HOST:PORT of each broker. directories: a broker's logs."""

    bootstrap: str
    directories: Mapping[int, Path]


@contextmanager
def our_brokers(scratch: Path) -> Iterator[Side]:
    """Three of ours, with their files in a folder, so that tools can read them."""
    home = scratch / "ours"
    home.mkdir(parents=True)
    with fencepost.kafka.cluster(directory=home, process=True, leader_imbalance_check_ms=0) as kafka:
        directories = {broker: home / f"broker-{broker}" for broker in kafka.brokers}
        yield Side(bootstrap=kafka.bootstrap_servers, directories=directories)


@contextmanager
def apache_brokers(version: str, scratch: Path) -> Iterator[Side]:
    """Three of Apache Kafka: with ZooKeeper before 4.0, with KRaft from then on."""
    release = Release(version=version)
    with ApacheKafka(directory=scratch / "apache", release=release, size=BROKERS, settings=SETTINGS) as kafka:
        yield Side(bootstrap=kafka.bootstrap_servers(), directories=kafka.directories())
