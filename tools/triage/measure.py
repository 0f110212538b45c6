"""Groups held against the truth: adjusted Rand index, bugs lost, groups of a bug, and whether the
protection's own step is told.

Owns: the measures. Must not know how groups come about.
"""

from collections import Counter
from collections.abc import Sequence
from math import comb

from attrs import frozen

from fencepost.bugs import BUGS
from fencepost.mining.triage.bugs import Bug
from tools.triage.own_steps import is_own

FIRST = 3
"""Features of a group among which the protection's own step has to be."""


def adjusted_rand(one: Sequence[object], other: Sequence[object]) -> float:
    """Hubert and Arabie's index of two partitions of the same things: 1 for the same, about 0 for chance."""
    both, ones, others = Counter(zip(one, other, strict=True)), Counter(one), Counter(other)
    together = sum(comb(count, 2) for count in both.values())
    first, second = (sum(comb(count, 2) for count in counts.values()) for counts in (ones, others))
    pairs = comb(len(one), 2)
    expected = first * second / pairs if pairs else 0.0
    most = (first + second) / 2
    return 1.0 if most == expected else (together - expected) / (most - expected)


@frozen(kw_only=True)
class OfBug:
    """What became of a planted bug."""

    bug: str
    traces: int
    # Number -> its traces in that group.
    groups: dict[int, int]
    # Whether it is the majority of any group, so that it is not lost in another.
    own: bool
    # The first feature, of the first FIRST of the largest such group, that is the protection's own step (""
    # for none).
    told: str


@frozen(kw_only=True)
class Measured:
    """ambiguous: bad traces with two bugs that show anomalies of both, which are left out of the index;
    found_one: those of them that are in a group of a bug that they have; found_both: those that are in groups
    of both; invented: traces with one bug that are in a group of another bug too."""

    adjusted_rand: float
    traces: int
    groups: int
    ambiguous: int
    found_one: int
    found_both: int
    invented: int
    bugs: tuple[OfBug, ...]

    @property
    def lost(self) -> list[str]:
        """Bugs without a group of their own."""
        return [one.bug for one in self.bugs if not one.own]

    @property
    def most_groups(self) -> int:
        return max((len(one.groups) for one in self.bugs), default=0)

    @property
    def told(self) -> int:
        return sum(bool(one.told) for one in self.bugs)


def measure(
    truth: dict[int, list[str]],
    labels: dict[int, int],
    bugs: Sequence[Bug],
    also: dict[int, list[int]] | None = None,
) -> Measured:
    """Hold groups against the truth.

    Args:
        truth: planted bugs by trace id.
        labels: groups by trace id.
        bugs: the groups.
        also: by trace id the other groups of which a trace shows the bug too.
    """
    also = also or {}
    single = {trace: planted[0] for trace, planted in truth.items() if len(planted) == 1 and trace in labels}
    names, groups = list(single.values()), [labels[trace] for trace in single]
    by_number = {bug.number: bug for bug in bugs}
    majority = {
        number: Counter(
            name for name, label in zip(names, groups, strict=True) if label == number
        ).most_common(1)
        for number in set(groups)
    }
    found = []
    for bug in sorted(set(names)):
        own = Counter(label for name, label in zip(names, groups, strict=True) if name == bug)
        mine = [number for number in own if majority[number] and majority[number][0][0] == bug]
        largest = max(mine, key=lambda number: own[number], default=None)
        shares = by_number[largest].shares[:FIRST] if largest in by_number else ()
        told = next((one.feature for one in shares if is_own(bug, one.feature)), "")
        found.append(
            OfBug(bug=bug, traces=sum(own.values()), groups=dict(own), own=largest is not None, told=told)
        )
    both = {trace: planted for trace, planted in truth.items() if len(planted) > 1 and trace in labels}
    name_of = {number: most[0][0] for number, most in majority.items() if most}
    shown = {
        trace: {name_of.get(group, "") for group in (labels[trace], *also.get(trace, ()))}
        for trace in truth.keys() & labels.keys()
    }
    return Measured(
        adjusted_rand=adjusted_rand(names, groups),
        traces=len(names),
        groups=len(set(groups)),
        ambiguous=len(both),
        found_one=sum(bool(shown[trace] & set(planted)) for trace, planted in both.items()),
        found_both=sum(shown[trace] >= set(planted) for trace, planted in both.items()),
        invented=sum(
            any(name_of.get(group, "") != planted for group in also.get(trace, ()))
            for trace, planted in single.items()
        ),
        bugs=tuple(found),
    )


def may_be_together(first: str, second: str) -> bool:
    """Whether two bugs can be planted in one run and told apart: in different parts, without a common
    anomaly."""
    one, other = BUGS[first], BUGS[second]
    return one.role != other.role and not one.anomalies & other.anomalies
