"""What a test asserts of the service that it broke: nothing lost, in order, delivered, no duplicate,
processed once.

Owns what each assertion means, and the words of a failure. The judges of everywhere (checkers/) decide on
loss and order; what is counted here is what the logs hold at the end against what the clients sent. Must
not know where a cluster lives.

What the wire cannot see is not claimed: whether an application has processed a record shows only by what it
wrote and committed. Records that are alike in key and value cannot be told apart: they are counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import evolve, frozen

from fencepost.campaign.failure import MOST_LINES
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.kafka.judgement import exercised, explanation, failed, of_clients, verdict_of
from fencepost.kafka.topic_records import KafkaRecord
from fencepost.report.explain import operation_line
from fencepost.report.timeline import as_plain, timeline
from fencepost.traces.events import Name
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome
from fencepost.traces.trace import Trace

LOSS = frozenset(
    {
        *("lost_write", "unseen", "committed_record_lost", "committed_record_truncated"),
        *("compaction_lost_record", "committed_offset_lost", "poll_skip", "skipped_offset"),
    }
)
"""Anomalies that are a loss."""
ORDER = frozenset(
    {
        *("append_inversion", "nonmonotonic_send", "int_nonmonotonic_send", "sequence_regressed"),
        *("unordered_read", "offset_regressed_in_log", "append_below_shown_end"),
    }
)
"""Anomalies of order."""
MOST_SHOWN = 5
"""Problems that a failure lists; it says how many there are."""
MOST_FAULTS_SHOWN = 12
"""Of the timeline."""
Key = Callable[[KafkaRecord], bytes | None]
Partition = tuple[str, int]


@frozen(kw_only=True)
class Problem:
    """One thing that is not as asserted."""

    says: str
    operations: tuple[int, ...] = ()
    """Op ids that show it."""
    records: tuple[KafkaRecord, ...] = ()
    """The records that those operations call by a number."""
    partitions: tuple[Partition, ...] = ()


def key_of(record: KafkaRecord) -> bytes | None:
    """A record's own key."""
    return record.key


def check(trace: Trace, name: str, problems: Iterable[Problem], folder: Path | None) -> str:
    """Do nothing without a problem.

    Args:
        trace: the run.
        name: of the assertion.
        problems: what it found.
        folder: where the run is kept; None: nowhere.

    Returns:
        What was exercised.

    Raises:
        RunFailedError: if there is a problem, with the operations, the timeline with the faults, and the
            seed.
    """
    found = list(problems)
    if not found:
        return exercised(trace)
    by_id = {operation.op_id: operation for operation in trace.operations}
    lines = [f"{name}: {len(found)} problem{'' if len(found) == 1 else 's'}"]
    for problem in found[:MOST_SHOWN]:
        lines.append(f"  {problem.says}")
        lines += [f"    {operation_line(by_id[op])}" for op in problem.operations if op in by_id]
        lines += [f"    v{record.value_id} is {record}" for record in problem.records]
    shown = timeline(
        trace,
        operations=[op for problem in found[:MOST_SHOWN] for op in problem.operations],
        events=[place for place, event in enumerate(trace.events) if event.name is Name.FAULT_BEGAN][
            :MOST_FAULTS_SHOWN
        ],
        partitions={where for problem in found[:MOST_SHOWN] for where in problem.partitions},
        most_lines=MOST_LINES,
        fold_start=True,
    )
    text = "\n".join([*lines, "", as_plain(shown), f"seed {trace.seed}"])
    return failed(trace, text, Verdict(decision=Decision.ILLEGAL, check=name), folder)


def judged(trace: Trace, name: str, anomalies: frozenset[str], folder: Path | None) -> str:
    """What was exercised, if the judges find none of these anomalies. Raises RunFailedError, also where they
    cannot say."""
    verdict = verdict_of(trace)
    findings: tuple[Finding, ...] = tuple(one for one in verdict.findings if one.anomaly in anomalies)
    if findings:
        only = evolve(verdict, findings=findings)
        failed(trace, f"{name}: {explanation(trace, only, '')}", only, folder)
    if verdict.decision in (Decision.UNKNOWN, Decision.ASSUMPTION_BROKEN):
        failed(trace, f"{name}: {explanation(trace, verdict, '')}", verdict, folder)
    return exercised(trace)


# ---- what is in the logs, compared with what was sent


def lost_as_allowed(trace: Trace, records: Iterable[KafkaRecord]) -> list[Problem]:
    """Acknowledged records that are gone where the claims allow it, as after a power loss of every replica.
    No judge convicts the cluster; a service has lost its record all the same. records: of the topics with
    such a claim."""
    standing = {(one.topic, one.partition, one.value_id) for one in records}
    return [
        Problem(
            says=f"{row.topic}-{row.partition} offset {record.offset} was acknowledged and is gone,"
            f" as Kafka allows here: {allowed.reason}",
            operations=(row.op_id,),
            partitions=((allowed.topic, allowed.partition),),
        )
        for allowed in trace.claims.loss
        for row in of_clients(trace)
        if row.function is Function.APPEND and row.outcome is Outcome.OK and row.acks != ACKS_NONE
        if (row.topic, row.partition) == (allowed.topic, allowed.partition)
        for record in row.records
        if allowed.start <= record.offset < allowed.end
        if (allowed.topic, allowed.partition, record.value) not in standing
    ]


