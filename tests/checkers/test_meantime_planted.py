"""Each rule of the meantime convicts a fault that was put into the implementation's source, in a run that
shows nothing without it."""

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest
from attrs import evolve

from fencepost.traces.plan import (
    BudgetOptions,
    ClusterOptions,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    ProducerOptions,
    TopicOptions,
)
from tools.mutants.subjects import module_of
from tools.mutants.trial import plant
from tools.mutation.checkers import TOP

APPENDS = tuple(
    PlannedOperation(op_id=n, process=n % 3, at_ms=400 * n, function="append" if n % 3 else "poll")
    for n in range(1, 100)
)
CLUSTER = ClusterOptions(
    topics=(TopicOptions(partitions=2),),
    zookeeper_session_timeout_ms=1_500,
    replica_lag_time_max_ms=3_000,
    replica_fetch_backoff_ms=200,
    high_watermark_checkpoint_interval_ms=500,
    isr_change_propagation_ms=500,
)
MEMBERS = (
    PlannedOperation(op_id=1_000, process=5, at_ms=500, function="subscribe", key="g"),
    PlannedOperation(op_id=1_001, process=6, at_ms=8_000, function="subscribe", key="g"),
    PlannedOperation(op_id=1_002, process=6, at_ms=11_000, function="unsubscribe", key="g"),
    PlannedOperation(op_id=1_003, process=6, at_ms=14_000, function="subscribe", key="g"),
)
OFFSETS = TopicOptions(name="__consumer_offsets", cleanup_policy="compact")
QUICK_MEMBERS = ConsumerOptions(
    session_timeout_ms=2_000, heartbeat_interval_ms=400, max_poll_interval_ms=4_000
)


def lone_faults() -> Plan:
    """A follower, a leader and a controller go one after another; a session ends."""
    hits = (
        ("follower 1 of t-0", 2_000, 9_000),
        ("leader of t-0", 15_000, 9_000),
        ("controller", 28_000, 8_000),
    )
    faults = tuple(
        Fault(fault_id=n, kind="crash", at_ms=at, duration_ms=long, target=target)
        for n, (target, at, long) in enumerate(hits)
    )
    ends = Fault(fault_id=9, kind="expire_session", at_ms=41_000, duration_ms=1, target="broker 2")
    asked = Fault(fault_id=1_000, kind="preferred_election", at_ms=13_000, duration_ms=0, target="topic t")
    return Plan(seed=1, safety_ms=55_000, cluster=CLUSTER, operations=APPENDS, faults=(*faults, ends, asked))


def two_fall() -> Plan:
    """Both followers, and then the leader while one of them comes back."""
    hits = (
        ("follower 1 of t-0", 2_000, 25_000),
        ("follower 2 of t-0", 2_100, 7_000),
        ("leader of t-0", 8_900, 15_000),
    )
    faults = tuple(
        Fault(fault_id=n, kind="crash", at_ms=at, duration_ms=long, target=target)
        for n, (target, at, long) in enumerate(hits)
    )
    budget = BudgetOptions(brokers_down=3)
    return Plan(seed=1, safety_ms=40_000, cluster=CLUSTER, operations=APPENDS, faults=faults, budget=budget)


def members() -> Plan:
    """Consumers come and go, and nothing breaks."""
    cluster = ClusterOptions(
        topics=(TopicOptions(partitions=2), OFFSETS), groups=GroupOptions(initial_rebalance_delay_ms=500)
    )
    return Plan(
        seed=1, safety_ms=45_000, cluster=cluster, consumer=QUICK_MEMBERS, operations=(*APPENDS, *MEMBERS)
    )


def old_records() -> Plan:
    """Appends for a while, and then none, until all records are older than retention.ms."""
    topic = TopicOptions(partitions=2, segment_bytes=300, retention_ms=9_000)
    cluster = ClusterOptions(
        topics=(topic,),
        zookeeper_session_timeout_ms=1_500,
        replica_lag_time_max_ms=3_000,
        replica_fetch_backoff_ms=200,
        log_retention_check_interval_ms=500,
    )
    early = tuple(one for one in APPENDS if one.at_ms < 30_000)
    return Plan(seed=1, safety_ms=50_000, cluster=cluster, operations=early)


