"""Files that are there whole or not at all: pages, reports, plans, states; not what grows, such as journals.
And folders for results, which are not to hold files of something else.

Owns the name of a draft, next to the file, and the one sentence about a foreign folder. A reader sees the old
file or the new one. Where the disk is full the old one stays, and no draft does.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from fencepost.traces.errors import FencepostError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and put it in its place at the end.

    Args:
        path: of the file; its missing folders are made. A link stays one, and what is no file (a pipe, a
            terminal) is written to directly.

    Yields:
        the path to write to.

    Raises:
        OSError: if it cannot be written; what was there stays.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        yield path
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole.

    Args:
        path: of the file; its missing folders are made.
        content: bytes, or text that becomes UTF-8.

    Raises:
        OSError: if it cannot be written; what was there stays.
    """
    with whole(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def refuse_foreign(folder: Path, ours: Collection[str], what: str) -> None:
    """Raise FencepostError if a folder has files of something else.

    Args:
        folder: may be missing or empty.
        ours: the names that may be in it; hidden files may be there anyway.
        what: is written there, with its article.
    """
    if not folder.is_dir():
        return
    others = sorted(
        path.name for path in folder.iterdir() if path.name not in ours and not path.name.startswith(".")
    )
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FencepostError(
            expected=f"an empty folder, or {what}",
            seen=f"{others[0]}{more}",
            where=str(folder),
            hint="choose another folder",
        )
