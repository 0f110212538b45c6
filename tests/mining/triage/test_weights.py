"""Which traces go together: weights, likeness, average linkage, and two minings compared."""

from itertools import combinations
from math import comb
from random import Random

import numpy as np
import pytest
from attrs import evolve

from fencepost.mining.triage.bugs import Bug, Bugs, Example
from fencepost.mining.triage.clusters import Signature, Space, clusters_of
from fencepost.mining.triage.since import since
from fencepost.mining.triage.splitting import Items, chance_of_overlap, split
from fencepost.mining.triage.weights import FEW, cluster, common_of, healthy_name, vectors, weight_of


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
    assert weight_of("step: crash", with_item=10, common=0.5, **asked) == 0
    often = weight_of("step: W", with_item=10, common=0.015, **asked)
    never = weight_of("step: W", with_item=10, common=0.0, **asked)
    everywhere = weight_of("step: W", with_item=90, common=0.0, **asked)
    assert never > often > 0 and never > everywhere > 0
    assert weight_of("finding: lost_write", with_item=10, common=0.0, **asked) > 0
    assert weight_of("step: liveness_failed every ISR is full", with_item=10, common=0.0, **asked) == 0
    assert weight_of("waited: no_progress", with_item=10, common=0.0, **asked) > 0
    assert healthy_name("here: W") == healthy_name("between: W") == "step: W"
    assert healthy_name("finding: A") == healthy_name("stands: A") == ""


def test_a_step_between_cause_and_effect_may_be_one_that_healthy_traces_have() -> None:
    """Rule: what one healthy trace in ten has somewhere is evidence where it lies between cause and effect,
    and nowhere else."""
    asked = {"bad": 100, "healthy": 1000, "with_item": 10, "common": 0.1}
    assert weight_of("between: W", **asked) > 0 == weight_of("step: W", **asked)
    assert weight_of("between: W", **asked | {"common": 0.5}) == 0


def test_comparable_healthy_traces_are_those_of_the_same_profile() -> None:
    """Rule: the share is that of the bad traces' profiles; of a profile with few healthy traces, the share of
    all counts too."""
    healthy = {"groups": 100, "default": 900}
    having = {"groups": 50}
    inside = common_of({"groups": 3}, having, healthy)
    assert inside == pytest.approx((50 + FEW * 0.05) / (100 + FEW))
    assert common_of({"default": 3}, having, healthy) < 0.01
    assert common_of({"nobody": 3}, having, healthy) == pytest.approx(0.05)


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


def test_a_bug_grows_by_its_share_of_all_traces() -> None:
    """Rule: how many healthy traces the bad ones were compared with does not matter: a sample may be the same
    for a mining of ten times as many traces."""
    one = bug(1, {"a": 1.0}, traces=20)
    before = Bugs(bugs=(one,), bad=20, healthy=4096, judged=100_000)
    now = Bugs(bugs=(evolve(one, traces=40),), bad=40, healthy=4096, judged=1_000_000)
    assert [moved.grown for moved in since(now, before, "before").both] == [False]
    assert [moved.grown for moved in since(evolve(now, judged=100_000), before, "before").both] == [True]


def items_of(rows: list[str], seen: str = "") -> Items:
    """Signatures as strings of letters: `c` is a judge's clause that all have, upper-case letters are clauses
    that some have, other letters are steps; `seen` are steps that healthy traces have too."""
    letters = sorted({letter for row in rows for letter in row})
    return Items(
        present=np.array([[letter in row for letter in letters] for row in rows]),
        names=tuple(
            f"clause: a: {letter}" if letter == "c" or letter.isupper() else f"step: {letter}"
            for letter in letters
        ),
        common=np.array([0.6 if letter in seen else 0.0 for letter in letters]),
    )


def parts(rows: list[str], seen: str = "", counts: list[int] | None = None) -> set[str]:
    labels = split([0] * len(rows), items_of(rows, seen), counts or [1] * len(rows))
    return {
        " ".join(sorted({rows[at] for at in range(len(rows)) if labels[at] == label}))
        for label in set(labels)
    }


def test_reasons_that_exclude_each_other_are_two_bugs() -> None:
    """Rule: a group is cut where steps that healthy traces do not show, or other findings, exclude each other
    more than chance allows; a trace without any reason is with no part."""
    assert parts(["cx"] * 5 + ["cy"] * 5) == {"cx", "cy"}
    assert parts(["cx", "cy"], counts=[5, 6]) == {"cx", "cy"}
    assert parts(["cx"] * 5 + ["cY"] * 5) == {"cx", "cY"}
    assert parts(["cx"] * 12 + ["cy"] * 12 + ["cz"] * 12 + ["c"]) == {"cx", "cy", "cz", "c"}
    assert parts(["cxu"] * 8 + ["cu"] + ["cy"] * 8) == {"cu cxu", "cy"}


@pytest.mark.parametrize(
    ("rows", "seen"),
    [
        (["cx"] * 3 + ["cxy"] * 4 + ["cy"] * 3, ""),  # both steps of one bug, often together
        (["cx"] * 6 + ["cy"] * 6, "xy"),  # most healthy traces do both
        (["c"] * 4 + ["cz"] * 2, ""),  # a step of two
        (["c"] * 12 + ["cx"] * 3 + ["cy"] * 3, ""),  # so few exclude each other by chance
        (["c"] * 5 + ["cx"] * 7, ""),  # what some have and nothing excludes
    ],
)
def test_one_bug_stays_one(rows: list[str], seen: str) -> None:
    """Rule: varieties that overlap, that healthy traces have too, or that may exclude each other by chance
    are no bugs of their own."""
    assert len(parts(rows, seen)) == 1


@pytest.mark.parametrize(
    ("of_x", "of_y", "numbers"),
    [
        ("lost_write", "lost_write", {"x": 2, "y": 1}),
        ("lost_write", "conformance", {"x": 1, "y": 2}),
        ("conformance", "lost_write", {"x": 2, "y": 1}),
    ],
)
def test_groups_that_were_cut_are_numbered_by_what_is_worst(
    of_x: str, of_y: str, numbers: dict[str, int]
) -> None:
    """Rule: the group with the worst anomaly is the first, among equals the largest one, also where the cut
    gave it a label above the number of signatures."""
    names = ["clause: a: c", "step: x", "step: y"]
    space = Space(
        places={name: place for place, name in enumerate(names)},
        weights=(3.0, 1.0, 1.0),
        common=(0.0, 0.0, 0.0),
    )
    top = [
        Signature(text=text, anomaly=anomaly, kept=["clause: a: c", f"step: {text}"], traces=traces)
        for text, anomaly, traces in (("x", of_x, 5), ("y", of_y, 6))
    ]
    assert clusters_of(top, space, healthy=0).known == numbers


@pytest.mark.parametrize(("whole", "one", "other", "both"), [(20, 8, 7, 0), (30, 12, 11, 2), (9, 5, 6, 2)])
def test_the_chance_of_an_overlap_is_hypergeometric(whole: int, one: int, other: int, both: int) -> None:
    """Rule: the tail is that of all ways to choose, counted."""
    ways = sum(comb(one, k) * comb(whole - one, other - k) for k in range(both + 1) if other >= k)
    found = chance_of_overlap(whole, one, np.array([float(other)]), np.array([float(both)]))
    assert found[0] == pytest.approx(ways / comb(whole, other))
