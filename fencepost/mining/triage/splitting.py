"""One group that is several bugs: traces with the same verdict, for reasons that exclude each other.

Owns when a group is cut, and where. Must not know Spark, or what an item means.

Many bugs end in the same verdict ("every ISR is full" never came). What all traces of a group have in common
does not say whether it is one bug. So the group is examined again by what only some of them have, weighed by
how few they are. Similar traces form a bug of their own if they have a core: a step that no
healthy trace shows, that nearly all of them and hardly any of the rest have. All other traces stay
together.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from fencepost.mining.triage.weights import STEPS, Matrix, cluster

ALIKE_WITHIN = 0.1
"""Cosine from which parts of a group are one: without what all have in common, little is left to be alike
in."""
CORE, ELSEWHERE = 0.75, 0.1
"""Shares of the part, and of the rest of its group, that have the core."""
UNSEEN = 0.005
"""Share of healthy traces up to which a step counts as one that they do not show."""
LEAST, SHARE = 3, 0.2
"""Traces of a part, and its share of the group: a smaller one is a variety, or luck."""
CLAUSE = 2.0
"""Weight of a judge's clause that only some have, where a step's is the logarithm of how seldom healthy
traces show it."""
DEEPEST = 2
"""Cuts of parts of parts."""


@frozen(kw_only=True, eq=False)
class Items:
    """The items of signatures. present: signatures by items; names: of items; with_step: healthy traces that
    have each item's step; healthy: all of them."""

    present: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    with_step: npt.NDArray[np.int64]
    healthy: int

    @property
    def steps(self) -> npt.NDArray[np.bool_]:
        """Which items are steps of the protocol; repetitions are no cause, and a wait that never ended is the
        verdict itself."""
        return np.array(
            [
                name.split(":", 1)[0] in STEPS and not name.startswith(("again: ", "step: liveness_failed"))
                for name in self.names
            ],
            bool,
        )

    @property
    def clauses(self) -> npt.NDArray[np.bool_]:
        """Which items are words of a judge."""
        return np.array([name.split(":", 1)[0] not in STEPS for name in self.names], bool)


def split(labels: Sequence[int], items: Items, counts: Sequence[int]) -> list[int]:
    """The labels with groups cut into the bugs that they are. counts: traces of each signature."""
    found, size = np.array(labels, np.int64), np.array(counts, float)
    steps, clauses = items.steps, items.clauses
    strange = steps & (items.with_step <= UNSEEN * items.healthy)
    seldom = np.where(steps, np.log((items.healthy + 1) / (items.with_step + 0.5)), CLAUSE)
    told = steps | clauses
    todo = [(int(label), 0) for label in sorted(set(labels))]
    fresh = max(labels, default=0) + 1
    while todo:
        label, depth = todo.pop()
        members = np.flatnonzero(found == label)
        if depth >= DEEPEST or size[members].sum() < 2 * LEAST:
            continue
        for part in _parts(items.present[members], size[members], seldom, told, strange):
            found[members[part]] = fresh
            todo.append((fresh, depth + 1))
            fresh += 1
    return [int(one) for one in found]


def _parts(
    present: npt.NDArray[np.bool_],
    size: Matrix,
    seldom: Matrix,
    told: npt.NDArray[np.bool_],
    strange: npt.NDArray[np.bool_],
) -> list[npt.NDArray[np.bool_]]:
    """The parts of a group that have a core; nothing if less than LEAST traces would be left by a single
    one."""
    whole = size.sum()
    having = size @ present
    asked = told & (having > 1) & (having < whole)
    weights = np.where(asked, seldom * np.log(whole / np.maximum(having, 1)), 0.0)
    rows = present * weights
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.array(cluster(rows / np.where(length > 0, length, 1.0), size.tolist(), ALIKE_WITHIN))
    parts = []
    for label in sorted(set(labels.tolist())):
        part = labels == label
        mine, others = size[part].sum(), size[~part].sum()
        if mine < max(LEAST, SHARE * whole) or not others:
            continue
        inside, outside = size[part] @ present[part] / mine, size[~part] @ present[~part] / others
        if ((inside >= CORE) & (outside <= ELSEWHERE) & asked & strange).any():
            parts.append(part)
    left = whole - sum(size[part].sum() for part in parts)
    return parts if len(parts) > 1 or left >= LEAST else []
