"""Each application through the proxy against Apache Kafka; what the log holds is compared with what was
recorded.

    python -m tools.proxy_apps [CASE ...] [--out out/proxy-apps] [--docs docs/results/proxy-apps.md]

A case is an application and a version of the broker (3.9.2 with ZooKeeper, 4.4.0), with a cluster and a proxy
of its own. Each writes a line into OUT/results.jsonl, and one that stands there is not run again. What the
machine lacks is skipped by name. Exit code 1 if a case failed.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import rich_click as click
from attrs import define, frozen

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.console.output import Output
from fencepost.proxy.server.record_files import key_of
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from fencepost.torture.abilities.ability_table import try_all
from fencepost.torture.abilities.comparison import PARTITIONS
from fencepost.torture.building import build, missing
from fencepost.torture.libraries import libraries, wanted
from fencepost.torture.truth import read_log, topics
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.parts import read_recording
from tools import program
from tools.kafka_programs import ProgramError, jars, programs, streams
from tools.ledger import Ledger
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done, chosen, run_cases

from .compare import compared

BROKERS = ("3.9.2", "4.4.0")
MARK = "<!-- begin: made by tools/proxy_apps -->"
PROXY = "from fencepost.cli import main; main()"
END_S = READY_S = 120


@frozen(kw_only=True)
class Result(Done):
    """What became of a case."""

    # What the application said of itself.
    worked: str = ""
    records: int = 0
    commits: int = 0
    transactions: int = 0


@define
class Through:
    """A cluster as an application sees it."""

    bootstrap_servers: str

    def create_topic(
        self, name: str, partitions: int = PARTITIONS, settings: Mapping[str, str] | None = None
    ) -> None:
        """Make it, and wait until its leaders answer. settings: of the topic."""
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        common: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}
        admin = AdminClient(common)  # whose end would end the request
        made = NewTopic(name, partitions, 1, config=dict(settings or {}))
        admin.create_topics([made])[name].result(READY_S)
        consumer, deadline = ck.Consumer(common | {"group.id": "nobody"}), time.monotonic() + READY_S
        for number in range(partitions):
            while True:
                try:
                    consumer.get_watermark_offsets(ck.TopicPartition(name, number), timeout=10)
                    break
                except ck.KafkaException:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
        consumer.close()

    def read_all(self) -> None:
        """Every topic to its end, so that the trace has a last read of each record."""
        for topic in sorted(topics(self.bootstrap_servers)):
            if not topic.startswith("__"):
                read_log(self.bootstrap_servers, topic)


def of_library(name: str, through: Through) -> str:
    """Every ability that the library has (docs/reference/clients.md); answers how many worked."""
    _, cells = try_all(build(wanted(name)), through)  # type: ignore[arg-type]
    failed = [cell.ability for cell in cells if cell.outcome == "failed"]
    there = sum(cell.outcome != "absent" for cell in cells)
    return f"{there - len(failed)}/{there}" + (f" (not {'; '.join(failed)})" if failed else "")


def of_program(program: Callable[..., None], through: Through) -> str:
    """A program that ends well."""
    program(bootstrap=through.bootstrap_servers, create=through.create_topic)
    return "well"


def applications() -> Mapping[str, tuple[Callable[[], str], Callable[[Through], str]]]:
    """By name: what is absent here, and what runs."""
    found: dict[str, tuple[Callable[[], str], Callable[[Through], str]]] = {}
    for version in jars.VERSIONS:
        for name, each in (
            ("console tools", programs.console),
            ("perf tools", programs.performance),
            ("Streams word count", streams.word_count),
            ("Streams word count, exactly once", partial(streams.word_count, guarantee="exactly_once_v2")),
        ):
            found[f"Java {version}: {name}"] = (jars.missing, partial(of_program, partial(each, version)))
    found["librdkafka: transactions"] = (lambda: "", partial(of_program, programs.librdkafka_transactions))
    for name in libraries():
        found[name] = (partial(lambda name: missing(wanted(name)), name), partial(of_library, name))
    return found


@contextmanager
def proxied(upstream: str, folder: Path, *faults: str) -> Iterator[Through]:
    """The proxy as a process that records and has these faults of requests, for the block; it ends by itself
    afterwards."""
    options = ["--upstream", upstream, "--listen", "127.0.0.1:0", "--record", str(folder)]
    options += [word for fault in faults for word in ("--fault", fault)]
    command = [sys.executable, "-c", PROXY, "proxy", *options, "--json", "--no-view"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield Through(json.loads(process.stdout.readline())["listen"])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=END_S)
    finally:
        process.kill()
        process.wait()


def run(case: str, version: str, application: Callable[[Through], str], folder: Path) -> Result:
    """One case, in a folder of its own, which goes if all is well."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with ApacheKafka(directory=folder / "kafka", release=Release(version=version), size=1) as kafka:
            with proxied(kafka.bootstrap_servers(), folder / "live") as through:
                worked = application(through)
                through.read_all()
            (recording,) = (folder / "live").glob("run-*")
            trace = read_recording(recording)
            found = compared(trace, folder / "kafka" / "broker-1" / "data", key_of(folder / "live"))
    except (FencepostError, ck.KafkaException, ProgramError, subprocess.SubprocessError) as error:
        return Result(case=case, outcome=FAILED, why=str(error)[:500])
    why = [*found.differences]
    why += [
        f"{verdict.check}: {verdict.decision.value} {verdict.reason}"
        for verdict in judge(trace, DEFAULT_CHECKS)
        if verdict.decision is not Decision.OK
    ]
    if not why:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(
        case=case,
        outcome=FAILED if why else OK,
        worked=worked,
        records=found.records,
        commits=found.commits,
        transactions=found.transactions,
        why="; ".join(why)[:500],
    )


