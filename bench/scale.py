"""How a controller fares in a large cluster, against a real ZooKeeper server.

    python bench/scale.py [--quick] [--growth]

    a  shutdown   controlled shutdown of one of 5 brokers, 25,000 topics of one partition with two replicas:
       from the request to the answer, that is
                  leaders moved and followers taken out of ISRs, stored, and every control request on its way
    b  reload     a new controller's context of 100,000 partitions (2,000 topics of 50): from its election
       until it knows every partition's state
    c  fail-over  of 200,000 partitions (4,000 topics of 50), the former controller led a fifth of them and
       followed a fifth: from the election until every
                  partition has a leader and every request is on its way

Three strategies, which are options of the one writer and loader: one request at a time (on a twenty-fifth,
the result times 25, marked ~), single requests pipelined with a window of 10 (Kafka since 1.1), and groups
(ours). `raw`: the operations of the groups, sent by the same client without a controller. Each row is a
process of its own on a server that was filled anew. All strategies must leave the same data and versions
behind; it is asserted, of the first one on its smaller cluster. Told: until every control request is on its
way, encoded; obeyed: until every broker has answered every one. CPU: of the controller's process until the
work is done, its ZooKeeper client included.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve, frozen
from rich.console import Console
from rich.table import Table
from scale_cluster import Cluster, Measured, Orders, digest, populate

from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
from fencepost.impl.runtime.zookeeper.server import ServerOptions, ZooKeeperServer, free_ports
from fencepost.impl.zookeeper.grouping import GROUPED, ONE_AT_A_TIME, PIPELINED, Grouping

HERE = Path(__file__).parent
SAMPLE = 25
"""One request at a time is measured on so much less, and multiplied."""
STRATEGIES: dict[str, Grouping] = {
    "one at a time": ONE_AT_A_TIME, "pipelined": PIPELINED, "grouped": GROUPED,
}  # fmt: skip
SCENARIOS = {
    "shutdown": Cluster(topics=25_000, partitions=1),
    "reload": Cluster(topics=2_000, partitions=50),
    "fail-over": Cluster(topics=4_000, partitions=50, dead=True),
}
GROWTH = (10_000, 25_000, 50_000, 100_000, 200_000)
LONGEST_S = 500.0


@frozen
class Row:
    """A measurement, and what it left behind."""

    measured: Measured
    digest: str


def measure(scenario: str, cluster: Cluster, strategy: str) -> Row:
    """On a fresh server that holds this cluster."""
    with tempfile.TemporaryDirectory() as folder:
        options = ServerOptions(heap_mb=2_048)
        with (
            ZooKeeperServer.start(Path(folder), options) as server,
            BlockingZooKeeper(server.address, 60_000) as zookeeper,
        ):
            populate(zookeeper, cluster)
            if strategy == "raw":
                measured = _run("raw", server.address, _json(cluster), scenario)
            else:
                measured = _controller(server.address, scenario, cluster, STRATEGIES[strategy])
            return Row(measured, digest(zookeeper, cluster))


def _controller(address: str, scenario: str, cluster: Cluster, grouping: Grouping) -> Measured:
    port, *others = free_ports(1 + len(cluster.brokers))
    ports = dict(zip(cluster.brokers, others, strict=True))
    orders = Orders(zookeeper=address, scenario=scenario, grouping=grouping, port=port, ports=ports)
    command = [*_command("brokers"), _json(ports), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as brokers:
        try:
            assert brokers.stdout is not None and brokers.stdout.readline(), "the stand-ins did not begin"
            return _run("controller", _json(orders))
        finally:
            brokers.kill()


def _command(role: str) -> list[str]:
    return [sys.executable, str(HERE / "scale_cluster.py"), role]


def _run(role: str, *arguments: str) -> Measured:
    done = subprocess.run(
        [*_command(role), *arguments], check=True, timeout=LONGEST_S, stdout=subprocess.PIPE
    )
    return msgspec.json.decode(done.stdout, type=Measured)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def smaller(cluster: Cluster, times: int) -> Cluster:
    """The same with so many times fewer topics."""
    return evolve(cluster, topics=max(5, cluster.topics // times))


def strategies(scenario: str, cluster: Cluster, console: Console) -> None:
    """All strategies on one scenario, and what they leave behind."""
    table = Table(title=f"{scenario}: {cluster.topics * cluster.partitions:,} partitions")
    for column in (
        "strategy",
        "seconds",
        "told",
        "obeyed",
        "CPU s",
        "requests to ZooKeeper",
        "most to a broker",
        "peak MB",
    ):
        table.add_column(column, justify="left" if column == "strategy" else "right")
    sample = smaller(cluster, SAMPLE)
    factor = cluster.topics / sample.topics
    small = {name: measure(scenario, sample, name) for name in STRATEGIES}
    rows = {name: measure(scenario, cluster, name) for name in ("pipelined", "grouped", "raw")}
    assert len({row.digest for row in small.values()}) == 1, "the strategies leave different states behind"
    assert rows["pipelined"].digest == rows["grouped"].digest
    single = small["one at a time"].measured
    table.add_row(
        "one at a time ~",
        f"{single.done_s * factor:.2f}",
        f"{single.told_s * factor:.2f}",
        f"{single.obeyed_s * factor:.2f}",
        f"{single.cpu_s * factor:.2f}",
        f"{single.requests * factor:,.0f}",
        str(single.per_broker),
        "",
    )
    for name, row in rows.items():
        one = row.measured
        table.add_row(
            name,
            f"{one.done_s:.2f}",
            f"{one.told_s:.2f}",
            f"{one.obeyed_s:.2f}",
            f"{one.cpu_s:.2f}",
            f"{one.requests:,}",
            str(one.per_broker or ""),
            f"{one.peak_mb:.0f}",
        )
    console.print(table)
    ratio = rows["grouped"].measured.done_s / rows["raw"].measured.done_s
    console.print(f"grouped takes {ratio:.1f} times the raw operations; final state {rows['grouped'].digest}")


def growth(scenario: str, console: Console) -> None:
    """Grouped, from 10,000 to 200,000 partitions."""
    shape = SCENARIOS[scenario]
    table = Table(
        "partitions", "seconds", "microseconds each", "requests", "peak MB", title=f"{scenario}: growth"
    )
    for count in GROWTH:
        one = measure(scenario, evolve(shape, topics=count // shape.partitions), "grouped").measured
        table.add_row(
            f"{count:,}",
            f"{one.done_s:.2f}",
            f"{one.done_s / count * 1e6:.1f}",
            f"{one.requests:,}",
            f"{one.peak_mb:.0f}",
        )
    console.print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scenario", choices=SCENARIOS, action="append", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="clusters a hundred times smaller: does it work?"
    )
    parser.add_argument(
        "--growth", action="store_true", help="also grouped, from 10,000 to 200,000 partitions"
    )
    arguments = parser.parse_args()
    console = Console(width=130)
    for scenario in arguments.scenario or SCENARIOS:
        cluster = smaller(SCENARIOS[scenario], 100 if arguments.quick else 1)
        strategies(scenario, cluster, console)
        if arguments.growth:
            growth(scenario, console)


if __name__ == "__main__":
    main()
