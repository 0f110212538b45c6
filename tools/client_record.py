"""`python -m tools.client_record [NAME...]`: which known bugs of client libraries the general swarm finds.

Owns the rows (library, affected and mended version, the library's own issue) and the table of
docs/results/client-record.md between two marks. Must not aim: every row of a library is the same campaign
over the same seeds, and the rows of one version share its runs. Resumable: --out keeps runs, rates and
scenarios.

A seed with the row's symptom (an anomaly, and words that its finding must have) is a find only if replays
show it again and the mended version never shows it in the same scenario: another bug may have the same
symptom. Of the seeds that have run, those with the fewest faults are tried first: fewer other bugs hide in
them. A row ends at its first find, or after --seeds. Then the scenario is made smaller, and the mended
version runs the smaller one, too. The newest release of every library has a row, too.
"""

import re
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click
from attrs import define, frozen

from fencepost.console.output import Output
from fencepost.torture.building import build
from fencepost.torture.campaign import FINDINGS, MOST_SHRINK_RUNS, RUNS, smaller, torture
from fencepost.torture.libraries import libraries, wanted
from fencepost.torture.scenario import Scenario, scenario_of
from fencepost.torture.workers import Job, Worker
from fencepost.traces.errors import ExitCode, FencepostError
from tools import program
from tools.ledger import TOP, Ledger
from tools.page import Place
from tools.program import SKIPPED, Done, run_cases

PLACE = Place(
    page=TOP / "docs" / "results" / "client-record.md",
    mark="<!-- measured by make measure NAME=client-record -->",
)
REPLAYS = 10
RUNS_MENDED = 5
OPEN = "open"
"""In place of a mended version: no release mends it."""
MOST_CANDIDATES = 12
"""Seeds of one row that are replayed: a symptom that the mended version shares is another bug's."""
HEAD = (
    "| library | known as | anomaly | seeds | first seed | rate | smallest | the fixed version, same "
    "scenario |",
    "|---|---|---|---:|---:|---|---|---|",
)


