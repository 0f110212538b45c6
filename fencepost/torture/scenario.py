"""What one seed does to a client: how it is configured, what it sends and reads, and which faults it meets.

Owns the draw of a seed, and a scenario as plain data. Must not know how it is carried out (run.py). Every draw
is keyed by its purpose, so that removing one fault does not change the others.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import asdict, evolve, field, frozen

from fencepost.sim.randomness import Randomness
from fencepost.torture.protocol import Ready

DURATION_MS = 1_500
"""Of the part with faults."""
MILLION = 1_000_000
APIS = {"Produce": 0, "Metadata": 3, "OffsetCommit": 8, "Fetch": 1, "FindCoordinator": 10, "JoinGroup": 11}
"""Kafka's numbers of the requests that faults of requests hit."""
EFFECTS = {0: "the append", 8: "the commit", 11: "the member joined"}


@frozen(kw_only=True)
class RequestFault:
    """What happens to the nth request of a kind, counted over all connections."""

    verb: str
    """lose: the connection breaks after the effect and before the answer; cut: before the effect; delay: the
    answer comes late."""
    api: str
    nth: int
    """From 1."""
    delay_ms: int = 0

    def __str__(self) -> str:
        nth = (
            f"{self.nth}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(self.nth if self.nth < 4 else 0, 'th') } {self.api}"
        )
        match self.verb:
            case "lose":
                return f"answer to the {nth} lost after {EFFECTS.get(APIS[self.api], 'its effect')}"
            case "cut":
                return f"connection cut before the {nth} took effect"
            case _:
                return f"answer to the {nth} late by {self.delay_ms} ms"


@frozen(kw_only=True)
class BrokerFault:
    """What happens to a broker, in the verbs of an embedded cluster (docs/embedded.md)."""

    verb: str
    at_ms: int
    for_ms: int
    target: int
    """Leader of this partition; of `rebalance` nobody."""

    def __str__(self) -> str:
        if self.verb == "rebalance":
            return f"the group rebalances at {self.at_ms} ms"
        return f"{self.verb.replace('_', ' ')} of the leader of t-{self.target} at {self.at_ms} ms for {self.for_ms} ms"


