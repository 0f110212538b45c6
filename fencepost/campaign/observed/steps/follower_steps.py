"""What a leader learns of its followers step by step: who is caught up, who joins the in-sync replicas, and
who has to leave them (KIP-16, KAFKA-7128).

Owns the rule in its plainest form. It only reads. A follower is caught up if it has, now or at its last
fetch, everything that the leader had then; who was not for replica.lag.time.max.ms has to be removed when the
leader looks, and who has reached the high watermark and the start of the leader epoch has to be added.
"""

from collections.abc import Iterator
from typing import Any

from attrs import define, frozen

from fencepost.campaign.observed.justified import Reason
from fencepost.impl.core.core_interface import MessageArrived, TimerFired
from fencepost.impl.messages.broker_api import FetchRequest, TopicPartition

MILLISECOND = 1_000_000
FETCHES = 8
"""One of so many fetches of followers is looked at: they are nearly all of the messages."""
SHRINK = "isr_shrink"


@frozen(kw_only=True)
class Known:
    """What a leader knows of a follower, and of the partition, before a step."""

    # Log end of the leader.
    end: int
    # The latest offset that the follower asked for; -1 before the first.
    follower_end: int
    caught_up_at: int
    last_fetch_at: int
    end_at_fetch: int
    in_sync: bool
    # Whether a change of the ISR is under way.
    changes: bool


@define(eq=False)
class FollowerSteps:
    """The followers of one broker's partitions."""

    fetches: int = 0

    def watches(self, core: Any, input: Any) -> "StepOfFollowers | None":
        """Before a step: whether it is looked at.

        Args:
            core: the broker.
            input: of the step.

        Returns:
            the step; None if it is not.
        """
        if type(input) is TimerFired:
            return ShrinkStep(core) if input.key[0] == SHRINK else None
        if type(input) is not MessageArrived or type(input.message) is not FetchRequest:
            return None
        if input.message.replica_id < 0 or core.broker_context.broker_epoch < 0:
            return None
        self.fetches += 1
        return FetchStep(core, input.message) if self.fetches % FETCHES == 0 else None


class StepOfFollowers:
    """One step."""

    def judged(self) -> Iterator[Reason]:
        """What is wrong after the step.

        Yields:
            of what, expected, seen.
        """
        raise NotImplementedError


class FetchStep(StepOfFollowers):
    """A follower fetches."""

    def __init__(self, core: Any, request: FetchRequest) -> None:
        self.core, self.request = core, request
        self.known: dict[TopicPartition, tuple[int, Known]] = {}
        for one in request.partitions:
            partition = core.replicas.partitions.get(one.partition)
            if partition is None or partition.leader != core.broker_context.node:
                continue
            follower = partition.followers.get(request.replica_id)
            if follower is None or one.leader_epoch != partition.leader_epoch:
                continue
            end = partition.log.log_end_offset
            if partition.log.log_start_offset <= one.offset <= end:
                self.known[one.partition] = (
                    one.offset,
                    Known(
                        end=end,
                        follower_end=follower.log_end_offset,
                        caught_up_at=follower.caught_up_at,
                        last_fetch_at=follower.last_fetch_at,
                        end_at_fetch=follower.leader_end_at_fetch,
                        in_sync=request.replica_id in partition.isr,
                        changes=partition.pending_isr is not None,
                    ),
                )

    def judged(self) -> Iterator[Reason]:
        """Whether the leader noted the fetch as it should.

        Yields:
            of what, expected, seen.
        """
        core, replica = self.core, self.request.replica_id
        now = core.broker_context.now
        for key, (offset, before) in self.known.items():
            partition = core.replicas.partitions.get(key)
            follower = None if partition is None else partition.followers.get(replica)
            if follower is None:
                continue
            caught_up_at = before.caught_up_at
            if offset >= before.end:
                caught_up_at = now
            elif before.end_at_fetch >= 0 and offset >= before.end_at_fetch:
                caught_up_at = max(caught_up_at, before.last_fetch_at)
            expected = offset, caught_up_at, now, before.end
            seen = (
                follower.log_end_offset,
                follower.caught_up_at,
                follower.last_fetch_at,
                follower.leader_end_at_fetch,
            )
            if seen != expected:
                yield (
                    f"end, last time caught up, fetch and leader's end of {replica} in {key}",
                    expected,
                    seen,
                )
            if not before.in_sync and not before.changes:
                yield from self._joins(key, partition, offset)

    def _joins(self, key: TopicPartition, partition: Any, offset: int) -> Iterator[Reason]:
        core, replica = self.core, self.request.replica_id
        may = replica in partition.replicas and replica in core.metadata.live_brokers
        reached = offset >= max(partition.high_watermark, partition.epoch_start_offset)
        joins = replica in (partition.pending_isr or ()) or replica in partition.isr
        if joins != (may and reached):
            least = max(partition.high_watermark, partition.epoch_start_offset)
            expected = f"it joins from {least} on" if may else "it does not join: it is no live replica"
            yield f"ISR of {key} after a fetch of {replica} from {offset}", expected, joins


class ShrinkStep(StepOfFollowers):
    """The leader looks for members that lag."""

    def __init__(self, core: Any) -> None:
        self.core = core
        node = core.broker_context.node
        self.led = {
            key: partition.isr
            for key, partition in core.replicas.partitions.items()
            if partition.leader == node and partition.pending_isr is None
        }

    def judged(self) -> Iterator[Reason]:
        """Whether exactly those members have to leave that lag.

        Yields:
            of what, expected, seen.
        """
        context = self.core.broker_context
        limit = context.now - context.options.replica_lag_time_max_ms * MILLISECOND
        for key, isr in self.led.items():
            partition = self.core.replicas.partitions.get(key)
            if partition is None or partition.leader != context.node:
                continue
            end, followers = partition.log.log_end_offset, partition.followers
            known = [one for one in isr if one in followers]
            lags = [
                one
                for one in known
                if followers[one].log_end_offset != end and followers[one].caught_up_at < limit
            ]
            expected = tuple(one for one in isr if one not in lags) if lags else None
            if partition.pending_isr != expected:
                yield f"ISR of {key} that is proposed", expected, partition.pending_isr
