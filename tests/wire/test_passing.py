"""What a proxy reads and changes in frames: every version that kio has, and nothing but addresses and
ApiVersions."""

import random
from dataclasses import fields, is_dataclass, replace
from typing import get_args

import pytest
from kio.index import load_response_schema
from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from wire_values import random_entity

from fencepost.wire import passing
from fencepost.wire.codec import write_response
from fencepost.wire.decoder import Places
from fencepost.wire.frames import ProtocolError

EVERY = [(key, version) for key, name in api_key_map.items() for version in schema_name_map[name]]
WITH_ADDRESSES = [(key, version) for key, version in EVERY if passing.has_addresses(key, version)]
LOCAL = "127.0.0.1"


def assign(node, host, port):
    """Ours for a broker's: another length than most, so that every length before it has to follow."""
    return (LOCAL, 9_000 + node % 100)


def with_local_addresses(value):
    """The same done to kio's objects: the naive twin of splicing."""
    if isinstance(value, tuple):
        return tuple(map(with_local_addresses, value))
    if not is_dataclass(value):
        return value
    changed = {each.name: with_local_addresses(getattr(value, each.name)) for each in fields(value)}
    node = changed.get("node_id", changed.get("broker_id"))
    if node is not None and changed.get("host") and changed.get("port", -1) >= 0:
        changed["host"], changed["port"] = assign(node, changed["host"], changed["port"])
    return replace(value, **changed)


@pytest.mark.parametrize(("key", "version"), WITH_ADDRESSES)
def test_splicing_changes_addresses_and_nothing_else(key, version):
    """For every answer with addresses at every version: spliced bytes are those of the message written
    anew."""
    rng, seen = random.Random(f"addresses {key} {version}"), 0
    for _ in range(12):
        body = random_entity(load_response_schema(key, version), rng)
        frame = write_response(7, body)
        places = Places()
        assert passing.answer_body(key, version, frame, places) == body
        seen += len(places.addresses)
        assert passing.rewritten(key, version, frame, places, assign) == write_response(
            7, with_local_addresses(body)
        )
    assert seen > 0


def names_a_broker(kind):
    """Whether a message, or a structure in it, has the host and the port of a node."""
    names = [each.name for each in fields(kind)]
    if {"host", "port"} <= set(names) and {"node_id", "broker_id"} & set(names):
        return True
    inside = [one for each in fields(kind) for one in (each.type, *get_args(each.type))]
    return any(names_a_broker(one) for one in inside if is_dataclass(one))


def test_every_newest_answer_with_host_and_port_of_a_broker_is_rewritten():
    """A later kio may bring addresses elsewhere: this test names the API then. What is left out is between
    controllers."""
    newest = [(key, max(schema_name_map[name])) for key, name in api_key_map.items()]
    found = {key for key, version in newest if names_a_broker(load_response_schema(key, version))}
    between_controllers = {52, 53, 54, 59}  # Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot
    assert found - between_controllers == set(passing.ADDRESSES_SINCE)


def test_tagged_fields_of_later_versions_pass():
    """Splicing keeps a tagged field that nobody here knows, also inside of the element with the address."""
    kind = load_response_schema(3, 12)
    body = random_entity(kind, random.Random(5))
    frame = write_response(7, body)
    assert frame.endswith(b"\x00")
    tagged = frame[4:-1] + b"\x01\x63\x02\xab\xcd"
    frame = len(tagged).to_bytes(4, "big") + tagged
    places = Places()
    passing.answer_body(3, 12, frame, places)
    changed = passing.rewritten(3, 12, frame, places, assign)
    assert changed.endswith(b"\x01\x63\x02\xab\xcd")
    assert int.from_bytes(changed[:4], "big") == len(changed) - 4


def test_a_frame_without_addresses_is_the_same_object():
    """What nobody changes is not copied."""
    body = random_entity(load_response_schema(0, 9), random.Random(1))
    frame = write_response(3, body)
    assert passing.rewritten(0, 9, frame, Places(), assign) is frame


def test_versions_are_clamped_to_what_can_be_read():
    """APIs that nobody knows go, high versions come down, low ones stay (KAFKA-18659)."""
    rows = [(0, 0, 99), (1, 4, 12), (9_999, 0, 1), (18, 0, 9), (3, 50, 60)]
    body = ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in rows),
        throttle_time=random_entity(load_response_schema(18, 3), random.Random(1)).throttle_time,
    )
    left = passing.versions_read(3, passing.clamped(3, write_response(5, body)))
    assert [(row.api_key, row.min_version, row.max_version) for row in left.api_keys] == [
        (0, 0, passing.understood(0)[1]),
        (1, 4, 12),
        (18, 0, passing.understood(18)[1]),
    ]


def test_versions_that_are_all_understood_pass_as_they_are():
    """Nothing to clamp: the same object."""
    body = ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(ApiVersion(api_key=0, min_version=3, max_version=4),),
        throttle_time=random_entity(load_response_schema(18, 3), random.Random(1)).throttle_time,
    )
    frame = write_response(5, body)
    assert passing.clamped(3, frame) is frame


def test_a_refusal_of_api_versions_is_of_version_0():
    """A client that asks in a version of its own can read it (KIP-511)."""
    body = passing.versions_read(99, passing.versions_refused(4))
    assert body.error_code is ErrorCode.unsupported_version
    assert [(row.api_key, row.max_version) for row in body.api_keys] == [(18, passing.understood(18)[1])]


def test_what_kio_has_is_understood_and_nothing_else():
    """The versions of the proxy are kio's."""
    assert all(passing.is_understood(key, version) for key, version in EVERY)
    assert not passing.is_understood(0, passing.understood(0)[1] + 1)
    assert not passing.is_understood(9_999, 0)


@pytest.mark.parametrize(
    "frame",
    [
        b"\0\0\0\x04\0\0\0\0",
        b"\0\0\0\x0a\0\x01\0\x04\0\0\0\x07\xff\xfe",
        b"\0\0\0\x0b\0\x01\0\x04\0\0\0\x07\0\x01\xff",
    ],
)
def test_bad_headers_are_refused(frame):
    """Too short, a client id of a negative length, one that is no text."""
    with pytest.raises(ProtocolError):
        passing.header_of(frame)


def test_an_answer_needs_a_correlation_id():
    """Shorter frames are refused."""
    with pytest.raises(ProtocolError, match="a correlation id"):
        passing.answered_id(b"\0\0\0\x02\0\0")
