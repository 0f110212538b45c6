"""What `fencepost check` asks of one piece of its input, in whatever process.

Owns: the question in a form that can be sent, and the answer per trace. Must not know processes, order, or
what is printed.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from fencepost.checkers.verdict import Verdict, combine
from fencepost.cli.check.claims import OutsideClaims, under_claims
from fencepost.mining.inputs.traces import Found, Piece, Quarantined, read_piece
from fencepost.report.records import MOST_LOST, LogReport
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.checkers.linearizability import SearchLimits
    from fencepost.checkers.models import Model


@frozen(kw_only=True)
class Question:
    """checks, profile, claims: for the judges of a log; lost_listed: lost records to list of one history
    (None: all). Or model: its name, with its parameters by name; timeout_s, memory_bytes: for one history;
    minimum_overlap: how many pairs of operations have to overlap."""

    checks: tuple[str, ...] = ()
    profile: str | None = None
    claims: OutsideClaims | None = None
    lost_listed: int | None = MOST_LOST
    model: str = ""
    parameters: dict[str, Any] = {}  # noqa: RUF008 (frozen, never written)
    timeout_s: float = 0.0
    memory_bytes: int = 0
    minimum_overlap: int = 0

    def asked_model(self) -> "tuple[Model, SearchLimits]":
        """The model and the limits. Raises FencepostError for a model that cannot be found."""
        from fencepost.checkers.linearizability import SearchLimits
        from fencepost.checkers.models import model_named

        limits = SearchLimits(timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        return model_named(self.model, self.parameters, where="--model"), limits


@frozen(kw_only=True)
class Began:
    """The trace at this place of its piece is read and about to be judged."""

    index: int
    source: str
    trace_id: int
    stored: bool


@frozen(kw_only=True)
class Judgement:
    """The verdict of one trace. index: its place in its piece; counts: of what the judge did, by name; log:
    what became of the records of its logs (None: nobody asked, or it contradicts itself); seconds: of
    judging, by the wall clock."""

    index: int
    source: str
    trace_id: int
    stored: bool
    verdict: Verdict
    counts: dict[str, int] = {}  # noqa: RUF008 (frozen, never written)
    log: LogReport | None = None
    seconds: float = 0.0


WorkMessage = Began | Judgement | Quarantined


def verdicts_of(trace: Trace, question: Question) -> tuple[Verdict, ...]:
    """What the judges of a log say of a trace, one by one."""
    from fencepost.checkers.judges import judge

    return judge(asked_trace(trace, question), question.checks)


def asked_trace(trace: Trace, question: Question) -> Trace:
    """The trace with the claims and the profile that the question asks for."""
    from fencepost.checkers.judges import under_profile

    return under_profile(under_claims(trace, question.claims), question.profile)


def _log_report(trace: Trace, question: Question) -> LogReport | None:
    """What became of the records of the trace's logs."""
    from fencepost.checkers.log.accounts import counts_of_trace

    counts = counts_of_trace(asked_trace(trace, question))
    return None if counts is None else LogReport.of(counts, question.lost_listed)


def _judgement(found: Found, index: int, question: Question) -> Judgement:
    start = time.perf_counter()
    counts: dict[str, int] = {}
    log: LogReport | None = None
    if question.model:
        from fencepost.checkers.linearizability import judge_counted
        from fencepost.checkers.linearizability.overlap import overlapping_pairs, strong_enough

        judged = judge_counted(found.trace, *question.asked_model())
        verdict = strong_enough(found.trace, judged.verdict, question.minimum_overlap)
        counts = {
            name: getattr(judged, name) for name in ("operations", "parts", "decided", "steps", "nodes")
        }
        counts["overlapping"] = overlapping_pairs(found.trace.operations)
    else:
        verdict = combine(verdicts_of(found.trace, question))
        log = _log_report(found.trace, question) if "log" in question.checks else None
    return Judgement(
        index=index,
        source=found.source,
        trace_id=found.trace.trace_id,
        stored=found.stored,
        verdict=verdict,
        counts=counts,
        log=log,
        seconds=time.perf_counter() - start,
    )


def judged(piece: Piece, question: Question, skip: int = 0) -> Iterator[WorkMessage]:
    """Every trace of a piece announced and judged, and why the rest is unreadable. skip: traces that were
    judged before.

    Raises FencepostError for what is wrong with the question (a model that raises).
    """
    for index, found in enumerate(read_piece(piece)):
        if isinstance(found, Quarantined):
            yield found
        elif index >= skip:
            yield Began(index=index, source=found.source, trace_id=found.trace.trace_id, stored=found.stored)
            yield _judgement(found, index, question)


def trace_at(piece: Piece, index: int) -> Trace | None:
    """A trace read again, to be drawn; None if it is no longer there."""
    for place, found in enumerate(read_piece(piece)):
        if place == index and isinstance(found, Found):
            return found.trace
    return None
