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

from attrs import evolve

from fencepost.checkers.verdict import Decision, Finding
from fencepost.kafka.assertions.problems import MOST_COPIES, Certificates, Partition, Problem
from fencepost.kafka.judgement import exercised, explanation, failed, of_clients, verdict_of
from fencepost.kafka.topic_records import KafkaRecord
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
Key = Callable[[KafkaRecord], bytes | None]
PROMISES: Mapping[str, str] = {
    "assert_no_loss": "every acknowledged record is in its log",
    "assert_order": "each partition has the records of each connection in the order in which they were sent",
    "assert_no_duplicates": "no record is in a log more often than a client sent it",
    "assert_delivered": "every acknowledged record reaches a client",
    "assert_processed_once": "each record below the committed offset has exactly one result",
}
"""What each assertion asserts, as one clause."""


def key_of(record: KafkaRecord) -> bytes | None:
    """A record's own key."""
    return record.key


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
            gone=((allowed.topic, allowed.partition, record.offset),),
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
    certificates = Certificates(trace)
    standing: dict[tuple[str, int, int], list[KafkaRecord]] = defaultdict(list)
    for record in records:
        standing[record.topic, record.partition, record.value_id].append(record)
    problems = []
    for copies in standing.values():
        sent = certificates.sent(copies[0])
        if sent and len(copies) > len(sent):
            places = ", ".join(str(record.offset) for record in copies)
            times = f"{len(sent)} time{'' if len(sent) == 1 else 's'}"
            tried = max(row.attempts for row in sent)
            problems.append(
                Problem(
                    says=f"{copies[0]} was sent {times} (in {tried} attempts) and is in the log at offsets"
                    f" {places}",
                    operations=tuple(row.op_id for row in sent),
                    records=tuple(copies[:MOST_COPIES]),
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
            gone=((topic, record.partition, record.offset),),
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
    certificates = Certificates(trace)
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
        convicted, copies = records[-1], found[:MOST_COPIES]
        offset = committed[convicted.topic, convicted.partition]
        problems.append(
            Problem(
                says=f"{convicted} is below the committed offset {offset}, and its result {verb}: expected"
                f" {len(records)}, saw {len(found)} ({'; '.join(map(str, found[:3])) or 'none'})",
                operations=(
                    *certificates.cited([convicted]),
                    *(certificates.cited(copies) or certificates.handed_out(convicted)),
                ),
                records=(convicted, *copies),
            )
        )
    problems += [
        Problem(
            says=f"{found[0]} has a key that no record of the source has",
            operations=certificates.cited(found[:MOST_COPIES]),
            records=tuple(found[:MOST_COPIES]),
        )
        for wanted, found in outputs.items()
        if wanted not in inputs
    ]
    return problems
