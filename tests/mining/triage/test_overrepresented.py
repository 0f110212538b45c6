"""What is said of shared features is what the formula says, and labels drawn by chance share nothing."""

from collections import Counter, defaultdict
from math import erfc, log, sqrt
from random import Random

import pyarrow.parquet as pq
import pytest

from fencepost.mining.triage.bugs import Shared
from fencepost.mining.triage.overrepresented import ALPHA, without_echoes

PAIR = "then: "


def naive(bad: list[dict], healthy: list[dict], pairs_tested: Counter | None = None) -> dict[str, tuple]:
    """feature -> (bad, share of the healthy, G, p corrected), by the 2x2 table, for those that pass."""
    of, counts = Counter(row["profile"] for row in healthy), defaultdict(Counter)
    for row in healthy:
        counts[row["profile"]].update(row["features"])
    weights = {name: count for name, count in Counter(row["profile"] for row in bad).items() if of[name]}
    many = sum(of[name] for name in weights)
    own = Counter(
        each for row in bad for each in row["features"] if not each.startswith("step: liveness_failed")
    )
    tested = pairs_tested or Counter(each.startswith(PAIR) for each in own)
    found = {}
    for feature, a in own.items():
        share = sum(count * counts[name][feature] / of[name] for name, count in weights.items()) / len(bad)
        b, c = len(bad) - a, share * many
        d, n = many - c, len(bad) + many
        cells = ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
        ratio = 2 * sum(one * log(one * n / (row * column)) for one, row, column in cells if one > 0)
        p = min(1.0, 2 * tested[feature.startswith(PAIR)] * erfc(sqrt(max(ratio, 0) / 2)))
        if p <= ALPHA and a / len(bad) > share:
            found[feature] = (a, share, ratio, p)
    return found


@pytest.mark.spark
@pytest.mark.java
def test_the_measures_are_the_formulas(planted) -> None:
    """Rule: counts, shares, ratios and corrected chances are those of the plain computation."""
    spectra = {row["trace_id"]: row for row in pq.read_table(planted.out / "spectra").to_pylist()}
    groups = pq.read_table(planted.out / "groups", columns=["trace_id", "bug"]).to_pylist()
    healthy = [row for row in spectra.values() if row["state"] == "healthy"]
    by_bug = defaultdict(list)
    for row in groups:
        by_bug[row["bug"]].append(spectra[row["trace_id"]])
    tested: Counter = Counter()
    for rows in by_bug.values():
        own = {
            each for row in rows for each in row["features"] if not each.startswith("step: liveness_failed")
        }
        tested.update(each.startswith(PAIR) for each in own)
    assert planted.summary.bugs.tested == tested.total()
    for bug in planted.summary.bugs.bugs:
        plain = naive(by_bug[bug.number], healthy, tested)
        for one in bug.shares:
            a, share, ratio, p = plain[one.feature]
            assert (one.bad, one.of_bad, one.of_healthy) == (a, bug.traces, len(healthy))
            assert one.healthy == pytest.approx(share) and one.likelihood_ratio == pytest.approx(
                ratio, abs=0.01
            )
            assert one.p == pytest.approx(p)


@pytest.mark.spark
@pytest.mark.java
@pytest.mark.parametrize("bad", [3, 6])
def test_labels_drawn_by_chance_share_nothing(planted, bad) -> None:
    """Rule: of healthy traces some of which are called bad, over 20 shuffles at most one feature passes."""
    rows = pq.read_table(planted.out / "spectra").to_pylist()
    healthy = sorted((row for row in rows if row["state"] == "healthy"), key=lambda row: row["trace_id"])
    passing = []
    for seed in range(20):
        chosen = set(Random(seed).sample(range(len(healthy)), bad))
        parts = [[row for at, row in enumerate(healthy) if (at in chosen) is want] for want in (True, False)]
        passing += naive(*parts)
    assert len(passing) <= 1


def shared(feature: str, ratio: float) -> Shared:
    return Shared(
        feature=feature,
        bad=5,
        of_bad=5,
        healthy=0.0,
        of_healthy=100,
        ochiai=1.0,
        likelihood_ratio=ratio,
        p=0.0,
    )


def test_echoes_of_a_step_are_left_out() -> None:
    """Rule: a pair or a repetition stays only if it says more than its steps do."""
    told = [
        shared("step: A", 40.0),
        shared("then: A -> B", 41.0),
        shared("then: C -> D", 30.0),
        shared("again: A", 90.0),
    ]
    assert [one.feature for one in without_echoes(told)] == ["step: A", "then: C -> D", "again: A"]
