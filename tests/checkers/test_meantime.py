"""The meantime: each rule convicts what has no reason, and lets pass what has one; the form over tables says
the same."""

import pytest
from attrs import evolve

from fencepost.checkers.events import judge_meantime
from fencepost.checkers.meantime import judge
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    DiskOptions,
    NetworkOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from tests.checkers.event_tables import row_group

SECOND = 1_000_000_000
T0 = {"topic": "t", "partition": 0}


def made(*events: Event, **options: object) -> Trace:
    """A trace of these events on three brokers; a session lasts a second, a lag two."""
    cluster = ClusterOptions(
        topics=(TopicOptions(unclean_leader_election=bool(options.pop("unclean", False))),),
        zookeeper_session_timeout_ms=1_000,
        replica_lag_time_max_ms=2_000,
    )
    more = {name: options.pop(name) for name in ("consumer", "disk", "operations") if name in options}
    network = NetworkOptions(**{"latency_max_us": 1_000} | options)  # type: ignore[arg-type]
    plan = Plan(seed=1, cluster=cluster, network=network, **more)  # type: ignore[arg-type]
    return Trace(trace_id=1, plan=plan_to_json(plan), seed=1, software_version="0", events=events)


def found(*events: Event, **options: object) -> set[str]:
    """What is found, in all forms alike."""
    trace = made(*events, **options)
    verdict = judge(trace)
    for coded in (False, True):
        tables, _ = row_group([trace], coded=coded)
        (of_tables,) = judge_meantime(tables).values() or (judge(made()),)
        assert of_tables.findings == verdict.findings
    for finding in verdict.findings:
        assert BY_NAME[finding.anomaly].breaks in ("JUSTIFIED", "MEANTIME", "STOP-SAFE")
        assert finding.events
    return {finding.anomaly for finding in verdict.findings}


def registered(broker: int, at: int = 0) -> Event:
    return Event(time=at, name=Name.BROKER_ZNODE, node=broker, broker_epoch=10 + broker)


def gone(broker: int, at: int = 0) -> Event:
    return Event(time=at, name=Name.BROKER_ZNODE, node=broker)


def state(leader: int, epoch: int, *isr: int, at: int = 0, by: int = 1) -> Event:
    return Event(
        time=at,
        name=Name.PARTITION_STATE,
        node=by,
        leader=leader,
        leader_epoch=epoch,
        controller_epoch=1,
        isr=isr,
        **T0,
    )


def reign(at: int = 0) -> Event:
    return Event(time=at, name=Name.CONTROLLER_EPOCH, node=1, controller_epoch=1)


def assignment(*replicas: int) -> Event:
    return Event(time=0, name=Name.ASSIGNMENT, replicas=replicas, **T0)


UP = (registered(1), registered(2), registered(3), reign(), assignment(1, 2, 3), state(1, 0, 1, 2, 3))


TAKEN_OUT_TWICE = (state(1, 1, 1, 2), registered(3), state(1, 1, 1, 2, 3), state(1, 2, 1, 2))
"""Broker 3, which comes back in between."""


@pytest.mark.parametrize(
    ("then", "anomalies"),
    [
        ((state(2, 1, 1, 2, 3),), {"needless_election"}),
        ((state(1, 1, 1, 2, 3),), {"needless_election"}),
        ((state(-1, 1, 1, 2, 3),), {"needless_election"}),
        ((state(1, 1, 1, 2),), {"needless_removal"}),
        ((state(1, 0, 1, 2),), set()),
        ((gone(1), state(2, 1, 2, 3)), set()),
        ((gone(3), state(1, 1, 1, 2)), set()),
        ((gone(1), registered(1), state(1, 1, 1, 2, 3)), set()),
        (
            (gone(3), state(1, 1, 1, 2), registered(3), state(1, 1, 1, 2, 3), state(1, 2, 1, 2)),
            {"needless_removal"},
        ),
        # the controller takes it out for its first absence while it is gone again
        ((gone(3), registered(3), gone(3), *TAKEN_OUT_TWICE), set()),
        ((gone(3), registered(3), reign(), gone(3), *TAKEN_OUT_TWICE), {"needless_removal"}),
        ((gone(1), state(2, 1, 2, 3), registered(1), state(2, 1, 1, 2, 3), state(1, 2, 1, 2, 3)), set()),
        ((gone(1), state(-1, 1, 1), registered(1), state(1, 2, 1)), {"needless_removal"}),
        ((gone(1), state(-1, 1, 1, 2, 3), state(-1, 2, 1, 2, 3)), {"needless_election"}),
    ],
)
def test_an_election_has_a_reason(then: tuple[Event, ...], anomalies: set[str]) -> None:
    """Rule (JUSTIFIED): a raised epoch needs a broker that was gone, the preferred replica, or a partition
    without leader; each reason explains once."""
    assert found(*UP, *then) == anomalies


