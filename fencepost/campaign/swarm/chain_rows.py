"""The chains that the swarm runs, each with the options of the plan that it needs.

Owns the rows. Must not know bugs. The first four are what distributed logs are known to be weak at; the drawn
one is there so that what nobody thought of is run as well.

- Quick elections: most of what went wrong with logs that part (KIP-279, KIP-320, KAFKA-7128, KAFKA-7415)
  needs a second election before everybody has heard of the first. Brokers are far apart in many plans,
  faults come in bursts and mostly hit leaders, many of them behind a step of the protocol.
- Relays: each leader goes within two round trips of a first append, so that it has written; the last one of
  many relays within two round trips of a log that was cut. One broker is always late.
- Silences: a broker that dies leaves what it has sent on its way (network.py). One whose link broke does not:
  ZooKeeper may know what no broker has heard of. A follower is silent for so long that it leaves the ISR,
  then one leader after another falls silent within a round trip of a step, and its session ends.
- Retries: what a log believes of its producers is put to the test by a retry that meets the log of the first
  attempt. Most topics live on one broker, segments hold a batch or two, sessions are short, producers insist;
  and a disk fails within the few file calls after an append, which are mostly the next one's.
- Drawn: two to four links of any kind, role, step and delay.
- Lone: where faults overlap, nearly everything that happens has an excuse. Here each comes when the cluster
  has got over the last one, and lasts longer than a session and a lag: what the others do meanwhile, and how
  soon, is theirs alone to answer for (checkers/liveness). No message is lost by chance, and brokers are near.
- Volleys of operators in haste, in addition to what a plan has: what a controller sent for a request is under
  way, or waits for its turn, when the next request follows a step of it; on a lossy or slow link, so that
  answers come late, and the broker that the first one was for goes a few round trips later.
- Swings: a partition goes to other brokers, and comes back before all has arrived that was sent to move it.
"""

from itertools import accumulate

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.chains import (
    DELETE,
    ENDS,
    LATE,
    LOSSY,
    TOGETHER,
    Chain,
    Link,
    Span,
    faults_of_chain,
)
from fencepost.campaign.swarm.draws import Draws, with_late_messages
from fencepost.campaign.swarm.reigns import Reigns, everywhere, requests_in, with_short_reigns
from fencepost.run.faults.table import FAULTS
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions

STOPS, CUT, FAILS, LOSES = "crash", "partition", "io_error", "loss"
OWED = ("appended", "became_leader", "isr_proposed", "isr_updated")
"""Steps after which a leader owes somebody an answer."""
LEAVING = ("crash", "crash", "crash", "bounce", ENDS)
"""Kinds after which only the others act."""
CHANGING = tuple(call + 3 * passed for passed in range(13) for call in (0, 1))
"""Parameters of io_error for writes and syncs, after as many calls of their kind as an append makes that
begins a segment: reads change nothing."""


