"""What one seed does to a client, as plain data: how it is configured, what it sends and reads, and which
faults it meets.

Owns a scenario and the smaller ones. Must not know how it is drawn (drawing.py) or carried out
(scenario_run.py). Faults of requests are those of proxy/faults, in its words and within its table of what a
correct broker may answer.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import asdict, evolve, field, frozen

from fencepost.proxy.faults import RequestFault, parse

DURATION_MS = 1_200
"""Duration of the part with faults, unless a scenario was shrunk."""
STEPS: Mapping[str, str] = {
    "leave": "a member leaves and another joins",
    "restart": "every member leaves, and as many join, from what is committed",
    "crowd": "two members join at once, and as many leave before the group has settled",
    "seek": "a member seeks back in a partition, while a poll is under way",
    "commits": "every member commits three times at once",
    "resubscribe": "a member subscribes to the first topic only, and then to all again",
    "rest": "the group does not poll for half a second",
    "replace": "a producer is closed with all that is under way, and another opens in its place",
    "fence": "another producer of the same transactional id opens before a transaction ends",
    "pause": "a member pauses every partition that it has, polls, and resumes them",
    "resume": "a member resumes every partition that it has, paused or not",
    "flush": "a producer flushes with all that is under way",
    "cancel": "the application cancels the sends of a producer that are under way",
}
"""What the application itself does to its group and producers."""
TRANSACTION_STEPS = ("fence",)
"""Steps that need transactions."""
PRODUCER_STEPS = ("replace", "flush", "cancel", *TRANSACTION_STEPS)
"""Steps that need no group."""
TOPICS = ("t", "u", "v")
DELETES = "delete_records"
"""Verb of a fault of brokers that shortens a log."""
GROWS = "grow"
"""Verb that adds a partition to the first topic; records are sent to it from then on."""
BOUNCES = "bounce_leader"
"""Verb that moves a leader away and back at once: it leads in an epoch that clients do not know."""
MOVES_TRANSACTIONS = "move_transactions"
"""Verb that moves a coordinator of transactions."""
RECREATES = "recreate"
"""Verb that deletes the first topic and makes it again: offsets and sequences begin anew."""
TRUNCATES = "truncate"
"""Verb that takes the end of a log away: its leader goes on alone and goes down, and a replica without what
it wrote is elected (unclean.leader.election.enable)."""
COMPACTS, EXPIRES = "compact", "expire"
LOGS: Mapping[str, str] = {
    COMPACTS: "logs are compacted: of several records with one key the last one stays",
    EXPIRES: "logs keep their newest records only",
}
"""What brokers do with logs while clients run, in words."""
SINGLE = (DELETES, GROWS, BOUNCES, MOVES_TRANSACTIONS, RECREATES, TRUNCATES)
"""Verbs of faults of brokers that a scenario has once at most; each is drawn apart from all others."""
SAYS: Mapping[str, str] = {
    DELETES: "the first half of the records of t-{target} is deleted at {at_ms} ms",
    GROWS: "t gets one more partition at {at_ms} ms",
    RECREATES: "t is deleted at {at_ms} ms and made again",
    TRUNCATES: "the leader of t-{target} goes on alone at {at_ms} ms, and loses what it wrote",
    BOUNCES: "the leader of t-{target} moves away and back at {at_ms} ms",
    MOVES_TRANSACTIONS: "the coordinator of transactions of partition {target} moves at {at_ms} ms",
    "rebalance": "{words} of the group at {at_ms} ms",
    "move_coordinator": "{words} of the group at {at_ms} ms",
}
"""What a fault of brokers does, in words; the others hit a leader for a while."""


@frozen(kw_only=True)
class BrokerFault:
    """What happens to a broker, in the verbs of an embedded cluster (docs/reference/embedded.md)."""

    verb: str
    at_ms: int
    for_ms: int
    # Leader of this partition of t; of `rebalance` and `move_coordinator` the group's coordinator; of
    # `move_transactions` the leader of this partition of __transaction_state.
    target: int

    def __str__(self) -> str:
        words = self.verb.replace("_", " ")
        sentence = SAYS.get(self.verb, "{words} of the leader of t-{target} at {at_ms} ms for {for_ms} ms")
        return sentence.format(words=words, target=self.target, at_ms=self.at_ms, for_ms=self.for_ms)


@frozen(kw_only=True)
class Step:
    """What the application does at a moment."""

    # One of STEPS.
    verb: str
    at_ms: int

    def __str__(self) -> str:
        return f"{STEPS[self.verb]} at {self.at_ms} ms"


@frozen(kw_only=True)
class Scenario:
    """Everything in a run except the timing of the client and the machine."""

    seed: int
    # Settings of `open`.
    producer: Mapping[str, Any] = field(factory=dict)
    # Settings of `open`.
    consumer: Mapping[str, Any] = field(factory=dict)
    producers: int = 1
    # Consumers of the group; 0: no group.
    members: int = 0
    # Settings of the producer of an application that copies records with their offsets in transactions
    # (copying.py); empty: there is none.
    copier: Mapping[str, Any] = field(factory=dict)
    # Number of topics; at most as many as TOPICS has.
    topics: int = 1
    # Partitions of each topic.
    partitions: int = 3
    # Over which the bursts are spread.
    duration_ms: int = DURATION_MS
    # Bursts of appends of each producer, over the run.
    bursts: int = 10
    # Appends that are sent at once.
    burst: int = 10
    # Whether each burst is a transaction; one of four is aborted.
    transactional: bool = False
    # Whether a transaction ends only after each of its appends was answered; else as soon as they were sent.
    waits: bool = True
    # Whether the application asks for the commit although an append has failed, and leaves it to the library
    # to refuse. Only if it waits.
    trusts: bool = False
    # Whether a transaction sends to one partition after the other, and waits for the answers between.
    apart: bool = False
    # Shapes of records that are not plain (record_contents.py).
    shapes: tuple[str, ...] = ()
    # Records of one poll at most: few make many polls, and commits between them.
    polled: int = 500
    # Whether members seek to the beginning of each partition that they are given, in their listener.
    rewinds: bool = False
    # sync, async, or auto.
    commit_mode: str = "sync"
    steps: tuple[Step, ...] = ()
    request_faults: tuple[RequestFault, ...] = ()
    broker_faults: tuple[BrokerFault, ...] = ()
    # Whether brokers' sockets take few bytes that were not read, so that clients write in parts.
    narrow: bool = False
    # Idle time after which brokers close a connection (connections.max.idle.ms); 0: ten minutes.
    idle_ms: int = 0
    # Where a reader in a group of its own begins that joins late: earliest, latest or none; empty: there is
    # no such reader.
    reader: str = ""
    # Whether lists in answers are in another order than Apache Kafka's.
    shuffled: bool = False
    # One of LOGS; empty: logs keep everything.
    logs: str = ""
    # Seed of the swarm's faults of brokers (`kafka.chaos`), in addition; 0: none.
    chaos: int = 0

    @property
    def recreates(self) -> bool:
        """Whether the first topic is made again."""
        return any(fault.verb == RECREATES for fault in self.broker_faults)

    @property
    def truncates(self) -> bool:
        """Whether records of the first topic that were acknowledged may be lost."""
        return any(fault.verb == TRUNCATES for fault in self.broker_faults)

    @property
    def faults(self) -> int:
        """How many faults and steps there are in addition to the plain load."""
        return (
            (len(self.request_faults) + len(self.broker_faults) + len(self.steps) + len(self.shapes))
            + bool(self.chaos)
            + bool(self.idle_ms)
            + bool(self.logs)
            + self.narrow
            + self.shuffled
            + bool(self.reader)
        )

    def words(self) -> list[str]:
        """What happens, one line each."""
        words = [str(fault) for fault in self.request_faults]
        words += [str(fault) for fault in self.broker_faults]
        words += [str(step) for step in self.steps]
        if self.narrow:
            words.append("brokers' sockets take few bytes that were not read")
        if self.idle_ms:
            words.append(f"brokers close connections that are idle for {self.idle_ms} ms")
        if self.shuffled:
            words.append("lists in answers are in any order")
        if self.reader:
            words.append(f"a reader in a group of its own joins later, offset reset {self.reader}")
        if self.logs:
            words.append(LOGS[self.logs])
        if self.chaos:
            words.append(f"the swarm's broker faults of seed {self.chaos}")
        shape = (
            f"{self.producers} producers send {self.bursts} bursts of {self.burst} records each to "
            f"{self.topics}"
            f" topics of {self.partitions} partitions"
        )
        if self.transactional:
            shape += ", each a transaction"
            shape += ", one partition after the other" if self.apart else ""
            shape += ", committed whatever has failed" if self.trusts else ""
        if self.shapes:
            shape += f", some with {', '.join(self.shapes)}"
        if self.members:
            reading = f"read {self.polled} records at a time and commit ({self.commit_mode})"
            shape += f"; {self.members} members {reading}"
        if self.copier:
            shape += ", and a copier reads them and writes them to another topic in transactions"
        if self.members and (rack := self.consumer.get("rack")):
            shape += f", from the broker in rack {rack}"
        if self.members and self.rewinds:
            shape += ", and seek to the beginning of each partition that they are given"
        return [shape, *words]

    def smaller(self) -> Iterator["Scenario"]:
        """Each scenario with one thing less: the largest steps first, faults before the size of the load."""
        lists = ("request_faults", "broker_faults", "steps", "shapes")
        if self.members:  # first, because runs without a group are short
            kept = tuple(step for step in self.steps if step.verb in PRODUCER_STEPS)
            yield evolve(self, members=0, steps=kept)
        if self.copier:
            yield evolve(self, copier={})
        if self.chaos:
            yield evolve(self, chaos=0)
        if self.transactional:
            kept = tuple(step for step in self.steps if step.verb not in TRANSACTION_STEPS)
            yield evolve(self, transactional=False, steps=kept)
        for name in ("narrow", "idle_ms", "logs", "rewinds", "reader", "shuffled", "apart", "trusts"):
            if value := getattr(self, name):
                yield self._with(name, type(value)())
        for name in lists:
            things = getattr(self, name)
            if len(things) > 1:
                yield self._with(name, ())
                yield self._with(name, things[: len(things) // 2])
                yield self._with(name, things[len(things) // 2 :])
        for name in lists:
            things = getattr(self, name)
            for place in range(len(things)):
                yield self._with(name, things[:place] + things[place + 1 :])
        for name, least in (
            *(("producers", 1), ("topics", 1), ("partitions", 1), ("bursts", 1)),
            *(("burst", 2), ("members", 1), ("duration_ms", 50)),
        ):
            if getattr(self, name) > least:
                yield self._with(name, max(least, getattr(self, name) // 2))

    def _with(self, name: str, value: Any) -> "Scenario":
        changes: dict[str, Any] = {name: value}
        return evolve(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it; faults of requests in words."""
        values = asdict(evolve(self, request_faults=()), recurse=True)
        return {**values, "request_faults": [str(fault) for fault in self.request_faults]}


def scenario_of(values: Mapping[str, Any]) -> Scenario:
    """What `as_dict` wrote."""
    made = dict(values)
    made["request_faults"] = tuple(parse(one) for one in made["request_faults"])
    made["broker_faults"] = tuple(BrokerFault(**one) for one in made["broker_faults"])
    made["steps"] = tuple(Step(**one) for one in made["steps"])
    made["shapes"] = tuple(made["shapes"])
    return Scenario(**made)
