"""What an application saw, against what the log holds at the end.

Owns the anomalies of clients and the promise that each breaks. Must not know how a run was made. A judge never
convicts by what a client may do: an append of unknown outcome may be in the log once, or not at all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from fencepost.torture.driver import Command
from fencepost.torture.protocol import decoded, outcome_of_append
from fencepost.torture.run import Outcome as Run
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import LossRange

PROMISES = {
    "lost_write": 'acks=all: "This guarantees that the record will not be lost as long as at least one in-sync'
    ' replica remains alive." (Kafka, producer configuration)',
    "wrong_offset": '"RecordMetadata: The metadata for a record that has been acknowledged by the server": its'
    " offset is the record's (Kafka, javadoc)",
    "duplicate": 'enable.idempotence: "the producer will ensure that exactly one copy of each message is written'
    ' in the stream" (Kafka, producer configuration)',
    "reordered": '"Messages sent by a producer to a particular topic partition will be appended in the order they'
    ' are sent." (Kafka, introduction, guarantees)',
    "wrong_record": "what is in the log is what the application sent, where it sent it",
    "wrong_delivery": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees): what is handed out is what is stored there",
    "delivered_twice": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees), without a rebalance or a seek each once",
    "skipped": "at least once: a record that was neither handed out nor committed over by the application is"
    " handed out by the group",
    "committed_beyond": "a commit without offsets commits what was handed out, not more",
    "stuck_append": "delivery.timeout.ms: an upper bound on the time to report success or failure after a call to"
    " send() returns (Kafka, producer configuration)",
    "stuck_consumer": "a consumer goes on once brokers are reachable again",
    "ended": "a library does not end its application's process",
}
"""By anomaly. A driver's own table goes before (driver.toml, [promises])."""


@frozen(kw_only=True)
class Finding:
    """One contradiction."""

    anomaly: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"{self.anomaly}: expected {self.expected}, saw {self.seen}"


class _Allowed:
    """Places that faults of the brokers may have taken back: no client is at fault for them."""

    def __init__(self, ranges: Sequence[LossRange]) -> None:
        self._ranges = {(one.partition, one.start, one.end) for one in ranges}

    def __contains__(self, place: tuple[int, int]) -> bool:
        return any(
            partition == place[0] and start <= place[1] < end for partition, start, end in self._ranges
        )


def judge(run: Run, allowed: Sequence[LossRange] = ()) -> list[Finding]:
    """At most one finding of each anomaly, the first that is met. allowed: offsets of the run's topic that the
    brokers may have lost."""
    found: dict[str, Finding] = {}
    may = _Allowed(allowed)
    for findings in (_appends(run, may), _order(run), _deliveries(run, may), _ends(run)):
        for finding in findings:
            found.setdefault(finding.anomaly, finding)
    return list(found.values())


def _appends(run: Run, allowed: _Allowed) -> Iterator[Finding]:
    idempotent = bool(run.scenario.producer.get("idempotence"))
    retries = run.scenario.producer.get("retries")
    sent = {_value(command): command for command in run.appends}
    places: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for partition, entries in run.log.items():
        for entry in entries:
            value = entry.value or b""
            places[value].append((partition, entry.offset))
            command = sent.get(value)
            if command is None or command.fields["partition"] != partition:
                yield Finding(
                    anomaly="wrong_record",
                    expected=f"a record that was sent to partition {partition}",
                    seen=f"{value!r:.60} at {partition}/{entry.offset}",
                )
            elif entry.key != decoded(command.fields["key"]) or entry.headers != (("id", value),):
                yield Finding(
                    anomaly="wrong_record",
                    expected="key and headers as they were sent",
                    seen=f"{entry.key!r:.40}, {entry.headers!r:.80} at {partition}/{entry.offset}",
                )
    lost = []
    for value, command in sent.items():
        where = places.get(value, [])
        outcome = outcome_of_append(command.answer, retries=retries)
        if outcome is Outcome.OK:
            assert command.answer is not None
            offset = command.answer.get("offset", -1)
            if not where:
                if (command.fields["partition"], offset) not in allowed:
                    lost.append((value, offset))
            elif offset is not None and offset >= 0 and offset not in [each[1] for each in where]:
                yield Finding(
                    anomaly="wrong_offset",
                    expected=f"{value.decode()} at offset {offset} of {command.fields['partition']}",
                    seen=f"it at {', '.join(str(each[1]) for each in where)}",
                )
        if outcome is Outcome.FAIL and where:
            yield Finding(
                anomaly="wrong_record",
                expected=f"nothing of {value.decode()}, refused with {command.error}",
                seen=f"it at {where[0]}",
            )
        if idempotent and len(where) > 1:
            yield Finding(
                anomaly="duplicate",
                expected=f"{value.decode()} once, idempotence is on",
                seen=f"it {len(where)} times, at {', '.join(f'{p}/{o}' for p, o in where[:4])}",
            )
    if lost:
        offsets = Counter(offset for _, offset in lost)
        yield Finding(
            anomaly="lost_write",
            expected="every acknowledged record in the log",
            seen=f"{len(lost)} of {len(sent)} missing, {lost[0][0].decode()} first, acknowledged at offsets"
            f" {', '.join(f'{offset} ({count} times)' for offset, count in offsets.most_common(3))}",
        )


