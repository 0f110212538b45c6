"""The contents of a broker's data directory: partitions, checkpoints, and everything else.

Owns names, and which file belongs to what. Must not know what segments contain. A directory may be a copy
of a live broker's, or of one that died at any moment. Unknown files are left alone and
reported.
"""

import re
from collections import Counter
from collections.abc import Iterator

from attrs import define, field, frozen

from fencepost.audit.audit_findings import Findings
from fencepost.audit.source import Place, in_order, opened, size_of
from fencepost.impl.log import layout
from fencepost.impl.log.dump.directory_files import PartitionOffset, Property, partition_offsets, properties
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS

TopicNumber = tuple[str, int]
"""A topic and the number of a partition."""

METADATA, BROKER_METADATA = "partition.metadata", "meta.properties"
KNOWN_FILES = {
    ".lock",
    layout.CLEAN_SHUTDOWN,
    layout.EPOCH_CHECKPOINT,
    BROKER_METADATA,
    METADATA,
    "quorum-state",
}
CHECKPOINTS = ("-checkpoint", ".checkpoint")
"""How the names of checkpoints end; the latter are KRaft's snapshots of its metadata."""
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<number>\d{1,10})")
_ASIDE = re.compile(r".+\.[0-9a-f]+-(delete|future|stray)")
_IN_BETWEEN = (layout.CLEANED, layout.SWAP, layout.DELETED, layout.TEMPORARY)


@frozen
class SegmentFile:
    """base_offset: what its name says. size: in bytes, when it was listed."""

    path: Place
    base_offset: int
    size: int

    def sibling(self, kind: str) -> Place:
        """Another file of the same segment."""
        return self.path.with_name(f"{self.path.name[: layout.DIGITS]}{kind}")


