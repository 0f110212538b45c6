"""What to audit: the brokers' directories, and which replicas belong together.

Owns the pairing of directories. Must not know what segments contain.
"""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase

from attrs import define, field, frozen

from fencepost.audit.audit_findings import Findings
from fencepost.audit.directories import (
    DataDirectory,
    ReplicaFiles,
    TopicNumber,
    open_directory,
    partitions_of,
    replica_of,
)
from fencepost.audit.source import Place
from fencepost.impl.log import layout
from fencepost.traces.errors import EnvironmentError_


@frozen(kw_only=True)
class AuditRequest:
    """What to audit."""

    # (broker, data directory); a broker may have several.
    places: tuple[tuple[str, Place], ...]
    # Patterns, of which a topic must match one.
    topics: tuple[str, ...] = ("*",)
    # Patterns of topics in which holes are normal, whatever the directories say.
    compacted: tuple[str, ...] = ()
    # Decode every record, and check compaction by the keys.
    deep: bool = False
    # The files are those that brokers go on with: what they have in memory is not in them. There may be no
    # partition yet.
    in_use: bool = False
    # The brokers that have to hold each partition, where that is known. A checkpoint is written every so
    # often, and may name a replica that was deleted since.
    assigned: Mapping[TopicNumber, Collection[str]] | None = None


@define(kw_only=True)
class Survey:
    """What is to be audited."""

    request: AuditRequest
    directories: list[DataDirectory]
    partitions: dict[TopicNumber, tuple[list[ReplicaFiles], Findings]] = field(factory=dict)
    # Of the directories, not of one partition. bytes: of all segments.
    findings: Findings = field(factory=Findings)

    @property
    def bytes(self) -> int:
        """Bytes to be read."""
        return sum(replica.size for replicas, _ in self.partitions.values() for replica in replicas)

    @property
    def brokers(self) -> list[str]:
        """Their names, in the order given."""
        return list(dict.fromkeys(directory.broker for directory in self.directories))


def survey(request: AuditRequest) -> Survey:
    """List everything. Raises EnvironmentError_ if a place is no data directory, or no partition matches."""
    findings = Findings()
    _refuse_same(request.places)
    directories = [open_directory(broker, path, findings) for broker, path in request.places]
    found = Survey(request=request, directories=directories, findings=findings)
    for key in partitions_of(directories):
        if any(fnmatchcase(key[0], pattern) for pattern in request.topics):
            own = Findings(topic=key[0], partition=key[1])
            holders = [directory for directory in directories if key in directory.partitions]
            replicas = [replica for one in holders if (replica := replica_of(one, key, own)) is not None]
            found.partitions[key] = _of_one_topic(replicas, own), own
    if not found.partitions and not request.in_use:
        wanted = " or ".join(repr(pattern) for pattern in request.topics)
        raise EnvironmentError_(
            expected=f"partitions of topics that match {wanted}",
            seen="none",
            where=", ".join(str(path) for _, path in request.places),
        )
    _missing(found)
    _counts(found)
    _identities(found)
    return found


def _refuse_same(places: Sequence[tuple[str, Place]]) -> None:
    seen: dict[Place, str] = {}
    for broker, path in places:
        real = path.resolve()
        if real in seen:
            raise EnvironmentError_(
                expected="each directory once", seen=f"it for {seen[real]} and for {broker}", where=str(path)
            )
        seen[real] = broker


def _of_one_topic(replicas: list[ReplicaFiles], findings: Findings) -> list[ReplicaFiles]:
    """Without replicas of an earlier topic of the same name (KIP-516), and without a second directory of one
    broker."""
    ids = [replica.topic_id for replica in replicas if replica.topic_id]
    usual = max(sorted(set(ids)), key=ids.count, default="")
    kept: list[ReplicaFiles] = []
    for replica in replicas:
        if replica.topic_id and replica.topic_id != usual:
            findings.note(
                f"{replica.path}: of another topic of the same name ({replica.topic_id}, not {usual}), not "
                f"compared"
            )
        elif any(other.broker == replica.broker for other in kept):
            findings.note(
                f"{replica.path}: a second directory of this partition at {replica.broker}, not compared"
            )
        else:
            kept.append(replica)
    return kept


def _missing(found: Survey) -> None:
    """Partitions of which a broker has noted a high watermark and has no directory."""
    assigned = found.request.assigned
    for key, (_, findings) in found.partitions.items():
        for directory in found.directories:
            if assigned is not None and directory.broker not in assigned.get(key, ()):
                continue
            offset = directory.checkpoints[layout.HIGH_WATERMARKS].get(key)
            going = any(name.startswith(f"{key[0]}-{key[1]}.") for name in directory.aside)
            if offset is not None and key not in directory.partitions and not going:
                findings.add(
                    "replica_missing",
                    expected=f"{directory.path / f'{key[0]}-{key[1]}'}, whose high watermark {offset} is in "
                    f"{layout.HIGH_WATERMARKS}",
                    seen=f"no such directory at {directory.broker}",
                )


def _counts(found: Survey) -> None:
    """A topic's partitions usually have one number of replicas."""
    most: dict[str, int] = {}
    for (topic, _), (replicas, _) in found.partitions.items():
        most[topic] = max(most.get(topic, 0), len(replicas))
    for (topic, _), (replicas, findings) in found.partitions.items():
        if len(replicas) < most[topic]:
            brokers = ", ".join(replica.broker for replica in replicas) or "nobody"
            findings.note(
                f"{len(replicas)} of the {most[topic]} replicas that other partitions of {topic} have: "
                f"{brokers}"
            )


def _identities(found: Survey) -> None:
    clusters = {directory.identity.get("cluster.id", "") for directory in found.directories} - {""}
    if len(clusters) > 1:
        found.findings.note(f"the directories are of {len(clusters)} clusters: {', '.join(sorted(clusters))}")
