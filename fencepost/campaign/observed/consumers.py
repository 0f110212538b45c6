"""What a simulated consumer in a group does, compared with what it promises: it asks the leader that it
knows, begins with each new assignment where a broker said, and commits what its polls returned, as its mode
says.

Owns the polls and commits of one consumer's process. It only reads: a run is the same with it. What is wrong
is recorded as an event (ANSWERED), and judged by the check `meantime`. Not asked: commits after the consumer
had to look for its coordinator, as it may have given them up without a request; mode `auto`, which commits by
time; processes that commit in transactions, which also seek.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.campaign.observed.differences import NOWHERE, Differences
from fencepost.campaign.observed.justified import Reason
from fencepost.campaign.observed.resting_clients import contradictions_in_client
from fencepost.campaign.observed.rows import REST_EVERY, asks_leader
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.messages import broker_api, group_api
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.sim.host import Host
from fencepost.traces.events import Event
from fencepost.traces.operations import Function, Operation, Position

AT_EACH_POLL = frozenset({"sync", "async", "before"})
"""Modes with a commit after each poll that returned records."""
TO_LEADERS = frozenset({broker_api.FetchRequest, broker_api.ListOffsetsRequest})
Owner = tuple[str | None, int | None]
"""Member and generation."""


@define(eq=False)
class ConsumerTap:
    """The messages and rows of one consumer's process."""

    host: Host
    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    # Member and generation of the last poll.
    owner: Owner = (None, None)
    # The last poll with records that is complete; None if its records are committed.
    poll: Operation | None = None
    # What was committed since the last poll began.
    commits: list[Position] = field(factory=list)
    # Whether it looked for its coordinator since then.
    lost: bool = False
    # Of the present assignment: the offsets that brokers answered, by partition, and the partitions that were
    # read.
    begins: dict[TopicPartition, set[int]] = field(factory=dict)
    begun: set[TopicPartition] = field(factory=set)
    # By correlation id: the partition of a ListOffsets.
    listing: dict[int, TopicPartition] = field(factory=dict)
    # Answers that arrived: how many, and to which requests since the consumer rested last.
    arrived: int = 0
    answered: set[int] = field(factory=set)
    differences: Differences = field(init=False)

    @differences.default
    def _none_yet(self) -> Differences:
        return Differences(self.now, self.record)

    def received(self, source: int, message: Any) -> None:
        """An answer arrived.

        Args:
            source: the broker.
            message: its answer.
        """
        core, kind = self.host.core, type(message)
        self.arrived += 1
        if core is not None and self.host.rests:
            if not self.answered.isdisjoint(core.desk.waiting):
                numbers = sorted(self.answered.intersection(core.desk.waiting))
                self._at_rest((f"requests {numbers}", "none waits: they are answered", "they wait"))
            self.answered.clear()
            if self.arrived % REST_EVERY == 0:
                for reason in contradictions_in_client(core, self.host.timers):
                    self._at_rest(reason)
        self.answered.add(message.correlation_id)
        if kind is group_api.SyncGroupResponse and core is not None:
            if message.correlation_id in core.desk.waiting:
                self.begins, self.begun = {}, set()
        elif kind is group_api.OffsetFetchResponse:
            for one in message.offsets:
                self.begins.setdefault(one.partition, set()).add(one.offset)
        elif kind is broker_api.ListOffsetsResponse and message.correlation_id in self.listing:
            self.begins.setdefault(self.listing.pop(message.correlation_id), set()).add(message.offset)

    def sent(self, target: int, message: Any) -> None:
        """A request leaves.

        Args:
            target: the broker.
            message: the request.
        """
        kind = type(message)
        if kind is group_api.FindCoordinatorRequest:
            self.lost = True
        elif kind in TO_LEADERS and self.host.core is not None:
            for reason in asks_leader(self.host.core, target, message):
                self.differences.add(self.host.node, "unknown_leader", NOWHERE, kind.__name__, reason)
            if kind is broker_api.ListOffsetsRequest:
                self.listing[message.correlation_id] = message.partition
            elif isinstance(self.host.core, Consumer) and not isinstance(
                self.host.core.application, TransformLoop
            ):
                self._begins(message)

    def _begins(self, request: broker_api.FetchRequest) -> None:
        """The first fetch of a partition in an assignment goes where a broker said, since then."""
        for one in request.partitions:
            if one.partition in self.begun:
                continue
            self.begun.add(one.partition)
            answered = self.begins.get(one.partition, set())
            if one.offset not in answered:
                reason = f"first position in {one.partition} of an assignment", sorted(answered), one.offset
                self.differences.add(self.host.node, "unknown_leader", NOWHERE, "Fetch", reason)

    def _at_rest(self, reason: Reason) -> None:
        self.differences.add(self.host.node, "resting", NOWHERE, "a state", reason)

    def ended(self) -> None:
        """The process ends."""
        self.owner, self.poll, self.lost = (None, None), None, False
        self.commits.clear()
        self.begins, self.begun = {}, set()
        self.listing.clear()
        self.answered.clear()

    def began(self, row: Operation) -> None:
        """A row begins.

        Args:
            row: so far.
        """
        if row.function is Function.COMMIT:
            self.commits += row.positions
        elif row.function is Function.JOIN:  # a member anew, if the group began anew with the same name
            self.poll = None
        elif row.function is Function.POLL:
            owner = row.member, row.generation
            if owner == self.owner and not self.lost and self._asked():
                self._due(row)
            self.owner, self.poll, self.lost = owner, None, False
            self.commits.clear()

    def completed(self, row: Operation) -> None:
        """A row is complete.

        Args:
            row: as the consumer reports it.
        """
        if row.function is Function.POLL and row.records:
            self.poll = row

    def _asked(self) -> bool:
        core = self.host.core
        return isinstance(core, Consumer) and core.options.commit in AT_EACH_POLL

    def _due(self, later: Operation) -> None:
        """The records of the last poll should be committed now."""
        if self.poll is None:
            return
        ends = {(one.topic, one.partition): one.offset + 1 for one in self.poll.records}
        for (topic, partition), end in sorted(ends.items()):
            offsets = [one.offset for one in self.commits if (one.topic, one.partition) == (topic, partition)]
            if max(offsets, default=-1) < end:
                reason = (
                    f"commit of poll {self.poll.op_id} of {later.member} in group {later.group}",
                    f"{topic}-{partition} up to {end} before poll {later.op_id}",
                    sorted(offsets),
                )
                place = topic, partition
                self.differences.add(self.host.node, "uncommitted", place, "OffsetCommit", reason)
