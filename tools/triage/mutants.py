"""`python -m tools.triage.mutants`: on mutants of impl/ that the judges convict, does the event at which the
run parts from that of the unmutated code belong to the mutated folder?

Owns: the choice of mutants, the two runs, and the count. Must not know how mutants are made (tools/mutation)
nor how runs are compared (campaign/causes/parting.py). Nobody wrote down what a mutant breaks, so nothing
here can be tuned to the answer. Results are kept line by line; the same command goes on where it was ended.
"""

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click
from attrs import asdict, frozen

from fencepost.campaign.causes.parting import answered_differently, parting
from fencepost.checkers.verdict import Finding
from fencepost.console.options import json_option
from fencepost.console.output import Output, add_row, table
from fencepost.mining.triage.evidence import findings_of
from fencepost.traces.trace import Trace
from tools.mutants.subjects import AREAS, files_of, in_order, module_of, mutants_of
from tools.mutants.trial import plant
from tools.mutants.workers import in_a_child, preload_judges
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault
from tools.triage.homes import folder_of, homes_of, homes_of_answers

PROFILE = "everything"


@frozen(kw_only=True)
class Parted:
    """A mutant. anomaly: what convicts it, "" for none; event: at which its run parts, or the function that
    was answered differently before, "" where the runs do not part; homes: folders of impl/ that this belongs
    to; own: the mutated one is among them."""

    name: str
    folder: str
    seed: int = -1
    anomaly: str = ""
    event: str = ""
    homes: tuple[str, ...] = ()
    own: bool = False


def _originals(answers: Connection, seeds: Sequence[int]) -> None:
    """The runs of the unmutated code."""
    from fencepost.campaign.run.run import run
    from fencepost.campaign.swarm.swarm import swarm

    answers.send([run(swarm(seed, PROFILE)) for seed in seeds])


def _convicted(answers: Connection, fault: Fault, source: bytes, known: Sequence[tuple[int, str]]) -> None:
    """The first run that a judge convicts, and the finding that names it; None for none. What a run raises is
    no finding."""
    found = None
    try:
        plant(module_of(fault.file), fault.applied(source), str(TOP / fault.file))
        from fencepost.campaign.run.run import run
        from fencepost.campaign.swarm.swarm import swarm
        from fencepost.checkers.judges import judge

        for seed, digest in known:
            trace = run(swarm(seed, PROFILE))
            if trace.digest != digest and (findings := findings_of(judge(trace))):
                found = trace, findings[0]
                break
    except Exception as error:  # whatever a mutant does is an answer
        answers.send(repr(error)[:200])
        return
    answers.send(found)


def parted(fault: Fault, finding: Finding, mine: Trace, theirs: Trace) -> Parted:
    """The mutant with where its run parts from the original's. finding: of the run `mine`."""
    where = parting(mine.events, theirs.events, finding)
    before = None if where is None else mine.events[where.position].time
    answered = answered_differently(mine.operations, theirs.operations, finding, before)
    folder, name = folder_of(fault.file), " ".join(fault.name.split())
    says: list[str] = []
    homes: set[str] = set()
    if answered is not None:
        asked = [one for one in answered if one is not None]
        says, homes = [one.function.value for one in asked], homes_of_answers(asked)
    elif where is not None:
        both = [mine.events[where.position], *([where.instead] if where.instead is not None else [])]
        says, homes = [one.name.value for one in both], {home for one in both for home in homes_of(one)}
    return Parted(
        name=name, folder=folder, seed=mine.seed, anomaly=finding.anomaly,
        event=" / ".join(says), homes=tuple(sorted(homes)), own=folder in homes,
    )  # fmt: skip


def by_chance(shown: Sequence[Parted]) -> float:
    """The share that would be own if each had the folder of another mutant, drawn evenly."""
    others = [(one, other.folder) for one in shown for other in shown if one is not other]
    return sum(folder in one.homes for one, folder in others) / max(len(others), 1)


def _read(path: Path) -> dict[str, Parted]:
    """What is known already; a torn last line is left out."""
    found = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            one = msgspec.json.decode(line, type=Parted)
        except msgspec.DecodeError:
            continue
        found[one.name] = one
    return found


@click.command()
@click.option("--count", default=50, show_default=True, help="Convicted mutants to look at.")
@click.option("--tried", default=400, show_default=True, help="Mutants to try at most.")
@click.option("--seed", default=26, show_default=True, help="Of the order of mutants.")
@click.option("--first", default=50_000, show_default=True, help="The first seed of the swarm.")
@click.option("--seeds", default=8, show_default=True, help="Runs of each mutant.")
@click.option("--area", "areas", multiple=True, type=click.Choice(sorted(AREAS)), help="[default: all]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/triage-mutants.jsonl"))
@json_option
def command(
    count: int,
    tried: int,
    seed: int,
    first: int,
    seeds: int,
    areas: tuple[str, ...],
    out: Path,
    as_json: bool,
) -> None:
    """Say for how many convicted mutants the parting event belongs to the mutated folder."""
    output = Output(as_json)
    preload_judges()
    originals: list[Trace] = in_a_child(_originals, range(first, first + seeds))
    digests = [(trace.seed, trace.digest) for trace in originals]
    unmutated = {trace.seed: trace for trace in originals}
    known = _read(out)
    files = [file for area in areas or sorted(AREAS) for file in files_of(area)]
    faults = in_order([fault for file in files for fault in mutants_of(file)], seed)[:tried]
    out.parent.mkdir(parents=True, exist_ok=True)
    shown: list[Parted] = []
    for fault in faults:
        name = " ".join(fault.name.split())
        if name not in known:
            answer: Any = in_a_child(_convicted, fault, (TOP / fault.file).read_bytes(), digests)
            known[name] = (
                Parted(name=name, folder=folder_of(fault.file))
                if answer is None or isinstance(answer, str)
                else parted(fault, answer[1], answer[0], unmutated[answer[0].seed])
            )
            with out.open("ab") as file:
                file.write(msgspec.json.encode(asdict(known[name])) + b"\n")
        if known[name].anomaly:
            shown.append(known[name])
            output.note(f"{len(shown)}: {known[name]}")
        if len(shown) >= count:
            break
    rows = table("folder", ">convicted", ">own folder")
    for folder in sorted({one.folder for one in shown}):
        of = [one for one in shown if one.folder == folder]
        add_row(rows, folder, len(of), sum(one.own for one in of))
    output.say(rows)
    own = sum(one.own for one in shown)
    chance = by_chance(shown)
    output.say(
        f"the parting event belongs to the mutated folder in {own} of {len(shown)} convicted mutants;"
        f" to the folder of another of them in {chance:.0%}"
    )
    mutants = [asdict(one) for one in shown]
    output.emit({"convicted": len(shown), "own": own, "by_chance": round(chance, 3), "mutants": mutants})


if __name__ == "__main__":
    command()
