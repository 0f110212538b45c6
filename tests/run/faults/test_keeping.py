"""A budget that keeps what was acknowledged: within it no acknowledged record is lost, whatever is drawn;
each part of its rule is needed."""

import json

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.faults.keeping import Keeping, reached_by
from fencepost.run.faults.table import FAULTS
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import BudgetOptions, Fault, Plan, PlannedOperation, TopicOptions
from tests.run.faults.chaos_plans import chaos_plan
from tests.selfcheck.amounts import amount

SEEDS = range(amount(32, 100))


def losses(trace) -> list[str]:
    """What is wrong with the records of a run, and why a loss would be allowed."""
    found = [finding.anomaly for verdict in judge(trace) for finding in verdict.findings]
    of_records = [anomaly for anomaly in found if not anomaly.startswith("slow_")]
    return [*trace.claims.reasons, *of_records]


def count(trace, name: Name, *causes: str) -> int:
    return sum(1 for event in trace.events if event.name is name and event.cause in causes)


def test_no_acknowledged_record_is_lost_within_the_budget():
    """Rule: whatever a seed draws, no member of an ISR misses a record that was exposed (no loss is even
    allowed), and no acknowledged record is missing at the end. Data is lost all the same: hosts lose their
    power, and bits rot."""
    lost = appends = 0
    for seed in SEEDS:
        trace = run(chaos_plan(seed))
        assert not losses(trace), f"seed {seed}: {losses(trace)}"
        lost += count(trace, Name.FAULT_BEGAN, "power_loss", "bit_rot")
        appends += sum(operation.outcome is Outcome.OK for operation in trace.operations)
    assert lost > len(SEEDS) / 10 and appends > 20 * len(SEEDS), (lost, appends)


def lets_anything_begin(monkeypatch):
    monkeypatch.setattr(Keeping, "why_not", lambda *arguments, **options: "")


def holds_nobody(monkeypatch):
    monkeypatch.setattr(Keeping, "may_start", lambda *arguments: True)


@pytest.mark.parametrize(
    ("plant", "seeds"), [(lets_anything_begin, (29, 31, 37)), (holds_nobody, (0, 35, 51))]
)
def test_a_weaker_budget_is_noticed(monkeypatch, plant, seeds):
    """Rule: without keepers, and where a host is back at once, such runs lose records, or could."""
    plant(monkeypatch)
    assert any(losses(run(chaos_plan(seed))) for seed in seeds)


def two_replicas(*faults: Fault, budget: BudgetOptions) -> Plan:
    """A partition on brokers 1 and 2, of which 1 leads; an append every 50 ms, for five seconds."""
    operations = tuple(
        PlannedOperation(op_id=number, process=number % 2, at_ms=number * 50, function="append")
        for number in range(100)
    )
    seed = chaos_plan(0)
    topic = TopicOptions(replication_factor=2, min_insync_replicas=1)
    return evolve(
        seed,
        safety_ms=6_000,
        cluster=evolve(seed.cluster, topics=(topic,)),
        client=evolve(seed.client, delivery_timeout_ms=3_000),
        budget=budget,
        operations=operations,
        faults=faults,
    )


KEEPS = BudgetOptions(keep_acknowledged=True)
LOSES = Fault(fault_id=9, kind="power_loss", at_ms=2_300, duration_ms=500, target="broker 1")


def fault(kind: str, at_ms: int, duration_ms: int, **more: object) -> Fault:
    return Fault(fault_id=1, kind=kind, at_ms=at_ms, duration_ms=duration_ms, target="broker 2", **more)


BEFORE = {
    "down": fault("crash", 2_200, 3_000),
    "paused": fault("pause", 2_200, 3_000),
    "about to lose its session": fault("bounce", 2_000, 100, parameter=50),
    "cut off from ZooKeeper": fault("isolate_zookeeper", 2_000, 3_000),
    "cut off from brokers": fault("partition", 2_000, 3_000),
}
"""What keeps broker 2, the other member of the ISR, from being a keeper."""


