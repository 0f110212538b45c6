"""Transactions in the swarm: what is drawn for their coordinators, and for processes that consume, transform
and produce.

Owns the draws. Must not know bugs: nothing here is a scenario. No fault goes beyond the budget: where the
records of __transaction_state are lost a transaction hangs for ever, in Kafka too. Processes come, go, crash
and pause; some share a transactional id, so that one fences the other; a part of the faults is aimed at
the coordinators of the transactions and groups and the leaders of the output, so that they fail between any
two steps of a transaction. Operators move the partitions of all of them.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.chains import LATE, LOSSY
from fencepost.campaign.swarm.draws import Draws, with_late_messages
from fencepost.campaign.swarm.group_draws import (
    consumer_options,
    coordinator_options,
    moves_of,
    offsets_topic,
    slow_ms_of,
)
from fencepost.run.faults.table import FAULTS
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.plan import (
    ConsumerOptions,
    Fault,
    Plan,
    PlannedOperation,
    TopicOptions,
    TransactionOptions,
    TransformOptions,
)

OUTPUT = "out"
FIRST_OPERATION = 600_000
"""Op ids of what these processes are asked to do."""
FIRST_READ = 700_000
"""Op ids of reads of the output."""
FIRST_MOVE = 6_000
"""Fault ids of requests of operators for these topics."""
GROUP = "x1"
"""Of these processes: whoever else consumed in it would take inputs away from them."""
ANSWER_TRIPS = 8
"""Messages between a request to a coordinator and its answer: its record must reach every replica."""
KEPT_MS = 604_800_000
"""An offset that expires is processed again: nobody promises exactly-once then."""
REAL_PARTITIONS = 4
"""Of __transaction_state in the real clusters that campaigns start."""
LATE_EPOCHS = (32_761, 32_766)
"""First epochs with which the epochs of an id are used up within a run. The last one of a producer is
32,766."""
LATE_US = (20_000, 200_000)
"""How much longer messages of a late broker travel: many round trips of the others, and far below the time in
which a follower leaves the ISR."""
IMPATIENT_MS = (250, 900)
"""Request time-outs of processes that soon give up. A leader waits two seconds for the coordinator."""
LEFT_OPEN, LEFT_MS, LONG_MS = 35, 20_000, (600, 1_500)
"""Of a hundred plans with transactions: in how many all processes go. How much longer they stay away than the
time-out, and the pause inside each transaction."""
TRIPS = 40
"""Messages that follow each other in a short transaction, retries included: on slow networks its time-out
allows for them."""


def with_transactions(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with transactions, in as many plans of a hundred as the profile says; in the others the plan
    as it is."""
    if not bounds.transactions or not draw.chance(bounds.transactions, "transactions"):
        return plan
    impatient = draw.chance(25, "transactions.impatient")
    if impatient:  # the batch of a transaction that was aborted since, or the answer to a question about it
        network = with_late_messages(plan.network, draw, "transactions.late_ppm", "transactions.late_by")
        plan = evolve(plan, network=network)
    plan = _with_a_late_broker(plan, draw, bounds)
    slow_ms, transform = slow_ms_of(plan), _transform(plan, draw, impatient=impatient)
    known = {topic.name: topic for topic in plan.cluster.topics}
    output, offsets = _output_topic(draw), known.get(OFFSETS_TOPIC) or offsets_topic(draw)
    state = evolve(
        offsets_topic(draw), name=STATE_TOPIC, partitions=draw.between((1, 2), "transactions.partitions")
    )
    topics = (output, offsets, state)
    groups = plan.cluster.groups if offsets.name in known else coordinator_options(draw, slow_ms)
    cluster = evolve(
        plan.cluster,
        topics=tuple({**known, **{topic.name: topic for topic in topics}}.values()),
        groups=evolve(groups, offsets_retention_ms=KEPT_MS),
        transactions=_coordinators(draw, slow_ms),
        controller_request_timeout_ms=max(plan.cluster.controller_request_timeout_ms, 3 * _trip_ms(plan)),
    )
    return evolve(
        plan,
        cluster=cluster,
        client=evolve(plan.client, retry_unknown=False),
        budget=evolve(plan.budget, outside="skip", isr_disks_lost=0),
        consumer=_consumers(plan, draw, slow_ms, transform, impatient=impatient),
        transform=transform,
        operations=(*plan.operations, *_reads(plan, draw, output), *_lives(plan, draw)),
        faults=(
            *(_followed(_aimed(fault, draw, topics), plan, draw) for fault in plan.faults),
            *moves_of(plan, draw, topics, bounds, "transactions", FIRST_MOVE),
        ),
    )


