"""Findings in current releases of client libraries, shown against Apache Kafka through the proxy, without our
brokers: docs/results/clients.md (`make measure NAME=clients`).

    python -m tools.proxy_apps.shown [NAME ...] [--docs docs/results/clients.md] [--runs FOLDER]

Each is a script in docs/findings/shown that only uses the library; its lines `fault:` are for the proxy.
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
}
"""Drivers by the library that their build has, in the releases that the findings were shown with."""


@frozen(kw_only=True)
class Shown:
    """One finding."""

    # Its name begins with one of RELEASES.
    script: str
    # What the library breaks, in words.
    breaks: str
    # Who found it, and with what; empty: torture did.
    found: str = ""
    # The first release that is known to have it; empty: not measured.
    since: str = ""
    # Where it was reported before; empty: not found.
    reported: str = ""
    # The release of Apache Kafka, and how many brokers.
    broker: str = NEWEST
    size: int = 1

    @property
    def library(self) -> str:
        """NAME@VERSION of the driver whose build has the library."""
        return next(driver for name, driver in RELEASES.items() if self.script.startswith(name))


SHOWN: Mapping[str, Shown] = {
    one.script.partition(".")[0]: one
    for one in (
        Shown(
            script="librdkafka-implicit-ack.py",
            breaks="an acknowledged record is not in the log",
            since="1.5.2 or before",
        ),
        Shown(
            script="librdkafka-timed-out-elsewhere.py",
            breaks="a record is in the log twice, idempotence is on",
            found="a test's scenario of torture",
            reported="reported in #4953",
        ),
        Shown(
            script="kafka-clients-rewritten-sequences.java",
            breaks="a record is in the log twice, idempotence is on",
            reported="reported: KAFKA-14034 and KAFKA-14397, closed",
        ),
        Shown(
            script="kafkajs-lost-answer.cjs",
            breaks="an acknowledged record is not in the log, another is there twice",
            found="records under broker faults, `fencepost torture kafkajs`",
        ),
        Shown(
            script="kafkajs-aborted-order.cjs",
            breaks="a record of an aborted transaction is delivered, read_committed",
        ),
        Shown(
            script="kafkajs-silent-connection.cjs",
            breaks="a send is tried for ever on a connection that is silent",
            reported="reported: #919, #1783, open",
        ),
        Shown(
            script="kafkajs-unknown-partition.cjs",
            breaks="a record of a partition that is new is acknowledged and never sent",
        ),
        Shown(script="kafkajs-shared-broker.cjs", breaks="records are acknowledged and never sent", size=3),
        Shown(script="kafkajs-unsent-commit.cjs", breaks="a commit is acknowledged and never made"),
        Shown(
            script="kafkajs-two-fetchers.cjs",
            breaks="records are delivered again after later ones, without a rebalance",
            size=3,
        ),
        Shown(script="kafkajs-left-member.cjs", breaks="a consumer that was closed stays a member"),
        Shown(
            script="franz-go-transaction-sequences.go",
            breaks="a committed transaction is not in the log",
            found="`fencepost torture franz-go@1.21.3`",
            since="1.21.3 or before",
            reported="reported: #1484, without transactions",
            broker="3.9.2",  # transactions of version 1: those of version 2 have an epoch each
        ),
        Shown(
            script="kafka-go-cached-error.go",
            breaks="sends fail without a retry after one error of Metadata",
            reported="reported: #1288, open",
        ),
        Shown(
            script="kafka-go-false-end.go",
            breaks="a reader that is open says that it is closed",
            reported="reported: #1222, open",
        ),
        Shown(
            script="kafka-go-closed-connection.go",
            breaks="every attempt of a send takes a connection that was closed long ago",
            reported="close: #345, #1352",
        ),
        Shown(
            script="kafka-go-late-commit.go",
            breaks="a member commits records of a partition that it has lost",
            reported="reported: #1308, open",
        ),
        Shown(
            script="kafka-python-expired-batch.py", breaks="nothing is sent any more, and no send is answered"
        ),
        Shown(script="kafka-python-pending-join.py", breaks="a consumer never comes back from a rebalance"),
        Shown(
            script="kafka-python-request-time-out.py",
            breaks="after one request without an answer every send fails",
        ),
        Shown(script="kafka-python-dropped-request.py", breaks="a commit never returns"),
        Shown(script="aiokafka-close-coordinator.py", breaks="a consumer never stops"),
        Shown(
            script="aiokafka-stale-leader.py", breaks="nothing is read until metadata are five minutes old"
        ),
        Shown(
            script="librdkafka-close-commits.py",
            breaks="a closed consumer commits what it never delivered",
            reported="reported: #3400, closed",
        ),
        Shown(
            script="librdkafka-offset-fetch.py",
            breaks="nothing more is read",
            reported="reported: #5586, open",
        ),
        Shown(
            script="librdkafka-late-list-offsets.py",
            breaks="a consumer reads again what it has read, or leaves records out",
        ),
    )
}


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


def shown(name: str, row: Shown, folder: Path) -> tuple[str, str]:
    """The outcome of a finding's script, and its last lines; `seen` if the library shows it.

    Args:
        name: of the finding.
        row: of the finding.
        folder: for the brokers' files.
    """
    script = (SCRIPTS / row.script).resolve()
    built = build(wanted(row.library))
    own = folder / name
    shutil.rmtree(own, ignore_errors=True)
    (own / "program").mkdir(parents=True)
    command, environment = command_of(built, script, own / "program")
    with (
        ApacheKafka(directory=own / "kafka", release=Release(version=row.broker), size=row.size) as kafka,
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


def line_of(name: str, row: Shown, outcome: str) -> str:
    """The finding's row.

    Args:
        name: of the finding.
        row: of the finding.
        outcome: of its script.
    """
    known = [f"since {row.since}" if row.since else "", f"found by {row.found}" if row.found else ""]
    finding = f"[{row.breaks}](../findings/{name}.md)"
    cells = (row.library, finding, row.broker if outcome == "seen" else f"{row.broker}: {outcome}")
    return f"| {' | '.join((*cells, '; '.join(one for one in (*known, row.reported) if one)))} |"


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


def tried(name: str, rows: dict[str, str], folder: Path) -> Done:
    """What became of a finding. rows: gets its line."""
    row = SHOWN[name]
    if why := missing(wanted(row.library)) or jars.missing():
        return Done(case=name, outcome=SKIPPED, why=why)
    try:
        outcome, said = shown(name, row, folder)
    except (FencepostError, subprocess.SubprocessError) as error:
        return Done(case=name, outcome=FAILED, why=str(error)[:500])
    if outcome == "failed":
        return Done(case=name, outcome=FAILED, why=said[-500:])
    rows[name] = line_of(name, row, outcome)
    return Done(case=name, outcome=OK, why=f"{outcome}: {said.splitlines()[-1]}")


HEAD = ("| library | finding | seen with Apache Kafka | known |", "|---|---|---|---|")
HEAD_OF_SEEDS = ("| library | seeds that ran | seeds with |", "|---|---:|---|")


@click.command("shown", help=__doc__)
@click.argument("words", nargs=-1, metavar="[NAME]...")
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
@click.option("--runs", type=click.Path(path_type=Path), help="folder of `fencepost torture --out` folders")
def command(words: tuple[str, ...], docs: Path | None, runs: Path | None) -> ExitCode:
    """Run the scripts of all findings, or of some; of the others a page keeps the rows. With --runs put what
    torture found, by seed, into the page, and run nothing."""
    if runs is not None and docs is not None:
        place = Place(page=docs, mark=SEEDS)
        lines = [*place.read().splitlines(), *(seeds_of(one.parent) for one in runs.glob(f"*/{RUNS}"))]
        newest = {line.partition("@")[0]: line for line in lines if "@" in line}
        place.write("\n".join(("", *HEAD_OF_SEEDS, *(newest[name] for name in sorted(newest)), "", "")))
        return ExitCode.NOTHING_FOUND
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="fencepost-shown-") as folder:
        cases = {name: partial(tried, name, rows, Path(folder)) for name in SHOWN}
        code = run_cases(cases, words, Output())
    if docs is not None:
        place = Place(page=docs, mark=MARK)
        before = {name: line for name in SHOWN for line in place.read().splitlines() if f"{name}.md" in line}
        place.write_table([*HEAD, *((before | rows)[name] for name in SHOWN if name in before | rows)])
    return code


if __name__ == "__main__":
    program.run(command, "proxy_apps.shown")
