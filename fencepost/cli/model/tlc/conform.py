"""`fencepost model tlc conform`: recorded runs checked against the TLA+ twin, by TLC."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich_click as click
from attrs import field, frozen

from fencepost.cli.model.tlc.tlc_words import java_options, progress_words, run_options, tell_toolbox
from fencepost.console.options import ANY_PATH, json_option, trace_option
from fencepost.console.output import Output, add_row, table
from fencepost.model.conform import Recorded, ReplayAnswer, recorded, validate
from fencepost.model.lives import with_lives
from fencepost.report.event_words import event_in_words, partition_name
from fencepost.traces.errors import ExitCode, FencepostError, PlanError, strongest
from fencepost.traces.events import Event
from fencepost.traces.trace import Trace, plain

MOST_LISTED = 20
"""Partitions with a finding that are listed."""


@frozen(kw_only=True)
class Case:
    """One partition of one trace, to be replayed by TLC."""

    source: str
    # Its steps.
    run: Recorded
    trace: Trace

    def event_at(self, step: int) -> tuple[int, Event]:
        """The event of a step: its position in the trace, and the event."""
        position = self.run.positions[step]
        return position, self.trace.events[position]


@frozen(kw_only=True)
class Cases:
    """The input."""

    cases: list[Case] = field(factory=list)
    # (source, trace id, why) of traces that cannot be mapped.
    undecided: list[tuple[str, int, str]] = field(factory=list)
    # Why input was left out.
    unreadable: list[str] = field(factory=list)
    traces: set[tuple[str, int]] = field(factory=set)


@click.command("conform", short_help="Does the TLA+ protocol allow every recorded step?")
@click.argument("inputs", nargs=-1, required=True, type=ANY_PATH, metavar="TRACE...")
@trace_option("Only the trace with this id.")
@click.option("--partition", metavar="T-0", help="Only this partition.")
@click.option(
    "--compare",
    is_flag=True,
    help="Also run `fencepost check`'s conformance, and compare: do both name the same event?",
)
@java_options
@json_option
def conform_command(
    inputs: tuple[Path, ...],
    trace_id: int | None,
    partition: str | None,
    compare: bool,
    output: Output,
    **java: Any,
) -> ExitCode:
    """Replay the protocol events of recorded runs through ReplicationTrace.tla, partition by partition.

    This is the question of `fencepost check --checks conformance`, answered by TLC with the guards of the
    TLA+ twin. Each event must be a step that the protocol allows. The first event that no action explains is
    reported with the guard that forbids it.

    \b
    Examples
      # a campaign's folder
      fencepost model tlc conform out/mine
      # one partition of one run
      fencepost model tlc conform out/mine --trace 17 --partition t-0
      # do the two implementations of the protocol agree?
      fencepost model tlc conform out/mine --compare
    """
    options = run_options(**java)
    tell_toolbox(output, options)
    read = _read(inputs, trace_id, partition, output)
    if not read.cases:
        return _tell_nothing(read, output)
    with output.progress("replaying", 1) as bar:
        found = validate(
            [case.run for case in read.cases], options, lambda progress: bar.to(0, progress_words(progress))
        )
    if not found.decided:
        output.say(f"undecided: {found.last.reason}")
        return output.end(ExitCode.UNDECIDED, {"outcome": "undecided", "reason": found.last.reason})
    pairs = list(zip(read.cases, found.answers, strict=True))
    disagreed = _disagreements(pairs) if compare else []
    _show(read, pairs, disagreed, compare, output)
    output.note(
        f"{found.states:,} states, {found.seconds:.1f} s, TLC {found.last.toolbox.tlc_version}"
        if found.last.toolbox
        else ""
    )
    code = _exit_code(read, pairs, disagreed)
    return output.end(code, _as_dict(read, pairs, disagreed if compare else None, found.seconds))


# ---- reading


def _read(inputs: tuple[Path, ...], trace_id: int | None, partition: str | None, output: Output) -> Cases:
    from fencepost.mining.inputs.traces import OURS, Quarantined, traces_of

    read = Cases()
    for found in traces_of(inputs, OURS):
        if isinstance(found, Quarantined):
            read.unreadable.append(found.reason)
            output.note(f"unreadable, left out: {found.reason}")
        elif trace_id is None or found.trace.trace_id == trace_id:
            _add(read, found.source, found.trace, partition)
    if (trace_id is not None or partition is not None) and not read.cases and not read.undecided:
        wanted = [f"trace {trace_id}"] * (trace_id is not None) + [f"partition {partition}"] * (
            partition is not None
        )
        raise FencepostError(
            expected=" and ".join(wanted),
            seen="no protocol events of that",
            where=", ".join(map(str, inputs)),
        )
    return read


def _add(read: Cases, source: str, trace: Trace, partition: str | None) -> None:
    from fencepost.checkers.conformance import has_replica_events, unclean_topics, why_undecided

    read.traces.add((source, trace.trace_id))
    trace = with_lives(trace).trace
    if not has_replica_events(trace):
        return
    try:
        reason, unclean = why_undecided(trace), unclean_topics(trace)
    except PlanError as error:
        reason, unclean = str(error), frozenset()
    if reason:
        read.undecided.append((source, trace.trace_id, reason))
        return
    for run in recorded(trace, unclean, trace.claims.compacted):
        if partition is None or partition_name(plain(run.topic), run.partition) == partition:
            read.cases.append(Case(source=source, run=run, trace=trace))


# ---- reporting


def _disagreements(pairs: list[tuple[Case, ReplayAnswer]]) -> list[tuple[Case, int, int]]:
    """(case, TLC's position, the other's) for each difference; -1: every event explained."""
    from fencepost.checkers import conformance
    from fencepost.model.refinement import ACTIONS

    found, judged = [], {}
    for case, answer in pairs:
        key = case.source, case.trace.trace_id
        if key not in judged:
            verdict = conformance.judge(case.trace)
            judged[key] = {
                (one.topic, one.partition): one.events[-1]
                for one in verdict.findings
                if case.trace.events[one.events[-1]].name in ACTIONS
            }
        ours = judged[key].get((case.run.topic, case.run.partition), -1)
        theirs = -1 if answer.explained else case.run.positions[answer.step]
        if ours != theirs:
            found.append((case, theirs, ours))
    return found


def _show(
    read: Cases,
    pairs: list[tuple[Case, ReplayAnswer]],
    disagreed: list[tuple[Case, int, int]],
    compare: bool,
    output: Output,
) -> None:
    rows = table("trace", "partition", ">event", "which says", "the guard that forbids it")
    unexplained = [(case, answer) for case, answer in pairs if not answer.explained]
    for case, answer in unexplained[:MOST_LISTED]:
        position, event = case.event_at(answer.step)
        name = partition_name(case.run.topic, case.run.partition)
        said = f"broker {event.node}: {event_in_words(event)}"
        add_row(rows, f"{case.source} {case.run.trace_id}", name, position, said, answer.guard, style="red")
    if unexplained:
        output.say(rows, "")
    for source, trace, reason in read.undecided[:MOST_LISTED]:
        output.say(f"{source} {trace}: undecided: {reason}")
    for case, theirs, ours in disagreed[:MOST_LISTED]:
        output.say(
            f"{case.source} {case.run.trace_id}, {partition_name(case.run.topic, case.run.partition)}:"
            f" TLC stops at event {theirs}, the Python model at event {ours} (-1: nowhere)"
        )
    steps = sum(len(case.run.steps) for case, _ in pairs)
    agreed = f"; the Python model says the same of {len(pairs) - len(disagreed)}" if compare else ""
    output.say(
        f"{len(read.traces)} traces, {len(pairs)} partitions, {steps:,} steps:"
        f" {len(pairs) - len(unexplained)} explained, {len(unexplained)} not{agreed}"
    )


def _tell_nothing(read: Cases, output: Output) -> ExitCode:
    for source, trace, reason in read.undecided:
        output.say(f"{source} {trace}: undecided: {reason}")
    code = _exit_code(read, [], [])
    output.say(f"{len(read.traces)} traces, no protocol events")
    return output.end(code, _as_dict(read, [], None, 0.0))


def _exit_code(
    read: Cases, pairs: list[tuple[Case, ReplayAnswer]], disagreed: list[tuple[Case, int, int]]
) -> ExitCode:
    codes = {ExitCode.NOTHING_FOUND}
    if disagreed or any(not answer.explained for _, answer in pairs):
        codes.add(ExitCode.FINDINGS)
    if read.undecided:
        codes.add(ExitCode.UNDECIDED)
    if read.unreadable:
        codes.add(ExitCode.QUARANTINED if read.traces else ExitCode.USAGE)
    return strongest(codes)


def _partitions(pairs: list[tuple[Case, ReplayAnswer]]) -> Iterator[dict[str, Any]]:
    for case, answer in pairs:
        yield {
            "source": case.source,
            "trace_id": case.run.trace_id,
            "partition": partition_name(case.run.topic, case.run.partition),
            "steps": len(case.run.steps),
            "stutters": case.run.stutters,
            "explained": answer.explained,
            "event": None if answer.explained else case.run.positions[answer.step],
            "guard": answer.guard,
        }


def _as_dict(
    read: Cases,
    pairs: list[tuple[Case, ReplayAnswer]],
    disagreed: list[tuple[Case, int, int]] | None,
    seconds: float,
) -> dict[str, Any]:
    return {
        "traces": len(read.traces),
        "partitions": list(_partitions(pairs)),
        "undecided": [
            {"source": source, "trace_id": trace, "reason": why} for source, trace, why in read.undecided
        ],
        "unreadable": read.unreadable,
        "disagreements": None if disagreed is None else len(disagreed),
        "seconds": round(seconds, 3),
    }
