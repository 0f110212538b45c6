"""Reading many nodes in few requests. Owns the requests and the watches that go with them; must not know what the nodes mean."""

from collections.abc import Mapping

from fencepost.impl.procedures import Pipelined, Steps
from fencepost.impl.zookeeper import Data, GetData, MultiRead, MultiReadDone, SetWatches
from fencepost.impl.zookeeper_groups import Grouping, read_groups


def read_nodes(grouping: Grouping, nodes: Mapping[str, int], *, watch: bool = False) -> Steps:
    """Returns Data or Failed of each path, in order. nodes: paths, and how many bytes each is believed to hold. watch: each that is there is watched.

    A multi-read sets no watches, so that they are set behind it, for what has changed since its answer:

        1. the multi-read is answered, and says after which transaction (zxid)
        2. a node is changed; nobody watches it yet
        3. SetWatches names the zxid of 1: the change of 2 is later, so that its watch fires at once
    """
    made = read_groups(nodes, grouping)
    requests = tuple(
        GetData(group[0], watch) if len(group) == 1 else MultiRead(tuple(group)) for group in made
    )
    replies = (yield Pipelined(requests, grouping.window)) if requests else []
    found: list[object] = []
    watches: list[SetWatches] = []
    for group, reply in zip(made, replies, strict=True):
        if not isinstance(reply, MultiReadDone):
            found.append(reply)
            continue
        found += reply.replies
        there = tuple(path for path, one in zip(group, reply.replies, strict=True) if isinstance(one, Data))
        if watch and there:
            watches.append(SetWatches(there, reply.zxid))
    if watches:
        yield Pipelined(tuple(watches), grouping.window)
    return found
