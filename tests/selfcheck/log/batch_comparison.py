"""The log's reader and writer of batches, compared with the documentation: random batches, whole, damaged,
and badly written under a right checksum.

Owns the random batches and the comparison. Must not know logs or files. The log machine writes batches that
are right, and what a disk rots is found out by the checksum; what a writer got wrong is asked for here.
"""

import random
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from fencepost.impl.log.batch.batch_file import checked_frames, is_batch_to, whole_batches
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, read_header, read_headers
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch, read_records
from fencepost.impl.log.batch.record_walk import walk
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.validation import RefusedBatchError, validated
from tests.selfcheck.log.batch_format import (
    CODECS,
    CONTROL,
    HEADER_BYTES,
    HORIZON,
    LARGEST,
    LENGTH_END,
    LOG_APPEND,
    TRANSACTIONAL,
    NoBatchError,
    fields_in,
    header_in,
    nullable,
    records_in,
    varint,
    written,
)

ODD = (-(1 << 63), -2, -1, 0, 1, 2, 3, 7, 127, (1 << 31) - 1, LARGEST)
"""Values of a field that somebody might send."""
Fact = tuple[str, object, object]
"""Of what, what the documentation says, what the log does."""


# ---- random batches


@frozen
class Batches:
    """Random batches of one seed."""

    random: random.Random

    def records(self) -> list[tuple[Any, ...]]:
        """Offset delta, time delta, key, value, headers."""
        draw, found, delta = self.random, [], draw_first(self.random)
        for _ in range(draw.choice((1, 1, 2, 3, 9))):
            value = self._text(draw.choice((0, 3, 70, 200)))
            headers = [
                (self._text(draw.choice((0, 4, 70))) or b"", self._text(4))
                for _ in range(draw.choice((0, 0, 1, 3)))
            ]
            found.append(
                (delta, draw.choice((0, 1, -1, 63, 64, 9_000, 1 << 40)), self._text(5), value, headers)
            )
            delta += draw.choice((1, 1, 1, 2, 70, 9_000))
        return found

    def _text(self, size: int) -> bytes | None:
        return None if self.random.random() < 0.15 else bytes(self.random.choices(b"abc\x00\x7f", k=size))

    def body(self, records: list[tuple[Any, ...]]) -> bytes:
        """Now and then a number has more bytes than it needs."""
        parts = []
        for delta, time, key, value, headers in records:
            pad = self.random.choice((0,) * 12 + (1, 2, 8))
            record = b"\x00" + varint(time, pad) + varint(delta) + nullable(key) + nullable(value)
            record += varint(len(headers), pad == 2)
            record += b"".join(nullable(name) + nullable(content) for name, content in headers)
            parts.append(varint(len(record), pad == 1) + record)
        return b"".join(parts)

    def fields(self, records: list[tuple[Any, ...]]) -> list[int]:
        """Of a header: as a producer writes them, or a broker."""
        draw, last = self.random, records[-1][0] if records else 0
        base_ms = draw.choice((0, 5_000, 1 << 41))
        largest = base_ms + max((one[1] for one in records), default=0)
        producer = draw.choice(((-1, -1, -1), (7, 0, 0), (1 << 40, 3, (1 << 31) - 2)))
        attributes = draw.choice((0, 0, 0, TRANSACTIONAL, CONTROL, LOG_APPEND, HORIZON))
        base, epoch = draw.choice(((0, -1), (0, -1), (40, 2), (1 << 50, 9)))
        return [base, 0, epoch, 2, 0, attributes, last, base_ms, largest, *producer, len(records)]

    def broken(self, data: bytes) -> bytes:
        """The batch, damaged or badly written; or as it is."""
        draw, kind = self.random, self.random.choice("aaabbbffftlc")
        if kind == "t":
            return data[: draw.randrange(len(data))]
        if kind == "c":
            return _changed(data, draw.randrange(len(data)), draw.randrange(1, 256))
        fields, body = list(fields_in(data)), data[HEADER_BYTES:]
        if kind == "b" and body:
            body = _changed(body, draw.randrange(len(body)), 1 << draw.randrange(8))
        elif kind == "f":
            fields[draw.choice((0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12))] = draw.choice(ODD)
        elif kind == "l":
            body = body[: draw.randrange(len(body) + 1)] + draw.choice((b"", b"\x00"))
        return written(fields, body)


