"""Random histories of consumers, producers and transactions over two partitions: right ones, then spoilt in a
few places."""

from random import Random

from attrs import evolve
from kafka_histories import FAIL, OK, UNKNOWN, assign, moved, op, poll, send, subscribe, trace, txn

from fencepost.traces.operations import Function, Operation, Record
from fencepost.traces.trace import Trace


class Cluster:
    """Two logs and what was written to them; consumers know where they are."""

    def __init__(self, random: Random, seed: int) -> None:
        self.random, self.isolations, self.op_id, self.value = random, Random(seed), 0, 100
        self.logs: list[list[int | None]] = [[], []]
        self.at = {process: [0, 0] for process in (1, 2, 3)}
        self.operations: list[Operation] = []

    def next_id(self) -> int:
        self.op_id += 1
        return self.op_id

    def append(self, process: int, idempotent: bool) -> Operation:
        """An append; an unknown one may have been written."""
        random, partition = self.random, self.random.randint(0, 1)
        values = [self.value + n for n in range(random.choice((1, 1, 2)))]
        self.value += len(values)
        outcome, acks = random.choice((OK, OK, OK, UNKNOWN, FAIL)), random.choice((-1, -1, -1, 1, 0))
        log = self.logs[partition]
        base = len(log) + random.choice((0, 0, 1))
        if outcome is not FAIL and (outcome is OK or random.random() < 0.5):
            log.extend([None] * (base - len(log)))
            log.extend(values)
        told = base if outcome is OK and acks != 0 else random.choice((None, base))
        more = {"producer_id": process, "producer_epoch": 0} if idempotent else {}
        return send(
            self.next_id(),
            values,
            told,
            process=process,
            partition=partition,
            outcome=outcome,
            acks=acks,
            **more,
        )

    def read(self, process: int) -> Operation:
        """A poll that goes on where the process was; sometimes it says where that is."""
        rows, random = [], self.random
        for partition in (0, 1):
            log, at = self.logs[partition], self.at[process][partition]
            upto = min(len(log), at + random.randint(1, 3))
            rows += [(partition, o, log[o]) for o in range(at, upto) if log[o] is not None]
            self.at[process][partition] = upto
        more = {"isolation": self.isolations.choice((None, None, "read_committed", "read_uncommitted"))}
        if random.random() < 0.1:
            more |= {"topic": "t", "partition": 0, "offset": 0}
        return poll(self.next_id(), rows, process=process, **more)

    def move(self, process: int) -> Operation:
        """An assignment, a subscription, a join or a crash; what it gives up starts over."""
        random = self.random
        partitions = random.choice(((0,), (1,), (0, 1), ()))
        kind = random.choice((assign, assign, subscribe, None, None))
        if kind is None:
            function = random.choice((Function.JOIN, Function.CRASH))
            return moved(self.next_id(), function, *partitions, process=process)
        seeks = kind is assign and random.random() < 0.3
        if seeks or random.random() < 0.5:
            self.at[process] = [0, 0]
        outcome = random.choice((OK, OK, OK, FAIL, UNKNOWN))
        return kind(
            self.next_id(), *partitions, process=process, outcome=outcome,
            argument="seek_to_beginning" if seeks else None,
        )  # fmt: skip

    def transaction(self, process: int) -> tuple[Operation, ...]:
        """A few sends and polls as one; aborted sends are no part of the log."""
        outcome, head = self.random.choice((OK, OK, FAIL, UNKNOWN)), self.next_id()
        logs, before = [list(log) for log in self.logs], list(self.at[process])
        parts = []
        for _ in range(self.random.randint(1, 3)):
            parts.append(self.append(process, True) if self.random.random() < 0.5 else self.read(process))
        if self.random.random() < 0.2:
            parts.insert(0, moved(self.next_id(), Function.JOIN, *self.random.choice(((0,), (), (0, 1)))))
        if outcome is not OK:
            self.at[process] = before
            self.logs = logs if outcome is FAIL else self.logs
            parts = [
                evolve(part, outcome=outcome) if part.function is Function.APPEND else part for part in parts
            ]
        return txn(head, outcome, *parts, process=process)


def spoilt(random: Random, operations: list[Operation]) -> list[Operation]:
    """Something changed in one operation: a record moved, dropped, swapped or given twice, an offset told
    wrong, another process."""
    at = random.randrange(len(operations))
    o = operations[at]
    records = list(o.records)
    kind = random.choice(("move", "drop", "swap", "shift", "offset", "process", "outcome"))
    if kind == "drop" and records and o.function is Function.POLL:
        records.pop(random.randrange(len(records)))
    elif kind == "swap" and len(records) > 1 and o.function is Function.POLL:
        records.reverse()
    elif kind == "move" and o.function is Function.POLL:
        records = [evolve(r, offset=max(0, r.offset + random.choice((-1, 1)))) for r in records]
    elif kind == "shift" and o.function is Function.POLL:
        records.append(
            Record(
                topic="t",
                partition=random.randint(0, 1),
                offset=random.randint(0, 5),
                value=random.randint(100, 110),
            )
        )
    elif kind == "offset" and o.function is Function.APPEND and o.offset is not None:
        o = evolve(o, offset=max(0, o.offset + random.choice((-2, -1, 1, 2))))
    elif kind == "process" and o.function is not Function.TXN:
        o = evolve(o, process=random.randint(1, 3))
    elif kind == "outcome" and o.function is not Function.TXN:
        o = evolve(o, outcome=random.choice((OK, UNKNOWN)))
    return [*operations[:at], evolve(o, records=tuple(records)), *operations[at + 1 :]]


def relocated(random: Random, operations: list[Operation]) -> list[Operation]:
    """One record stands elsewhere for every poll, and for its producer if that was told; what it displaces
    keeps its place too."""
    values = [r.value for o in operations if o.function is Function.APPEND for r in o.records]
    if not values:
        return operations
    value, to = random.choice(values), random.randint(0, 6)
    changed = []
    for o in operations:
        records = tuple(evolve(r, offset=to) if r.value == value and r.offset >= 0 else r for r in o.records)
        if o.function is Function.APPEND and o.records[0].value == value and o.offset is not None:
            o = evolve(o, offset=to)
        changed.append(evolve(o, records=records))
    return changed


def random_history(seed: int) -> Trace:
    """One history; about half of them are spoilt somewhere."""
    random = Random(seed)
    cluster = Cluster(random, seed)
    transactions, idempotent = random.random() < 0.5, random.random() < 0.5
    operations: list[Operation] = []
    for _ in range(random.randint(3, 20)):
        process, roll = random.randint(1, 3), random.random()
        if roll < 0.35:
            operations.append(cluster.append(process, idempotent))
        elif roll < 0.8:
            operations.append(cluster.read(process))
        elif roll < 0.87 or not transactions:
            operations.append(cluster.move(process))
        else:
            operations.extend(cluster.transaction(process))
    if random.random() < 0.2:
        operations.append(
            op(cluster.next_id(), Function.CRASH, 1, (10 * cluster.op_id, None), outcome=UNKNOWN)
        )
    for _ in range(random.choice((0, 0, 1, 2, 3))):
        operations = random.choice((spoilt, spoilt, relocated))(random, operations)
    low = random.randint(0, 3)
    return trace(
        *operations,
        trace_id=seed,
        loss=(low, low + 2) if random.random() < 0.15 else None,
        duplicates=random.random() < 0.2,
    )
