"""A run: deterministic, whole, and never crying wolf."""

from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.asked.simulated import ASKER_NODE
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.cluster_of_run import FaultyCluster
from fencepost.run.simulated.run import FINAL_OPERATION, Run, run
from fencepost.sim.network import LinkFault, Network
from fencepost.traces import plan as plans
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan_json import plan_from_json
from tests.selfcheck.amounts import amount


def phases(trace) -> list[str]:
    """The phases that a trace went through."""
    return [event.cause for event in trace.events if event.name is Name.PHASE]


def test_a_calm_run_keeps_every_promise(small_plan):
    """Nothing breaks, so every append is acknowledged, every record is read in the end, and no judge
    objects."""
    trace = run(small_plan())
    assert phases(trace) == ["safety", "heal", "liveness", "final", "end"]
    assert combine(judge(trace)).decision is Decision.OK
    appends = [operation for operation in trace.operations if operation.function is Function.APPEND]
    assert all(operation.outcome is Outcome.OK for operation in appends)
    sent = {record.value for operation in appends for record in operation.records}
    reader = [operation for operation in trace.operations if operation.op_id > FINAL_OPERATION]
    read = {
        record.value
        for operation in reader
        if operation.function is Function.POLL
        for record in operation.records
    }
    assert read == sent


def test_an_operation_after_the_safety_phase_is_left_out_and_high_ids_stay_apart(small_plan):
    """An operation that a plan wants later than its safety phase ends is never invoked: no wait hangs on it.
    The run's own operations have ids that no operation of the plan has."""
    plan = small_plan()
    high = plans.MOST_ID - plans.OWN_IDS
    one = plans.PlannedOperation(op_id=high, process=high, at_ms=10, function="append")
    late = plans.PlannedOperation(op_id=high - 1, process=0, at_ms=plans.LONGEST_PHASE_MS, function="append")
    trace = run(evolve(plan, operations=(*plan.operations, one, late)))
    assert combine(judge(trace)).decision is Decision.OK
    ids = [operation.op_id for operation in trace.operations]
    assert len(set(ids)) == len(ids)
    assert high in ids
    assert high - 1 not in ids


def test_the_same_plan_gives_the_same_trace():
    """A run is a function of its plan: digest, operations and events are equal."""
    first, second = run(swarm(12)), run(swarm(12))
    assert first == second
    assert first.digest == second.digest != run(swarm(13)).digest


@pytest.mark.parametrize("removed", [4, 21, 37])
def test_removing_an_operation_leaves_the_delays_of_other_operations(removed, small_plan, monkeypatch):
    """Randomness is keyed by cause: without one operation, every message of every other operation takes as
    long as before. How much the run itself asks follows from its rows."""

    def delays(plan: plans.Plan) -> dict[tuple[object, ...], int]:
        taken: dict[tuple[object, ...], int] = {}
        original = Network.send

        def send(self, source, target, message, cause=()):
            def at(time, function, *args):
                if (source >= 1000 or target >= 1000) and ASKER_NODE not in (source, target):
                    key = (source, target, type(message).__name__, cause, self.sent if not cause else 0)
                    taken[key] = time - self._scheduler.now
                return original_at(time, function, *args)

            original_at = self._scheduler.at
            self._scheduler = _At(self._scheduler, at)
            try:
                original(self, source, target, message, cause)
            finally:
                self._scheduler = self._scheduler.scheduler

        monkeypatch.setattr(Network, "send", send)
        run(plan)
        monkeypatch.setattr(Network, "send", original)
        return taken

    plan = small_plan()
    without = evolve(plan, operations=tuple(o for o in plan.operations if o.op_id != removed))
    before, after = delays(plan), delays(without)
    gone = {key for key in before if key not in after}
    assert gone and all(key[3][0] >> 8 == removed for key in gone)
    assert {key: before[key] for key in after if key in before} == {
        key: after[key] for key in after if key in before
    }
    assert len(after) > 60


class _At:
    """A scheduler whose `at` is watched."""

    def __init__(self, scheduler, at):
        self.scheduler, self.at = scheduler, at

    @property
    def now(self):
        return self.scheduler.now


def test_a_cluster_that_never_comes_up_makes_no_progress(small_plan, monkeypatch):
    """Nothing is broken before the first fault: a cluster that has no leaders within the bound then makes no
    progress."""
    monkeypatch.setattr("fencepost.run.simulated.run.SETUP_MS", 1)
    verdict = combine(judge(run(small_plan())))
    assert (verdict.decision, verdict.anomaly) == (Decision.ILLEGAL, "no_progress")