LAST = (*UP, state(1, 0, 1), gone(1), state(-1, 1, 1))


def test_the_epoch_of_a_partition_without_leader_has_a_reason() -> None:
    """Rule (JUSTIFIED): a controller that would take the last ISR member away keeps it and raises the epoch:
    once for each time that it was gone, once in each reign, and whenever it stops."""
    kept = [state(-1, epoch, 1) for epoch in range(2, 7)]
    stops = Event(time=0, name=Name.BROKER_STATE, node=1, cause="PendingControlledShutdown")
    assert found(*LAST, kept[0]) == set()
    assert found(*LAST, *kept[:2]) == {"needless_election"}
    assert found(*LAST, kept[0], reign(), kept[1]) == set()
    assert found(*LAST, kept[0], registered(1), gone(1), kept[1]) == set()
    assert found(*LAST, kept[0], registered(1), stops, *kept[1:3]) == set()
    assert found(*LAST, kept[0], registered(1), reign(), kept[1]) == {"needless_election"}


def test_a_broker_that_stops_gives_a_reason_until_it_is_started_again() -> None:
    """Rule (JUSTIFIED): controlled shutdown takes leaders and ISR members away; not from the process that was
    started since."""
    stops = Event(time=0, name=Name.BROKER_STATE, node=1, cause="PendingControlledShutdown")
    assert found(*UP, stops, state(2, 1, 2, 3)) == set()
    again = (*UP, stops, gone(1), registered(1))  # a new session of the process that stops
    assert found(*again, state(2, 1, 2, 3), state(2, 1, 1, 2, 3), state(2, 2, 2, 3)) == set()
    started = Event(time=0, name=Name.BROKER_STARTED, node=1)
    assert found(*UP, stops, started, state(2, 1, 2, 3)) == set()  # the controller has not heard of it
    assert found(*UP, stops, started, registered(1), state(2, 1, 2, 3)) == {"needless_removal"}


def test_a_reassignment_gives_a_reason_in_its_reign() -> None:
    """Rule (JUSTIFIED): whoever is not in the target may go; a reign later, nothing that was done is asked
    for any more."""
    asked = Event(time=0, name=Name.REASSIGNMENT, replicas=(1, 2), **T0)
    done = Event(time=0, name=Name.REASSIGNMENT, **T0)
    assert found(*UP, asked, state(1, 1, 1, 2)) == set()
    assert found(*UP, asked, done, state(1, 1, 1, 2)) == set()
    assert found(*UP, asked, done, reign(), state(1, 1, 1, 2)) == {"needless_removal"}
    assert found(*UP, asked, state(1, 1, 1, 3)) == {"needless_removal"}


@pytest.mark.parametrize(("earlier", "anomalies"), [(9, set()), (11, {"needless_shrink"})])
def test_a_step_that_began_on_a_slow_disk_may_end_late(earlier: int, anomalies: set[str]) -> None:
    """Rule (JUSTIFIED): it led since the step began, which is recorded when it ends (seed 43000294 of the
    profile everything). What the broker recorded after the disk was well again belongs to another step."""
    fault = {"node": 1, "cause": "slow_fsync", "detail": '{"fault":1}'}
    rows = (
        Event(time=8 * SECOND, name=Name.FAULT_BEGAN, **fault),
        Event(time=10 * SECOND, name=Name.FAULT_ENDED, **fault),
        Event(time=13 * SECOND, name=Name.CONTROL_REQUEST_APPLIED, node=1, cause="LeaderAndIsrRequest"),
        Event(time=13 * SECOND, name=Name.BECAME_LEADER, node=1, leader_epoch=0, isr=(1, 2, 3), **T0),
        Event(time=14 * SECOND, name=Name.ISR_PROPOSED, node=1, isr=(1, 2), cause="shrink", **T0),
        Event(time=earlier * SECOND, name=Name.HIGH_WATERMARK, node=1, high_watermark=0, **T0),
    )
    mine = {"needless_shrink"}
    assert found(*UP, *sorted(rows, key=lambda one: one.time)) & mine == anomalies


