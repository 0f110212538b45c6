"""The kafka check agrees with its definitions, read literally, on random histories."""

from collections import Counter

from kafka_naive import Naive
from kafka_random import random_history

from fencepost.checkers.kafka import judge_traces

STACKED = 50


def sweep(seed: int, count: int) -> tuple[list[tuple[int, set, set]], Counter]:
    """Histories from `seed` on, STACKED at a time in one call: (seed, what the check says, what the definitions say) where they differ, and how often
    each anomaly was found."""
    mismatches, found = [], Counter()
    for start in range(seed, seed + count, STACKED):
        traces = [random_history(number) for number in range(start, min(start + STACKED, seed + count))]
        verdicts = dict(judge_traces(traces))
        for trace in traces:
            verdict = verdicts.get(trace.trace_id)
            said = {(f.anomaly, f.partition) for f in verdict.findings} if verdict else set()
            naive = Naive(trace).anomalies()
            found.update(name for name, _ in naive)
            if said != naive:
                mismatches.append((trace.trace_id, said, naive))
    return mismatches, found


def test_the_check_is_its_definitions() -> None:
    """On random histories, stacked, the check finds in each partition exactly the anomalies that the definitions name, and every kind occurs."""
    mismatches, found = sweep(0, 800)
    assert mismatches == []
    assert set(found) == {
        *("lost_write", "unseen", "poll_skip", "position_regressed", "skipped_offset", "unordered_read"),
        *("nonmonotonic_send", "precommitted_read", "int_nonmonotonic_send"),
    }
