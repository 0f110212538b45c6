"""The walk through the files of a log: all of a healthy one, and of a damaged one exactly how far it is good;
never an exception."""

import tracemalloc
import zlib
from struct import pack

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from impl_batches import tiny_records

from fencepost.impl.log.batch.batch_file import CHUNK_BYTES
from fencepost.impl.log.batch.record_batch import CODECS, Record, encode_batch
from fencepost.impl.log.dump import directory_files, indexes
from fencepost.impl.log.dump.directory_files import EpochStart, PartitionOffset, Property
from fencepost.impl.log.dump.dump import BatchSeen, Extent, looks_like_log, walk_log
from fencepost.impl.log.dump.indexes import OffsetEntry, OffsetIndexCheck, TimeEntry, TimeIndexCheck
from fencepost.impl.log.flaw import Flaw
from fencepost.impl.log.producer.producer_state import ProducedBatch, Producer, ProducerState
from fencepost.impl.log.producer.snapshot import ProducerEntry, encode_snapshot

SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=200)


class Held:
    """A source in memory that counts what is asked of it at once."""

    def __init__(self, data: bytes) -> None:
        self.data, self.most = data, 0

    def read_at(self, position: int, size: int) -> bytes:
        self.most = max(self.most, size)
        return self.data[position : position + size]

    def size(self) -> int:
        return len(self.data)


def batches(count: int = 5, *, base: int = 0) -> list[bytes]:
    """Batches of two records, one of each codec, at times 100, 200, ..., a new leader epoch every second
    batch."""
    made = []
    for number in range(count):
        offset = base + 2 * number
        records = [Record(offset + each, 100 * (number + 1), b"k", b"value %d" % each) for each in range(2)]
        made.append(
            encode_batch(
                records, base_offset=offset, leader_epoch=number // 2, codec=CODECS[number % len(CODECS)]
            )
        )
    return made


BATCHES = batches()
LOG = b"".join(BATCHES)
STARTS = [sum(len(batch) for batch in BATCHES[:number]) for number in range(len(BATCHES) + 1)]


def walk(data: bytes, **arguments) -> tuple[list[BatchSeen], list[Flaw], Extent]:
    """What the walk gives."""
    extent = Extent()
    items = list(walk_log(Held(data), extent, **arguments))
    flaws = [item for item in items if isinstance(item, Flaw)]
    return [item for item in items if isinstance(item, BatchSeen)], flaws, extent


def test_a_healthy_segment():
    """Every batch, its place and (asked for) its records; good to the end."""
    seen, flaws, extent = walk(LOG, base_offset=0, deep=True)
    assert flaws == [] and not extent.ended_early
    assert [batch.header.position for batch in seen] == STARTS[:-1]
    assert [record.offset for batch in seen for record in batch.records] == list(range(10))
    assert (extent.good_bytes, extent.next_offset, extent.batches, extent.records) == (len(LOG), 10, 5, 10)
    assert all(batch.records is None for batch in walk(LOG)[0])


def test_an_empty_segment_is_good():
    """Nothing in it, nothing wrong with it."""
    assert walk(b"") == ([], [], Extent())


@pytest.mark.parametrize("size", range(0, len(LOG) + 1, 3))
def test_a_cut_segment_is_good_up_to_its_last_whole_batch(size):
    """Wherever the file ends, the whole batches are told, and what is left of the next one is the flaw."""
    whole = max(number for number, start in enumerate(STARTS) if start <= size)
    seen, flaws, extent = walk(LOG[:size])
    assert len(seen) == whole and extent.good_bytes == STARTS[whole]
    assert extent.next_offset == (2 * whole if whole else None)
    if size == STARTS[whole]:
        assert flaws == []
    else:
        (flaw,), rest = flaws, LOG[STARTS[whole] : size]
        zeros = "bytes of zeros (room that a broker preallocated, or the hole of a failed write)"
        torn = f"the last {len(rest)} bytes of the file" if rest.strip(b"\0") else f"{len(rest)} {zeros}"
        assert flaw.seen == torn
        assert flaw.position == STARTS[whole] and extent.ended_early


