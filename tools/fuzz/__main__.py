"""`python -m tools.fuzz`: odd messages for as long as asked, resumable. Exit code 1 if anything was found."""

import logging
import time
from collections import Counter
from pathlib import Path

import msgspec
import rich_click as click
from attrs import asdict, define, field

from fencepost.console.options import json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from tools import program
from tools.fuzz.cases import MESSAGES, Case

PROGRESS = "progress.json"
REPORT_S = 30.0


@define
class Progress:
    """What was done with a seed so far. following: number of the next case."""

    seed: int
    following: int = 0
    cpu_s: float = 0.0
    refused: int = 0
    sent: dict[str, int] = field(factory=dict)
    findings: list[int] = field(factory=list)


@click.command(name="fuzz", help=__doc__)
@click.option(
    "--seconds", type=click.FloatRange(0), default=60.0, show_default=True, help="how long; 0: one case"
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--messages", type=click.IntRange(1), default=MESSAGES, show_default=True, help="of one case")
@click.option("--case", "only", type=int, default=None, help="run this case again, and nothing else")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out/fuzz"), show_default=True
)
@json_option
def command(seconds: float, seed: int, messages: int, only: int | None, out: Path, as_json: bool) -> ExitCode:
    """Run, and go on where the last run with this seed ended."""
    output = Output(json=as_json)
    if only is not None:
        finding = Case(seed, only, messages).run()
        output.say(finding.trace if finding else f"case {only}: nothing found")
        return ExitCode.FINDINGS if finding else ExitCode.NOTHING_FOUND
    folder = out / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    progress, until, said = _progress(folder, seed), time.monotonic() + seconds, time.monotonic()
    while True:
        _one(folder, progress, messages, output)
        if time.monotonic() - said > REPORT_S:
            said = time.monotonic()
            output.say(_line(progress))
        if time.monotonic() >= until:
            break
    output.say(_line(progress))
    if as_json:
        click.echo(msgspec.json.encode(asdict(progress)).decode())
    return ExitCode.FINDINGS if progress.findings else ExitCode.NOTHING_FOUND


def _one(folder: Path, progress: Progress, messages: int, output: Output) -> None:
    case, began = Case(progress.seed, progress.following, messages), time.process_time()
    finding = case.run()
    progress.following += 1
    progress.cpu_s += time.process_time() - began
    progress.refused += case.refused
    progress.sent = dict(sorted((Counter(progress.sent) + case.sent).items()))
    if finding is not None:
        progress.findings.append(finding.case)
        (folder / f"finding-{finding.case}.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(finding))
        )
        output.say(f"case {finding.case} ({finding.way}): {finding.trace.strip().splitlines()[-1]}")
    draft = folder / f"{PROGRESS}.draft"
    draft.write_bytes(msgspec.json.encode(progress))
    draft.replace(folder / PROGRESS)


def _progress(folder: Path, seed: int) -> Progress:
    path = folder / PROGRESS
    return msgspec.json.decode(path.read_bytes(), type=Progress) if path.exists() else Progress(seed)


def _line(progress: Progress) -> str:
    return (
        f"seed {progress.seed}: {progress.following} cases, {sum(progress.sent.values()):,} messages of "
        f"{len(progress.sent)} kinds sent,"
        f" {progress.refused:,} frames refused, {len(progress.findings)} findings, {progress.cpu_s:,.0f} s "
        f"of CPU"
    )


def main() -> None:
    """The process."""
    logging.getLogger("fencepost").setLevel(
        logging.ERROR
    )  # refused connections are what the network path is about
    program.run(command, "fuzz")


if __name__ == "__main__":
    main()
