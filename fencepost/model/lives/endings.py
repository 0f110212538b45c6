"""When a topic or a group ended and its name was used again; and which events are of which one.

Owns the fold over events. Must not know operations or judges. A topic ends when it is gone after a client
requested its deletion: a controller that removes a topic of its own accord ends nothing. Brokers hear of it
one by one, so that an event of a replica is of the topic before until its broker has deleted that replica, or
has taken a role that was decided for the new one.
"""

from collections.abc import Sequence

import msgspec
from attrs import Factory, define, evolve, frozen

from fencepost.traces.decoding import from_json
from fencepost.traces.events import DELETION_ANSWERED, OFFSET_DELETED, REPLICA_DELETED, Event, Name
from fencepost.traces.trace import name_of

SETTLING_NS = 9_000_000_000
"""After the answer to a client a broker may not have heard of the deletion. Kafka's
broker.session.timeout.ms: one that hears nothing for so long is fenced. It was not tuned. Half of it may
convict a slow broker; with twice as much less is judged."""
DEAD = "Dead"
"""The state of a group that is being removed."""
_ROLES = frozenset({Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.ISR_UPDATED, Name.ISR_PROPOSED})
_OF_NO_REPLICA = frozenset({Name.FETCH_REFUSED, Name.ASKED, Name.CONTROL_REQUEST_REFUSED})
"""Events of a broker that need not have a replica."""
_OF_CLUSTER = frozenset(
    {Name.PARTITION_STATE, Name.ASSIGNMENT, Name.REASSIGNMENT, Name.TOPIC_CONFIGURED, Name.LIVENESS_FAILED}
)
"""Events of a topic that are no broker's own."""
OF_GROUPS = frozenset({Name.GROUP_PHASE, Name.GROUP_REMOVED, Name.GROUP_OFFSET_EXPIRED})
"""Events of groups."""


@define
class Ending:
    """The end of a topic or group. Times are those of events, nanoseconds."""

    # It was requested: what it had may be gone from here on.
    asked: int
    # The next one of the name began; None: there is none.
    again: int | None = None
    # No broker answers for the former one any more; only where `again` is known.
    settled: int = 0
    # (partition, broker) with a replica of the former one, as far as is known for ever.
    left: frozenset[tuple[int, int]] = frozenset()


@frozen
class OffsetDeleted:
    """An administrator deleted a committed offset."""

    time: int
    group: str
    topic: str
    partition: int


class _Detail(msgspec.Struct, frozen=True):
    group: str
    topic: str = ""
    partition: int = -1


class _Since(msgspec.Struct, frozen=True):
    since: int = -1


@define
class _Topic:
    """All topics of one name."""

    life: int = 0
    # Time of the request to delete the present one.
    asked: int | None = None
    # Whether an ended one waits for its "done".
    unfinished: bool = False
    # Whether the present one is gone.
    gone: bool = False
    # Whether the trace says where its replicas are.
    assigned: bool = False
    # Whether it says anything of ZooKeeper's about it.
    known: bool = False
    # The partitions that are assigned: one may go alone, because it was added to a topic that was dying.
    there: set[int] = Factory(set)
    endings: list[Ending] = Factory(list)
    # By life: (partition, leader epoch, leader) of what was decided.
    decided: dict[int, set[tuple[int, int, int]]] = Factory(dict)
    # The life of the replica at (partition, broker).
    held: dict[tuple[int, int], int] = Factory(dict)