def draw_first(draw: random.Random) -> int:
    """The first offset delta: compaction may have taken the first records."""
    return draw.choice((0, 0, 0, 0, 3))


def _changed(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes((data[at] ^ bits,)) + data[at + 1 :]


# ---- the comparison


def complaints(seed: int, count: int) -> Iterator[str]:
    """What the log's reader and writer do otherwise than the documentation.

    Args:
        seed: of the batches.
        count: their number.
    """
    draw = random.Random(seed)
    batches = Batches(draw)
    for number in range(count):
        records = batches.records()
        fields = batches.fields(records)
        whole = written(fields, batches.body(records))
        data = batches.broken(whole)
        for what, expected, seen in (
            *_read(data),
            *_produced(data),
            *_wrote(fields, records, draw),
            *_several(whole, data),
        ):
            if expected != seen:
                yield f"batch {number} of seed {seed}: {what}: expected {expected!r}, seen {seen!r}"[:400]


def _read(data: bytes) -> Iterator[Fact]:
    """The header, and the records of a batch without a codec."""
    try:
        expected = header_in(data)
    except NoBatchError:
        yield "header", "refused", _refused(lambda: read_header(data))
        return
    try:
        header = read_header(data)
    except CorruptBatchError as error:
        yield "header", expected, str(error)
        return
    yield from _headed(expected, header)
    if not expected[5] & 7:
        yield from _recorded(data, expected, header)


def _headed(expected: tuple[int, ...], header: BatchHeader) -> Iterator[Fact]:
    base, length, epoch, magic, crc, attributes, delta, base_ms, largest_ms, producer, *rest, count = expected
    yield (
        "fields",
        (base, LENGTH_END + length, epoch, magic, crc % (1 << 32), attributes, delta, base_ms, largest_ms),
        (
            *(header.base_offset, header.size, header.leader_epoch, header.magic, header.crc),
            *(header.attributes, header.last_offset_delta, header.base_timestamp_ms, header.max_timestamp_ms),
        ),
    )
    sequence = -1 if rest[1] == -1 else (rest[1] + delta) % (1 << 31)
    yield (
        "what follows from them",
        (producer, *rest, count, base + delta, base + delta + 1, sequence, CODECS[attributes & 7]),
        (
            *(header.producer_id, header.producer_epoch, header.base_sequence, header.count),
            *(header.last_offset, header.next_offset, header.last_sequence, header.codec),
        ),
    )
    horizon = base_ms if attributes & HORIZON else None
    yield "delete horizon", horizon, header.delete_horizon_ms
    yield (
        "control, transactional",
        *(
            (bool(attributes & CONTROL), bool(attributes & TRANSACTIONAL)),
            (header.is_control, header.is_transactional),
        ),
    )


def _recorded(data: bytes, fields: tuple[int, ...], header: BatchHeader) -> Iterator[Fact]:
    base, length, _, _, _, attributes, delta, base_ms, largest_ms, *_, count = fields
    body = data[HEADER_BYTES : LENGTH_END + length]
    try:
        found = records_in(body, count, delta)
    except NoBatchError:
        yield "records", "refused", _refused(lambda: read_records(data, header))
        yield "walked", "refused", _refused(lambda: walk(body, count, delta))
        return
    try:
        records = [
            (one.offset, one.timestamp_ms, one.key, one.value, [(h.key, h.value) for h in one.headers])
            for one in read_records(data, header)
        ]
        walked = walk(body, count, delta)
    except (CorruptBatchError, ValueError, IndexError) as error:
        yield "records", found, str(error)
        return
    stamp = largest_ms if attributes & LOG_APPEND else None
    yield "records", [_shown(one, base, base_ms, stamp) for one in found], records
    if found:
        times = [one[1] for one in found]
        expected = max(times), min(times), sum(one[2] is None for one in found)
        yield (
            "walked",
            expected,
            (walked.largest_time_delta_ms, walked.smallest_time_delta_ms, walked.keyless),
        )


def _shown(one: tuple[Any, ...], base: int, base_ms: int, stamp: int | None) -> tuple[Any, ...]:
    delta, time, key, value, headers = one
    named = [(name.decode("utf-8", "surrogateescape"), content) for name, content in headers]
    return base + delta, base_ms + time if stamp is None else stamp, key, value, named


def _refused(read: Any) -> str:
    try:
        return f"{read()}"
    except (CorruptBatchError, ValueError, IndexError):
        return "refused"
    except AssertionError as error:
        return str(error)


def _produced(data: bytes) -> Iterator[Fact]:
    """What a leader takes from a client: the same bytes, with the largest time set right."""
    for compact in (False, True):
        try:
            seen: object = validated(data, LogOptions(compact=compact))
        except (CorruptBatchError, RefusedBatchError):
            seen = "refused"
        try:
            expected: object = _taken(data, compact=compact)
        except NoBatchError:
            expected = "refused"
        if expected is not None:
            yield f"produced, compact {compact}", expected, seen


def _taken(data: bytes, *, compact: bool) -> bytes | None:
    fields = list(header_in(data))
    base, length, _, _, _, attributes, delta, base_ms, _, producer, epoch, sequence, count = fields
    if attributes & 7:
        return None
    records = records_in(data[HEADER_BYTES : LENGTH_END + length], count, delta)
    claims = attributes & (LOG_APPEND | CONTROL | HORIZON) or base or producer < -1
    if claims or LENGTH_END + length != len(data) or not count or count != delta + 1:
        raise NoBatchError
    if (producer >= 0 and (epoch < 0 or sequence < 0)) or (producer < 0 and attributes & TRANSACTIONAL):
        raise NoBatchError
    times = [base_ms + one[1] for one in records]
    if min(times) < -1 or max(times) > LARGEST or (compact and any(one[2] is None for one in records)):
        raise NoBatchError
    fields[8] = max(times)
    return written(fields, data[HEADER_BYTES:]) if fields[8] != fields_in(data)[8] else data


def _wrote(fields: list[int], records: list[tuple[Any, ...]], draw: random.Random) -> Iterator[Fact]:
    """The log's writer, without a codec byte by byte, with one by its reader."""
    base, _, epoch, _, _, attributes, *_, producer, producer_epoch, sequence, _ = fields
    first_ms = 7_000
    made = [
        Record(
            base + delta,
            first_ms + time - records[0][1],
            key,
            value,
            tuple(Header(name.decode(), content) for name, content in headers),
        )
        for delta, time, key, value, headers in records
    ]
    options: dict[str, Any] = {
        "producer_id": producer,
        "producer_epoch": producer_epoch,
        "base_sequence": sequence,
        "transactional": bool(attributes & TRANSACTIONAL),
        "control": bool(attributes & CONTROL),
    }
    data = encode_batch(made, base_offset=base, leader_epoch=epoch, **options)
    body = b""
    for delta, time, key, value, headers in records:
        record = b"\x00" + varint(time - records[0][1]) + varint(delta) + nullable(key) + nullable(value)
        record += varint(len(headers)) + b"".join(nullable(a) + nullable(b) for a, b in headers)
        body += varint(len(record)) + record
    times = [one.timestamp_ms for one in made]
    flags = attributes & (TRANSACTIONAL | CONTROL)
    head = [base, 0, epoch, 2, 0, flags, records[-1][0], times[0], max(times), producer, producer_epoch]
    yield "written", written([*head, sequence, len(made)], body), data
    codec = draw.choice(CODECS[1:])
    packed = encode_batch(made, base_offset=base, leader_epoch=epoch, codec=codec, **options)
    yield f"through {codec}", tuple(made), read_records(packed, read_header(packed))
    yield "codec", CODECS.index(codec), header_in(packed)[5] & 7


def _several(whole: bytes, data: bytes) -> Iterator[Fact]:
    """Batches in a row: where each is, by the readers that look at headers only."""
    fields = header_in(whole)
    last, size = fields[0] + fields[6], len(whole)
    yield (
        "is a batch to its last offset",
        (True, False),
        (is_batch_to(whole, 0, last), is_batch_to(whole, 0, last + 1)),
    )
    yield (
        "whole batches",
        (size, 0, 2 * size),
        (
            whole_batches(whole + data[:50], below=last + 1),
            whole_batches(whole, below=last),
            whole_batches(whole + whole, below=last + 1),
        ),
    )
    row = whole + whole
    frame = (size, fields[0], last, fields[2], fields[8])
    yield "frames", [(0, *frame), (size, *frame)], [tuple(one) for one in checked_frames(row)]
    yield "positions", [0, size], [one.position for one in read_headers(row)]
    try:
        header_in(data)
        good = LENGTH_END + fields_in(data)[1] == len(data)
    except NoBatchError:
        good = False
    if not good and len(data) > 0:
        yield "frames after a whole one", "refused", _refused(lambda: list(checked_frames(whole + data)))
