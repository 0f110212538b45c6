"""Groups corrected by cause: a step that no healthy trace has, and that belongs to one group, outweighs how
a trace ended.

Owns when a trace goes to another group, and when two groups are one. Must not know Spark, or how groups came
about.

One bug may end in several verdicts, and then the verdict puts its traces into several groups. A step that the
missing protection would have prevented is in all of them. Two rules follow, both about telling items: steps
that comparable healthy traces hardly have, and clauses of the judges.

    own     an item is a group's own if most traces with it are in the group, and most of the group have it
    moves   a trace goes to the group with the most of its own items in it, if a step is among them; an item
            counts by the share of the group that has it, and by how seldom healthy traces do
    joins   groups are one if nearly all of their traces share a step, and hardly another trace has it; not if
            two of them have steps of their own that exclude each other and explain more traces. A step that
            the model refuses, with what it expected, joins them however few healthy traces there are
    also    an item is characteristic of a group if only of this group most traces have it; a trace shows a
            second bug if it has most of what is characteristic of another group, a step among it and, if
            there is any, a clause
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from fencepost.mining.triage.splitting import LEAST, Items, Numbers, chance_of_overlap
from fencepost.mining.triage.weights import Matrix, repeats_verdict

ENOUGH = 50
"""Healthy traces without which nothing is moved or joined: of fewer, it says little that none has a step. Of
none at all, even the usual steps are strange, and all groups share them."""
CAUSES = ("step: ", "left: ", "answer: ")
"""Kinds of item that may be a cause: what brokers did, in what they stayed, and what they showed."""
REFUSED = "clause: conformance: "
"""Begins what the model expected of a step that it refuses: what brokers should have done, and did not."""
NEVER = 0.005
"""Share of comparable healthy traces up to which a step can be own."""
SELDOM = 1e-3
"""No item counts for more than one that this share has: of some hundred healthy traces, none says no more."""
MOST_HERE = 0.75
"""Share of the traces with an item that must be in the group that owns it."""
MOST_HAVE = 0.5
"""Share of a group's traces that must have an item of its own."""
NEARLY_ALL = 0.7
"""Share of each group's traces that must have the step by which groups are one."""
ONLY_THESE = 0.8
"""Share of the traces with this step that must be in these groups."""
APART = 0.02
"""Chance up to which the own steps of two groups exclude each other: one pair is looked at, not many."""

SECOND = 0.5
"""Share of what is characteristic of a group that a trace of another one must have to show its bug too."""

Labels = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def by_cause(labels: Sequence[int], items: Items, counts: Sequence[int], healthy: int) -> list[int]:
    """Labels with traces moved to the groups that own what they did, and groups of one cause joined.

    Args:
        labels: the group of each signature.
        items: of the signatures.
        counts: traces of each signature.
        healthy: how many healthy traces they are compared with.
    """
    found, size = np.array(labels, np.int64), np.array(counts, float)
    often = size @ items.present >= LEAST
    steps = _steps(items) & often & (healthy >= ENOUGH)
    refused = np.array([name.startswith(REFUSED) for name in items.names], bool) & often
    return [int(label) for label in _joined(_moved(found, items, size, steps), items, size, steps | refused)]


def _steps(items: Items) -> Flags:
    """Steps that may be own: what only repeats, or is the verdict, is no cause."""
    of_trace = [name.startswith(CAUSES) and not repeats_verdict(name) for name in items.names]
    return np.array(of_trace, bool) & (items.common <= NEVER)


@frozen(kw_only=True, eq=False)
class Owned:
    """What groups own, or what is characteristic of them."""

    # Numbers of the groups, sorted.
    groups: Labels
    # By group and item what the item is worth there, 0 if nothing.
    worth: Matrix
    # By item whether it is a step that may be a cause.
    steps: Flags
    # By item whether it is a judge's clause.
    clauses: Flags

    def others(self, label: int, present: Flags) -> list[int]:
        """The bugs that a trace shows in addition to that of its group.

        Args:
            label: of its group.
            present: by item whether the trace has it.
        """
        total = self.worth.sum(axis=1)
        own = self.worth > 0
        caused = (own & self.steps & present).any(axis=1)
        judged = (own & self.clauses & present).any(axis=1) | ~(own & self.clauses).any(axis=1)
        enough = (self.worth @ present >= SECOND * total) & caused & judged & (self.groups != label)
        return [int(group) for group in self.groups[enough]]


