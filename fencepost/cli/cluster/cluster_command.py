"""`fencepost cluster`: a cluster of real processes on this machine.

Owns messages and waiting. Must not know how processes or brokers work (impl/runtime).
"""

import logging
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.cli.cluster import elect, groups_command, kafka, reassign, topics_command
from fencepost.cli.cluster.client import consume, produce
from fencepost.cli.cluster.client.client_options import cluster_directory
from fencepost.cli.cluster.waiting import serve
from fencepost.cli.cluster.zookeeper import zookeeper_option
from fencepost.console.options import WHOLE_FILE_THAT_IS, Decorator, default_option, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode, MissingExtraError

if TYPE_CHECKING:
    from fencepost.systems.processes import ClusterStatus, ListenerOptions, ProcessCluster

SOON_S = 10.0
"""How long `kill`, `pause` and `resume` wait until the system shows their effect."""
OFFSETS_PARTITIONS = 8
"""Partitions of __consumer_offsets, which is created when a client first looks for a coordinator (Kafka:
50)."""
TRANSACTION_PARTITIONS = 4
"""Partitions of __transaction_state, as above (Kafka: 50)."""

broker_argument: Decorator = click.argument("broker", type=click.IntRange(1), metavar="BROKER")


@click.group("cluster")
def command() -> None:
    """Run the reference brokers as operating-system processes, over TCP, real files and a real ZooKeeper.

    ZooKeeper runs from PySpark's jars unless one is given. `stop`, or Ctrl-C in `up`, ends all
    processes.

    \b
    Examples
      fencepost cluster up --brokers 3
      # without processes, ready at once; Ctrl-C judges what was recorded
      fencepost cluster up --embedded --kafka-port 9092
      # from another terminal
      fencepost cluster status
      fencepost cluster kill 2
      fencepost cluster start 2
      # leaders move away first (controlled shutdown)
      fencepost cluster stop 3
    """
    logging.getLogger("fencepost.kazoo").setLevel(logging.CRITICAL)  # `status` reports lost connections


@command.command("up", short_help="Start it, wait until it is healthy.")
@default_option("--brokers", type=click.IntRange(1, 16), default=3, help="How many brokers.")
@zookeeper_option("Use this ZooKeeper server. By default one is started from PySpark's jars.")
@cluster_directory
@default_option(
    "--session-timeout-ms",
    type=click.IntRange(400, 600_000),
    default=6_000,
    help="Time-out of the brokers' ZooKeeper sessions: a dead broker counts as alive for this long.",
)
@click.option(
    "--kafka-port",
    type=click.IntRange(0, 65_519),
    default=0,
    show_default="free ones",
    help="Port of broker 1 for clients of Kafka's protocol; the others take the ports after it.",
)
@click.option(
    "--tls",
    type=WHOLE_FILE_THAT_IS,
    nargs=2,
    metavar="CERTIFICATE KEY",
    help="Clients of Kafka's protocol use TLS, with this certificate chain and private key (PEM).",
)
@click.option(
    "--users",
    type=WHOLE_FILE_THAT_IS,
    metavar="FILE",
    help="Clients of Kafka's protocol log in (SASL/PLAIN). The file has a line NAME:PASSWORD for each.",
)
@default_option(
    "--transaction-version",
    type=click.IntRange(0, 2),
    default=2,
    help="Kafka's feature transaction.version (KIP-890); 0: no transactions.",
)
@click.option("--detach", is_flag=True, help="Return once it is healthy; it runs until `cluster stop`.")
@click.option(
    "--embedded",
    is_flag=True,
    help="Without processes and ZooKeeper server: the simulated cluster, on the wall clock, ready at once "
    "(docs/how-to/embedded.md).",
)
@click.option(
    "--control",
    type=click.IntRange(0, 65_535),
    help="With --embedded: a control port for tests in any language, HTTP and JSON on 127.0.0.1; 0 for any "
    "free one (docs/reference/control.md).",
)
@json_option
@click.pass_context
def up(
    context: click.Context,
    brokers: int,
    zookeeper: str | None,
    directory: Path,
    session_timeout_ms: int,
    kafka_port: int,
    tls: tuple[Path, Path] | None,
    users: Path | None,
    transaction_version: int,
    detach: bool,
    embedded: bool,
    control: int | None,
    output: Output,
) -> ExitCode:
    """Start ZooKeeper and the brokers, each in its own process, and print their state once they are
    healthy.

    Ctrl-C ends all processes, and so does any error during the start.

    \b
    Examples
      fencepost cluster up --brokers 3
      # for scripts: return when it is healthy
      fencepost cluster up --detach --json
      fencepost cluster up --embedded --kafka-port 9092
    """
    from fencepost.traces.plan import ClusterOptions, GroupOptions, TransactionOptions

    transactions = TransactionOptions(
        state_topic_partitions=TRANSACTION_PARTITIONS if transaction_version else 0,
        version=max(1, transaction_version),
    )
    if embedded:
        from fencepost.cli.cluster.embedded import up_embedded

        for_processes = {"--zookeeper": zookeeper, "--tls": tls, "--users": users, "--detach": detach}
        if wrong := next((option for option, given in for_processes.items() if given), ""):
            raise click.UsageError(f"{wrong} is for a cluster of processes, not with --embedded", context)
        with _closing_terminal_interrupts():
            return up_embedded(
                output,
                brokers=brokers,
                port=kafka_port,
                directory=directory if _is_given(context, "directory") else None,
                session_timeout_ms=session_timeout_ms if _is_given(context, "session_timeout_ms") else None,
                control=control,
                control_directory=directory,
                transactions=transactions,
            )
    if control is not None:
        raise click.UsageError("--control is for --embedded", context)
    from fencepost.systems.processes import ProcessCluster

    program, listeners = _kafka(output, brokers, kafka_port, tls, users)
    options = ClusterOptions(
        brokers=brokers,
        topics=(),
        zookeeper_session_timeout_ms=session_timeout_ms,
        groups=GroupOptions(offsets_topic_partitions=OFFSETS_PARTITIONS),
        transactions=transactions,
    )
    with _closing_terminal_interrupts():
        cluster = ProcessCluster.up(
            directory, options, zookeeper, program, listeners, dies_with_us=not detach
        )

        def now() -> ProcessCluster:  # another command may have restarted a broker
            return ProcessCluster.load(directory)

        return serve(
            output,
            lambda: _tell(output, cluster.status()),
            lambda: now().alive(),
            lambda: now().stop(),
            detach=detach,
            notice=lambda: _without_zookeeper(now()),
        )


