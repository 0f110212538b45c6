"""What stood when progress failed: the state of the cluster at the moment at which a wait was given up.

Owns the form, and its way into the detail of a `liveness_failed` event and out of it. Must not know who looks
(run/simulated/diagnosis.py), nor what follows from it (checkers/invariants/stuck.py).
"""

import msgspec
from attrs import frozen

from fencepost.traces.decoding import from_json


@frozen(kw_only=True)
class BrokerSeen:
    """One broker."""

    broker: int
    """Its id."""
    process: str
    """up, paused or down."""
    broker_epoch: int = -1
    """Of its registration in ZooKeeper; -1 while it has none."""
    knows: tuple[int, ...] = ()
    """The brokers that are alive, as it has heard."""


@frozen(kw_only=True)
class Belief:
    """What a broker believes of its replica. Without a process or a replica there is none."""

    broker: int
    """Who."""
    leader: int
    """Whom it takes for the leader; -1 for nobody."""
    leader_epoch: int
    """Of the last LeaderAndIsr that it obeyed."""
    isr: tuple[int, ...]
    """As it was last heard, or written by itself."""
    zk_version: int
    """Of the state from which a leader would change the ISR."""
    pending_isr: tuple[int, ...] | None
    """What a leader has proposed, and no answer came yet."""
    high_watermark: int
    """Below the log end."""
    log_end_offset: int
    """Of its log."""


@frozen(kw_only=True)
class PartitionSeen:
    """One partition, as ZooKeeper has it and as its brokers believe."""

    topic: str
    """Its topic."""
    partition: int
    """Its number."""
    replicas: tuple[int, ...]
    """Assigned."""
    leader: int
    """In ZooKeeper; -1 for nobody."""
    leader_epoch: int
    """In ZooKeeper."""
    isr: tuple[int, ...]
    """In ZooKeeper."""
    zk_version: int
    """Of the state node."""
    written_by: int
    """The broker that wrote this state; -1 where that is not known."""
    beliefs: tuple[Belief, ...]
    """By broker."""


@frozen(kw_only=True)
class Refusal:
    """Refusals of one kind by one broker."""

    broker: int
    """Who refused, or was refused."""
    says: str
    """What, in words."""
    last: int
    """Time of the last one, nanoseconds."""
    count: int
    """How many there were."""


@frozen(kw_only=True)
class WaitingOperation:
    """The oldest operation that has no answer."""

    op_id: int
    """Its id."""
    process: int
    """Its client's."""
    function: str
    """append, poll, ..."""
    topic: str
    """Its partition's topic."""
    partition: int
    """Its partition."""
    since: int
    """When it was invoked, nanoseconds."""
    asked: int = -1
    """The broker that was asked last; -1 for none, or where the client does not say."""
    error: str = ""
    """The answer to its last attempt."""


@frozen(kw_only=True)
class Diagnosis:
    """The whole."""

    partitions: tuple[PartitionSeen, ...]
    """Those that something is the matter with."""
    left_out: int = 0
    """Further ones."""
    brokers: tuple[BrokerSeen, ...]
    """All of them."""
    controller: int
    """As /controller names it; -1 for nobody."""
    controller_epoch: int
    """Of /controller_epoch."""
    acting: tuple[int, ...]
    """The brokers that act as controller."""
    waiting: tuple[str, ...] = ()
    """Groups and transactions that are in the middle of something, a sentence each."""
    refusals: tuple[Refusal, ...] = ()
    """Since the faults ended, the latest last."""
    oldest: WaitingOperation | None = None
    """None while no operation waits."""


def diagnosis_of(detail: str) -> Diagnosis | None:
    """Out of the detail of an event; None where it holds none: an earlier version, or somebody else, wrote
    it."""
    try:
        found: Diagnosis = from_json(detail, Diagnosis)
        return found
    except msgspec.DecodeError:
        return None
