"""One group that is several bugs: traces with the same verdict, for reasons that exclude each other.

Owns when a group is cut, and where. Must not know Spark, or what an item means.

Many bugs end in the same verdict ("every ISR is full" never came). What all traces of a group have in common
does not say whether it is one bug. What only some of them have does, if it is strange: a step that
comparable healthy traces seldom show, or another finding. One bug has several strange steps too, but then
some traces have more than one. Two that exclude each other more than chance allows are two bugs.

    n        traces of the group
    a, b     traces with the one strange item, and with the other
    overlap  traces with both: hypergeometric, if both came from one bug and met by chance

A group is cut if for some pair the overlap is at most EXCLUSIVE of the smaller one, and so small an overlap
has a chance of at most CHANCE. Further items that exclude both are further reasons. Each trace with a reason
goes with the reason of which it has most; the traces without any stay together.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from fencepost.mining.triage.weights import Matrix, has_step, repeats_verdict

LEAST = 3
"""Traces with a strange item; what two have is luck."""
STRANGE = 1e-4
"""Chance up to which as many comparable healthy traces as there are bad ones would all have the step."""
SAID = 0.05
"""What counts as this chance for one trace, of a judge's words: healthy traces have none of them."""
EXCLUSIVE = 0.1
"""Share of the smaller side up to which two reasons may overlap: a trace may have two bugs."""
CHANCE = 0.005
"""Chance of so small an overlap: four traces and six that exclude each other have 0.48 %. Many pairs are
looked at, so that a greater one is there in many groups."""
SAME = 0.75
"""Share of an item's traces that have a reason, from which it belongs to that reason."""
MOST_ITEMS = 300
"""Strange items of one group that are looked at, the strangest first; pairs are their square."""
DEEPEST = 3
"""Cuts of parts of parts."""
INFORMATION = 0.1
"""Weight of how strange two items are, against how surely they exclude each other, to choose a pair."""

Numbers = npt.NDArray[np.float64]


@frozen(kw_only=True, eq=False)
class Items:
    """The items of signatures."""

    # Signatures by items.
    present: npt.NDArray[np.bool_]
    # Of items.
    names: tuple[str, ...]
    # The share of comparable healthy traces that have each item's step.
    common: Numbers

    @property
    def chances(self) -> Numbers:
        """By item the chance that a trace has it by itself; 1 for one that is no reason: repetitions are no
        cause, and a wait that never ended is the verdict."""
        return np.array(
            [
                1.0
                if name.startswith("again: ") or repeats_verdict(name)
                else max(float(share), 1e-3)
                if has_step(name)
                else SAID
                if name.startswith(("finding: ", "clause: ", "ends: ", "stands: "))
                else 1.0
                for name, share in zip(self.names, self.common, strict=True)
            ]
        )


def split(labels: Sequence[int], items: Items, counts: Sequence[int]) -> list[int]:
    """The labels with groups cut into the bugs that they are. counts: traces of each signature."""
    found, size = np.array(labels, np.int64), np.array(counts, float)
    chances = items.chances
    todo = [(int(label), 0) for label in sorted(set(labels))]
    fresh = max(labels, default=0) + 1
    while todo:
        label, depth = todo.pop()
        members = np.flatnonzero(found == label)
        if depth >= DEEPEST or size[members].sum() < 2 * LEAST:
            continue
        for part in _parts(items.present[members], size[members], chances):
            found[members[part]] = fresh
            todo.append((fresh, depth + 1))
            fresh += 1
    return [int(one) for one in found]


def _parts(present: npt.NDArray[np.bool_], size: Matrix, chances: Numbers) -> list[npt.NDArray[np.bool_]]:
    """The parts of a group, one for each reason; none if nothing excludes anything."""
    whole, having = size.sum(), size @ present
    information = having * -np.log(chances)
    telling = (having >= LEAST) & (having <= whole - LEAST) & (information >= -np.log(STRANGE))
    asked = np.flatnonzero(telling)
    asked = asked[np.argsort(-information[asked], kind="stable")][:MOST_ITEMS]
    if len(asked) < 2:
        return []
    rows, count = present[:, asked].astype(float), having[asked]
    both = (rows * size[:, None]).T @ rows
    reasons = _reasons(whole, count, both, information[asked])
    if not reasons:
        return []
    belongs = _belonging(reasons, count, both)
    strength = np.array(
        [rows @ np.where(belongs == place, -np.log(chances[asked]), 0.0) for place in range(len(reasons))]
    )
    best, any_reason = strength.argmax(axis=0), strength.max(axis=0) > 0
    parts = [any_reason & (best == place) for place in range(len(reasons))]
    return [part for part in parts if size[part].sum() >= LEAST]


def _reasons(whole: float, count: Numbers, both: Matrix, information: Numbers) -> list[int]:
    """Items that exclude each other: the surest pair, and those that exclude both."""
    apart = both <= EXCLUSIVE * np.minimum.outer(count, count)
    best, first, second = 0.0, -1, -1
    sure = np.ones(both.shape)
    for one in range(len(count)):
        others = np.flatnonzero(apart[one])
        if not len(others):
            continue
        sure[one, others] = chance_of_overlap(whole, count[one], count[others], both[one, others])
        score = np.log(sure[one, others]) - INFORMATION * (information[one] + information[others])
        score[sure[one, others] > CHANCE] = 0.0
        place = int(score.argmin())
        if score[place] < best:
            best, first, second = float(score[place]), one, int(others[place])
    if first < 0:
        return []
    chosen = [first, second]
    for other in range(len(count)):
        if other not in chosen and apart[other, chosen].all() and sure[other, chosen].min() <= CHANCE:
            chosen.append(other)
    return chosen


def _belonging(reasons: list[int], count: Numbers, both: Matrix) -> npt.NDArray[np.int64]:
    """By item the place of its reason, -1 for none: an item that goes with two is of none."""
    overlap = both[:, reasons] / count[:, None]
    place: npt.NDArray[np.int64] = overlap.argmax(axis=1)
    most = overlap.max(axis=1)
    place[(most < SAME) | (overlap.sum(axis=1) - most > EXCLUSIVE)] = -1
    place[reasons] = np.arange(len(reasons))
    return place


def chance_of_overlap(whole: float, one: float, others: Numbers, both: Numbers) -> Numbers:
    """The chance that of `whole` traces at most `both` have two items by chance, of which `one` and `others`
    traces have each: the lower tail of the hypergeometric distribution."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, int(whole) + 1)))))

    def choose(n: Numbers, k: Numbers) -> Numbers:
        found: Numbers = logs[n.astype(int)] - logs[k.astype(int)] - logs[(n - k).astype(int)]
        return found

    total, ones = np.full(len(others), whole), np.full(len(others), one)
    chance = np.zeros(len(others))
    for overlap in range(int(both.max(initial=0)) + 1):
        shared = np.full(len(others), float(overlap))
        possible = (shared <= both) & (others - shared <= total - ones) & (shared <= np.minimum(ones, others))
        k, rest = np.where(possible, shared, 0.0), np.where(possible, others - shared, 0.0)
        log = choose(ones, k) + choose(total - ones, rest) - choose(total, others)
        chance += np.where(possible, np.exp(log), 0.0)
    clipped: Numbers = np.clip(chance, 1e-300, 1.0)
    return clipped