def test_a_leader_from_outside_of_the_isr() -> None:
    """Rule (JUSTIFIED): only where the topic allows it, or somebody asked for it, and nobody of the ISR was
    well."""
    shrunk = (*UP, gone(3), state(1, 1, 1, 2), registered(3), gone(1), gone(2))
    assert found(*shrunk, state(3, 2, 3)) == {"unclean_election"}
    assert found(*shrunk, state(3, 2, 3), unclean=True) == set()
    asked = Event(time=0, name=Name.MARK, topic="t", cause=UNCLEAN_REQUESTED)
    assert found(*shrunk, asked, state(3, 2, 3)) == set()
    well = (*UP[:3], assignment(1, 2, 3), state(1, 0, 1, 2), reign(), gone(1))
    assert found(*well, state(3, 1, 3), unclean=True) == {"unclean_election"}


def test_a_leader_waits_for_the_lag() -> None:
    """Rule (JUSTIFIED): it finds nobody to lag before it led for replica.lag.time.max.ms, of which a quarter
    is conceded; a wrong clock excuses."""
    led = Event(time=SECOND, name=Name.BECAME_LEADER, node=1, leader_epoch=0, isr=(1, 2, 3), **T0)

    def shrinks(at: int) -> Event:
        return Event(
            time=at, name=Name.ISR_PROPOSED, node=1, leader_epoch=0, isr=(1, 2), cause="shrink", **T0
        )

    mine = {"needless_shrink"}
    assert found(*UP, led, shrinks(2 * SECOND)) & mine == mine
    assert found(*UP, led, shrinks(3 * SECOND)) & mine == set()
    jump = Event(time=0, name=Name.FAULT_BEGAN, node=1, cause="clock_jump", detail='{"fault":1}')
    assert found(*UP, jump, led, shrinks(2 * SECOND)) & mine == set()
    slow = Event(time=0, name=Name.FAULT_BEGAN, node=1, cause="slow_fsync", detail='{"fault":1}')
    assert found(*UP, slow, led, shrinks(2 * SECOND)) & mine == set()
    created = Event(time=SECOND, name=Name.LOG_RECOVERED, node=1, **T0)  # 8 syncs of a millisecond each
    assert found(*UP, *[created] * 100, led, shrinks(2 * SECOND)) & mine == set()
    assert found(*UP, *[created] * 10, led, shrinks(2 * SECOND)) & mine == mine
    again = Event(time=5 * SECOND, name=Name.BECAME_LEADER, node=1, leader_epoch=1, isr=(1, 2, 3), **T0)
    assert found(*UP, led, again, shrinks(6 * SECOND)) & mine == set()

    def updated(*isr: int) -> Event:
        return Event(time=SECOND, name=Name.ISR_UPDATED, node=1, leader_epoch=0, isr=isr, **T0)

    back = (updated(1, 2), updated(1, 2, 3))  # 3 left and came back, caught up with the high watermark only
    assert found(*UP, led, *back, shrinks(2 * SECOND)) & mine == set()
    assert found(*UP, led, updated(1, 2, 3, 4), updated(1, 2, 3), shrinks(2 * SECOND)) & mine == mine


@pytest.mark.parametrize(
    ("cause", "isr", "anomalies"),
    [
        ("shrink", (1, 2), set()),
        ("shrink", (1, 2, 3), {"idle_isr_change"}),
        ("expand", (1, 2, 3, 4), set()),
        ("expand", (1, 2, 3), {"idle_isr_change"}),
        ("expand", (1, 2, 4), {"idle_isr_change"}),
    ],
)
def test_a_proposal_changes_the_isr(cause: str, isr: tuple[int, ...], anomalies: set[str]) -> None:
    """Rule (JUSTIFIED): a shrink leaves somebody out, an expansion takes somebody in, of what the leader goes
    by."""
    led = Event(time=0, name=Name.BECAME_LEADER, node=1, leader_epoch=0, isr=(1, 2, 3), **T0)
    proposed = Event(
        time=3 * SECOND, name=Name.ISR_PROPOSED, node=1, leader_epoch=0, isr=isr, cause=cause, **T0
    )
    assert found(*UP, led, proposed) == anomalies
    settled = Event(
        time=3 * SECOND, name=Name.ISR_UPDATED, node=1, leader_epoch=0, isr=isr, cause=cause, **T0
    )
    again = Event(time=4 * SECOND, name=Name.ISR_PROPOSED, node=1, leader_epoch=0, isr=isr, cause=cause, **T0)
    assert found(*UP, led, settled, again) == {"idle_isr_change"}


