"""Random long histories of applications that consume, transform and produce, and changes of them.

Owns the histories. Must not know the checks: what a changed history is guilty of, the whole trace decides.

An application reads a few records of an input partition, makes one output of each in a transaction, commits
and goes on; what it aborts it does again. Applications have a partition each, or take turns at one. Readers
of committed records follow the output logs. So nothing refers to what is much older than a few transactions,
until a history is changed.
"""

from collections.abc import Callable
from random import Random

from attrs import Factory, define, evolve

from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
READERS = 2
COUNT = 110
"""Operations: many transactions, and little to judge."""


@define(kw_only=True)
class _World:
    """What a history is drawn from."""

    draw: Random
    outputs: int
    # Of each application its input partition.
    reads: list[int]
    # Of each input partition the offset to go on from.
    next_input: list[int]
    # Of each application what it has to do again: an offset and a number of records.
    again: list[tuple[int, int] | None] = Factory(list)
    # When readers of output stop.
    silent: int = 10**9
    # Whether every transaction commits, each operation ends soon, and no reader falls behind.
    steady: bool
    # Of each output partition what it holds: a value, whether it is visible, and from when on it is
    # decided. A marker has no value.
    logs: list[list[tuple[int | None, bool, int]]] = Factory(list)
    # Of each output partition the offset of its first record.
    first: list[int] = Factory(list)
    # Of each reader and output partition the offset to go on from.
    next_read: dict[tuple[int, int], int] = Factory(dict)
    # Of each application when it is free again, its session and its producer epoch.
    free: list[int] = Factory(list)
    session: list[int] = Factory(list)
    epoch: list[int] = Factory(list)
    values: int = 0
    rows: list[Operation] = Factory(list)

    def row(self, function: Function, at: int, until: int | None, **columns: object) -> None:
        """One more operation; its op id is given when all are there."""
        columns.setdefault("outcome", OK if until is not None else UNKNOWN)
        made = Operation(
            op_id=len(self.rows), function=function, invoke_time=at, completion_time=until, **columns
        )
        self.rows.append(made)


def application(seed: int, count: int = COUNT, *, steady: bool = False) -> Trace:
    """A healthy history of about `count` operations. steady: every transaction commits, each operation ends
    soon, and no reader falls behind."""
    draw = Random(seed)
    applications, outputs = draw.randint(1, 3), draw.randint(1, 2)
    reads = [0] * applications if draw.random() < 0.5 else list(range(applications))
    world = _World(
        draw=draw,
        steady=steady,
        outputs=outputs,
        reads=reads,
        next_input=[draw.choice((0, 7_000)) for _ in range(applications)],
        again=[None] * applications,
        silent=draw.randint(100, 400) if not steady and draw.random() < 0.2 else 10**9,
        logs=[[] for _ in range(outputs)],
        first=[draw.choice((0, 300, 90_000)) for _ in range(outputs)],
        free=[0] * applications,
        session=[0] * applications,
        epoch=[0] * applications,
    )
    while len(world.rows) < count:
        of = min(range(applications), key=lambda each: world.free[each])
        _transaction(world, of)
        for reader in range(READERS):
            for partition in range(outputs):
                if min(world.free) < world.silent and (steady or draw.random() < 0.4):
                    _read(world, reader, partition, min(world.free))
    return traced(world.rows, seed)


def _transaction(world: _World, of: int) -> None:
    """One transaction of an application, from its poll on."""
    draw, process, source = world.draw, 1 + of, world.reads[of]
    at = world.free[of] + draw.randint(1, 8)
    begin, taken = world.again[of] or (world.next_input[source], draw.randint(1, 3))
    world.next_input[source] = max(world.next_input[source], begin + taken)
    offsets = range(begin, begin + taken)
    mine = {"process": process, "session": world.session[of]}
    inside = draw.random() < 0.3
    world.row(
        Function.POLL, at, at + 2, topic="in", partition=source, offset=begin, isolation="read_committed",
        records=tuple(
            Record(topic="in", partition=source, offset=n, value=-1 - 100_000 * source - n) for n in offsets
        ),
        **mine,
    )  # fmt: skip
    outcome = OK if world.steady else draw.choices((OK, FAIL, UNKNOWN), (8, 2, 1))[0]
    head, start, now = len(world.rows), at - 1 if inside else at + 3, at + 4
    producer = {"producer_id": 70 + of, "producer_epoch": world.epoch[of]}
    world.row(Function.TXN, start, start, **mine, **producer)
    commits = outcome is OK or (outcome is UNKNOWN and draw.random() < 0.5)
    ends = now + 4 * taken + draw.randint(6, 20)
    touched = set()
    for n in offsets:
        partition = draw.randrange(world.outputs)
        log = world.logs[partition]
        touched.add(partition)
        offset = world.first[partition] + len(log)
        world.values += 1
        log.append((world.values, commits, ends))
        known = draw.random() < 0.9
        never = outcome is UNKNOWN and draw.random() < 0.3
        over = None if never else now + draw.randint(1, 3)
        world.row(
            Function.APPEND, now, over, topic="out", partition=partition, acks=-1,
            offset=offset if known else None, outcome=outcome if over is not None else UNKNOWN,
            result=f"in-{source}@{n}", **mine, **producer,
            records=lab.records(world.values, begin=offset if known else -1, topic="out", partition=partition)
        )  # fmt: skip
        now += 3
    world.row(
        Function.COMMIT, now, now + 1, argument="txn", group="g", outcome=outcome,
        positions=(Position(topic="in", partition=source, offset=begin + taken),), **mine,
    )  # fmt: skip
    for partition in touched:
        world.logs[partition].append((None, commits, ends))
    lost = outcome is UNKNOWN and draw.random() < 0.3
    world.rows[head] = evolve(world.rows[head], completion_time=None if lost else ends, outcome=outcome)
    if outcome is UNKNOWN:  # another process takes over
        world.session[of] += 1
        world.epoch[of] += 1
    world.again[of] = None if commits else (begin, taken)
    world.free[of] = ends


