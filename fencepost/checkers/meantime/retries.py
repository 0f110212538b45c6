"""JUSTIFIED: a client's operation is answered at its first attempt, unless something was broken or moved.

Owns needless_retry. A client that was served at a partition knows its leader. While that leader leads on, no
fault is active and nobody asks for anything, the next operation there needs one request, and does not fail.
What a fault leaves (a follower that lags, a session that is about to end) passes within a bound that follows
from the options. Reads operations, of single traces.

Not asked: networks that lose messages by chance; clients that are less patient than an answer takes; a read
whose position may be out of range; groups, whose members are sent back to rebalance (rebalances.py);
processes that write in transactions, whose appends fail with an aborted one; batches of a pipelined producer
that are in flight together, where the simulated network lets one overtake the other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import fault_of, is_asked, row_ns
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import ACKS_NONE, Function, Operation, Outcome
from fencepost.traces.trace import Trace

TRIPS = 6
"""Messages in a row until an append is answered: to the leader, a follower's fetch that is under way, one for
the record, the next one, and the answer."""
SYNCS = 12
"""So many syncs of the disk in a row: of a segment that is rolled, at the leader and at a follower."""
NEVER = 1 << 62
"""When a fault ends that no event ends."""
HOST_MS = 200
"""Steps that wait at a busy host."""
DISTURBING = frozenset(
    {
        Name.BROKER_STARTED,
        Name.BROKER_STATE,
        Name.BROKER_ZNODE,
        Name.CONTROLLER_EPOCH,
        Name.LOG_DIRECTORY_FAILED,
        Name.SESSION_EXPIRED,
        Name.TOPIC_CONFIGURED,
        Name.TOPIC_DELETION,
        Name.ASSIGNMENT,
        Name.REASSIGNMENT,
        Name.BECAME_LEADER,
        Name.BECAME_FOLLOWER,
        Name.TRUNCATED,
    }
)
"""Besides faults and phases: what moves leaders, members, topics and logs."""
ASKED = frozenset({Function.APPEND, Function.POLL, Function.LIST_OFFSETS})


@define
class Disturbances:
    """times: of all that disturbs, ascending. broken: since when any fault has lasted, and until when."""

    times: list[int] = field(factory=list)
    broken: list[tuple[int, int]] = field(factory=list)

    def within(self, begin: int, end: int) -> bool:
        """Whether anything was broken, or happened, from `begin` to `end`."""
        if bisect_left(self.times, begin) < bisect_right(self.times, end):
            return True
        return any(begun <= end and ended >= begin for begun, ended in self.broken)


def disturbances_of(events: Iterable[Event], names: frozenset[Name] = DISTURBING) -> Disturbances:
    """Of a trace. names: the events that disturb, besides faults and phases."""
    found, active = Disturbances(), dict[str, int]()
    for event in events:
        if event.name in names or (event.name is Name.PHASE and event.cause != "final"):
            found.times.append(event.time)
        elif event.name is Name.FAULT_BEGAN:
            found.times.append(event.time)
            active[fault_of(event)] = event.time
        elif event.name is Name.FAULT_ENDED:
            found.times.append(event.time)
            begun = active.pop(fault_of(event), None)
            if begun is not None:
                found.broken.append((begun, event.time))
    found.broken += [(begun, NEVER) for begun in active.values()]
    return found


def settled_ns(options: Options) -> int:
    """How long after a fault it may still hold somebody up: sessions end, leaders follow, who lags leaves the
    ISR, requests that were lost time out."""
    cluster = options.cluster
    wait_ms = (
        2 * cluster.zookeeper_session_timeout_ms
        + cluster.replica_lag_time_max_ms * 3 // 2
        + 2 * cluster.controller_request_timeout_ms
        + 2 * (cluster.replica_fetch_wait_max_ms + cluster.replica_fetch_backoff_ms)
        + 2 * options.client.request_timeout_ms
    )
    return wait_ms * MILLISECOND + row_ns(options.network, 40)


def takes_ms(options: Options) -> int:
    """The longest time until an answer."""
    takes = row_ns(options.network, TRIPS) // MILLISECOND + SYNCS * options.disk.fsync_us // 1_000 + HOST_MS
    return takes + max(options.client.fetch_wait_max_ms, options.cluster.replica_fetch_wait_max_ms)


def is_patient(options: Options) -> bool:
    """Whether an answer comes within a client's patience."""
    return takes_ms(options) < options.client.request_timeout_ms


def judge_retries(findings: Findings, trace: Trace, options: Options) -> None:
    """Report operations that failed without a reason; at most one finding for each partition.

    Args:
        findings: where to report.
        trace: the run.
        options: of the run.
    """
    if not is_asked(options.network) or not is_patient(options) or trace.claims.loss:
        return
    small = {
        topic.name for topic in options.cluster.topics if topic.min_insync_replicas > topic.replication_factor
    }
    disturbances = disturbances_of(trace.events)
    settled, served = settled_ns(options), dict[tuple[int, str | None, int | None], int]()
    waits = (options.client.delivery_timeout_ms + options.client.request_timeout_ms) * MILLISECOND
    transactional = {one.process for one in trace.operations if one.function is Function.TXN}
    together = _together(trace.operations) if options.client.producer.pipelined else frozenset()
    for operation in sorted(trace.operations, key=lambda one: one.invoke_time):
        if operation.process in transactional or operation.op_id in together:
            continue
        if operation.function not in ASKED or operation.group is not None or operation.acks == ACKS_NONE:
            continue
        place = operation.process, operation.topic, operation.partition
        since = served.get(place)
        ended = operation.completion_time
        if _is_well(operation):
            assert ended is not None
            served[place] = ended
            continue
        if since is None or since > operation.invoke_time or operation.topic in small:
            continue
        if operation.function is Function.POLL and trace.claims.retention:
            continue
        until = operation.invoke_time + waits if ended is None else ended
        if disturbances.within(since - settled, until):
            continue
        findings.add(
            "needless_retry",
            expected=f"process {operation.process} to be served at its first attempt: nothing was broken "
            f"since {settled // MILLISECOND} ms before it was served there last",
            seen=f"{operation.outcome.value} after {operation.attempts} attempts: "
            f"{operation.error or 'no error'}",
            topic=operation.topic,
            partition=-1 if operation.partition is None else operation.partition,
            operations=(operation.op_id,),
        )


def _together(operations: Iterable[Operation]) -> frozenset[int]:
    """Appends that began while another one of their producer and partition was not answered. The later batch
    may arrive first: an idempotent producer then hears OUT_OF_ORDER_SEQUENCE_NUMBER, and sends it again. A
    connection of Kafka's keeps the order; messages of the simulated network have each their own delay."""
    found: set[int] = set()
    last: dict[tuple[int, str | None, int | None], Operation] = {}
    for one in sorted(operations, key=lambda one: one.invoke_time):
        if one.function is not Function.APPEND:
            continue
        place = one.process, one.topic, one.partition
        before = last.get(place)
        if before is not None and _end(before) > one.invoke_time:
            found |= {before.op_id, one.op_id}
        if before is None or _end(one) > _end(before):
            last[place] = one
    return frozenset(found)


def _end(operation: Operation) -> int:
    return NEVER if operation.completion_time is None else operation.completion_time


def _is_well(operation: Operation) -> bool:
    return (
        operation.outcome is Outcome.OK and operation.attempts <= 1 and operation.completion_time is not None
    )