def phase(at: float, cause: str, why: str = "") -> Event:
    detail = f'{{"group":"g","generation":1,"members":[],"leader":"","why":"{why}"}}'
    return Event(
        time=int(at * SECOND),
        name=Name.GROUP_PHASE,
        node=1,
        topic="__consumer_offsets",
        partition=0,
        cause=cause,
        detail=detail,
    )


LEADS = Event(time=0, name=Name.BECAME_LEADER, node=1, leader_epoch=0, isr=(1, 2, 3), **T0)
FOLLOW = tuple(
    Event(time=0, name=Name.BECAME_FOLLOWER, node=node, leader=1, leader_epoch=0, **T0) for node in (2, 3)
)
TOLD = tuple(
    Event(
        time=0,
        name=Name.CONTROL_REQUEST_APPLIED,
        node=node,
        controller_epoch=1,
        cause="UpdateMetadataRequest",
    )
    for node in (1, 2, 3)
)
ROLES = (LEADS, *FOLLOW, *TOLD)
SAFETY = Event(time=0, name=Name.PHASE, cause="safety")
EXPELLED = phase(50, "PreparingRebalance", "the session of consumer-1-2-3-4 has ended")


def test_a_member_is_expelled_for_its_silence_only() -> None:
    """Rule (JUSTIFIED): while nothing is broken and no consumer stops, nobody's session ends; a fault or a
    pause explains it."""
    consumer = ConsumerOptions(session_timeout_ms=2_000, max_poll_interval_ms=5_000)
    assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer) == {"needless_expulsion"}
    assert found(*UP, SAFETY, *ROLES, EXPELLED) == set()  # a poll may take five minutes
    fault = Event(time=45 * SECOND, name=Name.FAULT_BEGAN, node=3, cause="crash", detail='{"fault":1}')
    assert found(*UP, SAFETY, *ROLES, fault, EXPELLED, consumer=consumer) == set()
    pause = PlannedOperation(op_id=1, process=1, at_ms=30_000, function="pause", records=150)
    assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer, operations=(pause,)) == set()
    short = PlannedOperation(op_id=1, process=1, at_ms=30_000, function="pause", records=1)
    assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer, operations=(short,)) == {
        "needless_expulsion"
    }


@pytest.mark.parametrize(
    ("begun", "cleaned", "anomalies"),
    [
        (47, 51, set()),
        (30, 41, {"needless_expulsion"}),
        (51, 54, {"needless_expulsion"}),
        (48.9, 49, {"needless_expulsion"}),
    ],
)
def test_a_member_waits_while_a_broker_cleans(begun: float, cleaned: float, anomalies: set[str]) -> None:
    """Rule (JUSTIFIED): its commit, or its question for the coordinator, waits for a step that cleans many
    small segments on a slow disk, and is recorded when it ends (seed 42001167 of the profile everything)."""
    consumer = ConsumerOptions(
        session_timeout_ms=2_000, max_poll_interval_ms=5_000, heartbeat_interval_ms=500
    )
    step = [
        Event(time=int(begun * SECOND), name=Name.HIGH_WATERMARK, node=2, high_watermark=1, **T0),
        Event(time=int(cleaned * SECOND), name=Name.COMPACTED, node=2, **T0),
    ]
    rows = sorted((*step, EXPELLED), key=lambda one: one.time)
    assert found(*UP, SAFETY, *ROLES, *rows, consumer=consumer) == anomalies