def duplicates(trace: Trace, records: Iterable[KafkaRecord]) -> list[Problem]:
    """Records that are in a log more often than clients sent them.

    Args:
        trace: the run.
        records: what the logs hold.
    """
    appends = _appends(trace)
    standing: dict[tuple[Partition, int], list[KafkaRecord]] = defaultdict(list)
    for record in records:
        standing[(record.topic, record.partition), record.value_id].append(record)
    problems = []
    for (where, value), copies in standing.items():
        sent = appends.get((where, value), [])
        if sent and len(copies) > len(sent):
            places = ", ".join(str(record.offset) for record in copies)
            times = f"{len(sent)} time{'' if len(sent) == 1 else 's'}"
            tried = max(row.attempts for row in sent)
            problems.append(
                Problem(
                    says=f"{copies[0]} was sent {times} (in {tried} attempts) and is in the log at offsets"
                    f" {places}",
                    operations=tuple(row.op_id for row in sent),
                    records=tuple(copies[:1]),
                    partitions=(where,),
                )
            )
    return problems


def out_of_order(trace: Trace, records: Iterable[KafkaRecord], key: bytes | None) -> list[Problem]:
    """Records of one connection that are in another order than it sent them first. key: only of records
    with this key; None: of all."""
    first: dict[tuple[Partition, int], KafkaRecord] = {}
    for record in records:
        if key is None or record.key == key:
            first.setdefault(((record.topic, record.partition), record.value_id), record)
    last: dict[tuple[int, Partition], tuple[Operation, KafkaRecord]] = {}
    problems = []
    for row in sorted(of_clients(trace), key=lambda row: (row.invoke_time, row.op_id)):
        if row.function is not Function.APPEND or row.topic is None or row.partition is None:
            continue
        where = row.topic, row.partition
        for sent in row.records:
            found = first.get((where, sent.value))
            if found is None:
                continue
            before = last.get((row.process, where))
            if before is not None and before[1].offset > found.offset:
                problems.append(
                    Problem(
                        says=f"{before[1]} was sent before {found}, and is after it in the log",
                        operations=(before[0].op_id, row.op_id),
                        records=(before[1], found),
                        partitions=(where,),
                    )
                )
            else:
                last[row.process, where] = row, found
    return problems


def not_delivered(trace: Trace, topic: str) -> list[Problem]:
    """Acknowledged records of a topic that came in no answer that a client heard."""
    heard = {
        (record.partition, record.value)
        for row in of_clients(trace)
        if row.function is Function.POLL and row.topic == topic
        for record in row.records
    }
    return [
        Problem(
            says=f"{topic}-{record.partition} offset {record.offset} was acknowledged and read by no client",
            operations=(row.op_id,),
            partitions=((topic, record.partition),),
        )
        for row in of_clients(trace)
        if row.function is Function.APPEND and row.topic == topic and row.outcome is Outcome.OK
        for record in row.records
        if (record.partition, record.value) not in heard
    ]


def not_processed_once(
    trace: Trace,
    source: Iterable[KafkaRecord],
    sink: Iterable[KafkaRecord],
    committed: Mapping[Partition, int],
    key: Key,
) -> list[Problem]:
    """Records of source below the committed offset without exactly one record of their key in sink; records
    of sink with a key that no record of source has."""
    outputs: dict[bytes | None, list[KafkaRecord]] = defaultdict(list)
    for record in sink:
        outputs[record.key].append(record)
    appends = _appends(trace)
    inputs = Counter[bytes | None]()
    problems = []
    below: dict[bytes | None, list[KafkaRecord]] = defaultdict(list)
    for record in source:
        wanted = key(record)
        inputs[wanted] += 1
        if record.offset < committed.get((record.topic, record.partition), 0):
            below[wanted].append(record)
    for wanted, records in below.items():
        found = outputs.get(wanted, [])
        if len(records) <= len(found) <= inputs[wanted]:
            continue
        verb = "is missing" if len(found) < len(records) else "was written too often"
        offset = committed[records[-1].topic, records[-1].partition]
        problems.append(
            Problem(
                says=f"{records[-1]} is below the committed offset {offset}, and its result {verb}: expected"
                f" {len(records)}, saw {len(found)} ({'; '.join(map(str, found[:3])) or 'none'})",
                operations=tuple(
                    row.op_id
                    for record in (*records[-1:], *found[:2])
                    for row in appends.get(((record.topic, record.partition), record.value_id), [])[:1]
                ),
                records=(records[-1], *found[:2]),
                partitions=tuple({(one.topic, one.partition) for one in (*records[-1:], *found[:2])}),
            )
        )
    for wanted, found in outputs.items():
        if wanted not in inputs:
            problems.append(Problem(says=f"{found[0]} has a key that no record of the source has"))
    return problems


def _appends(trace: Trace) -> dict[tuple[Partition, int], list[Operation]]:
    """The appends of each record, by partition and value id."""
    rows: dict[tuple[Partition, int], list[Operation]] = defaultdict(list)
    for row in of_clients(trace):
        if row.function is Function.APPEND and row.topic is not None and row.partition is not None:
            for record in row.records:
                rows[(row.topic, row.partition), record.value].append(row)
    return rows
