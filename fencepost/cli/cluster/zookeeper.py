"""What the admin commands share: the cluster that they speak to through ZooKeeper, and files of JSON.

Owns the options, the connection and where the placement of replicas starts. Must not know what is asked.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from fencepost.cli.cluster.client.clients import directory_option
from fencepost.console.options import Decorator
from fencepost.traces.errors import EnvironmentError_

if TYPE_CHECKING:
    from fencepost.impl.admin.topics import Draw
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from fencepost.impl.runtime.addresses import parse_address

    if value is not None:
        try:
            parse_address(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None
    return value


zookeeper_option: Decorator = click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    callback=_address,
    help="The cluster's ZooKeeper server. By default that of the cluster in --directory.",
)
seed_option: Decorator = click.option(
    "--seed",
    type=click.IntRange(0),
    help="Where the placement of replicas starts; the same number gives the same placement. By default "
    "drawn.",
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--zookeeper and --directory."""
    return zookeeper_option(directory_option(command))


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
