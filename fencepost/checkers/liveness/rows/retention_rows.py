"""Rows about retention: records stay for retention.ms, and are gone an interval of checks after it.

Owns these rows. How old a record is counts from its first append anywhere, which its timestamp precedes by no
more than a client keeps a record before it is sent, unless the leader was disturbed. Retention takes whole
segments: a log is late only when its youngest record is too old, so that everything may go.

Not asked: topics whose size is bounded as well, or whose settings were changed; runs with a wrong clock.
"""

from collections.abc import Iterator

from attrs import Factory, define, field

from fencepost.checkers.liveness.anytime.shrinks import CLOCKS
from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record.facts import Facts, Key
from fencepost.record.settings import MILLISECOND, Settings, Topic
from fencepost.record.timeline import FOR_EVER, Disturbance, Kind, Subject, Timeline
from fencepost.traces.events import REPLICA_DELETED, Event, Name

RETENTION = "retention"
FOLLOWER = "follower"
"""Who appended."""
SLACK_MS = 3_000
"""Disks: what a slow host does before it looks at its logs."""
UNLIMITED = -1
LONG_MS = 3_600_000
"""No run lasts that long: of a topic that keeps its records longer, nothing is ever too old, and nobody has
to remember their ages."""
THROUGH = frozenset({Kind.START, Kind.NOISE, Kind.CONTROLLER, Kind.REQUEST, Kind.LATENT, Kind.MEMBER})
"""A broker looks at its own logs: it waits for nobody. What a disk may lose is no reason to keep more."""
CHANGES = (Name.APPENDED, Name.TRUNCATED, Name.COMPACTED, Name.LOG_START, Name.LOG_RECOVERED)
WATERMARKS = (Name.HIGH_WATERMARK, Name.BECAME_LEADER, Name.BECAME_FOLLOWER)
FREQUENT = frozenset({Name.APPENDED, *WATERMARKS})
ENDS = (Name.MARK, Name.TOPIC_CONFIGURED, Name.TOPIC_DELETION, Name.FAULT_BEGAN)


@define
class Kept:
    """What a broker's log holds, as far as appends say."""

    # Of each batch that is left: end offset; when its values were first appended anywhere, and when a leader
    # appended them last before it (nanoseconds; a retry has a timestamp of its own); position; whether a
    # leader was seen to append it and no compaction reached it. Ends ascend.
    batches: list[tuple[int, int, int, int, bool]] = field(factory=list)
    # Where the log starts.
    start: int = 0
    high_watermark: int = 0
    # When the log began to be as it is.
    since: int = 0

    def cut(self, end: int) -> None:
        """The log ends there now."""
        while self.batches and self.batches[-1][0] > end:
            self.batches.pop()


