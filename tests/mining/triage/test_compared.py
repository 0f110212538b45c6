"""Of many healthy traces a sample is compared: evidence stays, counts are those of the drawn traces."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triage_runs import BAD, HEALTHY, write

from fencepost.campaign.swarm.swarm import swarm
from fencepost.mining.inputs.splits import profiles_of, work_of
from fencepost.mining.mine import _compared
from fencepost.mining.spark_judge import Settings, judge_splits
from fencepost.mining.triage import compared
from fencepost.mining.triage.compared import Compared, compared_of
from fencepost.run.simulated.run import run

IDS = np.arange(7, 20_007)


def drawn(share: float, ids: Sequence[int] = IDS) -> np.ndarray:
    ids = np.asarray(ids)
    return Compared(otherwise=share).drawn(ids, [""] * len(ids))


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(1, 1000))
def test_each_profile_gives_the_same_number_or_all(counts, most) -> None:
    """Rule: together the profiles give what is asked for, none more than another that has more traces."""
    profiles = {f"profile {number}": count for number, count in enumerate(counts)}
    shares = compared_of(profiles, 0, most).shares
    given_ = {profile: shares[profile] * count for profile, count in profiles.items()}
    assert sum(given_.values()) == pytest.approx(min(most, sum(counts)))
    partly = [given_[profile] for profile in profiles if shares[profile] < 1]
    assert max(partly, default=0) == pytest.approx(min(partly, default=0))
    assert all(given_[profile] <= min(partly, default=most) + 1e-6 for profile in profiles)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.2, 0.5, 0.9])
def test_the_draw_has_the_share(share) -> None:
    """Rule: of neighbouring, of even, and of distant trace ids the share is drawn, within five standard
    errors."""
    for ids in (IDS, IDS * 2, IDS * 1_000_003 - 5 * 10**9):
        seen, error = drawn(share, ids).mean(), sqrt(share * (1 - share) / len(ids))
        assert abs(seen - share) < 5 * error


def test_a_larger_share_adds_to_a_smaller_one() -> None:
    """Rule: the draw of a trace depends on nothing but its id and its profile's share."""
    small, large = drawn(0.1), drawn(0.3)
    assert (small <= large).all() and small.sum() < large.sum()
    assert (drawn(0.1, IDS[::-1]) == small[::-1]).all()
    assert drawn(1.0).all() and not drawn(0.0).any()
    mixed = Compared(shares={"a": 0.3}, otherwise=0.1).drawn(IDS, ["a", "b"] * (len(IDS) // 2))
    assert (mixed == np.where(np.arange(len(IDS)) % 2, small, large)).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two bad runs among ten healthy ones, in row groups of a few each."""
    runs = [run(swarm(seed, "default", ("KAFKA-708",))) for seed in BAD["KAFKA-708"][:2]]
    runs += [run(swarm(seed, "default")) for seed in HEALTHY[:10]]
    path = tmp_path_factory.mktemp("compared") / "in"
    write(path, runs, group_operations=900)
    return path


def mined(folder, out, **more):
    """Rows of spectra, evidence and contrast."""
    settings = Settings(checks=("log", "invariants"), profile=None, folder=out, **more)
    judge_splits(work_of([folder]).splits, settings, attempt="here")
    tables = [
        [row for path in sorted((out / "files" / name).glob("*")) for row in pq.read_table(path).to_pylist()]
        for name in ("spectra", "evidence", "contrast")
    ]
    for row in (*tables[0], *tables[1]):
        row["features"].sort()  # their order is that of the row group's words
    return tables


def test_only_drawn_traces_are_counted(folder, tmp_path) -> None:
    """Rule: the counts are those of the drawn healthy traces, and the evidence of bad ones does not depend
    on the draw."""
    spectra, evidence, _ = mined(folder, tmp_path / "all", spectra=True)
    assert len(evidence) == 2
    healthy = {row["trace_id"]: row["features"] for row in spectra if row["state"] == "healthy"}
    for share in (0.0, 0.3, 0.6):
        some = Compared(otherwise=share)
        of_sample = mined(folder, tmp_path / str(share), compared=some)
        ids = np.array(sorted(healthy))
        chosen = [healthy[one] for one in ids[some.drawn(ids, [""] * len(ids))].tolist()]
        assert of_sample[1] == evidence and len(chosen) < len(healthy)
        expected = Counter(feature for own in chosen for feature in ["", *own])
        assert Counter({row["feature"]: row["traces"] for row in of_sample[2]}) == expected


def test_profiles_are_read_if_there_are_many_traces(folder, monkeypatch) -> None:
    """Rule: all healthy traces of few are compared; of many, a share by their profiles."""
    found = work_of([folder])
    assert profiles_of(found.splits) == (Counter({"default": 12}), 0)
    assert _compared(found) == Compared()
    monkeypatch.setattr("fencepost.mining.mine.MOST_COMPARED", 6)
    monkeypatch.setattr(compared.compared_of, "__defaults__", (6,))
    assert _compared(found).shares == {"default": 0.5}
