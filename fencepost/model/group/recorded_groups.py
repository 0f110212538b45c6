"""Recorded loads of groups, compared with what coordinators told before: what is loaded is what was written.

Owns which state may be loaded, of one group at a time. Must not know verdicts, or which system recorded the
events.

A generation is in the log once it has its assignment, or once nobody is left in it (Kafka's GroupMetadata
records). Its coordinator tells it before that (CompletingRebalance, Empty), and again when it is durable
(Stable). So the next coordinator loads a generation that was told, at least the last durable one, with the
same members. A static member has another id each time it comes back, and keeps its name and its place
(KIP-345). A group that was removed is not loaded, unless it began again: then its generations do, too.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec
from attrs import define, field, frozen

from fencepost.model.refinement.refinement_state import Mismatch
from fencepost.traces.events import Event, Name

LOADED = "loaded"
COMPLETING, STABLE, EMPTY, DEAD = "CompletingRebalance", "Stable", "Empty", "Dead"
Place = tuple[str | None, int]
"""A partition of __consumer_offsets."""


class GroupDetail(msgspec.Struct, frozen=True):
    """The detail of a group_phase event."""

    group: str
    generation: int
    members: tuple[str, ...]
    leader: str
    why: str = ""


@frozen(kw_only=True)
class RecordedGeneration:
    """A generation, as an event tells it."""

    generation: int
    # Who takes part, without what makes an id unique.
    members: tuple[str, ...]
    leader: str
    coordinator_epoch: int
    position: int
    # Whether it is in the log for good.
    durable: bool

    @property
    def words(self) -> str:
        """The generation in words."""
        names = ", ".join(self.members) or "nobody"
        return f"generation {self.generation} of {names}, led by {self.leader or 'nobody'}"

    def same_as(self, other: "RecordedGeneration") -> bool:
        """Whether both are the same record."""
        mine, its = ((one.generation, one.members, one.leader) for one in (self, other))
        return mine == its


@define
class RecordedGroups:
    """Replays one trace's events."""

    # What may be in the log of each group, by its partition and name, in the order of the events.
    told: dict[Place, dict[str, list[RecordedGeneration]]] = field(factory=dict)
    # Groups that were told to be dead, with the highest epoch of a coordinator that did.
    dead: dict[tuple[Place, str], int] = field(factory=dict)
    # When a partition was loaded and at which position, and what the load has to bring at that moment.
    due: dict[Place, tuple[int, int, dict[str, RecordedGeneration]]] = field(factory=dict)
    # Explained loads of groups.
    steps: int = 0

    def step(self, position: int, event: Event) -> Mismatch | None:
        """Process the event at `position` of the trace; returns the mismatch if it loads what nobody
        wrote, or is the first one after a load that lacked a group."""
        over = [place for place, (time, _, _) in self.due.items() if time < event.time]
        lacking = [found for place in over for found in self._lacking(place)]
        take = _STEPS.get(event.name)
        found = None if take is None else take(self, position, event)
        return lacking[0] if lacking else found

    def _loads(self, position: int, event: Event) -> Mismatch | None:
        place, due = (event.topic, event.partition), {}
        for group, told in self.told.get(place, {}).items():
            durable = _last_durable(told, event.leader_epoch)
            if durable is not None and self.dead.get((place, group), -1) < durable.coordinator_epoch:
                due[group] = durable
        self.due[place] = event.time, position, due
        return None

    def _lacking(self, place: Place) -> Iterator[Mismatch]:
        _, position, due = self.due.pop(place)
        for group, durable in due.items():
            yield Mismatch(
                position=position,
                action="load",
                expected=f"group {group} in {durable.words}, which was durable",
                seen="it was not loaded",
                because=durable.position,
            )

    def _phase(self, position: int, event: Event) -> Mismatch | None:
        detail = msgspec.json.decode(event.detail, type=GroupDetail)
        place, group = (event.topic, event.partition), detail.group
        if event.cause == DEAD:
            self.dead[place, group] = max(event.leader_epoch, self.dead.get((place, group), -1))
        told = self.told.setdefault(place, {}).setdefault(group, [])
        value = RecordedGeneration(
            generation=detail.generation,
            members=tuple(sorted(_name_in(member) for member in detail.members)),
            leader=_name_in(detail.leader),
            coordinator_epoch=event.leader_epoch,
            position=position,
            durable=event.cause == STABLE or detail.why == LOADED,
        )
        mismatch = self._unexplained(place, group, told, value) if detail.why == LOADED else None
        if event.cause in (COMPLETING, STABLE, EMPTY) and value.generation:
            told.append(value)
        return mismatch

    def _unexplained(
        self, place: Place, group: str, told: list[RecordedGeneration], value: RecordedGeneration
    ) -> Mismatch | None:
        durable = self.due[place][2].pop(group, None) if place in self.due else None
        before = [one for one in told if one.coordinator_epoch < value.coordinator_epoch]
        least = 0 if durable is None else durable.generation
        known = any(one.same_as(value) for one in before)
        if value.generation >= least and (known or not value.generation):
            self.steps += 1
            return None
        said = durable or (before[-1] if before else None)
        return Mismatch(
            position=value.position,
            action="load",
            expected="a group that was written" if said is None else f"{said.words}, or what was told later",
            seen=f"{value.words} of {group}",
            because=-1 if said is None else said.position,
        )

    def _removed(self, position: int, event: Event) -> Mismatch | None:
        """Its tombstone is durable. A coordinator that is deposed learns that late."""
        told = self.told.get((event.topic, event.partition), {}).get(event.detail, [])
        told[:] = [one for one in told if one.coordinator_epoch > event.leader_epoch]
        return None


def _last_durable(told: list[RecordedGeneration], epoch: int) -> RecordedGeneration | None:
    durable = [one for one in told if one.durable and one.coordinator_epoch < epoch]
    return max(durable, key=lambda one: (one.coordinator_epoch, one.generation), default=None)


def _name_in(member: str) -> str:
    """Without the node, its broker epoch and a number."""
    return member.rsplit("-", 3)[0]


_STEPS: Mapping[Name, Callable[[RecordedGroups, int, Event], Mismatch | None]] = {
    Name.GROUPS_LOADED: RecordedGroups._loads,
    Name.GROUP_PHASE: RecordedGroups._phase,
    Name.GROUP_REMOVED: RecordedGroups._removed,
}
