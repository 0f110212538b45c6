"""The page of a campaign: what was found at which seed, what the runs reached, and the first run of each
anomaly, drawn.

Owns which of a campaign's figures are on it. Must not know HTML, or how a run is made.
"""

from collections.abc import Iterable
from pathlib import Path

from fencepost.campaign.marks.marks import MARKS
from fencepost.campaign.marks.real_marks import REAL_MARKS
from fencepost.campaign.workers.results import CampaignResult, RunResult
from fencepost.checkers.verdict import Finding
from fencepost.report.commands import replay_stored
from fencepost.report.figure import Figure, axis, layout, text_of
from fencepost.report.report_page import Page, Table
from fencepost.report.sample import Sample
from fencepost.traces.anomalies import names_by_rank
from fencepost.viewer.examples import anchor_of, examples_of

MOST_SEEDS_NAMED = 20
LINE = 28
"""Pixels between two anomalies of the figure."""


def page_of(
    result: CampaignResult,
    runs: Iterable[RunResult],
    out: Path,
    *,
    page: Path | None = None,
    checks: tuple[str, ...] = (),
) -> str:
    """The HTML of a campaign.

    Parameters: runs: the verdict of each run, in any order; out: the campaign's folder of traces; page:
    where the text will be written, with pages of the viewer next to it; None for none; checks: the judges,
    where they are not the usual ones. Returns: the page's text. Raises: FencepostError if a page of the
    viewer cannot be written.
    """
    judged = sorted((run for run in runs if run.decision is not None), key=lambda run: run.seed)
    first: dict[str, RunResult] = {}
    for run in judged:
        if run.anomaly:
            first.setdefault(run.anomaly, run)
    first = {name: first[name] for name in names_by_rank(first)}
    weak = len(result.broken) + len(result.undecided) + len(result.crashed) + len(result.disagreeing)
    lead = f"{result.finished:,} of {result.seeds:,} runs judged, with {result.operations:,} operations and "
    lead += f"{result.events:,} protocol events: "
    lead += f"{result.findings:,} with findings" if result.findings else "no finding"
    lead += f", {weak:,} that prove nothing." if weak else "."
    tables = [*_anomalies(result, first), *_proving_nothing(result), *_marks(result)]
    samples = [_sample(name, run, out, checks) for name, run in first.items()]
    return Page(
        title="Fencepost: a campaign",
        lead=lead,
        good=not result.findings and not weak,
        tables=tuple(tables),
        figures=tuple(_figures(judged, tuple(first))),
        examples=examples_of(samples, page),
        examples_heading="The first run with each anomaly",
    ).html()


def _sample(name: str, run: RunResult, out: Path, checks: tuple[str, ...]) -> Sample:
    finding: Finding = next(one for one in run.findings if one.anomaly == name)
    replay = replay_stored(out, run.seed, checks=checks)
    return Sample(
        source=str(out), trace_id=run.seed, operations=run.operations, finding=finding, replay=replay
    )


def _anomalies(result: CampaignResult, first: dict[str, RunResult]) -> Iterable[Table]:
    """Runs by their worst anomaly."""
    if not result.anomalies:
        return
    most = max(result.anomalies.values())
    yield Table(
        heading="Anomalies",
        columns=("anomaly", "runs", "first seed"),
        rows=tuple(
            (name, f"{count:,}", str(first[name].seed) if name in first else "")
            for name, count in result.anomalies.items()
        ),
        share=tuple(count / most for count in result.anomalies.values()),
        links=tuple(anchor_of(name) if name in first else "" for name in result.anomalies),
        note="Each run counts once, for its worst anomaly; the worst come first.",
    )


def _proving_nothing(result: CampaignResult) -> Iterable[Table]:
    """Runs that are neither ok nor illegal."""
    kinds = (
        ("too weak to mean anything", result.broken),
        ("undecided", result.undecided),
        ("crashed", tuple(seed for seed, _ in result.crashed)),
        ("another digest when run twice", result.disagreeing),
    )
    rows = tuple((what, f"{len(seeds):,}", _named(seeds)) for what, seeds in kinds if seeds)
    if rows:
        yield Table(heading="Runs that prove nothing", columns=("why", "runs", "seeds"), rows=rows)


def _named(seeds: tuple[int, ...]) -> str:
    more = f" and {len(seeds) - MOST_SEEDS_NAMED:,} more" if len(seeds) > MOST_SEEDS_NAMED else ""
    return ", ".join(str(seed) for seed in seeds[:MOST_SEEDS_NAMED]) + more


def _marks(result: CampaignResult) -> Iterable[Table]:
    """What the runs reached, the rarest first; what none reached before them."""
    says = {mark.name: mark.says for mark in (*MARKS, *REAL_MARKS)}
    counts = {**dict.fromkeys(result.never_reached, 0), **result.marks}
    if not counts:
        return
    names = sorted(counts, key=lambda name: (counts[name], name))
    yield Table(
        heading="Marks",
        columns=("mark", "runs"),
        rows=tuple((f"{name}: {says[name]}", f"{counts[name]:,}") for name in names),
        share=tuple(counts[name] / max(result.finished, 1) for name in names),
        note="What runs reach sometimes, the rarest first. A mark that no run reached was not tested.",
    )


def _figures(judged: list[RunResult], anomalies: tuple[str, ...]) -> Iterable[Figure]:
    """Findings by seed, and how many marks had been reached by then."""
    reached: set[str] = set()
    steps: list[tuple[int, int]] = []
    for run in judged:
        before = len(reached)
        reached.update(run.marks)
        if len(reached) > before:
            steps.append((run.seed, len(reached)))
    if len(judged) < 2 or not (steps or anomalies):
        return
    ends = {"range": [judged[0].seed - 0.5, judged[-1].seed + 0.5], "anchor": "y2" if anomalies else "y"}
    high = LINE * (len(anomalies) + 1)
    height = 160 + (high + 40 if anomalies else 0)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "marks reached so far",
            "x": [*(seed for seed, _ in steps), judged[-1].seed],
            "y": [*(count for _, count in steps), len(reached)],
            "line": {"shape": "hv", "color": "#2f7ed8", "width": 2},
        }
    ]
    axes = {"yaxis": axis("marks", domain=[1 - 160 / height, 1], rangemode="tozero")}
    if anomalies:
        found = [run for run in judged if run.anomaly]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "runs with a finding",
                "x": [run.seed for run in found],
                "y": [anomalies.index(str(run.anomaly)) for run in found],
                "yaxis": "y2",
                "hovertext": [text_of(f"seed {run.seed}: {run.anomaly}") for run in found],
                "hoverinfo": "text",
                "marker": {"symbol": "diamond", "size": 8, "color": "#d62728"},
            }
        )
        axes["yaxis2"] = axis(
            domain=[0, high / height],
            tickvals=list(range(len(anomalies))),
            ticktext=[text_of(name) for name in anomalies],
            range=[len(anomalies) - 0.5, -0.5],
            fixedrange=True,
        )
    yield Figure(
        title="by seed: runs with a finding, and how many marks had been reached",
        data=tuple(data),
        layout=layout(height + 90, xaxis=axis("seed", **ends), **axes),
    )
