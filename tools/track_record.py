"""`python -m tools.track_record FOLDER`: what `fencepost bugs hunt --out FOLDER` measured, as the table of docs/track-record.md.

Owns the table between the two marks of that page; writes nothing else. Must not measure: a bug that is not in the record has no row.
"""

import sys
from pathlib import Path

import msgspec

from fencepost.campaign.bugs import BUGS
from fencepost.cli.bugs import RECORD, Hunt

PAGE = Path(__file__).parents[1] / "docs" / "track-record.md"
BEGIN, END = "<!-- measured by make track-record -->\n", "<!-- end -->\n"
HEAD = "| bug | breaks | seeds needed | median of {ranges} ranges | found as | profile | the protection that is missing |"


def _number(needed: int | None, tried: int) -> str:
    return f"not in {tried:,}" if needed is None else f"{needed:,}"


def _median(hunt: Hunt) -> str:
    return "not in most ranges" if hunt.median is None else f"{hunt.median:,}"


def table(hunts: list[Hunt]) -> str:
    """The rows in the order of `fencepost bugs list`."""
    by_bug = {hunt.bug: hunt for hunt in hunts}
    ranges = max((len(hunt.ranges) for hunt in hunts), default=0)
    lines = [HEAD.format(ranges=ranges), "|---|---|---:|---:|---|---|---|"]
    for bug in BUGS.values():
        hunt = by_bug.get(bug.bug)
        if hunt is not None:
            middle = _median(hunt) if len(hunt.ranges) == ranges else "not measured"
            cells = (hunt.bug, hunt.breaks, _number(hunt.seeds_needed, hunt.seeds_tried), middle)
            lines.append("| " + " | ".join((*cells, hunt.anomaly, bug.profile, hunt.says)) + " |")
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Write the table into the page."""
    hunts = msgspec.json.decode((folder / RECORD).read_bytes(), type=list[Hunt])
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(hunts)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
