"""Each kind of fault does what it says to a cluster, and ends."""

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.faults.table import FAULTS
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import BudgetOptions, Fault

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
