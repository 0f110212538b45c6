"""The batch form of the log check: all logs of many traces in one call.

Owns the order of the work: contradictions, which logs have a witness (`witness`), which of the others the
rules convict, each of these alone, one verdict per trace. The rules are in `content`, `chain`, `holes` and
`session`. They are asked about many logs at once (`stacked`), then about each convicted log.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from fencepost.checkers.log.accounts import weaknesses
from fencepost.checkers.log.appends_and_reads import LogColumns, log_columns
from fencepost.checkers.log.chain import chain_findings
from fencepost.checkers.log.content import content_findings
from fencepost.checkers.log.evident import evidently_legal
from fencepost.checkers.log.holes import hole_finding
from fencepost.checkers.log.log_rules import PROFILES, Rules, rules_of
from fencepost.checkers.log.one_log import CHECK, group_of, value_sent_twice
from fencepost.checkers.log.session import session_findings
from fencepost.checkers.log.side_chains import side_findings
from fencepost.checkers.log.stacked import suspects
from fencepost.checkers.log.witness import explained
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.trace import Trace


def judge_trace(trace: Trace, *, profile: str | None = None, weak_is_ok: bool = False) -> Verdict:
    """The verdict of the log check on one trace.

    Args:
        trace: the trace.
        profile: a profile that replaces the one in its claims.
        weak_is_ok: as for `judge_columns`.

    Returns:
        the verdict.
    """
    if profile is None and evidently_legal(trace):
        return Verdict(decision=Decision.OK, check=CHECK)
    verdicts = judge_columns(log_columns(columns_of_traces((trace,))), profile=profile, weak_is_ok=weak_is_ok)
    return verdicts[0][1] if verdicts else Verdict(decision=Decision.OK, check=CHECK)


def judge_traces(
    traces: Sequence[Trace], *, profile: str | None = None, weak_is_ok: bool = False
) -> list[tuple[int, Verdict]]:
    """As `judge_columns`, for traces in memory."""
    return judge_columns(log_columns(columns_of_traces(traces)), profile=profile, weak_is_ok=weak_is_ok)


def judge_columns(
    columns: LogColumns, *, profile: str | None = None, weak_is_ok: bool = False
) -> list[tuple[int, Verdict]]:
    """(trace id, verdict) of each trace that is not Ok, in order; all other traces of the columns are Ok.

    weak_is_ok: only look for contradictions, not whether the history was strong enough (accounts).
    """
    rules = rules_of(columns, profile)
    broken = dict(columns.broken)
    for index, trace in enumerate(columns.traces):
        if trace.claims.assumption_broken:
            broken[index] = trace.claims.assumption_broken
        elif profile is None and trace.claims.check not in PROFILES:
            broken[index] = f"the claims name a profile that is none: {trace.claims.check}"
    doubtful = dict(columns.doubtful)
    open_: dict[int, list[str]] = defaultdict(list)
    findings: dict[int, list[Finding]] = defaultdict(list)
    unexplained = np.flatnonzero(~np.isin(columns.trace, list(broken)) & ~explained(columns, rules))
    for g in suspects(columns, rules, unexplained).tolist():
        trace_index = int(columns.trace[g])
        found, undecided, contradiction = examine(columns, rules, g)
        if contradiction:
            doubtful.setdefault(trace_index, contradiction)
        if undecided:
            open_[trace_index].append(undecided)
        findings[trace_index].extend(found)
    for g, finding in session_findings(columns, rules):
        trace_index = int(columns.trace[g])
        if trace_index in broken:
            continue
        known = {(f.anomaly, f.topic, f.partition) for f in findings[trace_index]}
        if (finding.anomaly, finding.topic, finding.partition) not in known:
            findings[trace_index].append(finding)
    weak = {} if weak_is_ok else weaknesses(columns, rules)
    return _verdicts(columns, doubtful | broken, findings, open_, weak)


def examine(columns: LogColumns, rules: Rules, g: int) -> tuple[list[Finding], str, str]:
    """Check one log with the exact rules.

    Args:
        columns: the logs.
        rules: the rules that apply to each group.
        g: the group.

    Returns:
        the findings, what could not be decided, and how the log contradicts its trace ("" if nothing). A
        log in which a value was sent twice is judged as one whose values repeat.
    """
    group = group_of(columns, rules, g)
    contradiction = value_sent_twice(group)
    if contradiction:
        group = evolve(group, unique=False)
    findings = list(content_findings(group))
    if group.timed:
        findings += chain_findings(group)
    findings += side_findings(group)
    hole, undecided = hole_finding(group)
    if hole is not None:
        findings.append(hole)
    return findings, undecided, contradiction


def _verdicts(
    columns: LogColumns,
    broken: dict[int, str],
    findings: dict[int, list[Finding]],
    open_: dict[int, list[str]],
    weak: dict[int, str],
) -> list[tuple[int, Verdict]]:
    verdicts = []
    for index in sorted({*broken, *findings, *open_, *weak}):
        if findings[index]:
            found, reason = tuple(findings[index]), broken.get(index, "")
            verdict = Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=found, reason=reason)
        elif index in broken:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=broken[index])
        elif index in weak:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=weak[index])
        elif open_[index]:
            verdict = Verdict(decision=Decision.UNKNOWN, check=CHECK, reason="; ".join(open_[index]))
        else:
            continue
        verdicts.append((columns.traces[index].trace_id, verdict))
    return verdicts
