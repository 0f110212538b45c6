"""What `fencepost check` asks about one piece of its input, in any process.

Owns the question in a form that can be sent, and the answer for each trace. Must not know processes, order,
or what is printed.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from fencepost.checkers.verdict import Verdict, combine
from fencepost.mining.inputs.traces import Found, Piece, Quarantined, read_piece
from fencepost.record.claimed import OutsideClaims, topics_of, under_claims
from fencepost.report.record_counts import MOST_LOST, LogReport
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.checkers.linearizability import SearchLimits
    from fencepost.checkers.models import Model
    from fencepost.checkers.models.workloads import Workload


@frozen(kw_only=True)
class Question:
    """What to ask: the judges of a log, or a sequential model."""

    # Checks to run; (): those of the default.
    checks: tuple[str, ...] = ()
    # The profile to demand; None: the one that the trace claims.
    profile: str | None = None
    # The caller's claims; None: those of the trace.
    claims: OutsideClaims | None = None
    # Lost records to list for one history; None: all.
    lost_listed: int | None = MOST_LOST
    # Name of a sequential model; "": the judges of a log.
    model: str = ""
    # The model's parameters by name.
    parameters: dict[str, Any] = {}  # noqa: RUF008 (frozen, never written)
    # Time limit for one history.
    timeout_s: float = 0.0
    # Memory limit for one history.
    memory_bytes: int = 0
    # How many pairs of operations must overlap.
    minimum_overlap: int = 0

    def asked_workload(self) -> "Workload | None":
        """The workload; None if a model was asked for. Raises FencepostError for wrong parameters."""
        from fencepost.checkers.models.workloads import WORKLOADS, workload_named

        return workload_named(self.model, self.parameters) if self.model in WORKLOADS else None

    def asked_model(self) -> "tuple[Model, SearchLimits]":
        """The model and the limits. Raises FencepostError for a model that cannot be found."""
        from fencepost.checkers.linearizability import SearchLimits
        from fencepost.checkers.models import model_named

        limits = SearchLimits(timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        return model_named(self.model, self.parameters, where="--model"), limits


@frozen(kw_only=True)
class Began:
    """The trace with this index in its piece was read and is about to be judged."""

    index: int
    source: str
    trace_id: int
    stored: bool


@frozen(kw_only=True)
class Judgement:
    """The verdict of one trace."""

    # Position in its piece, from 0.
    index: int
    # The file or folder.
    source: str
    trace_id: int
    # Whether it is a stored run of a folder of traces.
    stored: bool
    verdict: Verdict
    # What the judge did, by name.
    counts: dict[str, int] = {}  # noqa: RUF008 (frozen, never written)
    # What became of the records; None: not asked, or the trace contradicts itself.
    log: LogReport | None = None
    # The topics of the trace; empty unless the question names topics.
    topics: frozenset[str] = frozenset()
    # How the history was read where it can be read in two ways, in sentences.
    taken: tuple[str, ...] = ()
    # Wall time of judging.
    seconds: float = 0.0


WorkMessage = Began | Judgement | Quarantined


def verdicts_of(trace: Trace, question: Question) -> tuple[Verdict, ...]:
    """The verdict of each check of the question on the trace, one by one."""
    from fencepost.checkers.judges import judge

    return judge(asked_trace(trace, question), question.checks)


def asked_trace(trace: Trace, question: Question) -> Trace:
    """The trace with the claims and the profile of the question."""
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
    named = question.claims is not None and question.claims.named
    workload = question.asked_workload() if question.model else None
    if workload is not None:
        verdict = workload.judge(found.trace)
        counts = {"operations": len(found.trace.operations)}
    elif question.model:
        from fencepost.checkers.linearizability import judge_counted
        from fencepost.checkers.linearizability.overlap import overlapping_pairs, strong_enough

        judged = judge_counted(found.trace, *question.asked_model())
        verdict = strong_enough(found.trace, judged, question.minimum_overlap)
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
        topics=topics_of(found.trace) if named else frozenset(),
        taken=found.taken,
        seconds=time.perf_counter() - start,
    )


def _lacks_model(found: Found, question: Question) -> str:
    """Why a foreign history cannot be judged without a model; "" if it can, or has one."""
    if question.model or not found.foreign:
        return ""
    from fencepost.checkers.linearizability.applicable_models import lacks_model

    return lacks_model(found.trace.operations)


def judged(piece: Piece, question: Question, skip: int = 0) -> Iterator[WorkMessage]:
    """Announce and judge every trace of a piece, and report what is unreadable. skip: how many of its traces
    were judged before.

    Raises FencepostError for what is wrong with the question (a model that raises).
    """
    for index, found in enumerate(read_piece(piece)):
        if isinstance(found, Quarantined):
            yield found
        elif reason := _lacks_model(found, question):
            yield Quarantined(source=found.source, reason=f"{found.source}: {reason}")
        elif index >= skip:
            yield Began(index=index, source=found.source, trace_id=found.trace.trace_id, stored=found.stored)
            yield _judgement(found, index, question)


def trace_at(piece: Piece, index: int) -> Trace | None:
    """Read the trace with this index of the piece again, to draw it; None if it is no longer there."""
    for place, found in enumerate(read_piece(piece)):
        if place == index and isinstance(found, Found):
            return found.trace
    return None