def test_whose_process_does_not_run_is_expelled_with_reason() -> None:
    """Rule (JUSTIFIED): a static member stays while others rebalance, so that its crash may be long ago; not
    if its process runs again, nor if another process crashed."""
    consumer = ConsumerOptions(session_timeout_ms=2_000, max_poll_interval_ms=5_000)
    crash = PlannedOperation(op_id=1, process=1, at_ms=5_000, function="crash")
    again = PlannedOperation(op_id=2, process=1, at_ms=9_000, function="subscribe")
    other = PlannedOperation(op_id=3, process=2, at_ms=48_000, function="crash")
    assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer, operations=(crash,)) == set()
    for operations in ((crash, again), (other,)):
        assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer, operations=operations) == {
            "needless_expulsion"
        }
    unnamed = phase(50, "PreparingRebalance", "the session of rdkafka-1 has ended")
    assert found(*UP, SAFETY, *ROLES, unnamed, consumer=consumer, operations=(other,)) == set()


def test_a_rebalance_takes_no_longer_than_members_need_to_hear_of_it() -> None:
    """Rule (MEANTIME): heartbeat, poll, work and commit; an empty group waits for others to come."""
    consumer = ConsumerOptions(
        session_timeout_ms=2_000, max_poll_interval_ms=5_000, heartbeat_interval_ms=500
    )
    begins, ends = phase(40, "PreparingRebalance", "consumer-2 joins"), phase(50, "CompletingRebalance")
    stable = phase(10, "Stable")
    assert found(*UP, SAFETY, *ROLES, stable, begins, ends, consumer=consumer) == {
        "slow_rebalance",
        "needless_rebalance",
    }
    assert found(
        *UP, SAFETY, *ROLES, stable, begins, phase(41, "CompletingRebalance"), consumer=consumer
    ) == {"needless_rebalance"}
    for first in ((phase(10, "Empty"),), ()):  # a group that is new was empty
        assert found(*UP, SAFETY, *ROLES, *first, begins, ends, consumer=consumer) == set()


@pytest.mark.parametrize(
    ("polls_ms", "lasted", "anomalies"),
    [
        (4_500, 5.0, set()),
        (4_500, 4.9, {"needless_rebalance"}),  # nobody was late
        (500, 5.0, {"needless_rebalance", "slow_rebalance"}),  # everybody hears in time
    ],
)
def test_who_cannot_hear_of_a_rebalance_in_time_joins_anew(
    polls_ms: int, lasted: float, anomalies: set[str]
) -> None:
    """Rule (JUSTIFIED): the rebalance timeout is the poll interval. Where heartbeat, poll and work take
    longer, members are always left out by the rebalances that others begin (seed 43005037 of everything)."""
    consumer = ConsumerOptions(
        session_timeout_ms=2_000,
        max_poll_interval_ms=5_000,
        heartbeat_interval_ms=500,
        poll_timeout_ms=polls_ms,
    )
    comes = PlannedOperation(op_id=1, process=2, at_ms=20_000, function="subscribe")
    happened = (
        phase(10, "Stable"),
        phase(34, "PreparingRebalance", "consumer-2 joins"),
        phase(34 + lasted, "CompletingRebalance"),
        phase(34.1 + lasted, "Stable"),
        phase(34.2 + lasted, "PreparingRebalance", "consumer-3 joins"),
        phase(34.3 + lasted, "CompletingRebalance"),
    )
    assert found(*UP, SAFETY, *ROLES, *happened, consumer=consumer, operations=(comes,)) == anomalies


def test_who_cannot_commit_in_time_leaves_with_reason() -> None:
    """Rule (JUSTIFIED): who has no time left until the next poll leaves, without a request if it does
    not know its coordinator, and joins anew; where no commit is answered before it is sent again, that
    may happen without any fault."""
    late = {"needless_rebalance"}
    for does, patience, anomalies in (
        ("leaves", 1_500, late),
        ("leaves", 150, set()),
        ("joins", 1_500, late),
        ("joins", 150, set()),
        ("joins again", 150, late),
    ):
        leaves = phase(40, "PreparingRebalance", f"consumer-2-1 {does}")
        consumer = ConsumerOptions(
            session_timeout_ms=2_000, max_poll_interval_ms=5_000, request_timeout_ms=patience
        )
        happened = (*UP, SAFETY, *ROLES, phase(10, "Stable"), leaves, phase(41, "CompletingRebalance"))
        assert found(*happened, consumer=consumer) == anomalies


