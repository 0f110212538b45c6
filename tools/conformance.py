"""`python -m tools.conformance`: what our brokers answer to the cases of `fencepost conformance`, compared
with Apache Kafka's recorded answers, as the table of docs/results/conformance.md.

Owns that table. Must not know cases, or how answers are compared (fencepost/conformance).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import rich_click as click
from attrs import evolve

from fencepost.conformance.cases import all_cases
from fencepost.conformance.record import Compared, Status, compare, departures_of_ours, recorded
from fencepost.conformance.runner import Result, new_run, run_cases
from fencepost.impl.runtime.addresses import parse_address
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.traces.plan import TransactionOptions
from fencepost.wire.client import Access
from tools import program
from tools.ledger import TOP
from tools.page import Place

PAGE = TOP / "docs" / "results" / "conformance.md"
MARK = "<!-- measured by make measure NAME=conformance -->"
TRANSACTIONS = TransactionOptions(state_topic_partitions=2, version=2)
"""As Apache Kafka 4 has them."""
NEWEST = max(recorded())


def results() -> list[Result]:
    """Every case, against an embedded cluster of three brokers."""
    with Embedded(options=evolve(quick_options(), transactions=TRANSACTIONS)) as cluster:
        addresses = tuple(parse_address(each) for each in cluster.bootstrap_servers().split(","))
        return asyncio.run(run_cases(new_run(addresses, Access()), all_cases()))


def page_lines(compared: Sequence[Compared], departures: Mapping[str, str]) -> list[str]:
    """The counts by group, then why answers differ.

    Args:
        compared: every case, with NEWEST.
        departures: case -> why it may differ.
    """
    groups: dict[str, Counter[Status]] = defaultdict(Counter)
    for each in compared:
        groups[each.result.case.name.partition(".")[0]][each.status] += 1
    whole = [counts for counts in groups.values() if counts.keys() == {Status.EQUAL}]
    equal = sum(each.status is Status.EQUAL for each in compared)
    seen = {each.status for each in compared} - {Status.EQUAL}
    others = [one for one in Status if one in seen]
    head = ("group", "cases", "equal", *others)
    rows = [
        (f"`{name}`", counts.total(), *(counts[one] for one in (Status.EQUAL, *others)))
        for name, counts in sorted(groups.items())
        if counts not in whole
    ]
    total = sum(counts.total() for counts in whole)
    rows.append((f"the other {len(whole)}", total, total, *(0 for _ in others)))
    return [
        f"{equal} of {len(compared)} cases, in {len(groups)} groups, are answered as Apache Kafka {NEWEST}.",
        "",
        _row(head),
        f"|---|{'---:|' * (len(head) - 1)}",
        *map(_row, rows),
        "",
        *_reasons(compared, departures),
    ]


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _reasons(compared: Sequence[Compared], departures: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason, with its cases, and one for each other status."""
    names: dict[str, list[str]] = defaultdict(list)
    for each in compared:
        if each.status is not Status.EQUAL:
            why = {Status.DEPARTS: each.reason, Status.AS_ANOTHER: f"as Apache Kafka {each.reason}"}
            names[why.get(each.status, each.status)].append(f"`{each.result.case.name}`")
    for why, cases in sorted(names.items(), key=lambda one: (one[0] not in departures.values(), one[1])):
        yield f"- {', '.join(cases)}: {why}"


@click.command("conformance", help=__doc__)
@click.option(
    "--docs",
    type=click.Path(path_type=Path),
    default=PAGE,
    show_default=True,
    help="The page that is written.",
)
def command(docs: Path) -> None:
    """Write the table. Raises FencepostError where the page lacks its marks."""
    departures = departures_of_ours()
    place = Place(page=docs, mark=MARK)
    place.write_table(page_lines(compare(results(), NEWEST, departures), departures))


if __name__ == "__main__":
    program.run(command, "conformance")
