"""Trace validation by TLC: a module with the recorded runs as literals, one run of TLC, an answer for each.

Owns the generated module, and the parsing of the printed answers. Must not know how events became steps.

Each run is one behaviour of ReplicationTrace.tla, so one JVM answers for many. An answer counts only if TLC
visited every state without an error and printed exactly one answer per run. TLC runs with one worker, so that
it prints in the order of the steps.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen

from fencepost.model.conform.recorded_events import Recorded
from fencepost.model.tla import FOLDER
from fencepost.model.tlc.result import RunOutcome, TlcResult
from fencepost.model.tlc.tlc_run import OnProgress, RunOptions, Spec, check, private_folder
from fencepost.model.tlc.values import show
from fencepost.traces.errors import FencepostError

MODULE, CONFIG = "ReplicationTrace.tla", "ReplicationTrace.cfg"
GUARDS, RUNS = "ReplicationGuards.tla", "RecordedRuns.tla"
STEPS_AT_ONCE = 20_000
"""The most steps of all runs in one run of TLC. Reason: the module has a few megabytes, and the queue of
states fits into a small heap."""
RUNS_AT_ONCE = 400
"""The most runs in one run of TLC. Reason: each prints a line, and at most a thousand lines are kept."""
_TOLD = re.compile(
    r'"(?:explained (?P<run>\d+)|unexplained (?P<unexplained>\d+) (?P<step>\d+) (?P<guard>.*))"'
)


@frozen(kw_only=True)
class ReplayAnswer:
    """TLC's answer for one run."""

    # The index of its first step that no action explains, or -1.
    step: int = -1
    # The guard that forbids it, in words.
    guard: str = ""

    @property
    def explained(self) -> bool:
        """Whether the protocol allows every step."""
        return self.step < 0


@frozen(kw_only=True)
class Validation:
    """answers: for each run, in order; empty if a limit was reached first (outcome UNDECIDED). states:
    visited by TLC. seconds: of its runs, including the start of Java. last: the last run of TLC."""

    answers: tuple[ReplayAnswer, ...]
    states: int
    seconds: float
    last: TlcResult

    @property
    def decided(self) -> bool:
        """Whether TLC answered."""
        return self.last.outcome is RunOutcome.HOLDS


def validate(
    runs: Sequence[Recorded], options: RunOptions | None = None, on_progress: OnProgress | None = None
) -> Validation:
    """Validate these runs with TLC.

    Args:
        runs: the recorded runs.
        options: TLC's options.
        on_progress: called with TLC's progress.

    Returns:
        the answers.

    Raises:
        FencepostError: if TLC itself fails.
    """
    answers: list[ReplayAnswer] = []
    states, seconds = 0, 0.0
    batches = _batches(runs)
    assert batches, "nothing to validate"
    for batch in batches:
        result, answers_by_number = _validate(batch, options or RunOptions(), on_progress)
        states, seconds = states + max(result.distinct, 0), seconds + result.seconds
        if result.outcome is RunOutcome.UNDECIDED:
            return Validation(answers=(), states=states, seconds=seconds, last=result)
        answers += answers_by_number
    return Validation(answers=tuple(answers), states=states, seconds=seconds, last=result)


def _batches(runs: Sequence[Recorded]) -> list[list[Recorded]]:
    batches: list[list[Recorded]] = []
    steps = 0
    for run in runs:
        if not batches or len(batches[-1]) == RUNS_AT_ONCE or steps + len(run.steps) > STEPS_AT_ONCE:
            batches.append([])
            steps = 0
        batches[-1].append(run)
        steps += len(run.steps)
    return batches


def module_of(runs: Sequence[Recorded]) -> str:
    """The generated module."""
    brokers = max(run.brokers for run in runs)
    traces = ",\n".join(_run_text(run) for run in runs)
    return (
        f"---- MODULE {Path(RUNS).stem} ----\n"
        "EXTENDS Integers, Sequences\n\n"
        f"Brokers == -1 .. {brokers - 1}\n\n"
        f"Traces == <<\n{traces}\n>>\n"
        "====\n"
    )


def _run_text(run: Recorded) -> str:
    events = ",\n".join(f"    {show(step)}" for step in run.steps)
    flags = f"unclean |-> {show(run.unclean)}, compacted |-> {show(run.compacted)}"
    return (
        f"  \\* {run.topic}-{run.partition} of trace {run.trace_id}\n  [{flags}, events |-> "
        f"<<\n{events}\n  >>]"
    )


def _validate(
    runs: Sequence[Recorded], options: RunOptions, on_progress: OnProgress | None
) -> tuple[TlcResult, list[ReplayAnswer]]:
    with private_folder() as folder:
        for shipped in (MODULE, CONFIG, GUARDS):
            (folder / shipped).write_text((FOLDER / shipped).read_text(encoding="utf-8"), encoding="utf-8")
        (folder / RUNS).write_text(module_of(runs), encoding="utf-8")
        result = check(Spec.at(folder / MODULE), evolve(options, workers=1), on_progress)
    if result.outcome is RunOutcome.UNDECIDED:
        return result, []
    if result.outcome is not RunOutcome.HOLDS:
        raise FencepostError(
            expected="TLC to replay the recorded runs", seen=result.reason, where="ReplicationTrace.tla"
        )
    return result, _answers(result, len(runs))


def _answers(result: TlcResult, count: int) -> list[ReplayAnswer]:
    """The answers from the printed lines; each run must have exactly one."""
    answers_by_number: dict[int, ReplayAnswer] = {}
    for line in result.output:
        match = _TOLD.fullmatch(line.strip())
        if match is None:
            continue
        number = int(match["run"] or match["unexplained"])
        assert number not in answers_by_number, line
        answers_by_number[number] = (
            ReplayAnswer(step=int(match["step"]) - 1, guard=match["guard"])
            if match["step"]
            else ReplayAnswer()
        )
    if sorted(answers_by_number) != list(range(1, count + 1)):
        raise FencepostError(
            expected=f"an answer of TLC for each of {count} runs",
            seen=f"{len(answers_by_number)} answers",
            where="ReplicationTrace.tla",
        )
    return [answers_by_number[number] for number in range(1, count + 1)]
