"""From counted signatures to groups of bad traces.

Owns the coordinates (items that weigh anything), the clusters of the most frequent signatures, their names,
and the group of any other trace. Must not know how traces are counted (grouping.py).
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from fencepost.mining.triage.owning import Owned, by_cause, characteristic
from fencepost.mining.triage.splitting import Items, split
from fencepost.mining.triage.weights import (
    ALIKE,
    Matrix,
    cluster,
    common_of,
    healthy_name,
    vectors,
    weight_of,
)
from fencepost.traces.anomalies import BY_NAME, first_by_rank

MOST_ITEMS = 4_000
"""Coordinates of a vector; 1,500 vectors of them are 48 MB. Items are canonical, so that their number hardly
grows with the traces."""
MOST_SIGNATURES = 1_500
"""Signatures that are clustered, some seconds of work; the rest is assigned to the resulting
groups."""
USUAL = 0.5
"""A group's own items are those that at least this share of its traces has."""
MOST_OWN = 40
"""Items that are kept of a group, the heaviest first."""

ByProfile = Mapping[str, Mapping[str, int]]
"""Traces by item or feature, and by profile."""


@frozen(kw_only=True)
class Signature:
    """The weighty items of some bad traces, sorted, and the anomaly that names them."""

    # A hash of both.
    text: str
    anomaly: str
    kept: Sequence[str]
    # How many bad traces have it.
    traces: int


@frozen(kw_only=True, eq=False)
class Space:
    """The coordinates."""

    # Place of each item.
    places: dict[str, int]
    # Weight of each item.
    weights: tuple[float, ...]
    # The share of comparable healthy traces that have each item's step.
    common: tuple[float, ...]

    def vectors(self, signatures: Sequence[tuple[str, Sequence[str]]]) -> Matrix:
        """As in weights.py."""
        return vectors(signatures, self.places, self.weights)


def space_of(
    rated: Mapping[str, tuple[int, int]],
    here: ByProfile,
    having: ByProfile,
    *,
    bad: int,
    healthy: Mapping[str, int],
) -> Space:
    """The items that weigh anything.

    Args:
        rated: of each item, the bad traces that have it, and the most of them that one anomaly names.
        here: bad traces by item and profile.
        having: healthy traces by feature and profile.
        bad: all bad traces.
        healthy: all healthy traces by profile.
    """
    weighed: dict[str, tuple[float, float]] = {}
    for item in sorted(rated, key=lambda item: (-rated[item][0], item)):
        with_item, most = rated[item]
        name = healthy_name(item)
        common = common_of(here[item], having.get(name, {}), healthy) if name else 0.0
        weight = weight_of(
            item,
            bad=bad,
            with_item=with_item,
            healthy=sum(healthy.values()),
            common=common,
            purity=most / with_item,
        )
        if weight > 0 and len(weighed) < MOST_ITEMS:
            weighed[item] = weight, common
    places = {item: place for place, item in enumerate(sorted(weighed))}
    return Space(
        places=places,
        weights=tuple(weighed[item][0] for item in places),
        common=tuple(weighed[item][1] for item in places),
    )


@frozen(kw_only=True, eq=False)
class Clusters:
    """The groups of the most frequent signatures, and which group any other trace is most like."""

    # The group of each clustered signature, by its text.
    known: dict[str, int]
    # Numbers of the groups, sorted, and the centre of each.
    groups: list[int]
    centres: Matrix
    space: Space
    # What is characteristic of each group, by which a trace of another group shows its bug too.
    characteristic: Owned
    # The name of each group, and the items that it is known by.
    names: dict[int, str]
    items: dict[int, dict[str, float]]

    def label(self, signature: str, anomaly: str, kept: Sequence[str]) -> int:
        """The group of a bad trace; 0 for one that is like none. signature, anomaly, kept: as in
        Signature."""
        label = self.known.get(signature)
        if label is None:
            likeness = self.space.vectors([(anomaly, list(kept))]) @ self.centres.T
            label = self.groups[int(likeness.argmax())] if likeness.max(initial=0) >= ALIKE / 2 else 0
        return label

    def also(self, label: int, kept: Sequence[str]) -> list[int]:
        """The other groups of which a trace shows the bug too.

        Args:
            label: the trace's own group.
            kept: as in Signature.
        """
        present = np.zeros(len(self.space.places), bool)
        present[[self.space.places[item] for item in kept]] = True
        return self.characteristic.others(label, present)