def test_what_never_heals_is_no_progress(small_plan, monkeypatch):
    """The liveness phase can fail: a broker that is kept down after the faults is found."""
    plan = small_plan(
        liveness_ms=20_000,
        faults=(
            plans.Fault(fault_id=0, kind="crash", at_ms=2_000, duration_ms=1_000_000, target="broker 2"),
        ),
    )
    assert combine(judge(run(plan))).decision is Decision.OK
    monkeypatch.setattr(FaultyCluster, "_restart", lambda self, node: None)
    verdict = combine(judge(run(plan)))
    assert verdict.anomaly == "no_progress"


def test_whether_the_cluster_serves_is_not_a_question_of_the_clients_patience(small_plan):
    """The plan's clients give up before any append can be answered; the run's own client waits."""
    plan = small_plan(
        network=plans.NetworkOptions(latency_min_us=10_000, latency_max_us=12_000),
        client=plans.ClientOptions(request_timeout_ms=15, delivery_timeout_ms=300, fetch_wait_max_ms=0),
    )
    findings = [finding.anomaly for verdict in judge(run(plan)) for finding in verdict.findings]
    assert findings == []


def test_a_slow_follower_has_time_as_long_as_it_gets_records(small_plan, monkeypatch):
    """It was down and copies a segment a fetch, for longer than the bound; one that gets nothing has not."""
    topic = plans.TopicOptions(replication_factor=3, segment_bytes=90)
    plan = small_plan(
        liveness_ms=3_000,
        safety_ms=25_000,
        cluster=plans.ClusterOptions(topics=(topic,), zookeeper_session_timeout_ms=1_500),
        network=plans.NetworkOptions(latency_min_us=150_000, latency_max_us=160_000),
        client=plans.ClientOptions(request_timeout_ms=3_000),
        operations=tuple(
            plans.PlannedOperation(op_id=n, process=n % 3, at_ms=4_000 + 200 * n, function="append")
            for n in range(1, 60)
        ),
        faults=(
            plans.Fault(
                fault_id=0, kind="crash", at_ms=2_000, duration_ms=60_000, target="follower 1 of t-0"
            ),
        ),
    )
    trace = run(plan)
    assert phases(trace)[-2:] == ["final", "end"]
    started = next(
        event.time for event in trace.events if event.name is Name.PHASE and event.cause == "final"
    )
    healed = next(event.time for event in trace.events if event.name is Name.PHASE and event.cause == "heal")
    assert started - healed > 2 * 3_000 * 1_000_000
    monkeypatch.setattr(Run, "_copied", lambda self: 0)
    assert combine(judge(run(plan))).anomaly == "no_progress"


def test_a_network_that_loses_too_much_settles_at_last(small_plan, monkeypatch):
    """How often a message must be sent again has no bound: where nothing moves, chance ends, and the run is
    judged by what happens then."""
    plan = small_plan(liveness_ms=5_000, network=plans.NetworkOptions(loss_ppm=1))
    heal = FaultyCluster.heal

    def loses_all(self):
        self.world.network._loss_ppm = 1_000_000
        self.world.network._refresh(LinkFault(links=frozenset(self.world.network._links)))
        heal(self)

    monkeypatch.setattr(FaultyCluster, "heal", loses_all)
    trace = run(plan)
    assert phases(trace) == ["safety", "heal", "liveness", "settled", "final", "end"]
    assert combine(judge(trace)).anomaly != "no_progress"
    monkeypatch.setattr(Network, "settle", lambda self: None)
    assert combine(judge(run(plan))).anomaly == "no_progress"


def test_a_fault_outside_the_budget_is_skipped_and_recorded(small_plan):
    """The budget is applied at onset: with one broker down, a second crash is skipped and the trace says
    why."""
    faults = tuple(
        plans.Fault(
            fault_id=number,
            kind="crash",
            at_ms=1_000 + number,
            duration_ms=4_000,
            target=f"broker {number + 1}",
        )
        for number in range(2)
    )
    trace = run(small_plan(faults=faults, budget=plans.BudgetOptions(brokers_down=1)))
    began = [event.node for event in trace.events if event.name is Name.FAULT_BEGAN]
    skipped = [event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED]
    assert began == [1]
    assert len(skipped) == 1 and "1 brokers are down, at most 1 may be" in skipped[0]


def test_loss_of_every_disk_turns_no_loss_into_loss_allowed(small_plan):
    """Claims follow from recorded facts: when every ISR member loses its unsynced tail the loss is allowed,
    and named; without the claim it is a finding."""
    faults = tuple(
        plans.Fault(
            fault_id=number, kind="power_loss", at_ms=5_000, duration_ms=1_000, target=f"broker {number + 1}"
        )
        for number in range(3)
    )
    plan = small_plan(seed=0, faults=faults, budget=plans.BudgetOptions(brokers_down=3, isr_disks_lost=3))
    trace = run(plan)
    assert trace.claims.loss and trace.claims.reasons
    assert combine(judge(trace)).decision is Decision.OK
    strict = evolve(trace, claims=evolve(trace.claims, loss=(), content_by_epoch=False))
    assert combine(judge(strict, ("log", "invariants"))).decision is Decision.ILLEGAL


