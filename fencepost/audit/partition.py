"""The audit of one partition: compares each replica with its own files and with the other replicas.

Owns the order of the checks and what is a finding of the whole. Must not know how a result is shown. The
holes of a log are judged last, when it is known whether the topic was ever compacted.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase

from attrs import define

from fencepost.audit.audit_findings import Findings
from fencepost.audit.compaction import CompactionCheck
from fencepost.audit.compare import Comparison, Run
from fencepost.audit.cursor import Cursor
from fencepost.audit.directories import TopicNumber
from fencepost.audit.epoch_checkpoints import tell_cuts
from fencepost.audit.replica import ReplicaWalk
from fencepost.audit.survey import Survey
from fencepost.checkers.verdict import Verdict
from fencepost.impl.log.dump.segment_walk import Parsed

AuditProgress = Callable[[int], None]
"""Is called with the number of bytes read since the last call."""


@define(kw_only=True)
class ReplicaSeen:
    """One replica as it was read."""

    broker: str
    path: str
    # First offset, and one above the last.
    start_offset: int
    end_offset: int
    # As checkpointed; None: not checkpointed.
    high_watermark: int | None
    # Leader epoch of the last batch; -1: none.
    leader_epoch: int
    # Counts of what could be read.
    batches: int
    records: int
    bytes: int


@define(kw_only=True)
class PartitionAudit:
    """What was found in one partition."""

    topic: str
    partition: int
    # Records that some replicas of a compacted topic have and others have not, where it was not asked whether
    # compaction might take them.
    unjudged: int = 0
    replicas: list[ReplicaSeen]
    findings: Findings

    @property
    def verdict(self) -> Verdict:
        """The verdict on all replicas of the partition."""
        return self.findings.verdict()


def audit_partition(found: Survey, key: TopicNumber, progress: AuditProgress) -> PartitionAudit:
    """Read and judge the replicas of one partition. found: the directories; key: the partition; progress: is
    called with bytes read."""
    findings, request = found.partitions[key][1], found.request
    walks = _walks(found, key, progress)
    compacted = any(walk.compacted for walk in walks)
    cursors = [Cursor(walk, walk.walk(), findings) for walk in walks]
    watcher = CompactionCheck() if request.deep else None
    comparison = Comparison(cursors, compacted, watcher)
    runs = comparison.run()
    compacted = compacted or any(walk.sparse for walk in walks)
    tell_cuts([(walk.name, walk.high_watermark, walk.epochs) for walk in walks], findings)
    reportable = [run for run in runs if not (run.lacks and compacted)]
    for run in reportable:
        findings.add(run.anomaly, expected=run.expected, seen=run.seen + _reach(run), offset=run.first)
    if comparison.more and not compacted:
        findings.more["log_divergence"] += comparison.more
    for walk in () if compacted else walks:
        _gaps(
            walk,
            [(run.first, run.last + 1) for run in reportable if run.lacks and run.replica == walk.broker],
            findings,
        )
    if compacted and watcher is not None:
        watcher.end(findings, walks)
    return PartitionAudit(
        topic=key[0],
        partition=key[1],
        unjudged=comparison.absent if compacted and watcher is None else 0,
        replicas=[_seen(walk) for walk in walks],
        findings=findings,
    )


def audit_alone(found: Survey, key: TopicNumber) -> Findings:
    """Read each replica of one partition by itself: what is wrong in its files, whatever others have.

    Args:
        found: the directories.
        key: the partition.

    Returns:
        the findings.
    """
    for walk in _walks(found, key, lambda size: None):
        for _ in walk.walk():
            pass
    return found.partitions[key][1]


def _walks(found: Survey, key: TopicNumber, progress: AuditProgress) -> list[ReplicaWalk]:
    """A walk through each replica, all of them compacted or none."""
    replicas, findings = found.partitions[key]
    request, parsed = found.request, Parsed()
    declared = any(fnmatchcase(key[0], pattern) for pattern in request.compacted)
    compacted = declared or any(replica.compacted for replica in replicas)
    return [
        ReplicaWalk(
            files=files,
            findings=findings,
            in_use=request.in_use,
            compacted=compacted,
            read=progress,
            parsed=parsed,
        )
        for files in replicas
    ]


def _reach(run: Run) -> str:
    return "" if run.count == 1 else f"; {run.count} records up to offset {run.last} differ like that"


def _gaps(walk: ReplicaWalk, reportable: list[tuple[int, int]], findings: Findings) -> None:
    """Report the gaps that the comparison has not reported yet. told: (first, end) of reported ranges."""
    for gap in walk.gaps:
        if any(first < gap.end and gap.first < end for first, end in reportable):
            continue
        findings.add(
            "log_gap",
            expected=f"offset {gap.first} after the one before it, as in a topic that was never compacted",
            seen=f"{gap.end} in {gap.where} ({walk.name})",
            offset=gap.first,
        )
        findings.note(
            "if a cleaner ever ran over this topic, offsets may be missing: say so with --compacted"
        )


def _seen(walk: ReplicaWalk) -> ReplicaSeen:
    return ReplicaSeen(
        broker=walk.broker,
        path=str(walk.files.path),
        start_offset=walk.start_offset,
        end_offset=walk.end_offset,
        high_watermark=walk.files.high_watermark,
        leader_epoch=walk.epoch,
        batches=walk.batches,
        records=walk.records,
        bytes=walk.files.size,
    )
