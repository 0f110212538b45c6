"""The files at the top of a log directory: offset checkpoints over all partitions, and the marker of a clean
shutdown.

Owns their names, their format (Kafka's: version, count, `topic partition offset`) and when the marker is
removed. Must not know logs.
"""

from collections.abc import Mapping

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.checkpoint.checkpoint_file import format_lines, parse_lines, read_file, replace_file
from fencepost.impl.log.layout import CLEAN_SHUTDOWN, DELETED
from fencepost.impl.messages.broker_api import TopicPartition

TAKEN = f"{CLEAN_SHUTDOWN}{DELETED}"
"""The name of the marker while it is being removed."""


def write_offsets(files: FileSystem, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint as a whole and durably.

    Args:
        files: the log directory.
        name: the name of the checkpoint.
        offsets: the offset of each partition.
    """
    lines = [f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items())]
    replace_file(files, "", name, format_lines(lines))


def read_offsets(files: FileSystem, name: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint.

    Args:
        files: the log directory.
        name: the name of the checkpoint.

    Returns:
        offsets by partition; empty if the file is missing or bad (it is a hint, and an empty one only costs
        time).
    """
    return parse_offsets(read_file(files, name))


def parse_offsets(content: bytes) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint that was read; empty for a bad one.

    Args:
        content: the bytes of the file.

    Returns:
        offsets by partition.
    """
    return dict(parse_lines(content, _decode))


def _decode(words: list[str]) -> tuple[TopicPartition, int]:
    topic, number, offset = words
    return TopicPartition(topic, int(number)), int(offset)


def put_clean_shutdown_marker(files: FileSystem) -> None:
    """Record that every log was closed completely. Call it last."""
    file = files.open(CLEAN_SHUTDOWN)
    file.sync()
    file.close()
    files.sync_directory("")


def take_clean_shutdown_marker(files: FileSystem) -> bool:
    """Whether the last shutdown was clean. Call it first.

    The marker is durably removed when this returns: a crash while the logs are being loaded must not count as
    clean at the next start (KAFKA-10471). The marker is renamed before it is removed. If a start finds the
    new name, the previous start may have died or failed before the removal was durable, and a power loss
    could bring the marker back.
    """
    clean = files.exists(CLEAN_SHUTDOWN)
    if clean:
        files.rename(CLEAN_SHUTDOWN, TAKEN)
    if files.exists(TAKEN):
        files.sync_directory("")
        files.remove(TAKEN)
    return clean
