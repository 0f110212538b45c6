"""What a broker wrote about itself, as events: from server.log, state-change.log, controller.log, or all of
them in one stream.

Owns the sentences. Must not know judges. The sentences are no interface of Kafka's: they differ by version,
and a release may change any of them. So a line that is not understood is passed over, and what it would have
said is not known; nothing may be concluded from the absence of an event. Two layouts are read:

    2026-01-01 12:00:00,123+0000 [thread] INFO logger - message       (cluster.py's brokers)
    [2026-01-01 12:00:00,123] INFO message (logger)                   (Kafka's own log4j layout)

The second has no zone. A line without a time belongs to the one before it, such as a stack trace, and is not
read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from fencepost.systems.apache_kafka.inside.live_files import ReadOnly
from fencepost.systems.apache_kafka.inside.partition_changes import Key, event_of
from fencepost.traces.events import Event, Name

MOST_BYTES = 512 * 1024 * 1024
"""Of one log. A cluster under faults wrote 1 MB a minute and broker."""
LONGEST_LINE = 16_384
"""Characters of a line that are looked at: every sentence that is read is shorter."""
CHUNK_BYTES = 1024 * 1024
_LINE = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<ms>\d{3})(?P<zone>[+-]\d{4})"
    r" \[[^\]]{0,300}\] (?P<level>[A-Z]+) \S+ - (?P<text>.*)"
)
_LOG4J = re.compile(
    r"\[(?P<day>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<ms>\d{3})\] (?P<level>[A-Z]+) (?P<text>.*)"
)
BELOW_HIGH_WATERMARK = "truncated_below_high_watermark"
"""The cause of a mark: a replica cut records that it knew to be committed."""
DELETED = "replica_deleted"
"""The mark of a broker that deleted its replica."""
FATAL = "fatal_fault"
"""The cause of a mark: the broker met something that it does not survive."""
NO_PARTITION: Key = ("", -1)
"""Of a line that is about no partition."""
Said = dict[str, Any]
"""What a line says by its pattern's names; most are columns of an event."""


@frozen
class Line:
    """A line with a time."""

    # wall-clock nanoseconds.
    time: int
    level: str
    text: str


