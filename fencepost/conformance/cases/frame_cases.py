"""Bytes by hand: what closes a connection, what does not, and the order of answers."""

import struct
from functools import partial

from fencepost.conformance.batches import good
from fencepost.conformance.case import Facts, case
from fencepost.conformance.cases.case_requests import produce
from fencepost.conformance.lab import FETCH, METADATA, PRODUCE, Lab
from fencepost.wire.codec import write_request
from fencepost.wire.plain import request

API_VERSIONS = 18
HEADER = struct.Struct(">hhih")
LARGEST = (1 << 31) - 1


def _header(key: int, version: int, number: int = 1) -> bytes:
    return HEADER.pack(key, version, number, -1)


async def _sent(data: bytes, lab: Lab) -> Facts:
    raw = await lab.raw()
    raw.send(data)
    return await raw.end()


async def _framed(body: bytes, lab: Lab) -> Facts:
    raw = await lab.raw()
    raw.send_frame(body)
    return await raw.end()


_METADATA_1 = _header(METADATA, 1)
FRAMES: dict[str, tuple[str, bytes]] = {
    "unknown_api": ("API key 999.", _header(999, 0)),
    "negative_api": ("API key -1.", _header(-1, 0)),
    "unknown_version": ("Metadata in version 999.", _header(METADATA, 999)),
    "negative_version": ("Metadata in version -1.", _header(METADATA, -1)),
    "produce_v0": ("Produce in version 0.", _header(PRODUCE, 0) + struct.pack(">hii", 1, 1000, 0)),
    "produce_v2": ("Produce in version 2.", _header(PRODUCE, 2) + struct.pack(">hii", 1, 1000, 0)),
    "fetch_v3": ("Fetch in version 3.", _header(FETCH, 3) + struct.pack(">iiiii", -1, 0, 0, 0, 0)),
    "empty_frame": ("A frame of no bytes.", b""),
    "half_a_header": ("A frame of five bytes.", bytes(5)),
    "header_without_client_id": (
        "A header that ends before the client id.",
        struct.pack(">hhi", METADATA, 1, 1),
    ),
    "client_id_too_long": (
        "A client id that is longer than the frame.",
        HEADER.pack(METADATA, 1, 1, 500) + b"x",
    ),
    "client_id_not_utf8": (
        "A client id that is not UTF-8.",
        HEADER.pack(METADATA, 1, 1, 2) + b"\xff\xfe" + struct.pack(">i", 0),
    ),
    "client_id_null": ("Metadata with a null client id.", _METADATA_1 + struct.pack(">i", 0)),
    "client_id_length_minus_5": (
        "A client id of length -5.",
        HEADER.pack(METADATA, 1, 1, -5) + struct.pack(">i", 0),
    ),
    "body_missing": ("Metadata without a body.", _METADATA_1),
    "body_too_short": ("Metadata with half a body.", _METADATA_1 + b"\x00\x00"),
    "body_too_long": (
        "Metadata with three bytes after its body.",
        _METADATA_1 + struct.pack(">i", 0) + bytes(3),
    ),
    "array_longer_than_the_frame": (
        "Metadata of 1,000,000 topics, none of them there.",
        _METADATA_1 + struct.pack(">i", 1_000_000),
    ),
    "array_of_largest_length": (
        "Metadata of 2,147,483,647 topics, none of them there.",
        _METADATA_1 + struct.pack(">i", LARGEST),
    ),
    "array_of_length_minus_7": ("Metadata of -7 topics.", _METADATA_1 + struct.pack(">i", -7)),
    "string_longer_than_the_frame": (
        "Metadata of a topic with a name of 30,000 characters, none of them there.",
        _METADATA_1 + struct.pack(">ih", 1, 30_000),
    ),
    "null_where_none_may_be": (
        "Metadata of a topic with a null name.",
        _METADATA_1 + struct.pack(">ih", 1, -1),
    ),
    "name_not_utf8": (
        "Metadata of a topic with a name that is not UTF-8.",
        _METADATA_1 + struct.pack(">ih", 1, 2) + b"\xff\xfe",
    ),
    "unknown_tag_in_header": (
        "ApiVersions 3 with a tagged field in its header.",
        _header(API_VERSIONS, 3) + b"\x01\x63\x02ab" + b"\x02x\x02y\x00",
    ),
    "unknown_tag_in_body": (
        "ApiVersions 3 with a tagged field in its body.",
        _header(API_VERSIONS, 3) + b"\x00" + b"\x02x\x02y" + b"\x01\x63\x02ab",
    ),
    "tag_longer_than_the_frame": (
        "ApiVersions 3 with a tagged field that is longer than the frame.",
        _header(API_VERSIONS, 3) + b"\x00" + b"\x02x\x02y" + b"\x01\x63\x7fab",
    ),
    "endless_varint": (
        "ApiVersions 3 with a length of ten bytes 0xFF.",
        _header(API_VERSIONS, 3) + b"\x00" + b"\xff" * 10,
    ),
    "negative_correlation_id": (
        "Metadata with correlation id -1.",
        _header(METADATA, 1, -1) + struct.pack(">i", 0),
    ),
    "controlled_shutdown": ("API key 7, which brokers used among themselves.", _header(7, 0) + bytes(4)),
}
for _name, (_what, _body) in FRAMES.items():
    case(f"frames.{_name}", f"{_what} Answered, closed, or nothing for five seconds?")(
        partial(_framed, _body)
    )

