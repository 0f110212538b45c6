"""Consumer groups in the swarm: what is drawn for coordinators, consumers, and the lives of their processes.

Owns the draws. Must not know bugs: nothing here is a scenario. Rebalances roll because processes come, go,
crash and pause all the time, and a part of the faults is aimed at the coordinators of the groups, so
that coordinators fail in every state of a group.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.run.faults.table import FAULTS
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import (
    ASSIGNORS,
    ConsumerOptions,
    Fault,
    GroupOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)

*EAGER, COOPERATIVE = ASSIGNORS
FIRST_OPERATION = 500_000
"""Op ids of what consumer processes are asked to do."""
FIRST_MANAGED = 8_000
"""Fault ids of what operators ask of groups."""
FIRST_INTENTION = 550_000
"""And of what their applications do besides."""
FIRST_OWN = 10
"""Numbers of groups that only commit, one of each process."""
SEEKS = ("", "", "earliest", "earliest", "latest", "latest", "by_time")
FIRST_MOVE = 5_000
"""Fault ids of requests of operators for the offsets topic."""
GROWS = "add_partitions"
FRESH_MS = (300, 4_000)
"""metadata.max.age.ms where a topic grows. The default is longer than a run waits for progress."""
FAR_US, FAR_TAIL_US = 150_000, 50_000
"""The longest latencies of networks that are neither stormy nor those of quick elections."""
REBALANCE_TRIPS = 16
"""Messages that follow each other from a member's JoinGroup to its first heartbeat in the generation, records
of the assignment included, and as many again."""
MOVES = ("reassign_move", "reassign_grow", "reassign_reorder")
"""What operators ask for the topics of coordinators, and for the output of transactions."""
NAMES = ("orders", "payments-v2.eu", "größe", "注文", "😀")
"""Beginnings of names of groups: in one, two and four bytes of UTF-8, the last with two units of UTF-16."""
BEGIN = ("subscribe", "transform")
LONGEST_MS = 15_000
"""The most that consumers which differ wait longer: a run waits a minute for progress."""
SECOND = "s"
"""The topic that some consumers read besides, or instead."""
TOPIC_SETS = ("t", "t,s", "t,s", "s")
"""What a consumer subscribes to, each as likely as the others."""
MOVED = ("append", "poll", "list_offsets")
ELSEWHERE, KEEPING = 35, 60
"""Of a hundred operations on the first topic: how many are on the second one. Of a hundred members that
change their topics: how many stay members meanwhile."""
SESSION_OF_REAL_MS = 2_000
STYLES = ["auto", "auto", "sync", "sync", "async", "async", "before"]


def with_groups(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with consumer groups, in as many plans of a hundred as the profile says; in the others the
    plan as it is."""
    if not bounds.groups or not draw.chance(bounds.groups, "groups"):
        return plan
    offsets, named = offsets_topic(draw), draw.chance(bounds.named, "groups.named")
    if named:
        offsets = evolve(offsets, partitions=draw.between((1, 5), "groups.named_partitions"))
    slow_ms = slow_ms_of(plan)
    cluster = evolve(
        plan.cluster, topics=(*plan.cluster.topics, offsets), groups=coordinator_options(draw, slow_ms)
    )
    consumer = consumer_options(plan, draw, slow_ms)
    if not slow_ms and draw.chance(bounds.busy, "groups.busy"):
        consumer = _busy(consumer, draw)
    if draw.chance(bounds.seeking, "seeking") and draw.chance(60, "seeking.briefly"):
        consumer = evolve(consumer, poll_timeout_ms=draw.between((5, 120), "seeking.poll_timeout"))
    lives = _with_intentions(_lives(plan, draw, bounds), plan, draw, bounds)
    if named:
        lives = tuple(evolve(one, key=_name(draw, one.key)) for one in lives)
    return evolve(
        plan,
        cluster=cluster,
        consumer=consumer,
        operations=(*plan.operations, *lives),
        faults=(
            *(_aimed(fault, draw, offsets) for fault in plan.faults),
            *moves_of(plan, draw, (offsets,), bounds, "groups", FIRST_MOVE),
        ),
    )


