"""`fencepost conformance`: checks case by case whether a broker answers as Apache Kafka does."""

import asyncio
from collections import Counter
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from attrs import evolve

from fencepost.cli.cluster.client.client_options import Bootstrap, bootstrap_options
from fencepost.console.options import FILE, FILE_THAT_IS, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import EnvironmentError_, ExitCode, FencepostError

if TYPE_CHECKING:
    from fencepost.conformance.case import Case
    from fencepost.conformance.record import Compared
    from fencepost.console.junit import Case as JUnitCase

OURS = "fencepost"
"""The cluster id of our own brokers. For these, our table of departures is the default."""
RESTART_S = 120.0
"""Longest time of the command that starts a broker again."""
MOST_NAMED = 10
"""Topics that could not be deleted and are named."""


@click.command("conformance")
@bootstrap_options
@click.option(
    "--only",
    metavar="PATTERN",
    help="Only cases with these names: `produce.*`, `*.v9*`; several with commas. [default: all]",
)
@click.option("--list", "listing", is_flag=True, help="Print the cases and do nothing else.")
@click.option(
    "--against",
    metavar="VERSION",
    help="Apache Kafka's release: 3.9.2 or 4.4.0. [default: the one with the most similar versions]",
)
@click.option(
    "--departures",
    type=FILE_THAT_IS,
    metavar="FILE",
    help="JSON, case name -> why it may differ; a name may end with *. [default: for fencepost's brokers, "
    "our own table]",
)
@click.option("--junit", type=FILE, metavar="FILE", help="Write the results as JUnit XML.")
@click.option(
    "--restart",
    metavar="COMMAND",
    help="Run this shell command when a broker has stopped answering, name the case that did it, and go on. "
    "It must start the broker and end.",
)
@click.option("--all", "everything", is_flag=True, help="List equal cases too.")
@json_option
def command(
    bootstrap: Bootstrap,
    only: str | None,
    listing: bool,
    against: str | None,
    departures: Path | None,
    junit: Path | None,
    restart: str | None,
    everything: bool,
    output: Output,
) -> ExitCode:
    """Send a broker requests of Kafka's protocol, and compare its answers with Apache Kafka's.

    Every case creates its own topics and groups, and deletes them. Exit code 0: every answer is equal or
    explained; 1: some differ, or a broker stopped
    answering; 2: wrong usage, or no broker answers; 3: nothing could be compared.

    \b
    Examples
      fencepost conformance --bootstrap 127.0.0.1:9092
      fencepost conformance --bootstrap 127.0.0.1:9092 --only 'produce.*,records.*' --junit out/cases.xml
      fencepost conformance --list
    """
    cases = _chosen(only)
    if listing:
        listed = [{"name": case.name, "asked": case.asked} for case in cases]
        return output.listed("cases", listed, {"case": "name", "asked": "asked"})
    if not bootstrap.servers:
        raise click.UsageError("--bootstrap HOST:PORT says which broker is asked")
    return _ask(output, cases, bootstrap, against, departures, junit, everything, restart)


def _chosen(only: str | None) -> "tuple[Case, ...]":
    from fencepost.conformance.cases import all_cases

    patterns = [each.strip() for each in only.split(",")] if only else ["*"]
    cases = tuple(case for case in all_cases() if any(fnmatchcase(case.name, each) for each in patterns))
    if not cases:
        raise FencepostError(
            expected="a pattern of case names", seen=str(only), where="--only", hint="--list shows the names"
        )
    return cases