@define
class Endings:
    """What the events of a trace say. Fold them in with `take`, then `finish`."""

    topics: dict[str, list[Ending]] = Factory(dict)
    groups: dict[str, list[Ending]] = Factory(dict)
    offsets: list[OffsetDeleted] = Factory(list)
    _by_name: dict[str, _Topic] = Factory(dict)
    # When a group began to be removed.
    _dying: dict[str, int] = Factory(dict)

    def take(self, event: Event) -> int:
        """Which topic of its name the event is about: 0 for the first."""
        if event.name in OF_GROUPS:
            self._of_group(event)
        if event.topic is None:
            return 0
        topic = self._by_name.setdefault(event.topic, _Topic())
        if event.name is Name.TOPIC_DELETION:
            return self._deletion(topic, event)
        if event.name in (Name.ASSIGNMENT, Name.PARTITION_STATE):
            self._decided(topic, event)
        if event.name in _OF_CLUSTER or event.node < 0 or event.partition < 0:
            return topic.life
        return self._of_replica(topic, event)

    def finish(self) -> None:
        """After the last event."""
        for name, topic in self._by_name.items():
            if topic.asked is not None and not topic.gone:  # under way at the end of the trace
                topic.endings.append(Ending(topic.asked))
            for life, ending in enumerate(topic.endings):
                ending.left = frozenset(place for place, held in topic.held.items() if held <= life)
            if topic.endings:
                self.topics[name] = topic.endings

    # ---- topics

    def _deletion(self, topic: _Topic, event: Event) -> int:
        if event.cause == DELETION_ANSWERED:
            if not topic.known:
                self._answered(topic, event)
                return topic.life - 1
        elif event.cause == "requested":
            topic.asked = event.time
        elif topic.unfinished:
            topic.unfinished = False
            return topic.life - 1
        elif topic.asked is not None:
            if not topic.known:  # the only ones to say so are the clients
                self._ends(topic, topic.asked)
                self._begins(topic, event.time)
                topic.unfinished, topic.asked = False, None
                return topic.life - 1
            topic.asked = None
        return topic.life

    def _answered(self, topic: _Topic, event: Event) -> None:
        """The only ones to say so are the clients."""
        try:
            since = from_json(event.detail or "{}", _Since).since
        except msgspec.DecodeError:
            since = event.time
        self._ends(topic, since if since >= 0 else event.time)
        self._begins(topic, event.time)
        topic.endings[-1].settled += SETTLING_NS

    def _ends(self, topic: _Topic, asked: int) -> None:
        topic.gone = True
        topic.endings.append(Ending(asked))

    def _begins(self, topic: _Topic, time: int) -> None:
        topic.endings[-1].again = topic.endings[-1].settled = time
        topic.life += 1
        topic.gone = False
        topic.unfinished, topic.asked = topic.asked is not None, None

    def _decided(self, topic: _Topic, event: Event) -> None:
        placed = event.name is Name.ASSIGNMENT
        topic.known = True
        topic.assigned |= placed
        if placed and not event.replicas:
            topic.there.discard(event.partition)
            if topic.asked is not None and not topic.gone and not topic.there:
                self._ends(topic, topic.asked)
            return
        if placed:
            topic.there.add(event.partition)
        if topic.gone and (placed or not topic.assigned):
            self._begins(topic, event.time)
        if not placed:
            epochs = topic.decided.setdefault(topic.life, set())
            epochs.add((event.partition, event.leader_epoch, event.leader))

    def _of_replica(self, topic: _Topic, event: Event) -> int:
        place = event.partition, event.node
        life = topic.held.get(place, topic.life)
        if life < topic.life and event.name in _ROLES:
            leader = event.leader if event.name is Name.BECAME_FOLLOWER else event.node
            role = event.partition, event.leader_epoch, leader
            fitting = (one for one in range(topic.life, life - 1, -1) if role in topic.decided.get(one, ()))
            now = next(fitting, topic.life)
            self._leaves(topic, life, now, event.time)
            life = now
        if event.name not in _OF_NO_REPLICA:
            topic.held[place] = life
        if event.name is Name.MARK and event.cause == REPLICA_DELETED:
            topic.held.pop(place, None)
            self._leaves(topic, life, topic.life, event.time)
        return life

    def _leaves(self, topic: _Topic, before: int, now: int, time: int) -> None:
        for ending in topic.endings[before:now]:
            ending.settled = max(ending.settled, time)

    # ---- groups

    def _of_group(self, event: Event) -> None:
        if event.name is Name.GROUP_REMOVED:
            self._removed(event)
            return
        try:
            detail = from_json(event.detail, _Detail)
        except msgspec.DecodeError:  # a trace may come from any tool
            return
        if event.name is Name.GROUP_PHASE and event.cause == DEAD:
            self._dying.setdefault(detail.group, event.time)
        elif event.name is Name.GROUP_PHASE:
            self._dying.pop(detail.group, None)
        elif event.cause == OFFSET_DELETED:
            self.offsets.append(OffsetDeleted(event.time, detail.group, detail.topic, detail.partition))

    def _removed(self, event: Event) -> None:
        asked = self._dying.pop(event.detail, event.time)
        ending = Ending(asked, event.time, event.time)
        self.groups.setdefault(event.detail, []).append(ending)


def endings_of(events: Sequence[Event]) -> tuple[Endings, tuple[Event, ...]]:
    """What ended, and the events with the names of their topics.

    Args:
        events: of a trace, in order.

    Returns:
        the endings, and the events: the same ones where no topic's name was used again.
    """
    found = Endings()
    ended = {event.topic for event in events if event.name is Name.TOPIC_DELETION}
    lives = [found.take(event) if event.topic in ended or event.name in OF_GROUPS else 0 for event in events]
    found.finish()
    if not any(lives):
        return found, tuple(events)
    named = (
        evolve(event, topic=name_of(event.topic, life)) if life and event.topic is not None else event
        for event, life in zip(events, lives, strict=True)
    )
    return found, tuple(named)


ENDING = frozenset({Name.TOPIC_DELETION, Name.GROUP_REMOVED, Name.GROUP_OFFSET_EXPIRED})
"""A trace without any of these events has no name that was used again."""
