"""Plans for systems of real processes: a function of the seed, within what the system can carry out."""

from collections import Counter
from functools import cache

from attrs import evolve

from fencepost.campaign.swarm.broken_requests import HOLDS, READS, VERBS
from fencepost.campaign.swarm.real_systems import (
    CONTROLS,
    ECLIPSE,
    FIRST_OF_ALL,
    LAG_MS,
    LONGEST_FAULT_MS,
    PROCESS_FAULTS,
    STRONG_PROFILE,
    TRANSACTIONS_PROFILE,
    UNSAFE_KINDS,
    features_of,
    swarm_for_real,
)
from fencepost.campaign.swarm.schedules import FIRST_SCHEDULED, ORDERS, STRIKES, WRITER_MS
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.real_worker import checked
from fencepost.campaign.workers.results import Job
from fencepost.proxy.faults import parse
from fencepost.run.faults.operator_requests import named
from fencepost.run.faults.requests import BROKEN_REQUEST, LATE_REQUESTS
from fencepost.run.faults.roles import parse_role
from fencepost.run.faults.table import FAULTS, REAL_FAULTS
from fencepost.run.group_processes import BEGINS
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json, plan_to_json

SEEDS = range(100)


@cache
def plans() -> list[Plan]:
    return [swarm_for_real(seed, tuple(REAL_FAULTS)) for seed in SEEDS]


def test_a_seed_is_a_plan_that_a_real_system_can_run():
    """Each plan is valid, has kinds and roles that exist, and survives its way through JSON."""
    for plan in plans():
        assert checked(plan) is plan
        for fault in plan.faults:
            if fault.kind == BROKEN_REQUEST:
                assert str(parse(fault.target)) == fault.target
                continue
            on = FAULTS[fault.kind].on
            assert parse_role(fault.target) if on == "broker" else named(fault.target, on)
    for plan in plans()[:20]:
        assert plan_from_json(plan_to_json(plan)) == plan
        assert swarm_for_real(plan.seed, tuple(REAL_FAULTS)) == plan


def test_kinds_that_a_system_cannot_carry_out_are_not_drawn():
    """Only the kinds that are given are drawn; without any there is no fault."""
    paused = [swarm_for_real(seed, ("pause",)) for seed in range(30)]
    assert {fault.kind for plan in paused for fault in plan.faults} == {"pause"}
    assert not any(order_of(plan, ("pause",)) for plan in paused)
    assert all(not swarm_for_real(seed, ()).faults for seed in range(30))
    every = {fault.kind for plan in plans() for fault in plan.faults}
    assert every == set(REAL_FAULTS) - {LATE_REQUESTS}


def test_plans_vary_in_everything_that_matters():
    """Calm plans, schedules, deaths of all brokers, weak acknowledgements, idempotent producers and unclean
    elections all occur, and none of them always."""
    shares = {
        "calm": sum(not plan.faults for plan in plans()),
        "schedule": sum(any(one.fault_id == FIRST_SCHEDULED for one in plan.faults) for plan in plans()),
        "all": sum(any(one.fault_id > FIRST_OF_ALL for one in plan.faults) for plan in plans()),
        "acks 1": sum(any(one.acks == 1 for one in plan.operations) for plan in plans()),
        "idempotent": sum(plan.client.producer.idempotent for plan in plans()),
        "unclean": sum(plan.cluster.topics[0].unclean_leader_election for plan in plans()),
        "retries": sum(plan.client.retry_unknown for plan in plans()),
    }
    for name, count in shares.items():
        assert 0 < count < len(plans()), name


def test_schedules_have_every_order_and_kind_that_the_system_has():
    """Every order of the steps is drawn, the eclipse most often. Leaders lose power in some schedules, where
    hosts can; elsewhere in none. A strike that waits for an acknowledgement comes after the write."""
    every = [*plans(), *(swarm_for_real(seed, tuple(REAL_FAULTS)) for seed in range(len(SEEDS), 250))]
    orders = Counter(order_of(plan) for plan in every)
    assert set(ORDERS) == set(orders) - {None} and orders[ECLIPSE] == max(orders[name] for name in ORDERS)
    struck = [one for plan in every for one in plan.faults if one.fault_id == FIRST_SCHEDULED]
    assert {one.kind for one in struck} == {*STRIKES, "power_loss"} and {one.follows for one in struck} == {
        "",
        "appended",
    }
    safe = [swarm_for_real(seed, PROCESS_FAULTS) for seed in range(40)]
    died = {one.kind for plan in safe for one in plan.faults if one.fault_id == FIRST_SCHEDULED}
    assert "crash" in died <= set(PROCESS_FAULTS)


def test_broken_requests_come_in_addition_to_other_faults():
    """In a part of the plans of every profile, also beside a schedule; each verb, requests of transactions
    where there are any, and held are only those that change something. Where the system has no proxy the plan
    is the same without them; a control has none."""
    kinds = tuple(REAL_FAULTS)
    without = tuple(kind for kind in kinds if kind != BROKEN_REQUEST)
    for profile in ("real", STRONG_PROFILE, TRANSACTIONS_PROFILE):
        every = [swarm_for_real(seed, kinds, profile=profile) for seed in range(30)]
        broken = {
            plan.seed: [parse(one.target) for one in plan.faults if one.kind == BROKEN_REQUEST]
            for plan in every
        }
        faults = [one for some in broken.values() for one in some]
        assert 0 < sum(map(bool, broken.values())) < len(every)
        assert {one.verb for one in faults} == {*VERBS} and not any(one.one_in > 1 for one in faults)
        assert not READS & {one.api for one in faults if one.verb in HOLDS}
        assert ("EndTxn" in {one.api for one in faults}) is (profile == TRANSACTIONS_PROFILE)
        scheduled = [plan for plan in every if any(one.fault_id == FIRST_SCHEDULED for one in plan.faults)]
        assert any(broken[plan.seed] for plan in scheduled)
    for plan in plans()[:30]:
        others = tuple(one for one in plan.faults if one.kind != BROKEN_REQUEST)
        assert swarm_for_real(plan.seed, without).faults == others
        controlled = swarm_for_real(plan.seed, kinds, "acks-1")
        assert not any(one.kind == BROKEN_REQUEST for one in controlled.faults)