@SEARCH
@given(st.integers(0, len(LOG) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_found_and_the_rest_is_still_told(place, flip):
    """Under a checksum it is that batch's flaw and the others are shown; in the frame it may end the walk.
    Nothing before it is in doubt."""
    data = bytearray(LOG)
    data[place] ^= flip
    seen, flaws, extent = walk(bytes(data), base_offset=0, deep=True)
    hit = max(number for number, start in enumerate(STARTS[:-1]) if start <= place)
    inside = place - STARTS[hit]
    assert extent.good_bytes >= STARTS[hit]
    if inside >= 17:  # the checksum and what it covers
        assert flaws[0].position == STARTS[hit] and "CRC-32C" in flaws[0].expected
        assert extent.good_bytes == STARTS[hit] and len(seen) == len(BATCHES)
        assert [batch.computed_crc is None for batch in seen] == [number != hit for number in range(5)]
    elif inside == 16:
        assert flaws[0].expected == "magic 2"
    elif 8 <= inside < 12:
        assert flaws


@SEARCH
@given(st.binary(max_size=400), st.integers(0, 3), st.booleans())
def test_foreign_bytes_end_the_walk_never_the_program(junk, whole, deep):
    """Whatever follows the good batches, they are told and the rest is a flaw (unless it happens to be a
    batch)."""
    data = b"".join(BATCHES[:whole]) + junk
    seen, flaws, extent = walk(data, deep=deep)
    assert len(seen) >= whole and extent.good_bytes >= STARTS[whole]
    assert bool(flaws) == bool(junk)


@pytest.mark.parametrize("zeros", [1, 61, 3 * CHUNK_BYTES])
def test_zeros_at_the_end_are_told_as_such(zeros):
    """Preallocated room, or the hole of a failed write."""
    (flaw,) = walk(LOG + bytes(zeros))[1]
    assert flaw.position == len(LOG) and flaw.seen.startswith(f"{zeros} bytes of zeros")


def test_a_length_that_promises_too_much_is_not_read():
    """A flipped length of two gigabytes costs no memory: it is compared with the file first."""
    data = bytearray(LOG)
    data[8] = 0x7F
    source = Held(bytes(data))
    (flaw,) = list(walk_log(source, Extent()))
    assert "a batch of 21" in flaw.expected and source.most <= CHUNK_BYTES


def test_a_batch_of_no_sane_size_is_not_read_either():
    """A length of 300 MB in a file that is as large: it is taken for damage, as an audit takes it."""

    class Huge(Held):
        def size(self):
            return 400 << 20

    head = bytearray(LOG[: STARTS[1]])
    head[8:12] = (300 << 20).to_bytes(4, "big")
    source = Huge(bytes(head))
    (flaw,) = list(walk_log(source, Extent()))
    assert "more than the 268435456 that are read at once" in flaw.seen and source.most <= CHUNK_BYTES


def test_old_message_sets_are_named():
    """What a Kafka before 0.11 wrote is foreign, not corrupt."""
    data = bytes(8) + (30).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(25)
    (flaw,) = walk(data)[1]
    assert flaw.sentence == "at byte 0: expected magic 2, saw 1 (a message set of a Kafka before 0.11)"
    body = b"\x01" + bytes(21)  # magic, attributes, time, null key, null value
    sound = bytes(8) + (26).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    seen, (flaw,), extent = walk(LOG + sound + sound)
    assert len(seen) == len(BATCHES) and extent.ended_early and flaw.position == extent.good_bytes == len(LOG)
    assert flaw.seen == "1 (a message set of a Kafka before 0.11)"


def test_offsets_and_epochs_must_not_go_back():
    """Neither is under the checksum: the neighbours tell."""
    again = walk(LOG + BATCHES[4])[1]
    assert [flaw.expected for flaw in again] == ["a base offset of at least 10"]
    assert [flaw.expected for flaw in walk(LOG, base_offset=3)[1]] == ["a base offset of at least 3"] * 2
    older = encode_batch([Record(10, 1, None, b"x")], base_offset=10, leader_epoch=1)
    (flaw,) = walk(LOG + older)[1]
    assert flaw.expected == "a leader epoch of at least 2" and flaw.position == len(LOG)


def test_records_that_make_no_sense_are_found():
    """The checksum holds, the records do not parse: the batch is not called good, with or without --deep."""
    data = bytearray(BATCHES[0])
    data[61] = 3
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    for deep in (False, True):
        seen, flaws, extent = walk(bytes(data), deep=deep)
        assert seen[0].records is None and flaws[0].expected == "2 records, codec none"
        assert extent.good_bytes == 0


def test_a_control_batch_must_say_what_it_controls():
    """An empty body that claims a record, garbage, a key without a type, half a marker: none of them is good.
    A type of the future is."""
    record = Record(0, 1, b"\0\0\0\1", b"\0\0\0\0\0\7")
    good = encode_batch(
        [record], base_offset=0, leader_epoch=1, producer_id=7, producer_epoch=0, control=True
    )
    assert walk(good)[1] == []
    later = Record(0, 1, b"\0\0\0\x63", None)
    assert walk(encode_batch([later], base_offset=0, leader_epoch=1, control=True))[1] == []
    for bad in (Record(0, 1, b"\0\0", None), Record(0, 1, b"\0\0\0\1", b"\0")):
        (flaw,) = walk(encode_batch([bad], base_offset=0, leader_epoch=1, control=True))[1]
        assert flaw.expected == "control records with their type"
    for body in (b"", b"\x01garbage"):
        data = bytearray(good[:61] + body)
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
        assert [flaw.expected for flaw in walk(bytes(data))[1]] == ["1 records, codec none"]


def test_a_batch_larger_than_a_chunk():
    """Read whole, wherever it lies."""
    large = encode_batch([Record(10, 1, None, b"x" * (2 * CHUNK_BYTES))], base_offset=10, leader_epoch=5)
    last = encode_batch([Record(11, 1, None, b"y")], base_offset=11, leader_epoch=5)
    seen, flaws, extent = walk(LOG + large + last, deep=True)
    assert flaws == [] and extent.next_offset == 12
    assert next(seen[-2].records).value == b"x" * (2 * CHUNK_BYTES)


def test_a_segment_is_known_by_its_first_bytes():
    """Whatever its name."""
    assert looks_like_log(Held(LOG))
    assert not any(looks_like_log(Held(data)) for data in (b"", LOG[:10], b"0\n1\nt 0 15\n", bytes(100)))


# ---- indexes

ENTRIES = [(3, STARTS[1]), (5, STARTS[2]), (9, STARTS[4])]
TIMES = [(200, 3), (300, 5), (500, 9)]


def offsets_of(entries, *, base: int = 0, tail: bytes = b"") -> list[OffsetEntry | Flaw]:
    """An offset index as it is read."""
    data = b"".join(pack(">ii", *entry) for entry in entries) + tail
    return list(indexes.offset_entries(Held(data), base))


def times_of(entries, *, base: int = 0, tail: bytes = b"") -> list[TimeEntry | Flaw]:
    """A time index as it is read."""
    data = b"".join(pack(">qi", *entry) for entry in entries) + tail
    return list(indexes.time_entries(Held(data), base))


def followed(check, data: bytes = LOG) -> list[Flaw]:
    """The flaws of an index that follows the walk of a log."""
    extent = Extent()
    flaws = [item for item in walk_log(Held(data), extent, watchers=[check]) if isinstance(item, Flaw)]
    return flaws + list(check.end(extent))


def test_indexes_are_read_up_to_their_room():
    """Absolute offsets; the zeros that a broker preallocates are no entries."""
    assert [
        (item.offset, item.position) for item in offsets_of([(1, 70), (5, 256)], base=1_000, tail=bytes(80))
    ] == [(1_001, 70), (1_005, 256)]
    assert [
        (item.timestamp_ms, item.offset) for item in times_of([(256, 0), (512, 256)], base=7, tail=bytes(24))
    ] == [(256, 7), (512, 263)]
    assert offsets_of([]) == times_of([], tail=bytes(120)) == []


@pytest.mark.parametrize("entries", [[(5, 70), (5, 90)], [(5, 70), (6, 70)], [(5, 70), (3, 90)], [(-2, 70)]])
def test_an_offset_index_must_ascend(entries):
    """Offsets and positions, both strictly."""
    assert sum(isinstance(item, Flaw) for item in offsets_of(entries)) == 1


@pytest.mark.parametrize("entries", [[(5, 1), (5, 2)], [(6, 1), (5, 2)], [(5, 3), (6, 2)]])
def test_a_time_index_must_ascend(entries):
    """Times strictly, offsets not back."""
    assert sum(isinstance(item, Flaw) for item in times_of(entries)) == 1


def test_half_an_entry_is_a_flaw():
    """An index that was cut in the middle of an entry."""
    assert isinstance(offsets_of(ENTRIES, tail=b"\x01\x02\x03")[-1], Flaw)
    assert isinstance(times_of(TIMES, tail=b"\x00" * 11 + b"\x01\x01")[-1], Flaw)


def test_indexes_that_lead_right():
    """The entries of the segment, and a coarse one as brokers before Kafka 4 note it (the last offset of all
    that was appended together)."""
    assert followed(OffsetIndexCheck(offsets_of(ENTRIES), "i")) == []
    assert followed(OffsetIndexCheck(offsets_of([(7, STARTS[1])]), "i")) == []
    assert followed(TimeIndexCheck(times_of(TIMES), "t")) == []


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ((3, STARTS[1] + 1), "none that begins there"),
        ((3, STARTS[3]), "one from 6"),
        ((3, len(LOG)), "the end of the log"),
    ],
)
def test_an_offset_index_that_leads_astray_is_found(entry, says):
    """Into the middle of a batch, past the record, past the log: the flaw names the index and the entry."""
    (flaw,) = followed(OffsetIndexCheck(offsets_of([entry]), "0.index"))
    assert flaw.seen == says and flaw.sentence.startswith("0.index at byte 0: expected a batch")


