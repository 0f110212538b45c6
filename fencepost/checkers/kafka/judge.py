"""The kafka judge: what consumers, producers and transactions saw of the logs, for many traces in one call.

Owns the order of the work and one verdict per trace. The rules live in `consumers`, `producers`, `transactions` and `coverage`. What one log's
appends and single reads say of it is the log judge's; a trace that contradicts itself is told there.
"""

from collections import defaultdict
from collections.abc import Sequence

from fencepost.checkers.kafka.columns import KafkaColumns, kafka_columns_of_traces
from fencepost.checkers.kafka.consumers import consumer_findings, steps_of
from fencepost.checkers.kafka.coverage import coverage_findings
from fencepost.checkers.kafka.findings import CHECK
from fencepost.checkers.kafka.placements import placements_of
from fencepost.checkers.kafka.producers import producer_findings
from fencepost.checkers.kafka.transactions import transaction_findings
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.trace import Trace


def judge_trace(trace: Trace) -> Verdict:
    """What the kafka check says of one trace."""
    verdicts = judge_columns(kafka_columns_of_traces((trace,)))
    return verdicts[0][1] if verdicts else Verdict(decision=Decision.OK, check=CHECK)


def judge_traces(traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """As `judge_columns`, for traces in memory."""
    return judge_columns(kafka_columns_of_traces(traces))


def judge_columns(columns: KafkaColumns) -> list[tuple[int, Verdict]]:
    """(trace id, verdict) of each trace that is not Ok, in order; every other trace of the columns is Ok."""
    placements = placements_of(columns)
    rules = (
        coverage_findings(columns, placements),
        consumer_findings(columns, placements, steps_of(columns, placements)),
        producer_findings(columns, placements),
        transaction_findings(columns, placements),
    )
    findings: dict[int, list[Finding]] = defaultdict(list)
    for rule in rules:
        for log, found in rule:
            findings[int(columns.log_trace[log])].append(found)
    verdicts = []
    for index, trace in enumerate(columns.traces):
        broken = trace.claims.assumption_broken
        if broken:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=broken)
        elif index in findings:
            verdict = Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(findings[index]))
        else:
            continue
        verdicts.append((trace.trace_id, verdict))
    return verdicts