@pytest.mark.parametrize("first", range(0, amount(15, 60), 15))
def test_healthy_seeds_find_nothing(first):
    """The unmodified implementation never shows an anomaly under the general swarm (the long sweep runs 2,000
    seeds)."""
    for seed in range(first, first + 15):
        verdict = combine(judge(run(swarm(seed))))
        assert verdict.decision is Decision.OK, (seed, verdict)


def test_a_group_beyond_a_record_that_retention_deleted_has_caught_up() -> None:
    """Rule (found by the profile everything, seed 710127): the last record was deleted before the group was
    stable. Its members read beyond it, get nothing, and show no position: that is progress all the same."""
    trace = run(swarm(710127, "default"))
    assert not [event.cause for event in trace.events if event.name is Name.LIVENESS_FAILED]


def test_a_broker_that_leads_what_is_no_longer_its_own_is_restarted() -> None:
    """Rule (of a plan of the swarm, shortened): a partition of __consumer_offsets was moved away from its
    leader while that had no session, so the controller never stopped it. Its group would stay there for ever,
    in Kafka, too, until an operator restarts the broker; the run does."""
    trace = run(plan_from_json((Path(__file__).parent / "moved_without_session.json").read_text()))
    assert not [event.cause for event in trace.events if event.name is Name.LIVENESS_FAILED]
    healed = next(
        event.time for event in trace.events if event.name is Name.PHASE and event.cause == "liveness"
    )
    assert [
        event.node
        for event in trace.events
        if event.name is Name.BROKER_STATE
        and event.cause == "PendingControlledShutdown"
        and event.time > healed
    ] == [3]


# Processes that consume, transform and produce in transactions, in the simulated cluster.


def plan(*lives, version=1, aborts_ppm=0, **transform):
    """Appends to t for ten seconds, and what else these operations say."""
    appends = tuple(
        plans.PlannedOperation(
            op_id=number, process=0, at_ms=number * 200, function="append", partition=number % 2, records=3
        )
        for number in range(1, 50)
    )
    options = {"transaction_timeout_ms": 3_000, "aborts_ppm": aborts_ppm} | transform
    compacted = [
        plans.TopicOptions(name=name, cleanup_policy="compact")
        for name in ("__consumer_offsets", "__transaction_state")
    ]
    return plans.Plan(
        seed=1,
        safety_ms=14_000,
        cluster=plans.ClusterOptions(
            topics=(
                plans.TopicOptions(name="t", partitions=2),
                plans.TopicOptions(name="out", partitions=2),
                *compacted,
            ),
            transactions=plans.TransactionOptions(version=version, abort_check_ms=300),
        ),
        consumer=plans.ConsumerOptions(
            session_timeout_ms=3_000, heartbeat_interval_ms=500, max_poll_records=5
        ),
        transform=plans.TransformOptions(**options),
        operations=(*appends, *lives),
    )


def transform(process, at_ms, slot=0):
    """A process begins."""
    return plans.PlannedOperation(
        op_id=500_000 + process * 100 + at_ms,
        process=process,
        at_ms=at_ms,
        function="transform",
        key="g",
        partition=slot,
    )


def other(process, at_ms, function, **fields):
    """Something happens to it."""
    return plans.PlannedOperation(
        op_id=600_000 + process * 100 + at_ms,
        process=process,
        at_ms=at_ms,
        function=function,
        key="g",
        **fields,
    )


def outcomes(trace, function):
    """How many rows of this function had which outcome."""
    return Counter(row.outcome for row in trace.operations if row.function is function)


def judged(trace):
    """All that is wrong."""
    return [verdict for verdict in judge(trace) if verdict.decision is not Decision.OK]