@pytest.mark.parametrize(
    ("entry", "says"), [((150, 5), "150"), ((900, 5), "900"), ((600, 12), "the end of the log")]
)
def test_a_time_index_that_lies_is_found(entry, says):
    """Earlier than a record before it, later than any record, past the log."""
    (flaw,) = followed(TimeIndexCheck(times_of([entry]), "0.timeindex"))
    assert flaw.seen == says and flaw.file == "0.timeindex"


def test_a_time_index_that_names_a_gap_is_found():
    """No batch holds the offset."""
    (flaw,) = followed(TimeIndexCheck(times_of([(100, 2)]), "t"), BATCHES[0] + BATCHES[2])
    assert flaw.expected == "a batch that holds offset 2"


def test_beyond_the_readable_part_of_a_log_nobody_knows():
    """A damaged log is its own flaw; its index is not blamed for what cannot be read."""
    assert len(followed(OffsetIndexCheck(offsets_of(ENTRIES), "i"), LOG[: STARTS[2] + 5])) == 1


@pytest.mark.parametrize("number", range(5))
def test_an_index_is_not_blamed_for_a_damaged_batch(number):
    """The place of a batch with a bad checksum is known, its times are not: the one flaw is the batch's."""
    data = bytearray(LOG)
    data[STARTS[number] + 40] ^= 1  # in its largest timestamp
    for check in (OffsetIndexCheck(offsets_of(ENTRIES), "i"), TimeIndexCheck(times_of(TIMES), "t")):
        (flaw,) = followed(check, bytes(data))
        assert flaw.position == STARTS[number] and flaw.file == ""


