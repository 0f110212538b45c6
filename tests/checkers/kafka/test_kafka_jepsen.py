"""The situations of Jepsen's own unit tests are judged as Jepsen does, or otherwise on purpose."""

from collections import Counter

import pytest
from jepsen_histories import SITUATIONS, Situation

from fencepost.checkers.judges import judge
from fencepost.checkers.kafka import measure_trace
from fencepost.checkers.verdict import Decision, Finding
from fencepost.traces.anomalies import BY_NAME

CHECKS = ("kafka", "transactions")


def found(situation: Situation) -> tuple[Finding, ...]:
    """Everything that is told of it."""
    return tuple(finding for verdict in judge(situation.trace, CHECKS) for finding in verdict.findings)


def named(situation: Situation) -> set[str]:
    """Jepsen's names of what was found; "invalid" where a history says too little."""
    names = {BY_NAME[finding.anomaly].jepsen or finding.anomaly for finding in found(situation)}
    weak = any(v.decision is Decision.ASSUMPTION_BROKEN for v in judge(situation.trace, CHECKS))
    return names | ({"invalid"} if weak and not names else set())


def test_there_are_45_of_them() -> None:
    """Each situation has a name of its own; 39 are as Jepsen asserts, the others differ with a reason."""
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) == 45
    differing = Counter(situation.why for situation in SITUATIONS if situation.ours is not None)
    assert "" not in differing
    assert differing.total() == 6


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_each_is_judged_as_jepsen_does(situation: Situation) -> None:
    """Of the errors that the original looks at, the same are found; where we differ, exactly what is
    documented."""
    wanted = situation.asserts if situation.ours is None else situation.ours
    names = named(situation)
    assert names & situation.asked == wanted if situation.asked else names - {"invalid"} == wanted


def test_what_was_lost_is_what_jepsen_says() -> None:
    """Not only that something was: the operations and the offset."""
    by_name = {situation.name: situation for situation in SITUATIONS}
    (lost,) = [f for f in found(by_name["lost: another value replaced it"]) if f.anomaly == "lost_write"]
    assert (lost.topic, lost.offset, lost.check) == ("x", 0, "kafka")
    (atomic,) = [
        f
        for f in found(by_name["lost: an unknown send of which another record was read"])
        if f.anomaly == "lost_write"
    ]
    assert (atomic.topic, atomic.offset) == ("y", 0)


def test_what_is_counted_instead_is_counted() -> None:
    """Skips of subscribed consumers and of interleaved transactions are no findings, but they are numbers."""
    by_name = {situation.name: situation for situation in SITUATIONS}
    stayed = measure_trace(by_name["a consumer goes back where it stayed subscribed"].trace)
    assert stayed.allowed["position_regressed"] == 1
    between = measure_trace(by_name["another's record between two of one transaction"].trace)
    assert between.allowed["int_send_skip"] == 1


def test_unseen_records_are_counted_over_time() -> None:
    """Two that nobody has read, then one, then none."""
    read_on = next(s for s in SITUATIONS if s.name == "records that are read one after the other")
    (unseen,) = measure_trace(read_on.trace).unseen
    assert unseen.counts.tolist()[-3:] == [2, 1, 0]


def test_the_lag_is_the_lower_end_of_ours() -> None:
    """Polls that found nothing new began 0, 1 and 5 after what they missed; the last one, which read
    on, 3."""
    lagging = next(s for s in SITUATIONS if s.name == "what polls lag behind")
    assert measure_trace(lagging.trace).lags.at_least_ns.tolist() == [0, 1, 5, 3]
