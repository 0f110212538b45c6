"""What must hold in a broker that has nothing to do: what waits has a timer, and nothing waits for what is
there already.

Owns one function for each kind of state. Each is the rule in its plainest form. It only reads. Must not know
when it is asked: the broker must be between two steps.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from fencepost.campaign.observed.justified import Reason
from fencepost.impl.messages.broker_api import FetchRequest
from fencepost.traces.outcomes import ErrorCode

STABLE = "Stable"
TIMERS = {"PreparingRebalance": "group_join", "CompletingRebalance": "group_sync"}
"""By state of a group: the timer of its longest stay."""
PERIODIC = (("high_watermark_checkpoint",), ("isr_shrink",))
"""Timers of a broker that serves."""
PERIODIC_OF_TRANSACTIONS = (("transaction_timeouts",), ("transaction_expiry",))
ENDING = ("PrepareCommit", "PrepareAbort")
"""States of a transaction whose end is decided."""


def contradictions_in(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """What contradicts itself.

    Args:
        core: a broker that is registered and does not stop.
        timers: that are set.

    Yields:
        of what, expected, seen.
    """
    for rule in RULES:
        yield from rule(core, timers)


def _waiters(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """Requests in the purgatory."""
    partitions = core.replicas.partitions
    for waiter_id, waiter in core.replicas.leader.purgatory.waiters.items():
        if ("purgatory", waiter_id) not in timers:
            yield f"timer of waiting request {waiter_id}", "one", "none"
        request = getattr(waiter, "request", None)
        if isinstance(request, FetchRequest):
            ready = sum(
                _is_there(partitions.get(one.partition), request, one.offset) for one in request.partitions
            )
            if ready and request.min_bytes <= 1:
                yield (
                    f"fetch of {request.partitions[0].partition}",
                    "an answer: there are records",
                    "it waits",
                )
        elif request is None:
            partition = partitions.get(waiter.partition)
            if partition is None or partition.leader_epoch != waiter.leader_epoch:
                yield f"append to {waiter.partition}", "an answer: its leader epoch is over", "it waits"
            elif partition.high_watermark >= waiter.required_offset:
                yield (
                    f"append to {waiter.partition}",
                    f"an answer: {waiter.required_offset} is committed",
                    "it waits",
                )


def _is_there(partition: Any, request: FetchRequest, offset: int) -> bool:
    """Whether a fetch would get records, without regard to transactions."""
    if partition is None or request.read_committed or not partition.is_leader:
        return False
    end = partition.log.log_end_offset if request.replica_id >= 0 else partition.high_watermark
    return bool(partition.log.log_start_offset <= offset < end) and not partition.log.options.compact


def _marks(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """A leader's high watermark is not below what each member of the ISR, and each that may be one, has."""
    node = core.broker_context.node
    for key, partition in core.replicas.partitions.items():
        if partition.leader != node or not partition.isr:
            continue
        members = set(partition.isr) | set(partition.pending_isr or ())
        followers, end = partition.followers, partition.log.log_end_offset
        ends = [end, *(followers[one].log_end_offset if one in followers else -1 for one in members - {node})]
        if min(ends) > partition.high_watermark:
            yield f"high watermark of {key}", min(ends), partition.high_watermark


def _conversations(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """Followers wait for an answer or for a delay."""
    for leader, one in core.replicas.fetcher.conversations.items():
        if one.in_flight and ("fetch_timeout", leader) not in timers:
            yield f"timer of the fetch from {leader}", "one", "none"
        if one.followings and not one.in_flight and ("fetch_backoff", leader) not in timers:
            yield f"fetch from {leader}", "one under way, or a delay", "neither"


def _channels(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """A controller that has something to send has sent it, and waits."""
    if not core.controller.state.active:
        return
    for broker, channel in core.controller.state.channels.channels.items():
        if channel.queue and not channel.in_flight:
            yield f"requests to {broker}", "one in flight", f"none of {len(channel.queue)}"
        if channel.in_flight and ("control_request", broker) not in timers:
            yield f"timer of the request to {broker}", "one", "none"


def _groups(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """A group that waits for its members has a time-out, and each member a session."""
    for group in core.groups.table.groups.values():
        name = group.group_id
        timer = TIMERS.get(group.phase)
        if timer is not None and (timer, name) not in timers:
            yield f"timer of {group.phase} of {name}", "one", "none"
        if group.leader is not None and group.leader not in group.members:
            yield f"leader of {name}", f"one of {sorted(group.members)}", group.leader
        for member in group.members.values():
            waits = member.join is not None or member.sync is not None
            if not waits and ("group_session", name, member.member_id) not in timers:
                yield f"session of {member.member_id} in {group.phase} of {name}", "a timer", "none"
            if group.phase == STABLE and waits and member.group_instance_id is None:
                # a static member that came back is answered when its new id is in the log
                yield f"member {member.member_id} of a stable group", "an answer", "it waits"


def _durable(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """Appends of coordinators, and markers, wait for the high watermark of their leader epoch."""
    for appends in (core.groups.log, core.transactions.coordinator.log, core.transactions.writer):
        for number, one in appends.pending.items():
            of = f"append {number} to {one.partition}"
            partition = core.replicas.partitions.get(one.partition)
            if (appends.TIMER, number) not in timers:
                yield f"timer of {of}", "one", "none"
            if partition is None or partition.leader_epoch != one.leader_epoch:
                yield of, "its end: its leader epoch is over", "it waits"
            elif partition.high_watermark >= one.required_offset:
                yield of, f"its end: {one.required_offset} is committed", "it waits"


def _transactions(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    """What is being written of a transaction waits for its append. An end that is decided is carried out: its
    markers are under way, or wait for their time, or its last record is written."""
    coordinator = core.transactions.coordinator
    table, ends = coordinator.table, coordinator.markers.ends
    written = {one.partition.partition for one in coordinator.log.pending.values()}
    for name, one in table.transactions.items():
        if coordinator.log.not_coordinator(one.number) is not ErrorCode.NONE:
            continue  # it waits to be forgotten
        if one.pending is None and one.phase in ENDING:
            yield f"transaction of {name} in {one.phase}", "markers under way", "nothing"
        elif one.pending is not None and one.phase not in ENDING and one.number not in written:
            yield f"transaction of {name} on its way to {one.pending}", "an append", "none"
    for name, end in ends.items():
        for number in end.asked:
            if ("marker_request", name, number) not in timers:
                yield f"timer of the markers of {name}", "one", "none"
        if end.waiting and not end.asked and ("marker_again", name) not in timers:
            yield f"markers of {name} that wait", "a timer", "none"
        idle = not end.waiting and not end.asked and ("transaction_completion", name) not in timers
        if idle and end.transaction.number not in written:
            yield f"last record of the transaction of {name}", "an append, or a timer", "neither"
    for number in core.transactions.verification.waiting:
        if ("transaction_verification", number) not in timers:
            yield f"timer of the question {number} about a transaction", "one", "none"
    for key in PERIODIC_OF_TRANSACTIONS if coordinator.started else ():
        if key not in timers:
            yield f"timer {key[0]}", "set", "not set"


def _periodic(core: Any, timers: Collection[tuple[Any, ...]]) -> Iterator[Reason]:
    for key in PERIODIC:
        if key not in timers:
            yield f"timer {key[0]}", "set", "not set"


RULES: tuple[Callable[[Any, Collection[tuple[Any, ...]]], Iterator[Reason]], ...] = (
    _waiters,
    _marks,
    _conversations,
    _channels,
    _groups,
    _durable,
    _transactions,
    _periodic,
)
"""In the order in which they are asked."""
