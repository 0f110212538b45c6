"""The reader of Kafka's messages agrees with kio's, and no bytes make it do anything but read or refuse."""

import random
import struct

import pytest
from kio.schema.metadata.v9.request import MetadataRequest
from kio.schema.metadata.v9.response import MetadataResponse
from kio.serial import entity_reader
from wire_values import encoded, random_entity

from fencepost.traces.kafka_names.protocol import ERRORS
from fencepost.wire.decoder import Message, read
from fencepost.wire.frames import ProtocolError
from fencepost.wire.schemas import request_schema as load_request_schema
from fencepost.wire.schemas import response_schema as load_response_schema
from fencepost.wire.versions import APIS

SPOKEN = [
    (api.key, version)
    for api in APIS.values()
    for version in range(max(api.lowest, api.lowest_decoded), api.highest + 1)
]
ELEMENTS = 1_000
BY_CODE = {error.code: error for error in ERRORS}


def decoded(kind, data, elements=ELEMENTS):
    """What our reader makes of these bytes."""
    return read(kind, Message(data, elements), 0)


@pytest.mark.parametrize(("key", "version"), SPOKEN)
def test_both_readers_agree_on_what_the_writer_wrote(key, version):
    """For every message of the table: what kio writes is read as it was, by our reader as by kio's."""
    rng = random.Random(f"{key} {version}")
    for kind in (load_request_schema(key, version), load_response_schema(key, version)):
        for _ in range(8):
            entity = random_entity(kind, rng)
            data = encoded(entity)
            assert decoded(kind, data) == entity == entity_reader(kind)(data, 0)[0]


@pytest.mark.parametrize(("key", "version"), SPOKEN)
def test_bytes_that_are_cut_off_or_changed_are_read_or_refused(key, version):
    """Hostile bytes have two ends: a message, or ProtocolError."""
    rng = random.Random(f"hostile {key} {version}")
    refused = 0
    for kind in (load_request_schema(key, version), load_response_schema(key, version)):
        data = encoded(random_entity(kind, rng))
        cut = [data[:end] for end in range(0, len(data), max(1, len(data) // 20))]
        changed = []
        for _ in range(40):
            hurt = bytearray(data or b"\0")
            for _ in range(rng.randrange(1, 4)):
                hurt[rng.randrange(len(hurt))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            changed.append(bytes(hurt))
        for bad in [*cut, *changed, rng.randbytes(50)]:
            try:
                decoded(kind, bad)
            except ProtocolError:
                refused += 1
    assert refused > 0 or not encoded(random_entity(load_request_schema(key, version), rng))


def test_an_array_is_not_believed():
    """2^31 - 1 topics announced in four bytes: kio's own reader asks for 34 GB here, and the process is
    aborted."""
    kind = load_request_schema(3, 1)
    with pytest.raises(ProtocolError, match="expected an array of at most 6 elements, saw 2147483647"):
        decoded(kind, b"\x7f\xff\xff\xff" + b"\0\1a\0\1b")


def test_elements_are_bounded_over_all_arrays():
    """Many small arrays are as large as one: their elements are counted together."""
    kind = load_request_schema(9, 1)
    topic = b"\0\1t" + b"\0\0\0\3" + b"\0\0\0\0" * 3
    data = b"\0\1g" + b"\0\0\0\2" + topic * 2
    assert len(decoded(kind, data, elements=8).topics) == 2
    with pytest.raises(ProtocolError, match="at most 2 elements, saw 3"):
        decoded(kind, data, elements=7)


def test_tagged_fields_of_later_versions_are_skipped():
    """KIP-482: a tag that this version does not know is no mistake. librdkafka sends one in its Metadata for
    all topics, and three bytes too many."""
    sent = bytes.fromhex("00 00 00 00 01 00 00 00")
    assert decoded(MetadataRequest, sent).topics is None
    nested = encoded(decoded(MetadataRequest, bytes.fromhex("02 02 74 01 05 03 61 62 63 01 00 00 00")))
    assert nested == bytes.fromhex("02 02 74 00 01 00 00 00")


def test_null_is_refused_where_nothing_may_be_null():
    """Only a field that says so may be null."""
    with pytest.raises(ProtocolError, match="a count of at least 0, saw -1"):
        decoded(MetadataResponse, bytes.fromhex("00000000 00"))
    with pytest.raises(ProtocolError, match="more bytes, saw -1"):
        decoded(load_request_schema(10, 0), b"\xff\xff")


def test_text_that_is_no_utf_8_is_refused():
    """As a request that cannot be read, not as a mistake of ours."""
    with pytest.raises(ProtocolError, match="codec can't decode"):
        decoded(load_request_schema(10, 0), b"\0\2\xff\xfe")


@pytest.mark.parametrize("code", [134, 135, 136])
def test_an_error_of_a_later_kafka_keeps_its_code(code):
    """Rule: the library of messages has no name for it, Kafka does: an answer that is read and written again
    says the same; only a code that Kafka does not have is an unknown one, as to Kafka's own clients."""
    kind = load_response_schema(42, 2)  # DeleteGroups
    written = struct.pack(">h", code)
    answer = b"\x00\x00\x00\x00" + b"\x02" + b"\x02g" + written + b"\x00\x00"  # throttle, one row: group g
    (group,) = decoded(kind, answer).results
    assert (group.error_code.value, group.error_code.name.upper()) == (code, BY_CODE[code].name)
    assert encoded(decoded(kind, answer)) == answer
    (unknown,) = decoded(kind, answer.replace(written, struct.pack(">h", 999))).results
    assert unknown.error_code.name == "unknown_server_error"
