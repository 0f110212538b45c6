"""The table of checks: what each is called, who judges, and what it reads.

Owns: names of checks, the default ones, and that a judge answers with a verdict whatever the trace is like.
Must not know: how any judge works, where traces are stored.

The plain checker, campaigns and mining all judge through this table, so that they cannot disagree on which
judges there are. Judges are imported on first use, because some of them compile.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.columns_read import LOG_COLUMNS, SHOWN_COLUMNS
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.errors import FencepostError
from fencepost.traces.names import unknown_name
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.checkers.events import EventTables
    from fencepost.checkers.operation_columns import OperationColumns
    from fencepost.traces.tables import Tables

LOG = "log"
"""The check of logs: the one that counts records too."""
PROFILES = ("default", "session", "strong", "content")
"""What may be asked of a log in real time (docs/spec/log-check.md); a trace's claims name one."""


EMPTY = Verdict(
    decision=Decision.ASSUMPTION_BROKEN, check=LOG, reason="the trace has no plan, no operation and no event"
)
"""Of a trace of which nothing can be said: an Ok would say something."""


def _log(trace: Trace) -> Verdict:
    from fencepost.checkers.log import judge_trace

    return EMPTY if is_empty(trace) else judge_trace(trace)


def is_empty(trace: Trace) -> bool:
    """Whether there is nothing in it."""
    return not (trace.plan or trace.operations or trace.events)


def _log_of_columns(operations: "OperationColumns", trace: Trace) -> Verdict:
    from fencepost.checkers.log import judge_columns, log_columns

    if is_empty(trace):
        return EMPTY
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

    return dict(judge_columns(operations, (trace,))).get(trace.trace_id) or _ok("transactions")


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

    return judge_table(operations, traces)


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


def _meantime(trace: Trace) -> Verdict:
    from fencepost.checkers.meantime import judge as judge_events

    return judge_events(trace)


def _meantime_of_events(events: "EventTables") -> dict[int, Verdict]:
    from fencepost.checkers.events import judge_meantime

    return judge_meantime(events)


def event_tables(tables: "Tables", traces: Sequence[Trace]) -> "EventTables":
    """What `judge_events` takes, for all checks of a row group. traces: its traces, without operations and
    events."""
    from fencepost.checkers.events import EventTables

    return EventTables(tables=tables, headers=traces)


def _ok(check: str) -> Verdict:
    return Verdict(decision=Decision.OK, check=check)


@frozen(kw_only=True)
class Check:
    """One check. judge: of one whole trace; reads_events: it looks at events. judge_columns: the same where
    the trace's operations stand in columns already, which several checks share.

    judge_table: the same over the rows of an `operations` table, for many traces at once: the verdicts that
    are not Ok, by trace id; the traces given with it lack operations and events. judge_events: the same of a
    check that reads events, over whole tables. operation_columns: the columns that these forms read. beside:
    checks that are asked whenever this one is, because it leaves to them what they decide.
    """

    name: str
    judge: Callable[[Trace], Verdict]
    reads_events: bool
    judge_columns: Callable[["OperationColumns", Trace], Verdict] | None = None
    judge_table: Callable[[pa.Table, Sequence[Trace]], dict[int, Verdict]] | None = None
    judge_events: Callable[["EventTables"], dict[int, Verdict]] | None = None
    operation_columns: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


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
            operation_columns=(*LOG_COLUMNS, "group", "generation", "producer_id", "producer_epoch"),
        ),
        Check(
            name="groups",
            judge=_groups,
            reads_events=False,
            judge_table=_groups_of_table,
            operation_columns=(*LOG_COLUMNS, "group", "member", "generation", "attempts", "argument"),
        ),
        Check(
            name="exactly_once",
            judge=_exactly_once,
            reads_events=False,
            judge_table=_exactly_once_of_table,
            operation_columns=(*LOG_COLUMNS, "group", "producer_id", "producer_epoch", "result"),
        ),
        Check(
            name="invariants",
            judge=_invariants,
            reads_events=True,
            judge_events=_invariants_of_events,
            operation_columns=SHOWN_COLUMNS,
        ),
        Check(
            name="conformance",
            judge=_conformance,
            reads_events=True,
            judge_events=_conformance_of_events,
        ),
        Check(
            name="meantime",
            judge=_meantime,
            reads_events=True,
            judge_events=_meantime_of_events,
        ),
    )
}
DEFAULT_CHECKS = tuple(CHECKS)
"""Whatever applies: a check that has nothing to look at in a trace says so at next to no cost."""


def checks_by_name(names: tuple[str, ...]) -> tuple[Check, ...]:
    """The checks called so, in that order, each once and behind those beside which it is asked. Raises
    FencepostError for a name that is none."""
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


def check_profile(profile: str | None) -> None:
    """Raises FencepostError for a profile that is none; None is each trace's own."""
    if profile is not None and profile not in PROFILES:
        raise FencepostError(
            expected=f"a profile out of {', '.join(PROFILES)}",
            seen=unknown_name(profile, PROFILES),
            where="the profile of the log check",
        )


def under_profile(trace: Trace, profile: str | None) -> Trace:
    """The trace claiming another profile of the log check; None leaves its own. Raises FencepostError."""
    check_profile(profile)
    return trace if profile is None else evolve(trace, claims=evolve(trace.claims, check=profile))


def guarded(check: Check, trace: Trace) -> Verdict:
    """The verdict of one check; a trace that the judge cannot make sense of is Assumption broken, not an
    exception."""
    return _guarded(check, lambda: check.judge(trace))


def judge(trace: Trace, checks: tuple[str, ...] = DEFAULT_CHECKS) -> tuple[Verdict, ...]:
    """One verdict per check, in the order of `checks_by_name`. Raises FencepostError only for an unknown
    check."""
    columns: list[OperationColumns] = []

    def shared() -> "OperationColumns":
        if not columns:
            from fencepost.checkers.operation_columns import columns_of_traces

            columns.append(columns_of_traces((trace,)))
        return columns[0]

    def answer(check: Check) -> Verdict:
        return check.judge(trace) if check.judge_columns is None else check.judge_columns(shared(), trace)

    return tuple(_guarded(check, partial(answer, check)) for check in checks_by_name(checks))


def _guarded(check: Check, answer: Callable[[], Verdict]) -> Verdict:
    try:
        return answer()
    except FencepostError as error:
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=check.name, reason=str(error))
