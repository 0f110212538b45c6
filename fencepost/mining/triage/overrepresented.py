"""Which features a bug's traces have more often than comparable healthy ones, by two measures.

Owns: the measures, the correction, and what is reported. Must not know: what a feature is, how traces were
grouped or counted.

    Ochiai             a / sqrt((a + b) (a + c)): a bad traces with the feature, b without, c healthy ones
                       with it
    likelihood ratio   G = 2 sum(observed ln(observed / expected)) over the 2x2 table, chi-squared with one
                       degree of freedom
    corrected          p times the number of features that were tested with it (Bonferroni): no order of all
                       of them is needed. Pairs of steps are ten times as many as everything else,
                       and are corrected apart, each half of the chance being theirs

Comparable are healthy traces of the same profile, because a swarm's profile alone explains many features: the
share of healthy traces that have a feature is the mean over the profiles of the bug's traces, weighted by how
many come from each. A profile without healthy traces is left out, and where none has any, all healthy traces
are taken.
"""

from collections.abc import Iterable, Mapping
from math import erfc, log, sqrt

from attrs import evolve, frozen

from fencepost.mining.triage.bugs import Shared
from fencepost.mining.triage.tables import Healthy
from fencepost.mining.triage.triage_rows import ALL

ALPHA = 0.01
"""Chance that any feature of any bug passes though none has to do with it."""
MOST_PER_BUG = 60
"""Features of a bug whose chances are corrected, the largest likelihood ratio first."""
KEPT = 20
"""Features of a bug that are reported, after those that say the same as a simpler one are left out."""
PAIR = "then: "
VERDICT = "step: liveness_failed"
"""Steps that are the verdict itself, in other words."""


@frozen(kw_only=True)
class Tested:
    """The features of one bug's traces."""

    # Those that more of its traces have than of comparable healthy ones, MOST_PER_BUG at most, the largest
    # likelihood ratio first. Their chances are not corrected.
    shares: tuple[Shared, ...]
    # How many were tested: pairs of steps, and others.
    pairs: int
    others: int


def candidates(
    features: Mapping[str, int], profiles: Mapping[str, int], traces: int, healthy: Healthy
) -> Tested:
    """Test the features of one bug's traces.

    Args:
        features: traces that have each.
        profiles: traces of each.
        traces: of the bug.
        healthy: the traces to compare with.
    """
    of_profile = {profile: by[ALL] for profile, by in sorted(healthy.items()) if by.get(ALL, 0) > 0}
    own = {profile: count for profile, count in sorted(profiles.items()) if profile in of_profile}
    if own:
        total = sum(own.values())
        per_trace = {profile: count / total / of_profile[profile] for profile, count in own.items()}
    else:
        per_trace = {profile: 1 / sum(of_profile.values()) for profile in of_profile}
    of_healthy = sum(of_profile[profile] for profile in per_trace)
    tested = [feature for feature in features if not feature.startswith(VERDICT)]
    more = []
    for feature in tested:
        share = sum(healthy[profile].get(feature, 0) * weight for profile, weight in per_trace.items())
        if features[feature] / traces > share:
            more.append(_measured(feature, features[feature], traces, share, of_healthy))
    more.sort(key=lambda one: (-one[0], len(one[1].feature), one[1].feature))
    pairs = sum(feature.startswith(PAIR) for feature in tested)
    shares = tuple(shared for _, shared in more[:MOST_PER_BUG])
    return Tested(shares=shares, pairs=pairs, others=len(tested) - pairs)


def _measured(feature: str, a: int, of_bad: int, share: float, of_healthy: int) -> tuple[float, Shared]:
    """The likelihood ratio of a feature, and all that is known of it. a: bad traces with it."""
    b, c = of_bad - a, share * of_healthy
    d = of_healthy - c
    n = a + b + c + d
    cells = ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    ratio = 2 * sum(one * log(one * n / (row * column)) for one, row, column in cells if one > 0)
    return ratio, Shared(
        feature=feature,
        bad=a,
        of_bad=of_bad,
        healthy=float(share),
        of_healthy=of_healthy,
        ochiai=round(a / sqrt((a + b) * (a + c)), 4),
        likelihood_ratio=round(ratio, 2),
        p=_chance(ratio),
    )


def passing(shares: Iterable[Shared], pairs: int, others: int) -> tuple[Shared, ...]:
    """Those that pass with corrected chances, without echoes.

    Args:
        shares: of one bug, as in Tested.
        pairs: pairs of steps that were tested, of all bugs.
        others: other features that were tested, of all bugs.
    """
    corrected = [
        evolve(one, p=min(1.0, one.p * 2 * (pairs if one.feature.startswith(PAIR) else others)))
        for one in shares
    ]
    return tuple(without_echoes([one for one in corrected if one.p <= ALPHA])[:KEPT])


def _chance(ratio: float) -> float:
    """The probability of so large a likelihood ratio by chance: the upper tail of chi-squared with one degree
    of freedom."""
    return erfc(sqrt(max(ratio, 0.0) / 2))


def without_echoes(shared: list[Shared]) -> list[Shared]:
    """Without pairs and repetitions that say no more than one of their steps does, which is there with a
    ratio about as large."""
    steps = {one.feature.removeprefix("step: "): one for one in shared if one.feature.startswith("step: ")}
    kept = []
    for one in shared:
        kind, words = one.feature.split(": ", 1)
        inner = (
            words.split(" -> ")
            if kind == "then"
            else [words]
            if kind in ("again", "last", "last of the cluster")
            else []
        )
        if not any(
            word in steps and one.likelihood_ratio <= 1.25 * steps[word].likelihood_ratio for word in inner
        ):
            kept.append(one)
    return kept
