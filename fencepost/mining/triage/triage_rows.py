"""What a task reports for triage: the evidence of its bad traces, and how many healthy ones had each feature.

Owns the way from judged tables to rows of the results `evidence`, `contrast` and `spectra`. Must not know
Spark, groups.

A healthy trace (every check says Ok) gets no row, unless all spectra are wanted. The features of healthy
traces, or of a sample of many (compared.py), are counted where they are judged, by profile, so that bad
traces can be compared with healthy ones of the same kind. Undecided traces are in neither. Nothing is looked
at in a trace that is in neither.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.triage.compared import Compared
from fencepost.mining.triage.event_steps import steps_of
from fencepost.mining.triage.evidence import evidence_of
from fencepost.mining.triage.features import features_of
from fencepost.traces.tables import Tables, these
from fencepost.traces.trace import Trace

ALL = ""
"""The feature that every healthy trace has: its count is that of the compared traces."""


@frozen(kw_only=True)
class TriagedTrace:
    """A trace as triage sees it."""

    # The trace, without operations and events.
    trace: Trace
    # How many operations it had.
    operations: int
    # Of each check.
    verdicts: tuple[Verdict, ...]
    # The command that runs it again; "" for one without findings.
    replay: str


def is_well(trace: TriagedTrace) -> bool:
    """Whether every check says Ok. trace: the trace."""
    return all(one.decision is Decision.OK for one in trace.verdicts)


def is_bad(trace: TriagedTrace) -> bool:
    """Whether any check has a finding. trace: the trace."""
    return any(one.findings for one in trace.verdicts)


@define
class TaskTriage:
    """What one task has seen."""

    # Whether to report the features of every trace. Then every healthy trace is compared.
    spectra: bool = False
    # Which healthy traces are compared.
    compared: Compared = field(factory=Compared)
    # (profile, feature) -> compared healthy traces.
    healthy: Counter[tuple[str, str]] = field(factory=Counter)

    def add(
        self,
        source: str,
        tables: Tables,
        answers: Sequence[TriagedTrace],
        rows: dict[Any, list[tuple[Any, ...]]],
    ) -> None:
        """Take in the traces of tables, in their order, and add rows of `evidence`, and of `spectra` if asked
        for."""
        ids = tables.traces.column("trace_id").to_numpy().astype(np.int64)
        if not self.spectra:
            kept = self._drawn(ids, answers)
            if not kept.any():
                return
            if not kept.all():
                ids, tables = ids[kept], these(tables, ids[kept].tolist())
                answers = [answers[number] for number in np.flatnonzero(kept).tolist()]
        steps = steps_of(tables.events, ids)
        features = features_of(tables, steps)
        well = np.array([is_well(each) for each in answers], bool)
        self._count(features.trace, features.code, features.words, well, answers)
        bad = [number for number, each in enumerate(answers) if is_bad(each)]
        if not bad and not self.spectra:
            return
        words = features.of_each(len(answers))
        for number in bad:
            each = answers[number]
            found = evidence_of(number, each.verdicts, words[number], tables, steps)
            rows["evidence"].append(
                (
                    *(source, each.trace.trace_id, each.trace.profile, each.operations, found.anomaly),
                    *(list(found.items), words[number], each.replay),
                )
            )
        if self.spectra:
            for each, own, healthy in zip(answers, words, well.tolist(), strict=True):
                state = "healthy" if healthy else "bad" if is_bad(each) else "undecided"
                rows["spectra"].append((source, each.trace.trace_id, each.trace.profile, state, own))

    def _drawn(self, ids: Any, answers: Sequence[TriagedTrace]) -> Any:
        """The traces that are looked at: bad ones, and the healthy ones to compare them with."""
        drawn = self.compared.drawn(ids, (each.trace.profile for each in answers)).tolist()
        return np.array(
            [is_bad(each) or (mine and is_well(each)) for each, mine in zip(answers, drawn, strict=True)],
            bool,
        )

    def _count(
        self, trace: Any, code: Any, words: tuple[str, ...], well: Any, answers: Sequence[TriagedTrace]
    ) -> None:
        profiles = sorted({each.trace.profile for each in answers})
        of = np.array([profiles.index(each.trace.profile) for each in answers], np.int64)
        for number, profile in enumerate(profiles):
            mine = well & (of == number)
            self.healthy[profile, ALL] += int(mine.sum())
            counts = np.bincount(code[mine[trace]], minlength=len(words))
            for place in np.flatnonzero(counts).tolist():
                self.healthy[profile, words[place]] += int(counts[place])

    def contrast(self) -> list[tuple[Any, ...]]:
        """The rows of `contrast`."""
        return [(profile, feature, count) for (profile, feature), count in sorted(self.healthy.items())]
