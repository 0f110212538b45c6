"""One case: a cluster, some hundred odd messages by one of three ways, and what must hold then.

Owns what is sent by whom. A case is a function of the seed and its number, and so is a finding. The three
ways:

- client: requests of clients, as the client listener lets them through.
- broker: everything, from a peer with the cluster's secret, as the inter-broker listener lets it through. A
  peer may lie about what it has or leads, and the cluster need not serve well afterwards; but no broker may
  make a mistake of its own, or give up.
- network: bytes over TCP to the runtime's network; frames cut, joined, mistaken. What it lets through goes on
  to a broker.
"""

import random
import traceback
from collections import Counter, deque

from attrs import define, field

from fencepost.impl.messages.broker_api import Message
from fencepost.impl.runtime.codec import MalformedError, decode, encode
from fencepost.impl.runtime.greeting import BROKER_MESSAGES, CLIENT_REQUESTS, check_broker, check_client
from fencepost.sim.scheduler import SECOND
from tools.fuzz.cluster import BROKERS, CLIENTS, STEP, Cluster
from tools.fuzz.line import send_bytes
from tools.fuzz.odd import Odd, as_sender

MESSAGES = 300
LATER = 0.02
"""How often seconds pass between two messages, so that sessions, requests and rebalances time out."""
KEPT_MESSAGES, LONGEST_MESSAGE = 8, 4_000
"""Of a finding."""
MOST_REFUSED = 20
"""Frames that a codec or a listener refuses, for each message that a case wants to send."""
WAYS = ("client", "broker", "network")


@define
class Finding:
    """What went wrong."""

    case: int
    way: str
    number: int
    # The messages before (a broker whose disk is busy takes them later).
    last: str
    # The exception, or the halts.
    trace: str


@define
class Case:
    """sent: by kind. refused: frames that codec or listener refused."""

    seed: int
    case: int
    messages: int = MESSAGES
    sent: Counter[str] = field(factory=Counter)
    refused: int = 0
    _last: deque[str] = field(factory=lambda: deque(maxlen=KEPT_MESSAGES))

    @property
    def way(self) -> str:
        """By which way messages come."""
        return WAYS[self.case % len(WAYS)]

    def run(self) -> Finding | None:
        """What was found; None for nothing."""
        draw = random.Random(f"{self.seed}:{self.case}")
        odd = Odd(draw)
        try:
            cluster = Cluster(draw.randrange(1 << 32), odd.learn)
            if self.way == "network":
                self._send_bytes(cluster, odd)
            else:
                self._send(cluster, odd)
            cluster.run(5 * SECOND)
            if not cluster.halts and self.way == "client":
                cluster.expect_service()
        except Exception:
            return self._finding(traceback.format_exc())
        return self._finding(str(cluster.halts)) if cluster.halts else None

    def _finding(self, trace: str) -> Finding:
        return Finding(self.case, self.way, self.sent.total(), "\n".join(self._last), trace)

    def _send(self, cluster: Cluster, odd: Odd) -> None:
        while self.sent.total() < self.messages and self.refused < MOST_REFUSED * self.messages:
            learn_state(cluster, odd)
            target, by_client = odd.draw.choice(BROKERS), self.way == "client"
            source = odd.draw.choice(CLIENTS if by_client else [one for one in BROKERS if one != target])
            message = odd.message(CLIENT_REQUESTS if by_client else BROKER_MESSAGES)
            try:
                message = decode(encode(message))
                if by_client:
                    check_client(message)
                else:
                    message = as_sender(message, source)
                    check_broker(source, message)
            except MalformedError:
                self.refused += 1
                continue
            self._last.append(f"{source} -> {target}: {message}"[:LONGEST_MESSAGE])
            self.sent[type(message).__name__] += 1
            cluster.send(source, target, message)
            cluster.run(odd.draw.choice((1, 3, 30)) * SECOND if odd.draw.random() < LATER else STEP)
            if cluster.halts:
                return

    def _send_bytes(self, cluster: Cluster, odd: Odd) -> None:
        def arrived(source: int, message: Message) -> None:
            self._last.append(f"{source}: {message}"[:LONGEST_MESSAGE])
            self.sent[type(message).__name__] += 1
            target = odd.draw.choice(BROKERS[::2])
            cluster.send(source if source in BROKERS else CLIENTS[0], target, message)
            cluster.run(STEP)
            learn_state(cluster, odd)

        learn_state(cluster, odd)
        self.refused += send_bytes(odd, self.messages, arrived)


def learn_state(cluster: Cluster, odd: Odd) -> None:
    """What a peer could know or guess: epochs, offsets, requests that wait for an answer."""
    pool = odd.pool
    for node in BROKERS:
        core = cluster.core(node)
        _set(pool, "broker_epoch", core.broker_context.broker_epoch)
        _set(pool, "controller_epoch", core.gate.controller_epoch)
        for conversation in core.replicas.fetcher.conversations.values():
            _set(pool, "correlation_id", conversation.in_flight)
        for key, partition in sorted(core.replicas.partitions.items()):
            _set(pool, "topic", key.topic)
            _set(pool, "leader_epoch", partition.leader_epoch)
            _set(pool, "current_leader_epoch", partition.leader_epoch)
            _set(pool, "log_end_offset", partition.log.log_end_offset)
            _set(pool, "offset", partition.log.log_end_offset)
            _set(pool, "zk_version", partition.zk_version)
        for group in core.groups.table.groups.values():
            _set(pool, "generation_id", group.generation)
            for member in (*group.members, *group.pending):
                _set(pool, "member_id", member)
    for name, values in (
        ("leader", BROKERS),
        ("isr", BROKERS),
        ("replicas", BROKERS),
        ("live_brokers", BROKERS),
    ):
        pool[name] = list(values)
    pool["session_timeout_ms"] = [6_000, 1_000]
    pool["rebalance_timeout_ms"] = [5_000, 1]
    pool["partition"] = [0, 0, 1, 2]
    pool["group_id"] = ["g", "h", ""]
    pool["protocol_type"] = ["consumer"]


def _set(pool: dict[str, list[object]], name: str, value: object) -> None:
    kept = pool.setdefault(name, [])
    if value not in kept:
        kept.append(value)
        del kept[:-40]
