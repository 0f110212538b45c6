"""Requests and responses as bytes: headers here, bodies by decoder.py and kio's writers.

Owns the two headers. Must not know which versions are spoken (versions.py). Request header 1: API key,
version, correlation id, client id; header 2 adds tagged fields, and keeps the client id's old form (KIP-482).
A response to ApiVersions has header 0 at every version, so that a client with an unknown version
can read it (KIP-511).
"""

import io
import struct
from functools import cache
from typing import Any

from attrs import frozen
from kio.serial import entity_writer
from kio.static.constants import EntityType

from fencepost.wire.decoder import Message, read
from fencepost.wire.frames import ProtocolError, framed
from fencepost.wire.schemas import class_named, request_schema, response_schema

_REQUEST_START = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_HEADER_WITHOUT_CLIENT = _REQUEST_START.size
NO_CLIENT_ID = -1
FLEXIBLE_REQUEST_HEADER, FLEXIBLE_RESPONSE_HEADER = 2, 1


@frozen(kw_only=True)
class RequestHeader:
    """What every request begins with."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    # Where the rest begins, tagged fields of the header included.
    body: int


def read_request_header(frame: bytes) -> RequestHeader:
    """The header of a request, but for its tagged fields. Raises ProtocolError."""
    if len(frame) < _HEADER_WITHOUT_CLIENT:
        raise ProtocolError(
            expected=f"a request header of at least {_HEADER_WITHOUT_CLIENT} bytes",
            seen=f"{len(frame)} bytes",
            where="a frame",
        )
    key, version, correlation_id, length = _REQUEST_START.unpack_from(frame)
    body = _HEADER_WITHOUT_CLIENT + max(0, length)
    if length < NO_CLIENT_ID or body > len(frame):
        raise ProtocolError(
            expected="a client id inside its frame", seen=f"a length of {length}", where="a request header"
        )
    try:
        client_id = None if length == NO_CLIENT_ID else frame[_HEADER_WITHOUT_CLIENT:body].decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            expected="a client id in UTF-8", seen=str(error), where="a request header"
        ) from None
    return RequestHeader(
        api_key=key, version=version, correlation_id=correlation_id, client_id=client_id, body=body
    )


def read_request(header: RequestHeader, frame: bytes, elements: int) -> Any:
    """The body of a request, as kio's class. Raises ProtocolError. elements: bound on those of all its arrays
    together."""
    kind = request_schema(header.api_key, header.version)
    flexible = kind.__header_schema__.__version__ >= FLEXIBLE_REQUEST_HEADER
    return _read(kind, frame, header.body, flexible, elements)


def read_response(api_key: int, version: int, frame: bytes, elements: int) -> tuple[int, Any]:
    """Correlation id and body of a response. api_key, version: of its request; frame: without the length;
    elements: bound on elements of arrays. Raises ProtocolError."""
    kind = response_schema(api_key, version)
    if len(frame) < _CORRELATION_ID.size:
        raise ProtocolError(expected="a correlation id", seen=f"{len(frame)} bytes", where="a response")
    flexible = kind.__header_schema__.__version__ >= FLEXIBLE_RESPONSE_HEADER
    body = _read(kind, frame, _CORRELATION_ID.size, flexible, elements)
    return correlation_id_of(frame), body


def correlation_id_of(frame: bytes) -> int:
    """Which request a response answers."""
    number: int = _CORRELATION_ID.unpack_from(frame)[0]
    return number


def _read(kind: Any, frame: bytes, position: int, flexible: bool, elements: int) -> Any:
    message = Message(frame, elements)
    return read(kind, message, message.skip_tags(position) if flexible else position)


def write_response(correlation_id: int, response: Any) -> bytes:
    """The frame of a response."""
    out = io.BytesIO()
    out.write(_CORRELATION_ID.pack(correlation_id))
    if response.__header_schema__.__version__ >= FLEXIBLE_RESPONSE_HEADER:
        out.write(b"\x00")
    entity_writer(type(response))(out, response)
    return framed(out.getvalue())


def write_request(correlation_id: int, client_id: str | None, request: Any) -> bytes:
    """The frame of a request."""
    out = io.BytesIO()
    name = b"" if client_id is None else client_id.encode()
    length = NO_CLIENT_ID if client_id is None else len(name)
    out.write(_REQUEST_START.pack(request.__api_key__, request.__version__, correlation_id, length))
    out.write(name)
    if request.__header_schema__.__version__ >= FLEXIBLE_REQUEST_HEADER:
        out.write(b"\x00")
    entity_writer(type(request))(out, request)
    return framed(out.getvalue())


@cache
def response_type(api_key: int, version: int, name: str) -> tuple[type[Any], frozenset[str]]:
    """kio's class `name` of a response of `api_key` in `version`, and the names of its fields."""
    return _named(api_key, version, name, EntityType.response)


@cache
def request_type(api_key: int, version: int, name: str) -> tuple[type[Any], frozenset[str]]:
    """kio's class `name` of a request of `api_key` in `version`, and the names of its fields."""
    return _named(api_key, version, name, EntityType.request)


def _named(api_key: int, version: int, name: str, side: Any) -> tuple[type[Any], frozenset[str]]:
    kind = class_named(api_key, version, name, side)
    return kind, frozenset(kind.__dataclass_fields__)
