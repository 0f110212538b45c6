"""What the client tools share: the cluster that they speak to, the topic, the options that both have.

Owns the look at cluster.json and at the topic in ZooKeeper before any work begins. Must not know what is sent or read.
"""

from collections.abc import Mapping
from pathlib import Path

import rich_click as click
from attrs import frozen

from fencepost.console.options import Decorator
from fencepost.traces.errors import FencepostError

REQUEST_TIMEOUT_MS = 5_000
"""Of one attempt: a broker that died is noticed by it. Kafka's clients wait 30 s."""

directory_option: Decorator = click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=Path("out/cluster"),
    show_default=True,
    help="Of a running `fencepost cluster`.",
)
record_option: Decorator = click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Add what was done to this history (.jsonl), for `fencepost check FILE`. Record producers and consumers into the same file.",
)
partition_option: Decorator = click.option(
    "--partition", type=click.IntRange(0), metavar="P", help="Only this partition."
)


@frozen(kw_only=True)
class Target:
    """addresses: of the brokers. partitions: of the topic, ascending."""

    topic: str
    addresses: Mapping[int, tuple[str, int]]
    partitions: tuple[int, ...]

    def chosen(self, partition: int | None) -> tuple[int, ...]:
        """The partition that was asked for, or all. Raises FencepostError for one that is not there."""
        if partition is None:
            return self.partitions
        if partition not in self.partitions:
            raise FencepostError(
                expected=f"one of the partitions 0 to {len(self.partitions) - 1}",
                seen=str(partition),
                where=f"topic {self.topic}",
            )
        return (partition,)


def target(directory: Path, topic: str) -> Target:
    """The cluster of this directory and the topic in it. Raises FencepostError."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import HOST
    from fencepost.impl.zookeeper import znodes
    from fencepost.impl.zookeeper.interface import Children, Data, GetChildren, GetData
    from fencepost.systems.processes import ProcessCluster

    state = ProcessCluster.load(directory).state
    with BlockingZooKeeper(state.zookeeper) as zookeeper:
        found = zookeeper.ask(GetData(znodes.topic_path(topic)))
        listed = zookeeper.ask(GetChildren(znodes.TOPICS))
    if not isinstance(found, Data):
        names = listed.names if isinstance(listed, Children) else ()
        raise FencepostError(
            expected=f"one of the topics {', '.join(names)}" if names else "a topic of this cluster",
            seen=topic if names else f"{topic}, and no topic at all",
            where=str(directory),
            hint="`fencepost topics create` makes one",
        )
    return Target(
        topic=topic,
        addresses={number: (HOST, broker.port) for number, broker in state.brokers.items()},
        partitions=tuple(sorted(znodes.decode_topic(found.data))),
    )