def duplicates(run: Run) -> int:
    """How many records are in the log more than once; without idempotence that is no finding."""
    values = Counter(entry.value for entries in run.log.values() for entry in entries)
    return sum(count > 1 for count in values.values())


def _order(run: Run) -> Iterator[Finding]:
    """Acknowledged records of one producer to one partition, in the order in which they were sent."""
    producer = run.scenario.producer
    if not producer.get("idempotence") and producer.get("in_flight") != 1:
        return
    place = {
        entry.value: (partition, entry.offset)
        for partition, entries in run.log.items()
        for entry in reversed(entries)
    }
    last: dict[tuple[str, int], tuple[int, Command]] = {}
    for command in run.appends:
        value = _value(command)
        if not command.ok or value not in place:
            continue
        partition, offset = place[value]
        before = last.get((command.client, partition))
        if before is not None and offset < before[0]:
            yield Finding(
                anomaly="reordered",
                expected=f"{value.decode()} after {_value(before[1]).decode()} in partition {partition}, sent before"
                " it by one producer",
                seen=f"them at {offset} and {before[0]}",
            )
        if before is None or offset > before[0]:
            last[command.client, partition] = (offset, command)


def _value(command: Command) -> bytes:
    return decoded(command.fields["value"]) or b""


def _deliveries(run: Run, allowed: _Allowed) -> Iterator[Finding]:
    log = {(partition, entry.offset): entry for partition, entries in run.log.items() for entry in entries}
    shows = any(event.fields["event"] == "assigned" for event in run.events)
    handed: set[tuple[int, int]] = set()
    for client, polls in run.polls.items():
        moves = [
            event.at_ns
            for event in run.events
            if event.fields.get("client") == client
            and event.fields["event"] in ("assigned", "revoked", "lost")
        ]
        last: dict[int, tuple[int, int]] = {}
        for poll in polls:
            assert poll.answer is not None and poll.answered_ns is not None
            for record in poll.answer.get("records") or ():
                partition, offset = record["partition"], record["offset"]
                handed.add((partition, offset))
                if (partition, offset) in allowed:
                    last.pop(partition, None)
                    continue
                entry = log.get((partition, offset))
                if (
                    entry is None
                    or decoded(record["value"]) != entry.value
                    or decoded(record["key"]) != entry.key
                ):
                    held = "nothing" if entry is None else repr(entry.value)
                    yield Finding(
                        anomaly="wrong_delivery",
                        expected=f"{held} at {partition}/{offset}",
                        seen=f"{decoded(record['value'])!r:.60}, handed out to {client}",
                    )
                before = last.get(partition)
                if before is not None and offset <= before[0] and shows:
                    since = before[1]
                    if not any(since <= move <= poll.answered_ns for move in moves):
                        yield Finding(
                            anomaly="delivered_twice",
                            expected=f"offsets above {before[0]} of partition {partition}, no rebalance was seen",
                            seen=f"offset {offset}, handed out to {client}",
                        )
                last[partition] = (offset, poll.sent_ns)
    if not run.scenario.members:
        return
    highest: dict[int, int] = {}
    for partition, offset in handed:
        highest[partition] = max(offset, highest.get(partition, -1))
    missing = sorted(place for place in log if place not in handed and place not in allowed)
    skipped = [place for place in missing if place[1] < highest.get(place[0], -1) and place not in allowed]
    if skipped:
        yield Finding(
            anomaly="skipped",
            expected=f"every record up to {highest[skipped[0][0]]} of partition {skipped[0][0]} handed out",
            seen=f"{len(skipped)} that nobody got, the first at {skipped[0][0]}/{skipped[0][1]}",
        )
    elif missing and not run.drained and not run.trouble:
        yield Finding(
            anomaly="stuck_consumer",
            expected="every record handed out after the heal",
            seen=f"{len(missing)} that nobody got, the first at {missing[0][0]}/{missing[0][1]}",
        )
    for partition, offset in run.committed.items():
        if offset > highest.get(partition, -1) + 1:
            yield Finding(
                anomaly="committed_beyond",
                expected=f"at most {highest.get(partition, -1) + 1} committed of partition {partition}",
                seen=f"{offset}",
            )


def _ends(run: Run) -> Iterator[Finding]:
    open_ = [command for command in run.appends if command.answer is None]
    if run.trouble:
        yield Finding(anomaly="ended", expected="a driver that goes on", seen=run.trouble[:600])
    elif open_:
        yield Finding(
            anomaly="stuck_append",
            expected="every append answered after the heal",
            seen=f"{len(open_)} of {len(run.appends)} without an answer, {_value(open_[0]).decode()} first",
        )


def as_dict(finding: Finding) -> dict[str, Any]:
    """As JSON holds it, with the promise."""
    return {
        "anomaly": finding.anomaly,
        "expected": finding.expected,
        "seen": finding.seen,
        "promise": PROMISES[finding.anomaly],
    }
