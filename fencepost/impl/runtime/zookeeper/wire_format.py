"""ZooKeeper's wire format of the interface's requests and replies, as request types for kazoo's connection.

Owns the bytes (zookeeper.jute, opcodes of ZooDefs 3.9). Must not know sessions or threads. Reasons not to use
kazoo's types: its multi does not return the transaction id of a creation, it drops results that are false,
and it has no SetWatches. kazoo uses `type`, `serialize()` and `deserialize(buffer, offset)` of a request.
There must be no attribute `watcher`, because runtime/zookeeper.py handles watches.
"""

import struct
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from fencepost.impl.zookeeper import interface as zk

DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN2, CHECK, MULTI, CREATE2, MULTI_READ, SET_WATCHES = (
    2, 3, 4, 5, 12, 13, 14, 15, 22, 101,
)  # fmt: skip
ERROR_RESULT = -1
END_OF_MULTI = struct.pack("!iBi", -1, 1, -1)
OPEN_ACL = struct.pack("!iii", 1, 31, 5) + b"world" + struct.pack("!i", 6) + b"anyone"
EPHEMERAL, SEQUENTIAL = 1, 2
WATCH_KINDS = {
    1: zk.WatchKind.CREATED,
    2: zk.WatchKind.DELETED,
    3: zk.WatchKind.CHANGED,
    4: zk.WatchKind.CHILD,
}
ERRORS = {
    0: zk.ZooKeeperError.ROLLED_BACK,
    -2: zk.ZooKeeperError.RUNTIME_INCONSISTENCY,
    -4: zk.ZooKeeperError.CONNECTION_LOSS,
    -101: zk.ZooKeeperError.NO_NODE,
    -103: zk.ZooKeeperError.BAD_VERSION,
    -108: zk.ZooKeeperError.NO_CHILDREN_FOR_EPHEMERALS,
    -110: zk.ZooKeeperError.NODE_EXISTS,
    -111: zk.ZooKeeperError.NOT_EMPTY,
    -112: zk.ZooKeeperError.SESSION_EXPIRED,
}
NO_MEMBER_FAILED = frozenset({zk.ZooKeeperError.ROLLED_BACK, zk.ZooKeeperError.RUNTIME_INCONSISTENCY})

_INT, _HEADER = struct.Struct("!i"), struct.Struct("!iBi")
_RESULT = struct.Struct("!iBii")
"""A member's result in a multi-read: the header, then the error code, or the length of the data."""
_STAT = struct.Struct("!qq16xii4xq4xi8x")
"""The fields of a stat that the interface uses: not the times, the ACL's version, the length of the data, the
last change of the children."""


class UnknownCodeError(Exception):
    """A result code that no request of the interface can have."""


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _INT.pack(len(encoded)) + encoded


