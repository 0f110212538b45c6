"""The names of the files of a log directory, as in Kafka.

Owns names only. A partition's directory is `topic-number`; in it each segment is named by its base offset in
20 digits:

    00000000000000000000.log        batches                       .cleaned, .swap: a compacted segment on its
                                    way in (impl/log/cleaner.py)
    00000000000000000000.index      offset -> position, sparse
    00000000000000000000.timeindex  timestamp -> offset, sparse
    00000000000000000000.txnindex   aborted transactions with a marker in the segment
    00000000000000000042.snapshot   producers as they were at offset 42
    leader-epoch-checkpoint

The top of the log directory has the checkpoints over all partitions and the marker of a clean shutdown.
"""

from functools import lru_cache

from attrs import frozen

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
INDEXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
CLEANED, SWAP, DELETED, TEMPORARY = ".cleaned", ".swap", ".deleted", ".tmp"
DIGITS = 20

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

DOOMED = "-delete"
"""The suffix of the directory of a deleted replica, until it is removed."""
LONGEST_NAME = 255
"""The most bytes of a file name (NAME_MAX of Linux)."""


def doomed_directory(replica: str, number: int) -> str:
    """The name of a replica's directory after it was deleted. Kafka uses a UUID for the number, and cuts a
    long topic in the same way."""
    topic, _, partition = replica.rpartition("-")
    suffix = f"-{partition}.{number}{DOOMED}"
    return f"{topic[: LONGEST_NAME - len(suffix)]}{suffix}"


@frozen(kw_only=True)
class SegmentName:
    """A name of the form `<20 digits><kind><suffix>`."""

    offset: int
    # LOG, INDEX, ...
    kind: str
    # "" or one of CLEANED, SWAP, DELETED.
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.offset:0{DIGITS}d}{self.kind}{self.suffix}"


@lru_cache(maxsize=4_096)
def parse_segment_name(name: str) -> SegmentName | None:
    """The parts of a file name; None if it does not have that form."""
    digits, rest = name[:DIGITS], name[DIGITS:]
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    suffix = next((known for known in (CLEANED, SWAP, DELETED) if rest.endswith(known)), "")
    kind = rest.removesuffix(suffix)
    if kind not in (LOG, *INDEXES, SNAPSHOT):
        return None
    return SegmentName(offset=int(digits), kind=kind, suffix=suffix)


def segment_path(directory: str, offset: int, kind: str, suffix: str = "") -> str:
    """The path of one file of one segment.

    Args:
        directory: the replica's directory.
        offset: the base offset of the segment.
        kind: LOG, INDEX, ...
        suffix: "" or one of CLEANED, SWAP, DELETED.

    Returns:
        the path.
    """
    name = str(SegmentName(offset=offset, kind=kind, suffix=suffix))
    return f"{directory}/{name}" if directory else name