@define
class Logs:
    """What all logs hold at the present event."""

    facts: Facts
    timeline: Timeline
    # By broker and partition.
    logs: dict[tuple[int, Key], Kept] = field(factory=dict)
    # When each value was first appended to a partition, and when a leader did so last.
    first: dict[tuple[Key, int], int] = field(factory=dict)
    last: dict[tuple[Key, int], int] = field(factory=dict)
    # Values of any age: a follower was the first to append them, because their leader crashed in the midst of
    # it; or they had waited at a leader that was disturbed.
    copied: set[tuple[Key, int]] = field(factory=set)
    # When clients did not reach a broker.
    links: tuple[Disturbance, ...] = field(
        init=False,
        default=Factory(
            lambda self: tuple(one for one in self.timeline.disturbances if one.kind is Kind.LINKS),
            takes_self=True,
        ),
    )
    # Topics whose settings are not the plan's any more, or that go.
    changed: set[str] = field(factory=set)
    _topics: dict[str | None, Topic | None] = field(factory=dict)

    def topic(self, name: str | None) -> Topic | None:
        """The settings of a topic that age alone bounds, and that a run may reach; None for others."""
        if name not in self._topics:
            topic = self.facts.settings.topic(name)
            self._topics[name] = topic if name not in self.changed and _ages(topic) else None
        return self._topics[name]

    def change(self, name: str | None) -> None:
        """From now on a topic's settings are not the plan's. None: those of all brokers, which a topic has
        that is made later."""
        if name is None:
            self.changed.update(topic.name for topic in self.facts.settings.cluster.topics)
            self.changed.update(self.facts.began)
            self._topics.clear()
            return
        self.changed.add(name)
        self._topics[name] = None

    def keeps(self, name: str | None) -> bool:
        """Whether retention takes nothing from a topic in any run."""
        topic = self.facts.settings.topic(name)
        deletes = "delete" in topic.cleanup_policy
        return name not in self.changed and not (deletes and (_ages(topic) or topic.retention_bytes >= 0))

    def of(self, event: Event) -> Kept:
        """The log that an event is about."""
        return self.logs.setdefault((event.node, (event.topic or "", event.partition)), Kept())

    def changing(self, event: Event) -> list[tuple[int, Key]]:
        """The logs that are not as they were from an event on, or not judged any more."""
        if event.partition < 0:
            return [place for place in self.logs if event.topic in (None, place[1][0])]
        place = event.node, (event.topic or "", event.partition)
        kept = self.logs.get(place)
        same = kept is None or event.name is Name.COMPACTED
        if event.name is Name.MARK:
            same = same or event.cause != REPLICA_DELETED
        elif event.name in WATERMARKS:
            same = same or (kept is not None and event.high_watermark == kept.high_watermark)
        return [] if same else [place]

    def learn(self, position: int, event: Event) -> None:
        """Take an event of such a topic in."""
        kept = self.of(event)
        if event.name in WATERMARKS:
            if event.high_watermark == kept.high_watermark:
                return
            kept.high_watermark = event.high_watermark
        elif event.name is Name.APPENDED:
            self._appended(kept, position, event)
        elif event.name is Name.COMPACTED:
            # A segment is as old as what compaction left in it: the youngest records may be gone.
            kept.batches = [(*batch[:4], batch[4] and batch[0] > event.offset) for batch in kept.batches]
            return
        elif event.name is Name.LOG_START:
            kept.batches = [batch for batch in kept.batches if batch[0] > event.log_start_offset]
            kept.start = event.log_start_offset
        else:
            kept.cut(event.offset)
            kept.high_watermark = min(kept.high_watermark, event.offset)
            if event.name is Name.LOG_RECOVERED:
                kept.start, kept.high_watermark = event.log_start_offset, event.high_watermark
        kept.since = event.time

    def _appended(self, kept: Kept, position: int, event: Event) -> None:
        places = [((event.topic or "", event.partition), value) for value in event.values]
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

    def _may_have_waited(self, event: Event) -> bool:
        """Whether the request may have waited longer than in calm: on a slow link, at a paused host, for a
        slow disk."""
        late = kept_by_clients(self.facts.settings)
        calm = self.timeline.calm_at((Subject.BROKER, event.node), event.time, THROUGH)
        if calm is None or event.time - calm.begin < late:
            return True
        return any(one.begin <= event.time <= one.end + late for one in self.links)


def _ages(topic: Topic) -> bool:
    within = UNLIMITED < topic.retention_ms < LONG_MS
    return "delete" in topic.cleanup_policy and within and topic.retention_bytes == UNLIMITED


def _aged(settings: Settings) -> bool:
    return any(map(_ages, settings.cluster.topics))


def kept_by_clients(settings: Settings) -> int:
    """Nanoseconds between a record's timestamp and its first append, at most.

    Args:
        settings: of the run.
    """
    client = settings.client
    longest_ms = client.delivery_timeout_ms if client.producer.pipelined else client.request_timeout_ms
    return longest_ms * MILLISECOND + settings.trips(2)