def test_an_index_is_not_blamed_for_a_damaged_offset():
    """A batch whose bytes are rotten in two places: its base offset cannot be held against the index."""
    data = bytearray(LOG)
    data[STARTS[1] + 6] ^= 1
    data[STARTS[1] + 40] ^= 1
    (flaw,) = followed(OffsetIndexCheck(offsets_of(ENTRIES), "i"), bytes(data))
    assert flaw.position == STARTS[1] and flaw.file == ""


def test_the_transaction_index():
    """Aborted transactions; a version or a range that cannot be is a flaw."""
    good, bad = pack(">hqqqq", 0, 7, 3, 9, 2), pack(">hqqqq", 0, 7, 9, 3, 2)
    items = list(indexes.transaction_entries(Held(good + bad)))
    assert (items[0].producer_id, items[0].first_offset, items[0].last_offset) == (7, 3, 9)
    assert isinstance(items[2], Flaw) and len(items) == 3


# ---- small files


def flaws_in(items) -> list[Flaw]:
    """The flaws among them."""
    return [item for item in items if isinstance(item, Flaw)]


def test_checkpoints():
    """Leader epochs and offsets of partitions, as they stand."""
    assert list(directory_files.epoch_starts(Held(b"0\n2\n0 0\n3 17\n"))) == [
        EpochStart(epoch=0, start_offset=0),
        EpochStart(epoch=3, start_offset=17),
    ]
    assert list(directory_files.partition_offsets(Held(b"0\n1\nsome.topic 4 99\n"))) == [
        PartitionOffset(topic="some.topic", partition=4, offset=99)
    ]
    assert list(directory_files.properties(Held(b"#c\nversion: 0\ncluster.id=a=b\n"))) == [
        Property(key="version", value="0"),
        Property(key="cluster.id", value="a=b"),
    ]


