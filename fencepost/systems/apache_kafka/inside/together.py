"""Everything that is known of the inside of a cluster during one run, as the events of its trace.

Owns the order of sources, the window and the names. Must not know how a source is read.

All sources stamp with this machine's wall clock, in milliseconds. Events of one source keep its order.
Between sources a millisecond is not an order: a decision is put before what brokers say about it, because
they hear of it afterwards.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve, frozen

from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.inside.broker_log import read_broker_log
from fencepost.systems.apache_kafka.inside.metadata_log import read_metadata_log
from fencepost.systems.apache_kafka.inside.zookeeper_log import read_zookeeper_log
from fencepost.traces.events import APPENDS_UNKNOWN, Event, Name

LATEST_OF_CLUSTER = frozenset(
    {Name.CONTROLLER_EPOCH, Name.CONTROLLER_ZNODE, Name.BROKER_ZNODE, Name.BROKER_REGISTERED}
)
"""Facts of the whole cluster that hold until the next one: what a run begins with."""
CHECKS = ("invariants", "conformance")
"""The checks that these events can be judged by (docs/reference/real-kafka.md says how far)."""


@frozen(kw_only=True)
class Window:
    """The part of a cluster's life that belongs to a run."""

    # The beginning of the trace, in nanoseconds of the wall clock.
    since: int
    # Its end, as above.
    until: int = 1 << 62
    # The run's topics: the name in the trace by the cluster's name.
    topics: Mapping[str, str]


@frozen(kw_only=True)
class Sources:
    """Where a cluster keeps what it knows; copies are as good."""

    # The log directory of each broker.
    directories: Mapping[int, Path]
    # What each broker wrote about itself.
    broker_logs: Mapping[int, tuple[Path, ...]]
    # The dataDir of the ZooKeeper server; None with KRaft.
    zookeeper: Path | None = None
    # The zone of times without one, in seconds east of UTC.
    utc_offset_s: int = 0


def sources_of(cluster: ApacheKafka) -> Sources:
    """Where a cluster of this machine has them; it may run or not."""
    return Sources(
        directories=cluster.directories(),
        broker_logs={broker: (cluster.logs()[f"broker-{broker}"],) for broker in cluster.brokers},
        zookeeper=None if cluster.release.kraft else cluster.directory / "zookeeper" / "data",
    )


def events_inside(sources: Sources, window: Window) -> tuple[Event, ...]:
    """What happened inside a cluster during a run.

    Args:
        sources: of the cluster.
        window: the run.

    Returns:
        the events in order, in nanoseconds since the window began.

    Raises:
        FencepostError: where the log of the decisions is absent or not what it should be.
    """
    decided = (
        read_metadata_log(sources.directories)
        if sources.zookeeper is None
        else read_zookeeper_log(sources.zookeeper)
    )
    said = [
        event
        for broker, paths in sorted(sources.broker_logs.items())
        for event in read_broker_log(broker, paths, sources.utc_offset_s)
    ]
    said.sort(key=lambda event: event.time)
    silent = Event(time=0, name=Name.MARK, cause=APPENDS_UNKNOWN)
    return (silent, *in_window((*decided, *said), window))


def in_window(events: Iterable[Event], window: Window) -> tuple[Event, ...]:
    """The events of a run.

    Args:
        events: each source after the other, each in its order.
        window: the run.

    Returns:
        events of the run's topics, all of them, and of the cluster, from the window's beginning on. What held
        for the cluster then comes first, at time 0.
    """
    before: dict[tuple[Name, int], Event] = {}
    found: list[Event] = []
    for event in events:
        if event.time > window.until:
            continue
        time = max(0, event.time - window.since)
        if event.topic is not None:
            shown = window.topics.get(event.topic)
            if shown is not None:
                found.append(evolve(event, time=time, topic=shown))
        elif event.time >= window.since:
            found.append(evolve(event, time=time))
        elif event.name in LATEST_OF_CLUSTER:
            of_node = event.name in (Name.BROKER_ZNODE, Name.BROKER_REGISTERED)
            before[event.name, event.node if of_node else -1] = evolve(event, time=0)
    found.sort(key=lambda event: event.time)  # stable: the first source wins within a millisecond
    first = [
        event for event in before.values() if event.name is not Name.BROKER_ZNODE or event.broker_epoch >= 0
    ]
    return (*first, *found)
