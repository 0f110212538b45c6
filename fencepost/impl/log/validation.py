"""The checks of a produced batch before it is appended, as in Kafka's LogValidator.

Owns the rules and their bounds. Must not know partitions, leaders or responses: a refusal has Kafka's error
code. A refused batch is not in the log, and nothing of it was decompressed beyond the bound. The
coordinator's own batches and those that a follower copies are not checked here, as in Kafka (AppendOrigin).
The checks, in the order of cost:

1. the size of the whole batch
2. checksum and header (batch/header.py)
3. claims that a client may not make: control records, a delete horizon, the broker's time, gaps, no records,
   incomplete producer fields
4. the bounds on records and on their bytes, before and while they are decompressed
5. every record: its lengths, its offset delta, its time, its key if the topic is compacted
"""

from functools import lru_cache

from fencepost.impl.log.batch.compression import DecompressionError, TooMuchDataError, decompress
from fencepost.impl.log.batch.header import (
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from fencepost.impl.log.batch.record_batch import HEADER_SIZE
from fencepost.impl.log.batch.record_walk import Walked, examine
from fencepost.impl.log.batch.stamping import with_max_timestamp
from fencepost.impl.log.log_options import LogOptions
from fencepost.traces.errors import FencepostError
from fencepost.traces.kafka_names.outcomes import ErrorCode

MOST_PRODUCED_RECORDS = 262_144
"""The most records of one produced batch. Kafka has no such bound: max.message.bytes allows 149,796 of the
smallest records, compression any number. Each record becomes an object of about 300 bytes in a consumer, so
this many take 80 MB there."""
MOST_PRODUCED_BYTES = 16 * 1024 * 1024
"""The most decompressed bytes of the records of one produced batch: 16 times max.message.bytes. Kafka has no
such bound; text shrinks to a tenth."""
MANY_RECORDS = 2_048
"""Records of a batch that is checked outside the loop that serves others: it takes 20 ms to check and decode
them, a turn of the pace."""
KNOWN_WALKS = 2
"""Batches of so many records whose summary is cached: the one that is appended now, and the one before."""
LATEST_TIMESTAMP_MS = (1 << 63) - 1


class RefusedBatchError(FencepostError):
    """A produced batch that may not be appended. error: the error code for its producer."""

    def __init__(self, error: ErrorCode, *, expected: str, seen: str) -> None:
        self.error = error
        super().__init__(expected=expected, seen=seen, where="produced batch")


def validated(data: bytes, options: LogOptions) -> bytes:
    """The batch as it may be appended.

    data: the bytes from the client. options: of the partition's log. Returns the same bytes, except that a
    wrong max timestamp is corrected, as in Kafka. Raises CorruptBatchError if the bytes are not a whole
    batch, RefusedBatchError if the batch may not be appended.
    """
    if len(data) > options.max_message_bytes:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            expected=f"at most {options.max_message_bytes} bytes (max.message.bytes)",
            seen=f"{len(data)}",
        )
    header = checked_header(data)
    walked = checked_records(data, header)
    if options.compact and walked.keyless:
        raise _invalid("a key in each record of a compacted topic", f"{walked.keyless} records without one")
    last = header.base_timestamp_ms + walked.largest_time_delta_ms
    return data if header.max_timestamp_ms == last else with_max_timestamp(data, last)


def checked_records(data: bytes, header: BatchHeader) -> Walked:
    """Check every record of a produced batch, in bounded memory.

    Args:
        data: the bytes from the client.
        header: as `checked_header` returns it.

    Returns:
        a summary of the records; of a batch with many of them it stays cached for who checks it next.

    Raises:
        RefusedBatchError: whatever the options of the log, the batch may not be appended.
    """
    return (_walked_large if header.count >= MANY_RECORDS else _walked)(data, header)


def checked_header(data: bytes) -> BatchHeader:
    """The header of a produced batch that its own fields do not refuse: no record is read for that.

    data: the bytes from the client. Raises CorruptBatchError, RefusedBatchError.
    """
    header = read_header(data)
    _check_claims(header, len(data))
    if header.count > MOST_PRODUCED_RECORDS:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            expected=f"at most {MOST_PRODUCED_RECORDS} records",
            seen=f"{header.count}",
        )
    return header


def _check_claims(header: BatchHeader, size: int) -> None:
    """Claims that only a broker may make, and fields that contradict each other."""
    if header.size != size:
        raise _invalid("one batch", f"{size - header.size} bytes after it")
    if header.is_control:
        raise _invalid("no control records from a client", "a control batch")
    if header.attributes & DELETE_HORIZON:
        raise _invalid("no delete horizon from a client", "one")
    if header.base_offset:
        raise _invalid("offsets that count from 0", f"base offset {header.base_offset}")
    if not header.count or header.count != header.last_offset_delta + 1:
        raise _invalid(f"{header.last_offset_delta + 1} records, one for each offset", f"{header.count}")
    if header.producer_id < NO_PRODUCER_ID:
        raise _invalid("a producer id of at least 0, or -1 for none", f"{header.producer_id}")
    if header.producer_id != NO_PRODUCER_ID and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise _invalid(
            f"an epoch and a sequence of at least 0 of producer {header.producer_id}",
            f"epoch {header.producer_epoch}, sequence {header.base_sequence}",
        )
    if header.is_transactional and header.producer_id == NO_PRODUCER_ID:
        raise _invalid("a producer id in a transactional batch", "none")
    if header.attributes & LOG_APPEND_TIME:
        raise RefusedBatchError(
            ErrorCode.INVALID_TIMESTAMP, expected="timestamps of type create from a client", seen="log append"
        )


def _walked(data: bytes, header: BatchHeader) -> Walked:
    try:
        if header.codec == "none":
            walked = examine(data, header.count, header.last_offset_delta, HEADER_SIZE)
        else:
            payload = decompress(header.codec, data[HEADER_SIZE:], bound=MOST_PRODUCED_BYTES)
            walked = examine(payload, header.count, header.last_offset_delta)
    except TooMuchDataError as error:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            expected=f"at most {MOST_PRODUCED_BYTES} bytes of records when decompressed",
            seen=str(error),
        ) from None
    except (IndexError, ValueError, DecompressionError) as error:
        seen = "records that end too early" if isinstance(error, IndexError) else str(error)
        raise _invalid(f"{header.count} records, codec {header.codec}", seen) from None
    _check_times(header, walked)
    return walked


_walked_large = lru_cache(maxsize=KNOWN_WALKS)(_walked)


def _check_times(header: BatchHeader, walked: Walked) -> None:
    first = header.base_timestamp_ms + walked.smallest_time_delta_ms
    last = header.base_timestamp_ms + walked.largest_time_delta_ms
    if first < NO_TIMESTAMP or last > LATEST_TIMESTAMP_MS:
        raise RefusedBatchError(
            ErrorCode.INVALID_TIMESTAMP,
            expected="timestamps from 0 on, in 64 bits, or -1 for none",
            seen=f"{first} to {last}",
        )


def _invalid(expected: str, seen: str) -> RefusedBatchError:
    return RefusedBatchError(ErrorCode.INVALID_RECORD, expected=expected, seen=seen)
