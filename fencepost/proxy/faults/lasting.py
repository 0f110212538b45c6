"""What a fault changes for more than one request: leaders and coordinators that have moved, members
that are forgotten, clients that are throttled.

Owns how long, and what requests and answers look like meanwhile. Must not know schedules. Times are
nanoseconds.

A leader that has moved answers NOT_LEADER_OR_FOLLOWER, and Metadata names another live broker in the epoch
before: a client that follows it is sent away there, too, by the broker itself, and finds the leader once the
move is over. A coordinator is moved in the same way. A member that is forgotten stays unknown to all requests
that name it, as a coordinator that has lost it would answer; the broker itself removes it when its session
times out.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.refused import refused
from fencepost.proxy.faults.request import Asked, Carried
from fencepost.proxy.faults.verbs import GROUP_APIS, MEMBER_APIS, MOVED_APIS
from fencepost.wire.shapes import changed

MILLISECOND = 1_000_000
MOST_FORGOTTEN = 10_000
"""Members that are unknown; the oldest are known again beyond it: no test has so many."""
MOST_MUTED = 10_000
"""Connections that are not read: all that a broker takes (wire/limits.py)."""
NOBODY = -1


@define(eq=False)
class Lasting:
    """What lasts now."""

    # Until when the leader of a partition has moved, and by which fault.
    _leaders: dict[TopicPartition, tuple[int, RequestFault]] = field(factory=dict)
    # The same for groups.
    _coordinators: dict[str, tuple[int, RequestFault]] = field(factory=dict)
    # By group and member.
    _forgotten: dict[tuple[str, str], RequestFault] = field(factory=dict)
    # Until when, by connection.
    _muted: dict[int, int] = field(factory=dict)

    # ---- what begins

    def move_leader(self, partition: TopicPartition, until: int, fault: RequestFault) -> None:
        """Its leader has moved until then."""
        self._leaders[partition] = until, fault

    def move_coordinator(self, group: str, until: int, fault: RequestFault) -> None:
        """Its coordinator has moved until then."""
        self._coordinators[group] = until, fault

    def forget(self, group: str, member: str, fault: RequestFault) -> None:
        """This member is unknown from now on."""
        _bounded(self._forgotten, MOST_FORGOTTEN)
        self._forgotten[group, member] = fault

    def mute(self, source: int, until: int) -> None:
        """This connection is not read until then."""
        _bounded(self._muted, MOST_MUTED)
        self._muted[source] = until

    def heal(self) -> None:
        """Moves and throttles are over."""
        self._leaders.clear()
        self._coordinators.clear()
        self._muted.clear()

    # ---- what is looked at

    def wait(self, now: int, source: int) -> int:
        """Milliseconds before the next request of this connection is read.

        Args:
            now: nanoseconds.
            source: the connection.
        """
        until = self._muted.pop(source, 0)
        return max(0, -(-(until - now) // MILLISECOND))

    def request(self, now: int, source: int, asked: Asked) -> Carried | None:
        """What becomes of a request because of what lasts; None: nothing.

        Args:
            now: nanoseconds.
            source: the connection.
            asked: the request.
        """
        if self._leaders and asked.api in MOVED_APIS:
            hit = tuple(key for key in asked.partitions if self._lasts(self._leaders, key, now))
            if hit:
                return refused(asked, "NOT_LEADER_OR_FOLLOWER", hit, self._leaders[hit[0]][1])
        group = asked.group if asked.api in GROUP_APIS else None
        if group and self._lasts(self._coordinators, group, now):
            return refused(asked, "NOT_COORDINATOR", (), self._coordinators[group][1])
        if group and asked.api in MEMBER_APIS and (group, asked.member) in self._forgotten:
            return refused(asked, "UNKNOWN_MEMBER_ID", (), self._forgotten[group, asked.member])
        return None

    def answer(
        self, now: int, asked: Asked, answer: Any, brokers: Mapping[int, tuple[str, int]]
    ) -> Any | None:
        """An answer that names other leaders and coordinators than the broker did; None: as it is."""
        if asked.api == "Metadata" and self._leaders:
            moved = changed(answer, lambda key, row: self._moved_row(now, key, row, brokers))
            return None if moved == answer else moved
        group = asked.group
        if asked.api == "FindCoordinator" and group and self._lasts(self._coordinators, group, now):
            return _elsewhere(answer, brokers)
        return None

    def _moved_row(
        self, now: int, key: TopicPartition, row: Any, brokers: Mapping[int, tuple[str, int]]
    ) -> Any:
        if not self._lasts(self._leaders, key, now):
            return row
        values: dict[str, Any] = {"leader_id": _other(row.leader_id, brokers)}
        if hasattr(row, "leader_epoch"):
            values["leader_epoch"] = max(NOBODY, row.leader_epoch - 1)
        return dataclasses.replace(row, **values)

    def _lasts(self, moved: dict[Any, tuple[int, RequestFault]], key: Any, now: int) -> bool:
        if key in moved and moved[key][0] <= now:
            del moved[key]
        return key in moved


def _other(node: int, brokers: Mapping[int, tuple[str, int]]) -> int:
    """The next broker; the same if there is no other."""
    others = sorted(set(brokers) - {node})
    return next((one for one in others if one > node), others[0]) if others else node


def _elsewhere(answer: Any, brokers: Mapping[int, tuple[str, int]]) -> Any | None:
    """FindCoordinator's answer with another broker; of version 4 each of its rows."""
    rows = getattr(answer, "coordinators", None)
    if rows is not None:
        return dataclasses.replace(
            answer, coordinators=tuple(_elsewhere(row, brokers) or row for row in rows)
        )
    other = _other(answer.node_id, brokers)
    if other == answer.node_id or answer.node_id < 0:
        return None
    host, port = brokers[other]
    return dataclasses.replace(answer, node_id=other, host=host, port=port)


def _bounded(entries: dict[Any, Any], most: int) -> None:
    while len(entries) >= most:
        del entries[next(iter(entries))]
