"""Brokers that lead a partition which is no longer theirs, found when the faults have ended.

Owns the search. Must not restart anybody. As in Kafka, a reassignment does not wait for an old replica on a
broker that is gone, and no request tells it later (docs/explanation/zoo.md, "a stray replica"). If that
broker led the partition, it goes on as leader, and its groups stay there: heartbeats are answered, but no
assignment is ever committed. Operators of Kafka restart such a broker, and so does the run.
"""

from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.traces.events import Event, Name


def stray_leaders(cluster: FaultyCluster) -> list[int]:
    """The brokers that run, lead a partition by their own knowledge, and registered anew since the assignment
    that left them out. A broker that was registered all the time got the request to stop: it is not
    excused."""
    assignments = cluster.observed_state.assignments
    found = []
    for broker in cluster.broker_ids:
        core = cluster.world.hosts[broker].core
        if core is None:
            continue
        foreign = [
            (key.topic, key.partition)
            for key, replica in core.replicas.partitions.items()
            if replica.is_leader and broker not in assignments.get((key.topic, key.partition), (broker,))
        ]
        if any(_was_gone(cluster.events, broker, key) for key in foreign if assignments[key]):
            found.append(broker)
    return found


def _was_gone(events: list[Event], broker: int, key: tuple[str, int]) -> bool:
    """Whether the broker registered after the last assignment of the partition."""
    for event in reversed(events):
        if event.name is Name.ASSIGNMENT and (event.topic, event.partition) == key:
            return False
        if event.name is Name.BROKER_ZNODE and event.node == broker and event.broker_epoch >= 0:
            return True
    return False
