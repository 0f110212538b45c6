"""What a client asks for, compared with what the plan tells it to do.

Owns one function for each kind of request. A client that asks for something else than its application does,
or with other options, may be served faultlessly. Must not know answers. Not asked: the run's own operations
and those of a cluster that is driven by hand, of which the plan says nothing; what pipelined producers send,
who choose batches and partitions themselves.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import Factory, define, field

from fencepost.campaign.observed.justified import Reason, partition_of
from fencepost.impl.messages import broker_api, group_api
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.plan import Plan, PlannedOperation

ATTEMPTS = 256
"""A client's correlation ids name the operation and the attempt: this many of each operation."""
LAST_OFFSET_DELTA = slice(23, 27)
"""Bytes of a batch: its number of records less one."""
READ_COMMITTED = "read_committed"
ENDS = (broker_api.LATEST, broker_api.EARLIEST)
FUNCTIONS: Mapping[type, tuple[str, ...]] = {
    broker_api.ProduceRequest: ("append",),
    broker_api.FetchRequest: ("poll",),
    broker_api.ListOffsetsRequest: ("list_offsets", "poll"),
    broker_api.DeleteRecordsRequest: ("delete_records",),
}
"""The operations that a request may be for; a poll asks for an end when its position is out of range."""


@define(eq=False)
class Wishes:
    """What a plan says, by process."""

    plan: Plan
    # By op id: what is not done by a consumer in a group.
    operations: dict[int, PlannedOperation] = field(
        init=False,
        default=Factory(lambda self: {one.op_id: one for one in self.plan.operations}, takes_self=True),
    )
    # Groups by process.
    groups: dict[int, set[str]] = field(init=False, factory=dict)
    # Processes that consume, transform and produce.
    transforming: set[int] = field(init=False, factory=set)
    # Processes of the plan; a run has readers and consumers of its own, too.
    processes: set[int] = field(init=False, factory=set)
    # Operations that were looked at already.
    seen: set[int] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        for one in self.plan.operations:
            self.processes.add(one.process)
            if one.function in ("subscribe", "transform"):
                self.groups.setdefault(one.process, set()).add(one.key)
            if one.function == "transform":
                self.transforming.add(one.process)

    def refuted(self, process: int, request: Any) -> Iterator[Reason]:
        """What is wrong with a request.

        Args:
            process: that sent it.
            request: as it arrived.

        Yields:
            what was expected and what was seen.
        """
        if process in self.groups or hasattr(request, "group_id"):
            rule = _OF_MEMBERS.get(type(request))
            if rule is not None and self.groups:
                yield from rule(self, process, request)
        elif process not in self.processes:
            return
        elif type(request) in FUNCTIONS and not self.plan.client.producer.pipelined:
            planned = self.operations.get(request.correlation_id // ATTEMPTS)
            if planned is not None and planned.op_id not in self.seen:
                self.seen.add(planned.op_id)
                yield from _of_operation(self.plan, planned, process, request)


def _of_operation(plan: Plan, planned: PlannedOperation, process: int, request: Any) -> Iterator[Reason]:
    place, asked = (planned.topic, planned.partition), partition_of(request)
    facts: list[tuple[str, object, object]] = [
        ("process", planned.process, process),
        ("partition", place, None if asked is None else tuple(asked)),
        ("function", True, planned.function in FUNCTIONS[type(request)]),
    ]
    committed = planned.argument == READ_COMMITTED
    if isinstance(request, broker_api.ProduceRequest):
        count = int.from_bytes(request.records[LAST_OFFSET_DELTA]) + 1
        facts += [("acks", planned.acks, request.acks), ("number of records", planned.records, count)]
        facts.append(("time-out", plan.client.request_timeout_ms * MILLISECOND, request.timeout))
    elif isinstance(request, broker_api.FetchRequest):
        facts.append(("read_committed", committed, request.read_committed))
        facts.append(("longest wait", plan.client.fetch_wait_max_ms * MILLISECOND, request.max_wait))
    elif isinstance(request, broker_api.ListOffsetsRequest):
        resets = planned.function == "poll" and plan.client.auto_offset_reset == "earliest"
        if planned.argument == "by_time" and not resets:
            facts.append(("timestamp", True, request.timestamp >= 0))
        else:
            facts.append(("timestamp", ENDS[resets or planned.argument == "earliest"], request.timestamp))
        facts.append(("read_committed", committed, request.read_committed))
    yield from (fact for fact in facts if fact[1] != fact[2])


# ---- members of groups


def _group(wishes: Wishes, process: int, request: Any) -> Iterator[Reason]:
    groups = wishes.groups.get(process) or set().union(*wishes.groups.values())  # the run's own has any
    if groups and request.group_id not in groups:
        yield "group", sorted(groups), request.group_id
    named = getattr(request, "group_instance_id", None) is not None
    if hasattr(request, "group_instance_id") and named is not wishes.plan.consumer.static_members:
        yield "group.instance.id", wishes.plan.consumer.static_members, named


def _join(wishes: Wishes, process: int, request: group_api.JoinGroupRequest) -> Iterator[Reason]:
    yield from _group(wishes, process, request)
    options = wishes.plan.consumer
    expected = options.session_timeout_ms, options.max_poll_interval_ms, (options.assignor,)
    names = tuple(name for name, _ in request.protocols)
    seen = request.session_timeout_ms, request.rebalance_timeout_ms, names
    if seen != expected:
        yield "session time-out, rebalance time-out and assignor", expected, seen


def _fetch(wishes: Wishes, process: int, request: broker_api.FetchRequest) -> Iterator[Reason]:
    committed = process in wishes.transforming or wishes.plan.consumer.isolation == READ_COMMITTED
    if request.read_committed is not committed:
        yield "read_committed", committed, request.read_committed
    if process not in wishes.groups:
        return
    topics = {one.topic for one in wishes.plan.operations if one.process == process}
    asked = {one.partition.topic for one in request.partitions}
    if not asked <= topics:
        yield "topics", sorted(topics), sorted(asked)


_OF_MEMBERS: Mapping[type, Callable[[Wishes, int, Any], Iterator[Reason]]] = {
    broker_api.FetchRequest: _fetch,
    group_api.JoinGroupRequest: _join,
    group_api.SyncGroupRequest: _group,
    group_api.HeartbeatRequest: _group,
    group_api.LeaveGroupRequest: _group,
    group_api.OffsetCommitRequest: _group,
    group_api.OffsetFetchRequest: _group,
}
"""By class of the request."""
