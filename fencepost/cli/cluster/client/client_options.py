"""What the client tools share: the cluster, the topic, and the options that both have.

Owns the check of cluster.json and of the topic in ZooKeeper before any work begins. Must not know what is
sent or read.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import frozen

from fencepost.console.options import FILE, FILE_THAT_IS, Decorator, directory_option, options
from fencepost.traces.errors import ExitCode, FencepostError, unknown_name

if TYPE_CHECKING:
    from fencepost.impl.runtime.addresses import Address
    from fencepost.impl.runtime.client import Connect
    from fencepost.wire.client import Access

REQUEST_TIMEOUT_MS = 5_000
"""Time-out of one attempt, so that a dead broker is noticed. Kafka's clients wait 30 s."""

PASSWORD = "FENCEPOST_PASSWORD"
"""The environment variable. A command line would be visible to everybody on the machine."""

CLUSTER = Path("out/cluster")
"""Where `fencepost cluster up` puts a cluster, and the tools look for it."""


def addresses(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[tuple[str, int], ...]:
    """Each HOST:PORT of a list with commas; () for none. context, parameter: click's, for the message."""
    from fencepost.impl.runtime.addresses import parse_address

    try:
        return tuple(parse_address(part) for part in value.split(",")) if value else ()
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


cluster_directory = directory_option(
    str(CLUSTER), "The directory of a `fencepost cluster`: all its files are there."
)
record_option: Decorator = click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Add the operations to this history (.jsonl), for `fencepost check FILE`. Record producers and "
    "consumers into the same file.",
)
partition_option: Decorator = click.option(
    "--partition", type=click.IntRange(0), metavar="P", help="Only this partition."
)


@frozen(kw_only=True)
class Target:
    """A topic of a cluster."""

    topic: str
    # Their ids.
    brokers: tuple[int, ...]
    # How a client core reaches them.
    connect: "Connect | Mapping[int, Address]"
    # Of the topic, ascending.
    partitions: tuple[int, ...]

    def chosen(self, partition: int | None) -> tuple[int, ...]:
        """The given partition, or all for None. Raises FencepostError if there is no such partition."""
        if partition is None:
            return self.partitions
        if partition not in self.partitions:
            raise FencepostError(
                expected=f"one of the partitions 0 to {len(self.partitions) - 1}",
                seen=str(partition),
                where=f"topic {self.topic}",
            )
        return (partition,)


@frozen(kw_only=True)
class Bootstrap:
    """A Kafka elsewhere: bootstrap servers, and how to log in."""

    servers: tuple[tuple[str, int], ...]
    ca: Path | None
    user: str | None

    def access(self) -> "Access":
        """How to log in."""
        import ssl

        from fencepost.wire.client import Access

        tls = None if self.ca is None else ssl.create_default_context(cafile=self.ca)
        return Access(tls=tls, user=self.user or "", password=os.environ.get(PASSWORD, ""))

    def options(self, directory: Path) -> dict[str, str]:
        """The options that name this Kafka, or without bootstrap servers the cluster of `directory`: none for
        the usual one."""
        if not self.servers:
            return {"--directory": "" if directory == CLUSTER.resolve() else str(directory)}
        servers = ",".join(f"{host}:{port}" for host, port in self.servers)
        return {"--bootstrap": servers, "--tls-ca": str(self.ca or ""), "--user": self.user or ""}


_bootstrap_options: Decorator = options(
    click.option(
        "--bootstrap",
        metavar="HOST:PORT,...",
        callback=addresses,
        help="Bootstrap servers of any Kafka, instead of a cluster's directory.",
    ),
    click.option(
        "--tls-ca",
        type=FILE_THAT_IS,
        metavar="FILE",
        help="With --bootstrap: use TLS, and trust the certificates that this file (PEM) signs.",
    ),
    click.option(
        "--user",
        metavar="NAME",
        help=f"With --bootstrap: log in by SASL/PLAIN with this name and the password in ${PASSWORD}.",
    ),
)


def bootstrap_options(command: Callable[..., ExitCode]) -> Callable[..., Any]:
    """--bootstrap, --tls-ca and --user, which the command gets as one Bootstrap."""

    @wraps(command)
    def with_bootstrap(
        *, bootstrap: tuple[tuple[str, int], ...], tls_ca: Path | None, user: str | None, **more: Any
    ) -> ExitCode:
        if not bootstrap and (tls_ca or user):
            raise click.UsageError("--tls-ca and --user are for --bootstrap, which is not given")
        return command(bootstrap=Bootstrap(servers=bootstrap, ca=tls_ca, user=user), **more)

    return _bootstrap_options(with_bootstrap)


def target(directory: Path, topic: str, bootstrap: Bootstrap) -> Target:
    """The topic, in the cluster of `directory`, or in that of the bootstrap servers if there are any. Raises
    FencepostError."""
    if bootstrap.servers:
        return _anywhere(bootstrap, topic)
    return _of_directory(directory, topic)


def _anywhere(bootstrap: Bootstrap, topic: str) -> Target:
    from fencepost.wire.client import KafkaNetwork, look_around

    if bootstrap.user and PASSWORD not in os.environ:
        raise click.UsageError(
            f"expected the password of {bootstrap.user} in the environment variable {PASSWORD}, saw none"
        )
    access = bootstrap.access()
    addresses, metadata = asyncio.run(look_around(bootstrap.servers, access))
    names = sorted({each.partition.topic for each in metadata.partitions})
    where = ",".join(f"{host}:{port}" for host, port in bootstrap.servers)
    partitions = tuple(
        sorted(each.partition.partition for each in metadata.partitions if each.partition.topic == topic)
    )
    if not partitions:
        visible = [name for name in names if not name.startswith("__")]
        raise _no_topic(
            topic, visible, where, hint="create it with that cluster's tools: kafka-topics --create"
        )
    return Target(
        topic=topic,
        brokers=tuple(addresses),
        connect=lambda node, receive: KafkaNetwork(dict(addresses), receive, access),
        partitions=partitions,
    )


def _no_topic(
    topic: str, names: Sequence[str], where: str, hint: str = "`fencepost cluster topics create` makes one"
) -> FencepostError:
    return FencepostError(
        expected=f"one of the topics {', '.join(names)}" if names else "a topic of this cluster",
        seen=unknown_name(topic, names) if names else f"{topic}, and no topic at all",
        where=where,
        hint=hint,
    )


def _of_directory(directory: Path, topic: str) -> Target:
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
        raise _no_topic(topic, listed.names if isinstance(listed, Children) else (), str(directory))
    return Target(
        topic=topic,
        brokers=tuple(state.brokers),
        connect={number: (HOST, broker.port) for number, broker in state.brokers.items()},
        partitions=tuple(sorted(znodes.decode_topic(found.data, znodes.topic_path(topic)))),
    )
