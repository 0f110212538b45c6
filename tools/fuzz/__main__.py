"""`python -m tools.fuzz`: odd messages for as long as asked, resumable. Exit code 1 if anything was found."""

import logging
import time
from collections import Counter
from pathlib import Path
from typing import Any

import rich_click as click
from attrs import frozen

from fencepost.console.options import json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from tools import program
from tools.fuzz import guided as coverage
from tools.fuzz.cases import MESSAGES, Case, Finding
from tools.ledger import Ledger

REPORT_S = 30.0
FOLDER = click.Path(file_okay=False, path_type=Path)


@frozen(kw_only=True)
class Done:
    """A case."""

    case: int
    # Messages by kind.
    sent: dict[str, int]
    # frames.
    refused: int
    cpu_s: float
    finding: Finding | None = None


def ledger_of(out: Path, seed: int, messages: int) -> Ledger[Done]:
    """The cases of a seed. Raises FencepostError."""
    asked = {"seed": seed, "messages": messages}
    path = out / f"seed-{seed}.jsonl"
    return Ledger.open(path, Done, key=lambda one: one.case, of="odd messages", asked=asked)


def sums(ledger: Ledger[Done]) -> dict[str, Any]:
    """What all cases add up to."""
    done = ledger.rows.values()
    sent = sum((Counter(one.sent) for one in done), Counter[str]())
    return {
        "seed": ledger.header["asked"]["seed"],
        "following": len(done),
        "cpu_s": sum(one.cpu_s for one in done),
        "refused": sum(one.refused for one in done),
        "sent": dict(sorted(sent.items())),
        "findings": [one.case for one in done if one.finding is not None],
    }


@click.command(name="fuzz", help=__doc__)
@click.option(
    "--seconds", type=click.FloatRange(0), default=60.0, show_default=True, help="how long; 0: one case"
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--messages", type=click.IntRange(1), default=MESSAGES, show_default=True, help="of one case")
@click.option("--case", "only", type=int, default=None, help="run this case again, and nothing else")
@click.option("--out", type=FOLDER, default=Path("out/fuzz"), show_default=True)
@click.option("--guided", type=FOLDER, help="by coverage, of bytes on a connection; inputs are kept here")
@click.option("--pack", type=click.Path(path_type=Path), help="write the inputs of --guided here, and end")
@json_option
def command(
    seconds: float,
    seed: int,
    messages: int,
    only: int | None,
    out: Path,
    guided: Path | None,
    pack: Path | None,
    output: Output,
) -> ExitCode:
    """Run, and go on where the last run with this seed ended."""
    if guided is not None:
        return coverage.pack(guided, pack) if pack else coverage.guided(guided, seconds)
    if pack is not None:
        raise click.UsageError("expected --guided with --pack, saw --pack alone")
    if only is not None:
        finding = Case(seed, only, messages).run()
        output.say(finding.trace if finding else f"case {only}: nothing found")
        return ExitCode.FINDINGS if finding else ExitCode.NOTHING_FOUND
    ledger, until, said = ledger_of(out, seed, messages), time.monotonic() + seconds, time.monotonic()
    while True:
        _one(ledger, Case(seed, len(ledger.rows), messages), output)
        if time.monotonic() - said > REPORT_S:
            said = time.monotonic()
            output.say(_line(sums(ledger)))
        if time.monotonic() >= until:
            break
    progress = sums(ledger)
    output.say(_line(progress))
    output.emit(progress)
    return ExitCode.FINDINGS if progress["findings"] else ExitCode.NOTHING_FOUND


def _one(ledger: Ledger[Done], case: Case, output: Output) -> None:
    began, finding = time.process_time(), case.run()
    spent = time.process_time() - began
    ledger.add(Done(case=case.case, sent=dict(case.sent), refused=case.refused, cpu_s=spent, finding=finding))
    if finding is not None:
        output.say(f"case {finding.case} ({finding.way}): {finding.trace.strip().splitlines()[-1]}")


def _line(done: dict[str, Any]) -> str:
    messages, kinds, findings = sum(done["sent"].values()), len(done["sent"]), len(done["findings"])
    return (
        f"seed {done['seed']}: {done['following']} cases, {messages:,} messages of {kinds} kinds sent, "
        f"{done['refused']:,} frames refused, {findings} findings, {done['cpu_s']:,.0f} s of CPU"
    )


def main() -> None:
    """The process."""
    logging.getLogger("fencepost").setLevel(
        logging.ERROR
    )  # refused connections are what the network path is about
    program.run(command, "fuzz")


if __name__ == "__main__":
    main()
