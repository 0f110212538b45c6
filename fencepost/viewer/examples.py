"""Examples of findings on a page of results: each trace is drawn once, and can be watched on a page of its
own.

Owns: which traces are read, and how an example follows from one. Must not know: what else is on the page, nor
who found the finding.
"""

from collections.abc import Sequence
from pathlib import Path

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.report.explain import explain
from fencepost.report.picture import figure_of
from fencepost.report.report_page import Example
from fencepost.report.sample import Sample
from fencepost.traces.errors import FencepostError
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from fencepost.viewer.page_file import write_page
from fencepost.viewer.view import Shown

LARGEST_DRAWN = 20_000
"""Operations of a trace that is still read and drawn on the page; a larger one is named only."""


def anchor_of(anomaly: str) -> str:
    """The place of an anomaly's example on the page."""
    return f"example-{anomaly}"


def trace_of(sample: Sample, stores: dict[str, TraceStore]) -> Trace | None:
    """The sample's trace, if it is not too large to draw and its folder still is as it was. stores: opened so
    far, by folder."""
    if sample.operations > LARGEST_DRAWN:
        return None
    try:
        if sample.source not in stores:
            stores[sample.source] = TraceStore.open(Path(sample.source))
        return stores[sample.source].read(sample.trace_id)
    except (FencepostError, KeyError):
        return None


def examples_of(samples: Sequence[Sample], page: Path | None) -> tuple[Example, ...]:
    """An example for each sample.

    Parameters: page: where the page of results is written; a page of the viewer goes next to it, with its
    name, for each trace that is drawn. None for no such pages.
    Raises: FencepostError if one of them cannot be written.
    """
    found: list[Example] = []
    pages: dict[tuple[str, int], str] = {}
    stores: dict[str, TraceStore] = {}
    for sample in samples:
        key, trace = (sample.source, sample.trace_id), trace_of(sample, stores)
        again = key in pages
        if trace is not None and not again:
            pages[key] = _watched(sample, trace, samples, page, number=len(pages) + 1)
        found.append(_example(sample, trace, again=again, watch=pages.get(key, "")))
    return tuple(found)


def _example(sample: Sample, trace: Trace | None, *, again: bool, watch: str) -> Example:
    """A finding. again: its trace was drawn for an earlier one already; watch: the page of the viewer."""
    finding = sample.finding
    facts: tuple[tuple[str, str], ...]
    anchor = anchor_of(finding.anomaly)
    if trace is None:
        facts = (("expected", finding.expected), ("seen", finding.seen), ("replay", sample.replay))
        return Example(heading=finding.anomaly, facts=facts, proof=sample.proof, anchor=anchor)
    explained = explain(finding, trace, replay=sample.replay)
    where = f"{sample.trace_id} of {sample.source}, {sample.operations:,} operations"
    facts = (*explained.facts, ("trace", f"{where}; drawn above" if again else where))
    return Example(
        heading=explained.headline,
        facts=facts,
        proof=explained.proof,
        figures=() if again else (figure_of(trace, finding),),
        anchor=anchor,
        watch=watch,
    )


def _watched(
    sample: Sample, trace: Trace, samples: Sequence[Sample], page: Path | None, *, number: int
) -> str:
    """The name of the viewer's page of an example, written next to `page`; "" where none is wanted."""
    if page is None:
        return ""
    same = (sample.source, sample.trace_id)
    findings = tuple(one.finding for one in samples if (one.source, one.trace_id) == same)
    verdict = Verdict(decision=Decision.ILLEGAL, check="findings", findings=findings)
    name = f"{page.stem}-example-{number}.html"
    write_page(page.with_name(name), [Shown(trace=trace, verdicts=(verdict,), replay=sample.replay)])
    return name
