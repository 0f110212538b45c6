"""The rules of the exactly-once judge, word for word and without any index: all rows against all rows."""

import random

from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, Trace
from tests.checkers import lab

F, State = Function, Outcome


def source_of(text: str) -> tuple[str, int, int] | None:
    """The topic, partition and offset that a source names; None if it names none."""
    name, at, offset = text.rpartition("@")
    topic, dash, partition = name.rpartition("-")
    if not (topic and at and dash):
        return None
    if set(partition + offset) - set("0123456789") or not partition or not offset:
        return None
    return topic, int(partition), int(offset)


def naive(trace: Trace) -> set[str]:
    """The anomalies of a trace."""
    rows = sorted(trace.operations, key=lambda row: (row.invoke_time, row.op_id))
    txns = [row for row in rows if row.function is F.TXN]
    reads = [
        row
        for row in rows
        if row.function is F.POLL and row.outcome is State.OK and row.isolation == "read_committed"
    ]

    def txn_of(row: Operation) -> Operation | None:
        mine = [
            txn
            for txn in txns
            if (txn.process, txn.session) == (row.process, row.session) and rows.index(txn) < rows.index(row)
        ]
        if not mine:
            return None
        txn = mine[-1]
        over = txn.completion_time is not None and row.invoke_time > txn.completion_time
        return None if over else txn

    def showing(record: Record) -> Operation | None:
        for read in reads:
            for seen in read.records:
                if (seen.topic, seen.partition, seen.offset) == (
                    record.topic,
                    record.partition,
                    record.offset,
                ):
                    return read if seen.value == record.value else None
        return None

    def passed(record: Record) -> bool:
        if record.topic in trace.claims.compacted:
            return False
        for read in reads:
            if read.offset is None or (read.topic, read.partition) != (record.topic, record.partition):
                continue
            mine = [seen.offset for seen in read.records]
            if mine and read.offset <= record.offset < mine[-1] + 1:
                return True
        return False

    sent = [
        (record, index, row, txn)
        for row in rows
        if row.function is F.APPEND and (txn := txn_of(row)) is not None
        for index, record in enumerate(row.records)
    ]
    found = set()
    for txn in txns:
        mine = [record for record, _, _, of in sent if of is txn and record.offset >= 0]
        if any(showing(record) for record in mine) and any(
            not showing(record) and passed(record) for record in mine
        ):
            found.add("torn_transaction")
    for record, _, row, _ in sent:
        if record.offset >= 0 and showing(record):
            for txn in txns:
                later = txn.producer_id == row.producer_id and txn.producer_epoch > row.producer_epoch
                if later and row.invoke_time > txn.invoke_time:
                    found.add("zombie_write")
    outputs: dict[tuple[str, int, int], int] = {}
    for record, index, row, _ in sent:
        texts = (row.result or "").split(" ")
        source = source_of(texts[index]) if len(texts) == len(row.records) else None
        if source is not None and record.offset >= 0 and showing(record):
            outputs[source] = outputs.get(source, 0) + 1
    commits = [row for row in rows if row.function is F.COMMIT and row.argument == "txn"]
    for (topic, partition, offset), count in outputs.items():
        if count > 1:
            found.add("output_twice")
        if not any(
            row.outcome is not State.FAIL and each.offset > offset
            for row in commits
            for each in row.positions
            if (each.topic, each.partition) == (topic, partition)
        ):
            found.add("output_without_commit")
    inputs = set()
    maybe = set()
    for record, index, row, _ in sent:
        texts = (row.result or "").split(" ")
        source = source_of(texts[index]) if len(texts) == len(row.records) else None
        if source is not None:
            inputs.add(source[:2])
            if row.outcome is not State.FAIL and not (record.offset >= 0 and passed(record)):
                maybe.add(source)
    for read in reads:
        for seen in read.records:
            counts = any(
                row.outcome is State.OK and each.offset > seen.offset
                for row in commits
                for each in row.positions
                if (each.topic, each.partition) == (seen.topic, seen.partition)
            )
            place = (seen.topic, seen.partition, seen.offset)
            if trace.claims.retention or seen.topic in trace.claims.compacted:
                continue
            if counts and place[:2] in inputs and not outputs.get(place) and place not in maybe:
                found.add("output_missing")
    return found