def test_who_is_late_may_leave_without_a_request() -> None:
    """Rule (JUSTIFIED): as a static member does, or one that does not know its coordinator; then its session
    ends."""
    for patience, anomalies in ((1_500, {"needless_expulsion"}), (150, set())):
        consumer = ConsumerOptions(
            session_timeout_ms=2_000, max_poll_interval_ms=5_000, request_timeout_ms=patience
        )
        assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer) == anomalies


def test_a_process_that_is_fenced_leaves_and_joins_anew_with_reason() -> None:
    """Rule (JUSTIFIED): a process that produces in transactions may be refused as fenced at any time, also
    without a rival, and begins anew in its group. Other groups are asked."""
    consumer = ConsumerOptions(session_timeout_ms=2_000, max_poll_interval_ms=5_000)
    leaves = phase(40, "PreparingRebalance", "consumer-2-1 leaves")
    happened = (*UP, SAFETY, *ROLES, phase(10, "Stable"), leaves, phase(41, "CompletingRebalance"))
    for key, anomalies in (("g", set()), ("another", {"needless_rebalance"})):
        moves = PlannedOperation(op_id=1, process=7, at_ms=2_000, function="transform", key=key)
        assert found(*happened, consumer=consumer, operations=(moves,)) == anomalies


def test_the_session_of_a_fenced_process_may_end_before_it_begins_anew() -> None:
    """Rule (JUSTIFIED): a static member does not leave (seed 5023 of the profile transactions)."""
    consumer = ConsumerOptions(session_timeout_ms=2_000, max_poll_interval_ms=5_000)
    for key, anomalies in (("g", set()), ("another", {"needless_expulsion"})):
        moves = PlannedOperation(op_id=1, process=7, at_ms=2_000, function="transform", key=key)
        assert found(*UP, SAFETY, *ROLES, EXPELLED, consumer=consumer, operations=(moves,)) == anomalies


END = Event(time=60 * SECOND, name=Name.PHASE, cause="end")


def test_a_broker_that_was_stopped_registers_when_it_is_started() -> None:
    """Rule (MEANTIME): an operator may leave it down as long as he likes."""
    stopped = Event(time=SECOND, name=Name.BROKER_STATE, node=1, cause="NotRunning")
    started = Event(time=2 * SECOND, name=Name.BROKER_STARTED, node=1)
    assert "slow_registration" not in found(*UP[1:], *ROLES, stopped, END)
    assert "slow_registration" in found(*UP[1:], *ROLES, stopped, started, END)


def test_what_stands_still_while_nothing_is_broken() -> None:
    """Rule (MEANTIME): brokers register, partitions are led, ISRs are whole; not while a fault is active, nor
    where messages are lost."""
    assert found(*UP, *ROLES, END) == set()
    assert found(*UP[1:], *ROLES, END) == {"slow_registration", "late_election"}
    assert found(*UP, *FOLLOW, *TOLD, END) == {"slow_election", "slow_delivery", "late_decision"}
    small = (*UP[:5], state(1, 0, 1, 2), *ROLES)
    assert found(*small, END) == {"slow_recovery"}
    assert found(*small, END, loss_ppm=1) == set()
    fault = Event(
        time=SECOND, name=Name.FAULT_BEGAN, node=3, cause="slow_link", detail='{"fault":1,"target":"x"}'
    )
    over = Event(time=59 * SECOND, name=Name.FAULT_ENDED, node=3, cause="slow_link", detail='{"fault":1}')
    assert found(*small, fault, END) == set()
    assert found(*small, fault, over, END) == set()
    late = state(1, 0, 1, 2, 3, at=59 * SECOND)
    assert found(*small, late, END) == {"slow_recovery"}  # it came, but too late
    moved = Event(time=0, name=Name.REASSIGNMENT, replicas=(1, 2), **T0)
    assert found(*small, moved, END) == set()


