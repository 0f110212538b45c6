"""The scenario of a seed, for what a library says it can do.

Owns what is drawn, and how likely. Must not know any library's bugs: settings, load, records, steps and
faults are drawn for all libraries alike, and each seed leaves most of them out (swarm testing: Groce et al.,
ISSTA 2012). Every draw is keyed by its purpose, so that another range in one place does not change the
others.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from attrs import evolve

from fencepost.proxy.faults import Features, RequestFault, parse
from fencepost.proxy.faults import draw as draw_script
from fencepost.proxy.faults.drawing import CONSUMING, GROUPS, PRODUCING, TRANSACTIONS
from fencepost.sim.randomness import Randomness
from fencepost.torture.copying import COPIERS
from fencepost.torture.libraries import is_below
from fencepost.torture.protocol import Ready
from fencepost.torture.record_contents import SHAPES, most_records
from fencepost.torture.scenario import (
    BOUNCES,
    COMPACTS,
    DELETES,
    DURATION_MS,
    GROWS,
    LOGS,
    MOVES_TRANSACTIONS,
    PRODUCER_STEPS,
    RECREATES,
    STEPS,
    TOPICS,
    TRANSACTION_STEPS,
    TRUNCATES,
    BrokerFault,
    Scenario,
    Step,
)

GROUP = "g"
PARTITIONS = 3
REQUEST_TIMEOUT_MS = 2_000
SHORT_TIMEOUT_MS = 500
"""A request time-out that a slow broker exceeds soon."""
CONSUMER_TIMEOUT_MS = 8_000
"""Request time-out of consumers: above the session time-out, as several libraries require."""
SLOW_MS = (5, 50, 200, 1_000, REQUEST_TIMEOUT_MS + 500)
"""Late answers; the last is later than a client waits."""
ONE_IN_FLIGHT = {"sarama": "", "franz-go": "", "kafka-python": "3"}
"""Drivers of libraries that refuse more than one request in flight with idempotence: below this version, or
in all (empty)."""
BY_ID = frozenset({"platformatic-kafka"})
"""Drivers of libraries whose consumers know topics only by their ids, which our brokers do not have: they
would take the records of one topic for another's."""
AWAITS = frozenset({"kafkajs", "platformatic-kafka"})
"""Drivers of libraries in which the application must await its sends before it ends their transaction."""
TRANSACTION_MS = (10_000, 10_000, 3_000)
"""Time-outs of transactions; the last is shorter than a fault with its aftermath may take."""
WITH_OFFSETS = frozenset({"TxnOffsetCommit", "AddOffsetsToTxn"})
"""Requests of transactions that only a copier sends: others have no offsets in their transactions."""
COPIES_ONE_IN = 2
"""One of so many seeds with idempotence has a copier."""
COPIER_MS = 10_000
"""Time-out of a copier's transactions."""
OFTEN = ("answer", "answer", "answer", "lose answer", "half answer", "move leader")
"""Verbs that are drawn more often than others: an answer has ten errors, a cut connection only itself."""
FOCUS = (PRODUCING, CONSUMING | GROUPS, GROUPS, TRANSACTIONS, TRANSACTIONS | PRODUCING)
"""Requests that faults may be limited to: in a third of the seeds they hit one part of a client, and more
often. In another third they hit a single request."""
CAUSES: Mapping[str, str] = MappingProxyType(
    {
        "OffsetForLeaderEpoch": "move_leader",
        "Metadata": "move_leader",
        "FindCoordinator": "move_coordinator",
        "JoinGroup": "rebalance",
        "SyncGroup": "rebalance",
        "OffsetFetch": "rebalance",
        "LeaveGroup": "leave",
        "InitProducerId": "replace",
    }
)
"""What makes clients send a request that they otherwise seldom send: a verb of brokers or a step. A seed that
has faults of this request only has its cause, too: else most of those faults would never strike."""
MOST_CAUSES = 3
ALONE_STEPS = ("pause", "resume", "flush")
"""Steps that are drawn apart from the others, in one of ALONE_ONE_IN seeds."""
ALONE_ONE_IN = 3
FLOOD = 10
"""One of so many seeds sends bursts so many times as long: large batches."""
FLOOD_BURSTS = 3
MOST_COPIED_BURST = 5
"""A burst of FLOOD times as many records, the smallest of a flood, is too much for a copier."""
RARE_TIMES = 2
"""So much more often a single request is one that has a cause: other scripts seldom strike it."""
RARE = 2
"""Faults of a request that has a cause hit at least one of so many."""
DECISIVE = frozenset({"Produce", "Fetch", "OffsetCommit", "TxnOffsetCommit", "EndTxn"})
"""Requests that carry records or decide about them. Where a script may hit them and others, they have faults
of their own, too, in half of the seeds Produce only: of all requests it would be hit in one of six seeds."""
MOST_DECISIVE = 4
"""Most faults of these."""
Own = Mapping[str, tuple[Any, ...]]
"""A library's own settings, and the values that are drawn besides its default."""
NOTHING: Mapping[str, Own] = MappingProxyType({})
OWN_ONE_IN = 4
"""One of so many seeds sets one of the library's own settings."""
UNKNOWN_ONE_IN = 3
"""One of so many errors is UNKNOWN_SERVER_ERROR: any request may have it, of the others each only its own."""
EARLY = 8
"""A fault hits at least one of so many requests, or one of the first so many."""
MOST_HITS = 12
"""Most requests that one fault hits."""
BROKER_VERBS = ("crash", "pause", "expire_session", "slow", "cut_off", "cut_brokers", "move_leader", "stop")
DELETES_ONE_IN = 6
"""One of so many seeds without transactions deletes the first half of a partition while clients run."""
RACK_ONE_IN = 5
RACKS = ("r1", "r2", "r3")
"""Each broker's own."""
GROWS_ONE_IN = 6
LOGS_ONE_IN = 5
"""One of so many seeds without transactions has logs that are compacted or expire. A compacted log takes no
record without a key."""
SOON_MS = 1_000
"""Age of metadata below which a run sees a new partition."""
DEFAULT_AGE_MS = 300_000
"""Of metadata, in most libraries."""
IDLE_ONE_IN = 6
IDLE_MS = (200, 600)
"""Below the pause between two bursts, and above the wait of a fetch."""
BOUNCES_ONE_IN = 5
MOVES_TRANSACTIONS_ONE_IN = 4
"""Of the seeds with transactions or a copier."""
RENEWS = (RECREATES, TRUNCATES)
RENEWS_ONE_IN = 10
"""A topic is made again, or truncated, each in one of so many seeds without transactions, copier and the
swarm's faults."""
REFUSES = frozenset({"confluent-kafka", "confluent-kafka-go", "rdkafka", "kafka-clients", "kafka-python"})
"""Drivers of libraries that promise to refuse the commit of a transaction of which a send has failed."""
TRUSTS_ONE_IN = 3
APART_ONE_IN = 3
"""Of the seeds with transactions."""
READER_ONE_IN = 6
RESETS = ("earliest", "earliest", "latest", "none")
SHUFFLED_ONE_IN = 4
DEFAULTS_ONE_IN = 10
KEPT = frozenset(
    {"acks", "idempotence", "request_timeout_ms", "delivery_timeout_ms", "transaction_timeout_ms", "rack"}
    | {"offset_reset", "auto_commit", "auto_commit_interval_ms", "session_timeout_ms", "isolation"}
    | {"heartbeat_interval_ms", "max_poll_records"}
)
"""Settings of a seed that leaves the others to the library's defaults: what is judged by them, and how long a
run has to wait."""
LINGER = frozenset({"linger_ms"})
"""Kept, too, where deliveries are short: Java refuses fewer than a request's time-out and its own linger."""
LONG_ONE_IN = 8
"""One of so many seeds has a broker fault of LONG_MS and a delivery time-out below it."""
LONG_MS = (1_000, 2_000, 5_000, 10_000)
SHORT_DELIVERY_MS = (500, 1_000, 2_000, 5_000)
LEAST_DELIVERY_MS = {"franz-go": 1_000}
"""Drivers of libraries that refuse a shorter time-out of deliveries."""
LONG_VERBS = ("crash", "pause", "cut_off", "cut_brokers", "slow")
AIMED_AT = frozenset({"AddPartitionsToTxn", "OffsetFetch"})
AIMED_ONE_IN = 8
"""Each of AIMED is in one of so many seeds where clients send that request."""
AIMED = (
    "answer REQUEST_TIMED_OUT to Produce, 1 in {one_in}, at most 5 times, after effect",
    "answer TOPIC_AUTHORIZATION_FAILED to AddPartitionsToTxn, {nth}th, once, illegal",
    "delay answer to OffsetFetch by {late}ms, after {half}ms, at most 3 times",
)
"""Faults that follow something: a time-out after the append, a final error once another partition of the
transaction was written (an ACL was changed: no fault of the log's state), an OffsetFetch with something
committed that is answered late."""
GROUP_VERBS = ("rebalance", "rebalance", "move_coordinator")


