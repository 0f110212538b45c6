"""The event invariants as their definitions say, decided the slow way: every event looks at the whole trace
before it. The oracle of the one pass."""

from collections.abc import Iterator
from typing import NamedTuple

from fencepost.model.refinement import LOSING
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import LossRange, Trace

Key = tuple[str | None, int]
Record = tuple[int, int] | None
"""(leader epoch, value); None where a trace does not say."""
Log = list[Record]
Found = dict[tuple[str, str | None, int], tuple[int, tuple[int, ...]]]
"""(anomaly, topic, partition) -> (offset, positions of the certificate)."""
NAMES_RECORDS = (Name.APPENDED, Name.REPLICA_LOG)


def key_of(event: Event) -> Key:
    return event.topic, event.partition


def of(events: tuple[Event, ...], *names: Name, key: Key | None = None, node: int | None = None) -> list[int]:
    """Positions of the events of these names, of a partition and a node."""
    return [
        position
        for position, event in enumerate(events)
        if event.name in names
        and (key is None or key_of(event) == key)
        and (node is None or event.node == node)
    ]


def resized(log: Log, end: int) -> Log:
    return (log + [None] * end)[: max(end, 0)]


def written(log: Log, event: Event) -> Log:
    return resized(log, event.offset) + [(event.leader_epoch, value) for value in event.values]


def log_of(events: tuple[Event, ...], key: Key, node: int) -> Log:
    """A replica's log after these events."""
    log: Log = []
    for position in of(events, Name.APPENDED, Name.TRUNCATED, Name.LOG_RECOVERED, key=key, node=node):
        event = events[position]
        log = written(log, event) if event.name is Name.APPENDED else resized(log, event.offset)
    return log


def dumped(events: tuple[Event, ...], key: Key, node: int) -> Log:
    log: Log = []
    for position in of(events, Name.REPLICA_LOG, key=key, node=node):
        log = written(log, events[position]) if events[position].values else log
    return log


def row_of(events: tuple[Event, ...], key: Key, node: int, offset: int) -> int:
    """The last row of a dump that begins at or below an offset, or its last row."""
    rows = of(events, Name.REPLICA_LOG, key=key, node=node)
    return next((row for row in reversed(rows) if events[row].offset <= offset), rows[-1])


def allowed(loss: tuple[LossRange, ...], key: Key, offset: int) -> bool:
    return any((one.topic, one.partition) == key and one.start <= offset < one.end for one in loss)


def differs(log: Log, offset: int, record: Record) -> bool:
    """Whether a log certainly does not hold a record."""
    if offset >= len(log):
        return True
    return log[offset] is not None and record is not None and log[offset] != record


class Exposed(NamedTuple):
    """What leaders exposed: (position, leader epoch, high watermark) in order, and each offset's record as
    first exposed."""

    by: list[tuple[int, int, int]]
    records: Log

    def first(self, offset: int, epoch: int) -> int:
        return next(position for position, its, end in self.by if its <= epoch and end > offset)


def exposed(events: tuple[Event, ...], key: Key) -> Exposed:
    made = Exposed([], [])
    for position in of(events, Name.HIGH_WATERMARK, key=key):
        event = events[position]
        if event.cause == "leader":
            log = log_of(events[:position], key, event.node)
            made.records.extend(log[len(made.records) : event.high_watermark])
            made.by.append((position, event.leader_epoch, event.high_watermark))
    return made


def commit_safe(trace: Trace, found: Found) -> None:
    """Each leader, and each current replica at the end, holds each record below what was exposed."""
    events, loss = trace.events, trace.claims.loss
    for position, event in enumerate(events):
        key = key_of(event)
        if event.name is Name.BECAME_LEADER:
            before, epoch = exposed(events[:position], key), event.leader_epoch
            end = max((end for _, its, end in before.by if its <= epoch), default=0)
        elif event.name is Name.HIGH_WATERMARK and event.cause == "leader":
            before = exposed(events[:position], key)
            epoch = max((its for _, its, _ in before.by), default=-9)
            end = event.high_watermark if epoch > event.leader_epoch else 0
        else:
            continue
        log = log_of(events[:position], key, event.node)
        for offset in range(min(end, len(before.records))):
            if differs(log, offset, before.records[offset]) and not allowed(loss, key, offset):
                found.setdefault(
                    ("committed_record_lost", *key), (offset, (before.first(offset, epoch), position))
                )
                break
    for key in {key_of(event): None for event in events}:
        states = of(events, Name.PARTITION_STATE, key=key)
        isr = events[states[-1]].isr if states else ()
        whole = exposed(events, key)
        for node in sorted({events[row].node for row in of(events, Name.REPLICA_LOG, key=key)} & set(isr)):
            losses = [row for row in of(events, Name.FAULT_BEGAN, node=node) if events[row].cause in LOSING]
            opened = of(events, Name.LOG_RECOVERED, key=key, node=node)
            if losses and losses[-1] > max(opened, default=-1):
                continue
            log = dumped(events, key, node)
            for offset, record in enumerate(whole.records):
                if differs(log, offset, record) and not allowed(loss, key, offset):
                    first = whole.first(offset, max(its for _, its, _ in whole.by))
                    where = (first, row_of(events, key, node, offset))
                    found.setdefault(("committed_record_truncated", *key), (offset, where))
                    break


