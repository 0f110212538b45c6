"""Measurements of one trace over virtual time, as SVG: records not seen yet, and how far reads lag behind the log, as a range.

Owns the axes and the drawing. Must not know how the measurements are made (checkers/kafka).
"""

from collections.abc import Sequence

from attrs import frozen

from fencepost.checkers.kafka import Measurements
from fencepost.report.templating import render
from fencepost.report.words import NANOSECONDS, duration, partition_name

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1100, 150, 90, 20, 22, 24
COLOURS = ("#2f6fb5", "#e08e28", "#3a8f3a", "#8a6fb0", "#b5482f", "#5f9ea0")
"""Of the lines, in turn."""
MOST_LINES = len(COLOURS)
SHORTEST_BAR = 2
"""Pixels: a poll that was not behind at all shows too."""


@frozen
class Line:
    """One line or band. points: "x,y x,y ..."."""

    name: str
    points: str
    colour: str


@frozen
class Axes:
    """How moments and quantities stand on the drawing."""

    start: int
    end: int
    most: float

    def x(self, time: int) -> float:
        """Of a moment."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (time - self.start) / max(self.end - self.start, 1), 1)

    def y(self, quantity: float) -> float:
        """Of a quantity."""
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * quantity / self.most, 1)


def _draw(title: str, top_label: str, axes: Axes, lines: Sequence[Line], bands: Sequence[Line]) -> str:
    ticks = [
        (
            axes.x(axes.start + (axes.end - axes.start) * part // 8),
            axes.start + (axes.end - axes.start) * part // 8,
        )
        for part in range(9)
    ]
    return render(
        "chart.svg",
        title=title,
        top_label=top_label,
        ticks=[(x, f"{time / NANOSECONDS:.1f} s") for x, time in ticks],
        lines=lines,
        bands=bands,
        box=(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM),
    )


def unseen_chart(measured: Measurements, start: int, end: int) -> str:
    """Acknowledged records that no answered poll had shown, by partition, as steps. "" if there were none."""
    shown = [one for one in measured.unseen if len(one.counts)][:MOST_LINES]
    if not shown:
        return ""
    axes = Axes(start, end, float(max(int(one.counts.max()) for one in shown)) or 1.0)
    lines = []
    for one, colour in zip(shown, COLOURS, strict=False):
        points, before = [f"{axes.x(start)},{axes.y(0)}"], 0
        for time, count in zip(one.times.tolist(), one.counts.tolist(), strict=True):
            at = min(max(time, start), end)
            points += [f"{axes.x(at)},{axes.y(before)}", f"{axes.x(at)},{axes.y(count)}"]
            before = count
        points.append(f"{axes.x(end)},{axes.y(before)}")
        lines.append(Line(partition_name(one.topic, one.partition), " ".join(points), colour))
    return _draw("records acknowledged and not seen yet", f"{axes.most:g} records", axes, lines, ())


def lag_chart(measured: Measurements, start: int, end: int) -> str:
    """The realtime lag of each answered poll, from the least to the most it can have been, in milliseconds. "" without any lag."""
    lags = measured.lags
    if not len(lags.time) or not int(lags.at_most_ns.max()):
        return ""
    axes = Axes(start, end, float(-(-int(lags.at_most_ns.max()) // 1_000_000)))
    bars = []
    rows = zip(lags.time.tolist(), lags.at_least_ns.tolist(), lags.at_most_ns.tolist(), strict=True)
    for time, least, most in rows:
        x = axes.x(min(max(time, start), end))
        low, high = axes.y(least / 1_000_000), axes.y(most / 1_000_000)
        high = min(high, low - SHORTEST_BAR)
        bars.append(Line("", f"{x},{low} {x},{high}", COLOURS[1] if least else COLOURS[0]))
    return _draw(
        "realtime lag of each poll: from the least to the most it can have been (orange: surely behind)",
        duration(int(lags.at_most_ns.max())),
        axes,
        (),
        bars,
    )
