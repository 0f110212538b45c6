"""The requests that clients send to a broker of a simulated cluster: whether each is what the plan asks for,
and whether it is answered, and rightly.

Owns the requests under way. It only reads: a run is the same with it. What is wrong is recorded as an event
(ANSWERED), and judged by the check `meantime`. Not asked for: requests between brokers, which are sent again
until they are answered; JoinGroup and SyncGroup, which wait for other members, are compared but need no
answer.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.asked.simulated import ASKER_NODE
from fencepost.campaign.observed import transactional
from fencepost.campaign.observed.differences import Differences, place_of
from fencepost.campaign.observed.justified import (
    OFFSETS_TOPIC,
    Asked,
    Reason,
    coordinated_in,
    is_member,
    partition_of,
    reasons,
    standing,
)
from fencepost.campaign.observed.observed_state import ObservedState
from fencepost.campaign.observed.requested import Wishes
from fencepost.campaign.observed.shares import wrong_shares
from fencepost.impl.messages import broker_api, group_api
from fencepost.impl.messages.names import name_of
from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import FIRST_CLIENT_NODE
from fencepost.traces.events import Event
from fencepost.traces.operations import ACKS_NONE
from fencepost.traces.outcomes import ErrorCode

PATIENT = frozenset({group_api.JoinGroupRequest, group_api.SyncGroupRequest})
"""Requests that wait for other members."""
SLACK_MS = 10_000
"""How long a broker may take: far above the time that any of its writes may wait, offsets.commit.timeout.ms
(5 s) included."""


@define(eq=False)
class AnswerTap:
    """The requests of one incarnation of a broker."""

    node: int
    # The broker, or None if it is down.
    core: Callable[[], Any]
    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    wishes: Wishes
    # What ZooKeeper holds.
    state: ObservedState = field(factory=ObservedState)
    # Static members that a deposed coordinator fenced: client and member id. It did what it knew, and does
    # not know the id that a later coordinator gave the member.
    fenced_by_deposed: set[tuple[int, str]] = field(factory=set)
    # By client and correlation id.
    asked: dict[tuple[int, int], Asked] = field(factory=dict)
    # The latest arrival of a request that is answered. A broker handles requests in the order of their
    # arrival, so that all earlier ones have been handled, too.
    handled: int = -1
    differences: Differences = field(init=False)

    @differences.default
    def _none_yet(self) -> Differences:
        return Differences(self.now, self.record)

    def received(self, source: int, message: Any) -> None:
        """A request arrived at a running broker.

        Args:
            source: the client.
            message: its request.
        """
        core = self.core()
        if core is None or core.broker_context.broker_epoch < 0 or core.shutdown.shutting_down:
            return  # it does not serve anybody
        if source == ASKER_NODE:
            return  # no plan says what the run itself asks
        member = type(message) in PATIENT and is_member(core, message)
        before = transactional.before(core, message)
        before = standing(core, message) if before is None else before
        asked = Asked(message, self.now(), before, member)
        if type(message) is not broker_api.ProduceRequest or message.acks != ACKS_NONE:
            self.asked[source, message.correlation_id] = asked
        for reason in self.wishes.refuted(source - FIRST_CLIENT_NODE, message):
            self._add(asked, "unplanned", reason)
        if type(message) is group_api.SyncGroupRequest:
            for reason in wrong_shares(core, self.wishes.plan, message):
                self._add(asked, "unplanned", reason)

    def answered(self, target: int, message: Any) -> None:
        """A message leaves for a client.

        Args:
            target: the client.
            message: the answer.
        """
        asked = self.asked.pop((target, message.correlation_id), None)
        core = self.core()
        if asked is None or core is None:
            return
        for rules in (reasons, transactional.reasons):
            for reason in rules(core, asked, message):
                self._add(asked, "wrong", reason)
        if getattr(message, "error", None) is ErrorCode.FENCED_INSTANCE_ID and self._is_deposed(core, asked):
            self.fenced_by_deposed.add((target, asked.request.member_id))
        if asked.member and message.error is ErrorCode.UNKNOWN_MEMBER_ID and asked.since < self.handled:
            self._expelled(asked)
        self.handled = max(self.handled, asked.since)

    def _is_deposed(self, core: Any, asked: Asked) -> bool:
        """Whether the group's partition has a later leader epoch than that in which it coordinates."""
        number, epoch = coordinated_in(core, asked.request.group_id)
        return epoch < self.state.partition((OFFSETS_TOPIC, number)).leader_epoch

    def _expelled(self, asked: Asked) -> None:
        """A member whose JoinGroup or SyncGroup waits cannot send heartbeats, so that its session goes on:
        only a LeaveGroup removes it."""
        group = asked.request.group_id
        requests = (one.request for one in self.asked.values())
        if not any(type(one) is group_api.LeaveGroupRequest and one.group_id == group for one in requests):
            self._add(asked, "wrong", ("member", "it stays while its request waits", "UNKNOWN_MEMBER_ID"))

    def ended(self) -> None:
        """The incarnation or the run ends: who still waits?"""
        core, now = self.core(), self.now()
        stops = core is None or core.shutdown.shutting_down
        for asked in () if stops else self.asked.values():
            request = asked.request
            wait = getattr(request, "timeout", 0) or getattr(request, "max_wait", 0)
            wait = wait if isinstance(wait, int) else 0
            if type(request) not in PATIENT and now - asked.since > wait + SLACK_MS * MILLISECOND:
                waited = (now - asked.since) // MILLISECOND
                self._add(asked, "never", ("", "an answer", f"none within {waited} ms"))
        self.asked.clear()

    def _add(self, asked: Asked, cause: str, reason: Reason) -> None:
        request = asked.request
        kind, place = name_of(request), place_of(partition_of(request))
        more = {"correlation": request.correlation_id, "since": asked.since}
        self.differences.add(self.node, cause, place, kind, reason, **more)
