"""Groups of ZooKeeper operations: as many in one request as ZooKeeper accepts.

Owns the sizes on the wire (zookeeper.jute) and the bound. Must not know the operations' purpose.

The server closes the connection after a request longer than its jute.maxbuffer, and ZooKeeper's own clients
do so after such a response. The size of a request is exact, and so is that of a response to writes. The size
of a response to reads is estimated by the caller, who knows the content of the nodes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from attrs import frozen

from fencepost.impl.zookeeper.interface import Create, SetData, WriteOperation

JUTE_MAXBUFFER = 1_048_575
"""ZooKeeper's default bound of one request and of one response, in bytes without the four bytes of the
length."""

REQUEST_BYTES, ANSWER_BYTES = 8 + 9, 16 + 9
"""Header and end mark of a multi: xid and kind; xid, zxid and error."""
MEMBER_BYTES, ERROR_BYTES, STAT_BYTES, ACL_BYTES, SUFFIX_BYTES = 9, 13, 68, 27, 10
UTF8_BYTES = 4
"""The most bytes of one character."""
_INT, _BOOL = 4, 1

Member = TypeVar("Member")
Size = tuple[int, int]
"""Bytes in the request, bytes in the response."""


@frozen(kw_only=True)
class Grouping:
    """A group of 500 is near the highest throughput of a server (docs/explanation/scale.md) and delays other
    clients by a few milliseconds only."""

    # The most operations in a group.
    members: int = 500
    # Requests in flight.
    window: int = 10
    # Of a request or its response, the server's jute.maxbuffer.
    maximum_bytes: int = JUTE_MAXBUFFER


GROUPED = Grouping()
PIPELINED = Grouping(members=1)
"""As Kafka since 1.1: zookeeper.max.in.flight.requests of 10."""
ONE_AT_A_TIME = Grouping(members=1, window=1)
"""As Kafka before 1.1."""


def _text_bytes(text: str) -> int:
    return _INT + (len(text) if text.isascii() else len(text.encode()))


def write_size(operation: WriteOperation) -> Size:
    """The size of one write inside a multi, with its longest response."""
    request = MEMBER_BYTES + _text_bytes(operation.path)
    if isinstance(operation, SetData):
        return request + _INT + len(operation.data) + _INT, MEMBER_BYTES + STAT_BYTES
    if isinstance(operation, Create):
        answer = MEMBER_BYTES + _text_bytes(operation.path) + SUFFIX_BYTES * operation.sequential + STAT_BYTES
        return request + _INT + len(operation.data) + ACL_BYTES + _INT, answer
    return request + _INT, ERROR_BYTES


def read_size(path: str, data_bytes: int) -> Size:
    """The size of one read inside a multi-read. data_bytes: the estimated size of the node."""
    return MEMBER_BYTES + _text_bytes(path) + _BOOL, MEMBER_BYTES + _INT + data_bytes + STAT_BYTES


def watch_size(path: str) -> Size:
    """The size of one path in a request that sets several watches."""
    return _text_bytes(path), 0


def read_groups(nodes: Mapping[str, int], grouping: Grouping) -> list[list[str]]:
    """`groups` of paths, one multi-read each. nodes: the estimated bytes of each. If a full group of the
    largest nodes fits, as it nearly always does, the others are not looked at."""
    paths = list(nodes)
    if not paths:
        return []
    largest = read_size("x" * UTF8_BYTES * max(map(len, paths)), max(nodes.values()))
    request_room, answer_room = _room(grouping)
    if grouping.members * largest[0] <= request_room and grouping.members * largest[1] <= answer_room:
        return [paths[begin : begin + grouping.members] for begin in range(0, len(paths), grouping.members)]
    return groups(paths, lambda path: read_size(path, nodes[path]), grouping)


def _room(grouping: Grouping, fixed: Size = (0, 0)) -> Size:
    """Bytes for the members of a group."""
    return (
        grouping.maximum_bytes - REQUEST_BYTES - fixed[0],
        grouping.maximum_bytes - ANSWER_BYTES - fixed[1],
    )


def groups(
    members: Iterable[Member], size: Callable[[Member], Size], grouping: Grouping, fixed: Size = (0, 0)
) -> list[list[Member]]:
    """The members in order, split into groups within the bound. fixed: the size of what every group has in
    addition. A member that is too large by itself is a group of its own; the server refuses it."""
    request_room, answer_room = _room(grouping, fixed)
    made: list[list[Member]] = []
    group: list[Member] = []
    request = answer = 0
    for member in members:
        more_request, more_answer = size(member)
        request, answer = request + more_request, answer + more_answer
        if group and (len(group) == grouping.members or request > request_room or answer > answer_room):
            made.append(group)
            group, request, answer = [], more_request, more_answer
        group.append(member)
    if group:
        made.append(group)
    return made
