"""Bugs about who is in the ISR, and what its leader hears."""

from collections.abc import Collection

from fencepost.impl.controller.channels import Channel, Channels
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.messages.broker_api import LeaderAndIsrRequest
from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.zookeeper.znodes import LeaderAndIsr


class GivesALostRequestUp(Channels):
    """KAFKA-2729 (KAFKA-3042): a LeaderAndIsr that is not answered is not sent again. Its leader keeps the
    version of the state that it knew, and each of its ISR changes meets another one ("Cached zkVersion not
    equal to that in zookeeper, skip updating ISR"), for ever."""

    def resend_until_answered(self, channel: Channel) -> None:
        """Go on with the next one."""
        if isinstance(channel.queue[0], LeaderAndIsrRequest):
            channel.queue.popleft()
            channel.in_flight = 0
        if channel.queue:
            super().resend_until_answered(channel)


class TakesALostReplyForAConflict(InSyncReplicas):
    """KAFKA-1382: an ISR change is written, its reply is lost, and the retry meets its own version: the
    leader takes that for somebody else's write and gives up."""

    def accept_own_isr_write(self, current: object, state: LeaderAndIsr) -> int | None:
        """Accept nothing."""
        return None


class EmptiesTheIsr(LeaderElection):
    """KAFKA-708 (KAFKA-5083): when the last ISR member dies it is taken out as well, and nobody knows any
    more who held all that was committed."""

    def keep_last_isr_member(self, isr: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
        """Keep nobody."""
        return tuple(member for member in isr if member not in gone)


class TakesBackWhoStops(InSyncReplicas):
    """KAFKA-14140 (KIP-841): a broker that is about to stop has been taken out of the ISR; its last fetch
    brings it back in."""

    def staying_isr_members_only(self, member: int) -> bool:
        """Whoever has caught up."""
        return True
