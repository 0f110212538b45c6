"""The leader's high watermark (R3): the least log end offset over the ISR and the replicas about to join it."""

from attrs import define

from fencepost.impl.replication.partition import Partition


@define
class HighWatermark:
    """The rule by which a leader moves its high watermark."""

    def advance(self, partition: Partition) -> bool:
        """Raise it as far as every member of the maximal ISR allows; never lower it. Returns whether it moved."""
        ends = [
            partition.log.log_end_offset
            if member == partition.shell.node
            else partition.followers[member].log_end_offset
            if member in partition.followers
            else -1
            for member in sorted(partition.maximal_isr)
        ]
        lowest = min(ends, default=-1)
        return lowest > partition.high_watermark and partition.set_high_watermark(lowest, cause="leader")
