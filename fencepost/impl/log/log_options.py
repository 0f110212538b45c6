"""The options of a log; each has the name of Kafka's topic setting."""

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
    """The options of one log."""

    # segment.bytes: a segment is rolled at this size.
    segment_bytes: int = _at_least(1, 1024 * MEBIBYTE)
    # segment.ms: a segment is rolled at this age.
    segment_ms: int = _at_least(1, 7 * DAY_MS)
    # segment.index.bytes: the largest index of a segment.
    segment_index_bytes: int = _at_least(12, 10 * MEBIBYTE)
    # index.interval.bytes: bytes between two index entries.
    index_interval_bytes: int = _at_least(0, 4096)
    # flush.messages: sync after this many records; 0 for never (unsynced records are on other replicas).
    flush_messages: int = _at_least(0, 0)
    # retention.ms: the age at which segments are deleted; UNLIMITED to keep all.
    retention_ms: int = _at_least(UNLIMITED, 7 * DAY_MS)
    # retention.bytes: the size from which on the oldest segments are deleted; UNLIMITED to keep all.
    retention_bytes: int = _at_least(UNLIMITED, UNLIMITED)
    # cleanup.policy has delete. Without it, retention deletes nothing.
    delete: bool = True
    # cleanup.policy has compact: the latest record of each key stays. Gaps between offsets are then normal.
    compact: bool = False
    # This log was never compacted, so a gap is damage, and everything from it on is removed. Kafka has no
    # such setting: a topic may have been compacted at some time, so Kafka accepts gaps. A log that is opened
    # without this option accepts them too.
    contiguous: bool = False
    # delete.retention.ms: how long tombstones stay.
    delete_retention_ms: int = _at_least(0, DAY_MS)
    # max.message.bytes: the largest batch that a client may produce, header included. Kafka's default.
    max_message_bytes: int = _at_least(1, MEBIBYTE + 12)
    # message.timestamp.type is LogAppendTime.
    log_append_time: bool = False
    # producer.id.expiration.ms: a producer that is silent for longer is forgotten.
    producer_id_expiration_ms: int = _at_least(1, DAY_MS)

    @property
    def has_gaps(self) -> bool:
        """Whether a gap between offsets is legal."""
        return self.compact or not self.contiguous