def handovers() -> Plan:
    """A consumer comes, leaves and comes again, long after the first one; nothing breaks."""
    cluster = ClusterOptions(
        topics=(TopicOptions(partitions=2), OFFSETS),
        zookeeper_session_timeout_ms=1_500,
        replica_lag_time_max_ms=3_000,
        replica_fetch_backoff_ms=200,
        groups=GroupOptions(initial_rebalance_delay_ms=500),
    )
    moves = tuple(evolve(one, at_ms=one.at_ms + 14_000 * (one.process == 6)) for one in MEMBERS)
    consumer = evolve(QUICK_MEMBERS, processing_ms=10)
    return Plan(seed=1, safety_ms=45_000, cluster=cluster, consumer=consumer, operations=(*APPENDS, *moves))


def spread() -> Plan:
    """As `members`, with several partitions for groups."""
    plan = members()
    topics = (TopicOptions(partitions=2), evolve(OFFSETS, partitions=3))
    return evolve(plan, cluster=evolve(plan.cluster, topics=topics))


def committing() -> Plan:
    """As `members`, with a commit after each poll."""
    plan = members()
    return evolve(plan, consumer=evolve(plan.consumer, commit="sync"))


def batches() -> Plan:
    """As `lone_faults`, with producers that have several batches in flight."""
    plan = lone_faults()
    producer = ProducerOptions(pipelined=True, idempotent=True, linger_ms=20)
    return evolve(plan, client=evolve(plan.client, producer=producer))


IMPL = "fencepost/impl"
ELECTIONS, ISR = f"{IMPL}/controller/elections.py", f"{IMPL}/replication/isr.py"
DEAD = "dead = [member for member in state.isr if member in gone and member != state.leader]"
PREPARES = "if group.phase is GroupPhase.PREPARING:\n                    error ="
HEARD = "                self.heard(group, request.member_id)\n                if"
LIVES = "if state.leader in live:\n            return None\n        unclean"
MEMBERSHIP = f"{IMPL}/coordinator/membership.py"
RETENTION = f"{IMPL}/log/retention.py"
LEADER = f"{IMPL}/replication/leader.py"
REFUSES = "if error is not NO_ERROR:\n            self._produced(source, request, error)\n"
ANSWERS = "self._answer_produce(delayed, error)"
WAITED = "elif partition.high_watermark < delayed.required_offset"
COMMITS = "self.fetcher.positions) if offsets is None else offsets\n        if what:\n            kind"
PLANTED = [
    (
        "needless_election",
        lone_faults,
        ELECTIONS,
        "return choice if choice and choice[0] != state.leader else None",
        "return choice",
    ),
    ("needless_removal", lone_faults, ELECTIONS, DEAD, DEAD.replace("member in gone and ", "")),
    ("late_removal", lone_faults, ELECTIONS, DEAD, "dead = []"),
    ("late_election", lone_faults, ELECTIONS, LIVES, LIVES.replace(" in live", "")),
    ("late_decision", lone_faults, ISR, "self._notify_later(partition.key)", "pass"),
    (
        "stale_checkpoint",
        lone_faults,
        f"{IMPL}/log/checkpoint/checkpoint_file.py",
        "    file.append(content)\n",
        "",
    ),
    (
        "slow_registration",
        lone_faults,
        f"{IMPL}/broker/registration.py",
        "if not self.paths_made:",
        "if self.paths_made:\n            return\n        else:",
    ),
    ("slow_rebalance", members, MEMBERSHIP, PREPARES, PREPARES.replace("PREPARING", "EMPTY")),
    ("needless_rebalance", members, MEMBERSHIP, PREPARES, PREPARES.replace("PREPARING", "EMPTY")),
    ("unclean_election", two_fall, ELECTIONS, "electable, unclean=unclean)", "electable, unclean=True)"),
    (
        "slow_commit",
        lone_faults,
        f"{IMPL}/replication/high_watermark.py",
        "if lowest <= known:",
        "if lowest <= known or len(partition.isr) > 2:",
    ),
    ("needless_expulsion", members, MEMBERSHIP, HEARD, "                if"),
    (
        "needless_reprocessing",
        handovers,
        f"{IMPL}/client/consumer/consumer.py",
        'if self.options.commit == "auto" and positions and member:',
        "if not positions and member:",
    ),
    ("early_deletion", old_records, RETENTION, "now_ms - options.retention_ms", "now_ms"),
    ("late_deletion", old_records, RETENTION, "0 <= latest < now_ms", "0 <= now_ms < latest"),
    (
        "needless_retry",
        old_records,
        f"{IMPL}/replication/leader.py",
        f"{WAITED}:",
        f"{WAITED} + 4 * (partition.high_watermark > 32):",
    ),
    (
        "needless_timeout",
        old_records,
        LEADER,
        ANSWERS,
        f"delayed.base_offset == 40 or {ANSWERS}",
    ),
    ("misplaced_group", spread, f"{IMPL}/coordinator/records.py", "abs(number) %", "abs(number + 1) %"),
    ("unanswered_request", lone_faults, LEADER, REFUSES, "if error is not NO_ERROR:\n"),
    (
        "wrong_answer",
        lone_faults,
        LEADER,
        "offset, epoch = end, partition",
        "offset, epoch = end - 1, partition",
    ),
    (
        "stale_belief",
        lone_faults,
        f"{IMPL}/broker/control_gate.py",
        "max(self.controller_epoch, request.controller_epoch)",
        "request.controller_epoch - 1",
    ),
    (
        "replicas_disagree",
        lone_faults,
        f"{IMPL}/replication/fetcher.py",
        "partition.set_high_watermark(\n",
        "partition.is_leader or partition.leader_epoch > 1 or partition.set_high_watermark(\n",
    ),
    (
        "group_not_stored",
        members,
        f"{IMPL}/coordinator/group.py",
        "generation=self.generation,",
        "generation=self.generation + 1,",
    ),
    (
        "wrong_request",
        lone_faults,
        f"{IMPL}/replication/fetcher.py",
        "if following.asked_epoch < 0:\n",
        "if False:\n",
    ),
    (
        "wrong_answer",
        lone_faults,
        LEADER,
        "epoch=epoch, end_offset=end_offset)",
        "epoch=epoch, end_offset=end_offset + 1)",
    ),
    (
        "contradictory_state",
        lone_faults,
        LEADER,
        "        if worth_it:\n            self.purgatory",
        "        if worth_it and delayed.request.replica_id < 0:\n            self.purgatory",
    ),
    (
        "wrong_row",
        lone_faults,
        f"{IMPL}/client/client.py",
        "= response.leader_epoch, response.log_start_offset",
        "= response.leader_epoch, response.base_offset",
    ),
    (
        "wrong_row",
        batches,
        f"{IMPL}/client/producer/completion.py",
        "log_start_offset=response.log_start_offset if",
        "log_start_offset=response.base_offset if",
    ),
    (
        "wrong_request",
        batches,
        f"{IMPL}/client/producer/producer.py",
        "leader = None if line.stale else",
        "leader = None if False else",
    ),
    (
        "missing_commit",
        committing,
        f"{IMPL}/client/consumer/consumer.py",
        COMMITS,
        COMMITS.replace("offsets is None", "offsets"),
    ),
]