@define
class BrokerLogFold:
    """Lines in, events out."""

    # The broker.
    node: int
    # Leader epoch of each partition in which it last had a role, since it started.
    epochs: dict[Key, int] = field(factory=dict)
    # Why a fetcher is about to cut a partition, and the leader that it follows.
    reasons: dict[Key, tuple[str, int]] = field(factory=dict)
    # The high watermark that is about to be cut into.
    below: dict[Key, int] = field(factory=dict)

    def take(self, line: Line) -> Iterator[Event]:
        """The events of one line."""
        for word, pattern, handler in _SENTENCES:
            found = pattern.search(line.text) if word in line.text else None
            if found is not None:
                texts = found.groupdict()
                said = {name: _READ.get(name, int)(text) for name, text in texts.items() if text is not None}
                key = said.pop("partition", NO_PARTITION)
                if key is not None:
                    yield from handler(self, line, key, said)
                return

    def _event(self, name: Name, line: Line, key: Key = NO_PARTITION, **columns: Any) -> Event:
        if key != NO_PARTITION:
            return event_of(name, line.time, self.node, key, **columns)
        return Event(time=line.time, name=name, node=self.node, **columns)

    def _started(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        self.epochs.clear()
        yield self._event(Name.BROKER_STARTED, line)

    def _leads(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        self.epochs[key] = said["leader_epoch"]
        yield self._event(Name.BECAME_LEADER, line, key, **said)

    def _follows(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        self.epochs[key] = said["leader_epoch"]
        yield self._event(Name.BECAME_FOLLOWER, line, key, **said)

    def _about_to_cut(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        cause = "high_watermark" if "high watermark" in said["why"] else "leader_epoch"
        self.reasons[key] = cause, said["leader"]
        yield from ()

    def _below(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        self.below[key] = said["high_watermark"]
        yield self._event(Name.MARK, line, key, cause=BELOW_HIGH_WATERMARK, **said)

    def _cut(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        cause, leader = self.reasons.pop(key, ("leader_epoch", -1))
        below, epoch = self.below.pop(key, -1), self.epochs.get(key, -1)
        known = {"high_watermark": below, "leader_epoch": epoch, "leader": leader, "cause": cause}
        yield self._event(Name.TRUNCATED, line, key, **said, **known)

    def _all_cut(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        epoch = self.epochs.get(key, -1)
        yield self._event(Name.TRUNCATED, line, key, leader_epoch=epoch, cause="full", **said)

    def _isr(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.ISR_UPDATED, line, key, leader_epoch=self.epochs.get(key, -1), **said)

    def _deleted(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.MARK, line, key, leader_epoch=self.epochs.pop(key, -1), cause=DELETED)

    def _recovered(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.LOG_RECOVERED, line, (said.pop("topic"), said.pop("number")), **said)

    def _refused(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield event_of(
            Name.FETCH_REFUSED,
            line.time,
            said["leader"],
            key,
            leader_epoch=said["leader_epoch"],
            detail="FENCED_LEADER_EPOCH" if said["which"] == "older" else "UNKNOWN_LEADER_EPOCH",
            cause=f"broker {self.node}",
        )

    def _elected(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.CONTROLLER_ELECTED, line, **said)

    def _resigned(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.CONTROLLER_RESIGNED, line)

    def _old_controller(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.CONTROL_REQUEST_REFUSED, line, detail="STALE_CONTROLLER_EPOCH", **said)

    def _directory_failed(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.LOG_DIRECTORY_FAILED, line, detail=line.text[:200])

    def _fatal(self, line: Line, key: Key, said: Said) -> Iterator[Event]:
        yield self._event(Name.MARK, line, cause=FATAL, detail=line.text[:200])


Handler = Callable[[BrokerLogFold, Line, Key, Said], Iterator[Event]]


def _pattern(text: str) -> re.Pattern[str]:
    """`{name}` is a number of that name, `{name:word}` a word without blanks."""
    text = re.sub(r"\{(\w+):word\}", r"(?P<\1>[^\\s,]{1,400})", text)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>\\d{1,18})", text))


_SENTENCES: tuple[tuple[str, re.Pattern[str], Handler], ...] = (
    (
        "starts at leader epoch",
        _pattern(
            r"Leader {partition:word} (?:with topic id \S+ )?starts at leader epoch {leader_epoch} from"
            r" offset {offset} with (?:partition epoch (?P<zk_version>\d{1,18}), )?high watermark"
            r" {high_watermark},? ISR \[(?P<isr>[\d, ]*)\]"
        ),
        BrokerLogFold._leads,
    ),
    (
        "starts at leader epoch",
        _pattern(
            r"Follower {partition:word} (?:with topic id \S+ )?starts at leader epoch {leader_epoch} from"
            r" offset {offset} with (?:partition epoch (?P<zk_version>\d{1,18}) and )?high watermark"
            r" {high_watermark}\. Current leader is (?P<leader>-?\d{1,9})"
        ),
        BrokerLogFold._follows,
    ),
    (
        "Truncating partition",
        _pattern(
            r"leaderId={leader}, .*Truncating partition {partition:word} with TruncationState\(.*\) due to"
            r" (?P<why>local high watermark|leader epoch)"
        ),
        BrokerLogFold._about_to_cut,
    ),
    (
        "below high watermark",
        _pattern(r"Truncating {partition:word} to offset {offset} below high watermark {high_watermark}"),
        BrokerLogFold._below,
    ),
    (
        "Truncating to offset",
        _pattern(r"partition={partition:word}, dir=.*Truncating to offset {offset}"),
        BrokerLogFold._cut,
    ),
    (
        "Truncate and start at offset",
        _pattern(r"partition={partition:word}, dir=.*Truncate and start at offset {offset}"),
        BrokerLogFold._all_cut,
    ),
    (
        "ISR updated to",
        _pattern(
            r"\[Partition {partition:word} broker=\d+\] ISR updated to \[?(?P<isr>[\d, ]*?)\]?"
            r"(?: \(under-min-isr\))? +and (?:zkVersion|version) updated to \[?{zk_version}"
        ),
        BrokerLogFold._isr,
    ),
    (
        "scheduled for deletion",
        _pattern(r"Log for partition {partition:word} is renamed to \S+-delete and is scheduled"),
        BrokerLogFold._deleted,
    ),
    (
        "Completed load of Log",
        _pattern(
            r"Completed load of Log\(dir=.*, topic=(?P<topic>[^\s,]{1,249}), partition={number},"
            r" highWatermark={high_watermark}, lastStableOffset=\d+, logStartOffset={log_start_offset},"
            r" logEndOffset={offset}\)"
        ),
        BrokerLogFold._recovered,
    ),
    (
        "epoch",
        _pattern(
            r"leaderId={leader}, .*Partition {partition:word} has an? (?P<which>older|newer) epoch"
            r" \({leader_epoch}\) than the current leader"
        ),
        BrokerLogFold._refused,
    ),
    ("starting", re.compile(r"^(?:\[KafkaServer id=\d+\] )?starting$"), BrokerLogFold._started),
    ("to STARTING", re.compile(r"Transition from SHUTDOWN to STARTING"), BrokerLogFold._started),
    (
        "successfully elected as the controller",
        _pattern(r"successfully elected as the controller\. Epoch incremented to {controller_epoch}"),
        BrokerLogFold._elected,
    ),
    ("Resigned", re.compile(r"\[Controller id=\d+\] Resigned$"), BrokerLogFold._resigned),
    (
        "controller epoch",
        _pattern(
            r"Ignoring (?P<cause>\w+) request from controller \d+ with correlation id \d+"
            r"(?: for partition \S+)? since its controller epoch {controller_epoch} is old"
        ),
        BrokerLogFold._old_controller,
    ),
    (
        "Stopping serving logs in dir",
        re.compile(r"Stopping serving logs in dir"),
        BrokerLogFold._directory_failed,
    ),
    ("Encountered fatal fault", re.compile(r"Encountered fatal fault"), BrokerLogFold._fatal),
)
"""A word of the sentence, the sentence, what it means."""


def read_broker_log(node: int, paths: Iterable[Path], utc_offset_s: int = 0) -> tuple[Event, ...]:
    """The events of a broker's logs.

    Args:
        node: the broker.
        paths: its logs, each from its beginning; those that are absent are passed over.
        utc_offset_s: the zone of log4j's times, in seconds east of UTC.

    Returns:
        the events by time, in nanoseconds of the wall clock.

    Raises:
        TraceError: for a file above its bound.
    """
    found: list[Line] = []
    for path in paths:
        if path.exists():
            with ReadOnly(path, MOST_BYTES) as source:
                found += lines_of(_text_lines(source), utc_offset_s)
    found.sort(key=lambda line: line.time)
    fold = BrokerLogFold(node)
    return tuple(event for line in found for event in fold.take(line))


def lines_of(texts: Iterable[str], utc_offset_s: int = 0) -> Iterator[Line]:
    """The lines that have a time and say something that is understood here. texts: of a log; utc_offset_s:
    the zone of log4j's times, in seconds east of UTC."""
    for text in texts:
        if not any(word in text for word in _WORDS):
            continue
        found = _LINE.match(text) or _LOG4J.match(text)
        if found is None:
            continue
        zone = found.groupdict().get("zone")
        try:
            time = _time(found["day"], found["time"], int(found["ms"]), zone, utc_offset_s)
        except ValueError:
            continue
        said = found["text"]
        if zone is None and said.endswith(")") and " (" in said:
            said = said.rpartition(" (")[0]  # the logger
        yield Line(time, found["level"], said)


_WORDS = tuple(dict.fromkeys(word for word, _, _ in _SENTENCES))


def _time(day: str, clock: str, milliseconds: int, zone: str | None, utc_offset_s: int) -> int:
    if zone is None:
        tz = timezone(timedelta(seconds=utc_offset_s))
    else:
        minutes = int(zone[1:3]) * 60 + int(zone[3:5])
        tz = timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
    moment = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=tz).astimezone(UTC)
    return (int(moment.timestamp()) * 1000 + milliseconds) * 1_000_000


def _text_lines(source: ReadOnly) -> Iterator[str]:
    position, rest = 0, b""
    while data := source.read_at(position, CHUNK_BYTES):
        position += len(data)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
        rest = rest[:LONGEST_LINE]
    if rest:
        yield rest.decode("utf-8", "replace")


def _key(text: str) -> Key | None:
    topic, dash, number = text.rpartition("-")
    return (topic, int(number)) if dash and number.isdecimal() and len(number) < 10 else None


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d{1,9}", text))


_READ: Mapping[str, Callable[[str], Any]] = {
    "partition": _key,
    "isr": _ids,
    **dict.fromkeys(("topic", "why", "which", "cause"), str),
}
"""How a word is read; the others are numbers."""
