"""The swarm: every knob is random, many are fully off, and a seed is a plan for ever."""

import pytest
from alone import alone
from attrs import evolve

from fencepost.campaign.swarm import names_again
from fencepost.campaign.swarm.bounds import REQUESTS
from fencepost.campaign.swarm.swarm import PROFILES, swarm
from fencepost.record.observed_state import ObservedState
from fencepost.record.settings import settings_of
from fencepost.run.faults.configuration_change import CHANGES, FIRST_POLICY
from fencepost.run.faults.roles import resolve
from fencepost.run.faults.table import FAULTS
from fencepost.traces.errors import FencepostError, PlanError
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import TopicOptions
from fencepost.traces.plan_json import plan_from_json, plan_to_json

SEEDS = range(200)
KNOBS_THAT_ARE_SOMETIMES_OFF = {
    "network.loss_ppm": lambda plan: plan.network.loss_ppm,
    "network.duplicate_ppm": lambda plan: plan.network.duplicate_ppm,
    "network.reorder_ppm": lambda plan: plan.network.reorder_ppm,
    "cluster.leader_imbalance_check_ms": lambda plan: plan.cluster.leader_imbalance_check_ms,
    "client.retry_unknown": lambda plan: plan.client.retry_unknown,
    "budget.isr_disks_lost": lambda plan: plan.budget.isr_disks_lost,
    "flush_messages": lambda plan: plan.cluster.topics[0].flush_messages,
    "faults": lambda plan: len(plan.faults),
    "acks below all": lambda plan: any(operation.acks != -1 for operation in plan.operations),
    "batches": lambda plan: any(operation.records > 1 for operation in plan.operations),
}
KNOBS_OF_STORAGE = {
    "retention_ms": lambda plan: plan.cluster.topics[0].retention_ms < 30_000,
    "retention_bytes": lambda plan: plan.cluster.topics[0].retention_bytes >= 0,
    "segment_ms": lambda plan: plan.cluster.topics[0].segment_ms < 30_000,
    "compact": lambda plan: "compact" in plan.cluster.topics[0].cleanup_policy,
    "delete": lambda plan: "delete" in plan.cluster.topics[0].cleanup_policy,
    "delete_records": lambda plan: any(o.function == "delete_records" for o in plan.operations),
    "tombstones": lambda plan: any(o.argument == "tombstone" for o in plan.operations),
    "latest": lambda plan: plan.client.auto_offset_reset == "latest",
}
KNOBS_THAT_VARY = {
    "safety_ms": lambda plan: plan.safety_ms,
    "partitions": lambda plan: plan.cluster.topics[0].partitions,
    "replication_factor": lambda plan: plan.cluster.topics[0].replication_factor,
    "min_insync_replicas": lambda plan: plan.cluster.topics[0].min_insync_replicas,
    "replica_lag_time_max_ms": lambda plan: plan.cluster.replica_lag_time_max_ms,
    "replica_fetch_wait_max_ms": lambda plan: plan.cluster.replica_fetch_wait_max_ms,
    "zookeeper_session_timeout_ms": lambda plan: plan.cluster.zookeeper_session_timeout_ms,
    "latency_min_us": lambda plan: plan.network.latency_min_us,
    "fsync_us": lambda plan: plan.disk.fsync_us,
    "request_timeout_ms": lambda plan: plan.client.request_timeout_ms,
    "brokers_down": lambda plan: plan.budget.brokers_down,
    "outside": lambda plan: plan.budget.outside,
    "operations": lambda plan: len(plan.operations),
    "processes": lambda plan: len({operation.process for operation in plan.operations}),
}


