"""Two minings compared: which bugs are new, which are gone, which have grown.

Owns: when a bug of one mining is one of another. Must not know: Spark, traces.

Weights depend on what else a mining found, so that the same bug has about the same items in both, and not the
same numbers. Two bugs are the same if their items are as much alike as two groups of one mining have to be to
become one; each has at most one partner, the likeliest pairs first.
"""

import math
from collections.abc import Iterator, Mapping

from attrs import frozen

from fencepost.mining.triage.bugs import Bug, Bugs
from fencepost.mining.triage.weights import ALIKE

GROWN = 2.0
"""Factor of a bug's share of all traces from which it has grown, or shrunk: less is how runs scatter."""


@frozen(kw_only=True)
class Moved:
    """A bug that both minings have."""

    # Name and number in this mining.
    name: str
    number: int
    # Its name in the earlier one.
    before: str
    # Its traces in both.
    traces_before: int
    traces: int
    # Whether its share of the traces has at least doubled.
    grown: bool


@frozen(kw_only=True)
class Since:
    """How this mining's bugs compare with those of an earlier one."""

    earlier: str
    # Names of bugs only here.
    new: tuple[str, ...]
    # Only there.
    gone: tuple[str, ...]
    both: tuple[Moved, ...]

    def lines(self) -> Iterator[str]:
        """Lines for a person."""
        yield f"since {self.earlier}: {len(self.new)} new, {len(self.gone)} gone, {len(self.both)} as before"
        for name in self.new:
            yield f"  new: {name}"
        for name in self.gone:
            yield f"  gone: {name}"
        for one in self.both:
            if one.grown:
                yield f"  grown: {one.name}, {one.traces:,} traces instead of {one.traces_before:,}"


def alike(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The similarity of two bugs: the cosine of their items. one, other: item -> weight. 0 to 1."""
    product = sum(weight * other.get(item, 0.0) for item, weight in one.items())
    lengths = [math.sqrt(sum(weight * weight for weight in items.values())) for items in (one, other)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def since(now: Bugs, before: Bugs, earlier: str) -> Since:
    """Compare. earlier: what to call the mining before. A bug has grown if its share of the judged traces is
    GROWN times as large or more."""
    pairs = sorted(
        (
            (alike(one.items, other.items), one.number, other.number)
            for one in now.bugs
            for other in before.bugs
            if one.anomaly == other.anomaly or set(one.anomalies) & set(other.anomalies)
        ),
        key=lambda pair: (-pair[0], pair[1:]),
    )
    partner: dict[int, int] = {}
    for likeness, one, other in pairs:
        if likeness >= ALIKE and one not in partner and other not in partner.values():
            partner[one] = other
    by_number = {bug.number: bug for bug in before.bugs}
    return Since(
        earlier=earlier,
        new=tuple(bug.name for bug in now.bugs if bug.number not in partner),
        gone=tuple(bug.name for bug in before.bugs if bug.number not in partner.values()),
        both=tuple(
            _moved(bug, by_number[partner[bug.number]], now, before)
            for bug in now.bugs
            if bug.number in partner
        ),
    )


def _moved(bug: Bug, old: Bug, now: Bugs, before: Bugs) -> Moved:
    share, share_before = (
        one.traces / max(of.judged or of.bad + of.healthy, 1) for one, of in ((bug, now), (old, before))
    )
    return Moved(
        name=bug.name,
        number=bug.number,
        before=old.name,
        traces_before=old.traces,
        traces=bug.traces,
        grown=share >= GROWN * share_before,
    )
