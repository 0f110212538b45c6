"""One broker as one operating-system process: `python -m fencepost.systems.node --broker 1 ...`.

Owns the assembly of the broker core with real files, TCP and a real ZooKeeper, and the life of the process.
Must not know other processes. SIGTERM asks the broker to stop: the controller moves its leaders away first
(controlled shutdown), within a bounded time. A second SIGTERM, and Ctrl-C, end it cleanly at once: its
ZooKeeper session is closed, so that the others notice immediately.
"""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec
from attrs import define, field, frozen

from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.controlled_shutdown import CONTROLLED_SHUTDOWN
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.broker_context import ZNODE_REFUSED
from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.runtime.addresses import Address, parse_address
from fencepost.impl.runtime.core_driver import Driver, HostClock
from fencepost.impl.runtime.greeting import Credentials, read_credentials
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.impl.runtime.zookeeper.session import ZooKeeperSession
from fencepost.impl.zookeeper.grouping import GROUPED, JUTE_MAXBUFFER, Grouping
from fencepost.processes.begin import settle
from fencepost.systems.broker_events import EventFile
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event
from fencepost.traces.plan import ClusterOptions

LOG = logging.getLogger("fencepost.node")
FILES = "files"
HALTED = 1


@frozen(kw_only=True)
class NodeOptions:
    """The command line of one broker process."""

    # The broker's id.
    broker: int
    # Inter-broker listeners of all brokers, also of this one.
    addresses: dict[int, Address]
    # The listener for clients.
    listen: Address
    # HOST:PORT.
    zookeeper: str
    # The folder of its files and its events.
    directory: Path
    cluster: ClusterOptions
    # How its requests to ZooKeeper are grouped.
    grouping: Grouping = GROUPED
    # The file that says how brokers listen for clients of Kafka's protocol; None: they do not.
    listeners: Path | None = None
    # None for the only broker of a cluster.
    credentials: Credentials | None = None


Front = Callable[[NodeOptions, Broker, Driver, Network], AbstractAsyncContextManager[None]]
"""What else listens while the process serves, for example for clients of Kafka's protocol."""


def _no_front(
    options: NodeOptions, core: Broker, driver: Driver, network: Network
) -> AbstractAsyncContextManager[None]:
    return nullcontext()


@define
class Node:
    """The parts of a running broker process."""

    options: NodeOptions
    front: Front = _no_front
    # What the broker is made of; a test swaps one.
    parts: Parts = field(factory=Parts)
    # Why it halted, empty while it did not.
    reason: str = ""
    # Whether it was asked to stop.
    stopping: bool = False
    _ended: asyncio.Event = field(factory=asyncio.Event)

    async def run(self) -> int:
        """Run until a signal or a halt; returns the exit code."""
        loop, options, clock = asyncio.get_running_loop(), self.options, HostClock()
        loop.add_signal_handler(signal.SIGINT, self._ended.set)
        files_root = options.directory / FILES
        files_root.mkdir(parents=True, exist_ok=True)
        events = EventFile.open(options.directory)

        def heard(event: Event) -> None:
            if event.cause == ZNODE_REFUSED:  # an operator should know
                LOG.error("broker %d refuses a node of ZooKeeper: %s", options.broker, event.detail)
            events.write(event)

        with events.stream:
            core = make_broker(
                options.broker,
                options.cluster,
                RealFiles(files_root),
                self.parts,
                now=clock.now(),
                grouping=options.grouping,
            )
            driver = Driver(
                node=options.broker, core=core, clock=clock, loop=loop, on_event=heard, on_halt=self._halted
            )
            await self._serve(driver, core)
        return HALTED if self.reason not in ("", CONTROLLED_SHUTDOWN) else 0

    async def _serve(self, driver: Driver, core: Broker) -> None:
        options = self.options
        network = Network(options.broker, options.addresses, driver.receive, options.credentials)
        driver.network = network
        zookeeper = driver.zookeeper = ZooKeeperSession(
            options.zookeeper, options.cluster.zookeeper_session_timeout_ms, driver.accept_from_any_thread
        )
        try:
            driver.start()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._asked_to_stop, driver)
            inter_broker_port = await network.listen_to_brokers(*options.addresses[options.broker])
            core.broker_context.port = await network.listen(*options.listen)
            LOG.info(
                "broker %d listens to clients on port %d, to brokers on port %d",
                options.broker,
                core.broker_context.port,
                inter_broker_port,
            )
            async with self.front(options, core, driver, network):
                zookeeper.start()
                await self._ended.wait()
        finally:
            driver.stop()
            zookeeper.stop()
            await network.close()
            LOG.info("broker %d ends", options.broker)

    def _asked_to_stop(self, driver: Driver) -> None:
        if self.stopping:
            self._ended.set()
        self.stopping = True
        driver.accept(StopRequested())

    def _halted(self, reason: str) -> None:
        self.reason = reason
        level = logging.INFO if reason == CONTROLLED_SHUTDOWN else logging.ERROR
        LOG.log(level, "broker %d halts: %s", self.options.broker, reason)
        self._ended.set()


