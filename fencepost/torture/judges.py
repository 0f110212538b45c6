"""What an application saw, against what the log holds at the end.

Owns the anomalies of clients and the promise that each breaks. Must not know how a run was made. A judge
never convicts by what a client may do: an append of unknown outcome may be in the log once, or not at all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from fencepost.torture.driver import Command
from fencepost.torture.protocol import outcome_of_append
from fencepost.torture.records import differs, identity, identity_of, place_of
from fencepost.torture.run import Outcome as Run
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import LossRange

PROMISES = {
    "lost_write": 'acks=all: "This guarantees that the record will not be lost as long as at least one '
    "in-sync"
    ' replica remains alive." (Kafka, producer configuration)',
    "wrong_offset": '"RecordMetadata: The metadata for a record that has been acknowledged by the server": '
    "its"
    " offset is the record's (Kafka, javadoc)",
    "duplicate": 'enable.idempotence: "the producer will ensure that exactly one copy of each message is '
    "written"
    ' in the stream" (Kafka, producer configuration)',
    "reordered": '"Messages sent by a producer to a particular topic partition will be appended in the '
    "order they"
    ' are sent." (Kafka, introduction, guarantees)',
    "wrong_record": "what is in the log is what the application sent, where it sent it",
    "wrong_delivery": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees): the delivered record is the one that is stored there",
    "delivered_twice": '"A consumer instance sees records in the order they are stored in the log." (Kafka,'
    " introduction, guarantees), without a rebalance or a seek each once",
    "skipped": "at least once: a record that was neither delivered nor committed over by the application is"
    " delivered by the group",
    "committed_beyond": "a commit without offsets commits what was delivered, not more",
    "committed_back": 'commitAsync: "Offsets committed through multiple calls to this API are guaranteed to '
    "be sent in"
    ' the same order as the invocations." (Kafka, javadoc of KafkaConsumer): an acknowledged commit is not '
    "undone",
    "below_committed": '"The committed position is the last offset that has been stored securely. Should '
    "the process"
    ' fail and restart, this is the offset that the consumer will recover to." (Kafka, javadoc of '
    "KafkaConsumer)",
    "stuck_append": "delivery.timeout.ms: an upper bound on the time to report success or failure after a "
    "call to"
    " send() returns (Kafka, producer configuration)",
    "stuck_consumer": "a consumer continues once brokers are reachable again",
    "ended": "a library does not end its application's process",
}
"""What libraries promise, by anomaly. A driver's own table (driver.toml, [promises]) has precedence. An empty
text there says that the library's documentation makes no such promise; then the anomaly is not judged."""


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
        self._ranges = {(f"{one.topic}-{one.partition}", one.start, one.end) for one in ranges}

    def __contains__(self, where: tuple[str, int]) -> bool:
        return any(place == where[0] and start <= where[1] < end for place, start, end in self._ranges)


def judge(
    run: Run, promises: Mapping[str, str] = PROMISES, *, allowed: Sequence[LossRange] = ()
) -> list[Finding]:
    """At most one finding of each anomaly, the first that is met.

    Args:
        run: what the application and the log say.
        promises: of the library; anomalies of which it promises nothing are left out.
        allowed: offsets that the brokers may have lost.
    """
    found: dict[str, Finding] = {}
    may = _Allowed(allowed)
    for findings in (
        _appends(run, may),
        _order(run),
        _deliveries(run, may),
        _group(run, may),
        _commits(run),
        _ends(run),
    ):
        for finding in findings:
            if promises.get(finding.anomaly):
                found.setdefault(finding.anomaly, finding)
    return list(found.values())


def promises_of(library: Mapping[str, str]) -> dict[str, str]:
    """The promises by anomaly: the library's own words if it has some, else Kafka's."""
    return {**PROMISES, **library}


