"""Steps say how a number stands to what was known, and nothing of names, offsets and times."""

import numpy as np
import pytest

from fencepost.mining.triage.event_steps import steps_of
from fencepost.mining.triage.features import features_of
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab


def state(time: int, **fields) -> Event:
    told = {"node": 1, "leader": 1, "leader_epoch": 1, "isr": (1, 2), "controller_epoch": 1, "zk_version": 0}
    return Event(time=time, name=Name.PARTITION_STATE, **lab.T0, **(told | fields))


def znode(time: int, node: int, epoch: int) -> Event:
    return Event(time=time, name=Name.BROKER_ZNODE, node=node, broker_epoch=epoch)


def trace(*events: Event, trace_id: int = 0, plan: str = "") -> Trace:
    return lab.trace(trace_id=trace_id, plan=plan, seed=0, events=events)


def words(*events: Event) -> list[str]:
    """The step of each event."""
    tables = tables_of([rows_of(trace(*events))])
    steps = steps_of(tables.events, np.array([0]))
    return [steps.words[code] if code >= 0 else "" for code in steps.code]


def features(*traces: Trace) -> list[set[str]]:
    tables = tables_of(map(rows_of, traces))
    ids = np.array([one.trace_id for one in traces])
    return [set(each) for each in features_of(tables, steps_of(tables.events, ids)).of_each(len(traces))]


BOTH = (znode(1, 1, 10), znode(2, 2, 11))

CASES = [
    ("the usual write", [state(5), state(6, leader_epoch=2)], "partition_state"),
    (
        "an empty ISR",
        [state(5), state(6, isr=(), leader=-1, leader_epoch=2)],
        "partition_state, ISR empty, ISR shrinks, no leader",
    ),
    (
        "somebody gone",
        [state(5), znode(6, 2, -1), state(7, leader_epoch=2)],
        "partition_state, ISR with somebody gone",
    ),
    (
        "an epoch that goes back",
        [state(5, leader_epoch=4), state(6, leader_epoch=3)],
        "partition_state, leader epoch goes back",
    ),
    (
        "an election from outside of the ISR",
        [state(5, isr=(1,)), state(6, leader=2, isr=(2,), leader_epoch=2)],
        "partition_state, ISR of one, ISR grows, ISR shrinks, new leader, from outside of the ISR",
    ),
    (
        "an error of the implementation, by the innermost three functions",
        [
            lab.event(
                5,
                Name.IMPLEMENTATION_ERROR,
                2,
                cause="AssertionError",
                detail='{"says":"t-0: 9","at":["impl/a.py:1 P.bounds","impl/b.py:2 L.cut","impl/c.py:3 F.run"'
                ',"impl/d.py:4 B.on"]}',
            )
        ],
        "implementation_error AssertionError (P.bounds L.cut F.run)",
    ),
    (
        "an error raised where nobody called",
        [Event(time=5, name=Name.IMPLEMENTATION_ERROR, cause="E", detail='{"at":["impl/a.py:1 P.bounds"]}')],
        "implementation_error E (P.bounds)",
    ),
    (
        "a request for an earlier process",
        [Event(time=5, name=Name.CONTROL_REQUEST_APPLIED, node=2, broker_epoch=7, cause="StopReplica")],
        "control_request_applied StopReplica, broker epoch behind",
    ),
    (
        "a cut below the high watermark",
        [
            state(4),
            lab.event(
                5,
                Name.TRUNCATED,
                2,
                offset=3,
                end_offset=9,
                high_watermark=5,
                leader=1,
                leader_epoch=1,
                cause="leader_epoch",
                **lab.T0,
            ),
        ],
        "truncated leader_epoch, below the high watermark",
    ),
    (
        "a role twice",
        [
            state(4),
            *(
                lab.event(
                    time,
                    Name.BECAME_FOLLOWER,
                    2,
                    leader=1,
                    leader_epoch=1,
                    offset=0,
                    high_watermark=0,
                    **lab.T0,
                )
                for time in (5, 6)
            ),
        ],
        "became_follower, in the same epoch again",
    ),
]


@pytest.mark.parametrize(("events", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_step_says_the_relation(events, says) -> None:
    """Rule: what is strange about a number stands in the step; what is usual does not."""
    assert words(*BOTH, *events)[-1] == says


def test_a_reason_has_no_numbers() -> None:
    """Rule: a refusal's reason is part of the step, without offsets."""
    said = words(Event(time=1, name=Name.FOLLOWER_FAILED, node=2, **lab.T0, detail="saw 17, not 18"))
    assert said == ["follower_failed (saw #, not #)"]


def test_traces_do_not_know_each_other() -> None:
    """Rule: nothing of one trace of a row group is known in the next, and the order of traces does not
    matter."""
    empty = trace(*BOTH, state(5), state(6, isr=(), leader=-1, leader_epoch=2), trace_id=4)
    usual = trace(*BOTH, state(5), trace_id=2)
    together, apart = features(empty, usual), [*features(empty), *features(usual)]
    assert together == apart == features(usual, empty)[::-1]
    assert "step: partition_state, ISR empty, ISR shrinks, no leader" in together[0] - together[1]


def test_times_names_and_brokers_do_not_matter() -> None:
    """Rule: the same story of another topic, other brokers and another time has the same features."""
    story = (znode(1, 1, 10), znode(2, 2, 11), state(5), state(9, isr=(1,), leader_epoch=1))
    renamed = []
    for event in story:
        told = {"time": event.time + 999, "node": event.node + 3}
        if event.topic:
            told |= {"topic": "orders", "partition": 7, "leader": event.leader + 3}
            told |= {"isr": tuple(one + 3 for one in event.isr)}
        renamed.append(
            Event(**{name: getattr(event, name) for name in Event.__slots__ if name != "__weakref__"} | told)
        )
    assert features(trace(*story)) == features(trace(*renamed))


def test_pairs_are_near_and_of_one_partition() -> None:
    """Rule: a pair is of one partition or broker, and within a second."""
    near = features(trace(*BOTH, state(5), state(6, isr=(1,))))[0]
    far = features(trace(*BOTH, state(5), state(5 + 2_000_000_000, isr=(1,))))[0]
    pair = "then: partition_state -> partition_state, leader epoch kept, ISR of one, ISR shrinks"
    assert pair in near and pair not in far


def test_planted_bugs_are_no_feature() -> None:
    """Rule: what a plan plants is what triage has to find out; other options are features."""
    plain = Plan(seed=0, cluster=ClusterOptions(topics=(TopicOptions(unclean_leader_election=True),)))
    planted = Plan(seed=0, cluster=ClusterOptions(topics=plain.cluster.topics, bugs=("KIP-101",)))
    found = [features(trace(plan=plan_to_json(plan)))[0] for plan in (plain, planted)]
    assert found[0] == found[1] == {"option: cluster.topics.unclean_leader_election=True"}


def test_causes_that_differ_in_numbers_only_are_one_step() -> None:
    """Rule: a trace has each feature once, and a repeated step is no pair with itself, so that a share of
    traces is at most all of them."""
    began = lab.event(4, Name.PHASE, 1, cause="heal")
    marks = [
        lab.event(5 + n, Name.MARK, 1, cause=f"broker {n} late", **where)
        for n, where in enumerate([{"topic": "t", "partition": 0}] * 3 + [{}] * 3)
    ]
    tables = tables_of([rows_of(trace(began, *marks))])
    found = features_of(tables, steps_of(tables.events, np.array([0])))
    assert len(found.words) == len(set(found.words))
    assert found.of_each(1)[0].count("step: mark broker # late") == 1
    assert not [word for word in found.words if word.startswith("then")]
