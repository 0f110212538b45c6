"""Records stay for retention.ms, and are gone soon after it."""

import random

import pytest
from attrs import evolve

from fencepost.checkers.meantime import judge
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClientOptions, ClusterOptions, NetworkOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from tests.checkers.retention_by_definition import is_early, is_late

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


def test_a_record_that_only_followers_were_seen_to_append_is_of_any_age() -> None:
    """Rule (RETENTION): a leader that crashes within an append records nothing of it; the record is in its
    log when it is back. A follower's copy then says when it was copied, not how old it is."""
    copy = evolve(appended(30, 0, 7), cause="follower")
    assert found(copy, committed(30, 1), deleted(31, 1)) == set()
    assert found(appended(30, 0, 7, node=2), copy, committed(30, 1), deleted(31, 1)) == {"early_deletion"}


@pytest.mark.parametrize(("ended", "anomalies"), [(None, set()), (30, set()), (20, {"early_deletion"})])
def test_a_record_that_waited_at_a_disturbed_leader_is_of_any_age(
    ended: int | None, anomalies: set[str]
) -> None:
    """Rule (RETENTION): a pause, a slow link or a slow disk keeps requests; their records are older than the
    append."""
    over = () if ended is None else (evolve(FAULT, time=ended * SECOND, name=Name.FAULT_ENDED),)
    assert found(FAULT, *over, appended(30, 0, 7), committed(30, 1), deleted(31, 1)) == anomalies


def test_a_copied_batch_without_records_is_of_any_age() -> None:
    """Rule (RETENTION): compaction leaves a producer's last batch empty. A follower's copy says when it was
    copied; a leader's own, a marker, when it was made."""
    empty = evolve(appended(30, 0), cause="follower", end_offset=1)
    assert found(empty, committed(30, 1), deleted(31, 1), cleanup_policy="compact,delete") == set()
    own = evolve(empty, cause="leader")
    assert found(own, committed(30, 1), deleted(31, 1)) == {"early_deletion"}


@pytest.mark.parametrize(("below", "anomalies"), [(2, set()), (1, {"early_deletion"})])
def test_a_segment_is_as_old_as_what_compaction_left(below: int, anomalies: set[str]) -> None:
    """Rule (RETENTION): the youngest records may be gone, so that nothing says how old the rest is. What no
    compaction reached counts."""
    cleaned = Event(time=5 * SECOND, name=Name.COMPACTED, offset=below, **T0)
    assert found(*LOG, cleaned, deleted(9, 2), cleanup_policy="compact,delete") == anomalies


def test_a_followers_copy_is_as_old_as_the_record() -> None:
    """Rule (RETENTION): the age counts from the first append anywhere."""
    copied = (appended(1, 0, 7, node=2), appended(11, 0, 7), committed(11, 1), deleted(13, 1))
    assert found(*copied) == set()


def test_a_retry_is_younger_than_the_first_attempt() -> None:
    """Rule (RETENTION): each attempt has a timestamp of its own, so that a copy of a record is in time for
    as long as the last append of it says."""
    again = (appended(1, 0, 7), appended(9, 1, 7), committed(9, 2))
    assert found(*again, end(23)) == set()
    assert found(*again, end(40)) == {"late_deletion"}


def story(seed: int, kinds: str = "aaaahhhctrmfbsgj") -> tuple[Event, ...]:
    """Two brokers, and anything that a log or a broker can meet, in any order. kinds: what happens, by its
    share."""
    draw = random.Random(seed)
    events: list[Event] = []
    ends, active, at = {1: 0, 2: 0}, {1: 0, 2: 0}, 0
    for number in range(draw.randint(5, 30)):
        at += draw.choice((1, 1, 2, 8, 25)) * SECOND
        node = draw.choice((1, 1, 2))
        on = {"time": at, "node": node, "topic": "t", "partition": 0}
        kind = draw.choice(kinds if number > 2 else "aah")
        end = ends[node]
        if kind == "a":
            count = draw.randint(1, 3)
            values = tuple(range(end, end + count))
            cause = draw.choice(("leader", "leader", "leader", "follower"))
            events.append(Event(name=Name.APPENDED, offset=end, values=values, cause=cause, **on))
            ends[node] = end + count
        elif kind == "h":
            events.append(
                Event(name=Name.HIGH_WATERMARK, high_watermark=draw.randint(max(0, end - 1), end), **on)
            )
        elif kind == "c":
            start = draw.randint(0, end)
            cause = draw.choice(("delete_records", "retention"))
            events.append(Event(name=Name.LOG_START, log_start_offset=start, cause=cause, **on))
        elif kind == "k":
            events.append(Event(name=Name.COMPACTED, offset=draw.randint(0, end), **on))
        elif kind == "t":
            ends[node] = draw.randint(0, end)
            events.append(Event(name=Name.TRUNCATED, offset=ends[node], **on))
        elif kind == "r":
            ends[node] = draw.randint(0, end)
            kept = {"offset": ends[node], "high_watermark": ends[node], "log_start_offset": 0}
            events.append(Event(name=Name.LOG_RECOVERED, **kept, **on))
        elif kind == "m":
            ends[node] = 0
            events.append(Event(name=Name.MARK, cause="replica_deleted", **on))
        elif kind == "f":
            ended = active[node] and draw.random() < 0.7
            active[node] = 0 if ended else number
            name = Name.FAULT_ENDED if ended else Name.FAULT_BEGAN
            events.append(Event(time=at, name=name, node=node, cause="pause", detail=f'{{"fault":{node}'))
        elif kind in "bs":
            name = Name.BROKER_STARTED if kind == "b" else Name.BROKER_STATE
            events.append(Event(time=at, name=name, node=node, cause=draw.choice(("NotRunning", "Starting"))))
        elif kind == "g" and draw.random() < 0.2:
            events.append(Event(time=at, name=Name.TOPIC_CONFIGURED, node=node, topic="t", detail="{}"))
        elif kind == "j" and draw.random() < 0.2:
            events.append(Event(time=at, name=Name.FAULT_BEGAN, node=2, cause="clock_jump", detail="{"))
    return (*events, end_of(at + draw.choice((1, 40)) * SECOND))


def end_of(at: int) -> Event:
    """The end of a run."""
    return Event(time=at, name=Name.PHASE, cause="end")


def test_what_is_late_is_late_by_definition() -> None:
    """Rule (STYLE 15): one rule, and its naive twin: a log that held too much at any moment is found,
    whatever happened to it next."""
    verdicts = []
    for seed in range(400):
        events = story(seed)
        expected = is_late(events, "t", 10 * SECOND)
        assert ("late_deletion" in found(*events)) is expected, (seed, events)
        verdicts.append(expected)
    assert 40 < sum(verdicts) < 360


def test_what_is_early_is_early_by_definition() -> None:
    """Rule (STYLE 15): the same of records that go too soon. A client may keep a record for a second and two
    messages."""
    verdicts = []
    for seed in range(400):
        events = story(seed, "aaaaaaaahccccccctrmkgffbs")
        expected = is_early(events, "t", 10 * SECOND, SECOND + 2 * 1_000_000)
        assert ("early_deletion" in found(*events)) is expected, (seed, events)
        verdicts.append(expected)
    assert 15 < sum(verdicts) < 385