def _appends(run: Run, allowed: _Allowed) -> Iterator[Finding]:
    sent = {_name(command): command for command in run.appends}
    places: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    for place, entries in run.log.items():
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
    for name, command in sent.items():
        where = places.get(name, [])
        outcome = outcome_of_append(command.answer, retries=run.scenario.producer.get("retries"))
        if outcome is Outcome.OK and not where:
            assert command.answer is not None
            offset = command.answer.get("offset", -1)
            if (place_of(command.fields), offset) not in allowed:
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


def _place(
    run: Run, name: bytes, command: Command, outcome: Outcome, where: list[tuple[str, int]]
) -> Iterator[Finding]:
    """The findings about one append, compared with where its record is."""
    if outcome is Outcome.OK and where:
        assert command.answer is not None
        offset = command.answer.get("offset", -1)
        if offset is not None and offset >= 0 and offset not in [each[1] for each in where]:
            yield Finding(
                anomaly="wrong_offset",
                expected=f"{name.decode()} at offset {offset} of {place_of(command.fields)}",
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
        identity_of(entry): entry.offset for entries in run.log.values() for entry in reversed(entries)
    }
    last: dict[tuple[str, str], tuple[int, bytes]] = {}
    for command in run.appends:
        name, place = _name(command), place_of(command.fields)
        if not command.ok or name not in offsets:
            continue
        before = last.get((command.client, place))
        if before is not None and offsets[name] < before[0]:
            yield Finding(
                anomaly="reordered",
                expected=f"{name.decode()} after {before[1].decode()} in {place}, sent before it by one "
                f"producer",
                seen=f"them at {offsets[name]} and {before[0]}",
            )
        if before is None or offsets[name] > before[0]:
            last[command.client, place] = (offsets[name], name)


def _name(command: Command) -> bytes:
    return identity(command.fields["headers"])


def _moves(run: Run, client: str) -> list[int]:
    """When this client was given or lost partitions, or sought."""
    kinds = ("assigned", "revoked", "lost")
    events = [one for one in run.events if one.fields.get("client") == client]
    moves = [one.at_ns for one in events if one.fields["event"] in kinds]
    for seek in run.seeks:
        if seek.client == client:
            moves += [seek.sent_ns, *([] if seek.answered_ns is None else [seek.answered_ns])]
    return moves


def _deliveries(run: Run, allowed: _Allowed) -> Iterator[Finding]:
    log = {(place, entry.offset): entry for place, entries in run.log.items() for entry in entries}
    shows = any(event.fields["event"] == "assigned" for event in run.events)
    for client, polls in run.polls.items():
        moves = _moves(run, client)
        last: dict[str, tuple[int, int]] = {}
        for poll in polls:
            assert poll.answer is not None and poll.answered_ns is not None
            for record in poll.answer.get("records") or ():
                place, offset = place_of(record), record["offset"]
                if (place, offset) in allowed:
                    last.pop(place, None)
                    continue
                entry = log.get((place, offset))
                wrong = "nothing in the log" if entry is None else differs(entry, record)
                if wrong:
                    yield Finding(
                        anomaly="wrong_delivery",
                        expected=f"what is stored at {place}/{offset}",
                        seen=f"{wrong}, delivered to {client}",
                    )
                before = last.get(place, (-1, 0))
                again = shows and offset <= before[0]
                if again and not any(before[1] <= move <= poll.answered_ns for move in moves):
                    yield Finding(
                        anomaly="delivered_twice",
                        expected=f"offsets above {before[0]} of {place}, no rebalance was seen",
                        seen=f"offset {offset}, delivered to {client}",
                    )
                last[place] = (offset, poll.sent_ns)


def _highest(run: Run) -> tuple[set[tuple[str, int]], dict[str, int]]:
    """Partition and offset of what was delivered, and the highest offset of each partition."""
    handed = {
        (place_of(record), record["offset"])
        for polls in run.polls.values()
        for poll in polls
        for record in (poll.answer or {}).get("records") or ()
    }
    highest: dict[str, int] = {}
    for place, offset in handed:
        highest[place] = max(offset, highest.get(place, -1))
    return handed, highest