def draw(
    seed: int,
    ready: Ready,
    *,
    idempotence: bool | None = None,
    faults: bool = True,
    own: Mapping[str, Own] = NOTHING,
) -> Scenario:
    """The scenario of a seed for what a library can do. idempotence: None: drawn, mostly on, where the
    library has it. faults: False: only concurrency. own: the library's own settings, by role."""
    chance = Randomness(seed)
    settings = set(ready.config)
    groups = "subscribe" in ready.commands
    members = chance.choice((0, 0, 1, 2, 3), "members") if groups else 0
    mode = chance.choice(("auto", *ready.commit_modes), "commit mode")
    shapes = tuple(shape for shape in SHAPES if chance.below(4, f"shape {shape}") == 0)
    polled = min(most_records(shapes), chance.choice((500, 40, 10), "polled"))
    producer = _producer(chance, ready, idempotence)
    transactional = ready.transactions and producer["idempotence"] and chance.below(5, "transactional") < 2
    if transactional:
        timeout = chance.choice(TRANSACTION_MS, "transaction timeout")
        producer["transaction_timeout_ms"] = timeout  # librdkafka: deliveries may not take longer
        producer["delivery_timeout_ms"] = min(timeout, producer["delivery_timeout_ms"])
    consumer = _consumer(chance, ready, mode, producer["metadata_max_age_ms"])
    consumer["max_poll_records"] = polled
    producer["extra"] = _own(chance, "producer", own)
    consumer["extra"] = _own(chance, "consumer", own)
    bursts, burst = 3 + chance.below(10, "bursts"), 5 + chance.below(30, "burst")
    if chance.below(FLOOD, "flood") == 0 and "large value" not in shapes:
        bursts, burst = FLOOD_BURSTS, burst * FLOOD
        producer["batch_records"] = None
    copier = _copier(chance, ready, producer) if burst < FLOOD * MOST_COPIED_BURST else {}
    waits = ready.driver in AWAITS or chance.below(2, "waits") == 0
    refuses = waits and ready.driver in REFUSES
    long = _long(chance, ready, producer) if faults and not transactional and not copier else ()
    if chance.below(DEFAULTS_ONE_IN, "defaults") == 0:
        kept = KEPT | LINGER if long else KEPT
        producer, consumer, copier = (
            {k: v for k, v in one.items() if k in kept} for one in (producer, consumer, copier)
        )
    scenario = Scenario(
        seed=seed,
        producer=_known(producer, settings),
        consumer=_known(consumer, settings),
        producers=1 + chance.below(3, "producers"),
        members=members,
        copier=_known(copier, settings),
        topics=1 if ready.driver in BY_ID else chance.choice((1, 1, 1, 2, 3), "topics"),
        partitions=PARTITIONS,
        bursts=bursts,
        burst=burst,
        transactional=transactional,
        waits=waits,
        trusts=transactional and refuses and chance.below(TRUSTS_ONE_IN, "trusts") == 0,
        apart=bool(transactional) and chance.below(APART_ONE_IN, "apart") == 0,
        duration_ms=DURATION_MS,
        reader=_reader(chance, ready) if groups else "",
        shuffled=chance.below(SHUFFLED_ONE_IN, "shuffled") == 0,
        shapes=shapes,
        polled=polled,
        commit_mode=mode,
        rewinds=bool(members) and chance.below(6, "rewinds") == 0,
        steps=_in_time(*_steps(chance, members, transactional)),
    )
    return _disturbed(scenario, chance, ready, long) if faults else scenario


