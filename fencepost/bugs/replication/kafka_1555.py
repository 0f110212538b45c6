"""KAFKA-1555: an append is acknowledged with fewer replicas than min.insync.replicas, because the ISR shrank
while it waited."""

from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class AcknowledgesWithTooFew(LeaderRole):
    """Looks at the ISR before the append only."""

    def enough_after_append(self, partition: Partition) -> ErrorCode:
        """There are."""
        return ErrorCode.NONE
