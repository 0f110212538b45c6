"""RETENTION: records stay for retention.ms, and are gone an interval of checks after it.

Owns early_deletion and late_deletion. How old a record is counts from its first append anywhere, which its
timestamp precedes by no more than a client keeps a record before it is sent, unless the leader was disturbed.
Retention takes whole segments: a log is late only when its youngest record is too old, so that everything may
go.

Not asked: topics whose size is bounded as well, or whose settings were changed; hosts whose clocks were
wrong.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.checkers.liveness.anytime.shrinks import CLOCKS
from fencepost.record.facts import fault_of
from fencepost.record.settings import MILLISECOND, Settings, Topic
from fencepost.traces.events import Event, Name

RETENTION = "retention"
FOLLOWER = "follower"
"""Who appended."""
SLACK_MS = 3_000
"""Disks: what a slow host does before it looks at its logs."""
NOT_RUNNING = "NotRunning"
UNLIMITED = -1
LONG_MS = 3_600_000
"""No run lasts that long: of a topic that keeps its records longer, nothing is ever too old, and nobody has
to remember their ages."""


@define
class Kept:
    """What a broker's log holds, as far as appends say."""

    batches: list[tuple[int, int, int, int, bool]] = field(factory=list)
    """Of each batch that is left: end offset; when its values were first appended anywhere, and when a leader
    appended them last before it (nanoseconds; a retry has a timestamp of its own); position; whether a leader
    was seen to append it and no compaction reached it. Ends ascend."""
    start: int = 0
    """Where the log starts."""
    high_watermark: int = 0
    since: int = 0
    """When the log began to be as it is."""

    def cut(self, end: int) -> None:
        """The log ends there now."""
        while self.batches and self.batches[-1][0] > end:
            self.batches.pop()