@pytest.mark.parametrize("keeper", BEFORE)
def test_a_leader_loses_no_data_without_a_keeper(keeper):
    """Rule: the leader's host loses its power only if the other replica can be elected."""
    skipped = run(two_replicas(BEFORE[keeper], LOSES, budget=KEEPS))
    assert count(skipped, Name.FAULT_SKIPPED, "power_loss") == 1 and not losses(skipped)


@pytest.mark.parametrize(
    "kind", ["crash", "pause", "isolate_zookeeper", "expire_session", "partition", "power_loss"]
)
def test_nothing_takes_the_keeper_of_a_host_that_lost_data(kind):
    """Rule: until that host is back nothing happens to the only other replica; then all may, but another loss
    of data needs some calm."""
    soon, later = fault(kind, 2_700, 1_000), evolve(fault(kind, 5_900, 1_000), fault_id=2)
    trace = run(two_replicas(LOSES, soon, later, budget=KEEPS))
    faults = {
        json.loads(event.detail)["fault"]: event.name
        for event in trace.events
        if event.name in (Name.FAULT_BEGAN, Name.FAULT_SKIPPED)
    }
    assert (faults[9], faults[1]) == (Name.FAULT_BEGAN, Name.FAULT_SKIPPED) and not losses(trace)
    assert faults[2] is (Name.FAULT_SKIPPED if FAULTS[kind].loses else Name.FAULT_BEGAN)


def test_a_host_that_lost_data_is_back_when_it_is_out_of_the_isr():
    """Rule: its fault lasts as long; without the budget it is back at its time, in the ISR, and is elected
    without what it had acknowledged."""

    def back(trace) -> int:
        return next(e.time for e in reversed(trace.events) if e.name is Name.BROKER_STARTED and e.node == 1)

    quick = evolve(LOSES, duration_ms=50)
    kept = run(two_replicas(quick, budget=KEEPS))
    free = run(two_replicas(quick, budget=BudgetOptions(outside="allow")))
    assert back(kept) - back(free) > 1_500_000_000
    ended = next(e for e in kept.events if e.name is Name.FAULT_ENDED)
    assert ended.time >= back(kept) and not losses(kept)
    assert losses(free)


def test_a_disk_that_had_a_fault_loses_no_power():
    """Rule: what a disk did not sync when it should have, no replica fetches again."""
    lies = evolve(fault("lying_fsync", 1_000, 500), target="broker 1")
    trace = run(two_replicas(lies, LOSES, budget=KEEPS))
    assert count(trace, Name.FAULT_SKIPPED, "power_loss") == 1


def test_whom_a_fault_reaches():
    """Rule: a fault of links reaches both ends; of clients' links, nobody; of ZooKeeper, everybody."""
    brokers = (1, 2, 3)
    assert reached_by(FAULTS["partition"], 2, None, brokers) == {1, 2, 3}
    assert reached_by(FAULTS["partition"], 2, 2, brokers) == {1, 2, 3}
    assert reached_by(FAULTS["partition"], 2, 3, brokers) == {2, 3}
    assert reached_by(FAULTS["crash"], 2, 3, brokers) == {2}
    assert reached_by(FAULTS["client_partition"], 2, None, brokers) == set()
    assert reached_by(FAULTS["zookeeper_restart"], 2, None, brokers) == {1, 2, 3}


# Each kind of fault does what it says to a cluster, and ends.


SIGNS = {
    "crash": lambda events: any(
        e.name is Name.BROKER_STARTED and e.node == 1 and e.time > 2e9 for e in events
    ),
    "bounce": lambda events: any(
        e.name is Name.BROKER_STARTED and e.node == 1 and e.time > 2e9 for e in events
    ),
    "power_loss": lambda events: any(
        e.name is Name.LOG_RECOVERED and e.node == 1 and e.time > 2e9 for e in events
    ),
    "pause": lambda events: any(e.name is Name.SESSION_EXPIRED and e.node == 1 for e in events),
    "partition": lambda events: any(e.name is Name.ISR_UPDATED and e.cause == "shrink" for e in events),
    "isolate_zookeeper": lambda events: any(e.name is Name.SESSION_EXPIRED and e.node == 1 for e in events),
    "expire_session": lambda events: any(e.name is Name.SESSION_EXPIRED and e.node == 1 for e in events),
    "clean_restart": lambda events: any(
        e.name is Name.BROKER_STATE and e.node == 1 and e.cause == "BrokerShuttingDown" for e in events
    ),
    "disk_full": lambda events: any(e.name is Name.LOG_DIRECTORY_FAILED and e.node == 1 for e in events),
    "io_error": lambda events: any(e.name is Name.LOG_DIRECTORY_FAILED and e.node == 1 for e in events),
    "bit_rot": lambda events: any(
        e.name is Name.LOG_RECOVERED and e.node == 1 and e.time > 2e9 for e in events
    ),
}
"""What a fault of these kinds must leave in the events of a run whose broker 1 it hits; other kinds only slow
things down."""


