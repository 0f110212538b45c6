"""server.properties of a small cluster on loopback, with ZooKeeper or KRaft.

Owns the settings. Must not know processes. Three listeners, so that each kind of connection can be broken by
itself: CLIENT, INTER (between brokers) and, with KRaft, CTRL (between controllers).
"""

from collections.abc import Mapping

from attrs import define, frozen

from fencepost.impl.runtime.zookeeper.server import HOST

QUICK: Mapping[str, str] = {
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.initial.task.delay.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.partitions": "1",
    "controlled.shutdown.retry.backoff.ms": "500",
    "controller.socket.timeout.ms": "2000",
}
"""A dead or slow replica is noticed after two seconds; few threads, small buffers. For the answer of a
controller that resigned a leader waits as long as the last one says; until then none of its ISRs changes."""
SESSION_MS = 2_000
"""A dead broker is noticed after this time."""
STEP_MS, START_MS = 1_000, 30_000
"""How long a request between brokers may take where no connection is cut; and from the start of a process to
its registration: three times the slowest start on a quiet machine with two processors."""
PATIENT: Mapping[str, str] = {
    "replica.lag.time.max.ms": "5000",
    "zookeeper.session.timeout.ms": "6000",
    "broker.session.timeout.ms": "6000",
    "controller.quorum.fetch.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "1500",
    "file.delete.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}
"""Time-outs that a machine with other work to do keeps: of runs in which what begins without a cause is a
finding. Nobody elects preferred leaders but on request."""


@define
class Ports:
    """The ports of one broker; 0: none."""

    client: int = 0
    inter: int = 0
    control: int = 0


@frozen
class Names:
    """The hosts that brokers advertise; `{}` is the broker's number."""

    # To clients.
    clients: str = HOST
    # To each other, and as controllers.
    brokers: str = HOST


DIRECT = Names()
"""Every broker is reached where it listens."""


def with_zookeeper(zookeeper: str) -> dict[str, str]:
    """What a broker of the ZooKeeper era wants. zookeeper: HOST:PORT."""
    return {
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "controlled.shutdown.enable": "true",
    }


def with_kraft(broker: int, ports: Mapping[int, Ports], names: Names = DIRECT) -> dict[str, str]:
    """What a node wants that is a broker, a controller, or both, as its ports say. names: of the hosts."""
    mine = ports[broker]
    roles = [role for role, port in (("broker", mine.client), ("controller", mine.control)) if port]
    return {
        "process.roles": ",".join(roles),
        "node.id": str(broker),
        "controller.quorum.voters": ",".join(
            f"{each}@{names.brokers.format(each)}:{ports[each].control}"
            for each in sorted(ports)
            if ports[each].control
        ),
        "controller.listener.names": "CTRL",
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1000",
        "controller.quorum.election.backoff.max.ms": "500",
        "broker.session.timeout.ms": str(SESSION_MS),
        "broker.heartbeat.interval.ms": "500",
    }


def bounds_of(kraft: bool, more: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The settings that bounds follow from, as Inside has them.

    Args:
        kraft: whether there is no ZooKeeper.
        more: settings of the caller, which win.
    """
    said = {
        **QUICK,
        **(with_kraft(1, {1: Ports(client=1, control=1)}) if kraft else with_zookeeper("")),
        **more,
    }

    def number(name: str, default: int) -> int:
        return int(said.get(name, default))

    balances = said.get("auto.leader.rebalance.enable", "true") == "true"
    interval_ms = 1_000 * number("leader.imbalance.check.interval.seconds", 300)
    session = "broker.session.timeout.ms" if kraft else "zookeeper.session.timeout.ms"
    quorum_ms = (
        2 * number("controller.quorum.election.timeout.ms", 1_000)
        + number("controller.quorum.election.backoff.max.ms", 1_000)
        + number("controller.quorum.fetch.timeout.ms", 2_000)
    )
    return {
        "cluster": {
            "zookeeper_session_timeout_ms": number(session, 9_000),
            "replica_lag_time_max_ms": number("replica.lag.time.max.ms", 30_000),
            "replica_fetch_wait_max_ms": number("replica.fetch.wait.max.ms", 500),
            "replica_fetch_backoff_ms": number("replica.fetch.backoff.ms", 1_000),
            "controller_request_timeout_ms": number("controller.socket.timeout.ms", 30_000),
            "leader_imbalance_check_ms": interval_ms * balances,
            "leader_imbalance_interval_ms": interval_ms,
            "controlled_shutdown_retry_backoff_ms": number("controlled.shutdown.retry.backoff.ms", 5_000),
            "log_retention_check_interval_ms": number("log.retention.check.interval.ms", 300_000),
        },
        "real": {"start_ms": START_MS, "quorum_ms": quorum_ms if kraft else 0, "slack_ms": 2 * STEP_MS},
    }


def properties(
    broker: int,
    ports: Mapping[int, Ports],
    log_dirs: str,
    mode: Mapping[str, str],
    more: Mapping[str, str],
    names: Names = DIRECT,
    *,
    advertises_control: bool = False,
) -> str:
    """The text of server.properties. mode: of `with_zookeeper` or `with_kraft`. more: settings of the caller,
    which win. names: of the hosts. advertises_control: whether this version says where controllers are, and
    brokers go there instead of to the quorum's voters (KIP-853)."""
    mine, size = ports[broker], sum(bool(each.client) for each in ports.values())
    copies = str(min(3, size))
    clients, brokers = names.clients.format(broker), names.brokers.format(broker)
    listeners = {"CLIENT": mine.client, "INTER": mine.inter, "CTRL": mine.control}
    advertised = {
        f"CLIENT://{clients}": mine.client,
        f"INTER://{brokers}": mine.inter,
        f"CTRL://{brokers}": mine.control * advertises_control,
    }
    said = ",".join(f"{name}:{port}" for name, port in advertised.items() if port)
    settings = {
        "broker.id": str(broker),
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items() if port),
        **({"inter.broker.listener.name": "INTER"} if mine.client else {}),
        **({"advertised.listeners": said} if said else {}),
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTER:PLAINTEXT,CTRL:PLAINTEXT",
        "log.dirs": log_dirs,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": str(min(2, size)),
        **QUICK,
        **mode,
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
