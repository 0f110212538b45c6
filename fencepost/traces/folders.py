"""Folders for results: whether one is ours to write into.

Owns the one sentence about a folder that something else has written. Must not know what is written.
"""

from collections.abc import Collection
from pathlib import Path

from fencepost.traces.errors import FencepostError


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
