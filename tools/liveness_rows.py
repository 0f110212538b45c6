"""`python -m tools.liveness_rows [FOLDER | PROFILE A:B]...`: the rows of the check of liveness.

Without arguments it writes the generated tables of docs/reference/liveness.md. With folders of traces, or
a profile of the swarm and a range of seeds, it prints how often each row was judged there, and how often a
disturbance excused it: a row that is judged in fewer than 50 of 1,000 seeds, or excused in over half, is
blind.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fencepost.campaign.swarm.profiles import PROFILES, STEERED
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.liveness import ROWS, counts_of, judge
from fencepost.checkers.liveness.live import LIVE_ROWS
from fencepost.run.simulated.run import run
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tools.ledger import TOP
from tools.page import Place

PAGE = TOP / "docs" / "reference" / "liveness.md"
ROWS_AT, LIVE_AT = (Place(page=PAGE, mark=f"<!-- {name} -->") for name in ("rows", "live clusters"))
LEAST_PER_THOUSAND = 50


def rows_table() -> str:
    """The rows by subject, as the page has them."""
    lines = []
    for subject in dict.fromkeys(row.subject for row in ROWS):
        names = ", ".join(f"`{row.name}`" for row in ROWS if row.subject == subject)
        lines.append(f"- {subject}: {names}")
    return "\n".join(lines) + "\n"


def live_table() -> str:
    """The rows for live clusters that are findings, as the page has them."""
    lines = ["| anomaly | how long | because |", "|---|---|---|"]
    for row in LIVE_ROWS:
        if not row.note:
            lines.append(f"| `{row.name}` | {row.least} answers, {row.bound_s} s | {row.reason} |")
    return "\n".join(lines) + "\n"


def traces_of(arguments: Iterable[str]) -> Iterator[Trace]:
    """The traces that the arguments name."""
    words = iter(arguments)
    for word in words:
        if word.partition(STEERED)[0] in PROFILES:
            first, _, last = next(words).partition(":")
            for seed in range(int(first), int(last)):
                yield run(swarm(seed, word))
        else:
            yield from TraceStore.open(Path(word))


def counted(traces: Iterable[Trace]) -> str:
    """How often each row was judged."""
    judged, excused, seeds, found, total = Counter(), Counter(), Counter(), Counter(), 0
    for trace in traces:
        total += 1
        for name, count in counts_of(trace).items():
            judged[name] += count.judged
            excused[name] += count.excused
            seeds[name] += count.judged > 0
        found.update(finding.anomaly for finding in judge(trace).findings)
    lines = [f"{total} traces", "", "| anomaly | judged | in traces | excused | findings | |"]
    lines.append("|---|---:|---:|---:|---:|---|")
    for row in ROWS:
        blind = seeds[row.name] * 1_000 < LEAST_PER_THOUSAND * total or excused[row.name] > judged[row.name]
        counts = (judged, seeds, excused, found)
        cells = (f"`{row.name}`", *(str(of[row.name]) for of in counts), "blind" if blind else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables, or count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="FOLDER | PROFILE A:B", help="none: write the page")
    what = parser.parse_args().what
    if what:
        sys.stdout.write(counted(traces_of(what)) + "\n")
    else:
        ROWS_AT.write(rows_table())
        LIVE_AT.write(live_table())


if __name__ == "__main__":
    main()
