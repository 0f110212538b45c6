"""What stood when progress failed: the state of the cluster at the moment at which a wait was given up.

Owns the form, and its way into the detail of a `liveness_failed` event and out of it. Must not know who looks
(run/simulated/diagnosis.py), nor what follows from it (record/stuck.py).
"""

import msgspec
from attrs import frozen

from fencepost.traces.decoding import from_json


@frozen(kw_only=True)
class BrokerSeen:
    """One broker."""

    # Its id.
    broker: int
    # up, paused or down.
    process: str
    # Of its registration in ZooKeeper; -1 while it has none.
    broker_epoch: int = -1
    # The brokers that are alive, as it has heard.
    knows: tuple[int, ...] = ()


@frozen(kw_only=True)
class Belief:
    """What a broker believes of its replica. Without a process or a replica there is none."""

    # Who.
    broker: int
    # Whom it takes for the leader; -1 for nobody.
    leader: int
    # Of the last LeaderAndIsr that it obeyed.
    leader_epoch: int
    # As it was last heard, or written by itself.
    isr: tuple[int, ...]
    # Of the state from which a leader would change the ISR.
    zk_version: int
    # What a leader has proposed, and no answer came yet.
    pending_isr: tuple[int, ...] | None
    # Below the log end.
    high_watermark: int
    # Of its log.
    log_end_offset: int


@frozen(kw_only=True)
class PartitionSeen:
    """One partition, as ZooKeeper has it and as its brokers believe."""

    # Its topic.
    topic: str
    # Its number.
    partition: int
    # Assigned.
    replicas: tuple[int, ...]
    # In ZooKeeper; -1 for nobody.
    leader: int
    # In ZooKeeper.
    leader_epoch: int
    # In ZooKeeper.
    isr: tuple[int, ...]
    # Of the state node.
    zk_version: int
    # The broker that wrote this state; -1 where that is not known.
    written_by: int
    # By broker.
    beliefs: tuple[Belief, ...]


@frozen(kw_only=True)
class Refusal:
    """Refusals of one kind by one broker."""

    # Who refused, or was refused.
    broker: int
    # What, in words.
    says: str
    # Time of the last one, nanoseconds.
    last: int
    # How many there were.
    count: int


@frozen(kw_only=True)
class WaitingOperation:
    """The oldest operation that has no answer."""

    # Its id.
    op_id: int
    # Its client's.
    process: int
    # append, poll, ...
    function: str
    # Its partition's topic.
    topic: str
    # Its partition.
    partition: int
    # When it was invoked, nanoseconds.
    since: int
    # The broker that was asked last; -1 for none, or where the client does not say.
    asked: int = -1
    # The answer to its last attempt.
    error: str = ""


@frozen(kw_only=True)
class Diagnosis:
    """The whole."""

    # Those that something is the matter with.
    partitions: tuple[PartitionSeen, ...]
    # Further ones.
    left_out: int = 0
    # All of them.
    brokers: tuple[BrokerSeen, ...]
    # As /controller names it; -1 for nobody.
    controller: int
    # Of /controller_epoch.
    controller_epoch: int
    # The brokers that act as controller.
    acting: tuple[int, ...]
    # Groups and transactions that are in the middle of something, a sentence each.
    waiting: tuple[str, ...] = ()
    # Since the faults ended, the latest last.
    refusals: tuple[Refusal, ...] = ()
    # None while no operation waits.
    oldest: WaitingOperation | None = None


def diagnosis_of(detail: str) -> Diagnosis | None:
    """Out of the detail of an event; None where it holds none: an earlier version, or somebody else, wrote
    it."""
    try:
        found: Diagnosis = from_json(detail, Diagnosis)
        return found
    except msgspec.DecodeError:
        return None
