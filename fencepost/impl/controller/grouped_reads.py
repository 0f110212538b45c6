"""Reading many nodes in few requests. Owns the requests and the watches that go with them; must not know what
the nodes mean."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.impl.core.procedures import Pipelined, ZooKeeperSteps
from fencepost.impl.zookeeper.grouping import Grouping, read_groups
from fencepost.impl.zookeeper.interface import (
    Data,
    Failed,
    GetData,
    MultiRead,
    MultiReadDone,
    Reply,
    SetWatches,
)

NOT_MULTI = -1
"""Instead of a transaction: the read was no multi-read and has set its watch itself."""


def _as_it_is(node: Data) -> Any:
    return node


def read_nodes(
    grouping: Grouping,
    nodes: Mapping[str, int],
    *,
    watch: bool = False,
    read: Callable[[Data], Any] = _as_it_is,
) -> ZooKeeperSteps:
    """Returns what `read`, a pure function, makes of each node, or Failed, in order of the paths. nodes:
    paths, and how many bytes each is believed to hold. watch: each that is there is watched.

    A multi-read sets no watches, so that they are set behind it, for what has changed since its answer:

        1. the multi-read is answered, and says after which transaction (zxid)
        2. a node is changed; nobody watches it yet
        3. SetWatches names the zxid of 1: the change of 2 is later, so that its watch fires at once
    """
    made = read_groups(nodes, grouping)
    requests = tuple(
        GetData(group[0], watch) if len(group) == 1 else MultiRead(tuple(group)) for group in made
    )

    def kept(reply: Reply) -> tuple[list[Any], int]:
        """What is made of each node of a group, and the transaction to watch them from: NOT_MULTI if they are
        watched already."""
        if isinstance(reply, MultiReadDone):
            return [read(one) if isinstance(one, Data) else one for one in reply.replies], reply.zxid
        return [read(reply) if isinstance(reply, Data) else reply], NOT_MULTI

    replies = (yield Pipelined(requests, grouping.window, kept)) if requests else []
    found: list[Any] = []
    watches: list[SetWatches] = []
    for group, (nodes_read, zxid) in zip(made, replies, strict=True):
        found += nodes_read
        if watch and zxid != NOT_MULTI:
            there = tuple(
                path for path, one in zip(group, nodes_read, strict=True) if type(one) is not Failed
            )
            if there:
                watches.append(SetWatches(there, zxid))
    if watches:
        yield Pipelined(tuple(watches), grouping.window)
    return found
