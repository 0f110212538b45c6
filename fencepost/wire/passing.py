"""Frames that only pass: what a proxy reads in them, and the few bytes that it changes.

Owns which APIs and versions can be read (all that kio has, not only those of our brokers), where the
addresses are in an answer, and what remains of ApiVersions. Must not know connections or who rewrites. A
frame is changed by splicing: all other bytes stay, also tagged fields of later versions.

Here a frame is raw: its four bytes of length are part of it, so that a frame that passes is not copied.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from kio.index import load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from fencepost.wire.codec import (
    FLEXIBLE_REQUEST_HEADER,
    FLEXIBLE_RESPONSE_HEADER,
    RequestHeader,
    write_response,
)
from fencepost.wire.decoder import AddressPlace, Message, Places, read
from fencepost.wire.frames import LENGTH_SIZE, ProtocolError
from fencepost.wire.plain import filled
from fencepost.wire.schemas import response_schema
from fencepost.wire.versions import API_VERSIONS

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER = 0, 1, 3, 10, 60
SHARE_FETCH, SHARE_ACKNOWLEDGE = 78, 79
ADDRESSES_SINCE: Mapping[int, int] = {
    PRODUCE: 10,
    FETCH: 16,
    METADATA: 0,
    FIND_COORDINATOR: 0,
    DESCRIBE_CLUSTER: 0,
    SHARE_FETCH: 1,
    SHARE_ACKNOWLEDGE: 1,
}
"""APIs that answer with addresses of brokers, and since which version (KIP-951 for the first two)."""
ELEMENTS = 4_000_000
"""Most elements of all arrays of one message. Metadata of a cluster of 200,000 partitions with three replicas
lists 1.6 million."""

_MOST_LOOKED_UP = 4_096
"""Keys and versions that are remembered: clients may ask for any of four billion."""
_REQUEST_START = struct.Struct(">ihhih")
_HEADER_WITHOUT_CLIENT = _REQUEST_START.size
_RESPONSE_START = struct.Struct(">ii")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_UNSUPPORTED_VERSION = 35


@lru_cache(maxsize=_MOST_LOOKED_UP)
def understood(api_key: int) -> tuple[int, int] | None:
    """The lowest and the highest version of this API that can be read; None for none."""
    name = api_key_map.get(api_key)
    versions = schema_name_map.get(name, {}) if name is not None else {}
    return (min(versions), max(versions)) if versions else None


@lru_cache(maxsize=_MOST_LOOKED_UP)
def is_understood(api_key: int, version: int) -> bool:
    """Whether requests of this version, and their answers, can be read."""
    versions = understood(api_key)
    return versions is not None and versions[0] <= version <= versions[1]


def api_name(api_key: int) -> str:
    """kio's name, such as "fetch"; "api 1234" for an unknown one."""
    return api_key_map.get(api_key, f"api {api_key}")


def header_of(frame: bytes) -> RequestHeader:
    """The header of a raw request, but for its tagged fields; `body` counts from the first byte of the frame.
    Raises ProtocolError."""
    if len(frame) < _HEADER_WITHOUT_CLIENT:
        raise ProtocolError(
            expected=f"a request of at least {_HEADER_WITHOUT_CLIENT - LENGTH_SIZE} bytes",
            seen=f"{len(frame) - LENGTH_SIZE} bytes",
            where="a frame",
        )
    _, key, version, correlation_id, length = _REQUEST_START.unpack_from(frame)
    body = _HEADER_WITHOUT_CLIENT + max(0, length)
    if length < -1 or body > len(frame):
        raise ProtocolError(
            expected="a client id inside its frame", seen=f"a length of {length}", where="a request header"
        )
    try:
        client_id = None if length < 0 else frame[_HEADER_WITHOUT_CLIENT:body].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            expected="a client id in UTF-8", seen=str(error), where="a request header"
        ) from None
    return RequestHeader(
        api_key=key, version=version, correlation_id=correlation_id, client_id=client_id, body=body
    )


def answered_id(frame: bytes) -> int:
    """The correlation id of a raw answer. Raises ProtocolError."""
    if len(frame) < _RESPONSE_START.size:
        raise ProtocolError(
            expected="a correlation id", seen=f"{len(frame) - LENGTH_SIZE} bytes", where="an answer"
        )
    number: int = _RESPONSE_START.unpack_from(frame)[1]
    return number


@cache
def _request_kind(api_key: int, version: int) -> tuple[Any, bool]:
    """kio's class, and whether its header has tagged fields: looked up for every frame."""
    kind: Any = load_request_schema(api_key, version)
    return kind, kind.__header_schema__.__version__ >= FLEXIBLE_REQUEST_HEADER


@cache
def _response_kind(api_key: int, version: int) -> tuple[Any, bool]:
    kind: Any = load_response_schema(api_key, version)
    return kind, kind.__header_schema__.__version__ >= FLEXIBLE_RESPONSE_HEADER


def request_body(header: RequestHeader, frame: bytes) -> Any:
    """The body of a raw request, as kio's class. header: of the request; frame: with the length. Raises
    ProtocolError."""
    kind, flexible = _request_kind(header.api_key, header.version)
    message = Message(frame, ELEMENTS)
    return read(kind, message, message.skip_tags(header.body) if flexible else header.body)


