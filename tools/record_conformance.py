"""Records what Apache Kafka answers to the cases of `fencepost conformance`, into the package.

    python -m tools.record_conformance [--versions 3.9.2 4.4.0] [--kafka-home DIR] [--only PATTERN]

Each version runs as three brokers on loopback (fencepost/systems/apache_kafka), and is asked three times. A
case with different answers is named and left out: its facts say more than Kafka promises, and the case is to
be mended. With --only the other cases keep what was recorded before.
"""

import argparse
import asyncio
import datetime
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from fencepost.conformance.cases import all_cases
from fencepost.conformance.record import RECORDED, Recorded, recorded
from fencepost.conformance.runner import Result, new_run, run_cases
from fencepost.impl.runtime.addresses import parse_address
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release
from fencepost.wire.client import Access

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite recorded.json; releases that are not named stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="+", default=list(RECOMMENDED))
    parser.add_argument("--kafka-home", type=Path)
    parser.add_argument("--only", default="*")
    chosen = parser.parse_args(arguments)
    everything = dict(recorded())
    for version in chosen.versions:
        with tempfile.TemporaryDirectory() as scratch:
            release = Release(version=version, home=chosen.kafka_home)
            ranges, rounds = asked(release, Path(scratch) / "cluster", chosen.only)
        facts, others = steady(rounds)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        kept = {
            name: before
            for name, before in (everything[version].cases if version in everything else {}).items()
            if not fnmatchcase(name, chosen.only)
        }
        if kept:
            today = everything[version].date
        everything[version] = Recorded(
            date=today, brokers=BROKERS, ranges=dict(sorted(ranges.items())), cases=kept | facts
        )
        sys.stdout.write(f"{version}: {len(facts)} cases; not steady: {', '.join(others) or 'none'}\n")
    lines = [
        f"{msgspec.json.encode(version).decode()}:{_one(everything[version])}"
        for version in sorted(everything)
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


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
    main()
