"""What a message between brokers must say, by the state of the broker that sends it.

Owns one function for each kind of request and of answer. Each is the protocol's rule in its plainest form,
and shares no code with the broker's own. Must not know when a message was sent. The state is that after the
step that sends it. A step may go on to change other partitions: what belongs to an earlier leader epoch is
not compared.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from fencepost.campaign.observed.justified import BASE_OFFSET, LAST_OFFSET_DELTA, Reason
from fencepost.impl.messages import broker_api
from fencepost.impl.messages.broker_api import EARLIEST, TopicPartition
from fencepost.impl.messages.names import name_of
from fencepost.traces.outcomes import ErrorCode

MILLISECOND = 1_000_000
FORGOTTEN = -2
"""The leader of a partition that UpdateMetadata takes out of the caches."""


@frozen
class AskedByBroker:
    """A request of another broker under way."""

    source: int
    request: Any
    # When it arrived, in virtual nanoseconds.
    since: int
    # The host's time of day less the virtual time then.
    skew: int


# ---- requests of followers


def _follows(core: Any, target: int, key: TopicPartition, epoch: int) -> Iterator[Reason]:
    """A follower asks its leader, in the epoch that it knows."""
    partition = core.replicas.partitions.get(key)
    if partition is None or epoch < partition.leader_epoch:
        return
    if epoch > partition.leader_epoch:
        yield f"leader epoch of {key}", partition.leader_epoch, epoch
    elif target != partition.leader:
        yield f"leader of {key}", partition.leader, target


def _current(core: Any, key: TopicPartition, epoch: int) -> Any:
    partition = core.replicas.partitions.get(key)
    return partition if partition is not None and epoch == partition.leader_epoch else None


def _fetches(core: Any, target: int, request: broker_api.FetchRequest) -> Iterator[Reason]:
    options = core.broker_context.options
    asked = request.replica_id, request.max_wait
    expected = core.broker_context.node, options.replica_fetch_wait_max_ms * MILLISECOND
    if asked != expected:
        yield "replica and longest wait", expected, asked
    for one in request.partitions:
        partition = _current(core, one.partition, one.leader_epoch)
        if partition is None or target != partition.leader:
            yield from _follows(core, target, one.partition, one.leader_epoch)
            continue
        log = partition.log
        if (one.offset, one.log_start_offset) != (log.log_end_offset, log.log_start_offset):
            yield (
                f"end and start of {one.partition}",
                (log.log_end_offset, log.log_start_offset),
                (one.offset, one.log_start_offset),
            )
    if len({one.partition for one in request.partitions}) != len(request.partitions):
        yield "partitions", "each once", [str(one.partition) for one in request.partitions]


def _asks_epochs(
    core: Any, target: int, request: broker_api.OffsetsForLeaderEpochRequest
) -> Iterator[Reason]:
    """About the latest epoch in the log; a log that has none asks for the end of its leader's."""
    if request.replica_id != core.broker_context.node:
        yield "replica", core.broker_context.node, request.replica_id
    for query in request.queries:
        yield from _follows(core, target, query.partition, query.current_leader_epoch)
        partition = _current(core, query.partition, query.current_leader_epoch)
        if partition is not None:
            entries = partition.log.epochs.entries
            latest = max((epoch for epoch, _ in entries), default=query.current_leader_epoch)
            if query.asked_epoch != latest:
                yield f"epoch that {query.partition} asks about", latest, query.asked_epoch


def _asks_start(core: Any, target: int, request: broker_api.ListOffsetsRequest) -> Iterator[Reason]:
    yield from _follows(core, target, request.partition, request.leader_epoch)
    asked = request.replica_id, request.timestamp
    if asked != (core.broker_context.node, EARLIEST):
        yield "replica and time", (core.broker_context.node, EARLIEST), asked


# ---- requests of the controller


def _controls(core: Any, target: int, request: Any) -> Iterator[Reason]:
    state = core.controller.state
    if not state.active:
        return
    context = state.context
    expected = core.broker_context.node, context.epoch, context.live_brokers.get(target)
    seen = request.controller_id, request.controller_epoch, request.broker_epoch
    if seen != expected:
        yield "controller, its epoch and the broker's epoch", expected, seen


def _sends_states(core: Any, target: int, request: Any) -> Iterator[Reason]:
    """What it knows now, or knew: a request may wait for its turn. What it never knew is wrong."""
    yield from _controls(core, target, request)
    states = core.controller.state.context.states
    roles = type(request) is broker_api.LeaderAndIsrRequest
    for one in request.partitions:
        known = states.get(one.partition)
        if roles and target not in one.replicas:
            yield f"replicas of {one.partition}", f"one of {one.replicas}", target
        if known is None or one.zk_version < known.zk_version:
            continue
        expected = known.leader, known.leader_epoch, known.zk_version, known.isr, known.controller_epoch
        seen = one.leader, one.leader_epoch, one.zk_version, one.isr, one.controller_epoch
        if seen != expected and one.leader != FORGOTTEN:
            yield f"state of {one.partition}", expected, seen