def _walk(facts: Facts, timeline: Timeline) -> Iterator[tuple[Logs, int, Event]]:
    """The state of all logs before each event that changes one or ends the judging of some; a wrong clock
    ends all of it."""
    logs = Logs(facts, timeline)
    if facts.settings.real is not None:
        return  # clocks and disks of real brokers are their own
    names = (*CHANGES, *WATERMARKS, *ENDS) if _aged(facts.settings) else (Name.LOG_START, *ENDS)
    for position, event in facts.of(*names):
        if event.name in FREQUENT and logs.topic(event.topic) is None:
            continue  # whose records nobody follows
        if event.name is Name.FAULT_BEGAN and event.cause not in CLOCKS:
            continue
        yield logs, position, event
        if event.name is Name.FAULT_BEGAN:
            return
        if event.name in (Name.TOPIC_CONFIGURED, Name.TOPIC_DELETION):
            logs.change(event.topic)
        elif event.name is Name.MARK:
            if event.cause == REPLICA_DELETED:
                logs.logs.pop((event.node, (event.topic or "", event.partition)), None)
        elif logs.topic(event.topic) is not None:
            logs.learn(position, event)
    yield logs, -1, Event(time=FOR_EVER, name=Name.PHASE)


def _early(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """What retention deletes is old enough."""
    network = facts.settings.network
    if not any(event.cause == RETENTION for _, event in facts.of(Name.LOG_START)):
        return
    for logs, position, event in _walk(facts, timeline):
        if event.name is not Name.LOG_START or event.cause != RETENTION:
            continue
        if logs.keeps(event.topic):
            yield _deleted(event, "records to stay: nothing of the topic is ever too old", (position,))
        topic = logs.topic(event.topic)
        if topic is None or network.reorder_ppm or network.late_ppm:
            continue
        gone = [one for one in logs.of(event).batches if one[0] <= event.log_start_offset and one[4]]
        if gone:
            _, age, _, place, _ = max(gone, key=lambda one: one[1])
            old = event.time - age + kept_by_clients(facts.settings)
            expected = (
                f"records to be older than retention.ms={topic.retention_ms}; the youngest was at most "
                f"{old // MILLISECOND} ms old"
            )
            fine = old >= topic.retention_ms * MILLISECOND
            yield _deleted(event, expected, (place, position), fine=fine)


def _deleted(event: Event, expected: str, events: tuple[int, ...], *, fine: bool = False) -> Case:
    return Case(
        subject=(Subject.BROKER, event.node),
        since=event.time,
        fine=fine,
        expected=expected,
        seen=f"retention deleted what broker {event.node} had up to {event.log_start_offset}",
        topic=event.topic,
        partition=event.partition,
        offset=event.log_start_offset,
        events=events,
    )


def _late(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A log whose youngest record is too old is empty: each stretch in which one was not, and did not
    change."""
    if not _aged(facts.settings):
        return
    for logs, position, event in _walk(facts, timeline):
        for node, key in logs.changing(event):
            yield from _left(logs, node, key, position, event.time)


def _left(logs: Logs, node: int, key: Key, position: int, now: int) -> Iterator[Case]:
    topic, kept, facts = logs.topic(key[0]), logs.logs[node, key], logs.facts
    if topic is None or not kept.batches:
        return
    end, _, _, place, _ = kept.batches[-1]
    ended = (told.time for told in facts.runs.get(node, ()) if not told.value and told.time >= kept.since)
    until = min(now, next(ended, FOR_EVER))
    since = max(kept.since, max(batch[2] for batch in kept.batches) + topic.retention_ms * MILLISECOND)
    if kept.high_watermark >= end and kept.start < end and since < min(until, facts.end):
        yield Case(
            subject=(Subject.BROKER, node),
            since=since,
            until=until,
            expected=f"nothing to be left when all was older than retention.ms={topic.retention_ms},",
            seen=f"broker {node}'s log still holds [{kept.start}, {end})",
            topic=key[0],
            partition=key[1],
            offset=kept.start,
            events=(place, position) if position >= 0 else (place,),
        )


ROWS = (
    Row(
        name="early_deletion", form=Form.DONE, subject=Subject.BROKER, cases=_early, where="simulated brokers"
    ),
    Row(
        name="late_deletion",
        form=Form.FOLLOW,
        subject=Subject.BROKER,
        cases=_late,
        bound=lambda of: (2 * of.cluster.log_retention_check_interval_ms + SLACK_MS) * MILLISECOND,
        through=THROUGH,
        where="simulated brokers",
    ),
)