def order_of(plan, kinds=tuple(REAL_FAULTS)):
    """The order of the schedule of a plan; None without one."""
    if not any(one.fault_id == FIRST_SCHEDULED for one in plan.faults):
        return None
    return next(iter(features_of(plan.seed, kinds, profile=plan.profile) & set(ORDERS)), None)


def test_a_profile_is_steered_to_orders_kinds_and_marks():
    """What is named is drawn more often, and the profile's name makes the same plan again. What the system
    cannot carry out stays out."""
    wanted = "strike.hold.write.return"
    named = f"real+partition_without_leader+{wanted}+pause+power_loss"
    plain, steered = (
        [swarm_for_real(seed, PROCESS_FAULTS, profile=name) for seed in range(30)] for name in ("real", named)
    )
    assert plan_from_json(plan_to_json(steered[3])) == steered[3] and steered[3].profile == named
    counts = [sum(order_of(plan, PROCESS_FAULTS) == wanted for plan in plans) for plans in (plain, steered)]
    assert counts[1] > counts[0]
    pauses = [sum(one.kind == "pause" for plan in plans for one in plan.faults) for plans in (plain, steered)]
    assert pauses[1] > pauses[0]
    assert {one.kind for plan in steered for one in plan.faults} <= {*PROCESS_FAULTS}
    assert steered[:5] == [swarm_for_real(seed, PROCESS_FAULTS, profile=named) for seed in range(5)]


def test_a_fault_ends_in_seconds():
    """A run waits for what it has stopped: no duration is longer than its bound, but for schedules, which say
    when their followers return."""
    for plan in plans():
        for fault in plan.faults:
            assert fault.duration_ms <= LONGEST_FAULT_MS or fault.fault_id >= FIRST_SCHEDULED


def test_controls_draw_what_has_to_be_found():
    """Each control has appends, and the faults and settings without which Kafka keeps its promise."""
    for seed in range(8):
        weak = swarm_for_real(seed, PROCESS_FAULTS, "acks-1")
        assert {one.acks for one in weak.operations if one.function == "append"} == {1}
        (died,) = (one for one in weak.faults if one.kind == "crash")
        key = died.target.removeprefix("leader of t-")
        busy = [one.at_ms for one in weak.operations if str(one.partition) == key and one.acks == 1]
        assert died.follows == "appended" and len(busy) > weak.safety_ms // WRITER_MS
        assert all(one.duration_ms < LAG_MS for one in weak.faults if one.kind == "pause")
        unclean = swarm_for_real(seed, PROCESS_FAULTS, "min-isr-1").cluster.topics[0]
        assert unclean.unclean_leader_election and unclean.min_insync_replicas == 1
        twice = swarm_for_real(seed, PROCESS_FAULTS, "duplicates")
        assert twice.client.retry_unknown and not twice.client.producer.idempotent
        lying = swarm_for_real(seed, PROCESS_FAULTS, "lying-fsync")
        losses = [one for one in lying.faults if one.kind == "power_loss"]
        assert {(one.follows, one.at_ms) for one in losses} == {("appended", losses[0].at_ms)}
        assert len(losses) == 3 and losses[0].at_ms > max(
            one.at_ms for one in lying.faults if one.kind == "lying_fsync"
        )
        assert lying.cluster.topics[0].flush_messages == 1
    assert set(CONTROLS) == {"acks-1", "unclean", "min-isr-1", "duplicates", "lying-fsync"}


def test_strong_plans_ask_for_all_that_kafka_promises():
    """Every append is idempotent and waits for all replicas in the ISR, and no election may be unclean."""
    for seed in range(10):
        plan = swarm_for_real(seed, PROCESS_FAULTS, profile=STRONG_PROFILE)
        producer = plan.client.producer
        assert producer.pipelined and producer.idempotent and not plan.client.retry_unknown
        assert {one.acks for one in plan.operations} == {-1}
        assert not plan.cluster.topics[0].unclean_leader_election and checked(plan) is plan


def test_groups_are_drawn_where_their_offsets_are_safe():
    """Members differ, seek, change their topics and commit for themselves; no disk forgets meanwhile."""
    grouped = [plan for plan in plans() if any(one.function in BEGINS for one in plan.operations)]
    assert 10 < len(grouped) < len(plans()) // 2
    assert not {fault.kind for plan in grouped for fault in plan.faults} & {*UNSAFE_KINDS}
    asked = {one.function for plan in grouped for one in plan.operations}
    assert asked >= {"subscribe", "assign", "seek", "resubscribe", "unsubscribe", "pause", "crash"}
    assert {len(plan.consumers) > 0 for plan in grouped} == {True, False}
    assert {len(plan.cluster.topics) for plan in grouped} == {1, 2}


def test_a_job_says_which_swarm_draws():
    """A campaign against a real system draws from the kinds in its job; a given plan replaces the draws."""
    job = Job(system="embedded", faults=("crash",), control="acks-1")
    assert plan_of(job, 7) == swarm_for_real(7, ("crash",), "acks-1")
    given = evolve(job, plan=plan_to_json(plans()[3]))
    assert plan_of(given, 99) == evolve(plans()[3], seed=99)
