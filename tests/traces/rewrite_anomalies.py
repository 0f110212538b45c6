"""Writes the anomaly table into docs/reference/verdicts.md and docs/reference/anomalies.md: python
tests/traces/rewrite_anomalies.py"""

from pathlib import Path

from fencepost.traces.anomalies import ANOMALIES, Anomaly

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def verdicts_row(anomaly: Anomaly) -> str:
    """The row of docs/reference/verdicts.md."""
    implied = ", ".join(f"`{name}`" for name in anomaly.implied_by)
    return (
        f"| {anomaly.rank} | `{anomaly.name}` | {anomaly.definition} | {anomaly.breaks} | {implied} | "
        f"{anomaly.jepsen or ''} |"
    )


def listed() -> list[Anomaly]:
    """What docs/reference/anomalies.md lists: anomalies of clients' operations, those with a name in Jepsen
    or with an allowance."""
    return [anomaly for anomaly in ANOMALIES if anomaly.jepsen or anomaly.allowed]


def anomalies_row(anomaly: Anomaly) -> str:
    """The row of docs/reference/anomalies.md."""
    return (
        f"| `{anomaly.name}` | {anomaly.jepsen or ''} | {anomaly.definition} | {anomaly.allowed or 'never'} |"
    )


TABLES = (
    ("verdicts.md", "| rank |", lambda: [verdicts_row(anomaly) for anomaly in ANOMALIES]),
    ("anomalies.md", "| anomaly |", lambda: [anomalies_row(anomaly) for anomaly in listed()]),
)


def rows_below(text: str, heading: str) -> tuple[int, int]:
    """The lines [first, last) of the rows of the table whose heading begins so."""
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines) if line.startswith(heading)) + 2
    last = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
    return first, last


def main() -> None:
    """Write both."""
    for name, heading, rows in TABLES:
        path = DOCS / name
        text = path.read_text()
        lines, (first, last) = text.split("\n"), rows_below(text, heading)
        path.write_text("\n".join([*lines[:first], *rows(), *lines[last:]]))


if __name__ == "__main__":
    main()
