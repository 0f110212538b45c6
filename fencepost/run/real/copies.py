"""Copies of a cluster's files: the directories of a run's topics after each run, and its logs with a finding.

Owns what is copied, in which order, and how much of it. Must not know what is looked for.

Brokers go on meanwhile. The checkpoints come first, so that what a broker notes while its segments are copied
counts as not committed (docs/how-to/audit.md). A file that goes away is no part of the copy.
"""

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from fencepost.impl.log import layout

MOST_COPIED_BYTES = 64 << 20
"""Of one log directory: a run writes less than a megabyte, the metadata of 25 runs a few."""
MOST_LOG_BYTES = 4 << 20
"""The end of a log that is kept: a broker under faults wrote one megabyte a minute."""
CHECKPOINTS = (layout.HIGH_WATERMARKS, layout.LOG_STARTS, layout.RECOVERY_POINTS, layout.CLEANER_OFFSETS)
OF_BROKER = (*CHECKPOINTS, "meta.properties")
Places = tuple[tuple[str, Path], ...]
"""(broker, copy of its log directory), as an audit wants them."""


def copy_directories(directories: Mapping[int, Path], topics: Collection[str], to: Path) -> Places:
    """Copy the partitions of some topics, of each broker, with its checkpoints.

    Args:
        directories: the log directory of each broker; those that are not there are passed over.
        topics: by the cluster's names. Others are not copied.
        to: the folder of the copies. What it has is replaced.

    Returns:
        where they are. A partition above MOST_COPIED_BYTES is not in it.

    Raises:
        OSError: for a file that is there and cannot be read or written.
    """
    shutil.rmtree(to, ignore_errors=True)
    places = []
    for broker, directory in sorted(directories.items()):
        if not directory.is_dir():
            continue
        folder = to / f"broker-{broker}"
        folder.mkdir(parents=True)
        for name in OF_BROKER:
            _copy(directory / name, folder / name)
        for found in sorted(directory.iterdir()):
            topic, _, number = found.name.rpartition("-")
            if topic in topics and number.isdecimal():
                copy_folder(found, folder / found.name)
            elif found.name.endswith(layout.DOOMED):
                (folder / found.name).mkdir()  # its checkpoint may still name it
        places.append((str(broker), folder))
    return tuple(places)


def copy_folder(found: Path, to: Path) -> None:
    """Copy the files of a partition, unless they have more than MOST_COPIED_BYTES.

    The indexes of the last segment are left out: a broker that runs has them in memory, preallocated, and
    what is in the file says nothing.

    Args:
        found: its folder.
        to: the folder of the copy.

    Raises:
        OSError: for a file that is there and cannot be read or written.
    """
    sizes = {}
    for file in sorted(found.iterdir()):
        try:
            sizes[file] = file.stat().st_size
        except FileNotFoundError:
            continue
    last = max((file.stem for file in sizes if file.suffix == layout.LOG), default="")
    chosen = [file for file in sizes if file.stem != last or file.suffix not in layout.INDEXES]
    if sum(sizes[file] for file in chosen) > MOST_COPIED_BYTES:
        return
    to.mkdir(exist_ok=True, parents=True)
    for file in chosen:
        _copy(file, to / file.name)


def copy_logs(logs: Mapping[str, Path], to: Path) -> None:
    """Copy the last MOST_LOG_BYTES of each log, as NAME.log.

    Args:
        logs: by name; those that are not there are passed over.
        to: the folder of the copies.

    Raises:
        OSError: for a file that is there and cannot be read or written.
    """
    to.mkdir(parents=True, exist_ok=True)
    for name, path in logs.items():
        if not path.is_file():
            continue
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - MOST_LOG_BYTES))
            (to / f"{name}.log").write_bytes(log.read(MOST_LOG_BYTES))


def _copy(file: Path, to: Path) -> None:
    try:
        shutil.copyfile(file, to)
    except FileNotFoundError:
        to.unlink(missing_ok=True)
