"""What the traces of one bug are, counted in parts that are added up, and the bug that they describe.

Owns: what is counted of a labelled trace, and the step from these counts to a bug. Must not know: who counts
(in_memory.py, on_spark.py), or how traces get their labels (grouping.py).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from attrs import define, field, frozen

from fencepost.mining.triage.bugs import Bug, Example
from fencepost.mining.triage.overrepresented import Healthy, candidates
from fencepost.mining.triage.rows import ALL

NO_EVENTS = "these histories have no protocol events: only their operations were compared"
NO_HEALTHY = "there is no healthy trace to hold them against: every step counts as strange"

Row = Mapping[str, Any]
"""A row of the table `evidence`."""


@frozen(kw_only=True)
class Described:
    """A bug, and what is needed of all bugs to finish it."""

    # Without name and items, which its group has. Its shares are candidates: their chances are not corrected.
    bug: Bug
    # Labels of the other bugs that its traces show too, with counts.
    also: dict[int, int]
    # How many features of its traces are a pair of steps, and how many something else.
    pairs: int
    others: int


@define(eq=False)
class Tally:
    """Counts of some traces of one label."""

    traces: int = 0
    anomalies: Counter[str] = field(factory=Counter)
    profiles: Counter[str] = field(factory=Counter)
    features: Counter[str] = field(factory=Counter)
    # Labels of the other bugs that these traces show too, as text.
    also: Counter[str] = field(factory=Counter)
    # The examples that come first by operations, source and trace id, and by source and trace id.
    smallest: Example | None = None
    first: Example | None = None

    def add(self, row: Row, also: Iterable[int]) -> None:
        """Count a trace. row: of it; also: labels of the other bugs that it shows too."""
        one = Example(**{name: row[name] for name in ("source", "trace_id", "operations", "replay")})
        self.traces += 1
        self.anomalies[row["anomaly"]] += 1
        self.profiles[row["profile"]] += 1
        self.features.update(row["features"])
        self.also.update(map(str, also))
        self._examples(one, one)

    def merge(self, other: "Tally") -> None:
        """Count what another tally of the same label has counted."""
        self.traces += other.traces
        for mine, theirs in zip(self._counters(), other._counters(), strict=True):
            mine.update(theirs)
        if other.smallest is not None and other.first is not None:
            self._examples(other.smallest, other.first)

    def _counters(self) -> tuple[Counter[str], ...]:
        return self.anomalies, self.profiles, self.features, self.also

    def _examples(self, smallest: Example, first: Example) -> None:
        if self.smallest is None or _by_size(smallest) < _by_size(self.smallest):
            self.smallest = smallest
        if self.first is None or _by_place(first) < _by_place(self.first):
            self.first = first

    def to_json(self) -> bytes:
        """For another process."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """The tally of another process. text: of to_json."""
        found: Self = msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: Counter(value))
        return found

    def described(self, label: int, healthy: Healthy) -> Described:
        """The bug of this label. healthy: the traces to compare with. At least one trace was counted."""
        assert self.smallest is not None and self.first is not None
        tested = candidates(self.features, self.profiles, self.traces, healthy)
        missing = {
            NO_EVENTS: not any(one.startswith("step: ") for one in self.features),
            NO_HEALTHY: not any(by.get(ALL) for by in healthy.values()),
        }
        anomalies = _most_first(self.anomalies)
        bug = Bug(
            number=label,
            name="",
            anomaly=next(iter(anomalies)),
            traces=self.traces,
            anomalies=anomalies,
            profiles=_most_first(self.profiles),
            first=self.first,
            smallest=self.smallest,
            items={},
            shares=tested.shares,
            missing=tuple(words for words, holds in missing.items() if holds),
        )
        return Described(
            bug=bug,
            also={int(other): count for other, count in self.also.items()},
            pairs=tested.pairs,
            others=tested.others,
        )


def _by_size(one: Example) -> tuple[int, str, int]:
    return one.operations, one.source, one.trace_id


def _by_place(one: Example) -> tuple[str, int]:
    return one.source, one.trace_id


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