LOADED = ("fencepost.impl", "fencepost.sim", "fencepost.campaign", "fencepost.systems")
"""What is imported anew where a fault was put into a source."""


def _anomalies(answers: Connection, plan: Plan, file: str, before: str, after: str) -> None:
    source = (TOP / file).read_text(encoding="utf-8")
    assert source.count(before) == 1, f"{file} has {before!r} {source.count(before)} times"
    for name in [name for name in sys.modules if name.startswith(LOADED)]:
        del sys.modules[name]
    plant(module_of(file), source.replace(before, after).encode(), file)
    answers.send(_found(plan))


def _found(plan: Plan) -> set[str]:
    from fencepost.campaign.run.run import run
    from fencepost.checkers.judges import judge

    return {finding.anomaly for verdict in judge(run(plan)) for finding in verdict.findings}


@pytest.mark.parametrize(
    "plan", [lone_faults, members, two_fall, old_records, handovers, spread, committing, batches]
)
def test_nothing_is_found_without_a_fault_in_the_source(plan: Callable[[], Plan]) -> None:
    """Rule: a judge that convicts the healthy implementation convicts nothing."""
    assert _found(plan()) == set()


@pytest.mark.parametrize(
    ("anomaly", "plan", "file", "before", "after"),
    PLANTED,
    ids=[f"{one[0]}-{number}" for number, one in enumerate(PLANTED)],
)
def test_a_rule_convicts(anomaly: str, plan: Callable[[], Plan], file: str, before: str, after: str) -> None:
    """Rule (STYLE 12): nothing is trusted until it has failed on purpose."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_anomalies, args=(theirs, plan(), file, before, after))
    process.start()
    theirs.close()
    try:
        assert anomaly in ours.recv()
    finally:
        process.join()