@pytest.fixture(scope="module")
def plans():
    """The plans of the first seeds."""
    return [swarm(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def of_storage():
    """Plans whose logs have small segments."""
    return [alone(seed, "small_segments") for seed in range(80)]


@pytest.mark.parametrize("knob", sorted(KNOBS_THAT_ARE_SOMETIMES_OFF))
def test_a_knob_is_fully_off_in_some_plans_and_on_in_others(plans, knob):
    """A knob that is always a little on hides what only shows without it."""
    values = [bool(KNOBS_THAT_ARE_SOMETIMES_OFF[knob](plan)) for plan in plans]
    assert 0 < sum(values) < len(values)


@pytest.mark.parametrize("knob", sorted(KNOBS_OF_STORAGE))
def test_a_knob_of_storage_is_on_in_some_plans_and_off_in_others(of_storage, knob):
    """Logs have every policy."""
    values = [bool(KNOBS_OF_STORAGE[knob](plan)) for plan in of_storage]
    assert 0 < sum(values) < len(values)


def test_records_have_keys_wherever_a_topic_is_compacted(of_storage):
    """And nowhere else."""
    for plan in of_storage:
        keyed = "compact" in plan.cluster.topics[0].cleanup_policy
        assert all(bool(o.key) is (keyed and o.function == "append") for o in plan.operations)


@pytest.mark.parametrize("knob", sorted(KNOBS_THAT_VARY))
def test_a_knob_varies(plans, knob):
    """No knob of the swarm is stuck."""
    assert len({KNOBS_THAT_VARY[knob](plan) for plan in plans}) > 1


def test_every_kind_of_fault_and_every_role_is_drawn(plans):
    """The swarm leaves out no kind of fault, no request and no kind of target."""
    faults = [fault for plan in plans for fault in plan.faults]
    assert {fault.kind for fault in faults} == set(FAULTS)
    roles = {"controller", "leader", "follower", "broker", "partition", "topic", "group"}
    assert {fault.target.split(" ")[0] for fault in faults} == roles
    assert any(fault.other for fault in faults) and not all(fault.other for fault in faults)


def test_a_seed_is_the_same_plan_and_survives_json(plans):
    """The plan of a seed depends on nothing else, and its JSON is the plan."""
    for seed, plan in enumerate(plans[:40]):
        assert swarm(seed) == plan
        assert plan_from_json(plan_to_json(plan)) == plan


def test_operators_have_each_kind_of_request_off_in_many_plans():
    """Each is in some plans with operators and not in others; topics of one replica, more brokers and a
    second topic are drawn."""
    plans = [swarm(seed, "default+administered") for seed in range(30)]
    for kind in REQUESTS:
        assert 0 < sum(any(fault.kind == kind for fault in plan.faults) for plan in plans) < len(plans), kind
    assert {plan.cluster.brokers for plan in plans} == {3, 4, 5}
    assert {plan.cluster.topics[0].replication_factor for plan in plans} >= {1, 2, 3}
    assert {len(plan.cluster.topics) for plan in plans} >= {1, 2}


def test_a_plan_of_few_kinds_has_no_others():
    """`--faults` narrows the draws: only these kinds of fault and request, of whatever profile, and a kind
    that is none is refused by name."""
    plans = [swarm(seed, faults=("disk_full", "reassign_grow")) for seed in range(20)]
    assert {fault.kind for plan in plans for fault in plan.faults} == {"disk_full", "reassign_grow"}
    assert not any(
        fault
        for seed in range(5)
        for fault in swarm(seed, "default+calm", faults=("add_partitions",)).faults
        if fault.kind != "add_partitions"
    )
    with pytest.raises(FencepostError, match="--list-faults"):
        swarm(0, faults=("earthquake",))


def test_planting_a_bug_changes_nothing_else():
    """A healthy run and one with a planted bug differ by the bug alone, so that they can be compared."""
    healthy, sick = plan_to_json(swarm(5)), plan_to_json(swarm(5, bugs=("KIP-101",)))
    assert sick.replace('"bugs":["KIP-101"]', '"bugs":[]') == healthy


@pytest.mark.parametrize("name", ["nonsense", "default+nonsense"])
def test_an_unknown_profile_is_refused_with_what_is_possible(name):
    """Bad input gets one sentence that names what is possible."""
    with pytest.raises(FencepostError, match=r"default\+FEATURE|transactions.*log_cut"):
        swarm(0, name)


def test_a_role_that_is_none_is_refused_by_name():
    """A target that cannot be read is an error, not a fault that never happens."""
    with pytest.raises(PlanError, match="leader of t-0"):
        resolve("the boss", ObservedState(), 3)
    assert resolve("broker 4", ObservedState(), 3) is None
    assert resolve("controller", ObservedState(), 3) is None


def test_a_controller_waits_for_its_answers(plans):
    """One that gives each request up before an answer can come never makes a leader: the plan would test
    nothing. Seed 382 draws a network that is slower than its controller is patient."""
    for plan in (*plans, swarm(382)):
        trip_us = plan.network.latency_min_us + plan.network.latency_tail_us
        assert plan.cluster.controller_request_timeout_ms * 1_000 >= 2 * trip_us


def test_a_name_is_used_again_in_some_plans_and_the_others_stay_as_they_are(plans, monkeypatch):
    """Each deletion is followed by a creation there; a topic whose replicas move keeps its name."""
    monkeypatch.setitem(PROFILES, "default", evolve(PROFILES["default"], names_again=0))
    again = {
        seed for seed, plan in enumerate(plans) if any(topic.used_again for topic in plan.cluster.topics)
    }
    deleting = {
        seed for seed, plan in enumerate(plans) if any(fault.kind == "delete_topic" for fault in plan.faults)
    }
    assert len(deleting) // 5 <= len(again) <= len(deleting) // 2
    for seed in sorted(deleting):
        plan, before = plans[seed], swarm(seed, "default")
        names = {topic.name for topic in plan.cluster.topics if topic.used_again}
        kept = tuple(fault for fault in plan.faults if fault.fault_id < names_again.FIRST)
        assert evolve(plan, cluster=before.cluster, faults=kept) == before
        assert bool(names) == (seed in again)
        for name in names:
            of = [fault.kind for fault in plan.faults if fault.target == f"topic {name}"]
            assert of.count("create_topic") >= of.count("delete_topic") > 0
            moved = (fault for fault in plan.faults if fault.kind.startswith("reassign"))
            assert not any(fault.target.startswith(f"partition {name}-") for fault in moved)


def test_groups_have_names_of_any_script(plans):
    """In a part of the plans, and then the offsets topic has one to five partitions, so that the hash of a
    name matters; all lives of one group keep its name."""
    grouped = [plan for plan in plans if any(one.function == "subscribe" for one in plan.operations)]
    names = [{one.key for one in plan.operations if one.function == "subscribe"} for plan in grouped]
    named = [one for one in names if not one & {"g1", "g2"}]
    assert 0 < len(named) < len(grouped)
    assert all(len(one) <= 2 for one in names)
    assert any(not name.isascii() for one in named for name in one)
    assert {1, 2, 3, 4, 5} == {
        topic.partitions for plan in grouped for topic in plan.cluster.topics if topic.name == OFFSETS_TOPIC
    }


def test_clients_differ_in_some_plans_and_none_is_less_patient_than_its_group_needs(plans):
    """Rule: other options are drawn by themselves: without them the plan is the same. All members name one
    assignor, but for some groups whose members come and go under one id."""
    different = [swarm(seed, "default+different+groups") for seed in range(40)]
    for plan in different:
        alone = any(one.function == "assign" for one in plan.operations)
        assert plan.clients and (plan.consumers or alone)
        for other in plan.consumers:
            assert other.session_timeout_ms >= plan.consumer.session_timeout_ms
            assert 3 * other.heartbeat_interval_ms <= other.session_timeout_ms
            assert other.static_members == plan.consumer.static_members
        assert all(other.producer.idempotent == plan.client.producer.idempotent for other in plan.clients)
    assert plan_from_json(plan_to_json(different[0])) == different[0]
    strange = [plan for plan in different if not settings_of(plan_to_json(plan), ()).assignors]
    assert 0 < len(strange) < 8 and not any(plan.consumer.static_members for plan in strange)
    both = [plan for plan in different if any(other.second_assignor for other in plan.consumers)]
    assert len(both) > 12
    alike = [plan for plan in plans[:60] if not plan.clients]
    assert 30 < len(alike) < 60 and not any(plan.consumers for plan in alike)


def test_a_process_that_comes_back_has_the_next_options():
    """Rule: process and life choose them in turn; the plan's own are the first."""
    plan = swarm(2, "default+different+groups")
    every = (plan.consumer, *plan.consumers)
    assert [plan.consumer_of(0, life) for life in range(4)] == [every[life % len(every)] for life in range(4)]
    assert plan.consumer_of(1, 0) is plan.consumers[0]
    assert plan.client_of(0) is plan.client and plan.client_of(1) is plan.clients[0]


def test_limits_hold_one_record_and_refuse_many():
    """Rule: each topic of clients takes any record alone; some appends are larger than any batch."""
    plans = [swarm(seed, "default+limited") for seed in range(20)]
    for plan in plans:
        own = [topic for topic in plan.cluster.topics if topic.name in ("t", "u")]
        assert own and all(100 <= topic.max_message_bytes <= 240 for topic in own)
        rest = [topic for topic in plan.cluster.topics if topic.name.startswith("__") or topic.name == "out"]
        assert all(topic.max_message_bytes == TopicOptions().max_message_bytes for topic in rest)
    assert sum(any(one.records > 10 for one in plan.operations) for plan in plans) > 10


def test_settings_move_both_ways():
    """Rule: settings go down and up again in one plan, on what clients write to; right after a topic is made,
    too."""
    plans = [swarm(seed, "default+moved_settings+administered") for seed in range(30)]
    made = inherited = 0
    for plan in plans:
        moved = [fault for fault in plan.faults if 7_000 <= fault.fault_id < 8_000]
        assert len(moved) > 1
        assert {fault.kind for fault in moved} == {"alter_topic"}
        assert not any("__" in fault.target or fault.target == "topic out" for fault in moved)
        inherited += sum(fault.target == "topic <default>" for fault in moved)
        begun = [fault for fault in plan.faults if fault.kind == "create_topic" and fault.fault_id < 300_000]
        for one in begun:
            made += 1
            assert any(0 <= fault.at_ms - one.at_ms <= 400 for fault in moved)
        keyed = {one.topic for one in plan.operations if one.function == "append" and one.key}
        policies = {fault.target for fault in moved if fault.parameter >= FIRST_POLICY}
        assert policies == {f"topic {topic}" for topic in keyed}, "a compacted topic takes keyed records only"
    assert made and inherited > 30
    down, up = (CHANGES.index({"max.message.bytes": limit}) for limit in ("110", "1048588"))
    assert any(
        {down, up} <= {fault.parameter for fault in plan.faults if fault.fault_id >= 7_000} for plan in plans
    )