def log_match(trace: Trace, found: Found) -> None:
    """(offset, epoch) names one record; dumps agree below both high watermarks."""
    events = trace.events
    names: dict[tuple[Key, int, int], tuple[int, int]] = {}
    for position in of(events, *NAMES_RECORDS):
        event = events[position]
        for offset, value in enumerate(event.values, event.offset):
            first, held = names.setdefault((key_of(event), event.leader_epoch, offset), (position, value))
            if held != value:
                found.setdefault(("log_divergence", *key_of(event)), (offset, (first, position)))
                break
    stuck = bool(of(events, Name.LIVENESS_FAILED))
    for key in {key_of(event): None for event in events}:
        nodes = sorted({events[row].node for row in of(events, Name.REPLICA_LOG, key=key)})
        for one, two in ((one, two) for one in nodes for two in nodes if one < two):
            logs = [dumped(events, key, node) for node in (one, two)]
            ends = [
                events[of(events, Name.REPLICA_LOG, key=key, node=node)[-1]].high_watermark
                for node in (one, two)
            ]
            for offset in range(min(*ends, *map(len, logs))):
                excused = stuck and allowed(trace.claims.loss, key, offset)
                if differs(logs[0], offset, logs[1][offset]) and not excused:
                    rows = (row_of(events, key, one, offset), row_of(events, key, two, offset))
                    found.setdefault(("log_divergence", *key), (offset, rows))
                    break


def epoch_mono(trace: Trace, found: Found) -> None:
    """Epochs grow in ZooKeeper and at a running broker; one leader in each."""
    events = trace.events
    for position, event in enumerate(events):
        past, key = events[:position], key_of(event)
        if event.name is Name.PARTITION_STATE:
            for last in of(past, Name.PARTITION_STATE, key=key)[-1:]:
                if event.leader_epoch < events[last].leader_epoch:
                    found.setdefault(("leader_epoch_regressed", *key), (-1, (last, position)))
                leaders = {events[last].leader, event.leader}
                if (
                    event.leader_epoch == events[last].leader_epoch
                    and len(leaders) == 2
                    and -1 not in leaders
                ):
                    found.setdefault(("two_leaders_one_epoch", *key), (-1, (last, position)))
        if event.name is Name.BECAME_LEADER:
            same = [
                at
                for at in of(past, Name.BECAME_LEADER, key=key)
                if events[at].leader_epoch == event.leader_epoch
            ]
            if same and events[same[0]].node != event.node:
                found.setdefault(("two_leaders_one_epoch", *key), (-1, (same[0], position)))
        if event.name in (Name.BECAME_LEADER, Name.BECAME_FOLLOWER):
            started = max(of(past, Name.BROKER_STARTED, node=event.node), default=-1)
            for last in of(past, Name.BECAME_LEADER, Name.BECAME_FOLLOWER, key=key, node=event.node)[-1:]:
                if last > started and event.leader_epoch < events[last].leader_epoch:
                    found.setdefault(("leader_epoch_regressed", *key), (-1, (last, position)))
                if last > started and event.leader_epoch == events[last].leader_epoch:
                    found.setdefault(("leader_epoch_repeated", *key), (-1, (last, position)))


def hw_kept(trace: Trace, found: Found) -> None:
    """A start finds the least high watermark of the time since the start before it, or more, if that one came
    out of a checkpoint and the log goes as far."""
    events = trace.events
    for position in of(events, Name.LOG_RECOVERED):
        event = events[position]
        past, key, node = events[:position], key_of(event), event.node
        before = of(past, Name.LOG_RECOVERED, key=key, node=node)[-1:]
        if not before or events[before[0]].high_watermark <= max(events[before[0]].log_start_offset, 0):
            continue
        faults = of(past, Name.FAULT_BEGAN, node=node)
        lost = [at for at in faults if events[at].cause == "power_loss" and at > before[0]]
        since = max((at for at in faults if events[at].cause == "power_loss" and at < before[0]), default=-1)
        lied = [at for at in faults if events[at].cause == "lying_fsync" and at > since]
        marks = of(events[before[0] : position], Name.MARK, key=key, node=node)
        deleted = [at for at in marks if events[before[0] + at].cause == "replica_deleted"]
        if deleted or any(a < b for a in lied for b in lost):
            continue
        heard = [at for at in of(past, Name.HIGH_WATERMARK, key=key, node=node) if at > before[0]]
        least = min([*before, *heard], key=lambda at: (events[at].high_watermark, at))
        if 0 <= event.high_watermark < min(events[least].high_watermark, event.offset):
            found.setdefault(("high_watermark_forgotten", *key), (event.high_watermark, (least, position)))


