"""Checkpoint files: small text files that are replaced as a whole and durably, in Kafka's format (version,
count, one entry per line).

Owns the format and the order of file calls: write a temporary file, sync it, rename it over the old one, sync
the directory. A crash in between leaves the old file or the new one, never a mixture.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.flaw import Flaw

Entry = TypeVar("Entry")
VERSION = 0


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
    entries: list[Entry] = []
    for item in read_lines(content, "", decode):
        if isinstance(item, Flaw):
            return []
        entries.append(item)
    return entries


def read_lines(content: bytes, says: str, decode: Callable[[list[str]], Entry]) -> "Iterator[Entry | Flaw]":
    """The entries of a checkpoint, and what is wrong with it.

    Args:
        content: of the file.
        says: what a line has, in words.
        decode: makes an entry of a line's words; raises ValueError for words that are not an entry.

    Returns:
        entries and flaws, in the order of the file.
    """
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines or lines[0].strip() != str(VERSION):
        yield Flaw(
            position=0, expected=f"a checkpoint of version {VERSION}", seen=lines[0] if lines else "no line"
        )
        return
    for line in lines[2:]:
        try:
            yield decode(line.split())
        except ValueError:
            yield Flaw(position=None, expected=says, seen=line)
    count = lines[1].strip() if len(lines) > 1 else "no line"
    if count != str(len(lines[2:])):
        yield Flaw(position=None, expected=f"{count} lines, as the count says", seen=str(len(lines[2:])))