def _disturbed(
    scenario: Scenario, chance: Randomness, ready: Ready, long: tuple[BrokerFault, ...]
) -> Scenario:
    """The scenario with faults. long: one that its time-outs were drawn for."""
    members, transactional, copies = scenario.members, scenario.transactional, bool(scenario.copier)
    apis = _apis(chance, members, transactional, copies)
    caused = _caused(chance, apis)
    aimed = tuple(_aimed(chance, apis, scenario.apart))
    late = [fault for fault in aimed if members and fault.api == "OffsetFetch"]
    chaos = chance.below(5, "chaos") == 0
    groups = _groups(members, scenario.copier)
    return evolve(
        scenario,
        duration_ms=max([DURATION_MS, *(one.at_ms + one.for_ms for one in long)]),
        steps=_in_time(
            *scenario.steps,
            *(Step(verb=verb, at_ms=at) for verb, at in caused if verb in STEPS),
            *(Step(verb="restart", at_ms=DURATION_MS * 2 // 3) for _ in late),
        ),
        request_faults=(*_scripts(chance, ready, scenario.topics, groups, apis), *aimed),
        broker_faults=_in_order(
            *_broker_faults(chance, members, transactional, caused),
            *long,
            *_growth(chance, ready, scenario.consumer),
            *_moves(chance, transactional or copies),
            *_renewal(chance, able=not (transactional or copies or chaos or long)),
        ),
        idle_ms=chance.choice(IDLE_MS, "idle time") if chance.below(IDLE_ONE_IN, "idle") == 0 else 0,
        narrow=chance.below(5, "narrow") == 0,
        logs="" if transactional else _logs(chance, scenario.shapes),
        chaos=1 + scenario.seed if chaos else 0,
    )


def _known(drawn: Mapping[str, Any], settings: set[str]) -> dict[str, Any]:
    """What the library has; without settings of its own if there are none."""
    return {name: value for name, value in drawn.items() if name in settings and value not in (None, {})}


def _own(chance: Randomness, role: str, own: Mapping[str, Own]) -> dict[str, Any]:
    """Each setting keeps the library's default in three of four seeds."""
    return {
        name: chance.choice(values, f"own {role} {name}")
        for name, values in own.get(role, {}).items()
        if chance.below(OWN_ONE_IN, f"sets {role} {name}") == 0
    }


def _producer(chance: Randomness, ready: Ready, idempotence: bool | None) -> dict[str, Any]:
    drawn = chance.choice((True, True, True, False), "idempotence")
    timeout = chance.choice((REQUEST_TIMEOUT_MS, REQUEST_TIMEOUT_MS, SHORT_TIMEOUT_MS), "timeout")
    idempotent = ready.idempotence and drawn if idempotence is None else idempotence
    producer = {
        "acks": -1,
        "idempotence": idempotent,
        "in_flight": chance.choice((1, 5, 5, 5), "in flight"),
        "linger_ms": chance.choice((0, 0, 5, 20), "linger"),
        "batch_records": chance.choice((1, 5, 100), "batch"),
        "compression": chance.choice(("none", "none", *ready.codecs), "codec"),
        "retries": chance.choice((100, 100, 100, 2, 0), "retries"),
        "retry_backoff_ms": chance.choice((10, 50, 100), "backoff"),
        "request_timeout_ms": timeout,
        "delivery_timeout_ms": chance.choice((20_000, 20_000, timeout + 1_000), "delivery timeout"),
        "metadata_max_age_ms": chance.choice((100, 500, 60_000), "metadata"),
    }
    if idempotent:
        producer["retries"] = producer["retries"] or 100  # several libraries refuse none
    below = ONE_IN_FLIGHT.get(ready.driver)
    if idempotent and below is not None and (not below or is_below(ready.version, below)):
        producer["in_flight"] = 1
    if ready.driver == "kafkajs":
        producer.pop("in_flight")
    return producer


def _consumer(chance: Randomness, ready: Ready, mode: str, metadata_ms: int) -> dict[str, Any]:
    consumer = {
        "offset_reset": "earliest",
        "auto_commit": mode == "auto",
        "auto_commit_interval_ms": 200,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 300,
        "request_timeout_ms": CONSUMER_TIMEOUT_MS,
        "fetch_max_wait_ms": 100,
        "retry_backoff_ms": 50,
        "metadata_max_age_ms": metadata_ms,
        "fetch_min_bytes": chance.choice((None, None, 1, 2_000), "fetch min"),
        "isolation": chance.choice(("read_committed", "read_committed", "read_uncommitted"), "isolation"),
    }
    if chance.below(RACK_ONE_IN, "racks") == 0:
        consumer["rack"] = chance.choice(RACKS, "rack")
    if ready.assignors:
        consumer["assignor"] = chance.choice(ready.assignors, "assignor")
    return consumer


def _copier(chance: Randomness, ready: Ready, producer: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the copier's producer; none in most seeds, and where a library does not have what it
    takes."""
    able = ready.transactions and ("send_offsets" in ready.commands or "session" in ready.roles)
    if not able or not producer["idempotence"] or chance.below(COPIES_ONE_IN, "copies") != 0:
        return {}
    delivery = min(COPIER_MS, producer["delivery_timeout_ms"])
    return {**producer, "transaction_timeout_ms": COPIER_MS, "delivery_timeout_ms": delivery}


def _apis(chance: Randomness, members: int, transactional: bool, copies: bool = False) -> frozenset[str]:
    """The requests that faults may hit; empty in a seed without such faults."""
    if chance.below(8, "no script") == 0:
        return frozenset()
    apis = PRODUCING | CONSUMING | GROUPS if members or copies else PRODUCING
    apis |= TRANSACTIONS - WITH_OFFSETS if transactional else frozenset()
    apis |= TRANSACTIONS if copies else frozenset()
    match chance.below(3, "focused"):
        case 0:
            return apis
        case 1:
            return apis & chance.choice(FOCUS, "focus") or apis
        case _ if copies and chance.below(2, "of transactions") == 0:
            return frozenset({chance.choice(sorted(TRANSACTIONS), "only")})
        case _:
            often = sorted(apis) + sorted(apis & set(CAUSES)) * RARE_TIMES
            return frozenset({chance.choice(often, "only")})


def _caused(chance: Randomness, apis: frozenset[str]) -> list[tuple[str, int]]:
    """What makes clients send the only request that is hit, and when."""
    verb = CAUSES.get(next(iter(apis))) if len(apis) == 1 else None
    count = 1 + chance.below(MOST_CAUSES, "causes")
    return [(verb, chance.below(DURATION_MS, "cause", one)) for one in range(count)] if verb else []


def _in_time(*steps: Step) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.at_ms))


def _steps(chance: Randomness, members: int, transactional: bool) -> tuple[Step, ...]:
    possible = ("leave", *STEPS) if members else PRODUCER_STEPS
    verbs = tuple(
        verb
        for verb in possible
        if verb not in ALONE_STEPS and (transactional or verb not in TRANSACTION_STEPS)
    )
    steps = [
        Step(verb=chance.choice(verbs, "step", number), at_ms=chance.below(DURATION_MS, "when", number))
        for number in range(chance.below(4, "steps"))
    ]
    if chance.below(ALONE_ONE_IN, "step alone") == 0:
        verbs = tuple(verb for verb in ALONE_STEPS if members or verb in PRODUCER_STEPS)
        verb, at = chance.choice(verbs, "alone"), chance.below(DURATION_MS, "alone when")
        steps.append(Step(verb=verb, at_ms=at))
    return tuple(steps)


def _scripts(
    chance: Randomness, ready: Ready, topics: int, groups: tuple[str, ...], apis: frozenset[str]
) -> tuple[RequestFault, ...]:
    """The faults of requests, those of decisive ones last."""
    decisive = apis & DECISIVE if len(apis) > 1 else frozenset[str]()
    if chance.below(2, "only produce") == 0:
        decisive &= {"Produce"}
    more = 1 + chance.below(MOST_DECISIVE, "decisive faults")
    return (
        *(_script(chance, ready, topics, groups, apis, chance.seed) if apis else ()),
        *(
            _script(chance, ready, topics, groups, decisive, chance.below(1 << 32, "decisive"))[:more]
            if decisive
            else ()
        ),
    )


def _script(
    chance: Randomness, ready: Ready, topics: int, groups: tuple[str, ...], apis: frozenset[str], seed: int
) -> tuple[RequestFault, ...]:
    features = Features(
        apis=apis,
        topics=dict.fromkeys(TOPICS[:topics], PARTITIONS),
        groups=groups,
        for_ms=DURATION_MS,
        slow_ms=SLOW_MS,
        most=MOST_HITS,
        often=OFTEN,
        unknown_one_in=UNKNOWN_ONE_IN,
        silences="request_timeout_ms" in ready.config and chance.below(4, "silences") == 0,
    )
    early = RARE if len(apis) == 1 and not apis.isdisjoint(CAUSES) else EARLY
    return tuple(_denser(fault, early) for fault in draw_script(seed, features))


def _aimed(chance: Randomness, apis: frozenset[str], apart: bool) -> Iterator[RequestFault]:
    """Of AIMED what the run has requests for."""
    for text in AIMED:
        api = next(one for one in DECISIVE | AIMED_AT if f" {one}" in text)
        if api not in apis or chance.below(AIMED_ONE_IN, text) != 0:
            continue
        yield parse(
            text.format(
                one_in=2 + chance.below(10, f"{text} one in"),
                nth=2 + chance.below(4, f"{text} nth") if apart else 1,
                late=chance.choice((1_000, 2_500, CONSUMER_TIMEOUT_MS + 500), f"{text} late"),
                half=DURATION_MS // 2,
            )
        )


def _groups(members: int, copier: Mapping[str, Any]) -> tuple[str, ...]:
    return (*((GROUP,) if members else ()), *((COPIERS,) if copier else ()))


def _denser(fault: RequestFault, early: int) -> RequestFault:
    """A run has tens of requests of a kind, not hundreds: what would hit the 50th hits one of the first."""
    return evolve(fault, nth=fault.nth and 1 + fault.nth % early, one_in=min(fault.one_in, early))


def _broker_faults(
    chance: Randomness, members: int, transactional: bool, caused: list[tuple[str, int]]
) -> tuple[BrokerFault, ...]:
    verbs = (*BROKER_VERBS, *GROUP_VERBS) if members else BROKER_VERBS
    drawn = [
        BrokerFault(
            verb=chance.choice(verbs, "broker verb", number),
            at_ms=chance.below(DURATION_MS, "at", number),
            for_ms=100 + chance.below(900, "for", number),
            target=chance.below(PARTITIONS, "target", number),
        )
        for number in range(chance.below(4, "broker faults"))
    ]
    if not transactional and chance.below(DELETES_ONE_IN, "deletes") == 0:
        at, target = chance.below(DURATION_MS, "deletes at"), chance.below(PARTITIONS, "deletes of")
        drawn.append(BrokerFault(verb=DELETES, at_ms=at, for_ms=0, target=target))
    drawn += [
        BrokerFault(verb=verb, at_ms=at, for_ms=0, target=chance.below(PARTITIONS, "cause of", at))
        for verb, at in caused
        if verb not in STEPS
    ]
    return tuple(drawn)


def _long(chance: Randomness, ready: Ready, producer: dict[str, Any]) -> tuple[BrokerFault, ...]:
    """A fault of a broker that lasts longer than deliveries may take; sets how long these may."""
    if chance.below(LONG_ONE_IN, "long") != 0:
        return ()
    least = LEAST_DELIVERY_MS.get(ready.driver, 0)
    timeout = max(least, chance.choice(SHORT_DELIVERY_MS, "short delivery"))
    producer["delivery_timeout_ms"] = timeout
    producer["request_timeout_ms"] = min(
        producer["request_timeout_ms"], timeout
    )  # Java and librdkafka ask for it
    if "linger_ms" in producer:
        producer["linger_ms"] = 0
    fault = BrokerFault(
        verb=chance.choice(LONG_VERBS, "long verb"),
        at_ms=chance.below(DURATION_MS // 2, "long at"),
        for_ms=chance.choice(LONG_MS, "long for"),
        target=chance.below(PARTITIONS, "long of"),
    )
    return (fault,)


def _reader(chance: Randomness, ready: Ready) -> str:
    """Where a late reader begins; most begin at the start of a log that changes, if it does."""
    able = "offset_reset" in ready.config and chance.below(READER_ONE_IN, "reader") == 0
    return chance.choice(RESETS, "reset") if able else ""


def _growth(chance: Randomness, ready: Ready, consumer: Mapping[str, Any]) -> Iterator[BrokerFault]:
    """A topic grows only where clients look at metadata again soon enough to find the new partition."""
    finds = (
        "metadata_max_age_ms" in ready.config
        and consumer.get("metadata_max_age_ms", DEFAULT_AGE_MS) <= SOON_MS
    )
    if chance.below(GROWS_ONE_IN, "grows") == 0 and finds:
        yield BrokerFault(verb=GROWS, at_ms=chance.below(DURATION_MS, "grows at"), for_ms=0, target=0)


def _moves(chance: Randomness, transactions: bool) -> Iterator[BrokerFault]:
    """A leader's epoch that clients do not know, and another coordinator of transactions."""
    for verb, one_in in ((BOUNCES, BOUNCES_ONE_IN), (MOVES_TRANSACTIONS, MOVES_TRANSACTIONS_ONE_IN)):
        if (verb != MOVES_TRANSACTIONS or transactions) and chance.below(one_in, verb) == 0:
            at, target = chance.below(DURATION_MS, f"{verb} at"), chance.below(PARTITIONS, f"{verb} of")
            yield BrokerFault(verb=verb, at_ms=at, for_ms=0, target=target)


def _renewal(chance: Randomness, *, able: bool) -> Iterator[BrokerFault]:
    for verb in RENEWS:
        if able and chance.below(RENEWS_ONE_IN, verb) == 0:
            at = chance.below(DURATION_MS, f"{verb} at")
            yield BrokerFault(verb=verb, at_ms=at, for_ms=0, target=chance.below(PARTITIONS, f"{verb} of"))
            return


def _logs(chance: Randomness, shapes: tuple[str, ...]) -> str:
    kinds = [kind for kind in LOGS if kind != COMPACTS or "null key" not in shapes]
    return chance.choice(kinds, "logs") if chance.below(LOGS_ONE_IN, "logs change") == 0 else ""


def _in_order(*faults: BrokerFault) -> tuple[BrokerFault, ...]:
    """A topic that is made again does not grow."""
    again = any(fault.verb == RECREATES for fault in faults)
    kept = (fault for fault in faults if not again or fault.verb != GROWS)
    return tuple(sorted(kept, key=lambda fault: fault.at_ms))
