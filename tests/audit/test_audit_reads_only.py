"""An audit changes nothing: not a byte, not a name, not a time of change; it opens files to be read and no
other way."""

import os
import sys
from pathlib import Path

import pytest
from audit_lab import audit, flip, place_of, plain, replica

WATCHED: dict[str, Path | list] = {}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.utime",
    "os.chmod",
    "os.link",
    "os.symlink",
)


def _watch(event: str, arguments: tuple) -> None:
    """An audit hook of the interpreter; it cannot be removed, so that it asks whether it is wanted."""
    if "root" not in WATCHED or not arguments:
        return
    inside = str(arguments[0]).startswith(str(WATCHED["root"]))
    if event == "open" and inside and arguments[2] & WRITING:
        WATCHED["seen"].append((event, arguments))
    if event.startswith(CHANGES) and inside:
        WATCHED["seen"].append((event, arguments))


def tree(root: Path) -> dict[str, tuple]:
    """Every file and directory: content, mode, time of change."""
    return {
        str(path.relative_to(root)): (
            path.read_bytes() if path.is_file() else None,
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in [root, *sorted(root.rglob("*"))]
    }


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Two replicas, one with a bad batch, a torn tail and a missing index: everything that a broker would put
    right."""
    root = tmp_path / "brokers"
    root.mkdir()
    replica(root, "a", plain())
    b = replica(root, "b", plain(), clean=False)
    path, position = place_of(b, 6)
    flip(path, position + 65)
    last = sorted((b / "t-0").glob("*.log"))[-1]
    last.write_bytes(last.read_bytes()[:-3])
    next((b / "t-0").glob("*.timeindex")).unlink()
    return root


def test_nothing_is_changed(damaged):
    """Rule: it only reads, whatever is wrong; proven by the interpreter's own audit hook and by what is there
    afterwards."""
    before = tree(damaged)
    WATCHED.update(root=damaged, seen=[])
    sys.addaudithook(_watch)
    try:
        assert audit(damaged, deep=True).findings.found
        seen = list(WATCHED["seen"])
        (damaged / "planted").touch()  # the hook does see a change
        assert WATCHED["seen"] != seen == []
        (damaged / "planted").unlink()
    finally:
        WATCHED.clear()
    os.utime(damaged, ns=(before["."][2], before["."][2]))
    assert tree(damaged) == before


def test_directories_that_cannot_be_written_are_read(damaged):
    """Rule: a copy may be mounted read-only."""
    everything = [damaged, *damaged.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert len(audit(damaged).findings.found) >= 2
    finally:
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)