def with_chains(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with a chain instead of its faults, in as many plans of a hundred as the profile says for
    each; in the others, and where the kinds are missing that a chain cannot do without, the plan as it is."""
    for share, label, needed, made in (
        (bounds.quick, "quick", (), _quick),
        (bounds.relayed, "relay", (ENDS,), _relays),
        (bounds.silenced, "silence", (CUT,), _silences),
        (bounds.retried, "retry", (FAILS,), _retries),
        (bounds.chained, "chain", (), _drawn),
        (bounds.lone, "lone", (), _lone),
    ):
        if share and draw.chance(share, label) and all(kind in bounds.kinds for kind in needed):
            plan = made(plan, draw, bounds)
    return plan


def with_haste(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with volleys of requests added, in as many plans of a hundred as the profile says; in the
    others the plan as it is."""
    if not bounds.hasty or not draw.chance(bounds.hasty, "haste") or not bounds.request_kinds:
        return plan
    topics = (*plan.cluster.topics, *_more_topics(draw, plan.cluster.brokers))
    plan = evolve(plan, cluster=evolve(plan.cluster, topics=topics))
    found = [*_volleys(plan, draw, bounds, stops=True), *_volleys(plan, draw, bounds, stops=False)]
    plan = _added(plan, found)
    if not bounds.transactions and draw.chance(90, "swing"):  # a run with transactions takes thrice the time
        plan = _swinging(plan, draw, bounds)
    return _without_a_controller(plan, draw, bounds) if draw.chance(70, "headless") else plan


def _added(plan: Plan, found: list[Fault]) -> Plan:
    """The plan with further faults, in the order of their times."""
    faults = sorted((*plan.faults, *found), key=lambda fault: (fault.at_ms, fault.fault_id))
    return evolve(plan, faults=tuple(faults))


def _with(plan: Plan, faults: list[Fault]) -> Plan:
    return evolve(plan, faults=(*faults, *requests_in(plan)))


# ---- quick elections

KILLS = ("crash", "crash", "pause")
KEPT_TRIPS = 40
"""From an append to the poll that reads it, at most."""


def _quick(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    def drawn(low: int, high: int, what: str) -> int:
        return draw.between((low, high), f"quick.{what}")

    far = draw.chance(75, "quick.far")
    latency_us = drawn(20_000, 350_000, "latency") if far else drawn(50, 2_000, "latency")
    row = Reigns(
        label="quick", latency_us=latency_us, slowest_us=latency_us, balanced=75, balance_ms=(200, 1_500)
    )
    topics = tuple(_kept(topic, latency_us) for topic in plan.cluster.topics)
    plan = evolve(plan, cluster=evolve(plan.cluster, topics=topics))
    plan = with_short_reigns(plan, draw, row, lag_ms=plan.cluster.replica_lag_time_max_ms)
    links = _quick_links(draw, bounds, plan.cluster.zookeeper_session_timeout_ms, row.trip_ms)
    moments = _bursts(plan, draw, bounds) if links else ()
    always = [_late(plan, draw, drawn(2, 8, "late_trips") * (latency_us + 10_000), row.label)] * (
        LATE in bounds.kinds and draw.chance(60, "quick.behind")
    )
    always += _lossy(plan, draw) if LOSES in bounds.kinds and draw.chance(60, "quick.lossy") else []
    chain = Chain(label="quick", links=links, moments=moments)
    return _with(plan, [*always, *faults_of_chain(plan, draw, chain)])


def _kept(topic: TopicOptions, latency_us: int) -> TopicOptions:
    """With a retention that outlasts the trips from an append to the poll that reads it: a run in which no
    read ever returned a record proves nothing."""
    least_ms = KEPT_TRIPS * latency_us // 1_000
    return evolve(topic, retention_ms=least_ms) if 0 <= topic.retention_ms < least_ms else topic


def _quick_links(draw: Draws, bounds: Profile, session_ms: int, trip_ms: int) -> tuple[Link, ...]:
    """A fault, mostly of a leader and often behind a step; or the leader stops and its session ends, so that
    nobody waits for the time-out; then sessions of one leader after another end."""

    def drawn(low: int, high: int, what: str) -> int:
        return draw.between((low, high), f"quick.{what}")

    kinds = [kind for kind in bounds.kinds if draw.chance(60, f"quick.{kind}")] or list(bounds.kinds[:1])
    for kind, most in ((STOPS, 1), (ENDS, 3), (CUT, 3)):
        kinds += [kind] * drawn(0, most, f"more.{kind}") * (kind in bounds.kinds)
    if draw.chance(15, "quick.sessions_off") or ENDS not in bounds.kinds:
        kinds = [kind for kind in kinds if kind != ENDS] or list(bounds.kinds[:1])
        at_once = kills = volleys = 0
    else:
        at_once, volleys = drawn(0, 100, "at_once"), drawn(0, 90, "volleys")
        kills = (
            0 if not bounds.followed else 95 if draw.chance(50, "quick.kill_most") else drawn(0, 100, "kills")
        )
    raced = [step for step in RACED if draw.chance(30, f"quick.{step}")] or [*RACED]
    steps = (*raced * bounds.followed, *("",) * (len(raced) * (100 - bounds.followed)))
    ended = Link(kinds=(ENDS,), percent=at_once)
    leader = ("leader of {key}",)
    fault = Link(
        kinds=tuple(kinds),
        roles=leader * 6 + ("follower 1 of {key}", "follower 2 of {key}") * 2 + ("controller",),
        others=("",) * 6 + leader * 2 + ("follower 1 of {key}", "follower 2 of {key}"),
        steps=steps,
        delay_ms=(0, 2 * trip_ms),
        lasts_ms=(10, session_ms + drawn(200, 4_000, "longest")),
        percent=100 - kills,
        along=ended,
    )
    kill = evolve(
        fault,
        kinds=tuple(kind for kind in KILLS if kind in bounds.kinds),
        roles=leader,
        others=("",),
        steps=tuple(raced),
        percent=kills,
        along=evolve(ended, percent=100),
    )
    next_ = Link(
        kinds=(ENDS,), roles=leader, gap_ms=(trip_ms // 2, 4 * trip_ms), times=(1, 3), percent=volleys
    )
    return tuple(link for link in (fault, kill, next_) if link.kinds and link.percent)


def _bursts(plan: Plan, draw: Draws, bounds: Profile) -> tuple[int, ...]:
    """When faults come: close together in some plans, as far apart as two sessions in others."""
    session_ms, share = plan.cluster.zookeeper_session_timeout_ms, draw.between((20, 90), "quick.share")
    burst_ms = draw.between((100, 900), "quick.burst_ms")
    gaps = (
        draw.between(
            (0, burst_ms if draw.chance(share, "quick.burst", number) else 2 * session_ms),
            "quick.gap",
            number,
        )
        for number in range(draw.between(bounds.faults, "quick.faults"))
    )
    return tuple(at_ms for at_ms in accumulate(gaps) if at_ms < plan.safety_ms)


def _lossy(plan: Plan, draw: Draws) -> list[Fault]:
    """Messages between brokers are lost all the time: what waits for an answer then waits for a time-out."""
    lost_ppm = draw.between((10_000, 500_000), "quick.lost")
    return [
        Fault(
            fault_id=LOSSY + broker,
            kind=LOSES,
            at_ms=0,
            duration_ms=plan.safety_ms,
            target=f"broker {broker}",
            parameter=lost_ppm,
        )
        for broker in range(1, plan.cluster.brokers + 1)
    ]


# ---- relays


def _relays(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    latency_us = draw.between((10_000, 60_000), "relay.latency")
    late_us = latency_us * draw.between((3, 10), "relay.late_trips")
    row = Reigns(
        label="relay", latency_us=latency_us, slowest_us=late_us, balanced=70, balance_ms=(500, 2_000)
    )
    trip_ms = row.trip_ms
    plan = with_short_reigns(plan, draw, row, lag_ms=draw.between((4_000, 10_000), "relay.lag"))
    stopped = draw.choice(["0", "20", "40"], "relay.stopped") if STOPS in bounds.kinds else "0"
    stop = Link(kinds=(STOPS,), lasts_ms=(3_000, 8_000), percent=int(stopped))
    goes = Link(
        kinds=(ENDS,),
        steps=("appended",) * 4 + ("became_leader",),
        delay_ms=(0, 2 * trip_ms),
        gap_ms=(2 * trip_ms, 9 * trip_ms),
        times=(1, 3),
        along=stop,
    )
    last = evolve(goes, steps=("truncated",) * 4 + ("appended",), times=(1, 1))
    chain = Chain(label="relay", links=(goes, last), gap_ms=(2_000, 8_000))
    late = [_late(plan, draw, late_us, row.label)] if LATE in bounds.kinds else []
    return _with(plan, [*late, *faults_of_chain(plan, draw, chain)])


def _late(plan: Plan, draw: Draws, late_us: int, label: str) -> Fault:
    return Fault(
        fault_id=LOSSY - 1,
        kind=LATE,
        at_ms=0,
        duration_ms=plan.safety_ms,
        target=f"broker {draw.between((1, plan.cluster.brokers), f'{label}.late')}",
        parameter=late_us,
    )


# ---- silences


def _silences(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    latency_us = draw.between((5_000, 40_000), "silence.latency")
    far_us = latency_us * draw.between((1, 6), "silence.far_trips")
    row = Reigns(
        label="silence", latency_us=latency_us, slowest_us=far_us, balanced=30, balance_ms=(500, 3_000)
    )
    lag_ms, trip_ms = draw.between((800, 2_500), "silence.lag"), row.trip_ms
    plan = with_short_reigns(plan, draw, row, lag_ms=lag_ms)
    followers = tuple(f"follower {number} of {{key}}" for number in range(1, plan.cluster.brokers))
    follower = Link(kinds=(CUT,), roles=followers, lasts_ms=(lag_ms, lag_ms + 1_500), percent=70)
    ended = Link(kinds=(ENDS,), delay_ms=(0, 3 * trip_ms)) if ENDS in bounds.kinds else None
    leader = Link(
        kinds=(CUT,),
        steps=OWED,
        delay_ms=(0, trip_ms),
        gap_ms=(1, 8 * trip_ms),
        lasts_ms=(200, 4_000),
        times=(1, 3),
        along=ended,
    )
    chain = Chain(label="silence", links=(follower, leader), gap_ms=(1_000, 5_000))
    far = _far(plan, draw, far_us) if LATE in bounds.kinds else []
    return _with(plan, [*far, *faults_of_chain(plan, draw, chain)])


def _far(plan: Plan, draw: Draws, far_us: int) -> list[Fault]:
    """Some pairs of brokers are far from each other for the whole plan: of two followers now this one hears
    first, and now that one."""
    percent, brokers = draw.between((0, 60), "silence.far_share"), plan.cluster.brokers
    return [
        Fault(
            fault_id=LOSSY + TOGETHER * one + other,
            kind=LATE,
            at_ms=0,
            duration_ms=plan.safety_ms,
            target=f"broker {one}",
            other=f"broker {other}",
            parameter=far_us,
        )
        for one in range(1, brokers + 1)
        for other in range(one + 1, brokers + 1)
        if draw.chance(percent, "silence.far", one, other)
    ]


# ---- retries


def _retries(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    plan = evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            topics=tuple(_small(topic, draw, plan.cluster.brokers) for topic in plan.cluster.topics),
            zookeeper_session_timeout_ms=draw.between((1_500, 4_000), "retry.session"),
            high_watermark_checkpoint_interval_ms=draw.between((50, 300), "retry.checkpoint"),
        ),
        network=NetworkOptions(
            latency_min_us=draw.between((50, 5_000), "retry.latency"),
            latency_tail_us=draw.between((0, 5_000), "retry.tail"),
            latency_max_us=draw.between((10_000, 50_000), "retry.latency_max"),
        ),
        client=evolve(
            plan.client,
            producer=evolve(plan.client.producer, batch_bytes=draw.between((80, 300), "retry.batch_bytes")),
            request_timeout_ms=draw.between((800, 2_000), "retry.patience"),
            retry_backoff_ms=draw.between((20, 1_000), "retry.backoff"),
            delivery_timeout_ms=draw.between((15_000, 30_000), "retry.delivery"),
        ),
        budget=evolve(plan.budget, brokers_down=plan.cluster.brokers),
    )
    fails = Link(
        kinds=(FAILS,),
        roles=("leader of {key}",) * 6 + ("follower 1 of {key}",),
        steps=("appended",) * 3 + ("",) * 2,
        lasts_ms=(100, 1_500),
        parameters=CHANGING,
    )
    chain = Chain(label="retry", links=(fails,), gap_ms=(500, 2_500))
    return _with(plan, faults_of_chain(plan, draw, chain))


def _small(topic: TopicOptions, draw: Draws, brokers: int) -> TopicOptions:
    """A segment holds a batch or two; in many plans each batch is synced, and there is no other replica."""
    alone = draw.chance(75, "retry.alone")
    return evolve(
        everywhere(topic, 1 if alone else brokers),
        segment_bytes=draw.between((80, 250), "retry.segment_bytes"),
        flush_messages=1 if draw.chance(70, "retry.flush") else 0,
    )


# ---- drawn chains


ROLES = (
    *("leader of {key}", "leader of {key}", "follower 1 of {key}", "follower 2 of {key}"),
    *("controller", "{victim}", "{victim}"),
)
CREATE = "create_topic"
OF_OTHER_TOPICS = (CREATE, DELETE)
"""Requests that need topics which were made for them."""
OF_GROUPS = ("group_phase", "groups_loaded")
OF_TRANSACTIONS = ("marker_written", "transaction_phase", "transactions_loaded")
OF_OPERATORS = ("assignment", "reassignment", "topic_configured", "topic_deletion")
OF_SEGMENTS = ("compacted", "log_start")
STEPS = (
    *("appended", "became_follower", "became_leader", "broker_registered", "broker_started"),
    *("controller_elected", "high_watermark", "isr_proposed", "isr_updated", "log_recovered"),
    *("partition_state", "session_expired", "truncated"),
)
"""Steps of any run; the others are of features."""
RACED = tuple(step for step in STEPS if step not in ("appended", "high_watermark"))
"""Those that are few enough to be a moment."""


def _drawn(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """Two to four links of any kind. In many plans leaders follow one another quickly."""
    if draw.chance(60, "chain.quick"):
        latency_us = draw.between((100, 40_000), "chain.latency")
        row = Reigns(
            label="chain", latency_us=latency_us, slowest_us=latency_us, balanced=40, balance_ms=(500, 3_000)
        )
        plan = with_short_reigns(plan, draw, row, lag_ms=draw.between((1_000, 6_000), "chain.lag"))
    kinds = [kind for kind in bounds.kinds if FAULTS[kind].on == "broker"]
    if bounds.administered:
        kinds += [kind for kind in bounds.request_kinds if kind not in OF_OTHER_TOPICS]
    if not kinds:
        return plan
    roles, steps = _roles_and_steps(bounds)
    links = tuple(
        _link(plan, draw, kinds, roles, steps, place) for place in range(draw.between((2, 4), "chain.links"))
    )
    gap_ms = (300, 2_000) if draw.chance(30, "chain.dense") else (2_000, 7_000)
    chain = Chain(label="chain", links=links, gap_ms=gap_ms)
    return _with(plan, faults_of_chain(plan, draw, chain))


def _roles_and_steps(bounds: Profile) -> tuple[list[str], list[str]]:
    """Those that the features of a plan have."""
    roles, steps = [*ROLES], [*STEPS]
    if bounds.groups:
        roles, steps = [*roles, f"leader of {OFFSETS_TOPIC}-0"], [*steps, *OF_GROUPS]
    if bounds.transactions:
        roles, steps = [*roles, f"leader of {STATE_TOPIC}-0"], [*steps, *OF_TRANSACTIONS]
    if bounds.administered:
        steps += OF_OPERATORS
    if bounds.retained or bounds.compacted or bounds.deletions:
        steps += OF_SEGMENTS
    return roles, steps


def _link(plan: Plan, draw: Draws, kinds: list[str], roles: list[str], steps: list[str], place: int) -> Link:
    """One or two kinds, and mostly one step; how far it is from the link before, and how long it lasts, is of
    the order of a round trip, or of a session."""
    trip_ms = 1 + plan.network.latency_min_us // 500
    session_ms = plan.cluster.zookeeper_session_timeout_ms
    soon: Span = (0, 2 * trip_ms + 2)

    def span(what: str, short: Span, long: Span) -> Span:
        return long if draw.chance(30, f"chain.{what}_long", place) else short

    several = 1 + draw.chance(30, "chain.several", place)
    follows = draw.choice(steps, "chain.follows", place) if draw.chance(75, "chain.follow", place) else ""
    return Link(
        kinds=tuple(draw.choice(kinds, f"chain.kind_{one}", place) for one in range(several)),
        roles=(draw.choice(roles, "chain.of", place),),
        others=(draw.choice([*ROLES], "chain.other", place),)
        if draw.chance(30, "chain.pair", place)
        else ("",),
        steps=(follows,),
        delay_ms=span("delay", soon, (0, session_ms)),
        gap_ms=span("gap", soon, (0, 2 * session_ms)),
        lasts_ms=span("lasts", (10, max(500, 20 * trip_ms)), (session_ms, 3 * session_ms)),
        times=(1, 2) if draw.chance(20, "chain.again", place) else (1, 1),
        percent=draw.between((50, 100), "chain.percent", place),
    )


# ---- one fault after another


def _lone(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    def drawn(low: int, high: int, what: str) -> int:
        return draw.between((low, high), f"lone.{what}")

    plan = evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            zookeeper_session_timeout_ms=drawn(1_000, 3_000, "session"),
            replica_lag_time_max_ms=drawn(1_000, 4_000, "lag"),
            controller_request_timeout_ms=drawn(300, 1_000, "control_timeout"),
            replica_fetch_backoff_ms=drawn(50, 500, "backoff"),
        ),
        network=NetworkOptions(
            latency_min_us=drawn(50, 10_000, "latency"),
            latency_tail_us=drawn(0, 2_000, "tail"),
            latency_max_us=drawn(12_000, 50_000, "latency_max"),
        ),
    )
    kinds = [kind for kind in bounds.kinds if draw.chance(30, f"lone.{kind}")] or list(bounds.kinds[:1])
    ends = [kind for kind in LEAVING if kind in bounds.kinds]
    weighed = (*kinds * (2 * len(ends) or 1), *ends * 3 * len(kinds))  # six of ten end a broker
    link = Link(kinds=weighed, roles=(*ROLES, "{victim}"), lasts_ms=(3_000, 12_000))
    begun = range(drawn(500, 5_000, "begin"), plan.safety_ms if kinds else 0, drawn(15_000, 21_000, "gap"))
    return _with(plan, faults_of_chain(plan, draw, Chain(label="lone", links=(link,), moments=tuple(begun))))


# ---- volleys of requests

VOLLEYS, SWINGS = 200_000, 290_000
"""Fault ids of those that begin with a stop begin here, those of the others are higher; and those of
partitions that move and come back."""
STOP = "clean_restart"
BREAKS = ("crash", "bounce", "power_loss", "pause", "expire_session")
AWAY, BACK = ("reassign_move", "reassign_shrink"), "reassign_back"
MOVED = ("reassignment", "reassignment", "")
"""When a partition comes back: at a step of going, or at any time."""
UNSEEN = ("m", "n")
"""Topics that are made while there is no controller."""
MORE = ("v", "w", "x", "y")
"""Topics besides those that clients use: to be deleted, for a name is used once."""
ASKED = ("partition_state", "isr_updated", "became_follower")
"""What a request leads to."""


def _more_topics(draw: Draws, brokers: int) -> list[TopicOptions]:
    return [
        TopicOptions(
            name=name,
            partitions=draw.between((1, 2), "haste.partitions", number),
            replication_factor=draw.between((2, min(3, brokers)), "haste.replicas", number),
        )
        for number, name in enumerate(MORE)
    ]


def _volleys(plan: Plan, draw: Draws, bounds: Profile, *, stops: bool) -> list[Fault]:
    """Those that begin with the request to stop, which mostly meet deletions, or all others."""
    label = "haste.stop" if stops else "haste"
    asked = tuple(kind for kind in bounds.request_kinds if draw.chance(60, f"haste.{kind}"))
    asked = asked or bounds.request_kinds
    first = (STOP,) if stops else asked
    if stops and STOP not in bounds.request_kinds:
        return []
    next_ = (DELETE,) * 4 * len(asked) + asked if stops and DELETE in bounds.request_kinds else asked
    trip_ms = 1 + 2 * (plan.network.latency_min_us + plan.network.latency_tail_us) // 1_000
    request = Link(kinds=first, roles=("{victim}",), lasts_ms=(1_000, 1_000))
    follows = evolve(request, kinds=next_, steps=(*ASKED, ""), gap_ms=(0, 2 * trip_ms), times=(1, 2))
    wait_ms = plan.cluster.controller_request_timeout_ms  # what was lost is sent again after that time
    trouble = Link(
        kinds=("loss",),
        roles=("controller",),
        others=("{victim}",),
        lasts_ms=(trip_ms, 12_000 + 20 * trip_ms),
        parameters=range(400_000, 850_001),
    )
    slow = evolve(trouble, kinds=(LATE,), parameters=range(1_000, 4_000 * trip_ms))
    ends = Link(
        kinds=tuple(kind for kind in BREAKS if kind in bounds.kinds),
        roles=("{victim}",),
        steps=ASKED,
        delay_ms=(0, 8 * trip_ms),
        lasts_ms=(500, 8_000),
        percent=30 if stops else 60,
    )
    links = (
        evolve(trouble, percent=64 * ("loss" in bounds.kinds)),
        evolve(slow, percent=21 * (LATE in bounds.kinds)),
        request,
        evolve(follows, delay_ms=(0, 2 * trip_ms), percent=65),
        evolve(follows, delay_ms=(0, wait_ms), percent=45),
        *([ends] if ends.kinds else []),
    )
    moments = tuple(
        draw.between((0, plan.safety_ms * 4 // 5), f"{label}.at", number)
        for number in range(draw.between((2, 4) if stops else (1, 3), f"{label}.volleys"))
    )
    first_id = VOLLEYS if stops else VOLLEYS + LOSSY // 2
    return faults_of_chain(plan, draw, Chain(label=label, links=links, moments=moments, first_id=first_id))


def _swinging(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """A partition goes to other brokers, and comes back before all has arrived that was sent to move it: in
    most plans some of that comes late, and again."""
    away = tuple(kind for kind in AWAY if kind in bounds.request_kinds)
    if not away or BACK not in bounds.request_kinds:
        return plan
    if draw.chance(70, "swing.late"):
        late = with_late_messages(plan.network, draw, "swing.late_ppm", "swing.late_by")
        twice_ppm = draw.between((100_000, 250_000), "swing.twice")
        plan = evolve(plan, network=evolve(late, duplicate_ppm=twice_ppm))
    goes = Link(kinds=away, gap_ms=(0, 1_000))
    back = Link(kinds=(BACK,), steps=MOVED, delay_ms=(0, 800), gap_ms=(5, 50))
    chain = Chain(label="swing", links=(goes, back), gap_ms=(500, 3_000), first_id=SWINGS, one_subject=True)
    alone = evolve(plan, cluster=evolve(plan.cluster, topics=plan.cluster.topics[:1]))
    return _added(plan, faults_of_chain(alone, draw, chain))


def _without_a_controller(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """A topic is made, and operators change their minds about it, before a controller has seen any of it."""
    breaks = tuple(kind for kind in BREAKS if kind in bounds.kinds)
    if not breaks or not {CREATE, DELETE} <= {*bounds.request_kinds}:
        return plan
    made = [
        TopicOptions(
            name=name, replication_factor=draw.between((1, 3), "headless.replicas", n), created_later=True
        )
        for n, name in enumerate(UNSEEN)
    ]
    plan = evolve(plan, cluster=evolve(plan.cluster, topics=(*plan.cluster.topics, *made)))
    session_ms = plan.cluster.zookeeper_session_timeout_ms
    asked = tuple(kind for kind in bounds.request_kinds if FAULTS[kind].on != "broker" and kind != CREATE)
    ends = Link(kinds=breaks, roles=("controller",), lasts_ms=(session_ms, 3 * session_ms))
    request = Link(kinds=(CREATE,), gap_ms=(0, session_ms // 2))
    follows = evolve(request, kinds=(*asked, *(DELETE,) * len(asked)), times=(1, 2))
    found = []
    for number, topic in enumerate(made):
        alone = evolve(plan, cluster=evolve(plan.cluster, topics=(topic,)))
        chain = Chain(
            label=f"headless.{number}",
            links=(ends, request, follows),
            moments=(draw.between((0, plan.safety_ms * 4 // 5), "headless.at", number),),
            first_id=VOLLEYS + LOSSY // 2 + LOSSY // 4 + LOSSY // 10 * number,
        )
        found += faults_of_chain(alone, draw, chain)
    return _added(plan, found)
