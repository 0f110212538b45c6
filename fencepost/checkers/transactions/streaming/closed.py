"""Which transactions can be in no cycle that is still to come.

Owns reachability in the graph of what has arrived. Must not know what is remembered, or the rules.

A cycle enters each of its nodes. Of a node that has completed the edges that enter it are known: from writers
of what it read, and from what ended before it began. So an edge from what is still to come enters only a
reader of a record whose writer is not known or not decided, or a transaction with a part in flight. What no
path reaches from these is closed: it is in no later cycle, and may be forgotten.
"""

import numpy as np

from fencepost.checkers.operation_columns import Array
from fencepost.checkers.transactions.graph import Graph


def reached(graph: Graph, sources: Array) -> Array:
    """The nodes to which a path leads from one of these, by reads and by real time.

    Args:
        graph: the graph of one trace.
        sources: nodes.

    Returns:
        for each row whether it is such a node; the sources are. The order of a process is part of that of
        real time.
    """
    source = np.concatenate((graph.wr.source, graph.realtime.source))
    target = np.concatenate((graph.wr.target, graph.realtime.target))
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(graph.nodes + 1)).tolist()
    beyond = target[order].tolist()
    seen = np.zeros(graph.nodes, np.bool_).tolist()
    todo = np.unique(sources).tolist()
    for node in todo:
        seen[node] = True
    while todo:
        node = todo.pop()
        for other in beyond[start[node] : start[node + 1]]:
            if not seen[other]:
                seen[other] = True
                todo.append(other)
    return np.array(seen[: graph.rows], np.bool_)
