"""The preferred replica election tool (C15). Owns the file and the checks; the controller elects."""

import msgspec

from fencepost.impl.admin.cluster_state import AdminError, ClusterTopics, fitting, read_cluster, refuse_twice
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Failed


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    partition: int


class _Partitions(msgspec.Struct, forbid_unknown_fields=True):
    partitions: list[_Entry]
    version: int = 1


def decode_partitions(data: bytes, where: str) -> list[TopicPartition]:
    """Decode a file of partitions.

    Args:
        data: the content.
        where: the file, for the error.

    Returns:
        the partitions.

    Raises:
        AdminError: if it is invalid, or a partition occurs twice.
    """
    try:
        read = msgspec.json.decode(data, type=_Partitions)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AdminError(
            expected='{"partitions":[{"topic":"t","partition":0}]}', seen=str(error), where=where
        ) from None
    keys = [TopicPartition(entry.topic, entry.partition) for entry in read.partitions]
    refuse_twice(keys, "partition", where)
    return keys


def elect_preferred(keys: list[TopicPartition] | None, where: str) -> ZooKeeperSteps:
    """Ask the controller to move leadership to the preferred replicas.

    Args:
        keys: the partitions; None: all.
        where: the place that an error names.

    Returns:
        the steps; their result is the partitions.
    """
    cluster: ClusterTopics = yield from read_cluster(None if keys is None else {key.topic for key in keys})
    for key in keys or ():
        if key.partition not in cluster.topic(key.topic, where).assignment:
            raise AdminError(expected="a partition that exists", seen=str(key), where=where)
    keys = keys or [key for key in cluster.partitions() if key.topic not in cluster.deleting]
    if not keys:
        raise AdminError(expected="at least one partition", seen="a cluster without topics", where=where)
    write = Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions(keys))
    if cluster.electing or isinstance((yield fitting(write, where)), Failed):
        raise AdminError(
            expected="no preferred replica election in progress",
            seen="one that is",
            where=where,
            hint="ask again when it is over",
        )
    return keys