@define(kw_only=True)
class ReplicaFiles:
    """One replica's directory."""

    broker: str
    path: Place
    # Whether the broker was shut down cleanly.
    clean: bool = False
    # Offsets as checkpointed; None: not checkpointed.
    high_watermark: int | None = None
    log_start: int | None = None
    recovery_point: int | None = None
    # Whether the broker's cleaner knows this partition.
    compacted: bool = False
    # "" if the directory does not name it.
    topic_id: str = ""
    # Whether others of this broker have a high watermark and this one does not.
    alone: bool = False
    # Ascending.
    segments: list[SegmentFile] = field(factory=list)
    # (offset, file) of the producer snapshots, ascending.
    snapshots: list[tuple[int, Place]] = field(factory=list)

    @property
    def size(self) -> int:
        """Bytes in its segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def epoch_checkpoint(self) -> Place:
        """Where it should be."""
        return self.path / layout.EPOCH_CHECKPOINT


@define(kw_only=True)
class DataDirectory:
    """One log directory of a broker."""

    broker: str
    path: Place
    # Whether the broker was shut down cleanly.
    clean: bool = False
    # The directory of each partition.
    partitions: dict[TopicNumber, Place] = field(factory=dict)
    # Checkpointed offsets by file name and partition.
    checkpoints: dict[str, dict[TopicNumber, int]] = field(factory=dict)
    # Directories that are being created or removed.
    aside: list[str] = field(factory=list)
    # Fields of meta.properties.
    identity: dict[str, str] = field(factory=dict)


def open_directory(broker: str, path: Place, findings: Findings) -> DataDirectory:
    """List the top of a data directory. broker: its name; path: the directory; findings: for what is wrong.
    Raises EnvironmentError_ if it is not a data directory."""
    if not path.is_dir():
        seen = "a file" if path.exists() else "nothing there"
        raise EnvironmentError_(expected="a broker's data directory", seen=seen, where=str(path))
    found = DataDirectory(broker=broker, path=path, clean=(path / layout.CLEAN_SHUTDOWN).exists())
    unknown: list[str] = []
    for entry in in_order(path):
        key = _partition_of(entry.name)
        if entry.is_dir() and key is not None:
            found.partitions[key] = entry
        elif entry.is_dir() and _ASIDE.fullmatch(entry.name):
            found.aside.append(entry.name)
        elif entry.name not in KNOWN_FILES and not entry.name.endswith(CHECKPOINTS):
            unknown.append(entry.name)
    _refuse_foreign(found, unknown)
    for name in (layout.HIGH_WATERMARKS, layout.LOG_STARTS, layout.RECOVERY_POINTS, layout.CLEANER_OFFSETS):
        found.checkpoints[name] = _read_checkpoint(path / name, findings)
    found.identity = _read_properties(path / BROKER_METADATA, findings)
    if unknown:
        findings.note(f"{path}: not Kafka's, left alone: {_some(unknown)}")
    if not found.partitions:
        findings.note(f"{path}: no partition in it")
    elif not found.checkpoints[layout.HIGH_WATERMARKS]:
        findings.note(f"{path}: no high watermarks are checkpointed; nothing in it counts as committed")
    if found.aside:
        findings.note(f"{path}: on their way in or out, not compared: {_some(found.aside)}")
    return found


def _refuse_foreign(found: DataDirectory, unknown: list[str]) -> None:
    if any(name.endswith(layout.LOG) and layout.parse_segment_name(name) for name in unknown):
        raise EnvironmentError_(
            expected="a broker's data directory",
            seen="the directory of one partition",
            where=str(found.path),
            hint="name the directory above it, and the topic with --topic",
        )
    known = (found.path / layout.HIGH_WATERMARKS).exists() or (found.path / BROKER_METADATA).exists()
    if unknown and not found.partitions and not found.aside and not known:
        raise EnvironmentError_(
            expected="a broker's data directory, with directories such as orders-0",
            seen="none in it",
            where=str(found.path),
        )


def _partition_of(name: str) -> TopicNumber | None:
    match = _PARTITION.fullmatch(name)
    return None if match is None else (match["topic"], int(match["number"]))


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _read_checkpoint(path: Place, findings: Findings) -> dict[TopicNumber, int]:
    offsets: dict[TopicNumber, int] = {}
    try:
        if not path.exists():
            return offsets
        with opened(path) as source:
            for item in partition_offsets(source):
                if isinstance(item, PartitionOffset):
                    offsets[item.topic, item.partition] = item.offset
                else:
                    findings.flaw("checkpoint_damaged", item, path)
    except OSError as error:
        findings.left_out(path, error.strerror or str(error))
    return offsets


def _read_properties(path: Place, findings: Findings) -> dict[str, str]:
    try:
        if not path.exists():
            return {}
        with opened(path) as source:
            return {item.key: item.value for item in properties(source) if isinstance(item, Property)}
    except OSError as error:
        findings.left_out(path, error.strerror or str(error))
        return {}


def replica_of(directory: DataDirectory, key: TopicNumber, findings: Findings) -> ReplicaFiles | None:
    """The files of one replica; None if they cannot be listed. directory: the broker's; key: the partition;
    findings: for what is wrong."""
    path, points = directory.partitions[key], directory.checkpoints
    replica = ReplicaFiles(
        broker=directory.broker,
        path=path,
        clean=directory.clean,
        high_watermark=points[layout.HIGH_WATERMARKS].get(key),
        log_start=points[layout.LOG_STARTS].get(key),
        recovery_point=points[layout.RECOVERY_POINTS].get(key),
        alone=bool(points[layout.HIGH_WATERMARKS]) and key not in points[layout.HIGH_WATERMARKS],
        compacted=key in points[layout.CLEANER_OFFSETS] or key[0] in INTERNAL_TOPICS,
    )
    try:
        _list(replica, findings)
    except OSError as error:
        findings.left_out(path, error.strerror or str(error))
        return None
    replica.topic_id = _read_properties(path / METADATA, findings).get("topic_id", "")
    return replica


def _list(replica: ReplicaFiles, findings: Findings) -> None:
    unknown: list[str] = []
    kinds: Counter[str] = Counter()
    for entry in in_order(replica.path):
        digits, kind = entry.name[: layout.DIGITS], entry.name[layout.DIGITS :]
        suffix = next((known for known in _IN_BETWEEN if entry.name.endswith(known)), "")
        numbered = len(digits) == layout.DIGITS and digits.isascii() and digits.isdigit()
        if suffix:
            kinds[suffix] += 1
        elif numbered and kind == layout.LOG:
            replica.segments.append(SegmentFile(entry, int(digits), size_of(entry)))
        elif numbered and kind == layout.SNAPSHOT:
            replica.snapshots.append((int(digits), entry))
        elif numbered and kind in layout.INDEXES:
            _check_segment_of(entry, findings, clean=replica.clean)
        elif entry.name not in KNOWN_FILES and not entry.name.endswith(CHECKPOINTS):
            unknown.append(entry.name)
    for suffix, count in sorted(kinds.items()):
        findings.note(f"{replica.path}: {count} files end in {suffix}: on their way in or out, left alone")
    if unknown:
        findings.note(f"{replica.path}: not Kafka's, left alone: {_some(unknown)}")


def _check_segment_of(index: Place, findings: Findings, *, clean: bool) -> None:
    """An index may be without its segment only if the broker died while it removed them, never after a clean
    shutdown."""
    segment = index.with_name(f"{index.name[: layout.DIGITS]}{layout.LOG}")
    if segment.exists():
        return
    if not clean:
        findings.note(f"{index}: an index without its segment")
    else:
        findings.add(
            "index_damaged",
            expected=f"a segment {segment}",
            seen=f"none next to {index}",
            offset=int(index.name[: layout.DIGITS]),
        )


def partitions_of(directories: list[DataDirectory]) -> Iterator[TopicNumber]:
    """Every partition of which any directory holds a replica, or knows a high watermark, in order."""
    held = {key for directory in directories for key in directory.partitions}
    noted = {key for directory in directories for key in directory.checkpoints[layout.HIGH_WATERMARKS]}
    yield from sorted(held | noted)
