"""The judgement of a recorded history, as an assertion.

Owns: what makes the assertion fail, and what it then says. Must not know how a history was recorded, or how linearizability is decided.

Only Ok passes: a history that the judge could not decide, that contradicts itself, or in which no operation succeeded, proves nothing. The trace is
saved before it is judged, so that a judge that dies leaves it behind.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from fencepost.history.recorder import History
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.checkers.models import Model
    from fencepost.checkers.verdict import Verdict

FILE = "history.jsonl"
TIMEOUT_S = 60.0


class NotLinearizableError(AssertionError):
    """A history that is not linearizable, or could not be shown to be. verdict: the judge's; trace: what was judged."""

    def __init__(self, text: str, verdict: "Verdict", trace: Trace) -> None:
        super().__init__(text)
        self.verdict, self.trace = verdict, trace


def assert_linearizable(
    history: History | Trace,
    model: "str | Model | type[Model]",
    *,
    timeout_s: float = TIMEOUT_S,
    folder: Path | None = None,
) -> "Verdict":
    """Assert that the history is linearizable with respect to the model; answers the verdict, which is Ok.

    model: a name of docs/models.md, `module:Class`, a class or an instance (which may start from another value). folder: where the trace is saved before it
    is judged; the history's own by default. Raises NotLinearizableError, FencepostError for a model that does not exist.
    """
    __tracebackhide__ = True
    asked = _model(model)
    trace = history.trace() if isinstance(history, History) else history
    trace = _without_answers(trace, asked)
    folder = folder or (history.folder if isinstance(history, History) else None)
    path = None if folder is None else _saved(trace, folder)
    verdict = judged(trace, asked, timeout_s=timeout_s)
    if verdict.decision.value != "ok":
        text = _told(verdict, trace, _command(path, model, asked))
        raise NotLinearizableError(text, verdict, trace)
    return verdict


def judged(trace: Trace, model: "Model", *, timeout_s: float = TIMEOUT_S) -> "Verdict":
    """The verdict of the linearizability judge; Assumption broken where no operation succeeded."""
    from fencepost.checkers.linearizability import CHECK, SearchLimits, judge_trace
    from fencepost.checkers.verdict import Decision, Verdict

    if not any(operation.outcome is Outcome.OK for operation in trace.operations):
        return Verdict(
            decision=Decision.ASSUMPTION_BROKEN,
            check=CHECK,
            reason=f"none of the {len(trace.operations)} recorded operations succeeded: the history proves nothing",
        )
    return judge_trace(trace, model, SearchLimits(timeout_s=timeout_s))


def _model(model: "str | Model | type[Model]") -> "Model":
    from fencepost.checkers.models import Model, model_named

    if isinstance(model, str):
        return model_named(model)
    if isinstance(model, type) and issubclass(model, Model):
        return model()
    if not isinstance(model, Model):
        raise FencepostError(
            expected="a model: its name, a class derived from fencepost.checkers.models.Model, or one of its instances",
            seen=f"{model!r:.80}",
            where="assert_linearizable",
        )
    return model


def _without_answers(trace: Trace, model: "Model") -> Trace:
    """What a client returns of a call whose only result is that it happened says nothing: a status, a row count, the object itself."""
    return evolve(
        trace,
        operations=tuple(
            evolve(operation, result=None) if operation.function.value in model.effects else operation
            for operation in trace.operations
        ),
    )


def _saved(trace: Trace, folder: Path) -> Path:
    from fencepost.traces.jsonlines import write_traces

    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    path = folder / FILE
    while path.exists():  # a test may judge several histories
        number += 1
        path = folder / f"history-{number}.jsonl"
    write_traces(path, [trace])
    return path


def _command(path: Path | None, named: Any, model: "Model") -> str:
    """How to judge the saved history again; "" if that is not possible from a command line."""
    if path is None:
        return ""
    kind = type(model)
    importable = "<" not in kind.__qualname__ and kind.__module__ not in ("__main__", "builtins")
    name = named if isinstance(named, str) else kind.name
    if not isinstance(named, str) and not kind.__module__.startswith("fencepost."):
        name = f"{kind.__module__}:{kind.__qualname__}" if importable else ""
    return f"fencepost check {shlex.quote(str(path))} --model {name}" if name else ""


def _told(verdict: "Verdict", trace: Trace, command: str) -> str:
    """The failure in words: the guarantee that broke, the proof, the lanes of the processes, and how to see it again."""
    from fencepost.report.processes import process_lanes
    from fencepost.traces.anomalies import BY_NAME

    lines = []
    for finding in verdict.findings:
        lines += [
            f"{finding.anomaly}: {BY_NAME[finding.anomaly].definition}",
            f"  expected: {finding.expected}",
            f"  seen:     {finding.seen}",
            "",
            process_lanes(trace, finding.operations),
            "",
        ]
    if not lines:
        lines.append(f"{verdict.decision.value}: {verdict.reason}")
    if command:
        lines.append(f"judge it again: {command}")
    return "\n".join(lines)
