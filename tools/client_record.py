"""`python -m tools.client_record [NAME...]`: which known bugs of client libraries the general swarm finds.

Owns the rows (library, affected and mended version, the library's own issues) and the table of
docs/how-to/torture.md between two marks. Must not aim: every row is the same campaign over the same seeds.
Resumable: runs, rates and smaller scenarios are kept in --out.

A row ends at its first finding, or after --seeds. Then its anomalies are replayed and made smaller, and the
same scenario is run RUNS_MENDED times with the mended version. The newest release of every library has a row,
too.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click
from attrs import field, frozen

from fencepost.console.output import Output
from fencepost.torture.building import build
from fencepost.torture.campaign import FINDINGS, Job, Worker, torture
from fencepost.torture.libraries import libraries, wanted
from fencepost.torture.scenario import scenario_of
from fencepost.traces.errors import FencepostError

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "torture.md"
BEGIN, END = "<!-- measured by make client-record -->\n", "<!-- end -->\n"
RECORD, MENDED = "record.json", "mended.json"
RUNS_MENDED = 5
HEAD = (
    "| library | seeds | anomaly | known as | first seed | rate | smallest | the mended version, same "
    "scenario |",
    "|---|---:|---|---|---:|---|---|---|",
)


@frozen
class Row:
    """A version with bugs that people have reported."""

    library: str
    affected: str
    mended: str
    """Empty: no release mends it."""
    bugs: Mapping[str, str] = field(factory=dict)
    """The library's own numbers, by the anomaly that they describe; empty: the newest release, all seeds."""


ROWS = (
    Row("kafkajs", "1.15.0", "2.2.4", {"lost_write": "#1005, #1050"}),
    Row("platformatic-kafka", "1.35.0", "2.12.1", {"lost_write": "#326"}),
    Row(
        "sarama",
        "1.43.2",
        "1.61.1",
        {"lost_write": "#3354", "reordered_plain": "#2619", "reordered": "#2619"},
    ),
    Row("sarama", "1.26.1", "1.61.1", {"lost_write": "#1430, #1661", "duplicate": "#1430, #1661"}),
    Row("confluent-kafka-go", "1.6.1", "2.12.0", {"lost_write": "up to 1.8.2", "transaction_lost": "#3575"}),
    Row("confluent-kafka-go", "1.5.2", "2.12.0", {"transaction_lost": "fenced commit", "torn": "#3575"}),
    Row("confluent-kafka-go", "1.8.2", "2.12.0", {"lost_write": "up to 1.8.2"}),
    Row("confluent-kafka", "2.2.0", "2.16.1", {"ended": "#4312", "producer_ended": "#4438"}),
    Row("confluent-kafka", "2.3.0", "2.16.1", {"duplicate": "#4736", "committed_beyond": "#4844"}),
    Row("franz-go", "1.21.3", "1.22.2", {"lost_write": "#1484", "unreadable": "mended in 1.22"}),
    Row("franz-go", "1.19.0", "1.22.2", {"delivered_twice": "1.19.0 to 1.20.2"}),
    Row(
        "kafka-go", "0.4.47", "", {"skipped": "#1319", "below_committed": "#1398", "committed_back": "#1398"}
    ),
    Row("kafka-python", "2.0.2", "3.0.12", {"gap": "#2310, #2555"}),
    Row("kafka-python", "2.2.0", "3.0.12", {"reordered": "#2937", "producer_ended": "#2937"}),
    Row("aiokafka", "0.12.0", "", {"stuck_consumer": "#911", "producer_ended": "#1017"}),
    Row("kafka-clients", "2.8.1", "4.4.0", {"wrong_record": "KAFKA-19012"}),
)


def rows(names: tuple[str, ...]) -> Iterator[Row]:
    """Those of these libraries, all if none is named: known bugs first, then the newest releases."""
    newest = [Row(one.name, one.newest, "") for one in libraries().values()]
    for row in (*ROWS, *newest):
        if not names or row.library in names or f"{row.library}@{row.affected}" in names:
            yield row