def _peer(text: str) -> tuple[int, Address]:
    broker, _, address = text.partition("=")
    return int(broker), parse_address(address)


def parse_arguments(arguments: Sequence[str] | None = None) -> NodeOptions:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run one broker.")
    parser.add_argument("--broker", type=int, required=True, help="its id")
    parser.add_argument(
        "--peer",
        type=_peer,
        action="append",
        required=True,
        metavar="ID=HOST:PORT",
        help="the inter-broker listener of every broker, this one too",
    )
    parser.add_argument(
        "--listen", type=parse_address, required=True, metavar="HOST:PORT", help="where clients come"
    )
    parser.add_argument(
        "--credentials", type=Path, help="the cluster's file of credentials; needed with other brokers"
    )
    parser.add_argument("--zookeeper", required=True, metavar="HOST:PORT")
    parser.add_argument("--directory", type=Path, required=True, help="for its files")
    parser.add_argument(
        "--jute-maxbuffer",
        type=int,
        default=JUTE_MAXBUFFER,
        metavar="BYTES",
        help="the largest request that the ZooKeeper server takes (its jute.maxbuffer)",
    )
    parser.add_argument("--options", type=Path, help="a JSON file of cluster options")
    parser.add_argument(
        "--listeners", type=Path, help="a JSON file of listeners for clients of Kafka's protocol"
    )
    parsed = parser.parse_args(arguments)
    addresses = dict(parsed.peer)
    if parsed.broker not in addresses:
        parser.error(f"--peer names {sorted(addresses)}, not broker {parsed.broker} itself")
    if parsed.credentials is None and len(addresses) > 1:
        parser.error("expected --credentials, without which other brokers refuse this one, saw none")
    cluster = ClusterOptions(topics=())
    if parsed.options is not None:
        try:
            cluster = msgspec.json.decode(parsed.options.read_bytes(), type=ClusterOptions)
        except (OSError, msgspec.MsgspecError) as error:
            parser.error(f"--options {parsed.options}: {error}")
    return NodeOptions(
        broker=parsed.broker,
        addresses=addresses,
        listen=parsed.listen,
        credentials=None if parsed.credentials is None else read_credentials(parsed.credentials),
        zookeeper=parsed.zookeeper,
        directory=parsed.directory,
        cluster=cluster,
        grouping=Grouping(maximum_bytes=parsed.jute_maxbuffer),
        listeners=parsed.listeners,
    )


async def _run(options: NodeOptions, front: Front, parts: Parts) -> int:
    return await Node(options, front, parts).run()


def main(arguments: Sequence[str] | None = None, front: Front = _no_front, parts: Parts | None = None) -> int:
    """The process. front: what listens in it in addition to the broker itself. parts: what the broker is made
    of, the healthy ones by default."""
    settle()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("fencepost.kazoo").setLevel(logging.WARNING)
    try:
        return asyncio.run(_run(parse_arguments(arguments), front, parts or Parts()))
    except (FencepostError, OSError) as error:
        LOG.error("%s", error)
        return HALTED


if __name__ == "__main__":
    sys.exit(main())
