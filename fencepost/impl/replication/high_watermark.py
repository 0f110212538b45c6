"""The leader's high watermark (R3): the least log end offset over the ISR and the replicas about to join
it."""

from attrs import define

from fencepost.impl.replication.partition import Partition


@define
class HighWatermark:
    """The rule by which a leader moves its high watermark."""

    def advance(self, partition: Partition) -> bool:
        """Raise the high watermark as far as every member of the maximal ISR allows; never lower it. Returns
        whether it moved."""
        lowest, known = partition.log.log_end_offset, partition.high_watermark
        if lowest <= known:
            return False
        followers, members = partition.followers, partition.maximal_isr
        for member in members:
            if member != partition.broker_context.node:
                end = followers[member].log_end_offset if member in followers else -1
                if end <= known:
                    return False
                if end < lowest:
                    lowest = end
        return bool(members) and lowest > known and partition.set_high_watermark(lowest, cause="leader")
