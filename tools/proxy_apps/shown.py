"""Findings in current releases of client libraries, shown against Apache Kafka through the proxy, without our
brokers: docs/results/clients.md (`make measure NAME=clients`).

    python -m tools.proxy_apps.shown [NAME[@VERSION] ...] [--docs docs/results/clients.md] [--runs FOLDER]

Each is a script in docs/findings/shown that only uses the library; its lines `fault:` are for the proxy. With
a VERSION another release of the library is run, and no row is written: `Known.since` says what that gave.
One that this machine cannot run is skipped by name. Exit code 1 if a script could not be run.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec
import rich_click as click
from attrs import frozen

from fencepost.console.output import Output
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from fencepost.torture.building import Built, build, missing
from fencepost.torture.campaign import FINDINGS, RUNS
from fencepost.torture.libraries import wanted
from fencepost.traces.errors import ExitCode, FencepostError
from tools import program
from tools.kafka_programs import jars
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done, run_cases
from tools.proxy_apps.__main__ import proxied

NEWEST = "4.4.0"
SCRIPTS = Path("docs/findings/shown")
MARK = "<!-- measured by make measure NAME=clients -->"
SEEDS = "<!-- by seed -->"
RUN_S = 600
SEEN = 10
"""Exit code of a script whose library shows the finding: one that cannot run ends with another."""

RELEASES: Mapping[str, str] = {
    "aiokafka": "aiokafka@0.14.0",
    "franz-go": "franz-go@1.22.2",
    "kafka-clients": "kafka-clients@4.4.0",
    "kafka-go": "kafka-go@0.4.51",
    "kafka-python": "kafka-python@3.0.12",
    "kafkajs": "kafkajs@2.2.4",
    "librdkafka": "confluent-kafka@2.16.1",
    "platformatic-kafka": "platformatic-kafka@2.12.1",
}
"""Drivers by the library that their build has, in the releases that the findings were shown with."""

BREAKS: Mapping[str, str] = {
    "librdkafka-implicit-ack": "an acknowledged record is not in the log",
    "librdkafka-timed-out-elsewhere": "a record is in the log twice, idempotence is on",
    "kafka-clients-rewritten-sequences": "a record is in the log twice, idempotence is on",
    "kafkajs-lost-answer": "an acknowledged record is not in the log, another is there twice",
    "kafkajs-aborted-order": "a record of an aborted transaction is delivered, read_committed",
    "kafkajs-silent-connection": "a send is tried for ever on a connection that is silent",
    "kafkajs-unknown-partition": "a record of a partition that is new is acknowledged and never sent",
    "kafkajs-shared-broker": "records are acknowledged and never sent",
    "kafkajs-unsent-commit": "a commit is acknowledged and never made",
    "kafkajs-two-fetchers": "records are delivered again after later ones, without a rebalance",
    "kafkajs-left-member": "a consumer that was closed stays a member",
    "franz-go-transaction-sequences": "a committed transaction is not in the log",
    "kafka-go-cached-error": "sends fail without a retry after one error of Metadata",
    "kafka-go-false-end": "a reader that is open says that it is closed",
    "kafka-go-closed-connection": "every attempt of a send takes a connection that was closed long ago",
    "kafka-go-late-commit": "a member commits records of a partition that it has lost",
    "kafka-python-expired-batch": "nothing is sent any more, and no send is answered",
    "kafka-python-pending-join": "a consumer never comes back from a rebalance",
    "kafka-python-request-time-out": "after one request without an answer every send fails",
    "kafka-python-dropped-request": "a commit never returns",
    "aiokafka-close-coordinator": "a consumer never stops",
    "aiokafka-stale-leader": "nothing is read until metadata are five minutes old",
    "librdkafka-close-commits": "a closed consumer commits what it never delivered",
    "librdkafka-offset-fetch": "nothing more is read",
    "librdkafka-late-list-offsets": "a consumer reads again what it has read, or leaves records out",
    "platformatic-kafka-transactional-id": "a transactional id can be used once only",
    "platformatic-kafka-other-partition": "a record is written to another partition",
    "platformatic-kafka-silent-member": "a group waits for a member that commits and never joins",
}
"""What each finding's library breaks, in words."""


@frozen(kw_only=True)
class Known:
    """What else there is to say of a finding."""

    # The first release that was seen to have it, and " or before" if none before it was seen without.
    since: str = ""
    # Where it was reported before; empty: not found.
    reported: str = ""
    # The release of Apache Kafka, and how many brokers.
    broker: str = NEWEST
    size: int = 1


