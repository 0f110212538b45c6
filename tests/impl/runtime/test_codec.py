"""Messages survive the wire; what is no message is refused, with the reason."""

from contextlib import suppress
from enum import Enum
from types import UnionType
from typing import get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.messages import broker_api
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.runtime.codec import INT32_FIELDS, KINDS, MalformedError, decode, encode

INNER = (kafka.EpochEnd, kafka.EpochQuery, kafka.FetchPartition, kafka.PartitionState)
QUICK = settings(derandomize=True, deadline=None, database=None, max_examples=200)
PLAIN = {
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(max_size=4),
    bytes: st.binary(max_size=4),
    bool: st.booleans(),
}


def values(kind):
    """Any value of a declared type."""
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    arguments = get_args(kind)
    if isinstance(kind, UnionType):
        return st.one_of(*(values(one) for one in arguments if one is not type(None)), st.none())
    if arguments:
        if arguments[1:] == (...,):
            return st.lists(values(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*(values(one) for one in arguments))
    hints = get_type_hints(kind)
    if issubclass(kind, tuple):
        return st.builds(kind, *(named(name, hints[name]) for name in kind._fields))
    fields = {name: named(name, hints[name]) for name in kind.__struct_fields__}
    return st.builds(lambda **given: kind(**given), **fields)


def named(name, kind):
    """Any value of a field."""
    if kind is int and name in INT32_FIELDS:
        return st.integers(-(2**31), 2**31 - 1)
    return values(kind)


MESSAGES = st.one_of([values(kind) for kind in get_args(broker_api.Message)])
PRODUCE = kafka.ProduceRequest(
    correlation_id=7, partition=kafka.TopicPartition("t", 0), acks=-1, records=b"batch", timeout=10**9
)


@QUICK
@given(message=MESSAGES)
def test_every_message_survives_the_wire(message):
    """Rule: encode and decode lose nothing, for every kind of message that there is."""
    again = decode(encode(message))
    assert again == message and type(again) is type(message)


@pytest.mark.parametrize("number", [-(2**31) - 1, 2**31, 2**63 - 1])
def test_numbers_of_32_bits_are_refused_beyond_them(number):
    """Rule: a leader epoch that no batch can hold never reaches a broker; every name in the table is a field
    of some message."""
    wanted = kafka.FetchPartition(partition=kafka.TopicPartition("t", 0), offset=number, leader_epoch=number)
    request = kafka.FetchRequest(
        correlation_id=1, replica_id=-1, max_wait=0, max_bytes=1, partitions=(wanted,)
    )
    with pytest.raises(MalformedError, match="expected a 32-bit integer"):
        decode(encode(request))
    named = {name for kind in KINDS.values() for name in kind.__struct_fields__} | {"partition"}
    inner = {name for kind in INNER for name in kind.__struct_fields__}
    assert named | inner >= INT32_FIELDS


def broken(change):
    """The produce request's frame after a change of its decoded form."""
    kind, fields = msgspec.msgpack.decode(encode(PRODUCE))
    return msgspec.msgpack.encode(change(kind, fields))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"GET / HTTP/1.1",
        encode(PRODUCE)[:-1],
        encode(PRODUCE) + b"\x00",
        b"\x91" * 100_000,
        broken(lambda kind, fields: kind),
        broken(lambda kind, fields: ["NoSuchRequest", fields]),
        broken(lambda kind, fields: [[kind], fields]),
        broken(lambda kind, fields: [kind, fields[:-1]]),
        broken(lambda kind, fields: [kind, [*fields, 0]]),
        broken(lambda kind, fields: [kind, [True, *fields[1:]]]),
        broken(lambda kind, fields: [kind, ["7", *fields[1:]]]),
        broken(lambda kind, fields: [kind, [7.0, *fields[1:]]]),
        broken(lambda kind, fields: [kind, [2**63, *fields[1:]]]),
        broken(lambda kind, fields: [kind, [7, None, *fields[2:]]]),
        broken(lambda kind, fields: [kind, [*fields[:3], "12", fields[4]]]),
        broken(lambda kind, fields: [kind, {"correlation_id": 7}]),
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(data):
    """Rule: a wrong type, a missing or additional field, or bytes of something else are MalformedError and
    nothing else."""
    with pytest.raises(MalformedError, match="expected"):
        decode(data)


@QUICK
@given(data=st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data):
    """Rule: whatever arrives, decoding answers with a message or MalformedError."""
    with suppress(MalformedError):
        decode(data)


@QUICK
@given(place=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_flipped_byte_gives_a_message_or_malformed(place, byte):
    """Rule: a damaged message never raises anything but MalformedError."""
    part = kafka.FetchPartition(partition=kafka.TopicPartition("topic", 3), offset=5)
    data = bytearray(
        encode(
            kafka.FetchRequest(
                correlation_id=1, replica_id=2, max_wait=5, max_bytes=9, partitions=(part,) * 3
            )
        )
    )
    data[place % len(data)] = byte
    with suppress(MalformedError):
        assert type(decode(bytes(data))) in KINDS.values()
