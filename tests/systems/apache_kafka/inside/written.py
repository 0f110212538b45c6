"""Logs of decisions, written by hand: records of __cluster_metadata and transactions of ZooKeeper."""

import json
import struct
import zlib

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.metadata_records import _FIELDS, _PLAIN, _STRUCTS, _TABLE

NUMBERS = {name: number for number, (name, _, _) in _TABLE.items()}


def uid(number):
    """A uuid as the decoder shows it."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def encoded(kind, value):
    if kind in _PLAIN:
        return _PLAIN[kind].pack(value)
    if kind == "uuid":
        from base64 import urlsafe_b64decode

        return urlsafe_b64decode(value + "==")
    if kind in _STRUCTS:
        return b"".join(encoded(each.kind, value[each.name]) for each in _STRUCTS[kind]) + b"\0"
    if value is None:
        return b"\0"
    if kind == "string":
        return varint(len(value.encode()) + 1) + value.encode()
    return varint(len(value) + 1) + b"".join(encoded(kind[1:-1], each) for each in value)


def record(name, /, **fields):
    """The value of a metadata record, of its newest version."""
    number = NUMBERS[name]
    plain, tagged = b"", []
    for each in _FIELDS[number]:
        if each.tag < 0:
            default = [] if each.kind.startswith("[") else None if each.kind == "string" else 0
            default = uid(0) if each.kind == "uuid" else default
            plain += encoded(each.kind, fields.get(each.name, default))
        elif each.name in fields:
            tagged.append((each.tag, encoded(each.kind, fields[each.name])))
    tagged.sort()
    tags = varint(len(tagged)) + b"".join(varint(tag) + varint(len(data)) + data for tag, data in tagged)
    return varint(1) + varint(number) + varint(_TABLE[number][1]) + plain + tags


def leader_change(leader):
    """Key and value of the control record that begins an epoch of the quorum."""
    return struct.pack(">hh", 0, 2), struct.pack(">hi", 0, leader) + b"\x01\x01\x00"


def metadata_log(*batches):
    """The bytes of a segment. batches: (epoch, milliseconds, values); a broker's number instead of values is
    a change of the quorum's leader."""
    data, offset = b"", 0
    for epoch, time_ms, values in batches:
        control = isinstance(values, int)
        pairs = [leader_change(values)] if control else [(None, value) for value in values]
        records = [
            Record(offset=offset + place, timestamp_ms=time_ms, key=key, value=value)
            for place, (key, value) in enumerate(pairs)
        ]
        data += encode_batch(records, base_offset=offset, leader_epoch=epoch, control=control)
        offset += len(records)
    return data


# ---- ZooKeeper


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">i", len(data)) + data


def create(path, data=b""):
    acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
    return 1, text(path) + text(data) + acl + struct.pack(">?i", False, 1)


def set_data(path, data, version):
    return 5, text(path) + text(data) + struct.pack(">i", version)


def delete(path):
    return 2, text(path)


def multi(*parts):
    return 14, struct.pack(">i", len(parts)) + b"".join(
        struct.pack(">i", kind) + text(data) for kind, data in parts
    )


def close_session(*paths):
    return -11, struct.pack(">i", len(paths)) + b"".join(map(text, paths))


def transaction(change, session=1, zxid=1, time_ms=0):
    """The bytes of an entry without its frame."""
    kind, body = change
    return struct.pack(">qiqqi", session, 0, zxid, time_ms, kind) + body


def transaction_log(*entries, tail=b"\0" * 1000):
    """A file: each entry with its frame, then what was preallocated."""
    framed = b"".join(struct.pack(">qi", zlib.adler32(one), len(one)) + one + b"B" for one in entries)
    return b"ZKLG" + struct.pack(">iq", 2, 0) + framed + tail


def state(leader, epoch, isr, controller_epoch=1):
    """The content of a partition's state node."""
    content = {
        "controller_epoch": controller_epoch,
        "leader": leader,
        "version": 1,
        "leader_epoch": epoch,
        "isr": isr,
    }
    return json.dumps(content).encode()


def topic_node(replicas, adding=(), removing=()):
    """The content of a topic's node, of one partition (KIP-455)."""
    content = {
        "version": 3,
        "topic_id": "x",
        "partitions": {"0": replicas},
        "adding_replicas": {"0": list(adding)} if adding else {},
        "removing_replicas": {"0": list(removing)} if removing else {},
    }
    return json.dumps(content).encode()
