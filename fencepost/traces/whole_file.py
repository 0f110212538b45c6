"""Files that are there whole or not at all: pages, reports, plans, states; not what grows, such as journals.

Owns the name of a draft, next to the file. A reader sees the old file or the new one. Where the disk is full
the old one stays, and no draft does.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and put it in its place at the end.

    Args:
        path: of the file; its missing folders are made. A link stays one, and what is no file (a pipe, a
            terminal) is written to directly.

    Yields:
        the path to write to.

    Raises:
        OSError: if it cannot be written, with the file's name; what was there stays.
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
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(draft)):  # `write` names no file
            raise OSError(error.errno, error.strerror, str(path)) from None
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
