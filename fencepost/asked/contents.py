"""What every replica's log contains up to its own high watermark, as digests that can be compared.

Owns the digests. Must not compare: replicas may differ below the point that a cleaner has reached, and where
one has deleted more than another.
"""

import hashlib
from typing import Any

from fencepost.asked.reading import Extent, read
from fencepost.asked.step import Part, Scope, Step, seen
from fencepost.asked.survey import INTERNAL, Survey
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.record_batch import Record
from fencepost.traces.events import Question

RANGE = 64
"""Offsets of one range: all ranges but the first and the last of a replica begin and end at its multiples."""
DIGEST_BYTES = 6
"""A run compares a few thousand ranges: two that differ look alike once in 10^10 runs."""
MOST_KEYS = 200
"""Of one replica."""


def contents(scope: Scope, survey: Survey) -> Part:
    """Read every replica of the run's topics.

    Args:
        scope: of the round.
        survey: who has replicas, and where their logs begin.
    """
    for key in survey.of_interest():
        for replica in survey.replicas(key) if key.topic not in INTERNAL else ():
            step = Step(
                broker=replica,
                question=Question.CONTENT,
                request=None,
                key=key,
                leader=survey.leader(key),
            )
            extent = yield from read(scope, step, survey.log_starts.get((key, replica), 0))
            if extent.whole is not None and not extent.batches and extent.error:
                yield seen(scope, step, extent.whole, error=extent.error)
            elif extent.whole is not None:
                yield seen(
                    scope,
                    step,
                    extent.whole,
                    error=extent.error,
                    detail=_digests(extent, survey.log_starts.get((key, replica), 0)),
                    log_start_offset=extent.log_start_offset,
                    high_watermark=extent.high_watermark,
                    end_offset=extent.end_offset,
                )


def _digests(extent: Extent, start: int) -> dict[str, Any]:
    ranges: dict[int, Any] = {}
    keys: dict[str, list[Any]] = {}
    markers: list[list[Any]] = []
    for header, records in extent.batches:
        for record in records:
            end = end_transaction_of(record) if header.is_control else None
            if end is not None:
                markers.append([record.offset, header.producer_id, header.producer_epoch, end.commit])
            if header.is_control or record.offset < start:
                continue
            data = _bytes(record, header.leader_epoch)
            ranges.setdefault(record.offset // RANGE, hashlib.blake2b(digest_size=DIGEST_BYTES)).update(data)
            if record.key is not None:
                last = hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
                keys[hashlib.blake2b(record.key, digest_size=DIGEST_BYTES).hexdigest()] = [
                    record.offset,
                    last,
                ]
    return {
        "ranges": [
            [max(start, number * RANGE), min(extent.end_offset, (number + 1) * RANGE), one.hexdigest()]
            for number, one in sorted(ranges.items())
        ],
        "keys": dict(sorted(keys.items())[:MOST_KEYS]),
        "markers": markers,
        **({"cut": True} if extent.cut else {}),
    }


def _bytes(record: Record, leader_epoch: int) -> bytes:
    parts = [f"{record.offset} {leader_epoch}".encode()]
    for data in (record.key, record.value):
        parts.append(b"-" if data is None else b"%d:" % len(data) + data)
    return b" ".join(parts)
