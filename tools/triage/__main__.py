"""`python -m tools.triage`: the ground truth made, mined and measured, by a seed and a list of bugs."""

from pathlib import Path
from random import Random

import attrs
import pyarrow.parquet as pq
import rich_click as click

from fencepost.bugs import BUGS
from fencepost.console.options import jobs_option, json_option, split_names
from fencepost.console.output import Output, add_row, table
from fencepost.mining.mine import mine
from fencepost.traces.errors import ExitCode, FencepostError
from tools import program
from tools.page import Place
from tools.triage.causes import OWN, partings
from tools.triage.dataset import mix
from tools.triage.measure import Measured, may_be_together, measure
from tools.triage.runs import Wanted, chunks_of, harvest, kept_of, of_both, of_bug, of_none

MARK = "<!-- measured by make measure NAME=triage -->"


@click.command()
@click.option("--seed", default=7, show_default=True, help="Draws bugs, pairs, and where bad traces stand.")
@click.option("--bugs", "names", metavar="ID,ID...", help="Planted bugs to draw from. [default: all]")
@click.option("--draw", default=20, show_default=True, help="How many bugs the seed draws; fewer: all.")
@click.option("--pairs", default=3, show_default=True, help="Pairs of bugs that are planted together too.")
@click.option("--runs", default=25, show_default=True, help="Distinct bad runs of each bug.")
@click.option("--seeds", default=1_000, show_default=True, help="Seeds to try for them at most.")
@click.option("--healthy", default=400, show_default=True, help="Distinct healthy runs.")
@click.option("--one-in", default=200, show_default=True, help="Traces for each bad one.")
@click.option("--first-seed", default=9_000_000, show_default=True, help="Of the runs.")
@click.option(
    "--least", default=5, show_default=True, help="A bug with fewer bad runs is left out, and named."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/triage"), show_default=True)
@click.option("--master", default="local[2]", show_default=True)
@click.option(
    "--causes",
    default=20,
    show_default=True,
    help="Say of so many bugs where a run parts from the one with the protection.",
)
@click.option("--docs", type=click.Path(path_type=Path), help="Put the table between this page's marks.")
@jobs_option
@json_option
def command(
    seed: int, names: str | None, draw: int, pairs: int, runs: int, seeds: int, healthy: int, one_in: int,
    first_seed: int, least: int, out: Path, master: str, causes: int, docs: Path | None, jobs: int,
    output: Output,
) -> None:  # fmt: skip
    """Make the ground truth, mine it, and hold the groups against it. Goes on where it was ended.

    \b
    Examples
      python -m tools.triage --seed 7
      python -m tools.triage --bugs KIP-101,KAFKA-708 --runs 10 --one-in 50
    """
    listed = split_names(names) or tuple(sorted(BUGS))
    for bug in listed:
        if bug not in BUGS:
            raise FencepostError(expected=f"one of {', '.join(sorted(BUGS))}", seen=bug, where="--bugs")
    chosen = Random(seed).sample(listed, min(draw, len(listed)))
    wanted = [of_bug(bug, runs, seeds) for bug in chosen]
    wanted += _pairs(chosen, pairs, seed, max(2, runs // 5), seeds)
    wanted.append(of_none(healthy))
    kept: dict[str, int] = {}
    for key, tried, found in harvest(out, wanted, first_seed=first_seed, jobs=jobs):
        kept[key] = found
        output.note(f"{key}: {found} of {tried} seeds")
    keys = [one.key for one in wanted[:-1] if _has(out, one, 1 if "+" in one.key else least)]
    left_out = sorted(one.key for one in wanted[:-1] if one.key not in keys)
    truth = mix(out, keys, runs=runs, one_in=one_in, seed=seed)
    summary = mine([out / "traces"], out / "mined", master=master)
    labels, also = labels_of(out / "mined")
    found = measure(truth, labels, summary.bugs.bugs, also)
    parted = partings(found, summary.bugs.bugs, out, causes)
    _show(found, left_out, parted, output)
    total = sum(summary.traces.values())
    if docs is not None:
        of = f"{len(truth):,} bad traces of {total:,}, from seed {seed}"
        Place(page=docs, mark=MARK).write_table(page_lines(found, left_out, of))
    output.emit(
        {
            **attrs.asdict(found), "seed": seed, "drawn": chosen, "left_out": left_out,
            "traces": total, "bad": len(truth),
            "own_parting": _own_partings(parted), "told_or_parted": _told_or_parted(found, parted),
            "lost": found.lost, "most_groups": found.most_groups, "told": found.told, "parted": parted,
            "exit_code": int(ExitCode.NOTHING_FOUND),
        }
    )  # fmt: skip


def _has(out: Path, wanted: Wanted, least: int) -> bool:
    return kept_of(chunks_of(out, wanted.key)) >= least


def _pairs(bugs: list[str], count: int, seed: int, runs: int, seeds: int) -> list[Wanted]:
    """Pairs drawn by the seed, of bugs that may be planted together."""
    both = [(a, b) for n, a in enumerate(bugs) for b in bugs[n + 1 :] if may_be_together(a, b)]
    Random(seed + 1).shuffle(both)
    return [of_both(a, b, runs, seeds) for a, b in both[:count]]


def labels_of(mined: Path) -> tuple[dict[int, int], dict[int, list[int]]]:
    """The group of each bad trace, and the groups of which it shows the bug too."""
    rows = pq.read_table(mined / "groups", columns=["trace_id", "bug", "also"])
    traces, *columns = (rows.column(name).to_pylist() for name in rows.column_names)
    groups, also = (dict(zip(traces, column, strict=True)) for column in columns)
    return groups, also


def _own_partings(parted: dict[str, str]) -> int:
    """Bugs of which the own step is where the runs part."""
    return sum(words.startswith(OWN) for words in parted.values())


def _told_or_parted(found: Measured, parted: dict[str, str]) -> int:
    """Bugs of which the own step is among the first features, or is the parting event."""
    return sum(bool(one.told) or parted.get(one.bug, "").startswith(OWN) for one in found.bugs)


def _show(found: Measured, left_out: list[str], parted: dict[str, str], output: Output) -> None:
    rows = table("bug", ">traces", ">groups", "own group", "its own step among the first three features")
    for one in found.bugs:
        add_row(rows, one.bug, one.traces, len(one.groups), "yes" if one.own else "LOST", one.told or "-")
    output.say(rows)
    output.say(
        f"\nadjusted Rand index {found.adjusted_rand:.3f} over {found.traces} bad traces in {found.groups} "
        f"groups;"
        f" {len(found.lost)} bugs lost, at most {found.most_groups} groups of one bug, own step told of "
        f"{found.told}"
        f" of {len(found.bugs)}; of {found.ambiguous} traces with two bugs {found.found_one} are in a group"
        f" of one of theirs, {found.found_both} in groups of both; {found.invented} traces with one bug"
        f" are in a group of another one too"
    )
    output.say(
        f"own step where the runs part: {_own_partings(parted)} of {len(parted)};"
        f" there or among the first three features: {_told_or_parted(found, parted)} of {len(found.bugs)}"
    )
    for bug, words in parted.items():
        output.say(f"{bug} parts: {words}")
    if left_out:
        output.say(f"left out, too few bad runs: {', '.join(left_out)}")


def page_lines(found: Measured, left_out: list[str], of: str) -> list[str]:
    """For the page: bugs that are not one group of their own by name, the others by number.

    Args:
        found: the groups compared with the truth.
        left_out: bugs with too few bad runs.
        of: how many traces were mined, and from which seed.
    """
    whole = [one for one in found.bugs if one.own and len(one.groups) == 1]
    others = [one for one in found.bugs if one not in whole]
    rows = [
        f"| {one.bug} | {one.traces} | {len(one.groups)} | {'yes' if one.own else 'no'} |" for one in others
    ]
    return [
        f"{of}: {found.groups} groups of {len(found.bugs)} bugs, adjusted Rand index "
        f"{found.adjusted_rand:.3f}. {len(whole)} bugs are in one group each, where they have the majority.",
        "",
        "| bug | traces | in groups | majority in one |",
        "|---|---:|---:|---|",
        *(rows or ["| none in several | | | |"]),
        "",
        f"Missed: {len(found.lost)} bugs have no group of their own ({', '.join(found.lost) or 'none'}). Of "
        f"{len(found.bugs)} bugs the step that the missing protection forbids is among the first three "
        f"features of {found.told}. Of {found.ambiguous} traces with two bugs {found.found_one} are in a "
        f"group of one of them, {found.found_both} in groups of both. {found.invented} traces are also in a "
        f"group of a bug that they do not have. Too few bad runs: {', '.join(left_out) or 'no bug'}.",
    ]


if __name__ == "__main__":
    program.run(command, "triage")