RAW: dict[str, tuple[str, bytes]] = {
    "negative_length": ("A frame of length -1.", struct.pack(">i", -1)),
    "smallest_length": ("A frame of the smallest length there is.", struct.pack(">i", -LARGEST - 1)),
    "largest_length": ("A frame of length 2,147,483,647.", struct.pack(">i", LARGEST)),
    "longer_than_socket_request_max_bytes": ("A frame of 104,857,601 bytes.", struct.pack(">i", 104_857_601)),
    "http": ("An HTTP request.", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "tls": ("The first bytes of TLS.", bytes.fromhex("16030100a5010000a10303")),
}
for _name, (_what, _bytes) in RAW.items():
    case(f"frames.{_name}", f"{_what} Answered, closed, or nothing for five seconds?")(partial(_sent, _bytes))


@case("frames.correlation_id_is_the_request_s", "Metadata with correlation id -77: that of the answer.")
async def correlation(lab: Lab) -> Facts:
    raw = await lab.raw()
    raw.send_frame(_header(METADATA, 1, -77) + struct.pack(">i", 0))
    frame = await raw.frame()
    return None if frame is None else struct.unpack_from(">i", frame)[0]


@case("frames.byte_by_byte", "A request in pieces of one byte.")
async def slowly(lab: Lab) -> Facts:
    raw = await lab.raw()
    body = _header(METADATA, 1) + struct.pack(">i", 0)
    for byte in struct.pack(">i", len(body)) + body:
        raw.send(bytes((byte,)))
        await raw.writer.drain()
    return await raw.end()


@case("frames.answers_come_in_order", "A fetch that waits 300 ms, then two other requests, all sent at once.")
async def in_order(lab: Lab) -> Facts:
    topic = await lab.topic()
    raw = await lab.raw_to(topic.leader)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}
    waits = {
        "replica_id": -1,
        "max_wait": 300,
        "min_bytes": 1,
        "max_bytes": 1_000,
        "session_epoch": -1,
        "topics": [{"topic": topic.name, "partitions": [part]}],
    }
    raw.send(
        write_request(1, "x", request(FETCH, lab.run.best(FETCH), waits))
        + write_request(2, "x", request(METADATA, lab.run.best(METADATA), {"topics": []}))
        + write_request(3, "x", request(API_VERSIONS, 0, {}))
    )
    frames = [await raw.frame() for _ in range(3)]
    return [None if frame is None else struct.unpack_from(">i", frame)[0] for frame in frames]


@case(
    "frames.batches_of_a_connection_are_appended_in_order", "Four batches sent at once: their base offsets."
)
async def appended_in_order(lab: Lab) -> Facts:
    topic = await lab.topic()
    raw = await lab.raw_to(topic.leader)
    version = lab.run.best(PRODUCE)
    for number in range(4):
        data = [{"name": topic.name, "partition_data": [{"index": 0, "records": good(b"v")}]}]
        body = request(PRODUCE, version, {"acks": -1, "timeout": 5_000, "topic_data": data})
        raw.send(write_request(number, "x", body))
    numbers = [struct.unpack_from(">i", frame)[0] for _ in range(4) if (frame := await raw.frame())]
    return [numbers, (await produce(lab, topic, good(b"v")))["base_offset"]]


@case("frames.a_closed_connection_harms_no_other", "Garbage on one connection; a request on another.")
async def no_harm(lab: Lab) -> Facts:
    link = await lab.link()
    await lab.ask(link, METADATA, topics=[])
    await _framed(_header(999, 0), lab)
    answer = await lab.ask(link, METADATA, topics=[])
    return answer["topics"]
