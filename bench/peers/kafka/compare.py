"""Is it Kafka's format? Real brokers and this log read, write, recover and dump each other's directories, and
every difference is told.

    python bench/peers/kafka/compare.py [--work DIR] [--keep]

Needs Maven (which fetches Kafka into its own cache) and a JDK of 17 or later; says so and ends with 0 where
one is missing. Exit code 1 on a difference.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from brokers import Broker, Peer, PeerError, class_path, missing
from cases import TOPICS, Cluster, copy, create, make_single, make_three
from checks import Compared, as_consumed, broker_serves, kafka_reads, line_for_line, made_again, written_again
from our_logs import partitions, write_own
from rich.console import Console
from rich.table import Table

from fencepost.impl.runtime.zookeeper.server import ZooKeeperServer

CONSOLE = Console(width=150)
SHOWN = 5
"""Differences that are printed for each row."""


def theirs(root: Path, peer: Peer, scratch: Path) -> Iterator[Compared]:
    """Directories that real brokers wrote."""
    directories = sorted(
        path
        for case in ("clean", "killed", "three", "three-killed")
        for path in (root / case).glob("broker-*")
    )
    for directory in directories:
        case = f"{directory.parent.name}/{directory.name}"
        yield from line_for_line(case, directory, peer)
        yield from as_consumed(case, directory, scratch)
        yield from made_again(case, directory, scratch, TOPICS)
        if directory.parent.name == "clean":
            yield from written_again(case, directory, scratch, TOPICS)


def ours(root: Path, peer: Peer, zookeeper: str, classes: str, scratch: Path) -> Iterator[Compared]:
    """Directories that this log wrote, read by Kafka's tool and served by a real broker."""
    for clean in (True, False):
        case = "ours-clean" if clean else "ours-torn"
        written = scratch / case
        shutil.rmtree(written, ignore_errors=True)
        write_own(written, stop=clean)
        if clean:
            yield from kafka_reads(case, written, peer)
        broker = Broker(
            number=0,
            data=root / case / "broker-0",
            log=root / f"{case}.log",
            zookeeper=f"{zookeeper}/{case}",
            classes=classes,
        )
        shutil.rmtree(broker.data, ignore_errors=True)
        broker.start()
        for key in partitions(written):
            settings = (
                {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
                if "compacted" in key.topic
                else {}
            )
            create(Cluster(peer, [broker]), key.topic, settings)
        broker.stop()
        identity = {path.name: path.read_bytes() for path in broker.data.glob("meta.properties")}
        shutil.rmtree(broker.data)
        copy(written, broker.data)
        for name, content in identity.items():
            (broker.data / name).write_bytes(content)
        yield from broker_serves(case, broker.data, broker, peer, clean=clean, scratch=scratch)


def main() -> int:
    """All comparisons; 1 if anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="where directories are made (default: a temporary one)")
    parser.add_argument(
        "--keep", action="store_true", help="use the brokers' directories that are already there"
    )
    arguments = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # brokers are stopped on the way out
    why = missing()
    if why:
        CONSOLE.print(f"skipped: {why}")
        return 0
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
        return compare(arguments.work.absolute(), keep=arguments.keep)
    with tempfile.TemporaryDirectory(prefix="fencepost-kafka-") as work:
        return compare(Path(work), keep=False)


def compare(root: Path, *, keep: bool) -> int:
    """Make what is missing, compare, print the table."""
    try:
        classes = class_path(root / "scratch")
        shutil.rmtree(root / "scratch" / "zookeeper", ignore_errors=True)
        with (
            ZooKeeperServer.start(root / "scratch" / "zookeeper") as server,
            Peer.start(classes, root / "peer.log") as peer,
        ):
            if not (keep and (root / "three-killed").exists()):
                with CONSOLE.status("real brokers write"):
                    for case in ("clean", "killed", "three", "three-killed"):
                        shutil.rmtree(root / case, ignore_errors=True)
                    make_single(root, server.address, classes, peer)
                    make_three(root, server.address, classes, peer)
            rows = []
            with CONSOLE.status("comparing") as status:
                for row in chain(
                    theirs(root, peer, root / "scratch"),
                    ours(root, peer, server.address, classes, root / "scratch"),
                ):
                    rows.append(row)
                    status.update(f"compared {row.case}: {row.what}")
    except PeerError as error:
        CONSOLE.print(f"Kafka's side failed: {error}", markup=False)
        return 2
    return show(rows)


def show(rows: list[Compared]) -> int:
    """The table, then the differences."""
    table = Table(title="Fencepost's log and Kafka's")
    for title in ("directory", "compared", "", "differences"):
        table.add_column(title, justify="right" if title == "" else "left")
    for row in rows:
        table.add_row(row.case, row.what, f"{row.count} {row.unit}", str(len(row.differences) or "none"))
    CONSOLE.print(table)
    for row in rows:
        for text in row.differences[:SHOWN]:
            CONSOLE.print(f"{row.case}, {row.what}: {text}", markup=False, highlight=False)
    hollow = [row for row in rows if not row.count]
    for row in hollow:
        CONSOLE.print(f"{row.case}, {row.what}: nothing was compared", markup=False, highlight=False)
    return 1 if hollow or any(row.differences for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