@define
class Retention:
    """logs: by broker and partition."""

    findings: Findings
    options: Settings
    topics: dict[str, Topic] = field(init=False)
    """Those with a bound of age alone that a run may reach."""
    kept: set[str] = field(init=False)
    """Those from which retention takes nothing in any run."""
    logs: dict[tuple[int, Key], Kept] = field(factory=dict)
    first: dict[tuple[Key, int], int] = field(factory=dict)
    """When each value was first appended to a partition."""
    last: dict[tuple[Key, int], int] = field(factory=dict)
    """When a leader appended each value last."""
    copied: set[tuple[Key, int]] = field(factory=set)
    """Values of any age: a follower was the first to append them, because their leader crashed in the midst
    of it; or they had waited at a leader that was disturbed."""
    odd: set[int] = field(factory=set)
    """Hosts whose clocks were wrong, brokers' and clients'."""
    active: dict[int, set[str]] = field(factory=dict)
    """Faults that last, by broker."""
    well: dict[int, int] = field(factory=dict)
    """Since when nothing was wrong with each broker."""

    def __attrs_post_init__(self) -> None:
        self.topics, self.kept = {}, set()
        for topic in self.options.cluster.topics:
            if "delete" not in topic.cleanup_policy:
                self.kept.add(topic.name)
            elif topic.retention_bytes == UNLIMITED:
                if UNLIMITED < topic.retention_ms < LONG_MS:
                    self.topics[topic.name] = topic
                else:
                    self.kept.add(topic.name)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What logs hold, and what disturbs a broker; little where nothing grows old."""
        if not self.topics:
            return {
                Name.LOG_START: self._log_start,
                Name.TOPIC_CONFIGURED: self._gone,
                Name.TOPIC_DELETION: self._gone,
            }
        return {
            Name.APPENDED: self._appended,
            Name.TRUNCATED: self._truncated,
            Name.HIGH_WATERMARK: self._high_watermark,
            Name.BECAME_LEADER: self._high_watermark,
            Name.BECAME_FOLLOWER: self._high_watermark,
            Name.COMPACTED: self._compacted,
            Name.LOG_START: self._log_start,
            Name.LOG_RECOVERED: self._recovered,
            Name.MARK: self._mark,
            Name.TOPIC_CONFIGURED: self._gone,
            Name.TOPIC_DELETION: self._gone,
            Name.FAULT_BEGAN: self._began,
            Name.FAULT_ENDED: self._ended,
            Name.BROKER_STARTED: self._started,
            Name.BROKER_STATE: self._broker_state,
            Name.PHASE: self._phase,
        }

    # ---- what logs hold

    def _of(self, event: Event) -> Kept | None:
        if event.topic not in self.topics:
            return None
        place = event.node, (event.topic, event.partition)
        found = self.logs.get(place)
        if found is None:
            found = self.logs[place] = Kept()
        return found

    def _before(self, position: int, event: Event) -> Kept | None:
        """The log that an event changes, after a look at what it was: a cut or another mark excuses nothing
        that was too late before."""
        kept = self._of(event)
        if kept is not None:
            self._late(event.node, (event.topic, event.partition), kept, position, event.time)
        return kept

    def _appended(self, position: int, event: Event) -> None:
        kept = self._before(position, event)
        if kept is None:
            return
        key = (event.topic, event.partition)
        places = [(key, value) for value in event.values]
        if event.cause == FOLLOWER or self._may_have_waited(event):
            self.copied.update(place for place in places if place not in self.first)
        if event.cause != FOLLOWER:
            self.last.update((place, event.time) for place in places)
        age = max((self.first.setdefault(place, event.time) for place in places), default=event.time)
        newest = max((self.last.get(place, event.time) for place in places), default=event.time)
        # A batch without records that is copied is as old as it was at its leader.
        seen = not any(place in self.copied for place in places)
        seen = seen and (bool(event.values) or event.cause != FOLLOWER)
        end = event.end_offset if event.end_offset >= 0 else event.offset + len(event.values)
        kept.cut(event.offset)
        kept.batches.append((end, age, newest, position, seen))
        kept.since = event.time

    def _may_have_waited(self, event: Event) -> bool:
        """Whether the request may have waited longer than in calm: on a slow link, at a paused host, for a
        slow disk."""
        well = self.well.get(event.node)
        return bool(self.active.get(event.node)) or (
            well is not None and event.time - well < self.kept_by_clients
        )

    def _truncated(self, position: int, event: Event) -> None:
        kept = self._before(position, event)
        if kept is not None:
            kept.cut(event.offset)
            kept.since = event.time
            kept.high_watermark = min(kept.high_watermark, event.offset)

    def _high_watermark(self, position: int, event: Event) -> None:
        kept = self._of(event)
        if kept is not None and event.high_watermark != kept.high_watermark:
            self._late(event.node, (event.topic, event.partition), kept, position, event.time)
            kept.high_watermark, kept.since = event.high_watermark, event.time

    def _log_start(self, position: int, event: Event) -> None:
        if event.cause == RETENTION and event.topic in self.kept:
            self._deleted_early(event, "records to stay: nothing of the topic is ever too old", (position,))
        kept = self._before(position, event)
        if kept is None:
            return
        if event.cause == RETENTION:
            self._early(kept, position, event)
        while kept.batches and kept.batches[0][0] <= event.log_start_offset:
            kept.batches.pop(0)
        kept.start, kept.since = event.log_start_offset, event.time

    def _compacted(self, position: int, event: Event) -> None:
        """A segment is as old as what compaction left in it: the youngest records may be gone."""
        kept = self._of(event)
        if kept is not None:
            kept.batches = [
                (end, age, newest, place, seen and end > event.offset)
                for end, age, newest, place, seen in kept.batches
            ]

    def _recovered(self, position: int, event: Event) -> None:
        kept = self._before(position, event)
        if kept is not None:
            kept.cut(event.offset)
            kept.start, kept.high_watermark, kept.since = (
                event.log_start_offset,
                event.high_watermark,
                event.time,
            )

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == "replica_deleted":
            self._before(position, event)
            self.logs.pop((event.node, (event.topic, event.partition)), None)

    def _gone(self, position: int, event: Event) -> None:
        """Its settings are not the plan's any more, or it goes."""
        self._all_late(position, event.time, None)
        self.topics.pop(event.topic or "", None)
        self.kept.discard(event.topic or "")

    # ---- what disturbs

    def _disturbed(self, position: int, event: Event) -> None:
        self._all_late(position, event.time, event.node)
        self.well[event.node] = event.time

    def _broker_state(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        if event.cause == NOT_RUNNING:  # nothing is deleted until it is started
            self.active.setdefault(event.node, set()).add(NOT_RUNNING)

    def _started(self, position: int, event: Event) -> None:
        self._disturbed(position, event)
        self.active.get(event.node, set()).discard(NOT_RUNNING)

    def _began(self, position: int, event: Event) -> None:
        self._all_late(position, event.time, None if event.cause in CLOCKS else event.node)
        if event.cause in CLOCKS:
            self.odd.add(event.node)
        self.active.setdefault(event.node, set()).add(fault_of(event))
        self.well[event.node] = event.time

    def _ended(self, position: int, event: Event) -> None:
        self.active.get(event.node, set()).discard(fault_of(event))
        self.well[event.node] = event.time

    def _phase(self, position: int, event: Event) -> None:
        self._all_late(position, event.time, None)

    # ---- what is asked

    @property
    def kept_by_clients(self) -> int:
        """Nanoseconds between a record's timestamp and its first append, at most."""
        client = self.options.client
        row = self.options.trips(2)
        if client.producer.pipelined:
            return client.delivery_timeout_ms * MILLISECOND + row
        return client.request_timeout_ms * MILLISECOND + row

    def _early(self, kept: Kept, position: int, event: Event) -> None:
        if self.odd or self.options.network.reorder_ppm or self.options.network.late_ppm:
            return
        topic = self.topics[event.topic or ""]
        gone = [batch for batch in kept.batches if batch[0] <= event.log_start_offset]
        age, place = max(((age, place) for _, age, _, place, seen in gone if seen), default=(-1, -1))
        old = event.time - age + self.kept_by_clients
        if age >= 0 and old < topic.retention_ms * MILLISECOND:
            expected = (
                f"records to stay for retention.ms={topic.retention_ms}; the youngest was at most "
                f"{old // MILLISECOND} ms old"
            )
            self._deleted_early(event, expected, (place, position))

    def _deleted_early(self, event: Event, expected: str, events: tuple[int, ...]) -> None:
        self.findings.add(
            "early_deletion",
            expected=expected,
            seen=f"retention deleted what broker {event.node} had up to {event.log_start_offset}",
            topic=event.topic,
            partition=event.partition,
            offset=event.log_start_offset,
            events=events,
        )

    def _all_late(self, position: int, now: int, node: int | None) -> None:
        for (broker, key), kept in self.logs.items():
            if node is None or broker == node:
                self._late(broker, key, kept, position, now)

    def _late(self, node: int, key: Key, kept: Kept, position: int, now: int) -> None:
        """Before something happens to the log."""
        topic = self.topics.get(key[0] or "")
        if topic is None or not kept.batches or self.active.get(node) or self.odd:
            return
        end, _, _, place, _ = kept.batches[-1]
        interval_ms = 2 * self.options.cluster.log_retention_check_interval_ms + SLACK_MS
        youngest = max(batch[2] for batch in kept.batches) + topic.retention_ms * MILLISECOND
        due = max(youngest, kept.since, self.well.get(node, 0)) + interval_ms * MILLISECOND
        if kept.high_watermark >= end and kept.start < end and now > due:
            self.findings.add(
                "late_deletion",
                expected=f"nothing to be left {interval_ms} ms after all was older than "
                f"retention.ms={topic.retention_ms}",
                seen=f"broker {node}'s log still holds [{kept.start}, {end})",
                topic=key[0],
                partition=key[1],
                offset=kept.start,
                events=(place, position),
            )