@frozen(kw_only=True)
class Scenario:
    """All of a run but the client's and the machine's timing."""

    seed: int
    producer: Mapping[str, Any] = field(factory=dict)
    """Settings of `open`."""
    consumer: Mapping[str, Any] = field(factory=dict)
    """Settings of `open`."""
    producers: int = 1
    members: int = 0
    """Of one group."""
    partitions: int = 3
    bursts: int = 10
    """Of appends of each producer, over the run."""
    burst: int = 10
    """Appends that are sent at once."""
    commit_mode: str = "sync"
    """sync, async, or auto."""
    leaves: tuple[int, ...] = ()
    """Times in milliseconds at which the oldest member leaves and another joins."""
    request_faults: tuple[RequestFault, ...] = ()
    broker_faults: tuple[BrokerFault, ...] = ()

    def words(self) -> list[str]:
        """What happens, one line each."""
        words = [str(fault) for fault in self.request_faults]
        words += [str(fault) for fault in self.broker_faults]
        words += [f"a member leaves and another joins at {at} ms" for at in self.leaves]
        shape = f"{self.producers} producers send {self.bursts} bursts of {self.burst} records each"
        if self.members:
            shape += f"; {self.members} members read and commit ({self.commit_mode})"
        return [shape, *words]

    def smaller(self) -> Iterator["Scenario"]:
        """Each scenario with one thing less, the largest steps first."""
        for name in ("request_faults", "broker_faults", "leaves"):
            things = getattr(self, name)
            if len(things) > 1:
                yield self._with(name, ())
                yield self._with(name, things[: len(things) // 2])
                yield self._with(name, things[len(things) // 2 :])
        if self.members:
            yield evolve(self, members=0, leaves=())
        for name, least in (("producers", 1), ("partitions", 1), ("bursts", 1), ("burst", 2), ("members", 1)):
            if getattr(self, name) > least:
                yield self._with(name, max(least, getattr(self, name) // 2))
        for name in ("request_faults", "broker_faults", "leaves"):
            things = getattr(self, name)
            for place in range(len(things)):
                yield self._with(name, things[:place] + things[place + 1 :])

    def _with(self, name: str, value: Any) -> "Scenario":
        changes: dict[str, Any] = {name: value}
        return evolve(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self, recurse=True)


def scenario_of(values: Mapping[str, Any]) -> Scenario:
    """What `as_dict` wrote."""
    made = dict(values)
    made["request_faults"] = tuple(RequestFault(**one) for one in made["request_faults"])
    made["broker_faults"] = tuple(BrokerFault(**one) for one in made["broker_faults"])
    made["leaves"] = tuple(made["leaves"])
    return Scenario(**made)


def draw(seed: int, ready: Ready, *, idempotence: bool | None = None, faults: bool = True) -> Scenario:
    """The scenario of a seed for what a library can do. idempotence: None: on where the library has it.
    faults: False: only concurrency."""
    chance = Randomness(seed)
    idempotent = ready.idempotence if idempotence is None else idempotence
    settings = set(ready.config)
    producer = {
        "acks": -1,
        "idempotence": idempotent,
        "in_flight": chance.choice((1, 5, 5, 5), "in flight"),
        "linger_ms": chance.choice((0, 0, 5, 20), "linger"),
        "batch_records": chance.choice((1, 5, 100), "batch"),
        "compression": chance.choice(("none", *sorted(set(ready.codecs) & {"gzip", "lz4"})), "codec"),
        "retries": 100,
        "retry_backoff_ms": chance.choice((10, 50, 100), "backoff"),
        "request_timeout_ms": 2_000,
        "delivery_timeout_ms": 20_000,
        "metadata_max_age_ms": chance.choice((500, 60_000), "metadata"),
    }
    if ready.driver in ("sarama",) and idempotent:
        producer["in_flight"] = 1  # sarama refuses more
    if ready.driver == "kafkajs":
        producer.pop("in_flight")
    mode = chance.choice(("auto", *ready.commit_modes), "commit mode")
    consumer = {
        "offset_reset": "earliest",
        "auto_commit": mode == "auto",
        "auto_commit_interval_ms": 200,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 300,
        "fetch_max_wait_ms": 100,
        "retry_backoff_ms": 50,
        "metadata_max_age_ms": producer["metadata_max_age_ms"],
    }
    if ready.assignors:
        consumer["assignor"] = chance.choice(ready.assignors, "assignor")
    members = chance.choice((0, 0, 1, 2, 3), "members") if "subscribe" in ready.commands else 0
    hit = ["Produce", "Produce", "Produce", "Metadata"]
    if members:
        hit += ["OffsetCommit", "Fetch", "FindCoordinator", "JoinGroup"]
    request_faults = [
        RequestFault(
            verb=chance.choice(("lose", "lose", "cut", "delay"), "verb", number),
            api=chance.choice(hit, "api", number),
            nth=1 + chance.below(20, "nth", number),
            delay_ms=chance.choice((50, 300, 2_500), "delay", number),
        )
        for number in range(chance.below(7, "request faults"))
    ]
    verbs = ["crash", "pause", "expire_session", "slow", "cut_off", "move_leader"]
    verbs += ["rebalance"] * 2 if members else []
    broker_faults = [
        BrokerFault(
            verb=chance.choice(verbs, "broker verb", number),
            at_ms=chance.below(DURATION_MS, "at", number),
            for_ms=100 + chance.below(900, "for", number),
            target=chance.below(3, "target", number),
        )
        for number in range(chance.below(4, "broker faults"))
    ]
    leaves = [chance.below(DURATION_MS, "leave", number) for number in range(chance.below(3, "leaves"))]
    return Scenario(
        seed=seed,
        producer={name: value for name, value in producer.items() if name in settings},
        consumer={name: value for name, value in consumer.items() if name in settings},
        producers=1 + chance.below(3, "producers"),
        members=members,
        bursts=3 + chance.below(10, "bursts"),
        burst=5 + chance.below(30, "burst"),
        commit_mode=mode,
        leaves=tuple(sorted(leaves)) if members else (),
        request_faults=tuple(request_faults) if faults else (),
        broker_faults=tuple(sorted(broker_faults, key=lambda fault: fault.at_ms)) if faults else (),
    )
