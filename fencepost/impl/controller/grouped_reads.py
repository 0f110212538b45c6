"""Reading many nodes in few requests. Owns the requests and their watches. Must not know the meaning of the
nodes."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.impl.core.procedures import Pipelined, ZooKeeperSteps
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper.grouping import Grouping, read_groups

NOT_MULTI = -1
"""In place of a transaction: the read was no multi-read and has set its watch itself."""


def _as_it_is(node: zk.Data) -> Any:
    return node


def read_nodes(
    grouping: Grouping,
    nodes: Mapping[str, int],
    *,
    watch: bool = False,
    read: Callable[[zk.Data], Any] = _as_it_is,
) -> ZooKeeperSteps:
    """Read many nodes. Returns the result of `read`, a pure function, for each node, or Failed, in the order
    of the paths.

    nodes: paths and estimated bytes. watch: set a watch on each existing node. A multi-read sets no watches,
    so they are set after it, for changes since its answer:

        1. the multi-read is answered, and says after which transaction (zxid)
        2. a node is changed; it has no watch yet
        3. SetWatches names the zxid of 1: the change of 2 is later, so its watch fires at once
    """
    made = read_groups(nodes, grouping)
    requests = tuple(
        zk.GetData(group[0], watch) if len(group) == 1 else zk.MultiRead(tuple(group)) for group in made
    )

    def kept(reply: zk.Reply) -> tuple[list[Any], int]:
        """The results for the nodes of a group, and the transaction from which to watch them; NOT_MULTI if
        they are watched already."""
        if isinstance(reply, zk.MultiReadDone):
            return [read(one) if isinstance(one, zk.Data) else one for one in reply.replies], reply.zxid
        return [read(reply) if isinstance(reply, zk.Data) else reply], NOT_MULTI

    replies = (yield Pipelined(requests, grouping.window, kept)) if requests else []
    found: list[Any] = []
    watches: list[zk.SetWatches] = []
    for group, (nodes_read, zxid) in zip(made, replies, strict=True):
        found += nodes_read
        if watch and zxid != NOT_MULTI:
            there = tuple(
                path for path, one in zip(group, nodes_read, strict=True) if type(one) is not zk.Failed
            )
            if there:
                watches.append(zk.SetWatches(there, zxid))
    if watches:
        yield Pipelined(tuple(watches), grouping.window)
    return found
