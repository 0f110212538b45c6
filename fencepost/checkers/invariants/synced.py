"""SYNCED: what a disk surely held when the power failed is there after the restart, and a broker asked its
disk to sync what it says is synced.

Owns synced_record_lost and sync_not_asked. Both compare a broker with what its disk recorded (DURABLE), never
with its memory. What a broker says is synced:

- `flush.messages` = n: fewer than n records follow the last one that it asked to sync. The setting counts for
  a replica since its first append under it.
- its recovery point in the checkpoint of its log directory: a start reads no batch below it. A roll, a flush
  and a recovery move it.
- what a roll has closed: all below the newest segment. The old segment is synced before the new one is made,
  so that no bound of time is needed; a system that does it in another thread does not say where it rolled.
- the marker of a clean stop: a start reads no batch at all.

A disk that lies or fails excuses a lost record, and no call that was never made. The log's end is the lower
one of what the events say and what the disk had, because the step in which the power failed left no events;
of a system that does not say what it appends, what the disk had. Such a log whose disk lied or rotted may
have become shorter than the recovery point that a former process left: it is not judged from then on. A
system that records no DURABLE is not judged.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key, Replicas
from fencepost.record.settings import Settings
from fencepost.traces.decoding import from_json
from fencepost.traces.events import REPLICA_DELETED, Event, Name
from fencepost.traces.trace import plain

FLUSH = "flush.messages"
MOST_MESSAGES = 1_000_000
"""Kafka writes its largest number for "never"; nobody means a larger one than this."""
NEVER = 0
LIE, BIT_ROT = "lying_fsync", "bit_rot"
"""The kinds of fault after which a disk may lack what a process had synced."""


class _Said(msgspec.Struct, frozen=True):
    """The detail of a DURABLE."""

    asked: int = -1
    written: int = -1
    recovery_point: int = -1
    rolled: int = -1
    clean: bool = False


@define
class Synced:
    """The state of the invariant."""

    replicas: Replicas
    findings: Findings
    # flush.messages of each topic as it was created; NEVER: no sync is promised.
    planned: Mapping[str, int] = field(factory=dict)
    # What each broker uses since it applied another configuration.
    applied: dict[tuple[int, str | None], int] = field(factory=dict)
    # What counted at the last append of each replica.
    flushed_by: dict[tuple[int, Key], int] = field(factory=dict)
    # Replicas that the running process of each broker has opened.
    opened: dict[int, set[Key]] = field(factory=dict)
    # Hosts whose disk may have lost what was synced.
    faithless: set[int] = field(factory=set)
    # (end of what the disk surely holds, position of the event that says so), until the log is opened.
    held: dict[tuple[int, Key], tuple[int, int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What disks say, and what shows a broker's settings and logs."""
        return {
            Name.DURABLE: self._durable,
            Name.LOG_RECOVERED: self._recovered,
            Name.APPENDED: self._appended,
            Name.TOPIC_CONFIGURED: self._configured,
            Name.BROKER_STARTED: self._started,
            Name.MARK: self._mark,
            Name.FAULT_BEGAN: self._struck,
        }

    # ---- settings

    def _planned(self, topic: str | None) -> int:
        return self.planned.get(plain(topic or ""), NEVER)

    def _configured(self, position: int, event: Event) -> None:
        try:
            overrides = from_json(event.detail, dict[str, str])
        except msgspec.DecodeError:  # a trace may come from any tool
            overrides = {FLUSH: str(NEVER)}
        text = overrides.get(FLUSH, "")
        number = int(text) if text.isascii() and text.isdecimal() else self._planned(event.topic)
        self.applied[event.node, event.topic] = number if number <= MOST_MESSAGES else NEVER

    def _started(self, position: int, event: Event) -> None:
        """A new process knows the topic as it was created, until it has read what was changed: the looser of
        the two counts."""
        self.opened[event.node] = set()
        for node, topic in [key for key in self.applied if key[0] == event.node]:
            both = self.applied[node, topic], self._planned(topic)
            self.applied[node, topic] = NEVER if NEVER in both else max(both)

    def _appended(self, position: int, event: Event) -> None:
        key, uses = (event.topic, event.partition), self.applied.get((event.node, event.topic))
        if uses is None:
            uses = self.applied[event.node, event.topic] = self._planned(event.topic)
        self.flushed_by[event.node, key] = uses
        opened = self.opened.get(event.node)
        if opened is None:
            opened = self.opened[event.node] = set()
        opened.add(key)

    # ---- what the disk says

    def _durable(self, position: int, event: Event) -> None:
        replica = event.node, (event.topic, event.partition)
        known = self.held.get(replica)
        rotten = event.cause != "power_loss"
        if known is None or (event.end_offset < known[0]) == rotten:
            self.held[replica] = event.end_offset, position
        if not rotten:
            self._look_for_calls(position, event)

    def _look_for_calls(self, position: int, event: Event) -> None:
        try:
            said = from_json(event.detail, _Said)
        except msgspec.DecodeError:
            return
        key = event.topic, event.partition
        end = said.written
        if event.node in self.replicas.logs.get(key, ()):
            end = min(self.replicas.log(event).end_offset, end)
        elif event.node in self.faithless:
            return
        if said.asked < 0 or end <= said.asked:
            return
        flush = self.flushed_by.get((event.node, key), NEVER)
        if flush and end - said.asked >= flush:
            self._add(position, event, said.asked, end, f"{FLUSH} is {flush}")
        elif said.clean and key in self.opened.get(event.node, ()):
            self._add(position, event, said.asked, end, "it left the marker of a clean stop")
        elif said.rolled > said.asked:
            promised = min(said.rolled, end)
            self._add(position, event, said.asked, promised, f"a roll closed what is below {said.rolled}")
        elif said.recovery_point > said.asked:
            promised = min(said.recovery_point, end)
            self._add(position, event, said.asked, promised, f"its recovery point is {said.recovery_point}")

    def _add(self, position: int, event: Event, asked: int, end: int, promise: str) -> None:
        self.findings.add(
            "sync_not_asked",
            expected=f"broker {event.node} to have asked its disk to sync offset {end - 1}: {promise}",
            seen=f"it asked for nothing from offset {asked} on, before the power failed",
            topic=event.topic,
            partition=event.partition,
            offset=asked,
            events=(position,),
        )

    # ---- what is there afterwards

    def _recovered(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        self.opened.setdefault(event.node, set()).add(key)
        end, since = self.held.pop((event.node, key), (-1, -1))
        if event.offset < end:
            self.findings.add(
                "synced_record_lost",
                expected=f"broker {event.node} to open a log that ends at {end} or later: its disk surely "
                "held that",
                seen=f"a log that ends at {event.offset}",
                topic=event.topic,
                partition=event.partition,
                offset=event.offset,
                events=(since, position),
            )

    def _struck(self, position: int, event: Event) -> None:
        if event.cause in (LIE, BIT_ROT):
            self.faithless.add(event.node)

    def _mark(self, position: int, event: Event) -> None:
        if event.cause == REPLICA_DELETED:
            replica = event.node, (event.topic, event.partition)
            self.held.pop(replica, None)
            self.flushed_by.pop(replica, None)


def flush_messages_of(settings: Settings | None) -> dict[str, int]:
    """flush.messages of each topic, as it was created.

    Args:
        settings: of the trace; None: not recorded.

    Returns:
        by topic; empty if nothing is known, so that no sync is demanded.
    """
    topics = settings.cluster.topics if settings is not None else ()
    return {topic.name: topic.flush_messages for topic in topics}