KNOWN: Mapping[str, Known] = {
    "librdkafka-implicit-ack": Known(since="1.5.2 or before"),
    "librdkafka-timed-out-elsewhere": Known(since="1.9.2 or before", reported="#4953"),
    "kafka-clients-rewritten-sequences": Known(since="2.5.0", reported="KAFKA-14034, KAFKA-14397, closed"),
    "kafkajs-lost-answer": Known(since="2.0.0 or before"),
    "kafkajs-aborted-order": Known(since="1.8.0 or before"),
    "kafkajs-silent-connection": Known(since="1.16.0 or before", reported="#919, #1783, open"),
    "kafkajs-unknown-partition": Known(since="1.13.0 or before"),
    "kafkajs-shared-broker": Known(since="1.16.0 or before", size=3),
    "kafkajs-unsent-commit": Known(since="1.16.0 or before"),
    "kafkajs-two-fetchers": Known(since="2.0.0", size=3),
    "franz-go-transaction-sequences": Known(
        since="1.7.0 or before",
        reported="#1484, without transactions",
        broker="3.9.2",  # transactions of version 1: those of version 2 have an epoch each
    ),
    "kafka-go-cached-error": Known(since="0.4.10 or before", reported="#1288, open"),
    "kafka-go-false-end": Known(since="0.4.48 or before", reported="#1222, open"),
    "kafka-go-closed-connection": Known(since="0.4.38 or before", reported="close: #345, #1352"),
    "kafka-go-late-commit": Known(since="0.4.48 or before", reported="#1308, open"),
    "kafka-python-expired-batch": Known(since="3.0.12"),
    "kafka-python-request-time-out": Known(since="3.0.0"),
    "kafka-python-dropped-request": Known(since="2.2.0 or before"),
    "aiokafka-close-coordinator": Known(since="0.9.0 or before"),
    "aiokafka-stale-leader": Known(since="0.9.0 or before"),
    "librdkafka-close-commits": Known(since="1.9.2 or before", reported="#3400, closed"),
    "librdkafka-offset-fetch": Known(since="1.9.2 or before", reported="#5586, open"),
    "librdkafka-late-list-offsets": Known(since="1.9.2 or before"),
    "platformatic-kafka-transactional-id": Known(since="1.31.0 or before"),
    "platformatic-kafka-other-partition": Known(since="1.31.0 or before"),
    "platformatic-kafka-silent-member": Known(reported="close: #374"),
}
"""Of findings of which there is more to say."""


def library_of(name: str, version: str = "") -> str:
    """NAME@VERSION of the driver whose build has a finding's library.

    Args:
        name: of the finding; it begins with one of RELEASES.
        version: another release than that one.
    """
    driver = next(driver for library, driver in RELEASES.items() if name.startswith(library))
    return f"{driver.partition('@')[0]}@{version}" if version else driver