def answer_body(api_key: int, version: int, frame: bytes, places: Places | None = None) -> Any:
    """The body of a raw answer, as kio's class; places: to be filled. Raises ProtocolError."""
    kind, flexible = _response_kind(api_key, version)
    message = Message(frame, ELEMENTS, places)
    start = _RESPONSE_START.size
    return read(kind, message, message.skip_tags(start) if flexible else start)


def has_addresses(api_key: int, version: int) -> bool:
    """Whether an answer may name brokers by host and port. api_key, version: of its request."""
    since = ADDRESSES_SINCE.get(api_key)
    return since is not None and version >= since


@cache
def _flexible_body(api_key: int, version: int) -> bool:
    flexible: bool = load_response_schema(api_key, version).__flexible__
    return flexible


Assign = Callable[[int, str, int], tuple[str, int]]
"""assign(node, host, port) -> the host and port that clients are given instead."""


def rewritten(api_key: int, version: int, frame: bytes, places: Places, assign: Assign) -> bytes:
    """The raw answer with every address replaced, and nothing else; the same object if there is none.
    api_key, version: of its request; frame: with the length; places: of the addresses; assign: the new
    address of each."""
    cuts: list[tuple[int, int, bytes]] = []
    flexible = _flexible_body(api_key, version)
    for place in places.addresses:
        if place.host and place.port >= 0:
            cuts.append((place.start, place.port_end, _address(*_assigned(place, assign), flexible)))
    if not cuts:
        return frame
    for tag in places.tags:
        grown = sum(
            len(new) - (end - start) for start, end, new in cuts if tag.end <= start and end <= tag.after
        )
        cuts.append((tag.start, tag.end, _varint(tag.after - tag.end + grown)))
    return _spliced(frame, cuts)


def _assigned(place: AddressPlace, assign: Assign) -> tuple[str, int]:
    return assign(place.node, place.host, place.port)


def _address(host: str, port: int, flexible: bool) -> bytes:
    name = host.encode()
    length = _varint(len(name) + 1) if flexible else _INT16.pack(len(name))
    return length + name + _INT32.pack(port)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _spliced(frame: bytes, cuts: list[tuple[int, int, bytes]]) -> bytes:
    parts, position = [], LENGTH_SIZE
    for start, end, new in sorted(cuts):
        parts += [frame[position:start], new]
        position = end
    parts.append(frame[position:])
    body = b"".join(parts)
    return _INT32.pack(len(body)) + body


# ---- ApiVersions


def versions_refused(correlation_id: int) -> bytes:
    """The answer to an ApiVersions request of an unreadable version, as Kafka's: body version 0 with
    UNSUPPORTED_VERSION and the versions of ApiVersions (KIP-511)."""
    low, high = understood(API_VERSIONS) or (0, 0)
    row = {"api_key": API_VERSIONS, "min_version": low, "max_version": high}
    values = {"error_code": ErrorCode.unsupported_version, "api_keys": [row]}
    return write_response(correlation_id, filled(response_schema(API_VERSIONS, 0), values))


def versions_read(version: int, frame: bytes) -> Any:
    """The body of a raw answer to ApiVersions, which is of version 0 if the broker refused. Raises
    ProtocolError."""
    refused = frame[_RESPONSE_START.size : _RESPONSE_START.size + _INT16.size]
    if refused == _INT16.pack(_UNSUPPORTED_VERSION):
        version = 0
    return answer_body(API_VERSIONS, version, frame)


def clamped(version: int, frame: bytes) -> bytes:
    """The raw answer to ApiVersions without what cannot be read: unknown APIs, and versions above the
    highest. The lowest stays: librdkafka leaves compression out unless Produce 0 is offered (KAFKA-18659).
    version: of the request; frame: with the length. Raises ProtocolError."""
    body = versions_read(version, frame)
    rows = []
    for row in body.api_keys:
        known = understood(row.api_key)
        if known is not None and row.min_version <= known[1]:
            rows.append(
                row
                if row.max_version <= known[1]
                else type(row)(api_key=row.api_key, min_version=row.min_version, max_version=known[1])
            )
    if tuple(rows) == body.api_keys:
        return frame
    return write_response(answered_id(frame), replace(body, api_keys=tuple(rows)))


# ---- for those who record


def error_name(error: Any) -> str:
    """Kafka's name of an error that an answer names: NONE for success."""
    name: str = error.name
    return name.upper()


def assigned_partitions(data: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """The topics and partitions of an assignment in Kafka's format for consumers
    (ConsumerProtocolAssignment); none for bytes that are something else."""
    if len(data) < _INT16.size:
        return []
    message, (version,) = Message(data, ELEMENTS), _INT16.unpack_from(data)
    versions = schema_name_map["consumer_protocol_assignment"]
    if version < min(versions):
        return []
    kind = load_entity_schema("consumer_protocol_assignment", min(version, max(versions)), EntityType.data)
    try:
        body: Any = read(kind, message, _INT16.size)
    except ProtocolError:
        return []
    return [(each.topic, tuple(each.partitions)) for each in body.assigned_partitions]