def _asks_to_stop(core: Any, target: int, request: broker_api.ControlledShutdownRequest) -> Iterator[Reason]:
    expected = core.broker_context.node, core.broker_context.broker_epoch
    if (request.broker_id, request.broker_epoch) != expected:
        yield "broker and its epoch", expected, (request.broker_id, request.broker_epoch)


# ---- answers of leaders


def _refused(core: Any, key: TopicPartition, epoch: int, error: ErrorCode) -> Iterator[Reason]:
    """An error that says what the broker is to a request in that leader epoch."""
    partition = core.replicas.partitions.get(key)
    if partition is None:
        return
    own, leads = partition.leader_epoch, partition.leader == core.broker_context.node
    fenced = error is ErrorCode.FENCED_LEADER_EPOCH and epoch >= own
    unknown = error is ErrorCode.UNKNOWN_LEADER_EPOCH and epoch <= own
    if fenced or unknown:
        yield f"leader epoch {epoch} of {key}", f"no such error: its own is {own}", error
    elif error is ErrorCode.NOT_LEADER_OR_FOLLOWER and leads and epoch == own:
        yield f"role in {key}", "no such error: it leads", error


def _led(core: Any, key: TopicPartition, epoch: int) -> Any:
    """The partition, if the broker leads it in that epoch; otherwise it may have done so a moment ago."""
    partition = _current(core, key, epoch)
    return partition if partition is not None and partition.leader == core.broker_context.node else None


def _copied(core: Any, asked: AskedByBroker, answer: broker_api.FetchResponse) -> Iterator[Reason]:
    request: broker_api.FetchRequest = asked.request
    expected = [one.partition for one in request.partitions]
    if expected != [one.partition for one in answer.partitions]:
        yield "partitions", list(map(str, expected)), [str(one.partition) for one in answer.partitions]
        return
    alone = len(expected) == 1
    for wanted, one in zip(request.partitions, answer.partitions, strict=True):
        if one.error is not ErrorCode.NONE:
            yield from _refused(core, wanted.partition, wanted.leader_epoch, one.error)
        partition = _led(core, wanted.partition, wanted.leader_epoch)
        if partition is None:
            continue
        log, offset = partition.log, wanted.offset
        if one.error is not ErrorCode.NONE:
            inside = log.log_start_offset <= offset <= log.log_end_offset
            if one.error is ErrorCode.OFFSET_OUT_OF_RANGE and inside:
                yield (
                    f"offset {offset}",
                    f"records: {log.log_start_offset} to {log.log_end_offset}",
                    one.error,
                )
            continue
        yield from _one_copied(partition, offset, one, alone=alone)


def _one_copied(
    partition: Any, offset: int, one: broker_api.FetchedPartition, *, alone: bool
) -> Iterator[Reason]:
    log, mark = partition.log, partition.high_watermark
    expected = partition.leader_epoch, log.log_start_offset
    if (one.leader_epoch, one.log_start_offset) != expected and alone:
        yield (
            f"leader epoch and log start of {one.partition}",
            expected,
            (one.leader_epoch, one.log_start_offset),
        )
    if one.high_watermark > mark or (alone and one.high_watermark != mark):
        yield f"high watermark of {one.partition}", mark, one.high_watermark
    if not log.log_start_offset <= offset <= log.log_end_offset:
        yield f"offset {offset}", f"an error: {log.log_start_offset} to {log.log_end_offset}", "none"
    if one.records:
        base = int.from_bytes(one.records[BASE_OFFSET])
        last = base + int.from_bytes(one.records[LAST_OFFSET_DELTA])
        if last < offset or (base > offset and log.options.contiguous):
            yield "first batch", f"one that holds offset {offset}", f"{base} to {last}"
    elif alone and offset < log.log_end_offset:
        yield "records", f"those from {offset} to {log.log_end_offset}", "none"


def _epochs_ended(
    core: Any, asked: AskedByBroker, answer: broker_api.OffsetsForLeaderEpochResponse
) -> Iterator[Reason]:
    queries = asked.request.queries
    if [one.partition for one in queries] != [one.partition for one in answer.ends]:
        yield (
            "partitions",
            [str(one.partition) for one in queries],
            [str(one.partition) for one in answer.ends],
        )
        return
    for query, one in zip(queries, answer.ends, strict=True):
        if one.error is not ErrorCode.NONE:
            yield from _refused(core, query.partition, query.current_leader_epoch, one.error)
            continue
        partition = _led(core, query.partition, query.current_leader_epoch)
        if partition is None:
            yield (
                f"role in {query.partition}",
                f"an error: not leader in {query.current_leader_epoch}",
                "none",
            )
            continue
        expected = end_of_epoch(partition.log.epochs.entries, query.asked_epoch, partition.log.log_end_offset)
        if (one.epoch, one.end_offset) != expected:
            yield f"end of epoch {query.asked_epoch}", expected, (one.epoch, one.end_offset)