def faults_of(script: Path) -> list[str]:
    """What the proxy does, from the script's own lines.

    Args:
        script: of a finding.
    """
    found = re.findall(r"^\W*fault: (.+)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise FencepostError(expected="a line `fault: ...`", seen="none", where=str(script))
    return [one.strip() for one in found]


def command_of(built: Built, script: Path, folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """How a script runs, and the environment that it needs.

    Args:
        built: the driver whose library it uses.
        script: of the finding.
        folder: an empty one, for what a language wants to have next to a program.
    """
    if script.suffix == ".py":
        return (sys.executable, str(script)), {"PYTHONPATH": str(built.folder / "site")}
    if script.suffix == ".cjs":
        return ("node", str(script)), {"NODE_PATH": str(built.folder / "node_modules")}
    if script.suffix == ".java":
        return ("java", "-cp", f"{built.folder / 'jars'}/*", str(script)), {}
    for name in ("go.mod", "go.sum"):
        shutil.copy(built.folder / name, folder)
    shutil.copy(script, folder / "main.go")
    subprocess.run(("go", "build", "-C", str(folder), "-o", "program", "."), check=True)
    return (str(folder / "program"),), {}


def shown(name: str, library: str, known: Known, folder: Path) -> tuple[str, str]:
    """The outcome of a finding's script, and its last lines; `seen` if the library shows it.

    Args:
        name: of the finding.
        library: NAME@VERSION of its driver.
        known: of the finding.
        folder: for the brokers' files.
    """
    (script,) = SCRIPTS.resolve().glob(f"{name}.*")
    built = build(wanted(library))
    own = folder / name
    shutil.rmtree(own, ignore_errors=True)
    (own / "program").mkdir(parents=True)
    command, environment = command_of(built, script, own / "program")
    with (
        ApacheKafka(directory=own / "kafka", release=Release(version=known.broker), size=known.size) as kafka,
        proxied(kafka.bootstrap_servers(), own / "live", *faults_of(script)) as through,
    ):
        ended = subprocess.run(
            (*command, through.bootstrap_servers),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    said = ended.stdout.strip() or ended.stderr.strip()[-300:]
    return {0: "not seen", SEEN: "seen"}.get(ended.returncode, "failed"), said


def line_of(name: str, *cells: str) -> str:
    """The finding's row.

    Args:
        name: of the finding.
        cells: all but the last: what was run and seen.
    """
    known = KNOWN.get(name, Known())
    return f"| {' | '.join((*cells, '; '.join(filter(None, (known.since, known.reported)))))} |"


def seeds_of(folder: Path) -> str:
    """The row of a library: in how many of its seeds torture found what, and how often the first of them
    showed it again.

    Args:
        folder: of `fencepost torture --out`.
    """
    lines = (folder / RUNS).read_bytes().splitlines()
    runs = {run["seed"]: run for run in map(msgspec.json.decode, lines)}  # the last of each seed counts
    found = defaultdict[str, list[int]](list)
    for seed, run in runs.items():
        for one in run["findings"]:
            found[one["anomaly"]].append(seed)
    library = msgspec.json.decode((folder / "job.json").read_bytes())["library"]
    most = sorted(found.items(), key=lambda one: -len(one[1]))
    names = ", ".join(f"`{name}` {len(seeds)}{again(folder, name, min(seeds))}" for name, seeds in most)
    ran = sum("failed" not in run for run in runs.values())
    return f"| {library} | {ran}/{len(runs)} | {names or 'nothing'} |"


def again(folder: Path, anomaly: str, first: int) -> str:
    """The rate of an anomaly, as ` (9/10)`; empty if its first seed was not replayed.

    Args:
        folder: of `fencepost torture --out`.
        anomaly: its name.
        first: its first seed.
    """
    file = folder / FINDINGS / f"{anomaly}.json"
    known = msgspec.json.decode(file.read_bytes()) if file.exists() else {}
    return " ({}/{})".format(*known["rate"]) if known.get("first") == first and known["rate"][1] else ""


def tried(word: str, rows: dict[str, str], folder: Path) -> Done:
    """What became of a finding, `NAME` or `NAME@VERSION`. rows: gets the line of one without a version."""
    name, _, version = word.partition("@")
    known, library = KNOWN.get(name, Known()), library_of(name, version)
    if why := missing(wanted(library)) or jars.missing():
        return Done(case=word, outcome=SKIPPED, why=why)
    try:
        outcome, said = shown(name, library, known, folder)
    except (FencepostError, subprocess.SubprocessError) as error:
        return Done(case=word, outcome=FAILED, why=str(error)[:500])
    if outcome == "failed":
        return Done(case=word, outcome=FAILED, why=said[-500:])
    if not version:
        finding = f"[{BREAKS[name]}](../findings/{name}.md)"
        at = known.broker if outcome == "seen" else f"{known.broker}: {outcome}"
        rows[name] = line_of(name, library, finding, at)
    return Done(case=word, outcome=OK, why=f"{outcome}: {said.splitlines()[-1]}")


HEAD = ("| library | finding | seen with Apache Kafka | since; reported |", "|---|---|---|---|")
HEAD_OF_SEEDS = ("| library | seeds that ran | seeds with |", "|---|---:|---|")


@click.command("shown", help=__doc__)
@click.argument("words", nargs=-1, metavar="[NAME[@VERSION]]...")
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
@click.option("--runs", type=click.Path(path_type=Path), help="folder of `fencepost torture --out` folders")
def command(words: tuple[str, ...], docs: Path | None, runs: Path | None) -> ExitCode:
    """Run the scripts of all findings, or of some; of the others a page keeps what was seen. With --runs put
    what torture found, by seed, into the page, and run nothing."""
    if runs is not None and docs is not None:
        place = Place(page=docs, mark=SEEDS)
        lines = [*place.read().splitlines(), *(seeds_of(one.parent) for one in runs.glob(f"*/{RUNS}"))]
        newest = {line.partition("@")[0]: line for line in lines if "@" in line}
        place.write("\n".join(("", *HEAD_OF_SEEDS, *(newest[name] for name in sorted(newest)), "", "")))
        return ExitCode.NOTHING_FOUND
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="fencepost-shown-") as folder:
        names = (*BREAKS, *(word for word in words if word.partition("@")[0] in BREAKS))
        code = run_cases({name: partial(tried, name, rows, Path(folder)) for name in names}, words, Output())
    if docs is not None and rows:
        place = Place(page=docs, mark=MARK)
        lines = place.read().splitlines()
        before = {
            n: line_of(n, *one[2:].split(" | ")[:3]) for n in BREAKS for one in lines if f"{n}.md" in one
        }
        place.write_table([*HEAD, *((before | rows)[name] for name in BREAKS if name in before | rows)])
    return code


if __name__ == "__main__":
    program.run(command, "proxy_apps.shown")
