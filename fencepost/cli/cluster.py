"""`fencepost cluster`: a cluster of real processes on this machine.

Owns the words and the waiting. Must not know how processes or brokers work (impl/runtime).
"""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.console.options import Decorator, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.systems.processes import ClusterStatus, ProcessCluster

POLL_S = 0.5
SOON_S = 10.0
"""How long `kill`, `pause` and `resume` wait until the system shows what they did."""
OFFSETS_PARTITIONS = 8
"""Of __consumer_offsets, which is created when somebody first looks for a coordinator (Kafka: 50)."""

directory_option: Decorator = click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=Path("out/cluster"),
    show_default=True,
    help="Where the cluster keeps everything, and how the other commands find it.",
)
broker_argument: Decorator = click.argument("broker", type=click.IntRange(1), metavar="BROKER")


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from fencepost.impl.runtime.addresses import parse_address

    if value is not None:
        try:
            parse_address(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None
    return value


@click.group("cluster")
def command() -> None:
    """Run the reference brokers as operating-system processes, over TCP, real files and a real ZooKeeper.

    ZooKeeper runs from PySpark's jars unless one is given; `stop`, or Ctrl-C in `up`, leaves no process behind.

    \b
    Examples
      fencepost cluster up --brokers 3
      # from another terminal
      fencepost cluster status
      fencepost cluster kill 2
      fencepost cluster start 2
      # leaders move away first (controlled shutdown)
      fencepost cluster stop 3
    """
    logging.getLogger("fencepost.kazoo").setLevel(logging.CRITICAL)  # lost connections are told by `status`


@command.command("up", short_help="Start it, wait until it is healthy.")
@click.option("--brokers", type=click.IntRange(1, 16), default=3, show_default=True, help="How many brokers.")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    callback=_address,
    help="Use this ZooKeeper server. By default one is started from PySpark's jars.",
)
@directory_option
@click.option(
    "--session-timeout-ms",
    type=click.IntRange(400, 600_000),
    default=6_000,
    show_default=True,
    help="Of the brokers' ZooKeeper sessions: how long a dead broker is taken for a living one.",
)
@click.option("--detach", is_flag=True, help="Come back once it is healthy; it runs on until `cluster stop`.")
@json_option
def up(
    brokers: int,
    zookeeper: str | None,
    directory: Path,
    session_timeout_ms: int,
    detach: bool,
    as_json: bool,
) -> ExitCode:
    """Start ZooKeeper and the brokers, each a process of its own, and print their state once they are healthy.

    Ctrl-C ends all of them, and so does any error on the way; no process is left behind.
    """
    from fencepost.systems.processes import ProcessCluster
    from fencepost.traces.plan import ClusterOptions, GroupOptions

    output = Output(as_json)
    options = ClusterOptions(
        brokers=brokers,
        topics=(),
        zookeeper_session_timeout_ms=session_timeout_ms,
        groups=GroupOptions(offsets_topic_partitions=OFFSETS_PARTITIONS),
    )
    with _closing_terminal_interrupts():
        cluster = ProcessCluster.up(directory, options, zookeeper)
        try:
            _tell(output, cluster.status())
            if detach:
                return ExitCode.NOTHING_FOUND
            output.note("Ctrl-C ends it")
            while ProcessCluster.load(directory).alive():
                time.sleep(POLL_S)
        except BaseException:
            ProcessCluster.load(
                directory
            ).stop()  # as it is now: another command may have started a broker again
            raise
    output.note("all its processes have ended")
    return ExitCode.NOTHING_FOUND


@contextmanager
def _closing_terminal_interrupts() -> Iterator[None]:
    """A terminal that closes is a Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@command.command("status", short_help="What runs, who is the controller, who leads.")
@directory_option
@json_option
def status(directory: Path, as_json: bool) -> ExitCode:
    """Print the state of every process, and what ZooKeeper says of it. Exit code 1 if the cluster is not healthy."""
    seen = _load(directory).status()
    _tell(Output(as_json), seen)
    return ExitCode.NOTHING_FOUND if seen.healthy else ExitCode.FINDINGS


@command.command("stop", short_help="End every process, or one broker by a controlled shutdown.")
@click.argument("broker", type=click.IntRange(1), metavar="[BROKER]", required=False)
@directory_option
def stop(broker: int | None, directory: Path) -> ExitCode:
    """End the brokers, then the ZooKeeper server that was started with them. The data stays.

    With a BROKER: ask that one to stop (SIGTERM). The controller takes its leaders away first, then it closes its logs and ends.
    """
    cluster = _load(directory)
    if broker is not None:
        cluster.shut_down(broker)
        return _wait(cluster, broker, "dead")
    cluster.stop()
    Output().say("stopped")
    return ExitCode.NOTHING_FOUND


@command.command("kill", short_help="End a broker as a crash does.")
@broker_argument
@directory_option
def kill(broker: int, directory: Path) -> ExitCode:
    """SIGKILL: nothing is closed, and ZooKeeper notices after the session time-out."""
    cluster = _load(directory)
    cluster.kill(broker)
    return _wait(cluster, broker, "dead")


@command.command("start", short_help="Start a dead broker again, on its files.")
@broker_argument
@directory_option
def start(broker: int, directory: Path) -> ExitCode:
    """Start the process of a broker that was killed or has halted."""
    cluster = _load(directory)
    cluster.start(broker)
    return _wait(cluster, broker, "running")


@command.command("pause", short_help="Let a broker stand still.")
@broker_argument
@directory_option
def pause(broker: int, directory: Path) -> ExitCode:
    """SIGSTOP: like a long garbage collection. After the session time-out the others go on without it."""
    cluster = _load(directory)
    cluster.pause(broker)
    return _wait(cluster, broker, "paused")


@command.command("resume", short_help="Let a paused broker go on.")
@broker_argument
@directory_option
def resume(broker: int, directory: Path) -> ExitCode:
    """SIGCONT: it wakes up with what it believed when it fell asleep."""
    cluster = _load(directory)
    cluster.resume(broker)
    return _wait(cluster, broker, "running")


def _load(directory: Path) -> "ProcessCluster":
    from fencepost.systems.processes import ProcessCluster

    return ProcessCluster.load(directory)


def _wait(cluster: "ProcessCluster", broker: int, process: str) -> ExitCode:
    """Wait until the process is in this state, and say so."""
    cluster.wait_for_process(broker, process, SOON_S)
    Output().say(f"broker {broker} is {process}")
    return ExitCode.NOTHING_FOUND


def _tell(output: Output, seen: "ClusterStatus") -> None:
    output.say(f"ZooKeeper {seen.zookeeper} {seen.zookeeper_state}")
    rows = table(">broker", ">pid", ">port", "process", "registered", "controller", ">leads")
    for broker in seen.brokers:
        add_row(
            rows,
            broker.broker,
            broker.pid,
            broker.port,
            broker.process,
            _yes(broker.registered),
            _yes(broker.broker == seen.controller),
            broker.leads,
        )
    output.say(rows)
    output.say(f"{seen.partitions} partitions, {seen.leaderless} without a leader")
    as_json: dict[str, Any] = {"healthy": seen.healthy, **attrs.asdict(seen)}
    output.emit(as_json)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
