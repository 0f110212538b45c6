"""The one walk over a batch's records: what verifies, reads and hashes them agrees; the machine code agrees
with the walk or abstains."""

import random
import sys
from pathlib import Path

import pytest

from fencepost.impl.log.batch import record_walk
from fencepost.impl.log.batch.compiled_walk import ASK_WALK, walk_of
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch
from fencepost.impl.log.batch.record_walk import MACHINE_CODE_AFTER, CompiledWalk, Walked, fields, spans, walk
from fencepost.impl.log.batch.varint import encode_varint

BODY = 61


def batch(records) -> bytes:
    return encode_batch(records, base_offset=0, leader_epoch=0)


def drawn(draw: random.Random, count: int) -> list[Record]:
    """Records of one producer: keys, values, times and headers of all kinds, or alike."""
    alike, binary = draw.random() < 0.5, draw.random() < 0.3
    value_size = draw.choice((0, 5, 63, 64, 100, 9_000))
    with_headers, tombstones = draw.random() < 0.2, draw.random() < 0.3
    made = []
    for offset in range(count):
        size = value_size if alike else draw.randrange(200)
        value = draw.randbytes(size) if binary else b"x" * size
        key = draw.choice((None, b"", b"k%d" % offset, b"k" * 70)) if not alike else b"k%d" % (offset % 7)
        time = 1_000_000 + draw.choice(
            (0, offset, offset * 1_000, -offset, 1 << 40 if draw.random() < 0.02 else 0)
        )
        headers = (Header("h", draw.choice((None, b"v"))),) if with_headers and draw.random() < 0.3 else ()
        made.append(
            Record(offset, time, key, None if tombstones and draw.random() < 0.05 else value, headers)
        )
    return made


def tried(read, *arguments) -> object:
    """What a form of the walk says; None for a refusal."""
    try:
        return read(*arguments)
    except (IndexError, ValueError):
        return None


def machine(data: bytes, count: int, start: int = 0) -> Walked | None:
    """What the machine code says; None if it abstains."""
    keyless, largest, smallest = walk_of(data, start, count, count - 1)
    return None if keyless == ASK_WALK else Walked(largest, smallest, keyless)


@pytest.mark.parametrize("seed", range(6))
def test_the_strict_walk_the_lenient_one_and_machine_code_agree(seed: int) -> None:
    """Whole batches and damaged ones: a byte changed, cut off or put in. The lenient walk passes all that the
    strict one passes, with the same offsets, and more."""
    draw = random.Random(seed)
    refused = passed = 0
    for _ in range(120):
        count = draw.choice((1, 5, 96, 100, 200))
        records = drawn(draw, count)
        data = batch(records)[BODY:]
        said = tried(walk, data, count, count - 1)
        times = [record.timestamp_ms - records[0].timestamp_ms for record in records]
        assert said is not None
        assert (said.largest_time_delta_ms, said.smallest_time_delta_ms) == (max(times), min(times))
        assert said.keyless == sum(record.key is None for record in records)
        assert machine(data, count) == machine(bytes(7) + data, count, 7) == said
        for _ in range(10):
            bad, place = bytearray(data), draw.randrange(len(data))
            match draw.randrange(4):
                case 0:
                    bad[place] ^= 1 << draw.randrange(8)
                case 1:
                    del bad[place]
                case 2:
                    bad.insert(place, draw.randrange(256))
                case 3:
                    del bad[place:]
            changed = bytes(bad)
            said = tried(walk, changed, count, count - 1)
            places = tried(lambda *what: list(spans(*what)), changed, count)
            if said is not None:
                read = [delta for _, delta, *_ in fields(changed, count, count - 1)]
                assert places is not None and read == [delta for _, delta, *_ in places]
            passed += said is None and places is not None
            assert machine(changed, count) == said, (seed, changed.hex(), count)
            refused += said is None
    assert refused > 400 and passed > 20, (refused, passed)


def test_no_other_module_takes_records_apart() -> None:
    """The numbers of which records are made are read in one place."""
    package = Path(record_walk.__file__).parents[3]
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "decode_varint" in path.read_text(encoding="utf-8")
    }
    assert readers == {"impl/log/batch/varint.py", "impl/log/batch/record_walk.py"}


