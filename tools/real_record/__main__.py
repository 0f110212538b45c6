"""`python -m tools.real_record [WORD...]`: campaigns against every real system, and the table of what they
found.

Owns the order: slices in rounds over the rows, so that a record that is ended has seen all of them. Must not
know rows or tables. Resumable: each row is a campaign in a folder of its own, and finished runs stay. A row
that this machine cannot run is skipped by name.
"""

from pathlib import Path

import rich_click as click

from fencepost.campaign.driver.campaign_driver import drive
from fencepost.cli.campaign.real import Asked, real_campaign, real_job
from fencepost.console.options import jobs_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode, FencepostError
from tools import program
from tools.program import chosen
from tools.real_record.page import PLACE, explanations, known_defects, sums_of, table, unexplained
from tools.real_record.rows import ROWS, Row

SLICE = 25
"""Runs of a row at a time: as many as one cluster lives."""


def go_on(row: Row, runs: int, jobs: int, out: Path, output: Output) -> bool:
    """Run a row up to so many runs; whether it was not interrupted. Raises FencepostError where this machine
    cannot run it."""
    given = {
        "system": row.system,
        **dict.fromkeys(("kafka_home", "bootstrap", "script")),
        **{option: option in row.extra for option in ("links", "disks")},
        "control": row.control,
        "runs_per_cluster": SLICE,
    }
    job = real_job(given, Asked(profile=row.profile), output)
    campaign = real_campaign(seeds=range(runs), job=job, jobs=jobs, out=out / row.name, resume=True)
    result = drive(campaign)
    found = ", ".join(f"{name} in {count}" for name, count in result.anomalies.items()) or "nothing"
    output.note(f"{row.name}: {result.finished} runs, {found}")
    if result.crashed:
        output.note(f"{row.name}, seed {result.crashed[0][0]} did not end: {result.crashed[0][1]}")
    return not result.interrupted


def run(rows: tuple[Row, ...], most: int, size: int, jobs: int, out: Path, output: Output) -> None:
    """All rows, slice by slice. most: runs of a row; size: of a slice."""
    skipped: set[str] = set()
    for end in range(size, max(row.runs for row in rows) + size, size):
        for row in rows:
            runs = min(end, row.runs, most)
            if row.name in skipped or runs <= end - size:
                continue
            try:
                if not go_on(row, runs, jobs, out, output):
                    return
            except FencepostError as error:
                skipped.add(row.name)
                output.note(f"{row.name} is skipped: {error}")


@click.command("real-record")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--runs", default=1_000, show_default="of the row", help="Of a row, at most.")
@click.option("--slice", "size", default=SLICE, show_default=True, help="Runs of a row at a time.")
@jobs_option
@click.option("--out", default="out/real-record", show_default=True, type=click.Path(path_type=Path))
@click.option("--report", is_flag=True, help="Run nothing; say what was run.")
@click.option(
    "--docs/--no-docs", default=True, show_default=True, help=f"Write the table into {PLACE.page.name}."
)
def main(
    words: tuple[str, ...], runs: int, size: int, jobs: int, out: Path, report: bool, docs: bool
) -> None:
    """Run the rows with one of these words in their names (all without a word), and write the table.

    Exits 1 if a finding outside of the controls is not explained, or a control was not found.
    """
    output, names = Output(), chosen((row.name for row in ROWS), words)
    rows = tuple(row for row in ROWS if row.name in names)
    if not report:
        run(rows, runs, size, jobs, out, output)
    sums = sums_of(out, ROWS)
    known = known_defects(out, sums, explanations())
    lines = table(sums, known)
    output.say("\n".join(lines))
    if docs:
        PLACE.write_table(lines)
    missed = [each.row.name for each in sums if each.row.control and not each.findings]
    for name in missed:
        output.note(f"{name}: the control was not found")
    if unexplained(sums, known) or missed:
        raise SystemExit(int(ExitCode.FINDINGS))


if __name__ == "__main__":
    program.run(main, "real_record")
