"""Which traces go together: weights, likeness, average linkage, and two minings compared."""

from itertools import combinations
from random import Random

import numpy as np
import pytest

from fencepost.mining.triage.bugs import Bug, Bugs, Example
from fencepost.mining.triage.since import since
from fencepost.mining.triage.splitting import Items, split
from fencepost.mining.triage.weights import cluster, healthy_name, vectors, weight_of


def naive(rows: np.ndarray, counts: list[int], alike: float) -> set[frozenset[int]]:
    """Average linkage by its definition: the mean over all pairs of traces of two groups."""
    groups = [{row} for row in range(len(rows))]
    while len(groups) > 1:

        def mean(pair) -> float:
            one, two = pair
            pairs = [(a, b) for a in groups[one] for b in groups[two]]
            total = sum(counts[a] * counts[b] for a, b in pairs)
            return sum(counts[a] * counts[b] * float(rows[a] @ rows[b]) for a, b in pairs) / total

        one, two = max(combinations(range(len(groups)), 2), key=mean)
        if mean((one, two)) < alike:
            break
        groups[one] |= groups.pop(two)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("seed", range(30))
def test_clusters_are_those_of_the_definition(seed) -> None:
    """Rule: the quick form of average linkage and the plain one give the same groups."""
    rng = Random(seed)
    rows = np.array([[rng.random() * (rng.random() < 0.4) for _ in range(6)] for _ in range(12)]) + 1e-6
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    counts = [rng.randrange(1, 5) for _ in rows]
    labels = cluster(rows, counts, 0.6)
    found = {frozenset(row for row, one in enumerate(labels) if one == label) for label in set(labels)}
    assert found == naive(rows, counts, 0.6)


def test_what_says_nothing_weighs_nothing() -> None:
    """Rule: a step that healthy traces have often is no evidence; a rarer one weighs more, and so does one of
    few bad traces."""
    asked = {"bad": 100, "healthy": 1000}
    assert weight_of("step: crash", with_item=10, with_step=500, **asked) == 0
    often = weight_of("step: W", with_item=10, with_step=15, **asked)
    never = weight_of("step: W", with_item=10, with_step=0, **asked)
    everywhere = weight_of("step: W", with_item=90, with_step=0, **asked)
    assert never > often > 0 and never > everywhere > 0
    assert weight_of("finding: lost_write", with_item=10, with_step=0, **asked) > 0
    assert healthy_name("here: W") == "step: W" and healthy_name("finding: A") == ""


def test_traces_without_weighty_items_are_like_nothing() -> None:
    """Rule: a vector of nothing has no length, so that it joins no group."""
    rows = vectors([("a", ["finding: a"]), ("b", ["unknown"])], {"finding: a": 0}, [2.0])
    assert rows.tolist() == [[1.0], [0.0]]
    assert cluster(rows, [1, 1]) == [0, 1]


def bug(number: int, items: dict[str, float], traces: int = 10, anomaly: str = "lost_write") -> Bug:
    example = Example(source="s", trace_id=1, operations=1)
    return Bug(
        number=number,
        name=f"{anomaly}-{number}",
        anomaly=anomaly,
        traces=traces,
        anomalies={anomaly: traces},
        profiles={},
        first=example,
        smallest=example,
        items=items,
    )


def test_minings_are_compared_by_what_bugs_are_known_by() -> None:
    """Rule: a bug is the same whatever its number and its exact weights; new, gone and grown are told."""
    before = Bugs(bugs=(bug(1, {"a": 1.0, "b": 0.5}), bug(2, {"c": 1.0})), bad=20, healthy=980)
    now = Bugs(bugs=(bug(1, {"z": 1.0}), bug(2, {"a": 0.8, "b": 0.6}, traces=40)), bad=50, healthy=950)
    found = since(now, before, "before")
    assert (found.new, found.gone) == (("lost_write-1",), ("lost_write-2",))
    assert [(one.number, one.before, one.grown) for one in found.both] == [(2, "lost_write-1", True)]
    assert list(found.lines()) == [
        "since before: 1 new, 1 gone, 1 as before",
        "  new: lost_write-1",
        "  gone: lost_write-2",
        "  grown: lost_write-2, 40 traces instead of 10",
    ]
    same = since(before, before, "itself")
    assert (same.new, same.gone, [one.grown for one in same.both]) == ((), (), [False, False])


def items_of(rows: list[str], *, healthy: int = 1000, seen: str = "") -> Items:
    """Signatures as strings of letters: `c` is a judge's clause, other letters are steps; `seen` are steps
    that healthy traces have too."""
    letters = sorted({letter for row in rows for letter in row})
    return Items(
        present=np.array([[letter in row for letter in letters] for row in rows]),
        names=tuple("clause: a: c" if letter == "c" else f"step: {letter}" for letter in letters),
        with_step=np.array([15 if letter in seen else 0 for letter in letters]),
        healthy=healthy,
    )


def parts(labels: list[int], rows: list[str]) -> set[str]:
    return {
        " ".join(sorted({rows[at] for at in range(len(rows)) if labels[at] == label}))
        for label in set(labels)
    }


def test_reasons_that_exclude_each_other_are_two_bugs() -> None:
    """Rule: a group is cut where each part has a step of its own that healthy traces do not show."""
    rows = ["cx", "cx", "cx", "cy", "cy", "cy", "cy"]
    assert parts(split([0] * 7, items_of(rows), [1] * 7), rows) == {"cx", "cy"}
    assert parts(split([0, 0], items_of(["cx", "cy"]), [3, 4]), ["cx", "cy"]) == {"cx", "cy"}


@pytest.mark.parametrize(
    ("rows", "seen"),
    [
        (["cx", "cxy", "cy", "cxy", "cxy", "cx"], ""),  # both steps of one bug, often together
        (["cx", "cx", "cx", "cy", "cy", "cy"], "xy"),  # healthy traces do both
        (["c", "c", "c", "c", "cz", "cz"], ""),  # a step of two
    ],
)
def test_one_bug_stays_one(rows: list[str], seen: str) -> None:
    """Rule: varieties that overlap, that healthy traces have too, or that are few are no bugs of their
    own."""
    assert len(parts(split([0] * 6, items_of(rows, seen=seen), [1] * 6), rows)) == 1
