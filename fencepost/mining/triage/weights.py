"""How much each item of evidence says, and which traces go together by that.

Owns: weights, the measure of likeness, the clustering of signatures. Must not know: Spark, tables, what an
item means.

A bad trace is a vector with one coordinate for each item of its evidence. An item weighs more if it is a
judge's own words, if comparable healthy traces seldom have the step, and if few bad traces share it (inverse
document frequency). Likeness is the cosine. Signatures are joined by average linkage: the two groups that are
most alike on average become one, until no two are alike enough. The answer depends on nothing but the
signatures and their counts.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fencepost.traces.events import Name

Matrix = npt.NDArray[np.float64]

ALIKE = 0.25
"""Cosine from which two groups are one; chosen on the zoo, where 0.15 to 0.3 give nearly the same groups."""
RARE = 0.02
"""A step that more of the comparable healthy traces have is no evidence."""
RARE_BETWEEN = 0.3
"""Likewise of a step between cause and effect. A window is short: what many healthy traces have anywhere may
still be the cause there."""
FEW = 10
"""How many healthy traces of a profile all the others weigh as much as: of a few, a share says little."""
WEIGHTS = {
    "finding": 3.0,
    "clause": 3.0,
    "seen": 1.0,
    "waited": 1.0,
    "waited for": 3.0,
    "ends": 1.0,
    "stands": 4.0,
    "convicts": 0.5,
    "here": 0.5,
    "between": 1.0,
    "step": 1.0,
    "left": 4.0,
    "again": 0.5,
    "answer": 4.0,
}
"""The weight of each kind of item. A judge's words weigh most; not that something never came, because a
cluster stops for many reasons, but what did not come, and what stood in its way then. An answer that no
healthy trace has, or a state that cannot stay so, weighs more than another step. A rare step that convicts,
that is on the convicting partition, or that is between cause and effect, has this weight in addition to that
of having occurred."""
NAMING = 1.5
"""Factor of items of the anomaly that names the trace: the others are often its consequences."""
SELDOM = 0.005
"""No step weighs more than one that this share of the comparable healthy traces has. The weights of a hundred
healthy traces and of a hundred thousand, of which many may be alike, are the same."""
STEPS = ("convicts", "here", "between", "step", "left", "again", "answer")
"""Kinds of item with a weight that depends on how many healthy traces have the step."""


def healthy_name(item: str) -> str:
    """The feature that says in how many healthy traces an item's step occurs; "" for an item that is no
    step."""
    kind, words = item.split(": ", 1)
    if kind not in STEPS:
        return ""
    return item if kind in ("left", "again", "answer") else f"step: {words}"


def has_step(item: str) -> bool:
    """Whether an item is a step, or an operation that convicts."""
    return item.split(":", 1)[0] in STEPS


def repeats_verdict(item: str) -> bool:
    """Whether an item, or a feature, is a verdict in the words of a step: the run's note that something never
    came. The items `waited` and `waited for` say it already, and weigh little."""
    return item.split(": ", 1)[-1].startswith(Name.LIVENESS_FAILED)


def common_of(here: Mapping[str, int], having: Mapping[str, int], healthy: Mapping[str, int]) -> float:
    """The share of comparable healthy traces that have a step: the mean over the profiles of the bad traces
    with it, each drawn to the share of all profiles as if FEW more traces had that.

    Args:
        here: bad traces with the step, by profile.
        having: healthy traces with it, by profile.
        healthy: all healthy traces, by profile.
    """
    everywhere = sum(having.values()) / max(sum(healthy.values()), 1)
    shares = sum(
        count * (having.get(profile, 0) + FEW * everywhere) / (healthy.get(profile, 0) + FEW)
        for profile, count in here.items()
    )
    return shares / sum(here.values())


def weight_of(
    item: str, *, bad: int, with_item: int, healthy: int, common: float, purity: float = 1.0
) -> float:
    """What an item weighs, 0 for one that says nothing. bad, with_item: bad traces, and those that have it;
    healthy: healthy traces; common: the share of comparable ones that have its step. purity: the largest
    share of its bad traces that one anomaly names: a step that goes with all anomalies is the swarm's, not a
    bug's.

    Items of the anomaly that names a trace weigh NAMING times as much in its vector.
    """
    if repeats_verdict(item):
        return 0.0
    kind = item.split(":", 1)[0]
    weight = WEIGHTS[kind] * math.log(1 + bad / with_item)
    if kind not in STEPS:
        return weight
    if common > (RARE_BETWEEN if kind == "between" else RARE):
        return 0.0
    return weight * purity * math.log(1 / max(common, 0.5 / (healthy + 1), SELDOM))


def of_anomaly(item: str) -> str:
    """The anomaly that an item speaks of, "" for a step."""
    kind, words = item.split(": ", 1)
    return "" if kind in (*STEPS, "stands") else words.split(":", 1)[0]


def vectors(
    signatures: Sequence[tuple[str, Sequence[str]]], places: Mapping[str, int], weights: Sequence[float]
) -> Matrix:
    """One row per (anomaly, items), of length 1, or 0 where nothing in it weighs anything. places: of items,
    in weights."""
    found = np.zeros((len(signatures), len(places)))
    for row, (anomaly, items) in enumerate(signatures):
        for item in items:
            place = places.get(item)
            if place is not None:
                found[row, place] = weights[place] * (NAMING if of_anomaly(item) == anomaly else 1.0)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(length > 0, length, 1.0)


def cluster(rows: Matrix, counts: Sequence[int], alike: float = ALIKE) -> list[int]:
    """The group of each row: the number of its first row. counts: traces of each, which weigh in the
    average."""
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1.0)
    size, label = np.array(counts, float), np.arange(len(rows))
    best = likeness.max(axis=1, initial=-1.0) if len(rows) else np.zeros(0)
    while len(rows):
        one = int(best.argmax())
        if best[one] < alike:
            break
        two = int(likeness[one].argmax())
        one, two = min(one, two), max(one, two)
        joined = (likeness[one] * size[one] + likeness[two] * size[two]) / (size[one] + size[two])
        joined[[one, two]] = -1.0
        joined[likeness[one] + likeness[two] <= -2.0] = -1.0  # groups that were joined to others
        likeness[one], likeness[:, one] = joined, joined
        likeness[two], likeness[:, two] = -1.0, -1.0
        size[one] += size[two]
        label[label == two] = one
        best = likeness.max(axis=1)
    return [int(one) for one in label]
