"""The judgement of a recorded history, as an assertion.

Owns the conditions under which the assertion fails, and its message. Must not know how a history was
recorded, or how linearizability is decided.

Only Ok passes. A history that the judge could not decide, that contradicts itself, or in which no operation
succeeded, proves nothing. The trace is saved before it is judged, so that it remains if the judge dies.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from fencepost.history.arguments import check_count, check_timeout, folder_of, make_folder, shown
from fencepost.history.recorder import History
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.checkers.models import Model
    from fencepost.checkers.verdict import Verdict

FILE = "history.jsonl"
TIMEOUT_S = 60.0
"""A search that takes longer seldom ends at all: its time grows with the power of what overlaps."""


class VacuousHistoryWarning(UserWarning):
    """A history passed in which no two operations overlapped: it cannot have met a race."""


class NotLinearizableError(AssertionError):
    """A history that is not linearizable, or could not be shown to be. verdict: the judge's; trace: what was
    judged."""

    def __init__(self, text: str, verdict: "Verdict", trace: Trace) -> None:
        super().__init__(text)
        self.verdict, self.trace = verdict, trace


def assert_linearizable(
    history: History | Trace,
    model: "str | Model | type[Model]",
    *,
    timeout_s: float = TIMEOUT_S,
    folder: Path | None = None,
    minimum_overlap: int = 0,
) -> "Verdict":
    """Assert that the history is linearizable with respect to the model.

    Args:
        history: what was recorded.
        model: a name of docs/reference/models.md, `module:Class`, a class, or an instance with its
            parameters.
        timeout_s: seconds after which the search is given up.
        folder: where the trace is saved before it is judged; None: the history's own folder.
        minimum_overlap: with fewer overlapping pairs of operations the history proves nothing; 0: it only
            warns if there are none.

    Returns:
        The verdict, which is Ok.

    Raises:
        NotLinearizableError: if no order of the operations explains the results.
        FencepostError: for a model that does not exist.
        TraceError: for an operation without its result.
    """
    __tracebackhide__ = True
    from fencepost.checkers.linearizability.overlap import overlapping_pairs
    from fencepost.history.again import again

    where = "assert_linearizable"
    if not isinstance(history, History | Trace):
        raise FencepostError(
            expected="a History, or a Trace of one",
            seen=shown(history),
            where=where,
            hint="fencepost check FILE --model NAME judges a file",
        )
    check_timeout(timeout_s, where)
    check_count(minimum_overlap, f"{where}: minimum_overlap")
    folder = None if folder is None else folder_of(folder, f"{where}: folder")
    asked = _model(model)
    if isinstance(history, History):
        history.check_answered(asked.reads)
    trace = history.trace() if isinstance(history, History) else history
    trace = _without_answers(trace, asked)
    folder = folder or (history.folder if isinstance(history, History) else None)
    path = None if folder is None else _saved(trace, folder)
    verdict = judged(trace, asked, timeout_s=timeout_s, minimum_overlap=minimum_overlap)
    pairs = overlapping_pairs(trace.operations)
    if verdict.decision.value != "ok":
        options = {} if timeout_s == TIMEOUT_S else {"--timeout": f"{timeout_s:g}"}
        if minimum_overlap:
            options["--minimum-overlap"] = str(minimum_overlap)
        last = again(path, asked, options).words()
        if path is not None:
            last = f"{_page(path, trace, asked, verdict)}\n{last}"
        text = _told(verdict, trace, pairs, last)
        raise NotLinearizableError(text, verdict, trace)
    if not pairs and not minimum_overlap:
        warnings.warn(
            f"none of the {len(trace.operations)} operations overlapped another one, so this history cannot "
            f"have met a race;"
            " run the clients at the same time (history.clients), or say what there must be "
            "(minimum_overlap=)",
            VacuousHistoryWarning,
            stacklevel=2,
        )
    return verdict


def judged(
    trace: Trace, model: "Model", *, timeout_s: float = TIMEOUT_S, minimum_overlap: int = 0
) -> "Verdict":
    """The verdict of the linearizability judge. trace: the history; model: the sequential model; timeout_s:
    of the search; minimum_overlap: pairs of operations that must overlap. Returns Assumption broken if no
    operation succeeded, or too few overlapped."""
    from fencepost.checkers.linearizability import SearchLimits, judge_counted
    from fencepost.checkers.linearizability.overlap import strong_enough

    found = judge_counted(trace, model, SearchLimits(timeout_s=timeout_s))
    return strong_enough(trace, found, minimum_overlap)


def _model(model: "str | Model | type[Model]") -> "Model":
    from fencepost.checkers.models import Model, model_named

    if isinstance(model, str):
        return model_named(model)
    if isinstance(model, type) and issubclass(model, Model):
        return model()
    if not isinstance(model, Model):
        raise FencepostError(
            expected="a model: its name, a class derived from fencepost.checkers.models.Model, or one of "
            "its instances",
            seen=shown(model),
            where="assert_linearizable",
        )
    return model


def _without_answers(trace: Trace, model: "Model") -> Trace:
    """The trace without results that mean nothing: if an operation's only result is that it happened, a
    client may return a status, a row count or the object itself."""
    return evolve(
        trace,
        operations=tuple(
            evolve(operation, result=None) if operation.function.value in model.effects else operation
            for operation in trace.operations
        ),
    )


def _saved(trace: Trace, folder: Path) -> Path:
    from fencepost.traces.jsonlines import write_traces

    make_folder(folder)
    number = 1
    path = folder / FILE
    while path.exists():  # a test may judge several histories
        number += 1
        path = folder / f"history-{number}.jsonl"
    write_traces(path, [trace])
    return path


def _told(verdict: "Verdict", trace: Trace, pairs: int, again: str) -> str:
    """The failure in words: the guarantee that broke, the proof, the lanes of the processes, and how to see
    it again."""
    from fencepost.report.processes import excluded_words, process_lanes
    from fencepost.traces.anomalies import BY_NAME

    lines = []
    for finding in verdict.findings:
        lines += [
            f"{finding.anomaly}: {BY_NAME[finding.anomaly].definition}",
            f"  expected: {finding.expected}",
            f"  seen:     {finding.seen}",
            *((excluded_words(trace, finding),) if finding.excluded else ()),
            "",
            process_lanes(trace, (*finding.operations, *finding.excluded)),
            "",
        ]
    if not lines:
        lines.append(f"{verdict.decision.value}: {verdict.reason}")
    lines.append(f"{len(trace.operations)} operations, {pairs} pairs of them overlapped")
    lines.append(again)
    return "\n".join(lines)


def _page(path: Path, trace: Trace, model: "Model", verdict: "Verdict") -> str:
    """The page of a history, next to its file, with the longest order that the model allows; answers
    where."""
    from fencepost.viewer import Shown, page_next_to
    from fencepost.viewer.sequential import sequential_of

    picture = sequential_of(trace, model, verdict.findings)
    return page_next_to(path, Shown(trace=trace, verdicts=(verdict,), sequential=picture))