def hit(small_plan, kind: str, parameter: int = 0):
    """A run in which broker 1 is hit for four seconds; sessions expire after two, replicas lag after one and
    a half."""
    plan = small_plan(
        faults=(
            Fault(
                fault_id=0, kind=kind, at_ms=2_000, duration_ms=4_000, target="broker 1", parameter=parameter
            ),
        ),
        budget=BudgetOptions(brokers_down=1, isr_disks_lost=1),
    )
    quick = evolve(plan.cluster, zookeeper_session_timeout_ms=2_000, replica_lag_time_max_ms=1_500)
    return run(evolve(plan, cluster=quick))


@pytest.mark.parametrize("kind", sorted(kind for kind in FAULTS if FAULTS[kind].ask is None))
def test_a_fault_begins_hits_and_ends_and_the_cluster_survives(small_plan, kind):
    """Every kind is recorded at onset and end, leaves its sign, and a correct cluster keeps its promises
    through it."""
    trace = hit(small_plan, kind, FAULTS[kind].parameter[0])
    names = [(event.name, event.cause) for event in trace.events]
    assert names.count((Name.FAULT_BEGAN, kind)) == 1
    assert names.count((Name.FAULT_ENDED, kind)) == 1
    assert combine(judge(trace)).decision is Decision.OK
    if kind in SIGNS:
        assert SIGNS[kind](trace.events), f"{kind} left no sign"
        assert not SIGNS[kind](run(small_plan()).events), f"the sign of {kind} is there without it"


def test_a_clean_restart_leaves_nothing_to_recover(small_plan):
    """After clean_restart the broker trusts its logs; after a crash it reads them."""

    def recovers(kind: str) -> bool:
        return any(
            e.node == 1 and e.name is Name.BROKER_STATE and e.cause == "RecoveringFromUncleanShutdown"
            for e in hit(small_plan, kind, 10).events
        )

    assert recovers("crash") and not recovers("clean_restart")


@pytest.mark.parametrize(
    ("kind", "parameter"), [("slow_link", 300_000), ("loss", 900_000), ("slow_zookeeper", 400_000)]
)
def test_a_fault_of_links_makes_the_run_another(small_plan, kind, parameter):
    """A slow or lossy link cannot be inert: the same plan without it has another digest."""
    assert hit(small_plan, kind, parameter).events != run(small_plan()).events


def test_a_lost_reply_breaks_the_connection_after_the_commit(small_plan):
    """lose_zookeeper_replies takes effect when the broker next writes: with a leader that shrinks its ISR
    meanwhile the write stands, and is accepted."""
    plan = small_plan(
        faults=(
            Fault(
                fault_id=0,
                kind="lose_zookeeper_replies",
                at_ms=1_900,
                duration_ms=8_000,
                target="broker 1",
                parameter=1,
            ),
            Fault(
                fault_id=1,
                kind="partition",
                at_ms=2_000,
                duration_ms=5_000,
                target="broker 1",
                other="broker 2",
            ),
        )
    )
    plan = evolve(plan, cluster=evolve(plan.cluster, replica_lag_time_max_ms=1_500))
    trace = run(plan)
    assert any(e.name is Name.ISR_UPDATED and e.node == 1 and e.cause == "shrink" for e in trace.events)
    assert not any(e.name is Name.ISR_REFUSED for e in trace.events)
    assert combine(judge(trace)).decision is Decision.OK
