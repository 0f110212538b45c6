"""What an application saw, against what the log holds at the end.

Owns the anomalies of clients and the promise that each breaks. Must not know how a run was made. A judge
never convicts by what a client may do: an append of unknown outcome may be in the log once, or not at all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fencepost.torture.at_brokers.heard import time_of
from fencepost.torture.copying import source_of
from fencepost.torture.driver_process import Command
from fencepost.torture.judging.commit_judges import commits, revocations
from fencepost.torture.judging.delivery_judges import deliveries, of_group, starts
from fencepost.torture.judging.finding import Allowed, Finding, acknowledged, topic_of
from fencepost.torture.judging.outcome import AFTER_ROUNDS, NEVER
from fencepost.torture.judging.outcome import Outcome as Run
from fencepost.torture.judging.progress_judges import progress
from fencepost.torture.judging.promises import PROMISES
from fencepost.torture.protocol import decoded, outcome_of_append
from fencepost.torture.record_contents import differs, identity, identity_of, place_of
from fencepost.torture.scenario import COMPACTS, DELETES, EXPIRES, LOGS, TOPICS
from fencepost.torture.truth import COMMITTED, Entry
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import LossRange

MANY = 50
"""Retries with which no append to a healthy cluster may fail."""
LONG_MS = 10_000
"""Delivery time-out from which on an append to a healthy cluster has time for every retry."""

PATIENT_MS = 2_000
"""Time-out of requests from which on a producer with few retries has time for each attempt."""
FLUSHED_NS = 1_000_000_000
"""Time that an answer may be later than the end of its flush: a library may call back in another thread."""


def judge(run: Run, promises: Mapping[str, str] = PROMISES) -> list[Finding]:
    """At most one finding of each anomaly, the first that is met.

    Args:
        run: what the application and the log say.
        promises: of the library; anomalies of which it promises nothing are left out.
    """
    found: dict[str, Finding] = {}
    shortened = tuple(_shortened(run))
    renewed = [_range(one, -1, NEVER, "made again") for one in run.log if topic_of(one) in run.renewed]
    may = Allowed((*shortened, *renewed))
    for findings in (
        _appends(run, Allowed(shortened)),
        _order(run),
        _transactions(run),
        _copies(run, may),
        deliveries(run, may),
        of_group(run, may),
        starts(run, may),
        commits(run),
        revocations(run),
        progress(run),
        _flushes(run),
        _unreadable(run),
        _ends(run),
    ):
        for finding in findings:
            if promises.get(finding.anomaly):
                found.setdefault(finding.anomaly, finding)
    return list(found.values())


def _shortened(run: Run) -> Iterator[LossRange]:
    """What is below the start of a log that the run has shortened; records have no gaps without
    transactions. And what a later record of the same key replaced in a compacted log."""
    if run.scenario.logs == EXPIRES:
        for place, entries in run.log.items():
            if entries:
                yield _range(place, -1, entries[0].offset, LOGS[EXPIRES])
    if run.scenario.logs == COMPACTS:
        yield from _replaced(run)
    for fault in run.scenario.broker_faults:
        partition = fault.target % run.scenario.partitions
        entries = run.log.get(f"{TOPICS[0]}-{partition}", ())
        if fault.verb == DELETES and entries:
            yield _range(f"{TOPICS[0]}-{partition}", -1, entries[0].offset, str(fault))


def _range(place: str, start: int, end: int, reason: str) -> LossRange:
    topic, _, partition = place.rpartition("-")
    return LossRange(topic=topic, partition=int(partition), start=start, end=end, reason=reason)


def _replaced(run: Run) -> Iterator[LossRange]:
    """Offsets of acknowledged or delivered records that are not in the log, while a later record of their key
    is: the cleaner may have removed them. An acknowledgement without an offset counts as an earlier one."""
    last: dict[tuple[str, bytes], int] = {}
    stored = set()
    for place, entries in run.log.items():
        for entry in entries:
            last[place, entry.key or b""] = entry.offset
            stored.add((place, entry.offset))
    seen = [(*acknowledged(one), one.fields) for one in run.appends if one.ok]
    for polls in run.polls.values():
        seen += [
            (place_of(record), record["offset"], record)
            for poll in polls
            for record in (poll.answer or {}).get("records") or ()
        ]
    for place, at, fields in seen:
        if (place, at) not in stored and at < last.get((place, decoded(fields.get("key")) or b""), -1):
            yield _range(place, at, at + 1, LOGS[COMPACTS])


def _every(run: Run) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """The records of each partition, copies too."""
    yield from run.log.items()
    yield from run.copies.items()


def _appends(run: Run, shortened: Allowed) -> Iterator[Finding]:
    sent = {_name(command): command for command in run.appends}
    places: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    for place, entries in _every(run):
        for entry in entries:
            name = identity_of(entry)
            places[name].append((place, entry.offset))
            command = sent.get(name)
            if command is None or place_of(command.fields) != place:
                wrong = (
                    f"{name!r:.60}"
                    if command is None
                    else f"{name!r:.60}, sent to {place_of(command.fields)}"
                )
            else:
                wrong = differs(entry, command.fields)
            if wrong:
                yield Finding(
                    anomaly="wrong_record",
                    expected=f"records as they were sent to {place}",
                    seen=f"{wrong}, at {place}/{entry.offset}",
                )
    lost = []
    yield from _same_offset(run)
    for name, command in sent.items():
        where = places.get(name, [])
        outcome = outcome_of_append(command.answer, retries=run.scenario.producer.get("retries"))
        if outcome is Outcome.OK and not where:
            place, offset = acknowledged(command)
            since = run.renewed.get(command.fields["topic"], -1)
            if (place, offset) not in shortened and command.sent_ns > since:
                lost.append((name, offset))
        yield from _place(run, name, command, outcome, where)
    if lost:
        offsets = Counter(offset for _, offset in lost)
        yield Finding(
            anomaly="lost_write",
            expected="every acknowledged record in the log",
            seen=f"{len(lost)} of {len(sent)} missing, {lost[0][0].decode()} first, acknowledged at offsets"
            f" {', '.join(f'{offset} ({count} times)' for offset, count in offsets.most_common(3))}",
        )


def _same_offset(run: Run) -> Iterator[Finding]:
    """Two acknowledged sends with one offset, whatever became of the log."""
    first: dict[tuple[str, int], bytes] = {}
    for command in run.appends:
        place, offset = acknowledged(command)
        if not command.ok or offset < 0 or command.fields["topic"] in run.renewed:
            continue
        other = first.setdefault((place, offset), _name(command))
        if other != _name(command):
            yield Finding(
                anomaly="offset_acknowledged_twice",
                expected=f"an offset of its own for each record of {place}",
                seen=f"{offset} for {other.decode()} and {_name(command).decode()}",
            )
            return


def _place(
    run: Run, name: bytes, command: Command, outcome: Outcome, where: list[tuple[str, int]]
) -> Iterator[Finding]:
    """The findings about one append, compared with where its record is. In a topic that is made again or
    truncated brokers do not know sequences any more, so that retries are not recognised."""
    if command.fields["topic"] in run.renewed:
        return
    if outcome is Outcome.OK and where:
        place, offset = acknowledged(command)
        if offset >= 0 and offset not in [each[1] for each in where]:
            yield Finding(
                anomaly="wrong_offset",
                expected=f"{name.decode()} at offset {offset} of {place}",
                seen=f"it at {', '.join(str(each[1]) for each in where)}",
            )
    if outcome is Outcome.FAIL and where:
        yield Finding(
            anomaly="wrong_record",
            expected=f"nothing of {name.decode()}, refused with {command.error}",
            seen=f"it at {where[0]}",
        )
    if run.scenario.producer.get("idempotence") and len(where) > 1:
        yield Finding(
            anomaly="duplicate",
            expected=f"{name.decode()} once, idempotence is on",
            seen=f"it {len(where)} times, at {', '.join(f'{p}/{o}' for p, o in where[:4])}",
        )


def duplicates(run: Run) -> int:
    """How many records are in the log more than once; without idempotence that is no finding."""
    names = Counter(identity_of(entry) for entries in run.log.values() for entry in entries)
    return sum(count > 1 for count in names.values())


def _order(run: Run) -> Iterator[Finding]:
    """Acknowledged records of one producer to one partition, in the order in which they were sent."""
    producer = run.scenario.producer
    if not producer.get("idempotence") and producer.get("in_flight") != 1:
        return
    offsets = {
        (where, identity_of(entry)): entry.offset
        for where, entries in _every(run)
        for entry in reversed(entries)
    }
    last: dict[tuple[str, str], tuple[int, bytes]] = {}
    for command in run.appends:
        name, place = _name(command), place_of(command.fields)
        at = offsets.get((place, name))
        if not command.ok or at is None or command.fields["topic"] in run.renewed:
            continue
        before = last.get((command.client, place))
        if before is not None and at < before[0]:
            yield Finding(
                anomaly="reordered" if producer.get("idempotence") else "reordered_plain",
                expected=f"{name.decode()} after {before[1].decode()} in {place}, sent before it by one "
                f"producer",
                seen=f"them at {at} and {before[0]}",
            )
        if before is None or at > before[0]:
            last[command.client, place] = (at, name)


def _name(command: Command) -> bytes:
    return identity(command.fields["headers"])


def _ends(run: Run) -> Iterator[Finding]:
    waited = [command for command in run.appends if command.client not in run.closed]
    open_ = [command for command in waited if command.answer is None]
    ends = [
        one.end
        for one in run.transactions
        if one.end is not None and one.end.answer is None and one.end.client not in run.closed
    ]
    if ends and not run.trouble and not open_:
        yield Finding(
            anomaly="stuck_transaction",
            expected="every commit and abort answered after the heal",
            seen=f"{len(ends)} of {len(run.transactions)} without an answer",
        )
    yield from _after(run)
    if run.trouble:
        yield Finding(anomaly="ended", expected="a driver that keeps running", seen=run.trouble[:600])
    elif open_:
        yield Finding(
            anomaly="stuck_append",
            expected="every append answered after the heal",
            seen=f"{len(open_)} of {len(waited)} without an answer, {_name(open_[0]).decode()} first",
        )


def _flushes(run: Run) -> Iterator[Finding]:
    """What was sent before a flush has an answer when the flush ends."""
    for flush in run.flushes:
        ended = flush.answered_ns
        if not flush.ok or ended is None:
            continue
        late = [
            one
            for one in run.appends
            if one.client == flush.client
            and one.number < flush.number
            and (one.answered_ns is None or one.answered_ns > ended + FLUSHED_NS)
        ]
        if late:
            yield Finding(
                anomaly="unflushed",
                expected=f"an answer to every append of {flush.client} before its flush ended",
                seen=f"{len(late)} without one a second later, {_name(late[0]).decode()} first",
            )


def _unreadable(run: Run) -> Iterator[Finding]:
    if run.unreadable:
        yield Finding(
            anomaly="unreadable",
            expected="requests as Kafka's protocol has them, in versions that the broker advertises",
            seen=f"{len(run.unreadable)} that ended their connections: {run.unreadable[0]}",
        )


def _after(run: Run) -> Iterator[Finding]:
    """Appends to the healed cluster. With many retries none may fail; with few, not one in each round."""
    settings = run.scenario.producer
    if run.scenario.truncates:
        return  # sequences have a gap that the producer did not make; it may end (librdkafka's fatal error)
    if run.scenario.transactional or run.trouble or settings.get("delivery_timeout_ms", LONG_MS) < LONG_MS:
        return
    failed = [[one for one in sent if not one.ok and _had_time(run, one)] for sent in run.after]
    if settings.get("retries", MANY) < MANY:
        if len(failed) < AFTER_ROUNDS or settings.get("request_timeout_ms", PATIENT_MS) < PATIENT_MS:
            return
        for_ever = set.intersection(
            *({(one.client, place_of(one.fields)) for one in sent} for sent in failed)
        )
        failed = [[one for one in failed[0] if (one.client, place_of(one.fields)) in for_ever]]
    for sent in failed:
        if sent:
            yield Finding(
                anomaly="producer_ended",
                expected="appends to the healed cluster acknowledged",
                seen=f"{len(sent)} failed in {len(run.after)} rounds, {_name(sent[0]).decode()} first: "
                f"{sent[0].error}",
            )


def _had_time(run: Run, append: Command) -> bool:
    """Whether an append has an answer, and brokers stood still, on a busy machine, for less than a request
    of it may take."""
    if append.answered_ns is None:
        return False
    served = time_of(append.answered_ns, run.clock) - time_of(append.sent_ns, run.clock)
    patience_ms = int(run.scenario.producer.get("request_timeout_ms", PATIENT_MS))
    return append.answered_ns - append.sent_ns - served < patience_ms * 1_000_000


def _transactions(run: Run) -> Iterator[Finding]:
    """What the library reported of each transaction, against the markers in the log."""
    outcomes: dict[bytes, str] = {}
    for _, entries in _every(run):
        for entry in entries:
            outcomes.setdefault(identity_of(entry), entry.outcome)
    for one in run.transactions:
        acknowledged = [_name(append) for append in one.appends if append.ok]
        kept = [name for name in acknowledged if outcomes.get(name) == COMMITTED]
        lost = [name for name in acknowledged if outcomes.get(name) != COMMITTED]
        ended = one.ended
        if ended == "committed" and lost:
            yield Finding(
                anomaly="transaction_lost",
                expected=f"{len(acknowledged)} acknowledged records committed, as was reported",
                seen=f"{len(lost)} are not, {lost[0].decode()} is {outcomes.get(lost[0]) or 'missing'}",
            )
        failed = [append for append in one.appends if _failed_before(append, one.end)]
        if ended == "committed" and failed:
            yield Finding(
                anomaly="committed_after_failure",
                expected="no commit of a transaction of which an append had failed",
                seen=f"{len(failed)} of {len(one.appends)} failed before it was asked for, "
                f"{_name(failed[0]).decode()} first: {failed[0].error}",
            )
        every = [_name(append) for append in one.appends]
        against = [name for name in every if outcomes.get(name) == COMMITTED]
        if ended == "aborted" and against:
            yield Finding(
                anomaly="transaction_kept",
                expected=f"nothing of a transaction that was aborted, of {len(every)} records",
                seen=f"{len(against)} committed, {against[0].decode()} first",
            )
        if not ended and kept and lost:
            yield Finding(
                anomaly="torn",
                expected=f"all or none of a transaction's {len(acknowledged)} acknowledged records",
                seen=f"{len(kept)} are, {len(lost)} are not, {lost[0].decode()} is "
                f"{outcomes.get(lost[0]) or 'missing'}",
            )


def _failed_before(append: Command, end: Command | None) -> bool:
    """Whether the library reported a send as failed before this end was asked for."""
    if end is None or append.answer is None or append.answered_ns is None:
        return False
    return append.answer["event"] == "done" and not append.ok and append.answered_ns < end.sent_ns


def _copies(run: Run, allowed: Allowed) -> Iterator[Finding]:
    """Each committed record has one committed copy, and no other record has any."""
    if not run.scenario.copier:
        return
    copies: Counter[tuple[str, int]] = Counter()
    for entries in run.copies.values():
        names = (source_of(identity_of(entry)) for entry in entries if entry.outcome == COMMITTED)
        copies.update(source for source in names if source is not None)
    read = {(place, one.offset): one.outcome for place, entries in run.log.items() for one in entries}
    undone = sorted(one for one in copies if read.get(one, COMMITTED) not in ("", COMMITTED))
    if undone:
        yield Finding(
            anomaly="aborted_delivered",
            expected="only committed records copied, read_committed",
            seen=f"{undone[0][0]}/{undone[0][1]}, {read[undone[0]]}, copied",
        )
    twice = sorted(one for one, count in copies.items() if count > 1)
    if twice:
        yield Finding(
            anomaly="copied_twice",
            expected=f"one copy of {twice[0][0]}/{twice[0][1]}, their offsets are in their transactions",
            seen=f"{copies[twice[0]]} committed ones; {len(twice)} records have more than one",
        )
    committed = {one for one, outcome in read.items() if outcome in ("", COMMITTED) and one not in allowed}
    missing = sorted(committed - copies.keys())
    highest = {place: max(offset for where, offset in copies if where == place) for place, _ in copies}
    left_out = [one for one in missing if one[1] < highest.get(one[0], -1)]
    if left_out:
        yield Finding(
            anomaly="copy_lost",
            expected=f"every record up to {highest[left_out[0][0]]} of {left_out[0][0]} copied",
            seen=f"{len(left_out)} without a copy, the first at {left_out[0][0]}/{left_out[0][1]}",
        )
    elif missing and not run.copied and not run.trouble and not run.waits_to_join:
        yield Finding(
            anomaly="stuck_copier",
            expected="every record copied after the heal",
            seen=f"{len(missing)} without a copy, the first at {missing[0][0]}/{missing[0][1]}",
        )


def as_dict(finding: Finding, promises: Mapping[str, str] = PROMISES) -> dict[str, Any]:
    """The JSON form of a finding. promises: by anomaly."""
    return {
        "anomaly": finding.anomaly,
        "expected": finding.expected,
        "seen": finding.seen,
        "promise": promises[finding.anomaly],
    }
