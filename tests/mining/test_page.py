"""The page of a mining, without Spark: a trace is drawn once, tables lead to examples, and each example can
be watched."""

import json

import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import combine
from fencepost.mining.results import mining_page
from fencepost.mining.results.summary import Summary
from fencepost.report.picture import figure_of
from fencepost.report.sample import Sample
from fencepost.run.simulated.run import run
from fencepost.viewer import examples


@pytest.fixture(scope="module")
def lost():
    """A run that lost a record, and its findings."""
    trace = run(swarm(23, "default", ("KIP-101",)))
    return trace, combine(judge(trace, DEFAULT_CHECKS)).findings


@pytest.fixture
def summary(lost, monkeypatch):
    """Two anomalies whose smallest example is the same trace."""
    trace, findings = lost
    monkeypatch.setattr(examples, "trace_of", lambda sample, stores: trace)
    samples = tuple(
        Sample(source="out/x", trace_id=20, operations=len(trace.operations), finding=finding, replay="again")
        for finding in findings[:2]
    )
    names = [sample.finding.anomaly for sample in samples]
    return Summary(
        out="out",
        checks=("log",),
        traces={"out/x": 4},
        illegal={"out/x": 2},
        operations=400,
        events=900,
        splits=1,
        anomalies=dict.fromkeys(names, 3),
        traces_with={names[0]: 2, names[1]: 1},
        statistics={
            "fault": {"crash": {"": 4, names[0]: 2}},
            "bug": {"KIP-101": {"": 4, names[0]: 2}},
            "profile": {"default": {"": 4, names[0]: 2}},
        },
        samples=samples,
    )


def test_a_trace_is_drawn_once_and_every_anomaly_leads_to_its_example(summary, tmp_path):
    """Two findings of one trace: one figure, two sections, a link to each, and one page to watch."""
    html = mining_page.page_of(summary, tmp_path / "index.html")
    names = [sample.finding.anomaly for sample in summary.samples]
    assert html.count("data-figure role") == 1 and "drawn above" in html
    for name in names:
        assert f'href="#example-{name}"' in html and f'id="example-{name}"' in html
    assert [entry.name for entry in tmp_path.iterdir()] == ["index-example-1.html"]
    assert html.count('href="index-example-1.html"') == 2
    text = (tmp_path / "index-example-1.html").read_text(encoding="utf-8")
    data = json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])
    assert {finding["anomaly"] for finding in data["views"][0]["findings"]} == set(names)


def test_cells_are_shaded_by_rate(summary):
    """Two of four traces: half of the darkest shade; no shade where nothing was found."""
    html = mining_page.page_of(summary)
    assert html.count('style="background: rgb(214 39 40 / 0.30)"') == 3


def test_without_a_folder_no_page_is_written_and_none_is_linked(summary, tmp_path):
    """A page for whoever has nowhere to put others."""
    assert "index-example-1.html" not in mining_page.page_of(summary)


def test_lanes_and_measurements_share_one_axis(lost):
    """All panels of an example are over the same moments, which begin at a fault, not only at what
    convicts."""
    trace, findings = lost
    finding = next(one for one in findings if one.anomaly == "committed_record_lost")
    layout = figure_of(trace, finding).layout
    assert [name for name in layout if name.startswith("xaxis")] == ["xaxis"]
    assert {"yaxis", "yaxis2", "yaxis3"} <= set(layout)
    start, end = (round(moment * 1e9) for moment in layout["xaxis"]["range"])
    convicting = [trace.events[position].time for position in finding.events]
    assert start < min(convicting) and end > max(convicting)
    assert end - start < trace.events[-1].time
