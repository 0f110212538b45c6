"""What clients know: the log according to answers and reads, the ends that they were shown, and their groups.

Owns the client's side of the page, which is the whole page for a history without events. Must not know
brokers or drawing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.report.event_words import partition_name
from fencepost.report.group_words import group_detail
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome, Record
from fencepost.viewer.replica_logs import Partition
from fencepost.viewer.tracks import Tracks

ACKNOWLEDGED, READ, PROCESSED = HOWS = ("acknowledged", "read", "processed")
"""How something about an offset is known: an append's answer, a read, or an application that says so: nothing
is left to do."""


@frozen(kw_only=True)
class Known:
    """What a client learned about one offset."""

    offset: int
    # The value id there.
    value: int
    # -1 if it is not known.
    epoch: int = -1
    # The step of the answer.
    step: int
    # One of HOWS.
    how: str
    # Index of the operation; -1: an application said it itself.
    operation: int = -1
    # Whether another value was known at this offset before.
    rival: bool = False


@define
class ClientLogs:
    """Names: shown_end, the high watermark that the last answer claimed; last_stable_offset; log_start."""

    # Per partition, by (offset, value, how), the first time that a client learned it.
    known: dict[Partition, dict[tuple[int, int, str], Known]] = field(factory=dict)
    # Tracks by (partition, name).
    facts: Tracks[tuple[Partition, str]] = field(factory=Tracks)
    _first: dict[tuple[Partition, int], int] = field(factory=dict)

    def answered(self, step: int, index: int, operation: Operation, *, in_transaction: bool = False) -> None:
        """An operation completed. step: of the answer; index: of the operation; in_transaction: whether it is
        part of one. Only a successful operation says something about a log, and an append that failed only
        because its transaction was aborted: it names the offset of its record."""
        if operation.outcome is not Outcome.OK:
            if in_transaction and operation.function is Function.APPEND:
                self._learn(step, index, operation.records, ACKNOWLEDGED)
            return
        if operation.function is Function.APPEND and operation.acks != ACKS_NONE:
            self._learn(step, index, operation.records, ACKNOWLEDGED)
        elif operation.function in (Function.POLL, Function.TXN):
            self._learn(step, index, operation.records, READ)
        self._ends(step, operation)

    def _learn(self, step: int, index: int, records: Iterable[Record], how: str) -> None:
        for one in records:
            if one.offset >= 0:
                known = Known(
                    offset=one.offset,
                    value=one.value,
                    epoch=one.leader_epoch,
                    step=step,
                    operation=index,
                    how=how,
                )
                self.learned((one.topic, one.partition), known)

    def first_at(self, where: Partition, offset: int) -> int | None:
        """The value that was known first at an offset; None if none was. where: of which partition."""
        return self._first.get((where, offset))

    def learned(self, where: Partition, one: Known) -> None:
        """Something is known about an offset; the first time counts. where: of which partition."""
        known = self.known.setdefault(where, {})
        first = self._first.setdefault((where, one.offset), one.value)
        known.setdefault((one.offset, one.value, one.how), evolve(one, rival=first != one.value))

    def _ends(self, step: int, operation: Operation) -> None:
        spots = [
            (spot.topic, spot.partition, spot.end_offset, spot.last_stable_offset, spot.log_start_offset)
            for spot in operation.positions
        ]
        if operation.topic is not None and operation.partition is not None:
            spots.append(
                (
                    operation.topic,
                    operation.partition,
                    operation.end_offset,
                    operation.last_stable_offset,
                    operation.log_start_offset,
                )
            )
        for topic, partition, *ends in spots:
            for name, offset in zip(("shown_end", "last_stable_offset", "log_start"), ends, strict=True):
                if offset is not None and offset >= 0:
                    self.facts.set(((topic, partition), name), step, offset)


@define
class Groups:
    """A consumer's process number as a text, or the name of an application's process, is the subject of
    `member` (group, generation, partitions) and of `position t-0`."""

    # Tracks by (subject, name). A group: its name is the subject of `phase`, and of `committed t-0` for each
    # partition.
    facts: Tracks[tuple[str, str]] = field(factory=Tracks)
    # Of the groups, in order of appearance.
    names: list[str] = field(factory=list)
    # Group and name in words, by subject.
    consumers: dict[str, tuple[str, str]] = field(factory=dict)

    def event(self, step: int, event: Event) -> None:
        """A coordinator's event."""
        if event.name is Name.GROUP_PHASE:
            detail = group_detail(event)
            name = str(detail.get("group"))
            self._meet(name)
            members = detail.get("members")
            phase = {
                "state": event.cause,
                "generation": detail.get("generation"),
                "members": len(members) if isinstance(members, list) else 0,
                "coordinator": event.node,
                "epoch": event.leader_epoch,
                "why": str(detail.get("why")),
            }
            self.facts.set((name, "phase"), step, phase)
        elif event.name is Name.REQUEST and event.topic is not None and event.offset >= 0:
            detail = group_detail(event)
            if "group" in detail and "error" not in detail:
                self.committed(
                    step, str(detail["group"]), partition_name(event.topic, event.partition), event.offset
                )
        elif event.name is Name.GROUP_OFFSET_EXPIRED:
            detail = group_detail(event)
            self.facts.set((str(detail.get("group")), f"committed {_expired(detail)}"), step, None)

    def answered(self, step: int, operation: Operation) -> None:
        """A member's operation completed."""
        if operation.group is None or operation.outcome is not Outcome.OK:
            return
        process = str(operation.process)
        self._meet(operation.group, process, f"client {process}")
        if operation.function is Function.COMMIT:
            for name, offset in _spots(operation):
                self.committed(step, operation.group, name, offset)
        elif operation.function is Function.FETCH_COMMITTED:
            for name, offset in _spots(operation):
                self.facts.set((process, f"read back {name}"), step, offset)
        elif operation.function is Function.JOIN:
            joined = {
                "group": operation.group,
                "generation": operation.generation,
                "partitions": [name for name, _ in _spots(operation)],
            }
            self.facts.set((process, "member"), step, joined)
        elif operation.function is Function.POLL:
            last = {
                partition_name(record.topic, record.partition): record.offset + 1
                for record in operation.records
            }
            for name, offset in last.items():
                self.facts.set((process, f"position {name}"), step, offset)

    def given(self, step: int, who: str, group: str, partition: str, *, taken: bool) -> None:
        """An application says that a partition was assigned to a process of a group, or was taken from it.
        One that was killed does not say the latter; the next assignment does."""
        self._meet(group, who, who)
        for one, (of, _) in self.consumers.items():
            before = (self.facts.last((one, "member")) or {}).get("partitions", [])
            after = [name for name in before if name != partition]
            if one == who and not taken:
                after.append(partition)
            if of == group and (one == who or not taken) and after != before:
                self.facts.set(
                    (one, "member"), step, {"group": group, "generation": None, "partitions": after}
                )

    def stands(self, step: int, who: str, group: str, partition: str, offset: int) -> None:
        """A process of a group stands at an offset of a partition."""
        self._meet(group, who, who)
        self.facts.set((who, f"position {partition}"), step, offset)

    def committed(self, step: int, group: str, partition: str, offset: int) -> None:
        """A group has committed an offset of a partition."""
        self._meet(group)
        self.facts.set((group, f"committed {partition}"), step, offset)

    def _meet(self, name: str, who: str = "", label: str = "") -> None:
        if name not in self.names:
            self.names.append(name)
        if who:
            self.consumers[who] = name, label


def _spots(operation: Operation) -> list[tuple[str, int]]:
    if operation.topic is not None and operation.partition is not None and operation.offset is not None:
        return [(partition_name(operation.topic, operation.partition), operation.offset)]
    return [(partition_name(spot.topic, spot.partition), spot.offset) for spot in operation.positions]


def _expired(detail: Mapping[str, Any]) -> str:
    topic, partition = detail.get("topic"), detail.get("partition")
    return partition_name(str(topic), partition if isinstance(partition, int) else None)