def test_a_follower_catches_up_when_its_leader_s_disk_has_time() -> None:
    """Rule (MEANTIME): fetches wait for the batches that clients append before them, and one from a log of
    small segments gets one batch (seed 43006253 of the profile everything). An idle disk, or batches before
    the calm, give no reason."""
    small = (*UP[:5], state(1, 0, 1, 2), *ROLES)
    disk = DiskOptions(fsync_us=500_000)

    def appended(at: int) -> Event:
        return Event(time=at * SECOND, name=Name.APPENDED, node=1, cause="leader", offset=at, **T0)

    batches = [appended(at) for at in range(1, 21)]
    slow = {"latency_min_us": 150_000, "latency_max_us": 300_000}
    assert "slow_recovery" in found(*small, *batches[:2], END, **slow)
    assert "slow_recovery" not in found(*small, *batches, END, **slow)
    assert "slow_recovery" in found(*small, END, disk=disk)
    assert "slow_recovery" in found(*small, *batches[:5], END, disk=disk)
    assert "slow_recovery" not in found(*small, *batches, END, disk=disk)
    heal = Event(time=22 * SECOND, name=Name.PHASE, cause="heal")
    assert "slow_recovery" in found(*small, *batches, heal, END, disk=disk)


def test_a_process_that_came_back_is_not_what_its_old_node_says() -> None:
    """Rule (MEANTIME): while the node of an earlier incarnation stays, /controller may name a broker that is
    none, so nobody is asked for an election. The bound begins once that node has gone."""
    killed = Event(time=SECOND, name=Name.FAULT_BEGAN, node=3, cause="bounce", detail='{"fault":1}')
    back = Event(time=2 * SECOND, name=Name.BROKER_STARTED, node=3)
    small = (*UP[:5], state(-1, 1, 1), *ROLES)
    heal = Event(time=20 * SECOND, name=Name.PHASE, cause="heal")
    assert "late_election" in found(*small, heal)
    assert "late_election" not in found(*small, killed, back, heal)
    assert "late_election" in found(*small, killed, back, gone(3, at=3 * SECOND), heal)


def test_everybody_is_told() -> None:
    """Rule (MEANTIME): each registered broker takes over metadata after the last state, each replica its role
    in that epoch."""
    assert found(*UP, LEADS, *FOLLOW, *TOLD[:2], END) == {"slow_delivery", "late_decision"}
    assert found(*UP, LEADS, FOLLOW[0], *TOLD, END) == {"slow_delivery", "late_decision"}
    later = state(1, 0, 1, 2, 3, at=30 * SECOND)
    assert found(*UP, *ROLES, later, END) == {"slow_delivery", "late_decision"}
    again = tuple(evolve(event, time=31 * SECOND) for event in TOLD)
    assert found(*UP, *ROLES, later, *again, END) == set()


@pytest.mark.parametrize(("tail_us", "late"), [(200_000, True), (201_000, False)])
def test_nobody_is_told_in_time_if_answers_come_too_late(tail_us: int, late: bool) -> None:
    """Rule (MEANTIME): a controller that waits for less than a round trip sends each request again and again
    (seed 41005437 of the profile everything)."""
    network = {"latency_min_us": 100_000, "latency_tail_us": tail_us, "latency_max_us": 600_000}
    assert ("late_decision" in found(*UP, LEADS, *FOLLOW, *TOLD[:2], END, **network)) is late


@pytest.mark.parametrize(("cleaned_at", "node", "late"), [(34, 2, False), (30, 2, True), (34, 4, True)])
def test_a_decision_waits_while_a_broker_cleans(cleaned_at: int, node: int, late: bool) -> None:
    """Rule (MEANTIME): the leader that wrote an ISR notifies the controller after its step, which may be one
    of cleaning many small segments on a slow disk (seed 41002011 of the profile everything)."""
    decided = 30 * SECOND
    begun = Event(time=(cleaned_at - 4) * SECOND, name=Name.HIGH_WATERMARK, node=node, high_watermark=1, **T0)
    cleaned = Event(time=cleaned_at * SECOND, name=Name.COMPACTED, node=node, topic="other", partition=0)
    again = tuple(evolve(event, time=decided + 8 * SECOND) for event in TOLD)
    rows = sorted((begun, cleaned, state(1, 0, 1, 2, at=decided), *again), key=lambda one: one.time)
    assert ("late_decision" in found(*UP, *ROLES, *rows, END)) is late


