"""What a task reports for triage: the evidence of its bad traces, and how many healthy ones had each feature.

Owns the way from judged tables to rows of the results `evidence`, `contrast` and `spectra`. Must not know
Spark, groups.

A healthy trace (every check says Ok) gets no row, unless all spectra are wanted. Its features
are counted where it is judged, by its profile, so that bad traces can be compared with
healthy ones of the same kind. Undecided traces are in neither.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.triage.evidence import evidence_of
from fencepost.mining.triage.features import features_of
from fencepost.mining.triage.steps import steps_of
from fencepost.traces.tables import Tables
from fencepost.traces.trace import Trace

ALL = ""
"""The feature that every healthy trace has: its count is that of the traces."""


@frozen(kw_only=True)
class Told:
    """A trace as triage sees it. trace: without operations and events; operations: how many; replay: the
    command that runs it again."""

    trace: Trace
    operations: int
    verdicts: tuple[Verdict, ...]
    replay: str


@define
class TaskTriage:
    """What one task has seen. spectra: whether to report the features of every trace; healthy: (profile,
    feature) -> healthy traces."""

    spectra: bool = False
    healthy: Counter[tuple[str, str]] = field(factory=Counter)

    def add(
        self, source: str, tables: Tables, answers: Sequence[Told], rows: dict[Any, list[tuple[Any, ...]]]
    ) -> None:
        """Take in the traces of tables, in their order, and add rows of `evidence`, and of `spectra` if asked
        for."""
        ids = tables.traces.column("trace_id").to_numpy().astype(np.int64)
        steps = steps_of(tables.events, ids)
        features = features_of(tables, steps)
        well = np.array([all(one.decision is Decision.OK for one in each.verdicts) for each in answers], bool)
        self._count(features.trace, features.code, features.words, well, answers)
        bad = [number for number, each in enumerate(answers) if any(one.findings for one in each.verdicts)]
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
            for each, own, is_well in zip(answers, words, well.tolist(), strict=True):
                found_any = any(one.findings for one in each.verdicts)
                state = "healthy" if is_well else "bad" if found_any else "undecided"
                rows["spectra"].append((source, each.trace.trace_id, each.trace.profile, state, own))

    def _count(
        self, trace: Any, code: Any, words: tuple[str, ...], well: Any, answers: Sequence[Told]
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