def _read(world: _World, reader: int, partition: int, before: int) -> None:
    """A reader of output goes on, over what is decided."""
    log, first = world.logs[partition], world.first[partition]
    begin = world.next_read.get((reader, partition), first)
    end = begin
    while end - first < len(log) and log[end - first][2] <= before:
        end += 1
    shown = tuple(
        Record(topic="out", partition=partition, offset=n, value=value)
        for n in range(begin, end)
        for value, visible, _ in (log[n - first],)
        if value is not None and visible
    )
    at = max(before, max((log[n - first][2] for n in range(begin, end)), default=0)) + 1
    world.row(
        Function.POLL, at, at + world.draw.randint(1, 6), process=20 + reader, topic="out",
        partition=partition, offset=begin, isolation="read_committed", records=shown,
    )  # fmt: skip
    world.next_read[reader, partition] = end


def traced(rows: list[Operation], seed: int) -> Trace:
    """A trace of these, with op ids in the order in which they began."""
    ordered = sorted(rows, key=lambda row: (row.invoke_time, row.op_id))
    operations = tuple(evolve(row, op_id=n) for n, row in enumerate(ordered))
    return lab.trace(operations, trace_id=1, seed=seed, concurrent_processes=True)  # fmt: skip


# ---- changes: each takes a history's rows, about where to change something and how far what it concerns may
# be, and gives other rows, or the same if there is nothing to change there

AROUND = 8
"""Rows around a place."""
Change = Callable[[Random, list[Operation], int, int], list[Operation]]


def changed(seed: int, count: int = COUNT, span: int | None = None) -> Trace:
    """A history with a few changes that concern operations of one stretch.

    Args:
        seed: of the history and of its changes.
        count: about how many operations it has.
        span: at most so many rows lie between those that one change concerns; None for any number.
    """
    draw = Random(-1 - seed)
    rows = list(application(seed, count, steady=draw.random() < 0.5).operations)
    place = draw.randrange(len(rows))
    for _ in range(draw.randint(1, 4)):
        rows = draw.choice(CHANGES)(draw, rows, place, span or len(rows))
    return traced(rows, seed)


def _at(draw: Random, rows: list[Operation], place: int) -> int:
    """A row near the place."""
    return min(len(rows) - 1, max(0, place + draw.randint(-AROUND, AROUND)))


def _pair(
    draw: Random, rows: list[Operation], place: int, span: int, one: Function, other: Function
) -> tuple[int, int] | None:
    """Places of two rows of these functions: the first is near the place, the second within the span."""
    ones = [
        n for n in range(max(0, place - AROUND), min(len(rows), place + AROUND)) if rows[n].function is one
    ]
    near = range(max(0, place - span), min(len(rows), place + span))
    others = [n for n in near if rows[n].function is other]
    pair = (draw.choice(ones), draw.choice(others)) if ones and others else None
    return pair[::-1] if pair and one is other and draw.random() < 0.5 else pair


def _with(rows: list[Operation], at: int, **columns: object) -> list[Operation]:
    return [*rows[:at], evolve(rows[at], **columns), *rows[at + 1 :]]


