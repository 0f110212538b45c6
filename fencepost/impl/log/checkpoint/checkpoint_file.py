"""Checkpoint files: small text files that are replaced as a whole and durably, in Kafka's format (version,
count, one entry per line).

Owns the format and the order of file calls: write a temporary file, sync it, rename it over the old one, sync
the directory. A crash in between leaves the old file or the new one, never a mixture.
"""

from collections.abc import Callable
from typing import TypeVar

from fencepost.impl.core.files import FileSystem
from fencepost.impl.messages.broker_api import TopicPartition

Entry = TypeVar("Entry")
VERSION = 0
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
EPOCH_FILE = "leader-epoch-checkpoint"


def replace_file(files: FileSystem, directory: str, name: str, content: bytes) -> None:
    """Replace the file `directory`/`name` as a whole and durably.

    Args:
        files: the file system.
        directory, name: the file.
        content: its new content.
    """
    path = f"{directory}/{name}" if directory else name
    temporary = f"{path}.tmp"
    if files.exists(temporary):
        files.remove(temporary)
    file = files.open(temporary)
    file.append(content)
    file.sync()
    file.close()
    files.rename(temporary, path)
    files.sync_directory(directory)


def read_file(files: FileSystem, path: str) -> bytes:
    """The whole content of a file.

    Args:
        files: the file system.
        path: the file.

    Returns:
        its bytes; empty if the file does not exist.
    """
    if not files.exists(path):
        return b""
    file = files.open(path, create=False)
    content = file.read_at(0, file.size())
    file.close()
    return content


def format_lines(lines: list[str]) -> bytes:
    """Version, count, entries."""
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()


def parse_lines(content: bytes, decode: Callable[[list[str]], Entry]) -> list[Entry]:
    """The entries, each split into words and decoded.

    There are none if the file is missing, foreign, truncated or damaged: a checkpoint is a hint, so a bad one
    counts as empty. decode: raises ValueError for words that are not an entry.
    """
    lines = content.decode("utf-8", "replace").split("\n")
    if len(lines) < 2 or lines[0] != str(VERSION) or not lines[1].isdecimal():
        return []
    try:
        entries = [decode(line.split(" ")) for line in lines[2:] if line]
    except ValueError:
        return []
    return entries if len(entries) == int(lines[1]) else []


def write_high_watermarks(files: FileSystem, high_watermarks: dict[TopicPartition, int]) -> None:
    """Replace the high-watermark checkpoint of this broker.

    Args:
        files: the broker's log directory.
        high_watermarks: the high watermark of each partition.
    """
    lines = [f"{key.topic} {key.partition} {offset}" for key, offset in sorted(high_watermarks.items())]
    replace_file(files, "", HIGH_WATERMARK_FILE, format_lines(lines))


def read_high_watermarks(files: FileSystem) -> dict[TopicPartition, int]:
    """The checkpointed high watermarks. Missing partitions start at 0."""
    return dict(parse_lines(read_file(files, HIGH_WATERMARK_FILE), _decode_high_watermark))


def _decode_high_watermark(words: list[str]) -> tuple[TopicPartition, int]:
    topic, number, offset = words
    return TopicPartition(topic, int(number)), int(offset)
