"""The table of checks: name, function, and the data that each check reads.

Owns the names of the checks, the default checks, and that every check returns a verdict for every trace. Must
not know how a check works, or where traces are stored.

The plain checker, campaigns and mining all use this table, so they use the same checks. A check is imported
at its first use, because some checks compile kernels.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.columns_read import LIVENESS_COLUMNS, LOG_COLUMNS, SHOWN_COLUMNS
from fencepost.checkers.unjudged import data_of, with_lines
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.model.lives import Lived, with_lives
from fencepost.record.claimed.profiles import check_profile
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.trace import Trace, plain

if TYPE_CHECKING:
    from fencepost.checkers.events import EventTables
    from fencepost.checkers.operation_columns import OperationColumns
    from fencepost.traces.tables import Tables

LOG = "log"
"""The log check, which also counts records."""


def _log(trace: Trace) -> Verdict:
    from fencepost.checkers.log import judge_trace

    return judge_trace(trace)


def _log_of_columns(operations: "OperationColumns", trace: Trace) -> Verdict:
    from fencepost.checkers.log import judge_columns, log_columns

    return dict(judge_columns(log_columns(operations))).get(trace.trace_id) or _ok("log")


def _log_of_table(operations: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    from fencepost.checkers.log import judge_columns, log_columns
    from fencepost.checkers.operation_columns import columns_of_table

    return dict(judge_columns(log_columns(columns_of_table(operations, traces))))


def _kafka(trace: Trace) -> Verdict:
    from fencepost.checkers.kafka import judge_trace

    return judge_trace(trace)


def _kafka_of_columns(operations: "OperationColumns", trace: Trace) -> Verdict:
    from fencepost.checkers.kafka import judge_operations

    return dict(judge_operations(operations, (trace,))).get(trace.trace_id) or _ok("kafka")


def _kafka_of_table(operations: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    from fencepost.checkers.kafka import judge_table

    return dict(judge_table(operations, traces))


def _transactions(trace: Trace) -> Verdict:
    from fencepost.checkers.transactions import judge_trace

    return judge_trace(trace)


def _transactions_of_columns(operations: "OperationColumns", trace: Trace) -> Verdict:
    from fencepost.checkers.transactions import judge_columns

    return dict(judge_columns(operations)).get(trace.trace_id) or _ok("transactions")


def _transactions_of_table(operations: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    from fencepost.checkers.transactions import judge_table

    return dict(judge_table(operations, traces))


def _groups(trace: Trace) -> Verdict:
    from fencepost.checkers.groups import judge_trace

    return judge_trace(trace)


def _groups_of_table(operations: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    from fencepost.checkers.groups import judge_table

    return judge_table(operations, traces)


def _exactly_once(trace: Trace) -> Verdict:
    from fencepost.checkers.exactly_once import judge_trace

    return judge_trace(trace)


def _exactly_once_of_table(operations: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    from fencepost.checkers.exactly_once import judge_table

    return dict(judge_table(operations, traces))


def _exactly_once_of_columns(operations: "OperationColumns", trace: Trace) -> Verdict:
    from fencepost.checkers.exactly_once import judge_columns

    return dict(judge_columns(operations, (trace,))).get(trace.trace_id) or _ok("exactly_once")


def _invariants(trace: Trace) -> Verdict:
    from fencepost.checkers.invariants import judge as judge_events

    return judge_events(trace)


def _invariants_of_events(events: "EventTables") -> dict[int, Verdict]:
    from fencepost.checkers.events import judge_invariants

    return judge_invariants(events)


def _conformance(trace: Trace) -> Verdict:
    from fencepost.checkers.conformance import judge as judge_events

    return judge_events(trace)


def _conformance_of_events(events: "EventTables") -> dict[int, Verdict]:
    from fencepost.checkers.events import judge_conformance

    return judge_conformance(events)


def _liveness(trace: Trace) -> Verdict:
    from fencepost.checkers.liveness import judge as judge_trace

    return judge_trace(trace)


def _liveness_of_events(events: "EventTables") -> dict[int, Verdict]:
    from fencepost.checkers.events import judge_liveness

    return judge_liveness(events)


def _application(trace: Trace) -> Verdict:
    from fencepost.checkers.application.recorded import judge as judge_trace

    return judge_trace(trace)


def _application_of_events(events: "EventTables") -> dict[int, Verdict]:
    from fencepost.checkers.events import judge_application

    return judge_application(events)


def event_tables(tables: "Tables", traces: Sequence[Trace]) -> "EventTables":
    """The argument of `judge_events`, for all checks of a row group.

    Args:
        tables: the tables of the row group.
        traces: its traces, without operations and events.

    Returns:
        the argument.
    """
    from fencepost.checkers.events import EventTables

    return EventTables(tables=tables, headers=traces)


def _ok(check: str) -> Verdict:
    return Verdict(decision=Decision.OK, check=check)


@frozen(kw_only=True)
class Check:
    """One check."""

    # The name of the check.
    name: str
    # Checks one whole trace.
    judge: Callable[[Trace], Verdict]
    # Whether the check reads protocol events.
    reads_events: bool
    # As `judge`, on operations that are already columns. Several checks share these columns.
    judge_columns: Callable[["OperationColumns", Trace], Verdict] | None = None
    # As `judge`, over rows of an `operations` table, for many traces at once. It returns the verdicts that
    # are not Ok, by trace id. The traces passed to it have no operations and no events.
    judge_table: Callable[[pa.Table, Sequence[Trace]], dict[int, Verdict]] | None = None
    # As `judge_table`, for a check that reads events, over whole tables.
    judge_events: Callable[["EventTables"], dict[int, Verdict]] | None = None
    # The columns that the table forms read.
    operation_columns: tuple[str, ...] = ()
    # Checks that always run together with this one, because it relies on them for some decisions.
    beside: tuple[str, ...] = ()
    # Whether a topic that was deleted and created again has another name for it (model/lives). Not for one
    # that gives the names itself, in events only, because each operation is to stay one operation.
    by_lives: bool = True


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(
            name=LOG,
            judge=_log,
            reads_events=False,
            judge_columns=_log_of_columns,
            judge_table=_log_of_table,
            operation_columns=LOG_COLUMNS,
        ),
        Check(
            name="kafka",
            judge=_kafka,
            reads_events=False,
            judge_columns=_kafka_of_columns,
            judge_table=_kafka_of_table,
            operation_columns=(*LOG_COLUMNS, "group", "generation", "producer_id", "producer_epoch"),
            beside=("log",),
        ),
        Check(
            name="transactions",
            judge=_transactions,
            reads_events=False,
            judge_columns=_transactions_of_columns,
            judge_table=_transactions_of_table,
            operation_columns=LOG_COLUMNS,
        ),
        Check(
            name="groups",
            judge=_groups,
            reads_events=False,
            judge_table=_groups_of_table,
            operation_columns=(
                *LOG_COLUMNS,
                "group",
                "member",
                "generation",
                "attempts",
                "argument",
                "result",
            ),
        ),
        Check(
            name="exactly_once",
            judge=_exactly_once,
            reads_events=False,
            judge_columns=_exactly_once_of_columns,
            judge_table=_exactly_once_of_table,
            operation_columns=(*LOG_COLUMNS, "producer_id", "producer_epoch", "result"),
        ),
        Check(
            name="invariants",
            judge=_invariants,
            reads_events=True,
            judge_events=_invariants_of_events,
            operation_columns=SHOWN_COLUMNS,
        ),
        Check(name="conformance", judge=_conformance, reads_events=True, judge_events=_conformance_of_events),
        Check(
            name="liveness",
            judge=_liveness,
            reads_events=True,
            judge_events=_liveness_of_events,
            by_lives=False,
            operation_columns=LIVENESS_COLUMNS,
        ),
        Check(
            name="application",
            judge=_application,
            reads_events=True,
            judge_events=_application_of_events,
            by_lives=False,
        ),
    )
}
DEFAULT_CHECKS = tuple(CHECKS)
"""All checks. A check with nothing to look at in a trace returns quickly."""


def checks_by_name(names: tuple[str, ...]) -> tuple[Check, ...]:
    """The checks with these names, in this order and without duplicates. Each comes after the checks that it
    requires (`beside`). Raises FencepostError for an unknown name."""
    for name in names:
        if name not in CHECKS:
            raise FencepostError(
                expected=f"checks out of {', '.join(CHECKS)}",
                seen=unknown_name(name, CHECKS),
                where="the list of checks",
            )
    return tuple(
        CHECKS[name]
        for name in dict.fromkeys(other for name in names for other in (*CHECKS[name].beside, name))
    )


def under_profile(trace: Trace, profile: str | None) -> Trace:
    """The trace with another profile of the log check; None keeps its own. Raises FencepostError."""
    check_profile(profile)
    return trace if profile is None else evolve(trace, claims=evolve(trace.claims, check=profile))


def guarded(check: Check, trace: Trace) -> Verdict:
    """The verdict of one check. If the check cannot interpret the trace, the verdict is Assumption broken,
    not an exception."""
    return _guarded(check, lambda: _of_lives(check, trace, with_lives(trace)))


def _of_lives(check: Check, trace: Trace, lived: Lived) -> Verdict:
    return named_back(check.judge(lived.trace), lived) if check.by_lives else check.judge(trace)


def named_back(verdict: Verdict, lived: Lived) -> Verdict:
    """The verdict with the names and operations of the trace itself."""
    if not lived.changed:
        return verdict
    return evolve(verdict, findings=tuple(_named_back(finding, lived) for finding in verdict.findings))


def _named_back(finding: Finding, lived: Lived) -> Finding:
    operations, excluded = (
        tuple(dict.fromkeys(map(lived.stands_for, filter(lived.is_known, some))))
        for some in (finding.operations, finding.excluded)
    )
    topic = None if finding.topic is None else plain(finding.topic)
    return evolve(finding, topic=topic, operations=operations, excluded=excluded)


def judge(trace: Trace, checks: tuple[str, ...] = DEFAULT_CHECKS) -> tuple[Verdict, ...]:
    """Run several checks on one trace.

    Args:
        trace: the trace.
        checks: names of checks.

    Returns:
        one verdict per check, in the order of `checks_by_name`.

    Raises:
        FencepostError: only for an unknown check.
    """
    columns: list[OperationColumns] = []
    lived = with_lives(trace)

    def shared() -> "OperationColumns":
        if not columns:
            from fencepost.checkers.operation_columns import columns_of_traces

            columns.append(columns_of_traces((lived.trace,)))
        return columns[0]

    def answer(check: Check) -> Verdict:
        if check.judge_columns is None:
            return _of_lives(check, trace, lived)
        return named_back(check.judge_columns(shared(), lived.trace), lived)

    verdicts = tuple(_guarded(check, partial(answer, check)) for check in checks_by_name(checks))
    return with_lines(verdicts, data_of(trace))


def load() -> None:
    """Load what the default checks need, so that the first verdict does not (processes/forking.py)."""
    judge(Trace(trace_id=0, plan="of nothing", seed=0, software_version=""))


def _guarded(check: Check, answer: Callable[[], Verdict]) -> Verdict:
    try:
        return answer()
    except FencepostError as error:
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=check.name, reason=str(error))
