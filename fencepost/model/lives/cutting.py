"""The operations of a trace, cut where a topic or a group ended: those of the next one have another name.

Owns which operation is of which one. Must not know events or judges. What overlaps the change may be of
either: a write becomes one of unknown outcome in both, and what only read is left out, because it proves
nothing of one of them. A consumer that goes on from one topic to the next begins at a position that its
client chose, so that each of its polls there is one of a process of its own.
"""

from collections.abc import Iterable, Iterator, Sequence

from attrs import Factory, define, evolve

from fencepost.model.lives.endings import Ending, Endings
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import name_of

EXPIRED, EARLIER = "expired", "earlier"
"""Arguments of commits: of nothing, because the offset was removed; of a group or topic that ended."""
_WRITES = frozenset({Function.APPEND, Function.COMMIT, Function.DELETE_RECORDS})
_READS = frozenset({Function.POLL, Function.LIST_OFFSETS, Function.FETCH_COMMITTED})
_CHOOSING = frozenset({Function.ASSIGN, Function.SUBSCRIBE, Function.JOIN})


@define
class Cutting:
    """Cuts the operations of one trace."""

    endings: Endings
    # How far two times may be apart and still be concurrent, nanoseconds.
    slack: int
    # The next op id and process that the trace does not use.
    op_id: int
    process: int
    # When each process began.
    began: dict[int, int]
    # The operation of the trace that an added one stands for; an added one without such is not here.
    of: dict[int, int] = Factory(dict)
    # Op ids that were added.
    added: set[int] = Factory(set)

    def cut(self, operations: Sequence[Operation]) -> list[Operation]:
        """All operations, in the order of their invocations."""
        rows = [row for operation in operations for row in self._by_topic(operation)]
        rows += self._carried(rows)
        rows += [self._removed(one.time, one.group, one.topic, one.partition) for one in self.endings.offsets]
        if self.endings.groups:
            joined = self._joined(rows)
            rows = [named for row in rows for named in self._by_group(row, joined)]
        return sorted(rows, key=lambda row: (row.invoke_time, row.op_id))

    def _new(self, like: Operation, **changes: object) -> Operation:
        """Another operation that stands for this one."""
        made = evolve(like, op_id=self.op_id, process=self.process, **changes)  # type: ignore[arg-type]
        self.of[self.op_id] = self.of.get(like.op_id, like.op_id)
        self.added.add(self.op_id)
        self.op_id, self.process = self.op_id + 1, self.process + 1
        return made

    def _maybe(self, like: Operation, **changes: object) -> Operation:
        """As `_new`, of unknown outcome."""
        records = tuple(evolve(record, offset=-1, leader_epoch=-1) for record in like.records)
        unknown = {"outcome": Outcome.UNKNOWN, "completion_time": None, "records": records}
        if like.function is Function.APPEND:
            unknown["offset"] = None
        return self._new(like, **unknown, **changes)

    def _possible(self, endings: Sequence[Ending], row: Operation, places: set[tuple[int, int]]) -> range:
        """Of which topics or groups of a name the operation may be. places: (partition, broker)."""
        done = row.completion_time if row.outcome is not Outcome.UNKNOWN else None
        first = last = 0
        for life, ending in enumerate(endings, 1):
            if ending.again is None or (done is not None and done + self.slack < ending.again):
                break
            last = life
            if row.invoke_time - self.slack > ending.settled and not places & ending.left:
                first = life
        return range(first, last + 1)

    # ---- topics

    def _by_topic(self, operation: Operation) -> Iterator[Operation]:
        ended = self.endings.topics
        named = {operation.topic, *_topics_of(operation.records), *_topics_of(operation.positions)}
        again = sorted(name for name in named if name in ended and ended[name][0].again is not None)
        if not again or operation.function not in _WRITES | _READS | _CHOOSING:
            yield operation
        elif operation.function in _CHOOSING:
            yield self._chosen(operation)
        elif operation.topic is not None and named <= {operation.topic, None}:
            yield from self._of_topic(operation, operation.topic)
        else:
            rest = sorted(str(name) for name in named - {None} - set(again))
            if rest:
                yield _only(operation, rest)
            for name in again:
                part = _only(operation, [name])
                yield from self._of_topic(self._new(part) if rest or name != again[0] else part, name)

    def _chosen(self, operation: Operation) -> Operation:
        """Whoever chose a partition has that of each topic of the name."""
        positions = operation.positions
        if operation.topic is not None and operation.partition is not None:
            offset = -1 if operation.offset is None else operation.offset
            positions = (Position(topic=operation.topic, partition=operation.partition, offset=offset),)
        every = [
            evolve(one, topic=name_of(one.topic, life), offset=-1 if life else one.offset)
            for one in positions
            for life in range(_lives(self.endings.topics.get(one.topic, ())))
        ]
        return evolve(operation, topic=None, partition=None, offset=None, positions=tuple(every))

    def _of_topic(self, row: Operation, topic: str) -> Iterator[Operation]:
        endings = self.endings.topics[topic]
        partitions = {row.partition, *(one.partition for one in row.records)}
        partitions |= {one.partition for one in row.positions}
        places = {(partition, row.node) for partition in partitions if partition is not None}
        possible = self._possible(endings, row, places)
        if len(possible) == 1 or row.outcome is Outcome.FAIL:
            yield self._of_consumer(_named(row, topic, possible[0]), topic, possible[0])
        elif row.function in _WRITES:
            yield from (_named(self._maybe(row), topic, life) for life in possible)

    def _of_consumer(self, row: Operation, topic: str, life: int) -> Operation:
        """A poll of a process that was there before this topic is one of a process of its own."""
        if row.function is not Function.POLL or not life:
            return row
        if self.began[row.process] > self.endings.topics[topic][life - 1].settled + self.slack:
            return row
        first = row.records[0].offset if row.records and row.offset is None else row.offset
        return self._new(row, offset=None if row.positions else first)

    def _carried(self, rows: Iterable[Operation]) -> list[Operation]:
        """Of committed offsets of topics that ended: they may be removed with the topic, or be read back in
        the next one."""
        kept: set[tuple[str, str, int, int]] = set()
        carried: list[Operation] = []
        ended = {
            name_of(topic, life): (topic, life)
            for topic, endings in self.endings.topics.items()
            for life in range(len(endings) + 1)
        }
        for row in rows:
            if row.function is not Function.COMMIT or row.group is None or row.outcome is Outcome.FAIL:
                continue
            for name, partition in {
                (row.topic, row.partition),
                *((p.topic, p.partition) for p in row.positions),
            }:
                if name is None or partition is None or name not in ended:
                    continue
                topic, life = ended[name]
                kept.add((row.group, topic, partition, life))
                for later in range(life + 1, _lives(self.endings.topics[topic])):
                    carried.append(_named(self._earlier(row), name, later, topic))
        for group, topic, partition, life in sorted(kept):
            for number, ending in enumerate(self.endings.topics[topic][life:], life):
                names = [number] if ending.again is None else [number, number + 1]
                carried += [
                    self._removed(ending.asked, group, name_of(topic, each), partition) for each in names
                ]
        return carried

    def _earlier(self, row: Operation) -> Operation:
        return self._maybe(row, argument=EARLIER, member=None, generation=None)

    def _removed(self, time: int, group: str, topic: str, partition: int) -> Operation:
        """A committed offset may be gone from this time on."""
        made = Operation(
            op_id=self.op_id,
            process=self.process,
            function=Function.COMMIT,
            invoke_time=time,
            outcome=Outcome.UNKNOWN,
            argument=EXPIRED,
            group=group,
            topic=topic,
            partition=partition,
        )
        self.added.add(self.op_id)
        self.op_id, self.process = self.op_id + 1, self.process + 1
        return made

    # ---- groups

    def _joined(self, rows: Iterable[Operation]) -> dict[tuple[str, str | None, int | None], int]:
        """The group that a member's generation is of, by name, member and generation."""
        joined = {}
        for row in rows:
            if row.function is Function.JOIN and row.group in self.endings.groups:
                key = row.group, row.member, row.generation
                joined[key] = self._possible(self.endings.groups[row.group], row, set())[-1]
        return joined

    def _by_group(
        self, row: Operation, joined: dict[tuple[str, str | None, int | None], int]
    ) -> Iterator[Operation]:
        endings = self.endings.groups.get(row.group or "")
        if row.group is None or not endings:
            yield row
            return
        possible = self._possible(endings, row, set())
        known = joined.get((row.group, row.member, row.generation))
        if row.function is Function.JOIN or len(possible) == 1 or row.outcome is Outcome.FAIL:
            polled = known if row.function is Function.POLL else None
            yield evolve(row, group=name_of(row.group, possible[-1] if polled is None else polled))
        elif row.function is Function.COMMIT:
            yield evolve(self._maybe(row), group=name_of(row.group, possible[0]))
            for life in possible[1:]:
                yield evolve(self._earlier(row), group=name_of(row.group, life))
        elif row.function is not Function.FETCH_COMMITTED:
            yield evolve(row, group=None, member=None, generation=None)


def _topics_of(items: Iterable[Record | Position]) -> set[str]:
    return {item.topic for item in items}


def _lives(endings: Sequence[Ending]) -> int:
    """How many topics had the name."""
    return 1 + sum(ending.again is not None for ending in endings)


def _only(operation: Operation, topics: Sequence[str]) -> Operation:
    """What an operation says of these topics."""
    return evolve(
        operation,
        topic=operation.topic if operation.topic in topics else None,
        partition=operation.partition if operation.topic in topics else None,
        records=tuple(one for one in operation.records if one.topic in topics),
        positions=tuple(one for one in operation.positions if one.topic in topics),
    )


def _named(row: Operation, topic: str, life: int, plainly: str = "") -> Operation:
    """The operation with the name of a later topic. topic: as the row calls it; plainly: as clients do, if
    that differs."""
    if name_of(plainly or topic, life) == topic:
        return row
    name = name_of(plainly or topic, life)
    return evolve(
        row,
        topic=name if row.topic == topic else row.topic,
        records=tuple(evolve(one, topic=name) if one.topic == topic else one for one in row.records),
        positions=tuple(evolve(one, topic=name) if one.topic == topic else one for one in row.positions),
    )