def with_groups_of_real(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan of a real system with consumer groups: its own brokers have the coordinators.
    Sessions are not so short that a crowded machine ends them.

    Args:
        plan: has one topic.
        draw: of its seed.
        bounds: the profile.
    """
    drawn = consumer_options(plan, draw, 0)
    consumer = evolve(
        drawn,
        session_timeout_ms=drawn.session_timeout_ms + SESSION_OF_REAL_MS,
        max_poll_interval_ms=drawn.max_poll_interval_ms + SESSION_OF_REAL_MS,
        request_timeout_ms=drawn.request_timeout_ms + 1_000,
        metadata_max_age_ms=draw.between(FRESH_MS, "consumer.metadata_age"),
    )
    lives = _with_intentions(_lives(plan, draw, bounds), plan, draw, bounds)
    plan = evolve(plan, consumer=consumer, operations=(*plan.operations, *lives))
    if draw.chance(bounds.subscriptions, "subscriptions_on"):
        plan = with_subscriptions(plan, draw)
    if draw.chance(bounds.cooperative, "cooperative"):
        plan = with_cooperation(plan)
    return with_different_consumers(plan, draw) if draw.chance(bounds.different, "different") else plan


def slow_ms_of(plan: Plan) -> int:
    """How long a message takes where that is longer than in the profile groups, 0 elsewhere. A session that
    ends before a rebalance of a few round trips can proves nothing: the group begins anew for ever, in Kafka
    too."""
    network = plan.network
    slow = network.latency_min_us > FAR_US or network.latency_tail_us > FAR_TAIL_US
    return (network.latency_min_us + network.latency_tail_us) // 1_000 if slow else 0


def offsets_topic(draw: Draws) -> TopicOptions:
    """__consumer_offsets, with small segments in half of the plans."""
    small = draw.chance(50, "groups.small_segments")
    return TopicOptions(
        name=OFFSETS_TOPIC,
        partitions=draw.between((1, 2), "groups.partitions"),
        replication_factor=draw.between((2, 3), "groups.replication_factor"),
        min_insync_replicas=2 if draw.chance(20, "groups.min_insync") else 1,
        cleanup_policy="compact",
        segment_bytes=draw.between((300, 4_000), "groups.segment_bytes") if small else 1 << 20,
        min_cleanable_dirty_ppm=draw.between((0, 500_000), "groups.dirty"),
        delete_retention_ms=draw.between((0, 20_000), "groups.delete_retention"),
    )


def coordinator_options(draw: Draws, slow_ms: int) -> GroupOptions:
    """Of the coordinators. slow_ms: `slow_ms_of` the plan."""
    expires = draw.chance(35, "groups.expiry")
    return GroupOptions(
        initial_rebalance_delay_ms=draw.between((0, 1_500), "groups.initial_delay"),
        offsets_retention_ms=draw.between((1_000, 8_000), "groups.retention") if expires else 604_800_000,
        offsets_retention_check_ms=draw.between(
            (100, 1_500) if expires else (500, 5_000), "groups.retention_check"
        ),
        offsets_commit_timeout_ms=draw.between((500, 5_000), "groups.commit_timeout") + 4 * slow_ms,
        offsets_load_buffer_bytes=draw.between((200, 3_000), "groups.load_buffer")
        if draw.chance(60, "groups.load_buffer_on")
        else 1 << 20,
        load_step_ms=draw.between((1, 400), "groups.load_step")
        if draw.chance(50, "groups.load_step_on")
        else 0,
        unload_ms=draw.between((1, 3_000), "groups.unload") if draw.chance(50, "groups.unload_on") else 0,
    )


def consumer_options(plan: Plan, draw: Draws, slow_ms: int) -> ConsumerOptions:
    """Of the consumers.

    Args:
        plan: what they consume in.
        draw: the seed's draws.
        slow_ms: `slow_ms_of` the plan.
    """
    session_ms = draw.between((800, 5_000), "consumer.session")
    fresh = any(fault.kind == GROWS for fault in plan.faults) or draw.chance(30, "consumer.fresh")
    return ConsumerOptions(
        session_timeout_ms=session_ms + REBALANCE_TRIPS * slow_ms,
        heartbeat_interval_ms=draw.between((session_ms // 6, session_ms // 3), "consumer.heartbeat"),
        max_poll_interval_ms=draw.between((1_500, 6_000), "consumer.max_poll_interval")
        + REBALANCE_TRIPS * slow_ms,
        assignor=draw.choice(list(EAGER), "consumer.assignor"),
        static_members=draw.chance(25, "consumer.static"),
        commit=draw.choice(STYLES, "consumer.commit"),
        auto_commit_interval_ms=draw.between((200, 5_000), "consumer.auto_commit"),
        processing_ms=draw.between((0, 400), "consumer.processing"),
        max_poll_records=draw.between((3, 30), "consumer.max_poll_records"),
        poll_timeout_ms=draw.between((200, 1_500), "consumer.poll_timeout"),
        request_timeout_ms=draw.between((500, 2_000), "consumer.request_timeout") + 4 * slow_ms,
        retry_backoff_ms=draw.between((20, 300), "consumer.backoff"),
        metadata_max_age_ms=draw.between(FRESH_MS, "consumer.metadata_age") if fresh else 300_000,
        late_commits=draw.chance(40, "consumer.late_commits"),
    )


def _busy(consumer: ConsumerOptions, draw: Draws) -> ConsumerOptions:
    """The same consumers with short sessions and much work."""
    session_ms = draw.between((600, 1_500), "busy.session")
    work_ms = draw.between((session_ms, 2 * session_ms), "busy.processing")
    return evolve(
        consumer,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=draw.between((session_ms // 6, session_ms // 3), "busy.heartbeat"),
        processing_ms=work_ms,
        max_poll_interval_ms=consumer.max_poll_interval_ms + 2 * work_ms,
    )


def with_managed_groups(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with operators who delete groups and their offsets, and remove static members: mostly when a
    consumer has just left, or behind a step of the group. Groups of transactions keep theirs: what is
    processed again is written again."""
    ends = [one for one in plan.operations if one.function in ("unsubscribe", "crash")]
    members = {
        one.process: one.key for one in plan.operations if one.key and one.function in ("subscribe", "assign")
    }
    static = plan.consumer.static_members
    kinds = [kind for kind in bounds.group_requests if static or kind != "remove_member"]
    found = []
    for number in range(draw.between((1, 8), "managed") if members and kinds else 0):
        process = sorted(members)[draw.between((0, len(members) - 1), "managed.who", number)]
        kind = draw.choice(kinds, "managed.kind", number)
        at_ms = draw.between((0, plan.safety_ms), "managed.at", number)
        left = [one.at_ms for one in ends if one.process == process]
        if left and draw.chance(60, "managed.left", number):
            at_ms = left[draw.between((0, len(left) - 1), "managed.end", number)]
            at_ms += draw.between((0, 2 * plan.consumer.session_timeout_ms), "managed.after", number)
        follows = draw.chance(30, "managed.follow", number)
        found.append(
            Fault(
                fault_id=FIRST_MANAGED + number,
                kind=kind,
                at_ms=min(at_ms, plan.safety_ms),
                duration_ms=0,
                target=f"group {members[process]}",
                parameter=process
                if kind == "remove_member"
                else draw.between(FAULTS[kind].parameter, "managed.parameter", number),
                follows="group_phase" if follows else "",
                delay_ms=draw.between((0, 300), "managed.delay", number) if follows else 0,
            )
        )
        if "crash" in bounds.kinds and draw.chance(35, "managed.fails", number):  # the next one must know it
            found.append(
                Fault(
                    fault_id=FIRST_MANAGED + 100 + number,
                    kind="crash",
                    at_ms=found[-1].at_ms + draw.between((50, 2_000), "managed.fails_after", number),
                    duration_ms=draw.between((500, 6_000), "managed.down", number),
                    target=f"leader of {OFFSETS_TOPIC}-0",
                )
            )
    return evolve(plan, faults=(*plan.faults, *found))


def with_cooperation(plan: Plan) -> Plan:
    """The plan with cooperative rebalances (KIP-429), if it has groups."""
    if not any(operation.function in BEGIN for operation in plan.operations):
        return plan
    return evolve(plan, consumer=evolve(plan.consumer, assignor=COOPERATIVE))


def with_subscriptions(plan: Plan, draw: Draws) -> Plan:
    """The plan with a second topic and members that differ in their topics, if it has a plain group.

    Args:
        plan: with its groups.
        draw: the seed's draws.
    """
    if not any(one.function == "subscribe" for one in plan.operations):
        return plan
    first, *others = plan.cluster.topics
    second = TopicOptions(
        name=SECOND,
        partitions=draw.between((1, 3), "second.partitions"),
        replication_factor=draw.between((2, 3), "second.replication_factor"),
        min_insync_replicas=2 if draw.chance(20, "second.min_insync") else 1,
        segment_bytes=draw.between((200, 4_000), "second.segment_bytes")
        if draw.chance(40, "second.small_segments")
        else 1 << 20,
    )
    operations = [_moved(one, draw, first.name, second.partitions) for one in plan.operations]
    return evolve(
        plan, cluster=evolve(plan.cluster, topics=(first, second, *others)), operations=tuple(operations)
    )


def _moved(one: PlannedOperation, draw: Draws, first: str, partitions: int) -> PlannedOperation:
    if one.topic != first:
        return one
    if one.function in ("subscribe", "resubscribe"):
        topics = draw.choice(list(TOPIC_SETS), "subscriptions", one.op_id)
        keeps = one.function == "resubscribe" and draw.chance(KEEPING, "subscriptions.keeping", one.op_id)
        return evolve(one, topic=topics, argument="changed" if keeps else one.argument)
    if one.function not in MOVED or not draw.chance(ELSEWHERE, "second", one.op_id):
        return one
    kept = "" if one.argument == "tombstone" else one.argument
    return evolve(one, topic=SECOND, partition=one.partition % partitions, key="", argument=kept)


def with_different_consumers(plan: Plan, draw: Draws) -> Plan:
    """The plan with consumers that differ, if it has any. None has less patience than those that are alike: a
    session that is shorter proves nothing where messages take long."""
    if not any(operation.key for operation in plan.operations if operation.function in BEGIN):
        return plan
    common = plan.consumer.assignor
    strange = not plan.consumer.static_members and draw.chance(20, "consumers.strange")
    others = []
    for place in range(draw.between((1, 2), "consumers")):
        assignor = draw.choice(list(EAGER), "consumers.assignor", place)
        if common == COOPERATIVE and draw.chance(50, "consumers.cooperative", place):
            assignor = common
        others.append(
            evolve(
                _slower(plan.consumer, draw, place),
                assignor=assignor,
                second_assignor="" if strange or assignor == common else common,
                commit=draw.choice(STYLES, "consumers.commit", place),
                max_poll_records=draw.between((3, 30), "consumers.max_poll_records", place),
            )
        )
    return evolve(plan, consumers=tuple(others))


def _slower(consumer: ConsumerOptions, draw: Draws, place: int) -> ConsumerOptions:
    def more(value: int, most: int, purpose: str) -> int:
        longer = value * draw.between((100, 100 * most), f"consumers.{purpose}", place) // 100
        return min(longer, max(value, LONGEST_MS))

    session_ms = more(consumer.session_timeout_ms, 4, "session")
    return evolve(
        consumer,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=draw.between((session_ms // 6, session_ms // 3), "consumers.heartbeat", place),
        max_poll_interval_ms=more(consumer.max_poll_interval_ms, 3, "max_poll_interval"),
        auto_commit_interval_ms=more(consumer.auto_commit_interval_ms, 2, "auto_commit"),
        processing_ms=more(consumer.processing_ms, 2, "processing"),
        poll_timeout_ms=more(consumer.poll_timeout_ms, 2, "poll_timeout"),
    )


def _lives(plan: Plan, draw: Draws, bounds: Profile) -> tuple[PlannedOperation, ...]:
    """Each process subscribes, and then comes and goes."""
    first = max((operation.process for operation in plan.operations), default=-1) + 1
    topic, restless = plan.cluster.topics[0].name, draw.between((0, 90), "groups.restless")
    gentle = draw.chance(bounds.gentle, "groups.gentle")
    operations: list[PlannedOperation] = []
    for place in range(draw.between((1, 4), "groups.consumers")):
        group = f"g{draw.between((1, 2), 'groups.group', place)}" if draw.chance(30, "groups.two") else "g1"
        at_ms = draw.between((0, plan.safety_ms // 3), "groups.begin", place)
        turn, runs = 0, False
        while at_ms < plan.safety_ms and turn < 40:
            cause = place * 1_000 + turn
            function = _next_step(draw, runs, cause, gentle=gentle)
            runs = function in ("subscribe", "pause")
            operations.append(
                PlannedOperation(
                    op_id=FIRST_OPERATION + cause,
                    process=first + place,
                    at_ms=at_ms,
                    function=function,
                    topic=topic,
                    key=group,
                    records=draw.between((3, 90), "groups.pause", cause) if function == "pause" else 1,
                    argument="working"
                    if function == "pause" and draw.chance(35, "groups.working", cause)
                    else "",
                )
            )
            calm = runs and (gentle or not draw.chance(restless, "groups.soon", cause))
            most = plan.safety_ms if calm else 8_000 if runs else 4_000
            at_ms += draw.between((100, most), "groups.gap", cause)
            turn += 1
    return tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id)))


def _with_intentions(
    lives: tuple[PlannedOperation, ...], plan: Plan, draw: Draws, bounds: Profile
) -> tuple[PlannedOperation, ...]:
    """The same lives of consumers that, in some plans, seek, subscribe again and close in order, and of which
    some have a group of their own, in which they only commit."""
    processes = sorted({one.process for one in lives})
    if draw.chance(bounds.resubscribing, "resubscribing"):
        lives = tuple(
            evolve(one, argument="in_order")
            if one.function == "unsubscribe" and draw.chance(50, "in_order", one.op_id)
            else one
            for one in lives
        )
        lives += _any_time(lives, processes, "resubscribe", plan, draw)
    if draw.chance(bounds.seeking, "seeking"):
        lives += tuple(
            evolve(
                one,
                argument=draw.choice(list(SEEKS), "seek.to", one.op_id),
                partition=draw.between((0, plan.cluster.topics[0].partitions), "seek.partition", one.op_id),
                records=draw.between((1, 60), "seek.records", one.op_id),
            )
            for one in _any_time(lives, processes, "seek", plan, draw)
        )
    if draw.chance(bounds.standalone, "standalone"):
        own = [process for process in processes if draw.chance(60, "standalone.who", process)]
        begin = {"subscribe": "assign"}
        lives = tuple(
            evolve(one, key=f"g{FIRST_OWN + one.process}", function=begin.get(one.function, one.function))
            if one.process in (own or processes[:1])
            else one
            for one in lives
        )
    return tuple(sorted(lives, key=lambda one: (one.at_ms, one.op_id)))


def _any_time(
    lives: tuple[PlannedOperation, ...], processes: list[int], function: str, plan: Plan, draw: Draws
) -> tuple[PlannedOperation, ...]:
    """Operations of this function, half of them right after the process has begun, others right after the one
    before."""
    found: list[PlannedOperation] = []
    first = FIRST_INTENTION + 10_000 * (function == "seek")
    for process in processes:
        mine = [one for one in lives if one.process == process]
        begins = [one.at_ms for one in mine if one.function == "subscribe"]
        for number in range(draw.between((1, 6), function, process)):
            cause = 100 * (process - processes[0]) + number
            at_ms = draw.between((begins[0], plan.safety_ms), f"{function}.at", cause)
            if draw.chance(50, f"{function}.soon", cause):
                begun = begins[draw.between((0, len(begins) - 1), f"{function}.begun", cause)]
                at_ms = begun + draw.between((0, 1_500), f"{function}.after", cause)
            elif number and draw.chance(60, f"{function}.again", cause):
                at_ms = found[-1].at_ms + draw.between((20, 800), f"{function}.gap", cause)
            found.append(
                evolve(mine[0], op_id=first + cause, at_ms=at_ms, function=function, argument="", records=1)
            )
    return tuple(found)


def _name(draw: Draws, group: str) -> str:
    """Another name for this group."""
    beginning = draw.choice(list(NAMES), "groups.name", int(group[1:]))
    return f"{beginning}{draw.between((0, 999_999), 'groups.number', int(group[1:]))}"


def _next_step(draw: Draws, runs: bool, cause: int, *, gentle: bool) -> str:
    if not runs:
        return "subscribe"
    if gentle:
        return "unsubscribe"
    return draw.choice(["crash", "crash", "pause", "pause", "unsubscribe"], "groups.step", cause)


def _aimed(fault: Fault, draw: Draws, offsets: TopicOptions) -> Fault:
    """A part of the faults hits replicas of the offsets partitions, their leaders mostly."""
    number = fault.fault_id
    if (
        FAULTS[fault.kind].on != "broker"
        or "-" not in fault.target
        or not draw.chance(55, "groups.aimed", number)
    ):
        return fault
    key = f"{OFFSETS_TOPIC}-{draw.between((0, offsets.partitions - 1), 'groups.aim_partition', number)}"
    role = draw.choice(["leader of", "leader of", "leader of", "follower 1 of"], "groups.aim", number)
    return evolve(fault, target=f"{role} {key}")


def moves_of(
    plan: Plan, draw: Draws, topics: tuple[TopicOptions, ...], bounds: Profile, label: str, first: int
) -> tuple[Fault, ...]:
    """In some plans operators move partitions of these topics, and what their leaders coordinate with them.

    Args:
        plan: that has the topics.
        draw: the seed's draws.
        topics: to move.
        bounds: the profile, with the kinds of request.
        label: of the draws.
        first: fault id of the first request.
    """
    kinds = [kind for kind in MOVES if kind in bounds.request_kinds]
    if not kinds or not draw.chance(25, f"{label}.moved"):
        return ()
    moved: list[Fault] = []
    for number in range(draw.between((1, 4), f"{label}.moves")):
        topic = topics[draw.between((0, len(topics) - 1), f"{label}.move_topic", number)]
        partition = draw.between((0, topic.partitions - 1), f"{label}.move_of", number)
        moved.append(
            Fault(
                fault_id=first + number,
                kind=draw.choice(kinds, f"{label}.move", number),
                at_ms=draw.between((0, plan.safety_ms), f"{label}.move_at", number),
                duration_ms=0,
                target=f"partition {topic.name}-{partition}",
                parameter=draw.between((0, 7), f"{label}.move_to", number),
            )
        )
    return tuple(moved)