def _reads_what_another_sends(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A poll, earlier or later, shows the records of an append."""
    pair = _pair(draw, rows, place, span, Function.POLL, Function.APPEND)
    if pair is None:
        return rows
    append = rows[pair[1]]
    at = append.offset if append.offset is not None else 200_000 + append.op_id
    shown = evolve(append.records[0], offset=at)
    return _with(rows, pair[0], topic="out", partition=append.partition, offset=at, records=(shown,))


def _sends_what_another_read(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """An append is what wrote the first record of a poll of input, with or without its offset."""
    pair = _pair(draw, rows, place, span, Function.APPEND, Function.POLL)
    if pair is None or not rows[pair[1]].records:
        return rows
    record = rows[pair[1]].records[0]
    if any(
        record.value == own.value for row in rows if row.function is Function.APPEND for own in row.records
    ):
        return rows  # values are unique
    known = draw.random() < 0.5
    sent = record if known else evolve(record, offset=-1)
    columns = {"topic": record.topic, "partition": record.partition, "records": (sent,)}
    return _with(rows, pair[0], offset=record.offset if known else None, **columns)


def _read_each_other(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """Two transactions: one of them reads what the other one sent, and often that one what the first sent."""
    pair = _pair(draw, rows, place, span, Function.TXN, Function.TXN)
    if pair is None or pair[0] == pair[1]:
        return rows
    polls = []
    for one, other in (pair, pair[::-1])[: 1 + (draw.random() < 0.8)]:
        reader, writer = rows[one], rows[other]
        sent = [
            row
            for row in rows
            if row.function is Function.APPEND
            and (row.process, row.session) == (writer.process, writer.session)
            and writer.invoke_time <= row.invoke_time <= (writer.completion_time or 0)
        ]
        if not sent:
            return rows
        append = draw.choice(sent)
        at = append.offset if append.offset is not None else 200_000 + append.op_id
        polls.append(
            lab.operation(
                len(rows) + len(polls),
                Function.POLL,
                reader.invoke_time + 1,
                reader.invoke_time + 2,
                process=reader.process,
                session=reader.session,
                topic="out",
                partition=append.partition,
                offset=at,
                isolation="read_committed",
                records=(evolve(append.records[0], offset=at),),
            )
        )
    return [*rows, *polls]


def _made_from_the_same(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """Two appends say that they were made from one record."""
    pair = _pair(draw, rows, place, span, Function.APPEND, Function.APPEND)
    return rows if pair is None else _with(rows, pair[0], result=rows[pair[1]].result)


def _epoch_of_another(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A transaction or an append has another one's producer epoch, or the next."""
    pair = _pair(draw, rows, place, span, draw.choice((Function.TXN, Function.APPEND)), Function.TXN)
    if pair is None:
        return rows
    other = rows[pair[1]]
    epoch = (other.producer_epoch or 0) + draw.randint(0, 1)
    return _with(rows, pair[0], producer_id=other.producer_id, producer_epoch=epoch)


def _lost(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A row is not there."""
    at = _at(draw, rows, place)
    return [*rows[:at], *rows[at + 1 :]]


def _passed_over(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A record is shown to nobody. Readers agree: who disagrees is for the check of logs."""
    near = rows[max(0, place - AROUND) : place + 3 * AROUND]
    full = [row for row in near if row.function is Function.POLL and len(row.records) > 1]
    if not full:
        return rows
    gone = draw.choice(draw.choice(full).records[:-1]).value

    def rest(row: Operation) -> Operation:
        if row.function is not Function.POLL:
            return row
        return evolve(row, records=tuple(record for record in row.records if record.value != gone))

    return [rest(row) for row in rows]


def _ends_otherwise(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A row has another outcome."""
    return _with(rows, _at(draw, rows, place), outcome=draw.choice((OK, FAIL, UNKNOWN)))


def _ends_late(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A row ends only with a later one, or never."""
    at = _at(draw, rows, place)
    later = rows[min(len(rows) - 1, at + draw.randint(1, span))].invoke_time
    before = rows[at].completion_time
    if before is None:
        return rows
    never = span >= len(rows) and draw.random() < 0.3
    return _with(rows, at, completion_time=None if never else max(before, later))


def _begins_late(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """A row happens later, as long. Not an append without an offset: of what it sent nobody knows, once they
    are forgotten, who had read it."""
    at = _at(draw, rows, place)
    row = rows[at]
    if row.function is Function.APPEND and row.offset is None:
        return rows
    by = rows[min(len(rows) - 1, at + draw.randint(1, span))].invoke_time - row.invoke_time
    until = None if row.completion_time is None else row.completion_time + by
    return _with(rows, at, invoke_time=row.invoke_time + by, completion_time=until)


def _sent_as_it_ends(draw: Random, rows: list[Operation], place: int, span: int) -> list[Operation]:
    """An append begins at the time at which its transaction ends, and ends later."""
    pair = _pair(draw, rows, place, AROUND, Function.TXN, Function.APPEND)
    if pair is None:
        return rows
    head, append = (rows[n] for n in pair)
    end = head.completion_time
    if end is None or (head.process, head.session) != (append.process, append.session):
        return rows
    later = rows[min(len(rows) - 1, pair[1] + draw.randint(1, span))].invoke_time
    return _with(rows, pair[1], invoke_time=end, completion_time=max(end, later))


CHANGES: tuple[Change, ...] = (
    _read_each_other,
    _reads_what_another_sends,
    _sends_what_another_read,
    _made_from_the_same,
    _epoch_of_another,
    _lost,
    _passed_over,
    _ends_otherwise,
    _ends_late,
    _begins_late,
    _sent_as_it_ends,
)