def measured(row: Row, seeds: int, jobs: int, out: Path, note: Callable[[str], None]) -> dict[str, Any]:
    """One row. Raises FencepostError where its driver cannot be built."""
    name = f"{row.library}@{row.affected}"
    folder = out / name
    job = Job(library=name, out=str(folder))
    anomalies = frozenset(row.bugs)
    enough = min(1, len(anomalies))
    summary = torture(
        job, range(seeds), jobs=jobs, resume=True, enough=enough, wanted_anomalies=anomalies, shrink=True
    )
    ran = summary["seeds"]
    note(f"{name}: {ran} seeds, {', '.join(summary['findings']) or 'nothing'}")
    return {
        "library": name,
        "bugs": row.bugs or {"": "newest release"},
        "seeds": ran,
        "struck": summary["struck"],
        "records": summary["records"],
        "findings": {
            anomaly: {
                **{key: finding.get(key) for key in ("first", "rate", "seen", "small")},
                "mended": _mended(row, finding, anomaly, folder)
                if row.mended and anomaly in row.bugs
                else None,
            }
            for anomaly, finding in summary["findings"].items()
        },
    }


def _mended(row: Row, finding: dict[str, Any], anomaly: str, folder: Path) -> dict[str, Any]:
    """What the mended version shows in the same scenario; kept, and not measured twice."""
    path = folder / FINDINGS / f"{anomaly}-{MENDED}"
    version = f"{row.library}@{row.mended}"
    scenario = finding["scenario"]
    if path.exists():
        kept: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        if kept["library"] == version and kept["scenario"] == scenario:
            return kept
    worker = Worker(Job(library=version, out=str(folder)), build(wanted(version)))
    shown = worker.rate(scenario_of(scenario), anomaly, RUNS_MENDED)
    if worker.driver is not None:
        worker.driver.end()
    said = {"library": version, "rate": [shown, RUNS_MENDED], "scenario": scenario}
    path.write_bytes(msgspec.json.encode(said))
    return said


def table(records: list[dict[str, Any]]) -> list[str]:
    """The table's lines."""
    lines = list(HEAD)
    for record in records:
        begins = f"| {record['library']} | {record['seeds']} |"
        if not record["findings"]:
            lines.append(f"{begins} nothing | {', '.join(record['bugs'].values())} | | | | |")
        for anomaly, found in record["findings"].items():
            small, mended = found["small"], found["mended"]
            smallest = "" if small is None else "{} things, {} of {}".format(small["faults"], *small["rate"])
            after = "" if mended is None else "{}: {} of {}".format(mended["library"], *mended["rate"])
            rate = "{} of {}".format(*found["rate"]) if found["rate"][1] else "not replayed"
            cells = (
                f"`{anomaly}`",
                record["bugs"].get(anomaly, ""),
                str(found["first"]),
                rate,
                smallest,
                after,
            )
            lines.append(f"{begins} {' | '.join(cells)} |")
    return lines


def updated(page: str, records: list[dict[str, Any]]) -> str:
    """The page with this table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(table(records)) + f"\n\n{END}{after}"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME[@VERSION]]...")
@click.option("--seeds", default=500, show_default=True, help="Of a row, at most.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--out", default="out/client-record", show_default=True, type=click.Path(path_type=Path))
@click.option(
    "--docs/--no-docs", default=True, show_default=True, help="Write the table into docs/how-to/torture.md."
)
def main(names: tuple[str, ...], seeds: int, jobs: int, out: Path, docs: bool) -> None:
    """Measure the rows, and write the table of all that were ever measured in --out."""
    output = Output()
    out.mkdir(parents=True, exist_ok=True)
    path = out / RECORD
    records = {one["library"]: one for one in msgspec.json.decode(path.read_bytes())} if path.exists() else {}
    for row in rows(names):
        try:
            record = measured(row, seeds, jobs, out, output.note)
        except FencepostError as error:
            output.note(f"{row.library}@{row.affected} is skipped: {error}")
            continue
        records[record["library"]] = record
        path.write_bytes(msgspec.json.encode(list(records.values())))
        if docs:
            PAGE.write_text(
                updated(PAGE.read_text(encoding="utf-8"), list(records.values())), encoding="utf-8"
            )


if __name__ == "__main__":
    main()