def test_an_empty_checkpoint_has_no_entries():
    """Rule: a broker creates its checkpoint files when it starts and writes them later; an empty one is not
    damaged."""
    assert [*directory_files.partition_offsets(Held(b"")), *directory_files.epoch_starts(Held(b""))] == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\n", ""),
        (b"7\n0\n", "7"),
        (b"0\n", "0"),
        (b"0\n3\n0 0\n", "1"),
        (b"0\n1\n0 x\n", "0 x"),
        (b"0\n2\n3 5\n2 9\n", "epoch 2 from 9"),
        (b"0\n2\n3 5\n4 4\n", "epoch 4 from 4"),
    ],
)
def test_a_damaged_checkpoint_says_where(data, says):
    """Absent head, wrong count, garbled line, epochs or offsets that go back."""
    assert [flaw.seen for flaw in flaws_in(directory_files.epoch_starts(Held(data)))] == [says]


def snapshot() -> bytes:
    """A producer snapshot as the broker writes it."""
    state = ProducerState(end_offset=50)
    last = ProducedBatch(
        first_sequence=3, last_sequence=5, first_offset=40, last_offset=42, timestamp_ms=1_000
    )
    state.producers[9] = Producer(9, 2, [last], 1_000, 40, 6)
    return encode_snapshot(state)


def test_a_producer_snapshot():
    """Each producer as Kafka's format has it."""
    assert list(directory_files.producer_entries(Held(snapshot()))) == [
        ProducerEntry(
            producer_id=9,
            producer_epoch=2,
            last_sequence=5,
            last_offset=42,
            offset_delta=2,
            timestamp_ms=1_000,
            coordinator_epoch=6,
            current_first_offset=40,
        )
    ]


@pytest.mark.parametrize("place", range(len(snapshot())))
def test_a_flipped_byte_of_a_snapshot_is_found(place):
    """Version, checksum, count and entries."""
    data = bytearray(snapshot())
    data[place] ^= 0x10
    assert flaws_in(directory_files.producer_entries(Held(bytes(data))))


@SEARCH
@given(st.binary(max_size=120))
def test_small_files_of_any_bytes_are_told_never_an_exception(data):
    """Whatever stands in them."""
    for read in (
        directory_files.epoch_starts,
        directory_files.partition_offsets,
        directory_files.producer_entries,
        directory_files.properties,
        indexes.transaction_entries,
    ):
        list(read(Held(data)))
    times = [item for item in indexes.time_entries(Held(data), 0) if isinstance(item, TimeEntry)]
    offsets = [item for item in indexes.offset_entries(Held(data), 0) if isinstance(item, OffsetEntry)]
    followed(TimeIndexCheck(times, "t"))
    followed(OffsetIndexCheck(offsets, "i"))


def test_a_small_batch_of_many_records_is_streamed() -> None:
    """Issue 27, point 19: the records of a batch that fits a disk block or two are never in memory
    together."""
    count = 20_000
    data = tiny_records(count)
    tracemalloc.start()
    try:
        seen = offset = 0
        for item in walk_log(Held(data), Extent(), deep=True):
            for record in item.records:
                seen, offset = seen + 1, record.offset
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (seen, offset) == (count, count - 1)
    assert peak < 100 * count, f"{peak} bytes; as objects they were more than 200 each"
