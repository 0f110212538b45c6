"""Bugs: groups of bad traces, as values, as JSON, and in words.

Owns the description of a group, and its words. Must not know Spark, or how groups are made.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from attrs import asdict, frozen

from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import TraceError
from fencepost.traces.whole_file import write_whole

FILE = "bugs.json"
MOST_SHOWN = 5
"""Features of a bug that are shown; the file has more."""


@frozen(kw_only=True)
class Shared:
    """A feature that is over-represented in a bug's traces."""

    feature: str
    # Traces of the bug that have it, and all of the bug.
    bad: int
    of_bad: int
    # The share of comparable healthy traces that have it, 0 to 1, and how many comparable ones there are.
    healthy: float
    of_healthy: int
    # Ochiai's measure, 0 to 1.
    ochiai: float
    # G.
    likelihood_ratio: float
    # Corrected for the number of features and bugs.
    p: float

    def words(self) -> str:
        """One line for a person."""
        return (
            f"in {_percent(self.bad / self.of_bad)} of the bad ({self.bad:,} of {self.of_bad:,}) and"
            f" {_percent(self.healthy)} of the healthy ({self.of_healthy:,}): {self.feature}"
        )


def _percent(share: float) -> str:
    return "0 %" if share == 0 else "< 1 %" if share < 0.01 else f"{share:.0%}".replace("%", " %")


@frozen(kw_only=True)
class Example:
    """A trace of a bug."""

    source: str
    trace_id: int
    # How many it has.
    operations: int
    # The command that runs it again, empty for a foreign one.
    replay: str = ""


@frozen(kw_only=True)
class Bug:
    """One group."""

    # Counts from 1; the bug with the worst anomaly is the first, among equals the one with the most traces.
    number: int
    # The same in each mining of the same traces.
    name: str
    # The worst of `anomalies`.
    anomaly: str
    traces: int
    # The anomalies that name its traces, with counts.
    anomalies: dict[str, int]
    # Traces by profile.
    profiles: dict[str, int]
    # The first trace in the order of source and trace id.
    first: Example
    # The trace with the fewest operations of those that the worst anomaly names.
    smallest: Example
    # The evidence that most of its traces have, with weights; minings are compared by it.
    items: dict[str, float]
    shares: tuple[Shared, ...] = ()
    # Traces of other bugs that show this one too.
    also: int = 0
    # What could not be determined for these traces.
    missing: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Lines for a person."""
        yield f"bug {self.number}, {self.name}: {_traces(self.traces)}"
        others = [f"{name} ({count:,})" for name, count in self.anomalies.items() if name != self.anomaly]
        yield f"  {self.anomaly}: {BY_NAME[self.anomaly].definition}"
        if others:
            yield f"  also named {', '.join(others)}"
        if self.also:
            yield f"  {_traces(self.also)} of other bugs show this one too"
        yield (
            f"  smallest:  trace {self.smallest.trace_id} of {self.smallest.source} "
            f"({self.smallest.operations:,} operations)"
        )
        for shared in self.shares[:MOST_SHOWN]:
            yield f"  {shared.words()}"
        for what in self.missing:
            yield f"  missing: {what}"
        if self.smallest.replay:
            yield f"  replay:    {self.smallest.replay}"


def _traces(count: int) -> str:
    return f"{count:,} trace" if count == 1 else f"{count:,} traces"


@frozen(kw_only=True)
class Bugs:
    """The result of triage."""

    bugs: tuple[Bug, ...] = ()
    # Bad traces.
    bad: int = 0
    # Healthy traces that the bad ones were compared with: all of few, a sample of many (compared.py).
    healthy: int = 0
    # Pairs of bug and feature.
    tested: int = 0
    # Traces that were judged, with the undecided ones; 0 in files of earlier versions.
    judged: int = 0

    def write(self, folder: Path) -> None:
        """Into its file of a mining's folder."""
        write_whole(folder / FILE, msgspec.json.format(msgspec.json.encode(asdict(self))) + b"\n")


def read_bugs(folder: Path) -> Bugs:
    """The bugs of a mining. Raises TraceError in one sentence where there are none, or what is there is
    something else."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Bugs)
    except FileNotFoundError:
        raise TraceError(
            expected=f"a folder that `fencepost mine` wrote, with {FILE}",
            seen="none there",
            where=str(folder),
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise TraceError(expected="the bugs of a mining", seen=str(error), where=str(path)) from None