def history(seed: int) -> Trace:
    """A random small history: some transactions over two logs of output, their commits, and readers."""
    draw = random.Random(seed)
    rows: list[Operation] = []
    time, value = 0, 0
    logs: dict[int, list[tuple[int, bool]]] = {0: [], 1: []}

    def row(function: Function, **columns: object) -> None:
        columns.setdefault("completion_time", columns["invoke_time"])
        columns.setdefault("outcome", State.OK)
        rows.append(Operation(op_id=len(rows) + 1, function=function, **columns))

    epochs = {process: process for process in range(2)}
    for _ in range(draw.randint(1, 4)):
        process = draw.randrange(2)
        began, outcome = time, draw.choice([State.OK, State.OK, State.FAIL, State.UNKNOWN])
        epoch = draw.randint(0, 2)
        parts = []
        for _ in range(draw.randint(1, 2)):
            time += 1
            number, source = draw.randrange(2), f"{draw.randrange(2)}@{draw.randrange(3)}"
            value += 1
            shown = (outcome is State.OK) ^ (draw.random() < 0.2)
            offset = len(logs[number])
            logs[number].append((value, shown))
            told = offset if draw.random() < 0.9 else -1
            parts.append((time, number, told, value, source))
        time += 1
        whole = draw.random() < 0.8
        row(
            F.TXN,
            process=process,
            session=epochs[process],
            invoke_time=began,
            completion_time=time if outcome is not State.UNKNOWN or whole else None,
            outcome=outcome,
            producer_id=1,
            producer_epoch=epoch,
        )
        for at, number, told, made, source in parts:
            row(
                F.APPEND,
                process=process,
                session=epochs[process],
                invoke_time=at,
                outcome=outcome,
                topic="out",
                partition=number,
                producer_id=1,
                producer_epoch=epoch if draw.random() < 0.8 else max(0, epoch - 1),
                result=draw.choice([f"in-{source}"] * 9 + [None, f"in-0{source}", f"in-{source} in-0@0"]),
                records=lab.records(made, begin=told, topic="out", partition=number),
            )
        row(
            F.COMMIT,
            process=process,
            session=epochs[process],
            invoke_time=time,
            outcome=outcome,
            argument="txn",
            positions=(Position(topic="in", partition=draw.randrange(2), offset=draw.randint(0, 3)),),
        )
        if outcome is State.UNKNOWN:
            epochs[process] += 2
        time += 1
    ended = [draw.random() < 0.8 for _ in range(2)]
    for number, finished in enumerate(ended):
        if finished:
            row(
                F.LIST_OFFSETS,
                process=8,
                invoke_time=time,
                topic="out",
                partition=number,
                offset=len(logs[number]),
                strong=draw.random() < 0.9,
                isolation="read_uncommitted",
            )
        time += 1
    for number in range(2):
        row(
            F.POLL,
            process=9,
            invoke_time=time,
            topic="in",
            partition=number,
            offset=0,
            isolation="read_committed",
            records=tuple(
                Record(topic="in", partition=number, offset=n, value=1_000 + 10 * number + n)
                for n in range(draw.randint(0, 3))
            ),
        )
    for reader in range(draw.randint(1, 2)):
        for number, content in logs.items():
            at = 0
            while at <= len(content):
                time += 1
                some = [(n, made) for n, (made, shown) in enumerate(content) if n >= at and shown]
                some = some[: draw.randint(1, 3)]
                row(
                    F.POLL,
                    process=10 + reader,
                    invoke_time=time,
                    topic="out",
                    partition=number,
                    offset=at,
                    isolation="read_committed" if draw.random() < 0.9 else "read_uncommitted",
                    records=tuple(
                        Record(topic="out", partition=number, offset=n, value=made) for n, made in some
                    ),
                )
                at = some[-1][0] + 1 if some else len(content) + (at == len(content))
                if draw.random() < 0.2:
                    break
    draw.shuffle(rows)
    return lab.trace(
        rows,
        trace_id=seed,
        claims=Claims(
            retention=draw.random() < 0.1,
            compacted=(draw.choice(["in", "out"]),) if draw.random() < 0.1 else (),
        ),
        concurrent_processes=True,
    )