def _group(run: Run, allowed: _Allowed) -> Iterator[Finding]:
    """What the group got, of all that it should."""
    if not run.scenario.members:
        return
    handed, highest = _highest(run)
    log = [(place, entry.offset) for place, entries in run.log.items() for entry in entries]
    missing = sorted(where for where in log if where not in handed and where not in allowed)
    skipped = [where for where in missing if where[1] < highest.get(where[0], -1)]
    if skipped:
        yield Finding(
            anomaly="skipped",
            expected=f"every record up to {highest[skipped[0][0]]} of {skipped[0][0]} delivered",
            seen=f"{len(skipped)} that no member got, the first at {skipped[0][0]}/{skipped[0][1]}",
        )
    elif missing and not run.drained and not run.trouble:
        yield Finding(
            anomaly="stuck_consumer",
            expected="every record delivered after the heal",
            seen=f"{len(missing)} that no member got, the first at {missing[0][0]}/{missing[0][1]}",
        )


def _commits(run: Run) -> Iterator[Finding]:
    """Compare what is committed with what was delivered and with acknowledged commits."""
    _, highest = _highest(run)
    for place, offset in run.committed.items():
        if offset > highest.get(place, -1) + 1:
            yield Finding(
                anomaly="committed_beyond",
                expected=f"at most {highest.get(place, -1) + 1} committed of {place}",
                seen=f"{offset}",
            )
    if run.seeks:
        return  # who seeks back may commit less
    acknowledged: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for commit in run.commits:
        if commit.ok and commit.answered_ns is not None and (commit.answer or {}).get("reported", True):
            for row in (commit.answer or {}).get("offsets") or ():
                acknowledged[place_of(row)].append((commit.answered_ns, row["offset"]))
    for place, commits in acknowledged.items():
        most = max(offset for _, offset in commits)
        if place in run.committed and run.committed[place] < most:
            yield Finding(
                anomaly="committed_back",
                expected=f"at least {most} committed of {place}, as was acknowledged",
                seen=f"{run.committed[place]}",
            )
    yield from _below(run, acknowledged)


def _below(run: Run, acknowledged: Mapping[str, list[tuple[int, int]]]) -> Iterator[Finding]:
    """Members that were given a partition after a commit, and read below it."""
    for client, polls in run.polls.items():
        given: dict[str, list[int]] = defaultdict(list)
        for event in run.events:
            if event.fields.get("client") == client and event.fields["event"] == "assigned":
                for row in event.fields.get("partitions") or ():
                    given[place_of(row)].append(event.at_ns)
        for poll in polls:
            for record in (poll.answer or {}).get("records") or ():
                place = place_of(record)
                since = max((at for at in given[place] if at <= poll.sent_ns), default=None)
                if since is None:
                    continue
                floor = max((offset for at, offset in acknowledged.get(place, ()) if at <= since), default=0)
                if record["offset"] < floor:
                    yield Finding(
                        anomaly="below_committed",
                        expected=f"offsets from {floor} of {place}, committed before {client} was given it",
                        seen=f"offset {record['offset']}, delivered to {client}",
                    )


def _ends(run: Run) -> Iterator[Finding]:
    open_ = [command for command in run.appends if command.answer is None]
    if run.trouble:
        yield Finding(anomaly="ended", expected="a driver that keeps running", seen=run.trouble[:600])
    elif open_:
        yield Finding(
            anomaly="stuck_append",
            expected="every append answered after the heal",
            seen=f"{len(open_)} of {len(run.appends)} without an answer, {_name(open_[0]).decode()} first",
        )


def as_dict(finding: Finding, promises: Mapping[str, str] = PROMISES) -> dict[str, Any]:
    """The JSON form of a finding. promises: by anomaly."""
    return {
        "anomaly": finding.anomaly,
        "expected": finding.expected,
        "seen": finding.seen,
        "promise": promises[finding.anomaly],
    }
