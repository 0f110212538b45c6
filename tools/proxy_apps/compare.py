"""What a broker's files hold against what the proxy recorded: every record, commit and transaction, none
missing, none extra.

Owns the reading of a broker's own topics. Must not know clients. One broker has everything; nothing was there
before the proxy, and nothing goes around it.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from fencepost.impl.log.batch.control_records import ControlType, control_type
from fencepost.impl.log.batch.record_batch import Record, _encode_headers, read_headers, read_records
from fencepost.proxy.record.values import Values, content_of
from fencepost.traces.operations import ACKS_NONE, Function, Outcome
from fencepost.traces.trace import Trace

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
COMMITTING, ABORTING = 2, 3
ENDED = (COMMITTING, ABORTING)
"""Of a transaction's state in TRANSACTIONS: PrepareCommit and PrepareAbort (TransactionState.java)."""
MOST_SHOWN = 3
_STATE = struct.Struct(">hqhib")
"""Version, producer id, producer epoch, time-out, state: the first fields of every version."""
Contents = dict[int, int]
"""By offset, the part of a value id that says what is in a record."""


@frozen(kw_only=True)
class Compared:
    """How many of each were equal, and each difference in words."""

    records: int
    commits: int
    transactions: int
    differences: tuple[str, ...]


def partitions(folder: Path) -> Iterator[tuple[str, int, Path]]:
    """(topic, partition, its folder) of a broker's log directory, without what is being deleted."""
    for each in sorted(folder.iterdir()):
        topic, _, number = each.name.rpartition("-")
        if each.is_dir() and topic and number.isdecimal() and topic != "__cluster_metadata":
            yield topic, int(number), each


def dumped(folder: Path) -> Iterator[Record]:
    """The records of a partition but for control records."""
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for header in read_headers(data):
            if not header.is_control:
                yield from read_records(data, header)


def compared(trace: Trace, folder: Path, key: bytes) -> Compared:
    """folder: the broker's log directory; key: of the record's hashes."""
    differences: list[str] = []
    records = _records(trace, folder, Values(key=key), differences)
    commits = _commits(trace, folder, differences)
    transactions = _transactions(trace, folder, differences)
    return Compared(
        records=records, commits=commits, transactions=transactions, differences=tuple(differences)
    )


def _records(trace: Trace, folder: Path, values: Values, differences: list[str]) -> int:
    acknowledged: dict[tuple[str, int], Contents] = defaultdict(dict)
    unasked: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for row in trace.operations:
        if row.function is not Function.APPEND or row.outcome is not Outcome.OK:
            continue
        for record in row.records:
            place = record.topic, record.partition
            if record.offset >= 0:
                acknowledged[place][record.offset] = content_of(record.value)
            elif row.acks == ACKS_NONE:
                unasked[place][content_of(record.value)] += 1
    count, there = 0, set()
    for topic, number, logs in partitions(folder):
        if topic in (OFFSETS, TRANSACTIONS):
            continue
        there.add(topic)
        log = {
            one.offset: values.content(
                one.key, one.value, _encode_headers(one.headers) if one.headers else b"\x00"
            )
            for one in dumped(logs)
        }
        told = acknowledged.pop((topic, number), {})
        rest = Counter(content for offset, content in log.items() if offset not in told)
        missing = rest - unasked[topic, number]  # nobody knows whether a record with acks=0 arrived
        other = {offset for offset in told if log.get(offset) != told[offset]}
        if missing:
            differences.append(f"{topic}-{number}: {missing.total()} records missing in the trace")
        if other:
            shown = ", ".join(map(str, sorted(other)[:MOST_SHOWN]))
            differences.append(f"{topic}-{number}: {len(other)} other records, at {shown}")
        count += len(log)
    differences += [
        f"{topic}-{number}: {len(contents)} records extra in the trace"
        for (topic, number), contents in acknowledged.items()
        if topic in there
    ]
    return count


def kept(folder: Path) -> Iterator[Record]:
    """The same without what aborted transactions wrote."""
    waiting: dict[int, list[Record]] = defaultdict(list)
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for header in read_headers(data):
            records = read_records(data, header)
            if header.is_control:
                written = waiting.pop(header.producer_id, [])
                if control_type(records[0]) is ControlType.COMMIT:
                    yield from written
            elif header.is_transactional:
                waiting[header.producer_id] += records
            else:
                yield from records


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def committed(folder: Path) -> Iterator[tuple[str, str, int, int]]:
    """(group, topic, partition, offset) of each commit in the broker's log: keys of version 0 and 1, values
    (version, offset, ...)."""
    for topic, _, logs in partitions(folder):
        for record in kept(logs) if topic == OFFSETS else ():
            if record.key is None or record.value is None or struct.unpack_from(">h", record.key)[0] > 1:
                continue
            group, at = _text(record.key, 2)
            name, at = _text(record.key, at)
            (number,) = struct.unpack_from(">i", record.key, at)
            yield group, name, number, struct.unpack_from(">hq", record.value)[1]


def _commits(trace: Trace, folder: Path, differences: list[str]) -> int:
    log, told = Counter(committed(folder)), Counter[tuple[str, str, int, int]]()
    for row in trace.operations:
        if row.function is not Function.COMMIT or row.outcome is Outcome.FAIL or row.group is None:
            continue
        if row.topic is not None and row.partition is not None and row.offset is not None:
            told[row.group, row.topic, row.partition, row.offset] += 1
        for place in row.positions:
            told[row.group, place.topic, place.partition, place.offset] += 1
    for what, those in (("missing in the trace", log - told), ("extra in the trace", told - log)):
        if those:
            shown = ", ".join(map(str, sorted(those)[:MOST_SHOWN]))
            differences.append(f"{those.total()} commits {what}: {shown}")
    return log.total()


def ended(folder: Path) -> Counter[bool]:
    """By whether it committed: how many transactions with writes or offsets have ended."""
    found: Counter[bool] = Counter()
    for topic, _, logs in partitions(folder):
        for record in dumped(logs) if topic == TRANSACTIONS else ():
            if record.value is not None and (state := _STATE.unpack_from(record.value)[-1]) in ENDED:
                found[state == COMMITTING] += 1
    return found


def _transactions(trace: Trace, folder: Path, differences: list[str]) -> int:
    log = ended(folder)
    told = Counter(
        row.outcome is Outcome.OK
        for row in trace.operations
        if row.function is Function.TXN and row.outcome is not Outcome.UNKNOWN
    )
    for what, those in (("missing in the trace", log - told), ("extra in the trace", told - log)):
        if those:
            differences.append(f"{those[True]} committed and {those[False]} aborted transactions {what}")
    return log.total()
