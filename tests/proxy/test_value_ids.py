"""Value ids of records: those that any version made compare with each other."""

import pytest

from fencepost.impl.log.batch.header import HEADER_SIZE, CorruptBatchError, read_header
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch
from fencepost.proxy.record.values import Values

KEY = bytes(range(32))
"""As long as the key of a folder."""


def patterned(size):
    return bytes(n % 251 for n in range(size))


HELD = (
    # key, value, headers, the id of a plain producer, and of producer 7, epoch 3, from sequence 2^31 - 5 on
    (None, patterned(0), (), 4848229125328350560, 4848229122260367129),
    (None, patterned(1), (), 8326732981632683617, 8326732980952434122),
    (None, patterned(127), (), 7045340836294119081, 7045340834376093531),
    (None, patterned(128), (), 6236439826678023448, 6236439826754649037),
    (None, patterned(129), (), 7898581783297633985, 7898581785148133976),
    (None, patterned(1000), (), 8527934965345583578, 8527934969297511546),
    (b"key", None, (), 6886586818821298154, 6886586820120920939),
    (None, None, (), 9180718499068587492, 9180718499713622499),
    (b"key", patterned(128), (), 9096826679396289081, 9096826676793686213),
    (b"", b"", (), 5442664257714997811, 5442664256875077913),
    (b"k", b"v", (Header("h", b"1"), Header("h", None)), 7935879835583945392, 7935879838115686725),
)
"""What records that were made before this test have: an id that changes makes them say something else."""


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(("producer", "column"), [((-1, -1, -1), 3), ((7, 3, 2**31 - 5), 4)])
def test_ids_are_those_of_earlier_records(producer, column, codec):
    """Rule: an id is the same in every version: values around a block of the hash, tombstones, null keys."""
    names = ("producer_id", "producer_epoch", "base_sequence")
    made = [Record(n, 5 + n, key, value, headers) for n, (key, value, headers, *_) in enumerate(HELD)]
    data = encode_batch(
        made, base_offset=0, leader_epoch=2, codec=codec, **dict(zip(names, producer, strict=True))
    )
    assert Values(key=KEY).of_batch(data, read_header(data)) == ([row[column] for row in HELD], None)


def test_a_record_ends_inside_its_batch():
    """Rule: a record that claims bytes of the batch after it has no id: they are not its own."""
    made = encode_batch([Record(0, 5, None, b"v" * 20)], base_offset=0, leader_epoch=-1)
    header, longer = read_header(made), bytearray(made)
    longer[HEADER_SIZE] += 2 * 10
    with pytest.raises(
        CorruptBatchError, match="expected 1 records, codec none, saw records that end too early"
    ):
        Values(key=KEY).of_batch(bytes(longer) + made, header)


def test_an_empty_batch_has_no_ids():
    """Rule: a batch that compaction emptied is read, also if it still names a codec."""
    data = encode_batch((), base_offset=5, leader_epoch=2, codec="lz4", last_offset_delta=9)
    assert Values(key=KEY).of_batch(data, read_header(data)) == ([], [])
