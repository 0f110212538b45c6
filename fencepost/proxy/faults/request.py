"""A request as faults see it: what it names, and what is planned for its answer.

Owns that view, and the form of what is carried out. Must not know any fault's schedule.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.fault import RequestFault
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Cut, Delay, Drop, Hold, Replace, Silence, Verdict
from fencepost.wire.names import api_name
from fencepost.wire.shapes import group_of, is_answered, member_of, partitions_of, topics_of


@define(eq=False)
class Asked:
    """header, body: of the request."""

    header: RequestHeader
    body: Any
    # Kafka's name.
    api: str = field(init=False)
    _partitions: tuple[TopicPartition, ...] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.api = api_name(self.header.api_key)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """That it names."""
        if self._partitions is None:
            self._partitions = tuple(partitions_of(self.body))
        return self._partitions

    @property
    def group(self) -> str | None:
        """Its consumer group."""
        return group_of(self.body)

    @property
    def member(self) -> str:
        """The member that asks, empty without one."""
        return member_of(self.body)

    @property
    def answered(self) -> bool:
        """Whether it has an answer at all."""
        return is_answered(self.body)

    def hit(self, topic: str, partition: int) -> tuple[TopicPartition, ...]:
        """Its partitions of this topic ("" for every one), with this number (-1 for all)."""
        return tuple(
            key
            for key in self.partitions
            if topic in ("", key.topic) and (partition < 0 or key.partition == partition)
        )

    def names(self, topic: str, partition: int) -> bool:
        """Whether it is about this topic: it names it, or asks for all there are."""
        if self.partitions:
            return bool(self.hit(topic, partition))
        names = topics_of(self.body)
        return topic in names or (self.api == "Metadata" and not names)

    def from_client(self, pattern: str) -> bool:
        """Whether its client id is this, or begins so if the pattern ends in *."""
        client = self.header.client_id or ""
        if pattern.endswith("*"):
            return client.startswith(pattern[:-1])
        return pattern in ("", client)


@frozen(kw_only=True)
class Plan:
    """What happens to the answer of a request."""

    fault: RequestFault
    # Rows that are put into the answer: those of partitions that were taken out of the request.
    extra: Any = None
    # Whether the fault strikes with the answer; otherwise it has struck with the request.
    counts: bool = False


@frozen(kw_only=True)
class Carried:
    """What a fault makes of a request or an answer."""

    verdict: Verdict = PASS
    # Of the fault.
    number: int = 0
    # For the answer.
    plan: Plan | None = None
    # How long it lasts from now.
    lasts_ms: int = 0
    # What starts to last when it strikes.
    begin: Callable[[], None] | None = None
    # How long the connection is not read from now.
    mute_ms: int = 0

    def after(self, milliseconds: int) -> Verdict:
        """The verdict on a request that waits first."""
        if not milliseconds or isinstance(self.verdict, Cut | Silence | Drop | Hold):
            return self.verdict
        if isinstance(self.verdict, Delay):
            return Delay(self.verdict.milliseconds + milliseconds, self.verdict.body)
        return Delay(milliseconds, self.verdict.body if isinstance(self.verdict, Replace) else None)