def outcome_of(
    case: str, version: str, absent: Callable[[], str], application: Callable[[Through], str], folder: Path
) -> Result:
    """What became of a case, if this machine has what it needs."""
    if why := absent() or jars.missing():
        return Result(case=case, outcome=SKIPPED, why=why)
    return run(case, version, application, folder)


def table(results: Mapping[str, Result]) -> list[str]:
    """The table of the page: a row for each application, a column for each broker."""
    lines = [f"| application | {' | '.join(BROKERS)} |", "|---" * (1 + len(BROKERS)) + "|"]
    for name in dict.fromkeys(case.rpartition(" @ ")[0] for case in results):
        cells = [_cell(results.get(f"{name} @ {broker}")) for broker in BROKERS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(one: Result | None) -> str:
    """What became of a case, in short."""
    if one is None or one.outcome == SKIPPED:
        return f"not run{f': {one.why}' if one else ''}"
    numbers = f"{one.records:,}, {one.commits:,}, {one.transactions:,}"
    return f"{one.worked}: {numbers}" if one.outcome == OK else f"**{one.why}**"


@click.command("proxy_apps", help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/proxy-apps"), show_default=True)
@click.option("--docs", type=click.Path(path_type=Path), help="the page with the table")
@click.option("--again", is_flag=True, help="also what failed or was skipped")
def command(words: tuple[str, ...], out: Path, docs: Path | None, again: bool) -> ExitCode:
    """Run what is not known yet, of the cases with one of these words in their names."""
    ledger = Ledger.open(
        out / "results.jsonl", Result, key=lambda one: one.case, of="applications through the proxy"
    )

    cases = {
        (case := f"{name} @ {version}"): partial(outcome_of, case, version, *both, out / "case")
        for name, both in applications().items()
        for version in BROKERS
    }
    known = {case for case, one in ledger.rows.items() if one.outcome == OK or not again}
    todo = {case: cases[case] for case in chosen(cases, words) if case not in known}
    run_cases(todo, (), Output(), keep=ledger.add)
    if docs is not None:
        Place(page=docs, mark=MARK).write_table(table(ledger.rows))
    failed = any(one.outcome == FAILED for one in ledger.rows.values())
    return ExitCode.FINDINGS if failed else ExitCode.NOTHING_FOUND


if __name__ == "__main__":
    program.run(command, "proxy_apps")
