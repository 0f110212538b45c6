"""What can be set about a log; each name is Kafka's topic setting."""

from attrs import field, frozen
from attrs.validators import ge, instance_of

MEBIBYTE = 1024 * 1024
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
UNLIMITED = -1


def _at_least(low: int, default: int) -> int:
    return field(default=default, validator=[instance_of(int), ge(low)])


@frozen(kw_only=True)
class LogOptions:
    """flush_messages: sync after so many records, 0 for never by itself (what is not synced is on other
    replicas). retention_*: UNLIMITED to keep all; retention deletes nothing where `delete` is False. compact:
    the latest record of each key survives; gaps between offsets are then normal. contiguous: nobody ever
    compacted this log, so that a gap is damage and everything from it on goes. Kafka has no such setting: it
    takes gaps as they are, since a topic may have been compacted once, and so does a log that is opened
    without it."""

    segment_bytes: int = _at_least(1, 1024 * MEBIBYTE)
    segment_ms: int = _at_least(1, 7 * DAY_MS)
    segment_index_bytes: int = _at_least(12, 10 * MEBIBYTE)
    index_interval_bytes: int = _at_least(0, 4096)
    flush_messages: int = _at_least(0, 0)
    retention_ms: int = _at_least(UNLIMITED, 7 * DAY_MS)
    retention_bytes: int = _at_least(UNLIMITED, UNLIMITED)
    delete: bool = True
    compact: bool = False
    contiguous: bool = False
    delete_retention_ms: int = _at_least(0, DAY_MS)
    max_message_bytes: int = _at_least(1, MEBIBYTE + 12)
    """Of a batch that a client produces, header included; Kafka's default of max.message.bytes."""
    log_append_time: bool = False
    producer_id_expiration_ms: int = _at_least(1, DAY_MS)

    @property
    def has_gaps(self) -> bool:
        """Whether a gap between offsets may be what it is."""
        return self.compact or not self.contiguous