def _ask(
    output: Output,
    cases: "tuple[Case, ...]",
    bootstrap: Bootstrap,
    against: str | None,
    departures: Path | None,
    junit: Path | None,
    everything: bool,
    restart: str | None,
) -> ExitCode:
    from fencepost.conformance import record
    from fencepost.conformance.runner import Result, new_run, run_cases
    from fencepost.console.junit import check_junit, write_junit

    if junit is not None:
        check_junit()
    chosen = record.named(against) if against else None
    given = record.read_departures(departures) if departures else None
    run = new_run(bootstrap.servers, bootstrap.access())
    with output.progress("cases", len(cases)) as bar:
        results: list[Result] = []

        def done(result: Result) -> None:
            results.append(result)
            bar.to(len(results), result.case.name)

        results = asyncio.run(run_cases(run, cases, done, partial(_restart, restart) if restart else None))
    version = chosen or record.nearest(run.ranges)
    if given is None:
        given = record.departures_of_ours() if run.cluster_id == OURS else {}
    compared = record.compare(results, version, given)
    if junit is not None:
        write_junit(junit, f"fencepost conformance against Apache Kafka {version}", map(junit_case, compared))
    return _tell(output, compared, version, everything, junit, run.left)


def junit_case(compared: "Compared") -> "JUnitCase":
    """A case for JUnit: a difference and a broker that stopped answering are failures, a case that was not
    asked or is explained is skipped with the reason."""
    from fencepost.conformance.record import Status, difference
    from fencepost.console.junit import Case, Ended

    subject, _, name = compared.result.case.name.partition(".")
    made = Case(
        group=f"conformance.{subject}",
        name=name,
        seconds=compared.result.seconds,
        says=compared.result.case.asked,
    )
    if compared.status is Status.DIFFERS:
        return evolve(made, ended=Ended.FAILED, message=difference(compared), kind="differs")
    if compared.status is Status.DIED:
        return evolve(made, ended=Ended.FAILED, message=compared.reason, kind="died")
    if compared.status in (Status.SKIPPED, Status.DEPARTS, Status.NO_RECORD):
        reason = f"{compared.status}: {compared.reason}".rstrip(": ")
        return evolve(made, ended=Ended.SKIPPED, message=reason)
    return made


async def _restart(command: str) -> None:
    """Run the caller's command. What it starts may keep our files open, so its output goes nowhere."""
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_shell(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        async with asyncio.timeout(RESTART_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        raise EnvironmentError_(
            expected="a command that starts the broker and ends",
            seen=f"it runs for more than {RESTART_S:.0f} s",
            where=f"--restart {command!r}",
        ) from None


def _tell(
    output: Output,
    compared: "list[Compared]",
    version: str,
    everything: bool,
    junit: Path | None,
    left: list[str],
) -> ExitCode:
    from fencepost.conformance.record import Status, difference, recorded

    counts = Counter(each.status for each in compared)
    shown = table("case", "", "what")
    for each in compared:
        if each.status is Status.DIFFERS:
            add_row(shown, each.result.case.name, each.status, difference(each), style="bold")
        elif each.status is not Status.EQUAL:
            add_row(shown, each.result.case.name, each.status, each.reason)
        elif everything:
            add_row(shown, each.result.case.name, each.status, each.result.case.asked)
    if shown.row_count:
        output.say(shown)
    words = ", ".join(f"{counts[status]:,} {status}" for status in Status if counts[status])
    asked = recorded()[version].date
    output.say(f"{len(compared):,} cases against Apache Kafka {version} (recorded {asked}): {words}")
    if left:
        output.say(f"{len(left):,} topics could not be deleted: {', '.join(left[:MOST_NAMED])}")
    if junit is not None:
        output.note(f"JUnit XML: {junit}")
    output.emit(
        {
            "against": version,
            "topics_left": left,
            "counts": {status.value: counts[status] for status in Status},
            "cases": [
                {
                    "name": each.result.case.name,
                    "asked": each.result.case.asked,
                    "status": each.status.value,
                    "expected": each.expected,
                    "seen": each.result.facts,
                    "reason": each.reason,
                    "seconds": round(each.result.seconds, 3),
                }
                for each in compared
            ],
        }
    )
    if counts[Status.DIFFERS] or counts[Status.DIED]:
        return ExitCode.FINDINGS
    comparable = counts[Status.EQUAL] + counts[Status.AS_ANOTHER] + counts[Status.DEPARTS]
    return ExitCode.NOTHING_FOUND if comparable else ExitCode.UNDECIDED