@pytest.mark.parametrize("version", [1, 2])
def test_each_record_is_transformed_once(version):
    """Rule (KIP-98): with aborts of the application, a crash in a transaction, and a second process that
    comes."""
    trace = run(
        plan(
            *(transform(5, 0), transform(6, 2_000, 1), other(5, 7_000, "crash"), transform(7, 8_000)),
            version=version,
            aborts_ppm=300_000,
        )
    )
    assert judged(trace) == []
    assert min(outcomes(trace, Function.TXN)[one] for one in (Outcome.OK, Outcome.FAIL)) > 3
    inputs = {
        f"t-{row.partition}@{record.offset}"
        for row in trace.operations
        if row.function is Function.POLL and row.topic == "t" and row.isolation == "read_committed"
        for record in row.records
    }
    sources = {
        outcome: Counter(
            source
            for row in trace.operations
            if row.function is Function.APPEND and row.result and row.outcome is outcome
            for source in row.result.split(" ")
        )
        for outcome in Outcome
    }
    assert len(inputs) > 100 and inputs == {*sources[Outcome.OK], *sources[Outcome.UNKNOWN]}
    assert set(sources[Outcome.OK].values()) == {1}


def test_a_process_that_was_replaced_is_fenced():
    """Rule (KIP-98): one stands still in a transaction while another takes its transactional id."""
    still = (transform(5, 0), other(5, 4_000, "pause", records=50), transform(6, 5_000))
    trace = run(plan(*still, pause_ms=300))
    assert judged(trace) == []
    errors = Counter(row.error for row in trace.operations if row.function is Function.TXN)
    assert errors["PRODUCER_FENCED"] + errors["INVALID_PRODUCER_EPOCH"] > 0, errors


def test_a_process_that_was_fenced_joins_its_group_anew():
    """Rule (T17): before it asks for committed offsets again; a coordinator that was deposed would answer
    it."""
    still = (transform(5, 0), other(5, 4_000, "pause", records=50), transform(6, 5_000))
    trace = run(plan(*still, pause_ms=300))
    assert judged(trace) == []
    rows = sorted((row for row in trace.operations if row.process == 5), key=lambda row: row.invoke_time)
    fenced = [at for at, row in enumerate(rows) if row.error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")]
    assert fenced
    names = [row.function for row in rows[fenced[-1] :]]
    assert Function.FETCH_COMMITTED in names
    assert Function.JOIN in names[: names.index(Function.FETCH_COMMITTED)]
    members = [row.member for row in rows if row.function is Function.FETCH_COMMITTED]
    assert members[-1] != members[0]


def test_what_a_crash_left_open_is_aborted_in_time():
    """Rule (KIP-98): readers of committed records get past it after transaction.timeout.ms."""
    trace = run(plan(transform(5, 0), other(5, 6_000, "crash"), pause_ms=2_000))
    assert judged(trace) == []
    phases = [event.cause for event in trace.events if event.name is Name.TRANSACTION_PHASE]
    assert "PrepareAbort" in phases


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_the_profile_is_healthy_and_replays(seed):
    """Rule (KIP-98): no judge finds anything, and the same plan gives the same digest."""
    planned = swarm(seed, "default+transactions")
    trace = run(planned)
    assert judged(trace) == []
    assert run(planned).digest == trace.digest


def test_a_plan_without_transactions_has_none():
    """Rule: nothing of it is in plans that do not ask for it."""
    assert not swarm(1, "default").cluster.has_transactions
    trace = run(evolve(plan(), operations=plan().operations[:3]))
    assert not outcomes(trace, Function.TXN)


def ended_before_and_after_settling(trace, error):
    """How transactions ended, and whether after all had settled; the failed ones with this error."""
    settled = next(event.time for event in trace.events if event.cause == "settled")
    return {
        (row.completion_time > settled, row.outcome)
        for row in trace.operations
        if row.function is Function.TXN and row.completion_time is not None and row.error in (error, None)
    }


def progressed(trace):
    """Whether each group got everything in the end."""
    return not [event for event in trace.events if event.name is Name.LIVENESS_FAILED]


def test_nobody_aborts_by_choice_when_that_keeps_a_group_from_its_end():
    """Rule (liveness): a group that aborts what it reads gets no further, however healthy the cluster is."""
    trace = run(plan(transform(5, 100), aborts_ppm=1_000_000))
    assert ended_before_and_after_settling(trace, None) == {(False, Outcome.FAIL), (True, Outcome.OK)}
    assert progressed(trace)


def test_everybody_is_patient_when_that_keeps_a_group_from_its_end():
    """Rule (liveness): where a batch takes longer than a client waits for its answer, one attempt is never
    enough (seed 43000206 of the profile transactions)."""
    planned = plan(transform(5, 100), version=2, attempts=1, transaction_timeout_ms=60_000)
    trace = run(
        evolve(
            planned,
            network=plans.NetworkOptions(latency_min_us=150_000, latency_max_us=160_000),
            consumer=evolve(planned.consumer, request_timeout_ms=900),
        )
    )
    ended = ended_before_and_after_settling(trace, "NETWORK_EXCEPTION")
    assert (False, Outcome.OK) not in ended and (True, Outcome.OK) in ended
    assert progressed(trace)
