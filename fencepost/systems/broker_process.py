"""One broker as one operating-system process that clients of Kafka's protocol can talk to: `python -m
fencepost.systems.broker_process --broker 1 ...`.

Owns the assembly: impl/runtime's process with wire's listener in front of its core. Must not know other
processes, or the protocol.
"""

import ssl
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from fencepost.impl.broker.broker import Broker
from fencepost.impl.runtime.core_driver import Driver
from fencepost.impl.runtime.network import Network
from fencepost.proxy.faults import FaultHook, RequestFaults, Struck, parse
from fencepost.systems import node
from fencepost.systems.node import NodeOptions
from fencepost.systems.processes import ListenerOptions
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.handling import BrokerView
from fencepost.wire.server import Security, Server

PROGRAM = "fencepost.systems.broker_process"
"""What systems/processes.py is given to run."""


@asynccontextmanager
async def listening(
    options: NodeOptions, core: Broker, driver: Driver, network: Network
) -> AsyncIterator[None]:
    """Listen for clients of Kafka's protocol during the block. options: of the process; core: the broker;
    driver: runs it; network: carries its answers. Raises EnvironmentError_ if it cannot listen."""
    if options.listeners is None:
        yield
        return
    listeners = read_listeners(options.listeners)
    server = Server(
        broker=BrokerView(
            node=options.broker,
            addresses=lambda: {broker: (listeners.host, port) for broker, port in listeners.ports.items()},
            transactions=core.broker_context.options.has_transactions,
            transaction_version=core.broker_context.options.transactions.version,
        ),
        submit=driver.receive,
        ready=lambda: (
            not driver.halted and core.broker_context.broker_epoch >= 0 and not core.shutdown.shutting_down
        ),
        security=Security(tls=_tls(listeners), users=listeners.users),
        hook=_hook(options.broker, listeners),
    )
    network.answer_wire = server.answer
    port = await server.listen(listeners.host, listeners.ports[options.broker])
    node.LOG.info(
        "broker %d listens for Kafka's clients on port %d, %s",
        options.broker,
        port,
        listeners.security_protocol,
    )
    try:
        yield
    finally:
        await server.close()


def _hook(broker: int, listeners: ListenerOptions) -> FaultHook | None:
    """The hook for the request faults that this process starts with; None without any. Raises PlanError."""
    if not listeners.request_faults:
        return None
    faults = RequestFaults(seed=listeners.fault_seed, record=_struck)
    for text in listeners.request_faults:
        faults.arm(parse(text), time.monotonic_ns())
    return FaultHook(faults, broker, time.monotonic_ns)


def _struck(struck: Struck) -> None:
    keys = ", ".join(str(key) for key in struck.partitions)
    node.LOG.info(
        "request fault: %s hit %s %s of client %s", struck.fault, struck.api, keys, struck.client or "(none)"
    )


def read_listeners(path: Path) -> ListenerOptions:
    """What listeners.json says. Raises EnvironmentError_."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ListenerOptions)
    except (OSError, msgspec.MsgspecError) as error:
        raise EnvironmentError_(expected="a file of listeners", seen=str(error), where=str(path)) from None


def _tls(listeners: ListenerOptions) -> ssl.SSLContext | None:
    if not listeners.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listeners.certificate, listeners.key or None)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentError_(
            expected="a certificate and its private key in PEM",
            seen=str(error),
            where=f"{listeners.certificate}, {listeners.key}",
        ) from None
    return context


def main(arguments: Sequence[str] | None = None) -> int:
    """The process."""
    return node.main(arguments, listening)


if __name__ == "__main__":
    sys.exit(main())