def ctrl_fence(trace: Trace, found: Found) -> None:
    """No write and no obeyed request of a controller whose epoch is over."""
    events = trace.events
    for position, event in enumerate(events):
        past, key = events[:position], key_of(event)
        if event.name is Name.PARTITION_STATE:
            epochs = [-1, *(events[at].leader_epoch for at in of(past, Name.PARTITION_STATE, key=key))]
            for last in of(past, Name.CONTROLLER_EPOCH)[-1:]:
                fenced = event.controller_epoch < events[last].controller_epoch
                elected = event.controller_epoch == events[last].controller_epoch
                stolen = (
                    elected and event.node != events[last].node and -1 not in (event.node, events[last].node)
                )
                if event.leader_epoch > epochs[-1] and (fenced or stolen):
                    found.setdefault(("fenced_controller_wrote", *key), (-1, (last, position)))
        if event.name is Name.CONTROL_REQUEST_APPLIED:
            started = max(of(past, Name.BROKER_STARTED, node=event.node), default=-1)
            obeyed = [at for at in of(past, Name.CONTROL_REQUEST_APPLIED, node=event.node) if at > started]
            highest = max((events[at].controller_epoch for at in obeyed), default=-1)
            if event.controller_epoch < highest:
                last = max(at for at in obeyed if events[at].controller_epoch == highest)
                found.setdefault(("fenced_controller_obeyed", None, -1), (-1, (last, position)))


def live(trace: Trace, found: Found) -> None:
    """Whatever the liveness phase waited for came."""
    for position in of(trace.events, Name.LIVENESS_FAILED):
        healed = [at for at in of(trace.events[:position], Name.PHASE) if trace.events[at].cause == "heal"]
        found.setdefault(("no_progress", *key_of(trace.events[position])), (-1, (*healed[-1:], position)))


def by_definition(trace: Trace) -> Found:
    """The first finding of each anomaly in each partition, from the events."""
    found: Found = {}
    for invariant in (commit_safe, log_match, hw_kept, epoch_mono, ctrl_fence, live):
        invariant(trace, found)
    return found


class End(NamedTuple):
    """An end that a client was shown."""

    key: Key
    end: int
    epoch: int
    operation: Operation


def ends(operation: Operation) -> Iterator[End]:
    if operation.outcome is not Outcome.OK:
        return
    if operation.function not in (Function.POLL, Function.LIST_OFFSETS, Function.APPEND):
        return
    rows = [(p.topic, p.partition, p.end_offset, p.leader_epoch) for p in operation.positions]
    if not rows:
        end = operation.end_offset
        if operation.function is Function.LIST_OFFSETS and end is None and operation.argument is None:
            end = operation.offset
        if operation.function is Function.APPEND:
            end = None
            if operation.acks == -1 and operation.records:
                end = operation.offset + len(operation.records)
        partition = -1 if operation.partition is None else operation.partition
        rows = [(operation.topic, partition, end, operation.leader_epoch)]
    for topic, partition, end, epoch in rows:
        if end is not None:
            yield End((topic, partition), end, -1 if epoch is None else epoch, operation)


def regresses(trace: Trace) -> dict[Key, set[tuple[int, int, int, int]]]:
    """By partition, every (earlier op, later op, the end shown, clearing uncertainty) that is a regress."""
    shown = [end for operation in trace.operations for end in ends(operation)]
    found: dict[Key, set[tuple[int, int, int, int]]] = {}
    for a in shown:
        for b in shown:
            if a.key == b.key and a.end > b.end and _is_regress(trace, a, b):
                one, two = a.operation, b.operation
                gap = two.invoke_time - one.completion_time
                clears = -1 if one.clock_id == two.clock_id else (gap + 1) // 2
                found.setdefault(a.key, set()).add((one.op_id, two.op_id, b.end, clears))
    return found


def _is_regress(trace: Trace, a: End, b: End) -> bool:
    one, two = a.operation, b.operation
    margin = 0 if one.clock_id == two.clock_id else 2 * trace.claims.clock_uncertainty_ns
    if one.completion_time + margin >= two.invoke_time:
        return False
    if all(allowed(trace.claims.loss, a.key, offset) for offset in range(b.end, a.end)):
        return False
    if two.function is Function.APPEND:
        return False
    if two.function is Function.LIST_OFFSETS:
        return 0 <= a.epoch <= b.epoch or (one.node == two.node and one.node >= 0)
    begun = [trace.events[at] for at in of(trace.events, Name.BECAME_LEADER, key=a.key)]
    led = [event.time for event in begun if event.leader_epoch == a.epoch]
    leaders = {event.node for event in begun if event.leader_epoch == a.epoch} | {
        operation.node
        for operation in trace.operations
        for end in ends(operation)
        if operation.function is not Function.POLL and (end.key, end.epoch) == (a.key, a.epoch)
    }
    nodes = {one.node, two.node}
    by_leader = nodes <= leaders | {-1} or (len(nodes) == 1 and not leaders - {-1})
    return (
        by_leader
        and 0 <= a.epoch == b.epoch
        and not any(one.invoke_time <= time <= two.completion_time for time in led[1:])
    )
