"""Records stay for retention.ms, and are gone soon after it."""

from random import Random

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


RETENTION_NS, KEPT_NS, LATE_NS = 10 * SECOND, SECOND + 2_000_000, 5 * SECOND
"""retention.ms; how long a client keeps a record: its time-out and two messages; two checks and 3 s."""


def by_definition(events: list[Event]) -> set[str]:
    """What is wrong, with the whole log written down anew before each event: an offset has a value, and its
    age is that of the first append of this value anywhere."""
    wrong = set()
    for number, event in enumerate(events):
        ages: dict[int, int] = {}
        first: dict[int, int] = {}
        start = high_watermark = changed = well = 0
        broken = False
        for before in events[:number]:
            if before.name is Name.APPENDED:
                for value in before.values:
                    first.setdefault(value, before.time)
            if before.node != 1:
                continue
            if before.name in (Name.APPENDED, Name.TRUNCATED):
                ages = {offset: age for offset, age in ages.items() if offset < before.offset}
                for place, value in enumerate(before.values):
                    ages[before.offset + place] = first[value]
                changed = before.time
                if before.name is Name.TRUNCATED:
                    high_watermark = min(high_watermark, before.offset)
            elif before.name is Name.HIGH_WATERMARK:
                if before.high_watermark != high_watermark:
                    changed = before.time
                high_watermark = before.high_watermark
            elif before.name is Name.LOG_START:
                start, changed = before.log_start_offset, before.time
                ages = {offset: age for offset, age in ages.items() if offset >= start}
            else:
                broken, well = before.name is Name.FAULT_BEGAN, before.time
        if event.name is Name.LOG_START:
            gone = [age for offset, age in ages.items() if offset < event.log_start_offset]
            if gone and event.time - max(gone) + KEPT_NS < RETENTION_NS:
                wrong.add("early_deletion")
        if ages and not broken and high_watermark > max(ages):
            due = max(max(ages.values()) + RETENTION_NS, changed, well) + LATE_NS
            if event.time > due:
                wrong.add("late_deletion")
    return wrong


def test_the_twin_agrees() -> None:
    """Rule (STYLE 15): a form that writes the whole log down before each event says the same."""
    counts = {"early_deletion": 0, "late_deletion": 0}
    for seed in range(200):
        random = Random(seed)
        events: list[Event] = []
        ends, start, value = [0], 0, 0
        for at in sorted(random.sample(range(1, 60), 9)):
            kind = random.choice(("append", "append", "append", "delete", "cut", "fault", "copy"))
            if kind in ("append", "copy"):
                values = tuple(range(value, value + random.randrange(1, 3)))
                value = values[-1] + 1
                if kind == "copy":  # the leader had it before
                    earlier = max(0, at - random.randrange(3))
                    events.append(appended(earlier, ends[-1], *values, node=2))
                events.append(appended(at, ends[-1], *values))
                ends.append(ends[-1] + len(values))
                if random.random() < 0.8:
                    events.append(committed(at, ends[-1]))
            elif kind == "delete" and (left := [one for one in ends if one > start]):
                start = random.choice(left)
                events.append(deleted(at, start))
            elif kind == "cut" and (left := [one for one in ends if one >= start]):
                cut_to = random.choice(left)
                ends = [one for one in ends if one <= cut_to]
                events.append(Event(time=at * SECOND, name=Name.TRUNCATED, offset=ends[-1], **T0))
            elif kind == "fault":
                events.append(Event(**{**_fields(FAULT), "time": at * SECOND}))
                over = {"time": (at + 2) * SECOND, "name": Name.FAULT_ENDED}
                events.append(Event(**{**_fields(FAULT), **over}))
        events.sort(key=lambda event: event.time)
        events.append(end(90))
        expected, seen = by_definition(events), found(*events)
        assert seen == expected, seed
        for anomaly in expected:
            counts[anomaly] += 1
    assert all(20 < count < 198 for count in counts.values()), counts


def _fields(event: Event) -> dict[str, object]:
    return {"name": event.name, "node": event.node, "cause": event.cause, "detail": event.detail}