def _without_zookeeper(cluster: "ProcessCluster") -> str:
    """What is said where its ZooKeeper has died."""
    if not cluster.zookeeper_died():
        return ""
    where = shlex.quote(str(cluster.directory))
    return (
        f"ZooKeeper {cluster.state.zookeeper} has died: brokers elect no leaders; `fencepost cluster "
        f"start-zookeeper --directory {where}` starts it again with its data"
    )


def _is_given(context: click.Context, name: str) -> bool:
    """Whether the caller named this option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _kafka(
    output: Output, brokers: int, port: int, tls: tuple[Path, Path] | None, users: Path | None
) -> "tuple[str, ListenerOptions | None]":
    """The program of each broker, and how it listens for clients of Kafka's protocol; None if the library
    for its messages is not installed."""
    from fencepost.systems.processes import NODE, ListenerOptions

    try:
        from fencepost.systems.broker_process import PROGRAM
    except MissingExtraError as missing:
        if port or tls or users:
            raise
        output.note(f"clients of Kafka's protocol cannot connect: {missing.hint}")
        return NODE, None
    certificate, key = map(str, tls) if tls else ("", "")
    listeners = ListenerOptions(
        ports={broker: port + broker - 1 for broker in range(1, brokers + 1)} if port else {},
        certificate=certificate,
        key=key,
        users=None if users is None else _users(users),
    )
    return PROGRAM, listeners


def _users(path: Path) -> dict[str, str]:
    """Names and passwords. Empty lines and lines that begin with # are ignored."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not (name and colon and password):
            raise click.BadParameter(f"{path}, line {number}: expected NAME:PASSWORD", param_hint="--users")
        found[name] = password
    if not found:
        raise click.BadParameter(f"{path}: expected at least one line NAME:PASSWORD", param_hint="--users")
    return found


