"""What Apache Kafka's own programs do with our brokers, case by case, for the table of `make measure
NAME=clients`.

    python -m tools.clients_java [CASE ...]

A case is a function of no arguments that answers an Outcome: ok, failed or absent, with the reason. The
libraries (kafka-clients, kafkajs, @platformatic/kafka) are rows of tools/clients.py; here are Kafka's shell
tools with kcat, and Kafka Streams. A case whose toolchain this machine lacks is absent by name. Exit code 1
if one failed.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from attrs import frozen

from fencepost.console.output import Output
from fencepost.traces.errors import FencepostError
from tools.kafka_shell.__main__ import compared
from tools.kafka_shell.jars import VERSIONS, JarsError, missing
from tools.kafka_shell.streams import WrongCountError, word_count


@frozen
class Outcome:
    """What became of a case. outcome: ok, failed or absent."""

    outcome: str
    why: str


def shell_tools(version: str) -> Outcome:
    """Kafka's tools of this version and kcat print what they print with Apache Kafka of this version."""
    if why := missing():
        return Outcome("absent", why)
    rows = compared(version)
    counts = Counter(row.verdict for row in rows)
    wrong = ", ".join(row.step.name for row in rows if row.verdict == "different")
    said = f"{counts['equal']} of {len(rows)} answers are equal, {counts['departure']} are departures"
    return Outcome("failed", f"{said}; different: {wrong}") if wrong else Outcome("ok", said)


def streams(version: str, *, crash: bool) -> Outcome:
    """A word count (at least once) ends with the right counts. crash: of a leader, in the middle."""
    if why := missing():
        return Outcome("absent", why)
    try:
        counts = word_count(version, crash=crash)
    except WrongCountError as error:
        return Outcome("failed", str(error))
    return Outcome("ok", f"{sum(counts.values()):,} words, {len(counts)} different ones")


CASES: Mapping[str, Callable[[], Outcome]] = {
    **{f"shell tools {version}": partial(shell_tools, version) for version in VERSIONS},
    **{f"Kafka Streams {version}": partial(streams, version, crash=False) for version in VERSIONS},
    **{
        f"Kafka Streams {version}, a leader crashes": partial(streams, version, crash=True)
        for version in VERSIONS
    },
}
"""By stable names."""


def outcome_of(case: Callable[[], Outcome]) -> Outcome:
    """Run a case; what the machine could not do is a failure with its sentence."""
    try:
        return case()
    except (FencepostError, JarsError) as error:
        return Outcome("failed", str(error))


def main() -> int:
    """Run all cases, or those that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="names; all by default", metavar="CASE")
    options = parser.parse_args()
    output, failed = Output(), False
    for name in options.cases or CASES:
        if name not in CASES:
            parser.error(f"expected one of {', '.join(CASES)}, saw {name!r}")
        result = outcome_of(CASES[name])
        output.say(f"{name}: {result.outcome}: {result.why}")
        failed = failed or result.outcome == "failed"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