def characteristic(labels: Sequence[int], items: Items, counts: Sequence[int], healthy: int) -> Owned:
    """What is characteristic of each group; nothing if there are too few healthy traces. Traces with two bugs
    are in the group of one of them, so that the other group need not have most traces with what it does.

    Args:
        labels: the group of each signature.
        items: of the signatures.
        counts: traces of each signature.
        healthy: how many healthy traces they are compared with.
    """
    steps = _steps(items) & (healthy >= ENOUGH)
    found, having = _having_most(np.array(labels, np.int64), items, np.array(counts, float), steps)
    return evolve(found, worth=np.where(having.sum(axis=0) == 1, found.worth, 0.0))


def _owned(labels: Labels, items: Items, size: Numbers, steps: Flags) -> Owned:
    found, _ = _having_most(labels, items, size, steps)
    _, here, _ = _spread(labels, items, size)
    return evolve(found, worth=np.where(here >= MOST_HERE * here.sum(axis=0), found.worth, 0.0))


def _having_most(labels: Labels, items: Items, size: Numbers, steps: Flags) -> tuple[Owned, Flags]:
    """What most traces of each group have, steps and clauses; and by group and item whether it is that."""
    clauses = np.array([name.startswith("clause: ") for name in items.names], bool)
    groups, here, share = _spread(labels, items, size)
    most = (share >= MOST_HAVE) & (here >= LEAST) & (steps | clauses)
    worth = np.where(most, share * -np.log(np.maximum(items.common, SELDOM)), 0.0)
    return Owned(groups=groups, worth=worth, steps=steps, clauses=clauses), most


def _moved(labels: Labels, items: Items, size: Numbers, steps: Flags) -> Labels:
    """Each signature with the group that owns most of it."""
    own = _owned(labels, items, size, steps)
    found = labels.copy()
    for row, present in enumerate(items.present):
        total = own.worth @ present
        caused = ((own.worth > 0) & steps & present).any(axis=1)
        best = int(np.where(caused, total, 0.0).argmax())
        if caused[best] and total[best] > total[np.searchsorted(own.groups, labels[row])]:
            found[row] = own.groups[best]
    return found


def _joined(labels: Labels, items: Items, size: Numbers, steps: Flags) -> Labels:
    """Groups that share a step joined, those with the most traces first."""
    found = labels.copy()
    worth = -np.log(np.maximum(items.common, SELDOM))
    while True:
        groups, here, share = _spread(found, items, size)
        sizes = np.bincount(np.searchsorted(groups, found), weights=size).astype(np.float64)
        sharing = (share >= NEARLY_ALL) & steps
        inside = (here * sharing).sum(axis=0)
        good = (sharing.sum(axis=0) > 1) & (inside >= ONLY_THESE * here.sum(axis=0))
        for item in np.flatnonzero(good).tolist():
            good[item] = not _better_apart(here[sharing[:, item]], item, sizes[sharing[:, item]], steps)
        if not good.any():
            return found
        best = int(np.where(good, inside * worth, -1.0).argmax())
        together = groups[sharing[:, best]]
        found[np.isin(found, together)] = together[0]


def _better_apart(here: Matrix, item: int, sizes: Numbers, steps: Flags) -> bool:
    """Whether two groups have steps of their own that explain more of their traces than the item that they
    share. Then that is a consequence of both. here: by group and item the traces with it."""
    for one, other in combinations(range(len(here)), 2):
        own = here[one, steps & (here[other] == 0)].max(initial=0.0)
        others = here[other, steps & (here[one] == 0)].max(initial=0.0)
        if own + others <= here[one, item] + here[other, item]:
            continue
        chance = chance_of_overlap(sizes[one] + sizes[other], own, np.array([others]), np.zeros(1))
        if chance[0] <= APART:
            return True
    return False


def _spread(labels: Labels, items: Items, size: Numbers) -> tuple[Labels, Matrix, Matrix]:
    """Groups; by group and item the traces with it; and their share of the group."""
    groups, place = np.unique(labels, return_inverse=True)
    here = np.zeros((len(groups), len(items.names)))
    np.add.at(here, place, items.present * size[:, None])
    return groups, here, here / np.bincount(place, weights=size)[:, None]