def with_transactions_of_real(plan: Plan, draw: Draws) -> Plan:
    """The plan of a real system with transactions: its own brokers have the coordinators, with the settings
    that they have.

    Args:
        plan: has one topic.
        draw: of its seed.
    """
    transform, topic = _transform(plan, draw, impatient=False), plan.cluster.topics[0]
    output = TopicOptions(
        name=OUTPUT,
        partitions=draw.between((1, 2), "transactions.output"),
        replication_factor=topic.replication_factor,
        min_insync_replicas=topic.min_insync_replicas,
        unclean_leader_election=topic.unclean_leader_election,
    )
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            topics=(topic, output),
            transactions=TransactionOptions(state_topic_partitions=REAL_PARTITIONS),
        ),
        consumer=_consumers(plan, draw, 0, transform, impatient=False),
        transform=transform,
        operations=(*plan.operations, *_reads(plan, draw, output), *_lives(plan, draw)),
        faults=tuple(_aimed(fault, draw, (output,)) for fault in plan.faults),
    )


def _with_a_late_broker(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """In some plans one broker is late all the time: what a leader has just written is not copied yet when it
    goes, and a request may come after a later one of somebody else."""
    if LATE not in bounds.kinds or not draw.chance(30, "transactions.late_on"):
        return plan
    late = Fault(
        fault_id=LOSSY - 2,
        kind=LATE,
        at_ms=0,
        duration_ms=plan.safety_ms,
        target=f"broker {draw.between((1, plan.cluster.brokers), 'transactions.late')}",
        parameter=draw.between(LATE_US, "transactions.late_us"),
    )
    return evolve(plan, faults=(late, *plan.faults))


def _output_topic(draw: Draws) -> TopicOptions:
    small = draw.chance(30, "transactions.small_segments")
    return TopicOptions(
        name=OUTPUT,
        partitions=draw.between((1, 3), "transactions.output"),
        replication_factor=draw.between((2, 3), "transactions.replication_factor"),
        min_insync_replicas=2 if draw.chance(20, "transactions.min_insync") else 1,
        segment_bytes=draw.between((200, 4_000), "transactions.segment_bytes") if small else 1 << 20,
    )


def _coordinators(draw: Draws, slow_ms: int) -> TransactionOptions:
    return TransactionOptions(
        version=draw.between((1, 2), "transactions.version"),
        first_epoch=draw.between(LATE_EPOCHS, "transactions.first_epoch")
        if draw.chance(15, "transactions.first_epoch_on")
        else 0,
        abort_check_ms=draw.between((200, 2_000), "transactions.abort_check"),
        append_timeout_ms=draw.between((500, 5_000), "transactions.append_timeout") + 4 * slow_ms,
        marker_backoff_ms=draw.between((20, 300), "transactions.marker_backoff"),
        load_buffer_bytes=draw.between((200, 3_000), "transactions.load_buffer")
        if draw.chance(60, "transactions.load_buffer_on")
        else 1 << 20,
        load_step_ms=draw.between((1, 400), "transactions.load_step")
        if draw.chance(50, "transactions.load_step_on")
        else 0,
        unload_ms=draw.between((1, 3_000), "transactions.unload")
        if draw.chance(50, "transactions.unload_on")
        else 0,
    )


def _trip_ms(plan: Plan) -> int:
    """How long a message takes."""
    return (plan.network.latency_min_us + plan.network.latency_tail_us) // 1_000


def _transform(plan: Plan, draw: Draws, *, impatient: bool) -> TransformOptions:
    """impatient: a batch without an answer is not sent again, so that its transaction is aborted at once."""
    return TransformOptions(
        output=OUTPUT,
        transaction_timeout_ms=draw.between((2_500, 10_000), "transactions.timeout") + TRIPS * _trip_ms(plan),
        aborts_ppm=draw.between((0, 300_000), "transactions.aborts")
        if draw.chance(60, "transactions.aborts_on")
        else 0,
        attempts=1
        if impatient
        else draw.between((1, 4), "transactions.attempts")
        if draw.chance(40, "transactions.attempts_on")
        else 20,
        pause_ms=draw.between((1, 500), "transactions.pause")
        if draw.chance(40, "transactions.pause_on")
        else 0,
        late_sends=draw.chance(40, "transactions.late_sends"),
    )


def _consumers(
    plan: Plan, draw: Draws, slow_ms: int, transform: TransformOptions, *, impatient: bool
) -> ConsumerOptions:
    """A poll is a transaction: it may last until the coordinator ends it, and one more may have to begin.
    impatient: requests are given up sooner than a leader gives its question to the coordinator up."""
    options = consumer_options(plan, draw, slow_ms)
    waits_ms = 2 * transform.transaction_timeout_ms + transform.pause_ms
    request_ms = options.request_timeout_ms
    if impatient:
        request_ms = draw.between(IMPATIENT_MS, "transactions.patience") + 4 * slow_ms
    return evolve(
        options,
        max_poll_interval_ms=options.max_poll_interval_ms + waits_ms,
        request_timeout_ms=request_ms + ANSWER_TRIPS * _trip_ms(plan),
    )


def _reads(plan: Plan, draw: Draws, output: TopicOptions) -> tuple[PlannedOperation, ...]:
    """Reads of the output meanwhile: of committed records mostly, by processes that read in order."""
    first = max((operation.process for operation in plan.operations), default=-1) + 1
    return tuple(
        PlannedOperation(
            op_id=FIRST_READ + number,
            process=first + draw.between((0, 1), "transactions.reader", number),
            at_ms=draw.between((0, plan.safety_ms), "transactions.read_at", number),
            function="list_offsets" if draw.chance(15, "transactions.ends", number) else "poll",
            topic=output.name,
            partition=draw.between((0, output.partitions - 1), "transactions.read_of", number),
            argument="read_committed" if draw.chance(80, "transactions.isolation", number) else "",
        )
        for number in range(draw.between((20, 120), "transactions.reads"))
    )


def _lives(plan: Plan, draw: Draws) -> tuple[PlannedOperation, ...]:
    """Each process begins, and then comes and goes; some have the same transactional id."""
    first = max((operation.process for operation in plan.operations), default=-1) + 3
    slots = draw.between((1, 3), "transactions.ids")
    operations: list[PlannedOperation] = []
    for place in range(draw.between((1, 3), "transactions.processes")):
        at_ms = draw.between((0, plan.safety_ms // 4), "transactions.begin", place)
        turn, runs = 0, False
        while at_ms < plan.safety_ms and turn < 40:
            cause = place * 1_000 + turn
            steps = ["crash", "pause", "pause", "unsubscribe", "transform"]
            function = draw.choice(steps, "transactions.step", cause) if runs else "transform"
            runs = function in ("transform", "pause")
            operations.append(
                PlannedOperation(
                    op_id=FIRST_OPERATION + cause,
                    process=first + place,
                    at_ms=at_ms,
                    function=function,
                    topic=plan.cluster.topics[0].name,
                    key=GROUP,
                    partition=draw.between((0, slots - 1), "transactions.id", cause),
                    records=draw.between((3, 90), "transactions.pause_for", cause)
                    if function == "pause"
                    else 1,
                )
            )
            most = plan.safety_ms // 2 if runs else 4_000
            at_ms += draw.between((100, most), "transactions.gap", cause)
            turn += 1
    return tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id)))


