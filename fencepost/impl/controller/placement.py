"""The placement of replicas of a new topic, or of new partitions (C14): Kafka's rack-unaware round robin, as
a pure function.

Owns the rule. Must not know ZooKeeper, or the source of start and shift (Kafka draws both at random; a test
or a plan gives them).
"""

from fencepost.traces.errors import FencepostError


class ReplicationFactorError(FencepostError):
    """There are fewer brokers than requested replicas."""


def place_replicas(
    brokers: tuple[int, ...],
    *,
    partitions: int,
    replication_factor: int,
    start: int = 0,
    shift: int = 0,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Place the replicas of a topic.

    Args:
        brokers: the brokers, sorted.
        partitions: the number of partitions to place.
        replication_factor: replicas of each partition.
        start: index of the broker that leads partition 0.
        shift: distance between its first two replicas, minus one. It grows by one with each round over the
            brokers, so that two brokers share few partitions.
        first_partition: number of the first new partition, if partitions are added to a topic that was placed
            with the same start and shift.

    Returns:
        the replicas by partition number, preferred leader first.

    Raises:
        ReplicationFactorError: if there are fewer brokers than replicas.
    """
    count = len(brokers)
    if not 1 <= replication_factor <= count:
        raise ReplicationFactorError(
            expected=f"a replication factor from 1 to {count}, the number of brokers",
            seen=str(replication_factor),
            where="placement of replicas",
            hint="start more brokers or ask for fewer replicas",
        )
    placed = {}
    for number in range(first_partition, first_partition + partitions):
        leader, distance = (start + number) % count, shift + number // count
        followers = (
            brokers[(leader + 1 + (distance + place) % (count - 1)) % count]
            for place in range(replication_factor - 1)
        )
        placed[number] = (brokers[leader], *followers)
    return placed
