"""What every replica's log contains up to its own high watermark, as digests that can be compared.

Owns the digests. Must not compare: replicas may differ below the point that a cleaner has reached, and where
one has deleted more than another.
"""

import hashlib
from bisect import bisect_right
from typing import Any

from fencepost.asked.replica_reading import Extent, read
from fencepost.asked.step import Part, Scope, Step, seen
from fencepost.asked.survey import INTERNAL, Survey
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.record_batch import Record
from fencepost.traces.events import Question

RANGE = 64
"""Offsets of one range: ranges end at its multiples."""
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
        if key.topic in INTERNAL:
            continue
        found: list[tuple[Step, Extent]] = []
        for replica in survey.replicas(key):
            step = Step(
                broker=replica, question=Question.CONTENT, request=None, key=key, leader=survey.leader(key)
            )
            extent = yield from read(step, survey.log_starts.get((key, replica), 0))
            if extent.whole is not None:
                found.append((step, extent))
        yield from _told(scope, found)


def _told(scope: Scope, found: list[tuple[Step, Extent]]) -> Part:
    """The events of one partition. Ranges are also cut where all replicas begin and where the first one
    ends: a follower learns the high watermark later than its leader."""
    read_ones = [extent for _, extent in found if not extent.error or extent.batches]
    cuts = {max((one.start for one in read_ones), default=0)}
    cuts.add(min((one.end_offset for one in read_ones), default=0))
    for step, extent in found:
        assert extent.whole is not None, "it was asked"
        if extent.error and not extent.batches:
            yield seen(scope, step, extent.whole, error=extent.error)
            continue
        yield seen(
            scope,
            step,
            extent.whole,
            error=extent.error,
            detail=_digests(extent, cuts),
            log_start_offset=extent.log_start_offset,
            high_watermark=extent.high_watermark,
            end_offset=extent.end_offset,
        )


def _digests(extent: Extent, cuts: set[int]) -> dict[str, Any]:
    multiples = range((extent.start // RANGE + 1) * RANGE, extent.end_offset, RANGE)
    inner = {cut for cut in (*cuts, *multiples) if extent.start < cut < extent.end_offset}
    bounds = sorted({extent.start, extent.end_offset, *inner})
    ranges = [hashlib.blake2b(digest_size=DIGEST_BYTES) for _ in bounds]
    keys: dict[str, list[Any]] = {}
    markers: list[list[Any]] = []
    for header, records in extent.batches:
        for record in records:
            end = end_transaction_of(record) if header.is_control else None
            if end is not None:
                markers.append([record.offset, header.producer_id, header.producer_epoch, end.commit])
            if header.is_control or record.offset < extent.start:
                continue
            data = _bytes(record, header.leader_epoch)
            ranges[bisect_right(bounds, record.offset) - 1].update(data)
            if record.key is not None:
                last = hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
                keys[hashlib.blake2b(record.key, digest_size=DIGEST_BYTES).hexdigest()] = [
                    record.offset,
                    last,
                ]
    return {
        "ranges": [
            [first, end, digest.hexdigest()]
            for first, end, digest in zip(bounds, bounds[1:], ranges, strict=False)
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
