"""A Kafka for tests: brokers in this process, or in a child of it, that any client connects to and that fail
where and when the test says.

    import fencepost.kafka

    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("orders", partitions=3)
        ...  # a producer with bootstrap_servers=kafka.bootstrap_servers
        kafka.crash(kafka.leader("orders"))
        ...
        assert kafka.verdict().decision == "ok"

docs/how-to/embedded.md has the whole story.
"""

from pathlib import Path
from typing import Any

from fencepost.kafka.handle import KafkaCluster
from fencepost.kafka.here import start_here
from fencepost.kafka.hosted import MOST_EVENTS, Settings
from fencepost.systems.embedded import FREE, NEAR, quick_options
from fencepost.traces.errors import PlanError
from fencepost.traces.plan import BudgetOptions, Plan

__all__ = ["KafkaCluster", "cluster"]


def cluster(
    *,
    brokers: int = 3,
    process: bool = False,
    port: int = 0,
    directory: Path | str | None = None,
    seed: int = 0,
    bugs: tuple[str, ...] = (),
    most_events: int = MOST_EVENTS,
    listen: bool = True,
    **options: Any,
) -> KafkaCluster:
    """Start a cluster. It accepts connections when this returns.

    Parameters:
      brokers: how many, 1 to 16.
      process: run the brokers in a child process, not in a thread of this one.
      port: of the first broker on 127.0.0.1; the others take the next ones. 0: any free ports.
      directory: a folder for the brokers' files. None: simulated disks, in memory.
      seed: of what happens by chance (how long a reconnection waits, what a power loss leaves).
      bugs: planted bugs, by their ids (docs/spec/bugs.md).
      most_events: bound of the record. Beyond it nothing more is recorded, and the verdict is on the run up
        to there.
      listen: whether sockets are opened.
      options: of the cluster, by their names in plans (docs/reference/plans.md), for example
        zookeeper_session_timeout_ms=6_000.

    Returns: a handle. Close it, or use it as a context manager.
    Raises: FencepostError if it cannot start (a port is taken, an option is unknown).
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise PlanError(expected="a whole number from 0 on", seen=repr(seed)[:80], where="cluster: seed")
    settings = Settings(
        plan=Plan(
            seed=seed,
            profile="embedded",
            cluster=quick_options(brokers, bugs=tuple(bugs), **options),
            network=NEAR,
            disk=FREE,
            budget=BudgetOptions(keep_acknowledged=True, outside="allow"),
        ),
        directory=None if directory is None else str(Path(directory).absolute()),
        port=port,
        most_events=most_events,
        listen=listen,
    )
    if process:
        from fencepost.kafka.child import start_in_child

        return start_in_child(settings)
    return start_here(settings)
