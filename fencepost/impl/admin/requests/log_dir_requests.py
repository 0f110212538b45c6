"""DescribeLogDirs: the sizes of this broker's replicas. Owns the response. Must not know files."""

from collections.abc import Mapping

from attrs import define

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages.admin_api import DescribedLog, DescribeLogDirsRequest, DescribeLogDirsResponse
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.traces.kafka_names.outcomes import ErrorCode


@define
class LogRequests:
    """partitions: the replicas of this broker."""

    broker_context: BrokerContext
    partitions: Mapping[TopicPartition, Partition]

    def describe(self, source: int, request: DescribeLogDirsRequest) -> None:
        """Answer with sizes and lags. Partitions without a replica here are left out, as in Kafka.

        Args:
            source: the client.
            request: the partitions.
        """
        keys = sorted(self.partitions if request.partitions is None else set(request.partitions))
        logs = tuple(self._described(self.partitions[key]) for key in keys if key in self.partitions)
        response = DescribeLogDirsResponse(
            correlation_id=request.correlation_id, error=ErrorCode.NONE, logs=logs
        )
        self.broker_context.reply(source, response, request.correlation_id)

    @staticmethod
    def _described(partition: Partition) -> DescribedLog:
        log = partition.log
        return DescribedLog(
            partition=partition.key,
            size=sum(segment.size for segment in log.segments.all),
            offset_lag=max(partition.high_watermark - log.log_end_offset, 0),
        )