def clusters_of(top: Sequence[Signature], space: Space, healthy: int) -> Clusters:
    """Cluster signatures. top: the MOST_SIGNATURES most frequent ones, in any order; space: the items;
    healthy: the healthy traces that they are compared with."""
    top = sorted(top, key=lambda one: one.text)
    signatures = [(one.anomaly, one.kept) for one in top]
    counts = [one.traces for one in top]
    rows, places = space.vectors(signatures), list(space.places)
    grouped_items = Items(present=rows > 0, names=tuple(places), common=np.array(space.common, float))
    labels = split(_alone(cluster(rows, counts), rows, signatures), grouped_items, counts)
    labels = by_cause(labels, grouped_items, counts, healthy)
    labels = _worst_first(labels, counts, signatures)
    groups = sorted(set(labels))
    centres = [
        np.average(
            rows[_members(label, labels)], axis=0, weights=[counts[row] for row in _members(label, labels)]
        )
        for label in groups
    ]
    items = {label: _own(label, labels, rows, counts, places) for label in groups}
    anomalies = {label: _anomaly(label, labels, signatures) for label in items}
    return Clusters(
        known=dict(zip([one.text for one in top], labels, strict=True)),
        groups=groups,
        centres=np.array(centres).reshape(len(groups), len(space.places)),
        space=space,
        characteristic=characteristic(labels, grouped_items, counts, healthy),
        names={label: _name(anomalies[label], items[label]) for label in items},
        items=items,
    )


def _alone(labels: list[int], rows: Matrix, signatures: list[tuple[str, Sequence[str]]]) -> list[int]:
    """Labels in which traces without any weighty item go together by their anomaly."""
    nothing = np.asarray(~rows.any(axis=1))
    first: dict[str, int] = {}
    return [
        first.setdefault(signatures[row][0], row) if nothing[row] else label
        for row, label in enumerate(labels)
    ]


def _worst_first(
    labels: list[int], counts: list[int], signatures: list[tuple[str, Sequence[str]]]
) -> list[int]:
    """Labels from 1 on, the group with the worst anomaly first, among equals the one with the most traces."""
    sizes: dict[int, int] = {}
    for label, count in zip(labels, counts, strict=True):
        sizes[label] = sizes.get(label, 0) + count
    rank = {label: BY_NAME[_anomaly(label, labels, signatures)].rank for label in sizes}
    first = {label: signatures[labels.index(label)] for label in sizes}
    order = sorted(
        sizes, key=lambda label: (rank[label], -sizes[label], first[label][0], list(first[label][1]))
    )
    number = {label: place + 1 for place, label in enumerate(order)}
    return [number[label] for label in labels]


def _members(label: int, labels: list[int]) -> list[int]:
    return [row for row, one in enumerate(labels) if one == label]


def _own(
    label: int, labels: list[int], rows: Matrix, counts: list[int], places: list[str]
) -> dict[str, float]:
    """The items that most traces of a group have, with their mean weight in it."""
    members = _members(label, labels)
    share = np.array(counts, float)[members]
    share /= share.sum()
    common = share @ (rows[members] > 0)
    mean = share @ rows[members]
    kept = [
        place
        for place in np.argsort(-mean, kind="stable").tolist()
        if common[place] >= USUAL and mean[place] > 0
    ]
    return {places[place]: round(float(mean[place]), 4) for place in kept[:MOST_OWN]}


def _anomaly(label: int, labels: list[int], signatures: list[tuple[str, Sequence[str]]]) -> str:
    """The worst of the anomalies that name a group's traces."""
    worst = first_by_rank({signatures[row][0] for row in _members(label, labels)})
    assert worst is not None
    return worst


def _name(anomaly: str, items: dict[str, float]) -> str:
    """The anomaly and four letters of what the group is known by: its heaviest items."""
    text = "\n".join(sorted(list(items)[:5]))
    return f"{anomaly}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"
