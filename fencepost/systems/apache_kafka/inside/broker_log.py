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
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

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
            if word not in line.text:
                continue
            found = pattern.search(line.text)
            if found is not None:
                yield from handler(self, line, found)
                return

    def _started(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        self.epochs.clear()
        yield Event(time=line.time, name=Name.BROKER_STARTED, node=self.node)

    def _leads(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is None:
            return
        self.epochs[key] = int(found["epoch"])
        yield event_of(
            Name.BECAME_LEADER,
            line.time,
            self.node,
            key,
            leader_epoch=int(found["epoch"]),
            offset=int(found["offset"]),
            high_watermark=int(found["high"]),
            isr=_ids(found["isr"]),
            zk_version=int(found["version"] or -1),
        )

    def _follows(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is None:
            return
        self.epochs[key] = int(found["epoch"])
        yield event_of(
            Name.BECAME_FOLLOWER,
            line.time,
            self.node,
            key,
            leader=int(found["leader"]),
            leader_epoch=int(found["epoch"]),
            offset=int(found["offset"]),
            high_watermark=int(found["high"]),
            zk_version=int(found["version"] or -1),
        )

    def _about_to_cut(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            cause = "high_watermark" if "high watermark" in found["why"] else "leader_epoch"
            self.reasons[key] = cause, int(found["leader"])
        yield from ()

    def _below(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            self.below[key] = int(found["high"])
            yield event_of(
                Name.MARK,
                line.time,
                self.node,
                key,
                offset=int(found["offset"]),
                high_watermark=int(found["high"]),
                cause=BELOW_HIGH_WATERMARK,
            )

    def _cut(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is None:
            return
        cause, leader = self.reasons.pop(key, ("leader_epoch", -1))
        yield event_of(
            Name.TRUNCATED,
            line.time,
            self.node,
            key,
            offset=int(found["offset"]),
            high_watermark=self.below.pop(key, -1),
            leader_epoch=self.epochs.get(key, -1),
            leader=leader,
            cause=cause,
        )

    def _all_cut(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            epoch = self.epochs.get(key, -1)
            yield event_of(
                Name.TRUNCATED,
                line.time,
                self.node,
                key,
                offset=int(found["offset"]),
                leader_epoch=epoch,
                cause="full",
            )

    def _isr(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            yield event_of(
                Name.ISR_UPDATED,
                line.time,
                self.node,
                key,
                leader_epoch=self.epochs.get(key, -1),
                isr=_ids(found["isr"]),
                zk_version=int(found["version"]),
            )

    def _deleted(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            epoch = self.epochs.pop(key, -1)
            yield event_of(Name.MARK, line.time, self.node, key, leader_epoch=epoch, cause=DELETED)

    def _recovered(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield event_of(
            Name.LOG_RECOVERED,
            line.time,
            self.node,
            (found["topic"], int(found["number"])),
            offset=int(found["end"]),
            high_watermark=int(found["high"]),
            log_start_offset=int(found["start"]),
        )

    def _refused(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        key = _key(found["partition"])
        if key is not None:
            older = found["which"] == "older"
            yield event_of(
                Name.FETCH_REFUSED,
                line.time,
                int(found["leader"]),
                key,
                leader_epoch=int(found["epoch"]),
                detail="FENCED_LEADER_EPOCH" if older else "UNKNOWN_LEADER_EPOCH",
                cause=f"broker {self.node}",
            )

    def _elected(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield Event(
            time=line.time,
            name=Name.CONTROLLER_ELECTED,
            node=self.node,
            controller_epoch=int(found["epoch"]),
        )

    def _resigned(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield Event(time=line.time, name=Name.CONTROLLER_RESIGNED, node=self.node)

    def _old_controller(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield Event(
            time=line.time,
            name=Name.CONTROL_REQUEST_REFUSED,
            node=self.node,
            controller_epoch=int(found["epoch"]),
            cause=found["kind"],
            detail="STALE_CONTROLLER_EPOCH",
        )

    def _directory_failed(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield Event(time=line.time, name=Name.LOG_DIRECTORY_FAILED, node=self.node, detail=line.text[:200])

    def _fatal(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        yield Event(time=line.time, name=Name.MARK, node=self.node, cause=FATAL, detail=line.text[:200])


Handler = Callable[[BrokerLogFold, Line, re.Match[str]], Iterator[Event]]


def _pattern(text: str) -> re.Pattern[str]:
    """`{name}` is a number of that name, `{name:word}` a word without blanks."""
    text = re.sub(r"\{(\w+):word\}", r"(?P<\1>[^\\s,]{1,400})", text)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>\\d{1,18})", text))


_SENTENCES: tuple[tuple[str, re.Pattern[str], Handler], ...] = (
    (
        "starts at leader epoch",
        _pattern(
            r"Leader {partition:word} (?:with topic id \S+ )?starts at leader epoch {epoch} from offset"
            r" {offset} with (?:partition epoch (?P<version>\d{1,18}), )?high watermark {high},?"
            r" ISR \[(?P<isr>[\d, ]*)\]"
        ),
        BrokerLogFold._leads,
    ),
    (
        "starts at leader epoch",
        _pattern(
            r"Follower {partition:word} (?:with topic id \S+ )?starts at leader epoch {epoch} from offset"
            r" {offset} with (?:partition epoch (?P<version>\d{1,18}) and )?high watermark {high}\."
            r" Current leader is (?P<leader>-?\d{1,9})"
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
        _pattern(r"Truncating {partition:word} to offset {offset} below high watermark {high}"),
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
            r"(?: \(under-min-isr\))? +and (?:zkVersion|version) updated to \[?{version}"
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
            r" highWatermark={high}, lastStableOffset=\d+, logStartOffset={start}, logEndOffset={end}\)"
        ),
        BrokerLogFold._recovered,
    ),
    (
        "epoch",
        _pattern(
            r"leaderId={leader}, .*Partition {partition:word} has an? (?P<which>older|newer) epoch"
            r" \({epoch}\) than the current leader"
        ),
        BrokerLogFold._refused,
    ),
    ("starting", re.compile(r"^(?:\[KafkaServer id=\d+\] )?starting$"), BrokerLogFold._started),
    ("to STARTING", re.compile(r"Transition from SHUTDOWN to STARTING"), BrokerLogFold._started),
    (
        "successfully elected as the controller",
        _pattern(r"successfully elected as the controller\. Epoch incremented to {epoch}"),
        BrokerLogFold._elected,
    ),
    ("Resigned", re.compile(r"\[Controller id=\d+\] Resigned$"), BrokerLogFold._resigned),
    (
        "controller epoch",
        _pattern(
            r"Ignoring (?P<kind>\w+) request from controller \d+ with correlation id \d+"
            r"(?: for partition \S+)? since its controller epoch {epoch} is old"
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
