"""Maintenance of a broker's logs: retention and compaction (L4; Kafka's LogManager and LogCleaner without
their threads).

Owns when each happens, and which log is cleaned next: the one with the largest dirty part. Must not know
roles: logs of leaders and followers are treated alike, each by its own high watermark.
"""

import msgspec
from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.log.batch.header import CorruptBatchError
from fencepost.impl.log.cleaner import Cleaned, Cleaner
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.retention import Retention
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name

RETENTION_TIMER = ("log_retention",)
CLEANER_TIMER = ("log_cleaner",)
PPM = 1_000_000
PRODUCER_EXPIRATION_MS = 86_400_000
"""producer.id.expiration.ms: how long a log remembers a silent idempotent producer. This bounds the number of
producers."""


@define
class LogManager:
    """The maintenance of one broker's logs."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Every replica here.
    partitions: dict[TopicPartition, Partition]
    # The log directory.
    logs: LogDirectory
    # Decides which segments are deleted.
    retention: type[Retention] = Retention
    # Compacts a log.
    cleaner: type[Cleaner] = Cleaner
    # Logs in which the cleaner found a damaged batch. They are not cleaned until the process restarts, as in
    # Kafka (KIP-346).
    uncleanable: dict[TopicPartition, None] = field(factory=dict)
    # Whether the cleaner runs.
    cleaning: bool = False

    def start(self) -> None:
        """Start the maintenance. Without a compacted topic there is no cleaner."""
        self.broker_context.set_timer(
            RETENTION_TIMER, self.broker_context.options.log_retention_check_interval_ms
        )
        compacted = any("compact" in topic.cleanup_policy for topic in self.broker_context.options.topics)
        if compacted or self.broker_context.options.groups.offsets_topic_partitions:
            self.begin_cleaning()

    def begin_cleaning(self) -> None:
        """Start the cleaner if it does not run."""
        if not self.cleaning:
            self.cleaning = True
            self.broker_context.set_timer(CLEANER_TIMER, self.broker_context.options.log_cleaner_backoff_ms)

    # ---- retention

    def retain(self) -> None:
        """Remove old segments of every log."""
        context = self.broker_context
        now_ms = context.now // MILLISECOND
        for _, partition in sorted(self.partitions.items()):
            before = partition.log.log_start_offset
            self.retention(partition.log).apply(high_watermark=partition.high_watermark, now_ms=now_ms)
            if partition.log.log_start_offset != before:
                partition.log_start_moved(cause="retention")
                partition.assert_bounds()
            partition.log.producers.expire(now_ms, PRODUCER_EXPIRATION_MS)
        context.set_timer(RETENTION_TIMER, context.options.log_retention_check_interval_ms)

    # ---- compaction

    def clean(self) -> None:
        """Clean the log with the largest dirty part, if it is dirty enough."""
        filthy = [
            (ratio, partition)
            for _, partition in sorted(self.partitions.items())
            if partition.log.options.compact
            and partition.key not in self.uncleanable
            and (ratio := self.dirty_ppm(partition))
            and ratio >= self.broker_context.topic_options(partition.key.topic).min_cleanable_dirty_ppm
        ]
        if filthy:
            _, partition = max(filthy, key=lambda entry: entry[0])
            self._clean(partition)
        self.broker_context.set_timer(CLEANER_TIMER, self.broker_context.options.log_cleaner_backoff_ms)

    def dirty_ppm(self, partition: Partition) -> int:
        """The dirty part of the cleanable log, per million."""
        log, first_dirty = partition.log, self.logs.first_dirty.get(partition.key, 0)
        if len(log.segments) == 1:
            return 0  # the active one, which stays as it is
        bound = self.cleaner(log).clean_below(partition.high_watermark)
        sizes = [
            (segment.base_offset >= first_dirty, segment.size)
            for segment, following in zip(log.segments.all, log.segments.all[1:], strict=False)
            if following.base_offset <= bound
        ]
        total = sum(size for _, size in sizes)
        return sum(size for dirty, size in sizes if dirty) * PPM // total if total else 0

    def _clean(self, partition: Partition) -> None:
        try:
            cleaned: Cleaned = self.cleaner(partition.log).clean(
                first_dirty_offset=self.logs.first_dirty.get(partition.key, 0),
                high_watermark=partition.high_watermark,
                now_ms=self.broker_context.now // MILLISECOND,
            )
        except CorruptBatchError:
            self.uncleanable[partition.key] = None
            return
        self.logs.first_dirty[partition.key] = cleaned.first_dirty_offset
        self.broker_context.record(
            Name.COMPACTED,
            partition.key,
            offset=cleaned.first_dirty_offset,
            detail=msgspec.json.encode(
                {
                    "records_dropped": cleaned.records_dropped,
                    "bytes_before": cleaned.bytes_before,
                    "bytes_after": cleaned.bytes_after,
                }
            ).decode(),
        )
