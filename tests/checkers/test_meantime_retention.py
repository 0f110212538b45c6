"""Records stay for retention.ms, and are gone soon after it."""

import pytest

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClientOptions, ClusterOptions, NetworkOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SECOND = 1_000_000_000
T0 = {"node": 1, "topic": "t", "partition": 0}


def found(*events: Event, **topic: object) -> set[str]:
    """What is found of a topic that keeps its records for ten seconds, by default."""
    options = TopicOptions(**{"retention_ms": 10_000, **topic})
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(topics=(options,), log_retention_check_interval_ms=1_000),
        network=NetworkOptions(latency_max_us=1_000),
        client=ClientOptions(request_timeout_ms=1_000),
    )
    trace = Trace(trace_id=1, plan=plan_to_json(plan), seed=1, software_version="0", events=events)
    return {one.anomaly for one in judge(trace).findings} & {"early_deletion", "late_deletion"}


def appended(at: int, offset: int, *values: int, node: int = 1) -> Event:
    on = {**T0, "node": node}
    return Event(time=at * SECOND, name=Name.APPENDED, offset=offset, values=values, cause="leader", **on)


def committed(at: int, high_watermark: int) -> Event:
    return Event(time=at * SECOND, name=Name.HIGH_WATERMARK, high_watermark=high_watermark, **T0)


def deleted(at: int, start: int, cause: str = "retention") -> Event:
    return Event(time=at * SECOND, name=Name.LOG_START, log_start_offset=start, cause=cause, **T0)


def end(at: int) -> Event:
    return Event(time=at * SECOND, name=Name.PHASE, cause="end")


LOG = (appended(1, 0, 7), appended(3, 1, 8), committed(3, 2))
FAULT = Event(time=12 * SECOND, name=Name.FAULT_BEGAN, node=1, cause="pause", detail='{"fault":1}')
JUMP = Event(time=0, name=Name.FAULT_BEGAN, node=1, cause="clock_jump", detail='{"fault":1}')
CHANGED = Event(time=4 * SECOND, name=Name.TOPIC_CONFIGURED, node=1, topic="t", detail="{}")


@pytest.mark.parametrize(
    ("then", "topic", "anomalies"),
    [
        ((deleted(12, 1),), {}, set()),
        ((deleted(9, 1),), {}, {"early_deletion"}),
        ((deleted(12, 2),), {}, set()),  # a client may have kept it for a second
        ((deleted(11, 2),), {}, {"early_deletion"}),
        ((deleted(9, 1, "delete_records"),), {}, set()),
        ((deleted(9, 1),), {"retention_bytes": 100}, set()),
        ((deleted(9, 1),), {"cleanup_policy": "compact"}, {"early_deletion"}),
        ((deleted(900, 1),), {"retention_ms": -1}, {"early_deletion"}),
        ((CHANGED, deleted(9, 1)), {}, set()),
        ((JUMP, *LOG, deleted(9, 1)), {}, set()),
        ((deleted(15, 2), end(40)), {}, set()),
        ((end(40),), {}, {"late_deletion"}),
        ((deleted(15, 1), end(40)), {}, {"late_deletion"}),
        ((end(17),), {}, set()),
        ((end(40),), {"retention_ms": -1}, set()),
        ((FAULT, end(40)), {}, set()),
        ((appended(30, 2, 9), end(40)), {}, {"late_deletion"}),  # it was due before that came
        ((appended(12, 2, 9), end(40)), {}, set()),  # not committed yet
    ],
)
def test_records_stay_as_long_as_they_shall(
    then: tuple[Event, ...], topic: dict[str, object], anomalies: set[str]
) -> None:
    """Rule (RETENTION): what is younger than retention.ms stays; when all is older, it is gone two checks
    later. A fault, a wrong clock, another bound or another setting excuses."""
    assert found(*LOG, *then, **topic) == anomalies


def test_a_followers_copy_is_as_old_as_the_record() -> None:
    """Rule (RETENTION): the age counts from the first append anywhere."""
    copied = (appended(1, 0, 7, node=2), appended(11, 0, 7), committed(11, 1), deleted(13, 1))
    assert found(*copied) == set()
