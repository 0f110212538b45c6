"""The swarm for systems of real processes: a seed becomes a plan whose times are of the wall clock.

Owns what is drawn for them. Must not know any system: the kinds of fault that one can carry out are given.
Draws, roles and kinds of fault are the swarm's own; only the bounds differ. A restart of Apache Kafka takes
three seconds, so that a run has few faults and lasts seconds, and the settings of brokers stay as they are.

A fifth of the plans has a targeted schedule (schedules.py). Half of these are an eclipse: followers are held,
writes go on, the leader is struck, the followers return.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from fencepost.campaign.marks.real_marks import REAL_MARKS
from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws, faults_of, requests_of, requests_on
from fencepost.campaign.swarm.group_draws import with_groups_of_real
from fencepost.campaign.swarm.late_requests import with_late_requests, with_many_transactions
from fencepost.campaign.swarm.mark_weights import with_mark_weights
from fencepost.campaign.swarm.producer_draws import with_producers
from fencepost.campaign.swarm.profiles import STEERED
from fencepost.campaign.swarm.rolling import LONG_MS, with_rolling_restarts
from fencepost.campaign.swarm.schedules import (
    FIRST_SCHEDULED,
    HOLD,
    ORDERS,
    RETURN,
    STRIKE,
    WRITE,
    WRITER_MS,
    Schedule,
    with_schedule,
    with_writer,
)
from fencepost.campaign.swarm.transaction_draws import with_transactions_of_real
from fencepost.run.faults.requests import BROKEN_REQUEST, LATE_REQUESTS
from fencepost.run.faults.table import FAULTS, kinds_for
from fencepost.sim.randomness import Randomness
from fencepost.systems.system import PROCESS_VERBS
from fencepost.traces.operations import ACKS_ALL, ACKS_LEADER, BY_TIME
from fencepost.traces.plan import (
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    Fault,
    Plan,
    PlannedOperation,
    TopicOptions,
)

ECLIPSE = f"{HOLD}.{WRITE}.{STRIKE}.{RETURN}"
"""The order in which a record of one replica is lost: half of the schedules, where nothing is learnt. With it
the last member of an ISR that loses power was found (docs/findings)."""
PROCESS_FAULTS = kinds_for(PROCESS_VERBS)[0]
"""What every system of processes can do."""
REAL = Profile(
    says="processes of this machine: few faults, times of the wall clock",
    safety_ms=(2_500, 6_000),
    operations=(150, 500),
    faults=(0, 4),
    partitions=(1, 3),
    clients=(2, 5),
    kinds=PROCESS_FAULTS,
    producers=50,
    unclean=10,
    administered=30,
    requests=(1, 3),
    orders=(*ORDERS, *(ECLIPSE for _ in ORDERS)),
    other_ends=40,
    groups=40,
    gentle=30,
    seeking=35,
    resubscribing=30,
    standalone=25,
    subscriptions=35,
    cooperative=30,
    different=30,
)
STRONG = evolve(REAL, says="as real, with acks=all and idempotent producers only", unclean=0)
TRANSACTIONS = evolve(
    STRONG,
    says="as strong, and processes that consume, transform and produce in transactions",
    groups=0,
    safety_ms=(4_000, 9_000),
    operations=(60, 200),
    transactions=100,
)
ROLLING = evolve(
    STRONG,
    says="a minute with few faults: rolling restarts, plain groups, and what is owed must come true",
    safety_ms=LONG_MS,
)
REAL_PROFILE, STRONG_PROFILE, TRANSACTIONS_PROFILE, ROLLING_PROFILE = (
    "real",
    "strong",
    "transactions",
    "rolling",
)
PROFILES: Mapping[str, Profile] = {
    REAL_PROFILE: REAL,
    STRONG_PROFILE: STRONG,
    TRANSACTIONS_PROFILE: TRANSACTIONS,
    ROLLING_PROFILE: ROLLING,
}
"""What a campaign against a real system draws from."""
DISTURBED = {LATE_REQUESTS: 40, BROKEN_REQUEST: 70}
"""Plans in a hundred with each kind of fault at the level of requests, where the system has them. Windows in
which all requests are late are for transactions only."""
DISTURBANCES = tuple(DISTURBED)
UNSAFE_KINDS = ("power_loss", "lying_fsync", "disk_full", "io_error")
"""Not drawn with transactions, and no groups with them: the topics of the coordinators have
min.insync.replicas=1, so that a power loss takes committed offsets, which nobody promised to keep."""
LIVENESS_MS = 180_000
"""How long a healed cluster may take: a restart took 11 s on a machine that forty others wanted, too."""
LONGEST_FAULT_MS = 4_000
"""Twice the time after which brokers give another one up."""
LAG_MS = 2_000
"""replica.lag.time.max.ms and the session time-out of the real clusters."""
LONGEST_DELIVERY_MS = 10_000
"""Of a pipelined append: a run waits for it."""
SCHEDULED, DARK_SCHEDULED, LEARNT = 20, 40, 60
"""Plans in a hundred with a targeted schedule: in general, where hosts can lose power, and where orders are
named that led to rare marks."""
DARK = 60
"""Of the schedules where hosts can lose power, those in a hundred in which the leader does."""
ALL_AT_ONCE = 8
"""Plans in a hundred in which every broker dies at the same moment."""
DARK_MS, MORE_MS = (2_000, 3_000), 500
"""From when on all lose power in the control lying-fsync, and how long after the next append that is
acknowledged: a disk keeps some of what was written since the last sync, so that there should be much of it.
With fixed times, and on a crowded machine, runs had no acknowledgement under the lie."""
FIRST_OF_ALL = 600
"""Fault ids of faults that hit every broker."""
CONTROLS = {
    "acks-1": "only the leader acknowledges, and it dies: records are lost",
    "unclean": "a replica outside the ISR is elected: records are lost",
    "min-isr-1": "min.insync.replicas=1: the ISR shrinks to the leader, which is replaced by an election "
    "outside the ISR; records that acks=all acknowledged are lost",
    "duplicates": "a producer without idempotence sends again what was not answered: records are twice in "
    "the log",
    "lying-fsync": "every append is synced before it is acknowledged, all disks lie about that, and all "
    "brokers lose power: records are lost",
}
"""What Kafka does not promise. A campaign with such a control is judged as if Kafka promised it, so that it
has to find it."""


def swarm_for_real(
    seed: int,
    kinds: tuple[str, ...] = PROCESS_FAULTS,
    control: str = "",
    brokers: int = 3,
    profile: str = REAL_PROFILE,
) -> Plan:
    """The plan of this seed for a system of real processes.

    Parameters:
      seed: of all draws.
      kinds: the kinds of fault that the system can carry out and the caller wants.
      control: a name of CONTROLS, or "".
      brokers: how many there are.
      profile: a name of PROFILES, and what it is steered to: "real+left_alone+hold.write.strike.return" has
        more of what leads to that mark, and of that order of a schedule.
    Returns: the plan; its topic is `t`, and what is written in transactions goes to another one.
    """
    draw, named = Draws(Randomness(seed)), profile
    profile, *wanted = named.split(STEERED)
    if profile == TRANSACTIONS_PROFILE:
        kinds = tuple(kind for kind in kinds if kind not in UNSAFE_KINDS)
    disturbed = _disturbed(draw, kinds, profile)
    kinds = tuple(kind for kind in kinds if kind in FAULTS)
    requests = tuple(kind for kind in kinds if FAULTS[kind].ask is not None)
    bounds = with_mark_weights(bounds_of(profile, (*kinds, *requests)), wanted, REAL_MARKS)
    plan = evolve(_random(draw, bounds, brokers, seed), profile=f"{named} {control}".strip())
    if profile == ROLLING_PROFILE:
        return with_rolling_restarts(plan, draw, kinds)
    plan = _with_producers(
        plan, draw, 0 if control else bounds.producers, profile != REAL_PROFILE and not control
    )
    if bounds.transactions and not control:
        plan = with_transactions_of_real(plan, draw)
        plan = with_many_transactions(plan, draw) if disturbed else plan
        plan = with_late_requests(plan, draw) if LATE_REQUESTS in disturbed else plan
    if BROKEN_REQUEST in disturbed and not control:
        from fencepost.campaign.swarm.broken_requests import with_broken_requests  # needs the extra kafka

        plan = with_broken_requests(plan, draw)
    if control:
        return _CONTROLLED[control](plan, draw)
    schedule = _schedule(draw, bounds, learnt=bool(set(wanted) & set(ORDERS)))
    if schedule is not None:
        kept = tuple(fault for fault in plan.faults if fault.kind in DISTURBANCES)
        plan = with_schedule(plan, draw, bounds, schedule, kept)
    safe = all(fault.kind not in UNSAFE_KINDS for fault in plan.faults)
    return with_groups_of_real(plan, draw, bounds) if safe and draw.chance(bounds.groups, "groups") else plan


def _random(draw: Draws, bounds: Profile, brokers: int, seed: int) -> Plan:
    """Clients that append and read, and faults and requests at random times."""
    safety_ms = draw.between(bounds.safety_ms, "safety")
    topic = _topic(draw, bounds, brokers)
    faults = _within(faults_of(draw, bounds, topic, safety_ms, brokers), safety_ms)
    if "crash" in bounds.kinds and draw.chance(ALL_AT_ONCE, "all_at_once"):
        faults = (*faults, *_all_at_once(draw, safety_ms, brokers))
    if bounds.request_kinds and draw.chance(bounds.administered, "administered"):
        asked = requests_on(draw, bounds)
        faults = (*faults, *requests_of(draw, bounds, (topic,), asked, faults, safety_ms, brokers))
    return Plan(
        seed=seed,
        safety_ms=safety_ms,
        liveness_ms=LIVENESS_MS,
        cluster=ClusterOptions(
            brokers=brokers,
            topics=(topic,),
            replica_lag_time_max_ms=LAG_MS,
            zookeeper_session_timeout_ms=LAG_MS,
        ),
        client=ClientOptions(
            request_timeout_ms=draw.between((400, 1_500), "request_timeout"),
            delivery_timeout_ms=draw.between((2_000, 6_000), "delivery_timeout"),
            retry_backoff_ms=draw.between((20, 200), "retry_backoff"),
            retry_unknown=draw.chance(15, "retry_unknown"),
            fetch_wait_max_ms=draw.between((0, 200), "fetch_wait"),
            max_poll_records=draw.between((5, 100), "max_poll"),
        ),
        budget=BudgetOptions(brokers_down=brokers, outside="allow"),
        operations=_operations(draw, bounds, topic, safety_ms),
        faults=faults,
    )


def _with_producers(plan: Plan, draw: Draws, share: int, strong: bool) -> Plan:
    """With pipelined producers in so many plans of a hundred, for which a run does not wait for ever."""
    plan = with_producers(plan, draw, share)
    plan = _strong(plan) if strong else plan
    if not plan.client.producer.pipelined:
        return plan
    delivery_ms = min(plan.client.delivery_timeout_ms, LONGEST_DELIVERY_MS)
    return evolve(plan, client=evolve(plan.client, delivery_timeout_ms=delivery_ms))


def _disturbed(draw: Draws, kinds: tuple[str, ...], profile: str) -> frozenset[str]:
    """The kinds of fault at the level of requests that this plan has, out of those that there may be."""
    shares = DISTURBED if PROFILES[profile].transactions else {BROKEN_REQUEST: DISTURBED[BROKEN_REQUEST]}
    return frozenset(
        kind for kind, share in shares.items() if kind in kinds and draw.chance(share, f"{kind}_on")
    )


def bounds_of(profile: str, kinds: tuple[str, ...]) -> Profile:
    """What is drawn from.

    Args:
        profile: a name of PROFILES.
        kinds: of fault and request; DISTURBANCES, which are drawn apart, are of no account.
    """
    known = tuple(kind for kind in kinds if kind in FAULTS)
    faults = tuple(kind for kind in known if FAULTS[kind].ask is None)
    return evolve(
        PROFILES[profile],
        kinds=faults,
        request_kinds=tuple(kind for kind in known if kind not in faults),
        faults=REAL.faults if faults else (0, 0),
    )


def features_of(
    seed: int, kinds: tuple[str, ...] = PROCESS_FAULTS, control: str = "", profile: str = REAL_PROFILE
) -> frozenset[str]:
    """What a plan has that a profile can be steered to: its kinds of fault, and the order of its schedule.

    Args:
        seed, kinds, control, profile: as swarm_for_real has them.
    """
    plan = swarm_for_real(seed, kinds, control, profile=profile)
    scheduled = any(fault.fault_id == FIRST_SCHEDULED for fault in plan.faults) and not control
    base, *wanted = profile.split(STEERED)
    bounds = with_mark_weights(bounds_of(base, kinds), wanted, REAL_MARKS)
    order = (_order(Draws(Randomness(seed)), bounds),) if scheduled else ()
    return frozenset((*(fault.kind for fault in plan.faults), *order))


def _order(draw: Draws, bounds: Profile) -> str:
    return draw.choice(list(bounds.orders), "schedule.order")


def _schedule(draw: Draws, bounds: Profile, *, learnt: bool) -> Schedule | None:
    """Of this plan; None: it has none."""
    able = "power_loss" in bounds.kinds
    if not {"pause", "crash"} <= set(bounds.kinds):
        return None
    if not draw.chance(LEARNT if learnt else DARK_SCHEDULED if able else SCHEDULED, "schedule"):
        return None
    return Schedule(order=_order(draw, bounds), dark=able and draw.chance(DARK, "schedule.dark"))


def _strong(plan: Plan) -> Plan:
    """The plan with what Kafka promises most for: idempotence, and acks of all replicas in the ISR."""
    producer = evolve(plan.client.producer, pipelined=True, idempotent=True)
    return evolve(
        plan,
        client=evolve(plan.client, producer=producer, retry_unknown=False),
        operations=tuple(evolve(one, acks=ACKS_ALL) for one in plan.operations),
    )


def _topic(draw: Draws, bounds: Profile, brokers: int) -> TopicOptions:
    copies = 2 if draw.chance(30, "replication_factor") else min(3, brokers)
    return TopicOptions(
        name="t",
        partitions=draw.between(bounds.partitions, "partitions"),
        replication_factor=copies,
        min_insync_replicas=2 if draw.chance(60, "min_insync") else 1,
        unclean_leader_election=draw.chance(bounds.unclean, "unclean"),
    )


def _within(faults: tuple[Fault, ...], safety_ms: int) -> tuple[Fault, ...]:
    """Faults that are over soon after the safety phase, and begin when there is something to hit."""
    return tuple(
        evolve(
            fault,
            at_ms=min(fault.at_ms, safety_ms * 4 // 5),
            duration_ms=min(fault.duration_ms, 1 + fault.duration_ms % LONGEST_FAULT_MS),
            parameter=fault.parameter % LONGEST_FAULT_MS
            if fault.kind == "clean_restart"
            else fault.parameter,
        )
        for fault in faults
    )


def _all_at_once(draw: Draws, safety_ms: int, brokers: int) -> tuple[Fault, ...]:
    at_ms = draw.between((safety_ms // 4, safety_ms * 3 // 4), "all_at_once.at")
    return tuple(
        Fault(
            fault_id=FIRST_OF_ALL + broker,
            kind="crash",
            at_ms=at_ms,
            duration_ms=draw.between((1, 1_000), "all_at_once.for", broker),
            target=f"broker {broker}",
        )
        for broker in range(1, brokers + 1)
    )


def _operations(
    draw: Draws, bounds: Profile, topic: TopicOptions, safety_ms: int
) -> tuple[PlannedOperation, ...]:
    count, clients = draw.between(bounds.operations, "operations"), draw.between(bounds.clients, "clients")
    appends = draw.between((50, 85), "append_share")
    weak_acks = draw.between((10, 60), "weak_acks") if draw.chance(25, "weak_acks_on") else 0
    batches = draw.chance(50, "batches")
    made = []
    for number in range(1, count + 1):
        function = "append" if draw.between((0, 99), "function", number) < appends else "poll"
        if function == "poll" and draw.chance(20, "list_offsets", number):
            function = "list_offsets"
        by_time = function == "list_offsets" and draw.chance(bounds.other_ends, "by_time", number)
        weak = function == "append" and draw.between((0, 99), "acks", number) < weak_acks
        made.append(
            PlannedOperation(
                op_id=number,
                process=draw.between((0, clients - 1), "process", number),
                at_ms=draw.between((0, safety_ms - 1), "at", number),
                function=function,
                topic=topic.name,
                partition=draw.between((0, topic.partitions - 1), "partition", number),
                acks=ACKS_LEADER if weak else ACKS_ALL,
                argument=BY_TIME if by_time else "",
                records=draw.between((1, 300), "since", number)
                if by_time
                else draw.between((1, 4), "records", number)
                if batches
                else 1,
            )
        )
    return tuple(sorted(made, key=lambda one: (one.at_ms, one.op_id)))


# ---- controls


def _eclipse(
    draw: Draws, plan: Plan, *, still_ms: tuple[int, int], back_ms: tuple[int, int]
) -> tuple[Plan, tuple[Fault, ...]]:
    """Every follower of a partition pauses, the leader dies, the followers return. still_ms: from the
    first to the second, back_ms: from the second to the third, both as bounds of a draw. The plan gets the
    time that it takes."""
    topics = plan.cluster.topics
    topic = topics[draw.between((0, len(topics) - 1), "eclipse.topic")]
    key = f"{topic.name}-{draw.between((0, topic.partitions - 1), 'eclipse.partition')}"
    begin = draw.between((300, 1_500), "eclipse.at")
    still, back = draw.between(still_ms, "eclipse.still"), draw.between(back_ms, "eclipse.back")
    pauses = tuple(
        Fault(
            fault_id=FIRST_SCHEDULED + place,
            kind="pause",
            at_ms=begin,
            duration_ms=still + back,
            target=f"follower {place} of {key}",
        )
        for place in range(1, topic.replication_factor)
    )
    died = Fault(
        fault_id=FIRST_SCHEDULED,
        kind="crash",
        at_ms=begin + still,
        duration_ms=back + draw.between((2_500, 4_500), "eclipse.away"),
        target=f"leader of {key}",
    )
    longest = max(plan.safety_ms, died.at_ms + back + 1_000)
    return evolve(plan, safety_ms=longest), (*pauses, died)


def _written_until_the_end(plan: Plan, draw: Draws, acks: int) -> Plan:
    """Appends over the whole run, all with these acks."""
    return evolve(
        plan,
        operations=tuple(
            sorted(
                (
                    evolve(
                        one,
                        acks=acks,
                        function="append" if one.function == "append" or one.op_id % 2 else one.function,
                        at_ms=draw.between((0, plan.safety_ms - 1), "rewritten", one.op_id),
                    )
                    for one in plan.operations
                ),
                key=lambda one: (one.at_ms, one.op_id),
            )
        ),
    )


def _topic_of(plan: Plan, **options: Any) -> Plan:
    (topic,) = plan.cluster.topics
    return evolve(plan, cluster=evolve(plan.cluster, topics=(evolve(topic, **options),)))


def _acks_1(plan: Plan, draw: Draws) -> Plan:
    """The leader dies after an append that it acknowledged while its followers stood still. They return
    before they have left the ISR: one of them is elected."""
    plan = _topic_of(plan, unclean_leader_election=False)
    plan, (*pauses, died) = _eclipse(draw, plan, still_ms=(900, 1_300), back_ms=(100, 300))
    died = evolve(
        died, at_ms=pauses[0].at_ms + 1, follows="appended", delay_ms=draw.between((20, 200), "eclipse.more")
    )
    plan = _written_until_the_end(evolve(plan, faults=(*pauses, died)), draw, ACKS_LEADER)
    topic, _, number = died.target.removeprefix("leader of ").rpartition("-")
    return with_writer(plan, (topic, int(number)), ACKS_LEADER, range(0, plan.safety_ms, WRITER_MS))


def _unclean(plan: Plan, draw: Draws) -> Plan:
    """Two replicas, so that a majority of combined controllers runs while one of them is paused."""
    plan = _topic_of(plan, unclean_leader_election=True, min_insync_replicas=1, replication_factor=2)
    plan, eclipse = _eclipse(draw, plan, still_ms=(3_500, 5_000), back_ms=(0, 200))
    return _written_until_the_end(evolve(plan, faults=eclipse), draw, draw.between((0, 1), "strong") * -2 + 1)


def _min_isr_1(plan: Plan, draw: Draws) -> Plan:
    return _written_until_the_end(_unclean(plan, draw), draw, ACKS_ALL)


def _duplicates(plan: Plan, draw: Draws) -> Plan:
    plan = _topic_of(plan, unclean_leader_election=False)
    pauses = tuple(
        Fault(
            fault_id=number,
            kind="pause",
            at_ms=draw.between((200, 3_000), "stall.at", number),
            duration_ms=draw.between((500, 1_200), "stall.for", number),
            target=f"leader of t-{draw.between((0, plan.cluster.topics[0].partitions - 1), 'stall', number)}",
        )
        for number in range(2)
    )
    client = evolve(
        plan.client,
        retry_unknown=True,
        request_timeout_ms=draw.between((200, 400), "impatient"),
        delivery_timeout_ms=6_000,
    )
    return _written_until_the_end(evolve(plan, faults=pauses, client=client), draw, ACKS_ALL)


def _lying_fsync(plan: Plan, draw: Draws) -> Plan:
    """Without the lie such a topic keeps what it acknowledged: a flush after every message, and all replicas
    in the ISR."""
    plan = _topic_of(plan, unclean_leader_election=False, min_insync_replicas=2, flush_messages=1)
    plan = evolve(plan, safety_ms=max(plan.safety_ms, DARK_MS[1] + 1_000))
    brokers = range(1, plan.cluster.brokers + 1)
    lies = tuple(
        Fault(
            fault_id=broker,
            kind="lying_fsync",
            at_ms=draw.between((200, 600), "lie.at", broker),
            duration_ms=plan.safety_ms,
            target=f"broker {broker}",
        )
        for broker in brokers
    )
    dark_ms = draw.between(DARK_MS, "dark.at")
    losses = tuple(
        Fault(
            fault_id=FIRST_OF_ALL + broker,
            kind="power_loss",
            at_ms=dark_ms,
            duration_ms=draw.between((1, 1_000), "dark.for", broker),
            target=f"broker {broker}",
            follows="appended",
            delay_ms=MORE_MS,
        )
        for broker in brokers
    )
    return _written_until_the_end(evolve(plan, faults=(*lies, *losses)), draw, ACKS_ALL)


_CONTROLLED = {
    "acks-1": _acks_1,
    "unclean": _unclean,
    "min-isr-1": _min_isr_1,
    "duplicates": _duplicates,
    "lying-fsync": _lying_fsync,
}
