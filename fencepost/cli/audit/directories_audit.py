"""What `fencepost audit NAME=DIR...` reports: each partition with its replicas and what is wrong with them.

Owns messages and the JSON. Must not know what is a finding (audit/).
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from fencepost.audit.audit_findings import Findings
from fencepost.audit.joined import Joined, join
from fencepost.audit.partition import PartitionAudit, audit_partition
from fencepost.audit.survey import AuditRequest, Survey, survey
from fencepost.checkers.verdict import Decision, Finding
from fencepost.console.options import named_value
from fencepost.console.output import Output, add_row, table
from fencepost.report.event_words import printable
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.errors import ExitCode, strongest
from fencepost.traces.operations import Operation

MEBIBYTE = 1024 * 1024
LONGEST = 600
"""Characters of one sentence: it holds two paths."""
MILD = "uncommitted_divergence"


def places_of(arguments: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    """(broker, directory) of each NAME=DIR."""
    example = "NAME=DIR, such as broker-1=/var/lib/kafka"
    return tuple((name, Path(path)) for name, path in (named_value(one, example) for one in arguments))


@frozen(kw_only=True)
class History:
    """What was acknowledged to clients, to be looked for in the files."""

    operations: tuple[Operation, ...]
    # The topic in the history by the directories' name, where they differ.
    names: Mapping[str, str]


def names_of(arguments: tuple[str, ...]) -> dict[str, str]:
    """Each DIRECTORIES=HISTORY. Raises UsageError."""
    return dict(named_value(argument, "NAME=NAME, such as run-7=t") for argument in arguments)


def audit_places(request: AuditRequest, output: Output, history: History | None = None) -> ExitCode:
    """Audit the requested directories and report the findings. Returns the exit code. request: directories
    and options; output: for reports; history: is joined with the directories. Raises EnvironmentError_ for a
    place that is no data directory."""
    found = survey(request)
    audited = _audit(found, output)
    for partition in audited:
        _show(partition, output)
    _show_findings(found.findings, output)
    joined = None if history is None else join(found, history.operations, history.names)
    if joined is not None:
        _show_joined(joined, output)
    _show_sum(found, audited, output)
    placements = {} if joined is None else {"history": attrs.asdict(joined)}
    return output.end(_exit_code(found, audited), {**_as_dict(found, audited), **placements})


def _audit(found: Survey, output: Output) -> list[PartitionAudit]:
    audited, done = [], 0
    with output.progress("reading, MiB", -(-found.bytes // MEBIBYTE)) as bar:
        for topic, number in found.partitions:

            def read(size: int, name: str = f"{topic}-{number}") -> None:
                nonlocal done
                done += size
                bar.to(done // MEBIBYTE, printable(name, 40))

            audited.append(audit_partition(found, (topic, number), read))
    return audited


def _exit_code(found: Survey, audited: list[PartitionAudit]) -> ExitCode:
    """The exit code: findings first, then unreadable files, then whether anything could be read."""
    everything = [found.findings, *(partition.findings for partition in audited)]
    codes: set[ExitCode] = set()
    if any(one.count for one in everything):
        codes.add(ExitCode.FINDINGS)
    if any(one.unreadable for one in everything):
        codes.add(ExitCode.QUARANTINED if any(map(_read_any, audited)) else ExitCode.USAGE)
    return strongest(codes)


def _read_any(partition: PartitionAudit) -> bool:
    """Whether any of its replicas could be read at all."""
    paths = [str(one.path) for one in partition.findings.unreadable]
    return any(
        replica.batches or not any(path.startswith(replica.path) for path in paths)
        for replica in partition.replicas
    )


# ---- for a person


def _show(partition: PartitionAudit, output: Output) -> None:
    verdict, findings = partition.verdict, partition.findings
    if verdict.decision is Decision.OK and not findings.notes:
        return
    name = printable(f"{partition.topic}-{partition.partition}", 200)
    output.say(f"{name}: {verdict.decision.value}{', ' + verdict.anomaly if verdict.anomaly else ''}")
    if findings.count or findings.unreadable:
        replicas = table(
            "  broker",
            ">log start",
            ">high watermark",
            ">log end",
            ">epoch",
            ">batches",
            ">records",
            ">bytes",
        )
        for seen in partition.replicas:
            watermark = "none" if seen.high_watermark is None else seen.high_watermark
            epoch = "none" if seen.leader_epoch < 0 else seen.leader_epoch
            ends = seen.start_offset, watermark, seen.end_offset, epoch
            add_row(
                replicas, f"  {printable(seen.broker, 40)}", *ends, seen.batches, seen.records, seen.bytes
            )
        output.say(replicas)
    _show_findings(findings, output)
    if findings.count:
        where = printable(shlex.quote(_worst(partition)), LONGEST)
        output.say(f"  look closer: fencepost log dump {where} --deep --verify-index")
    output.say("")


def _worst(partition: PartitionAudit) -> str:
    """The directory of the replica that the first finding blames."""
    seen = " ".join(finding.seen for finding in partition.verdict.findings)
    paths = [replica.path for replica in partition.replicas]
    return min((path for path in paths if path in seen), key=seen.index, default=paths[0] if paths else "DIR")


def _show_findings(findings: Findings, output: Output) -> None:
    for finding in findings.verdict().findings:
        at = f" at offset {finding.offset}" if finding.offset >= 0 else ""
        output.say(
            f"  {'MILD' if finding.anomaly == MILD else 'WRONG'} {finding.anomaly}{at}: "
            f"{BY_NAME[finding.anomaly].definition}"
        )
        output.say(f"    expected {printable(finding.expected, LONGEST)}")
        output.say(f"    saw      {printable(finding.seen, LONGEST)}")
    for anomaly, count in sorted(findings.more.items()):
        output.say(f"  and {count} more: {anomaly}")
    for unreadable in findings.unreadable:
        path = printable(str(unreadable.path), LONGEST)
        output.say(f"  NOT READABLE {path}: {printable(unreadable.reason, LONGEST)}")
    for note in findings.notes:
        output.say(f"  note: {printable(note, LONGEST)}")


def _show_joined(joined: Joined, output: Output) -> None:
    for sentence in joined.sentences:
        output.say(f"  {printable(sentence, LONGEST)}")
    output.say(
        f"of {_plural(joined.acknowledged, 'acknowledged record')}, {joined.everywhere} are on every replica "
        "at their offset; whether the others may be lost: fencepost check"
    )


def _show_sum(found: Survey, audited: list[PartitionAudit], output: Output) -> None:
    replicas = sum(len(partition.replicas) for partition in audited)
    findings = found.findings.count + sum(partition.findings.count for partition in audited)
    wrong = sum(partition.verdict.decision is Decision.ILLEGAL for partition in audited)
    unread = len(found.findings.unreadable) + sum(len(partition.findings.unreadable) for partition in audited)
    unjudged = sum(bool(partition.unjudged) for partition in audited)
    if unjudged:
        output.say(
            f"note: of {_plural(unjudged, 'compacted partition')} some replicas hold more records than "
            f"others, as compaction leaves them;"
            " --deep asks whether it might take the rest"
        )
    size = f"{found.bytes / MEBIBYTE:.1f} MiB"
    counts = (len(found.brokers), "broker"), (len(audited), "partition"), (replicas, "replica")
    result = f"{_plural(findings, 'finding') if findings else 'no findings'}"
    result += f" in {_plural(wrong, 'partition')}" if wrong else ""
    result += f"; {unread} files or parts of files were not readable" if unread else ""
    output.say(f"{', '.join(_plural(*one) for one in counts)}, {size}: {result}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# ---- for a program


def _finding(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("anomaly", "offset", "expected", "seen")}


def _findings(findings: Findings) -> dict[str, Any]:
    return {
        "findings": [_finding(one) for one in findings.verdict().findings],
        "more_findings": dict(findings.more),
        "unreadable": [{"path": str(one.path), "reason": one.reason} for one in findings.unreadable],
        "notes": findings.notes,
    }


def _as_dict(found: Survey, audited: list[PartitionAudit]) -> dict[str, Any]:
    return {
        "brokers": found.brokers,
        "bytes": found.bytes,
        **_findings(found.findings),
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "decision": one.verdict.decision.value,
                "anomaly": one.verdict.anomaly,
                "unjudged": one.unjudged,
                "replicas": [attrs.asdict(replica) for replica in one.replicas],
                **_findings(one.findings),
            }
            for one in audited
        ],
    }