def _buffer(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


def _texts(values: Sequence[str]) -> bytes:
    return _INT.pack(len(values)) + b"".join(_text(value) for value in values)


def _read_buffer(buffer: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = _INT.unpack_from(buffer, offset)
    offset += _INT.size
    end = offset + max(length, 0)  # -1: there is no data
    return bytes(buffer[offset:end]), end


def _read_stat(buffer: bytes, offset: int) -> tuple[zk.Stat, int]:
    return zk.Stat(*_STAT.unpack_from(buffer, offset)), offset + _STAT.size


def error_of(code: int) -> zk.ZooKeeperError:
    """The interface's name of a result code."""
    if code not in ERRORS:
        raise UnknownCodeError(f"ZooKeeper's result code {code}")
    return ERRORS[code]


def watch_event(buffer: bytes, offset: int) -> zk.WatchEvent | None:
    """Decode a notification.

    Args:
        buffer: the frame.
        offset: where it begins.

    Returns:
        the event; None for those without a path.
    """
    kind, _ = struct.unpack_from("!ii", buffer, offset)
    path, _ = _read_buffer(buffer, offset + 8)
    return zk.WatchEvent(path.decode(), WATCH_KINDS[kind]) if kind in WATCH_KINDS else None


# ---- writes: opcode, body and result, alone or as members of a multi


def _write_body(operation: zk.WriteOperation) -> tuple[int, bytes]:
    path = _text(operation.path)
    if isinstance(operation, zk.Create):
        flags = EPHEMERAL * operation.ephemeral + SEQUENTIAL * operation.sequential
        return CREATE2, path + _buffer(operation.data) + OPEN_ACL + _INT.pack(flags)
    if isinstance(operation, zk.SetData):
        return SET_DATA, path + _buffer(operation.data) + _INT.pack(operation.version)
    opcode = DELETE if isinstance(operation, zk.Delete) else CHECK
    return opcode, path + _INT.pack(operation.version)


def _write_result(opcode: int, buffer: bytes, offset: int) -> tuple[zk.Created | zk.Done, int]:
    if opcode == CREATE2:
        path, offset = _read_buffer(buffer, offset)
        stat, offset = _read_stat(buffer, offset)
        return zk.Created(path.decode(), stat.czxid), offset
    if opcode == SET_DATA:
        stat, offset = _read_stat(buffer, offset)
        return zk.Done(stat), offset
    return zk.Done(), offset


@frozen
class WireWrite:
    """One write."""

    operation: zk.WriteOperation

    @property
    def type(self) -> int:
        """The opcode."""
        return _write_body(self.operation)[0]

    def serialize(self) -> bytes:
        """The body of the request."""
        return _write_body(self.operation)[1]

    def deserialize(self, buffer: bytes, offset: int) -> zk.Reply:
        """Decode the reply.

        Args:
            buffer: the frame.
            offset: where the body begins.

        Returns:
            the reply.
        """
        return _write_result(self.type, buffer, offset)[0]


@frozen
class WireMulti:
    """Several writes in one transaction."""

    request: zk.Multi
    type = MULTI

    def serialize(self) -> bytes:
        """The body of the request: each member after a header, and an end mark."""
        bodies = [_write_body(operation) for operation in self.request.operations]
        return b"".join(_HEADER.pack(opcode, 0, -1) + body for opcode, body in bodies) + END_OF_MULTI

    def deserialize(self, buffer: bytes, offset: int) -> list[zk.Reply]:
        """Decode the reply, as a list (kazoo iterates over the results of a multi).

        Args:
            buffer: the frame.
            offset: where the body begins.

        Returns:
            one reply per member.
        """
        replies: list[zk.Created | zk.Done] = []
        errors: list[zk.ZooKeeperError] = []
        while True:
            opcode, done, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if done:
                break
            if opcode == ERROR_RESULT:
                errors.append(error_of(_INT.unpack_from(buffer, offset)[0]))
                offset += _INT.size
            else:
                reply, offset = _write_result(opcode, buffer, offset)
                replies.append(reply)
        if not errors:
            return [zk.MultiDone(tuple(replies))]
        index = next((i for i, error in enumerate(errors) if error not in NO_MEMBER_FAILED), 0)
        return [zk.Failed(errors[index], index, tuple(errors))]


# ---- reads


@frozen
class WireRead:
    """A read, with or without a watch."""

    request: zk.GetData | zk.Exists | zk.GetChildren

    @property
    def type(self) -> int:
        """The opcode."""
        return {zk.GetData: GET_DATA, zk.Exists: EXISTS, zk.GetChildren: GET_CHILDREN2}[type(self.request)]

    def serialize(self) -> bytes:
        """The body of the request."""
        return _text(self.request.path) + bytes([self.request.watch])

    def deserialize(self, buffer: bytes, offset: int) -> zk.Reply:
        """Decode the reply.

        Args:
            buffer: the frame.
            offset: where the body begins.

        Returns:
            the reply.
        """
        if isinstance(self.request, zk.Exists):
            return zk.Done(_read_stat(buffer, offset)[0])
        if isinstance(self.request, zk.GetData):
            data, offset = _read_buffer(buffer, offset)
            return zk.Data(data, _read_stat(buffer, offset)[0])
        (count,) = _INT.unpack_from(buffer, offset)
        offset += _INT.size
        names = []
        for _ in range(count):
            name, offset = _read_buffer(buffer, offset)
            names.append(name.decode())
        return zk.Children(tuple(sorted(names)), _read_stat(buffer, offset)[0])


@frozen
class WireMultiRead:
    """Several reads of data in one request, which kazoo does not support."""

    request: zk.MultiRead
    type = MULTI_READ

    def serialize(self) -> bytes:
        """The body of the request: each member after a header, and an end mark."""
        header = _HEADER.pack(GET_DATA, 0, -1)
        return b"".join(header + _text(path) + b"\0" for path in self.request.paths) + END_OF_MULTI

    def deserialize(self, buffer: bytes, offset: int) -> "ReadResults":
        """Decode the results, in order. The transaction id of the reply is in its header, which kazoo reads.

        Args:
            buffer: the frame.
            offset: where the body begins.

        Returns:
            the results.
        """
        results: list[zk.Data | zk.Failed] = []
        for _ in self.request.paths:
            opcode, _, _, number = _RESULT.unpack_from(buffer, offset)
            offset += _RESULT.size
            if opcode == ERROR_RESULT:
                results.append(zk.Failed(error_of(number)))
                continue
            end = offset + max(number, 0)  # -1: there is no data
            results.append(zk.Data(buffer[offset:end], zk.Stat(*_STAT.unpack_from(buffer, end))))
            offset = end + _STAT.size
        return ReadResults(tuple(results))


@frozen
class ReadResults:
    """The results of a multi-read."""

    replies: tuple[zk.Data | zk.Failed, ...]


@frozen
class WireSetWatches:
    """Set watches, also those of a reconnected session. Watches that missed a change after `seen` fire at
    once."""

    seen: int
    data: tuple[str, ...]
    exists: tuple[str, ...]
    children: tuple[str, ...]
    type = SET_WATCHES

    def serialize(self) -> bytes:
        """The body of the request."""
        return struct.pack("!q", self.seen) + _texts(self.data) + _texts(self.exists) + _texts(self.children)

    def deserialize(self, buffer: bytes, offset: int) -> zk.Done:
        """Decode the reply, which has no content.

        Args:
            buffer: the frame.
            offset: where the body begins.

        Returns:
            Done.
        """
        return zk.Done()


WireRequest = WireWrite | WireMulti | WireRead | WireMultiRead | WireSetWatches


def wire_request(request: zk.ZooKeeperRequest) -> WireRequest:
    """The wire form of a request of the interface."""
    if isinstance(request, zk.Multi):
        return WireMulti(request)
    if isinstance(request, zk.MultiRead):
        return WireMultiRead(request)
    if isinstance(request, zk.SetWatches):
        return WireSetWatches(request.seen, request.paths, (), ())
    if isinstance(request, (zk.GetData, zk.Exists, zk.GetChildren)):
        return WireRead(request)
    return WireWrite(request)


def reply_of(value: Any, zxid: int) -> zk.Reply:
    """The result of a request's `deserialize`; None is kazoo's result of an `exists` for a missing node.
    zxid: in the header of this reply."""
    if value is None:
        return zk.Failed(zk.ZooKeeperError.NO_NODE)
    if isinstance(value, ReadResults):
        return zk.MultiReadDone(value.replies, zxid)
    reply: zk.Reply = value[0] if isinstance(value, list) else value
    return reply


def set_watches_requests(
    seen: int, data: Sequence[str], exists: Sequence[str], children: Sequence[str], limit: int
) -> list[WireSetWatches]:
    """As many requests as needed to keep the paths of each below `limit` bytes (at least one path each)."""
    requests: list[WireSetWatches] = []
    lists: tuple[list[str], list[str], list[str]] = ([], [], [])
    size = 0
    for kind, paths in enumerate((data, exists, children)):
        for path in paths:
            if size + len(path) > limit and size:
                requests.append(WireSetWatches(seen, *(tuple(names) for names in lists)))
                lists, size = ([], [], []), 0
            lists[kind].append(path)
            size += len(path) + _INT.size
    if size:
        requests.append(WireSetWatches(seen, *(tuple(names) for names in lists)))
    return requests
