"""Recorded loads of groups, compared with what coordinators said before: what is loaded is what was written.

Owns which state may be loaded, of one group at a time. Must not know verdicts, or which system recorded the
events.

A generation is in the log once it has its assignment, or once nobody is left in it (Kafka's GroupMetadata
records). Its coordinator records it before that (CompletingRebalance, Empty), and again when it is durable
(Stable). So the next coordinator loads a generation that was recorded, at least the last durable one, with
the same members. A static member has another id each time it comes back, and keeps its name and its place
(KIP-345). A group that was removed is not loaded, unless it began again: then its generations do, too.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field, frozen

from fencepost.model.refinement.refinement_state import Mismatch
from fencepost.traces.events import Event, Name

LOADED, DEAD, PREPARING = "loaded", "Dead", "PreparingRebalance"
STABLE, WRITTEN = "Stable", ("CompletingRebalance", "Stable", "Empty")
Key = tuple[str | None, int, str]
"""A partition of __consumer_offsets, and a group."""


class GroupDetail(msgspec.Struct, frozen=True):
    """The detail of a group_phase event."""

    group: str
    generation: int
    members: tuple[str, ...]
    leader: str
    why: str = ""


@frozen(kw_only=True)
class RecordedGeneration:
    """A generation, as an event has it."""

    # Its number, its members and its leader: names, without what makes an id unique.
    value: tuple[int, tuple[str, ...], str]
    coordinator_epoch: int
    position: int
    # Whether it is in the log for good.
    durable: bool

    @property
    def words(self) -> str:
        """The generation in words."""
        number, members, leader = self.value
        return f"generation {number} of {', '.join(members) or 'nobody'}, led by {leader or 'nobody'}"


@define
class RecordedGroups:
    """Replays one trace's events."""

    # What may be in the log, in the order of the events.
    written: dict[Key, list[RecordedGeneration]] = field(factory=dict)
    # The highest epoch of a coordinator in which the group was dead.
    dead: dict[Key, int] = field(factory=dict)
    # The epoch of the last coordinator, by partition: one that was deposed may load late.
    latest: dict[int, int] = field(factory=dict)
    # What a load has to bring: at which moment, the position of the load, what is durable.
    due: dict[Key, tuple[int, int, RecordedGeneration]] = field(factory=dict)

    def step(self, position: int, event: Event) -> Mismatch | None:
        """Process the event at `position` of the trace; returns the mismatch if it loads what nobody
        wrote, or is the first one after a load that lacked a group."""
        for key, (time, load, durable) in self.due.items():
            if time < event.time:
                del self.due[key]
                return _mismatch(load, durable, "", f"group {key[2]} was not loaded")
        take = TOLD_OF_GROUPS.get(event.name)
        return None if take is None else take(self, position, event)

    def _loads(self, position: int, event: Event) -> None:
        if event.leader_epoch < self.latest.setdefault(event.partition, event.leader_epoch):
            return
        self.latest[event.partition] = event.leader_epoch
        for key, written in self.written.items():
            known = [one for one in written if one.durable and one.coordinator_epoch < event.leader_epoch]
            last = max(known, key=lambda one: (one.coordinator_epoch, one.value[0]), default=None)
            in_place = key[:2] == (event.topic, event.partition)
            if in_place and last is not None and self.dead.get(key, -1) < last.coordinator_epoch:
                self.due[key] = event.time, position, last

    def _phase(self, position: int, event: Event) -> Mismatch | None:
        detail = msgspec.json.decode(event.detail, type=GroupDetail)
        key = event.topic, event.partition, detail.group
        if event.cause == DEAD:
            self.dead[key] = max(event.leader_epoch, self.dead.get(key, -1))
        loaded = detail.why == LOADED
        if loaded and event.leader_epoch < self.latest.get(event.partition, -1):
            return None
        names = tuple(sorted(_name_in(member) for member in detail.members))
        one = RecordedGeneration(
            value=(detail.generation, names, _name_in(detail.leader)),
            coordinator_epoch=event.leader_epoch,
            position=position,
            durable=event.cause == STABLE or loaded,
        )
        mismatch = self._loaded(key, one) if loaded else None
        if event.cause in WRITTEN and detail.generation:
            self.written.setdefault(key, []).append(one)
        return mismatch

    def _loaded(self, key: Key, one: RecordedGeneration) -> Mismatch | None:
        _, _, durable = self.due.pop(key, (0, 0, None))
        written = self.written.get(key, ())
        before = [each for each in written if each.coordinator_epoch < one.coordinator_epoch]
        lacks = durable is not None and one.value[0] < durable.value[0]
        if not lacks and (not one.value[0] or any(each.value == one.value for each in before)):
            return None
        return _mismatch(one.position, durable, ", or a later one", f"{one.words} of {key[2]} was loaded")

    def _removed(self, position: int, event: Event) -> None:
        """Its tombstone is durable. A coordinator that is deposed learns that late."""
        written = self.written.get((event.topic, event.partition, event.detail), [])
        written[:] = [one for one in written if one.coordinator_epoch > event.leader_epoch]


def _mismatch(position: int, durable: RecordedGeneration | None, more: str, seen: str) -> Mismatch:
    expected = "a group that was written" if durable is None else f"{durable.words}, which was durable{more}"
    because = -1 if durable is None else durable.position
    return Mismatch(position=position, action="load", expected=expected, seen=seen, because=because)


def _name_in(member: str) -> str:
    """Without the node, its broker epoch and a number."""
    return member.rsplit("-", 3)[0]


TOLD_OF_GROUPS: Mapping[Name, Callable[[RecordedGroups, int, Event], Mismatch | None]] = {
    Name.GROUPS_LOADED: RecordedGroups._loads,
    Name.GROUP_PHASE: RecordedGroups._phase,
    Name.GROUP_REMOVED: RecordedGroups._removed,
}