def test_the_machine_code_abstains_from_very_long_numbers() -> None:
    """A number of ten bytes is the walk's to read."""
    for zeros, decides in ((1, True), (8, True), (9, False)):
        time = b"\x82" + b"\x80" * (zeros - 1) + b"\0"  # the number 2, of zeros + 1 bytes
        data = encode_varint(6 + zeros) + b"\0" + time + b"\0\1\1\0"
        assert walk(data, 1, 0) == Walked(1, 1, 1)
        assert machine(data, 1) == (Walked(1, 1, 1) if decides else None)


def test_machine_code_is_loaded_once_and_only_when_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a million records walked in plain Python; it then answers for the walk, which still says what is
    wrong, and reads what is no `bytes`."""
    records = [Record(n, 1_000 + n, None, b"v") for n in range(3)]
    data, form = batch(records), CompiledWalk()
    wanted = Walked(2, 0, 3)
    assert form.examine(data, 3, 2, BODY) == wanted and form.walked == 3 and not form.due()
    form.walked = MACHINE_CODE_AFTER
    assert form.due() and not form.due()
    form.load()
    calls: list[int] = []
    monkeypatch.setattr(record_walk, "walk", lambda *line: calls.append(1) or walk(*line))
    assert form.examine(data, 3, 2, BODY) == wanted and not calls
    assert form.examine(bytearray(data), 3, 2, BODY) == wanted and len(calls) == 1
    with pytest.raises(ValueError, match="offset delta 2 after 1 in a batch up to 1"):
        form.examine(data, 3, 1, BODY)
    with pytest.raises((ValueError, IndexError)):
        form.examine(data[:-1], 3, 2, BODY)


def test_without_a_place_for_machine_code_the_walk_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba that cannot be imported costs speed, nothing else."""
    monkeypatch.setitem(sys.modules, "fencepost.impl.log.batch.compiled_walk", None)
    form = CompiledWalk()
    form.load()
    data = batch([Record(0, 5, b"k", b"v")])
    assert form.examine(data, 1, 0, BODY) == Walked(0, 0, 0) and form.walked == 1


def test_the_machine_code_decides_what_producers_send() -> None:
    """Keys, no keys, binary values and values of zeros, times that go on for a minute, headers: no batch of
    these is left to the slower form."""
    for value in (
        lambda n: b"v" * 100,
        lambda n: bytes(100),
        lambda n: random.Random(n).randbytes(100),
        lambda n: b"v" * 30,
    ):
        for key in (lambda n: b"key-%d" % n, lambda n: None):
            for headers in ((), (Header("trace", b"0123456789abcdef"), Header("", None))):
                records = [Record(n, 1_000 + 60 * n, key(n), value(n), headers) for n in range(1_000)]
                data = batch(records)[BODY:]
                assert machine(data, 1_000) == walk(data, 1_000, 999)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01garbage",
        b"\x80" * 40,
        encode_varint(6) + b"\0\0\0\x05\x01\0",
        encode_varint(6) + b"\0\0\0\x01\x05\0",
        encode_varint(6) + b"\0\0\x01\x01\x01\0",
        encode_varint(6) + b"\0\0\0\x01\x01\x01",
        encode_varint(-6) + b"\0\0\0\x01\x01\0",
        encode_varint(1 << 40) + b"\0\0\0\x01\x01\0",
        encode_varint(9) + b"\0\0\0\x01\x01\x02\x01\x01\x01",
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Nothing, garbage, endless numbers, null lengths below -1, negative deltas, header counts and record
    lengths, a header without a key."""
    with pytest.raises((ValueError, IndexError)):
        walk(data, 1, 0)
    assert machine(data, 1) is None


def test_gaps_are_for_compacted_batches_only() -> None:
    """Offset deltas ascend up to the last one."""
    data = batch([Record(0, 0, b"k", b"v"), Record(5, 0, b"k", b"v")])[BODY:]
    assert walk(data, 2, 7).keyless == 0 == walk_of(data, 0, 2, 7)[0]
    with pytest.raises(ValueError, match="offset delta 5 after 0 in a batch up to 4"):
        walk(data, 2, 4)