@frozen
class Row:
    """One bug that people have reported, or the newest release of a library."""

    library: str
    affected: str
    # The first release that is said to mend it, as far as it can be built; empty: the newest release; OPEN:
    # none does.
    mended: str = ""
    # What the bug shows; empty: every anomaly, over all seeds.
    anomaly: str = ""
    # The library's own number, or the words of docs.
    known: str = "newest release"
    # A regular expression that a finding of the bug matches; empty: any finding of the anomaly.
    says: str = ""

    @property
    def name(self) -> str:
        """As `fencepost torture` takes it."""
        return f"{self.library}@{self.affected}"

    def shows(self, line: dict[str, Any]) -> bool:
        """Whether a run shows the bug's symptom. line: of runs.jsonl."""
        return any(
            one["anomaly"] == self.anomaly and re.search(self.says, one["seen"]) for one in line["findings"]
        )

    def candidates(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The runs with the symptom, those with the fewest faults first. lines: by seed."""
        found = [line for line in lines if self.shows(line)]
        return sorted(found, key=lambda line: scenario_of(line["scenario"]).faults)


SAME_OFFSET = r" \d+ \((?!1 times)"
"""Several lost records were acknowledged at one offset of the log."""
ROWS = (
    Row("kafkajs", "1.15.0", "2.2.4", "lost_write", "#1005, #1050", SAME_OFFSET),
    Row("platformatic-kafka", "1.35.0", "2.12.1", "lost_write", "#326"),
    Row("sarama", "1.43.2", "1.61.1", "reordered_plain", "#2619"),
    Row("sarama", "1.43.2", "1.61.1", "reordered", "#2803, #2860 (fixed by #3422)"),
    Row("sarama", "1.43.2", "1.61.1", "lost_write", "#3354"),
    Row("sarama", "1.26.1", "1.27.2", "producer_ended", "#1430, #1661"),
    Row("confluent-kafka-go", "1.5.2", "1.6.1", "transaction_lost", "fenced commit (librdkafka below 1.6.0)"),
    Row("confluent-kafka-go", "1.5.2", "1.6.1", "aborted_delivered", "librdkafka #3020"),
    Row("confluent-kafka-go", "1.8.2", "1.9.2", "lost_write", "topic unknown once (librdkafka up to 1.8.2)"),
    Row("confluent-kafka-go", "1.6.1", "1.9.2", "transaction_lost", "librdkafka #3575"),
    Row("confluent-kafka", "2.2.0", "2.3.0", "delivered_twice", "librdkafka #4447"),
    Row("confluent-kafka", "2.2.0", "2.3.0", "producer_ended", "librdkafka #4438"),
    Row("confluent-kafka", "2.2.0", "2.13.2", "committed_beyond", "librdkafka #4844"),
    Row("confluent-kafka", "2.2.0", "2.4.0", "delivered_twice", "librdkafka #4686"),
    Row("confluent-kafka", "2.2.0", "2.5.0", "producer_ended", "librdkafka #4736"),
    Row("confluent-kafka", "2.2.0", "2.3.0", "ended", "librdkafka #4312", "assignor_state"),
    Row("franz-go", "1.21.3", "1.22.2", "lost_write", "#1484"),
    Row("franz-go", "1.21.3", "1.22.2", "unreadable", "fixed in 1.22"),
    Row("franz-go", "1.21.3", "1.22.2", "transaction_lost", "up to 1.21.3: a session reports a commit"),
    Row("franz-go", "1.21.3", "1.22.2", "copy_lost", "up to 1.21.3: missed after an abort"),
    Row("franz-go", "1.20.2", "1.20.3", "delivered_twice", "1.19.0 to 1.20.2"),
    Row("franz-go", "1.20.2", "1.20.3", "ended", "1.19.0 to 1.20.2: a panic"),
    Row("kafka-go", "0.4.47", "0.4.51", "skipped", "#1319"),
    Row("kafka-go", "0.4.47", "0.4.51", "below_committed", "#1398"),
    Row("kafka-python", "2.0.2", "3.0.12", "gap", "#2310, #2555"),
    Row("kafka-python", "2.2.0", "3.0.12", "reordered", "#2937"),
    Row("aiokafka", "0.12.0", OPEN, "producer_ended", "#1017", "OutOfOrderSequence"),
    Row("kafka-clients", "2.8.1", "4.4.0", "wrong_record", "KAFKA-19012"),
)


def rows(names: tuple[str, ...]) -> Iterator[Row]:
    """Those of these libraries, all if none is named: known bugs first, then the newest releases."""
    newest = [Row(one.name, one.newest) for one in libraries().values()]
    for row in (*ROWS, *newest):
        if not names or row.library in names or row.name in names:
            yield row


def measured(
    row: Row, seeds: int, jobs: int, out: Path, most_runs: int, enough: int, fresh: bool
) -> dict[str, Any]:
    """One row. fresh: whether seeds run that have not run. Raises FencepostError where its driver cannot be
    built."""
    record: dict[str, Any] = {"library": row.name, "known": row.known, "anomaly": row.anomaly}
    folder = out / row.name
    job = Job(library=row.name, out=str(folder))
    if not row.anomaly:
        summary = torture(job, range(seeds), jobs=jobs, resume=True, replays=REPLAYS, shrink=True)
        found = {name: {key: one.get(key) for key in ("first", "rate", "small")}
                 for name, one in summary["findings"].items()}  # fmt: skip
        return {**record, "seeds": summary["seeds"], "findings": found}
    tried: set[int] = set()
    while True:
        for line in row.candidates(_lines(folder, seeds)):
            if line["seed"] not in tried and len(tried) < MOST_CANDIDATES:
                tried.add(line["seed"])
                if find := _find(row, line, folder, most_runs, enough):
                    ran = len(_lines(folder, seeds))
                    return {**record, "seeds": ran, "findings": {row.anomaly: find}}
        before = _lines(folder, seeds)
        if not fresh or len(before) >= seeds or len(tried) >= MOST_CANDIDATES:
            return {**record, "seeds": len(before), "findings": {}, "others": sorted(tried)}
        torture(
            job,
            range(seeds),
            jobs=jobs,
            resume=True,
            replays=0,
            enough=1 + sum(row.anomaly in _anomalies(line) for line in before),
            wanted_anomalies=frozenset([row.anomaly]),
        )


def _lines(folder: Path, seeds: int) -> list[dict[str, Any]]:
    """The runs so far, by seed; of a seed that was run again, the last."""
    path = folder / RUNS
    lines = {}
    for one in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.DecodeError):  # the last line of a campaign that was killed
            line = msgspec.json.decode(one)
            lines[int(line["seed"])] = line
    return [line for seed, line in sorted(lines.items()) if seed < seeds]


def _anomalies(line: dict[str, Any]) -> set[str]:
    return {one["anomaly"] for one in line["findings"]}


def _find(row: Row, line: dict[str, Any], folder: Path, most_runs: int, enough: int) -> dict[str, Any] | None:
    """What replays of a seed say: a find, or None. Kept for this row, and not measured twice."""
    path = folder / FINDINGS / f"{re.sub('[^0-9A-Za-z]+', '-', row.known)}-{line['seed']}.json"
    if path.exists():
        kept: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        return kept or None
    path.parent.mkdir(parents=True, exist_ok=True)
    scenario = scenario_of(line["scenario"])
    mended_version = f"{row.library}@{row.mended}" if row.mended else str(wanted(row.library))
    after = nullcontext() if row.mended == OPEN else Runs(mended_version, folder, row)
    find: dict[str, Any] = {}
    with Runs(row.name, folder, row) as affected, after as mended:
        shown = affected.rate(scenario, row.anomaly, REPLAYS)
        if shown and not (mended and mended.rate(scenario, row.anomaly, RUNS_MENDED)):
            small, count = smaller(affected.rate, scenario, row.anomaly, most_runs, enough)
            again = affected.rate(small, row.anomaly, REPLAYS) if count else shown
            still = mended.rate(small, row.anomaly, RUNS_MENDED) if mended and count else 0
            find = {
                "first": line["seed"],
                "rate": [shown, REPLAYS],
                "words": scenario.words(),
                "small": {
                    "faults": small.faults,
                    "rate": [again, REPLAYS],
                    "words": small.words(),
                    "scenario": small.as_dict(),
                    "runs": count,
                },
                "mended": {"library": mended_version, "rate": [still, RUNS_MENDED]} if mended else None,
            }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(find), indent=1))
    return find or None


@define(eq=False)
class Runs:
    """A version that runs scenarios, one after another."""

    name: str
    folder: Path
    row: Row
    _worker: Worker | None = None

    def __enter__(self) -> "Runs":
        self._worker = Worker(Job(library=self.name, out=str(self.folder)), build(wanted(self.name)))
        return self

    def __exit__(self, *error: object) -> None:
        if self._worker is not None and self._worker.driver is not None:
            self._worker.driver.end()

    def rate(self, scenario: Scenario, anomaly: str, runs: int) -> int:
        """How many of so many runs show the row's symptom; a run that fails shows nothing. anomaly: the
        row's."""
        assert self._worker is not None and anomaly == self.row.anomaly
        shown = 0
        for _ in range(runs):
            with suppress(FencepostError):
                shown += self.row.shows(self._worker.run(scenario))
        return shown


def table(records: list[dict[str, Any]]) -> list[str]:
    """The table's lines."""
    lines = list(HEAD)
    for record in records:
        of = f"| {record['library']} | {record['known']} |"
        if not record["findings"]:
            others = ", ".join(str(seed) for seed in record.get("others", ()))
            said = (
                f"not found; seeds {others} did not repeat, or only as the fixed version"
                if others
                else "not found"
            )
            anomaly = f"`{record['anomaly']}`: {said}" if record["anomaly"] else "nothing"
            lines.append(f"{of} {anomaly} | {record['seeds']} | | | | |")
        for anomaly, found in record["findings"].items():
            small, mended = found["small"], found.get("mended")
            smallest = "" if small is None else "{} things, {}/{}".format(small["faults"], *small["rate"])
            after = "open" if mended is None else "{}: {}/{}".format(mended["library"], *mended["rate"])
            rate = "{}/{}".format(*found["rate"]) if found["rate"][1] else "not replayed"
            lines.append(
                f"{of} `{anomaly}` | {record['seeds']} | {found['first']} | {rate} | {smallest} | {after} |"
            )
    return lines


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME[@VERSION]]...")
@click.option("--seeds", default=500, show_default=True, help="Of a row, at most.")
@click.option("--known", default="", help="Only rows that are known by these words.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--most-runs", default=MOST_SHRINK_RUNS, show_default=True, help="Of a shrink.")
@click.option("--enough", default=-1, show_default=True, help="Faults and steps at which a shrink ends.")
@click.option("--out", default="out/client-record", show_default=True, type=click.Path(path_type=Path))
@click.option("--fresh/--no-fresh", default=True, show_default=True, help="Run seeds that have not run.")
@click.option(
    "--docs/--no-docs",
    default=True,
    show_default=True,
    help="Write the table into docs/results/client-record.md.",
)
def main(
    names: tuple[str, ...],
    seeds: int,
    known: str,
    jobs: int,
    most_runs: int,
    enough: int,
    out: Path,
    fresh: bool,
    docs: bool,
) -> ExitCode:
    """Measure the rows, and write the table of all that were ever measured in --out."""
    ledger = Ledger.open(
        out / "record.jsonl",
        dict[str, Any],
        key=lambda one: (one.get("library"), one.get("known")),
        of="client libraries",
    )

    def asked(row: Row) -> Done:
        try:
            record = measured(row, seeds, jobs, out, most_runs, enough, fresh)
        except FencepostError as error:
            return Done(case=row.name, outcome=SKIPPED, why=str(error))
        ledger.add(record)
        if docs:
            PLACE.write_table(table(in_order(ledger)))
        return Done(case=row.name, why="; ".join(table([record])[len(HEAD) :]))

    wanted_rows = (row for row in rows(names) if known in row.known)
    cases = {f"{row.name} ({row.known})": partial(asked, row) for row in wanted_rows}
    return run_cases(cases, (), Output())


def in_order(ledger: Ledger[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was ever measured, as `rows` has it; what it no longer has, last."""
    order = {(row.name, row.known): place for place, row in enumerate(rows(()))}
    return [ledger.rows[key] for key in sorted(ledger.rows, key=lambda key: order.get(key, len(order)))]


if __name__ == "__main__":
    program.run(main, "client_record")
