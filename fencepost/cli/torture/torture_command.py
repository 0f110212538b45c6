"""`fencepost torture`: runs a foreign client library under faults, and judges it."""

from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.cli.torture import drivers
from fencepost.console.branching import Branching
from fencepost.console.findings import Findings, Reported, findings_options
from fencepost.console.options import default_option, jobs_option, json_option, out_option, seeds_option
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode


@click.group("torture", cls=Branching)
@click.argument("library", metavar="NAME[@VERSION]")
@seeds_option
@jobs_option
@out_option("out/torture", "Folder for runs, findings and the brokers' traces.")
@click.option("--resume", is_flag=True, help="Continue the campaign in --out.")
@click.option(
    "--replays",
    type=click.IntRange(0, 1_000),
    help="How often to replay the first scenario of each anomaly. [default: at most 10, all together for no "
    "longer than the seeds took]",
)
@click.option("--shrink", is_flag=True, help="Then shrink the first scenario of each anomaly.")
@click.option(
    "--idempotence/--no-idempotence",
    default=None,
    help="Idempotence of every producer. [default: on, if the library has it]",
)
@default_option("--faults/--no-faults", default=True, help="Without: only concurrency.")
@findings_options
@json_option
def command(
    library: str,
    seeds: range,
    jobs: int,
    out: Path,
    resume: bool,
    replays: int | None,
    shrink: bool,
    idempotence: bool | None,
    faults: bool,
    findings: Findings,
    output: Output,
) -> ExitCode:
    """Run a client library in one exact version under seeded faults of requests and brokers, and judge what
    the application saw.

    Each seed draws the client's settings, the number of producers and group members, their concurrent sends,
    and which requests and brokers fail when. Clients are not deterministic: the first scenario of each
    anomaly is replayed ten times, and its rate is reported.

    \b
    Examples
      fencepost torture sarama@1.43.2 --seeds 0:500 --jobs 2 --out out/sarama
      # a driver of your own
      fencepost torture ./ours@2.0.1 --seeds 0:100 --out out/ours
      # in CI: only what is not known yet fails (docs/how-to/ci.md)
      fencepost torture franz-go --seeds 0:100 --baseline known.json --junit torture.xml
      # the control: without idempotence a lost answer makes duplicates
      fencepost torture confluent-kafka --no-idempotence --seeds 0:50 --out out/control
    """
    from fencepost.torture.campaign import torture
    from fencepost.torture.libraries import wanted
    from fencepost.torture.workers import Job

    asked = wanted(library)
    name = str(asked) if "/" not in library else f"{asked.library.folder}@{asked.version}"
    job = Job(library=name, out=str(out), idempotence=idempotence, faults=faults)

    with output.progress("torture", total=len(seeds)) as bar:
        done = 0

        def progress(line: dict[str, Any]) -> None:
            nonlocal done
            done += 1
            bar.to(done)
            found = ", ".join(finding["anomaly"] for finding in line["findings"])
            if found or "scenario" not in line:
                output.note(f"seed {line['seed']}: {found or line.get('failed') or line['disturbed']}")

        def repeating(words: str) -> None:
            bar.to(done, words)
            output.note(words)

        summary = torture(
            job,
            seeds,
            jobs=jobs,
            resume=resume,
            replays=replays,
            shrink=shrink,
            progress=progress,
            repeating=repeating,
        )
    show(summary, output)
    for anomaly, found in summary["findings"].items():
        findings.add(Reported(check="torture", anomaly=anomaly, place=found["promise"], says=found["seen"]))
    if summary["interrupted"]:
        output.note(f"interrupted; --resume continues in {out}")
    return findings.end(output, _exit_codes(summary), {**summary, "out": str(out)})


def _exit_codes(summary: dict[str, Any]) -> set[ExitCode]:
    """Those that apply: a campaign of which many seeds did not run is undecided."""
    not_run = len(summary["failed"]) + len(summary["disturbed"])
    return {
        *([ExitCode.INTERRUPTED] if summary["interrupted"] else ()),
        *([ExitCode.FINDINGS] if summary["findings"] else ()),
        *([ExitCode.UNDECIDED] if not_run * 10 > summary["seeds"] else ()),
    }


def show(summary: dict[str, Any], output: Output) -> None:
    """Print the summary of a campaign for a person."""
    rows = table("anomaly", "seeds", "first", "rate", "smallest", "seen")
    for anomaly, finding in summary["findings"].items():
        small = finding.get("small")
        add_row(
            rows,
            anomaly,
            str(len(finding["seeds"])),
            str(finding["first"]),
            "{} of {}".format(*finding["rate"]),
            "" if small is None else "{} faults, {} of {}".format(small["faults"], *small["rate"]),
            finding["seen"][:120],
        )
    if summary["findings"]:
        output.say(rows)
    for anomaly, finding in summary["findings"].items():
        best = finding.get("small") or finding
        output.say(f"{anomaly} breaks: {finding['promise']}", *(f"  {word}" for word in best["words"]))
    output.say(
        f"{summary['library']}: {summary['seeds']} seeds, {summary['acknowledged']} of {summary['records']} "
        f"records"
        f" acknowledged, {summary['duplicates']} duplicates in {summary['seeds_with_duplicates']} seeds,"
        f" {summary['seeds_per_minute']} seeds per minute, processor time {summary['client_seconds']} s of "
        f"the client and"
        f" {summary['processor_seconds']} s of brokers and judges"
    )
    output.say(
        f"faults struck in {summary['struck']} of {summary['seeds']} seeds; {len(summary['never'])} kinds "
        f"of fault"
        " never struck (--json lists them)",
        *(
            f"  {verb}: {', '.join(f'{api} {count}' for api, count in apis.items())}"
            for verb, apis in summary["met"].items()
        ),
    )
    if summary["failed"]:
        output.say(f"{len(summary['failed'])} seeds did not run, the first: {summary['failed'][0]['failed']}")
    if summary["disturbed"]:
        count, first = len(summary["disturbed"]), summary["disturbed"][0]["disturbed"]
        runs = "run was" if count == 1 else "runs were"
        output.say(f"{count} {runs} disturbed and not judged, the first: {first}")


command.add_command(drivers.command)