def with_transactions_left_open(plan: Plan, draw: Draws) -> Plan:
    """In some plans all processes crash at once, often inside a transaction, and stay away, in calm, for
    longer than its time-out: nobody but the coordinator can end it.

    Args:
        plan: with transactions, or without.
        draw: of its seed.
    """
    mine = [one for one in plan.operations if FIRST_OPERATION <= one.op_id < FIRST_READ]
    if not mine or plan.transform.output != OUTPUT or not draw.chance(LEFT_OPEN, "transactions.left_open"):
        return plan
    at_ms = draw.between((plan.safety_ms // 4, plan.safety_ms // 2), "transactions.left_at")
    back_ms = at_ms + plan.transform.transaction_timeout_ms + LEFT_MS
    last = {one.process: one for one in mine}
    crashes = [
        evolve(one, op_id=FIRST_READ - 1 - place, at_ms=at_ms, function="crash")
        for place, one in enumerate(last.values())
    ]
    kept = [one for one in plan.operations if one not in mine or not at_ms <= one.at_ms < back_ms]
    faults = [
        evolve(one, duration_ms=min(one.duration_ms, max(0, at_ms - one.at_ms)))
        if one.at_ms < at_ms and FAULTS[one.kind].ask is None
        else one
        for one in plan.faults
        if not at_ms <= one.at_ms < back_ms
    ]
    return evolve(
        plan,
        safety_ms=max(plan.safety_ms, back_ms),
        transform=evolve(plan.transform, pause_ms=draw.between(LONG_MS, "transactions.left_pause")),
        operations=tuple(sorted((*kept, *crashes), key=lambda one: (one.at_ms, one.op_id))),
        faults=tuple(faults),
    )


def _aimed(fault: Fault, draw: Draws, topics: tuple[TopicOptions, ...]) -> Fault:
    """A part of the faults hits replicas of these topics, their leaders mostly."""
    number = fault.fault_id
    aimed = draw.chance(65, "transactions.aimed", number)
    if FAULTS[fault.kind].on != "broker" or "-" not in fault.target or not aimed:
        return fault
    topic = topics[draw.between((0, len(topics) - 1), "transactions.aim_topic", number)]
    key = f"{topic.name}-{draw.between((0, topic.partitions - 1), 'transactions.aim_partition', number)}"
    role = draw.choice(["leader of", "leader of", "leader of", "follower 1 of"], "transactions.aim", number)
    return evolve(fault, target=f"{role} {key}")


def _followed(fault: Fault, plan: Plan, draw: Draws) -> Fault:
    """In most plans a part of these faults comes right after a step of a transaction: its coordinator goes
    when a record of it has just become durable, a leader when it has just written a marker."""
    number = fault.fault_id
    step = "transaction_phase" if STATE_TOPIC in fault.target else "marker_written"
    aimed = "__" in fault.target or f" {OUTPUT}-" in fault.target
    if not aimed or fault.follows or not draw.chance(60, "transactions.followed"):
        return fault
    if not draw.chance(60, "transactions.follow", number):
        return fault
    longest_ms = 20 + 4 * _trip_ms(plan)
    return evolve(
        fault, follows=step, delay_ms=draw.between((0, longest_ms), "transactions.follow_delay", number)
    )
