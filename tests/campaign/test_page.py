"""The page of a campaign: each anomaly leads to its first run, and what no run reached is there."""

from pathlib import Path

import plotly.graph_objects
import pytest
from attrs import evolve

from fencepost.campaign.campaign_page import _figures, page_of
from fencepost.campaign.driver.campaign_driver import Campaign, drive
from fencepost.campaign.driver.ledger import verdicts_of
from fencepost.campaign.workers.results import Job


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Three runs with a planted bug: their folder, what they came to, and each run's verdict."""
    out = tmp_path_factory.mktemp("campaign") / "out"
    result = drive(Campaign(seeds=range(22, 25), job=Job(bugs=("KIP-101",)), out=out, recheck_one_in=0))
    return out, result, verdicts_of(out)


def test_every_anomaly_leads_to_its_first_run(broken, tmp_path: Path) -> None:
    """Rule: the table links to an example, drawn from the run of the lowest seed, with a page to watch it."""
    out, result, runs = broken
    html = page_of(result, runs.values(), out, page=tmp_path / "page.html")
    assert set(result.anomalies) >= {"committed_record_lost"}
    for name in result.anomalies:
        first = min(run.seed for run in runs.values() if run.anomaly == name)
        assert f'href="#example-{name}"' in html and f"{name} in trace {first}" in html
        assert f"fencepost replay {out} --trace {first}" in html
    assert len(list(tmp_path.iterdir())) == len(result.anomalies)
    assert "3 of 3 runs judged" in html and 'class="lead bad"' in html


def test_the_figure_holds_every_finding_and_every_first_mark(broken) -> None:
    """Rule: a diamond for each run with a finding, at its seed; the line ends at the number of marks
    reached."""
    _, result, runs = broken
    judged = sorted(runs.values(), key=lambda run: run.seed)
    anomalies = tuple(dict.fromkeys(run.anomaly for run in judged if run.anomaly))
    (figure,) = _figures(judged, anomalies)
    reached, found = plotly.graph_objects.Figure(figure.as_json()).data
    assert list(found.x) == [run.seed for run in judged if run.anomaly]
    assert [anomalies[place] for place in found.y] == [run.anomaly for run in judged if run.anomaly]
    assert reached.y[-1] == len(result.marks) and list(reached.y) == sorted(reached.y)


def test_what_proves_nothing_is_named(broken) -> None:
    """Rule: runs that crashed or were too weak are on the page with their seeds, and the news is not good."""
    out, result, _ = broken
    weak = evolve(
        result, anomalies={}, failing=(), broken=(3, 4), crashed=((7, "boom"),), never_reached=("log_cut",)
    )
    html = page_of(weak, (), out)
    assert "3 that prove nothing" in html and 'class="lead bad"' in html
    assert "<td>too weak to mean anything</td><td>2</td><td>3, 4</td>" in html
    assert "<td>crashed</td><td>1</td><td>7</td>" in html
    assert "<td>log_cut: a follower cut records that its leader does not have</td><td>0</td>" in html
