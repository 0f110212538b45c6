"""Records what Apache Kafka answers to the cases of `fencepost conformance`, into the package.

    python -m tools.record_conformance [VERSION ...] [--kafka-home DIR] [--only PATTERN]

Each version runs as three brokers on loopback (fencepost/systems/apache_kafka), and is asked three times. A
case with different answers is named and left out: its facts say more than Kafka promises, and the case is to
be mended. With --only the other cases keep what was recorded before.
"""

import asyncio
import datetime
import tempfile
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click

from fencepost.conformance.cases import all_cases
from fencepost.conformance.record import RECORDED, Recorded, recorded
from fencepost.conformance.runner import Result, new_run, run_cases
from fencepost.console.output import Output
from fencepost.impl.runtime.addresses import parse_address
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release
from fencepost.traces.errors import ExitCode
from fencepost.wire.client import Access
from tools import program
from tools.program import Done

TIMES = 3
BROKERS = 3
TARGET = Path(__file__).parents[1] / "fencepost" / "conformance" / RECORDED


def asked(
    release: Release, directory: Path, only: str = "*"
) -> tuple[dict[int, tuple[int, int]], list[list[Result]]]:
    """What it advertises, and the results of each time.

    Args:
        release: of Apache Kafka.
        directory: for its files.
        only: a pattern of the names of cases.
    """
    cases = [each for each in all_cases() if fnmatchcase(each.name, only)]
    with ApacheKafka(directory=directory, release=release, size=BROKERS) as cluster:
        bootstrap = tuple(parse_address(each) for each in cluster.bootstrap_servers().split(","))
        rounds = []
        for _ in range(TIMES):
            run = new_run(bootstrap, Access())
            rounds.append(asyncio.run(run_cases(run, cases)))
        return run.ranges, rounds


def steady(rounds: list[list[Result]]) -> tuple[dict[str, Any], list[str]]:
    """The facts that were the same each time, and the names of the other cases."""
    facts: dict[str, Any] = {}
    others = []
    for several in zip(*rounds, strict=True):
        name = several[0].case.name
        if any(result.skipped for result in several):
            continue
        if all(result.facts == several[0].facts for result in several):
            facts[name] = several[0].facts
        else:
            others.append(name)
    return facts, others


def record(version: str, everything: dict[str, Recorded], kafka_home: Path | None, only: str) -> Done:
    """Ask a release, and write its answers in the place of those of before. everything: that is recorded, by
    version."""
    with tempfile.TemporaryDirectory() as scratch:
        release = Release(version=version, home=kafka_home)
        ranges, rounds = asked(release, Path(scratch) / "cluster", only)
    facts, others = steady(rounds)
    before = everything.get(version)
    kept = {} if before is None else before.cases
    kept = {name: answers for name, answers in kept.items() if not fnmatchcase(name, only)}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    everything[version] = Recorded(
        date=before.date if before is not None and kept else today,
        brokers=BROKERS,
        ranges=dict(sorted(ranges.items())),
        cases=kept | facts,
    )
    lines = [f"{msgspec.json.encode(name).decode()}:{_one(one)}" for name, one in sorted(everything.items())]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return Done(case=version, why=f"{len(facts)} cases; not steady: {', '.join(others) or 'none'}")


@click.command("record_conformance", help=__doc__)
@click.argument("versions", nargs=-1)
@click.option("--kafka-home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="*", show_default=True, metavar="PATTERN", help="Names of cases.")
def command(versions: tuple[str, ...], kafka_home: Path | None, only: str) -> ExitCode:
    """Rewrite recorded.json; releases that are not named stay."""
    everything = dict(recorded())
    cases = {
        version: partial(record, version, everything, kafka_home, only) for version in versions or RECOMMENDED
    }
    return program.run_cases(cases, (), Output())


def _one(release: Recorded) -> str:
    """A case a line, so that a change shows as one."""
    head = msgspec.json.encode({"date": release.date, "brokers": release.brokers}).decode()[1:-1]
    ranges = msgspec.json.encode(release.ranges).decode()
    cases = ",\n".join(
        f"{msgspec.json.encode(name).decode()}:{msgspec.json.encode(facts).decode()}"
        for name, facts in sorted(release.cases.items())
    )
    return f'{{{head},\n"ranges":{ranges},\n"cases":{{\n{cases}\n}}}}'


if __name__ == "__main__":
    program.run(command, "record_conformance")
