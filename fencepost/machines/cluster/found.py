"""What a machine that drives a simulated cluster leaves behind when an example fails: an exception, a plan
file, and a program.

Owns the texts and the files. Must not know rules or oracles. A shrinker calls the last failing example the
smallest one, and runs it last; so each failing example writes the same two files, and in the end they hold
the smallest.

    FOLDER/NAME.json    the plan: `fencepost replay --plan`, `fencepost shrink`
    FOLDER/NAME.py      the same as a program: one call per step, to be run, debugged, or kept as a test
"""

from pathlib import Path

from attrs import evolve, frozen

from fencepost.campaign.shrink.text import short_plan, write_plan
from fencepost.checkers.judges import DEFAULT_CHECKS
from fencepost.checkers.verdict import Finding, Verdict
from fencepost.report.commands import replay_plan
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.plan import Fault, Plan, PlannedOperation


class FoundError(AssertionError):
    """An example with a finding. Each anomaly has a subclass of its own, so that Hypothesis shrinks an
    example to the *same* anomaly."""

    anomaly: str = ""


_KINDS: dict[str, type[FoundError]] = {}


def error_of(anomaly: str) -> type[FoundError]:
    """The exception that is called as the anomaly is: high_watermark_regressed -> HighWatermarkRegressed."""
    if anomaly not in _KINDS:
        name = "".join(word.capitalize() for word in anomaly.split("_"))
        _KINDS[anomaly] = type(
            name, (FoundError,), {"anomaly": anomaly, "__doc__": BY_NAME[anomaly].definition}
        )
    return _KINDS[anomaly]


@frozen(kw_only=True)
class Left:
    """Where an example was written down."""

    plan: Path
    program: Path


def explanation(finding: Finding, left: Left | None) -> str:
    """A finding in five lines."""
    where = f"{finding.topic}-{finding.partition}" if finding.topic is not None else "the cluster"
    offset = f" at offset {finding.offset}" if finding.offset >= 0 else ""
    lines = [
        f"{finding.anomaly} (breaks {BY_NAME[finding.anomaly].breaks}), found by {finding.check}",
        f"  expected:  {finding.expected}",
        f"  seen:      {finding.seen}",
        f"  where:     {where}{offset}",
    ]
    if left is not None:
        lines.append(f"  program:   {left.program}")
        if finding.check in DEFAULT_CHECKS:
            lines.append(f"  replay:    {replay_plan(left.plan, anomaly=finding.anomaly)}")
        else:
            lines.append(
                f"  replay:    none: `fencepost replay` does not ask the judge {finding.check}; run the "
                f"program"
            )
    return "\n".join(lines)


def made(folder: Path) -> Path:
    """The folder, which ignores itself in git: what an example leaves is not to be committed by accident."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def leave(folder: Path, name: str, plan: Plan, verdict: Verdict) -> Left:
    """Write plan and program."""
    left = Left(plan=made(folder) / f"{name}.json", program=folder / f"{name}.py")
    write_plan(left.plan, plan)
    left.program.write_text(program_of(plan, verdict.anomaly or ""), encoding="utf-8")
    return left


def program_of(plan: Plan, anomaly: str = "") -> str:
    """The plan as a program that drives the cluster step by step, and says what its trace shows. anomaly:
    what it is expected to show."""
    empty = short_plan(evolve(plan, operations=(), faults=())).rstrip()
    asked = [(operation.at_ms, 0, _operation(operation)) for operation in plan.operations]
    asked += [(fault.at_ms, 1, _fault(fault)) for fault in plan.faults]
    lines, now_ms = [], 0
    for at_ms, _, call in sorted(asked, key=lambda one: one[:2]):
        if at_ms > now_ms:
            lines.append(f"cluster.pass_time({at_ms - now_ms})")
        lines.append(call)
        now_ms = at_ms
    if plan.safety_ms > now_ms:
        lines.append(f"cluster.pass_time({plan.safety_ms - now_ms})")
    return "\n".join(
        [
            f'"""Shows {anomaly or "a run"}. Exits with 1 if it does."""',
            "",
            "from fencepost.run.simulated.simulated_cluster import SimulatedCluster",
            "from fencepost.checkers.judges import judge",
            "from fencepost.checkers.verdict import combine",
            "from fencepost.traces.plan_json import plan_from_json",
            "",
            f"PLAN = '''{empty}'''",
            "",
            "cluster = SimulatedCluster.start(plan_from_json(PLAN))",
            *lines,
            "trace = cluster.end()",
            "verdict = combine(judge(trace))",
            "for finding in verdict.findings:",
            '    print(f"{finding.anomaly}: expected {finding.expected}; seen {finding.seen}")',
            "raise SystemExit(bool(verdict.findings))",
            "",
        ]
    )


def _operation(operation: PlannedOperation) -> str:
    shown: dict[str, object] = {
        name: value
        for name, value, default in (
            ("process", operation.process, 0),
            ("acks", operation.acks, -1),
            ("records", operation.records, 1),
            ("key", operation.key, ""),
            ("argument", operation.argument, ""),
        )
        if value != default
    }
    return _call("begin", (operation.function, operation.topic, operation.partition), shown)


def _fault(fault: Fault) -> str:
    shown: dict[str, object] = {"duration_ms": fault.duration_ms}
    if fault.other:
        shown["other"] = fault.other
    if fault.parameter:
        shown["parameter"] = fault.parameter
    return _call("fault", (fault.kind, fault.target), shown)


def _call(name: str, arguments: tuple[object, ...], options: dict[str, object]) -> str:
    inside = [_literal(value) for value in arguments]
    inside += [f"{key}={_literal(value)}" for key, value in options.items()]
    return f"cluster.{name}({', '.join(inside)})"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