def test_a_broker_that_stops_leaves_the_isrs() -> None:
    """Rule (STOP-SAFE): by the controller's answer; not as a leader, nor as the last member, nor if its
    leader took it back since it asked."""
    stops = Event(time=0, name=Name.BROKER_STATE, node=3, cause="PendingControlledShutdown")
    answered = Event(time=0, name=Name.MARK, node=1, leader=3, cause="controlled_shutdown")
    assert found(*UP, stops, answered) == {"stopping_member_left_in_isr"}
    assert found(*UP, stops, state(1, 1, 1, 2), answered) == set()
    assert found(*UP, stops, state(1, 1, 1, 2), state(1, 1, 1, 2, 3), answered) == set()
    assert found(*UP, gone(1), gone(2), state(3, 1, 3), stops, answered) == set()
    deleted = Event(time=0, name=Name.TOPIC_DELETION, topic="t", cause="requested")
    assert found(*UP, deleted, stops, answered) == set()


def test_a_trace_without_a_plan_is_asked_nothing() -> None:
    """A foreign history says nothing of options."""
    trace = Trace(trace_id=1, plan="", seed=0, software_version="0", events=(*UP, state(2, 1, 1, 2, 3)))
    assert not judge(trace).findings


LEADS_TWO = Event(
    time=SECOND,
    name=Name.BECAME_LEADER,
    node=1,
    leader_epoch=0,
    isr=(1, 2),
    high_watermark=0,
    offset=0,
    **T0,
)
"""Broker 1, of an empty log in sync with broker 2."""


def appended_first(node: int, at: int) -> Event:
    """The record of offset 0 is in the log of a broker."""
    return Event(time=at, name=Name.APPENDED, node=node, offset=0, end_offset=1, values=(1,), **T0)


@pytest.mark.parametrize(
    ("lost", "took_ms", "late"), [(False, 4_000, True), (True, 4_000, False), (True, 6_000, True)]
)
def test_a_commit_waits_for_the_next_fetch(lost: bool, took_ms: int, late: bool) -> None:
    """Rule (MEANTIME): what every ISR member has is committed by their next fetch. A fault may have lost that
    fetch; then a follower waits until it times out (seed 5794 of the profile transactions)."""
    copied = 20 * SECOND

    fault = tuple(
        Event(time=copied + at, name=name, node=2, cause="partition", detail='{"fault":1}')
        for at, name in ((1, Name.FAULT_BEGAN), (2, Name.FAULT_ENDED))
    )
    moved = Event(time=copied + took_ms * 1_000_000, name=Name.HIGH_WATERMARK, node=1, high_watermark=1, **T0)
    rows = (
        *UP,
        LEADS_TWO,
        appended_first(1, copied - 1),
        appended_first(2, copied),
        *(fault if lost else ()),
        moved,
    )
    assert ("slow_commit" in found(*rows)) is late


def test_a_leader_of_an_old_epoch_need_not_commit() -> None:
    """Rule (MEANTIME): a broker may learn that it leads when it has been replaced already, as replicas are
    moved; what it appends then is never committed (seed 40005628 of the profile everything)."""
    at = 20 * SECOND
    moved = state(2, 1, 2, at=at - 1)
    end = Event(time=at + 10 * SECOND, name=Name.PHASE, cause="end")
    late = (evolve(LEADS_TWO, time=at), appended_first(1, at), end)
    assert "slow_commit" not in found(*UP, moved, *late)
    assert "slow_commit" in found(*UP, *late)


@pytest.mark.parametrize(
    ("name", "cause", "node", "late"),
    [
        (Name.COMPACTED, "", 1, False),
        (Name.COMPACTED, "", 2, False),
        (Name.COMPACTED, "", 3, True),
        (Name.LOG_START, "retention", 2, False),
        (Name.LOG_START, "leader", 2, True),
    ],
)
def test_a_commit_waits_while_a_broker_cleans(name: Name, cause: str, node: int, late: bool) -> None:
    """Rule (MEANTIME): a step of cleaning many small segments on a slow disk may take seconds (seed 9100010
    of the profile everything). What a broker outside of the ISR does is no reason."""
    copied = 20 * SECOND
    rows = [appended_first(1, copied), appended_first(2, copied)]
    cleaned = Event(time=copied + 4 * SECOND, name=name, node=node, cause=cause, topic="other", partition=0)
    moved = Event(time=copied + 4 * SECOND, name=Name.HIGH_WATERMARK, node=1, high_watermark=1, **T0)
    assert ("slow_commit" in found(*UP, LEADS_TWO, *rows, cleaned, moved)) is late
