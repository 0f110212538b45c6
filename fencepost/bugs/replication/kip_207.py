"""KIP-207 (KAFKA-2334): ListOffsets shows the high watermark of a new leader, which lags behind what the old
one showed."""

from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ShowsALaggingEnd(LeaderRole):
    """Answers at once."""

    def offset_not_available(self, partition: Partition) -> ErrorCode:
        """It always is."""
        return ErrorCode.NONE
