"""What the admin commands share: the cluster that they speak to through ZooKeeper, and files of JSON.

Owns the options, the connection and where the placement of replicas starts. Must not know what is asked.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from fencepost.cli.cluster.client.client_options import addresses, cluster_directory
from fencepost.console.options import Decorator, options
from fencepost.traces.errors import EnvironmentError_

if TYPE_CHECKING:
    from fencepost.impl.admin.topic_administration import Draw
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper


def zookeeper_option(what: str) -> Decorator:
    """The option --zookeeper, a server's address. what: the help text."""
    return click.option("--zookeeper", metavar="HOST:PORT", callback=_address, help=what)


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    addresses(context, parameter, value)
    return value


seed_option: Decorator = click.option(
    "--seed",
    type=click.IntRange(0),
    help="Where the placement of replicas starts; the same number gives the same placement. By default "
    "drawn.",
)


cluster_options: Decorator = options(
    zookeeper_option("The cluster's ZooKeeper server. By default that of the cluster in --directory."),
    cluster_directory,
)


def draw(seed: int | None) -> "Draw":
    """Where to start."""
    source = random.Random(seed)
    return lambda count: source.randrange(count)


@contextmanager
def connected(zookeeper: str | None, directory: Path) -> "Iterator[BlockingZooKeeper]":
    """A session with a ZooKeeper server.

    zookeeper: HOST:PORT, or None for the server of the cluster in `directory`. Raises EnvironmentError_ if it
    does not answer."""
    import logging

    from fencepost.impl.runtime.addresses import parse_address
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import answers
    from fencepost.systems.processes import ProcessCluster

    logging.getLogger("fencepost.kazoo").setLevel(logging.CRITICAL)
    address = zookeeper or ProcessCluster.load(directory).state.zookeeper
    if not answers(*parse_address(address)):
        raise EnvironmentError_(
            expected="a ZooKeeper server that answers `srvr`", seen="no answer", where=address
        )
    with BlockingZooKeeper(address) as session:
        yield session
