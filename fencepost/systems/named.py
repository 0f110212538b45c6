"""Systems by name: what `--system` says becomes a system that can be started.

Owns the table. Must not know how a system works: a new one is a file of this folder and a row here.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from fencepost.systems.system import System
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.plan import ClusterOptions, TransactionOptions

SIMULATION = "simulation"
"""The one that needs no real time; campaigns run it by themselves (run/simulated/run.py)."""
KAFKA = "apache-kafka"
HOME, BOOTSTRAP, SCRIPT = "kafka_home", "bootstrap", "script"
LINKS, DISKS, PATIENT = "links", "disks", "patient"
"""Options of a system: an unpacked release of Apache Kafka; of `external`, where it is and what breaks it;
whether the links of Apache Kafka's brokers can be cut, whether their disks can lose power, and whether their
time-outs are long enough for a machine with other work to do."""
Options = Mapping[str, str]


@frozen
class Kind:
    """A row."""

    says: str
    # Makes a system of the part of its name after the colon, the folder of its files and the options.
    make: Callable[[str, Path, Options], System]


def _reference() -> ClusterOptions:
    """Options of the reference brokers: as in tests, with the second version of transactions."""
    from fencepost.systems.embedded import quick_options

    return quick_options(transactions=TransactionOptions(state_topic_partitions=4, version=2))


def _embedded(after: str, folder: Path, options: Options) -> System:
    from fencepost.systems.embedded import Embedded

    return Embedded(options=_reference())


def _processes(after: str, folder: Path, options: Options) -> System:
    from fencepost.systems.process_system import Processes
    from fencepost.systems.processes import ListenerOptions

    return Processes(directory=folder, options=_reference(), listeners=ListenerOptions())


def _apache_kafka(after: str, folder: Path, options: Options) -> System:
    from fencepost.impl.runtime.zookeeper.server import check_client
    from fencepost.systems.apache_kafka.cluster import ApacheKafka
    from fencepost.systems.apache_kafka.disk import SETTINGS
    from fencepost.systems.apache_kafka.jars import KRAFT, Release
    from fencepost.systems.apache_kafka.settings import PATIENT as LONG

    version, _, controllers = after.partition(":")
    home = Path(options[HOME]) if options.get(HOME) else None
    release = Release(version=version or KRAFT, home=home, controllers=controllers)
    if not release.kraft:
        check_client()
    return ApacheKafka(
        directory=folder,
        release=release,
        proxied=_links(options),
        mounted=_disks(options),
        settings={
            "auto.create.topics.enable": "false",
            **(SETTINGS if options.get(DISKS) else {}),
            **(LONG if options.get(PATIENT) else {}),
        },
    )


def _links(options: Options) -> bool:
    if options.get(LINKS) and sys.platform != "linux":
        raise FencepostError(
            expected="Linux, where all of 127.0.0.0/8 is loopback",
            seen=sys.platform,
            where="links of the system",
        )
    return bool(options.get(LINKS))


def _disks(options: Options) -> bool:
    from fencepost.systems.apache_kafka.disk import missing

    if options.get(DISKS) and (reason := missing()):
        raise FencepostError(expected="disks that can lose power", seen=reason, where="disks of the system")
    return bool(options.get(DISKS))


def _external(after: str, folder: Path, options: Options) -> System:
    from fencepost.systems.external import External

    if not options.get(BOOTSTRAP) or not options.get(SCRIPT):
        raise FencepostError(
            expected="a bootstrap address and a script (--bootstrap HOST:PORT --script FILE)",
            seen="one of them is missing",
            where="the system external",
        )
    return External(bootstrap=options[BOOTSTRAP], script=Path(options[SCRIPT]).absolute())


def _mock(after: str, folder: Path, options: Options) -> System:
    from fencepost.systems.fakes.librdkafka_mock import LibrdkafkaMock

    return LibrdkafkaMock()


def _kfake(after: str, folder: Path, options: Options) -> System:
    from fencepost.systems.fakes.kfake.kfake_system import Kfake

    return Kfake()


SYSTEMS: Mapping[str, Kind] = {
    "processes": Kind("the reference brokers as processes, with a real ZooKeeper", _processes),
    "embedded": Kind("the reference brokers in one process, on the wall clock", _embedded),
    KAFKA: Kind(
        "Apache Kafka's own brokers: apache-kafka:VERSION, apache-kafka:VERSION:kraft, "
        "apache-kafka:VERSION:separate, apache-kafka:VERSION:zookeeper",
        _apache_kafka,
    ),
    "kfake": Kind("franz-go's fake of Kafka: all brokers in one process", _kfake),
    "librdkafka-mock": Kind("the mock cluster of librdkafka, in one process; no faults", _mock),
    "external": Kind("any cluster: --bootstrap HOST:PORT, and --script FILE that breaks it", _external),
}


def make_system(name: str, folder: Path, options: Options) -> System:
    """The system of this name, not started yet.

    Parameters:
      name: as `--system` has it; what comes after the first colon is the system's own.
      folder: where its files are.
      options: HOME, BOOTSTRAP, SCRIPT, LINKS and DISKS, where they were given.
    Returns: the system.
    Raises: FencepostError for an unknown name, or options that do not fit.
    """
    kind, _, after = name.partition(":")
    found = SYSTEMS.get(kind)
    if found is None or (after and kind != KAFKA):
        known = (SIMULATION, *SYSTEMS)
        raise FencepostError(
            expected=f"a system: {', '.join(known)}",
            seen=unknown_name(name, known),
            where="the system",
            hint="Apache Kafka has a version: apache-kafka:4.4.0",
        )
    return found.make(after, folder, options)
