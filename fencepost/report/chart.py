"""Measurements of one trace over time, as panels of a figure: records not seen yet, and how far reads lag.

Owns what is drawn of each measurement. Must not know how it is measured (checkers/kafka), nor where its
panel is on the page (report/picture.py).
"""

from collections.abc import Iterator

from attrs import frozen

from fencepost.checkers.durations import NANOSECONDS, duration
from fencepost.checkers.kafka import Measurements
from fencepost.report.event_words import partition_name
from fencepost.report.figure import Values, text_of

COLOURS = ("#2f7ed8", "#d9822b", "#3a8f3a", "#8a6fb0", "#c0563f", "#4f8f91")
"""Colours of the lines, in turn."""
MOST_LINES = len(COLOURS)
MILLISECOND = 1_000_000


@frozen
class Panel:
    """One measurement."""

    title: str
    unit: str
    # Plotly's traces without their axes, times in seconds.
    data: tuple[Values, ...]


def unseen(measured: Measurements, start: int, end: int) -> Panel | None:
    """Acknowledged records that no answered poll had shown, by partition, as steps.

    Parameters: start, end: the stretch of time, in nanoseconds.
    Returns: None if there were none.
    """
    lines = []
    shown = [one for one in measured.unseen if len(one.counts)][:MOST_LINES]
    for one, colour in zip(shown, COLOURS, strict=False):
        counts = one.counts.tolist()
        times = [min(max(time, start), end) / NANOSECONDS for time in one.times.tolist()]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": text_of(partition_name(one.topic, one.partition)),
                "x": [start / NANOSECONDS, *times, end / NANOSECONDS],
                "y": [0, *counts, counts[-1]],
                "line": {"shape": "hv", "color": colour, "width": 2},
            }
        )
    return Panel("records acknowledged and not seen yet", "records", tuple(lines)) if lines else None


def lag(measured: Measurements, start: int, end: int) -> Panel | None:
    """The realtime lag of each answered poll, from the least to the most it can have been.

    Parameters: start, end: the stretch of time, in nanoseconds.
    Returns: None without any lag in it.
    """
    lags = measured.lags
    rows = zip(lags.time.tolist(), lags.at_least_ns.tolist(), lags.at_most_ns.tolist(), strict=True)
    inside = [row for row in rows if start <= row[0] <= end]
    longest = max((row[2] for row in inside), default=0)
    if not longest:
        return None
    kinds = (
        ("perhaps behind", COLOURS[0], [row for row in inside if not row[1]]),
        ("surely behind", COLOURS[1], [row for row in inside if row[1]]),
    )
    unit, scale = ("s", NANOSECONDS) if longest >= NANOSECONDS else ("ms", MILLISECOND)
    data = tuple(_ranges(name, colour, rows, scale) for name, colour, rows in kinds if rows)
    return Panel("realtime lag of each poll, from the least to the most", unit, data) if data else None


def _ranges(name: str, colour: str, rows: list[tuple[int, int, int]], scale: int) -> Values:
    """Vertical strokes. scale: nanoseconds of the unit; a poll without any lag is a dot."""

    def points() -> Iterator[tuple[float | None, float | None, str]]:
        for time, least, most in rows:
            words = f"{duration(least)} to {duration(most)} behind"
            yield time / NANOSECONDS, least / scale, words
            yield time / NANOSECONDS, most / scale, words
            yield None, None, ""

    x, y, words = zip(*points(), strict=True)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "hovertext": words,
        "hoverinfo": "text+x",
        "line": {"color": colour, "width": 2},
        "marker": {"size": 4, "color": colour},
    }