@contextmanager
def _closing_terminal_interrupts() -> Iterator[None]:
    """Treat the closing of a terminal as a Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@command.command("status", short_help="Processes, controller and leaders.")
@cluster_directory
@json_option
def status(directory: Path, output: Output) -> ExitCode:
    """Print the state of every process and of ZooKeeper. Exit code 1 if the cluster is not
    healthy.

    \b
    Examples
      fencepost cluster status
      fencepost cluster status --json
    """
    seen = _load(directory).status()
    _tell(output, seen)
    return ExitCode.NOTHING_FOUND if seen.healthy else ExitCode.FINDINGS


@command.command("stop", short_help="End every process, or one broker by a controlled shutdown.")
@click.argument("broker", type=click.IntRange(1), metavar="[BROKER]", required=False)
@cluster_directory
@json_option
def stop(broker: int | None, directory: Path, output: Output) -> ExitCode:
    """End the brokers, then the ZooKeeper server that was started with them. The data stays.

    With a BROKER: ask only that one to stop (SIGTERM). The controller moves its leaders away first; then it
    closes its logs and ends.

    \b
    Examples
      fencepost cluster stop
      # one broker; its leaders move away first
      fencepost cluster stop 3
    """
    cluster = _load(directory)
    if broker is not None:
        cluster.shut_down(broker)
        return _wait(cluster, broker, "dead", output)
    cluster.stop()
    output.say("stopped")
    return output.end(ExitCode.NOTHING_FOUND, {"stopped": True})


@command.command("start-zookeeper", short_help="Start a ZooKeeper that died, on its data.")
@cluster_directory
@json_option
def start_zookeeper(directory: Path, output: Output) -> ExitCode:
    """Start the ZooKeeper server of `cluster up` again after it has died, on its data and its port. The
    brokers come back by themselves.

    \b
    Examples
      fencepost cluster start-zookeeper
    """
    cluster = _load(directory)
    cluster.start_zookeeper()
    output.say(f"ZooKeeper {cluster.state.zookeeper} answers")
    return output.end(ExitCode.NOTHING_FOUND, {"zookeeper": cluster.state.zookeeper})


def _verb(name: str, process: str, short_help: str, says: str) -> None:
    """A command that does something to the process of one broker, and waits until that shows. process: its
    state then; short_help, says: the help."""

    @command.command(
        name, short_help=short_help, help=f"{says}\n\n\b\nExamples\n  fencepost cluster {name} 2"
    )
    @broker_argument
    @cluster_directory
    @json_option
    def verb(broker: int, directory: Path, output: Output) -> ExitCode:
        cluster = _load(directory)
        getattr(cluster, name)(broker)
        return _wait(cluster, broker, process, output)


for name, process, short_help, says in (
    (
        *("kill", "dead", "End a broker as a crash does."),
        "SIGKILL: nothing is closed, and ZooKeeper notices after the session time-out.",
    ),
    (
        *("start", "running", "Start a dead broker again, on its files."),
        "Start the process of a broker that was killed or has halted.",
    ),
    (
        *("pause", "paused", "Suspend a broker."),
        "SIGSTOP: like a long garbage collection. After the session time-out the others continue without it.",
    ),
    (
        *("resume", "running", "Resume a paused broker."),
        "SIGCONT: the broker resumes with the state that it had when it was paused.",
    ),
):
    _verb(name, process, short_help, says)


def _load(directory: Path) -> "ProcessCluster":
    from fencepost.systems.processes import ProcessCluster

    return ProcessCluster.load(directory)


def _wait(cluster: "ProcessCluster", broker: int, process: str, output: Output) -> ExitCode:
    """Wait until the process is in this state, and report it."""
    cluster.wait_for_process(broker, process, SOON_S)
    output.say(f"broker {broker} is {process}")
    return output.end(ExitCode.NOTHING_FOUND, {"broker": broker, "process": process})


def _tell(output: Output, seen: "ClusterStatus") -> None:
    output.say(f"ZooKeeper {seen.zookeeper} {seen.zookeeper_state}")
    rows = table(">broker", ">pid", ">port", "process", "registered", "controller", ">leads", "Kafka clients")
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
            broker.kafka,
        )
    output.say(rows)
    output.say(f"{seen.partitions} partitions, {seen.leaderless} without a leader")
    if seen.bootstrap_servers:
        output.say(f"bootstrap.servers={seen.bootstrap_servers} security.protocol={seen.security_protocol}")
    fields: dict[str, Any] = {
        "healthy": seen.healthy,
        "bootstrap_servers": seen.bootstrap_servers,
        **attrs.asdict(seen),
    }
    output.emit(fields)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


for below in (topics_command, produce, consume, groups_command, reassign, elect, kafka):
    command.add_command(below.command)