def end_of_epoch(entries: list[tuple[int, int]], epoch: int, end: int) -> tuple[int, int]:
    """The largest epoch up to that one, and where it ends (KIP-279).

    Args:
        entries: epochs with their start offsets.
        epoch: that is asked about.
        end: the log end.

    Returns:
        both -1 if the log does not know.
    """
    epochs = [one for one, _ in entries]
    if epoch < 0 or not epochs or epoch > max(epochs):
        return (-1, -1)
    floor = max((one for one in epochs if one <= epoch), default=epoch)
    return floor, min((start for one, start in entries if one > epoch), default=end)


def _start_listed(
    core: Any, asked: AskedByBroker, answer: broker_api.ListOffsetsResponse
) -> Iterator[Reason]:
    request: broker_api.ListOffsetsRequest = asked.request
    if answer.error is not ErrorCode.NONE:
        yield from _refused(core, request.partition, request.leader_epoch, answer.error)
        return
    partition = _led(core, request.partition, request.leader_epoch)
    start = -1 if partition is None else partition.log.log_start_offset
    if answer.offset != start:
        yield f"log start of {request.partition}", start, answer.offset


# ---- answers to and of the controller


def _controlled(core: Any, asked: AskedByBroker, answer: broker_api.ControlResponse) -> Iterator[Reason]:
    request, gate = asked.request, core.gate
    stale = {
        ErrorCode.STALE_CONTROLLER_EPOCH: request.controller_epoch < gate.controller_epoch,
        ErrorCode.STALE_BROKER_EPOCH: request.broker_epoch < core.broker_context.broker_epoch,
    }
    if answer.kind != name_of(request):
        yield "kind", name_of(request), answer.kind
    if answer.error is ErrorCode.NONE and any(stale.values()):
        yield "error", [str(error) for error, holds in stale.items() if holds], answer.error
    elif answer.error is not ErrorCode.NONE and not stale.get(answer.error, False):
        yield "error", "none: both epochs are current", answer.error
    if answer.controller_epoch != gate.controller_epoch:
        yield "controller epoch", gate.controller_epoch, answer.controller_epoch
    if type(request) is not broker_api.StopReplicaRequest or answer.error is not ErrorCode.NONE:
        return
    errors = dict(answer.partition_errors)
    for key, _, delete in request.partitions:
        error = errors.get(key)
        if error is None:
            yield f"answer for {key}", "one", "none"
        elif error is ErrorCode.NONE and delete and key in core.replicas.partitions:
            yield f"replica {key}", "deleted", "still there"


def _may_stop(
    core: Any, asked: AskedByBroker, answer: broker_api.ControlledShutdownResponse
) -> Iterator[Reason]:
    """The partitions that the broker still leads, although they have other replicas."""
    state = core.controller.state
    if answer.error is not ErrorCode.NONE or not state.active:
        return
    context, broker = state.context, asked.request.broker_id
    expected = {
        key
        for key, known in context.states.items()
        if known.leader == broker
        and broker in context.assignments.get(key, ())
        and len(context.assignments[key]) > 1
        and key.topic not in context.out_of_service
    }
    if set(answer.remaining) != expected:
        yield f"partitions that {broker} leads", sorted(expected), sorted(answer.remaining)


REQUESTS: Mapping[type, Callable[[Any, int, Any], Iterator[Reason]]] = {
    broker_api.FetchRequest: _fetches,
    broker_api.OffsetsForLeaderEpochRequest: _asks_epochs,
    broker_api.ListOffsetsRequest: _asks_start,
    broker_api.LeaderAndIsrRequest: _sends_states,
    broker_api.UpdateMetadataRequest: _sends_states,
    broker_api.StopReplicaRequest: _controls,
    broker_api.ControlledShutdownRequest: _asks_to_stop,
}
"""By class of the request: of the sender, whom it goes to, the request."""
ANSWERS: Mapping[type, Callable[[Any, AskedByBroker, Any], Iterator[Reason]]] = {
    broker_api.FetchResponse: _copied,
    broker_api.OffsetsForLeaderEpochResponse: _epochs_ended,
    broker_api.ListOffsetsResponse: _start_listed,
    broker_api.ControlResponse: _controlled,
    broker_api.ControlledShutdownResponse: _may_stop,
}
"""By class of the answer."""
CONTROL = frozenset(
    {broker_api.LeaderAndIsrRequest, broker_api.UpdateMetadataRequest, broker_api.StopReplicaRequest}
)
"""The controller has one of these in flight to each broker."""
