"""The kafka check agrees with its definitions, read literally, on random histories."""

from collections import Counter

from attrs import evolve
from kafka_naive import Naive
from kafka_random import random_history

from fencepost.checkers.kafka import judge_traces
from fencepost.traces.operations import Function
from fencepost.traces.trace import Trace
from tests.checkers.wild_histories import wild

STACKED = 50
OFTEN = (
    ("transactions", "consumers"),
    ("consumers", "compaction", "retention"),
    ("transactions", "idempotence", "loss"),
    ("consumers", "groups"),
)


def history(seed: int) -> Trace:
    """Of even seeds a narrow one, of odd seeds one in which everything happens at once."""
    return random_history(seed) if seed % 2 == 0 else wild(seed, OFTEN[seed // 2 % len(OFTEN)])


def asked(trace: Trace) -> bool:
    """Whether the check has something to say: its assumptions hold, and values that are called unique are."""
    values = [
        (r.topic, r.partition, r.value)
        for o in trace.operations
        if o.function is Function.APPEND
        for r in o.records
    ]
    kept = not trace.unique_values or len(set(values)) == len(values)
    return kept and not trace.claims.assumption_broken


def sweep(seed: int, count: int) -> tuple[list[tuple[int, set, set]], int, Counter]:
    """Histories from `seed` on, STACKED at a time in one call: (seed, what the check says, what the
    definitions say) where they differ, how many are illegal, and how often each anomaly was found."""
    mismatches, illegal, found = [], 0, Counter()
    for start in range(seed, seed + count, STACKED):
        traces = [history(number) for number in range(start, min(start + STACKED, seed + count))]
        traces = [evolve(trace, trace_id=start + nth) for nth, trace in enumerate(traces)]
        verdicts = dict(judge_traces(traces))
        for trace in filter(asked, traces):
            verdict = verdicts.get(trace.trace_id)
            said = {(f.anomaly, f.topic, f.partition) for f in verdict.findings} if verdict else set()
            naive = Naive(trace).anomalies()
            found.update(name for name, _, _ in naive)
            illegal += bool(naive)
            if said != naive:
                mismatches.append((trace.trace_id, said, naive))
    return mismatches, illegal, found


def test_the_check_is_its_definitions() -> None:
    """On random histories, stacked, the check finds in each partition exactly the anomalies that the
    definitions name, and every kind occurs."""
    mismatches, _, found = sweep(0, 800)
    assert mismatches == []
    assert set(found) == {
        *("lost_write", "unseen", "poll_skip", "position_regressed", "skipped_offset", "unordered_read"),
        *("nonmonotonic_send", "precommitted_read", "int_nonmonotonic_send"),
    }
