"""Strongly connected components of a graph given as arrays, and a shortest cycle through one.

Owns both algorithms. Must not know the meaning of nodes and edges.

Tarjan's algorithm without recursion, in time linear in nodes and edges (Tarjan, "Depth-first search and
linear graph algorithms", 1972): a stack of active nodes, each with the next of its edges.
"""

from collections import deque

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.operation_columns import NONE, Array

MOST_STARTS = 32
"""The most nodes of a component from which a shortest cycle is searched. Reason: a component of a real
violation is small; in one of thousands of nodes any short cycle suffices as a certificate."""


def components(nodes: int, source: Array, target: Array) -> Array:
    """The strongly connected components that contain a cycle.

    Args:
        nodes: the number of nodes; edges name them by 0 <= n < nodes.
        source, target: the edges, int64; none leads from a node to itself.

    Returns:
        for each node the number of its component, -1 if it is in no cycle; int64, length `nodes`.
    """
    if not len(source):
        return np.full(nodes, NONE)
    used = np.zeros(nodes, np.bool_)
    used[source] = used[target] = True
    number = np.cumsum(used) - 1  # without gaps: most nodes may have no edge
    order = np.argsort(number[source], kind="stable")
    start = np.searchsorted(number[source][order], np.arange(int(number[-1]) + 2))
    found = np.full(nodes, NONE)
    found[used] = _tarjan(start, number[target][order])
    return found


@compiled
def _tarjan(start: Array, target: Array) -> Array:
    nodes = len(start) - 1
    component = np.full(nodes, -1)
    index = np.full(nodes, -1)
    low = np.zeros(nodes, np.int64)
    waiting = np.zeros(nodes, np.bool_)  # on the stack of nodes without a component
    stack = np.zeros(nodes, np.int64)
    path = np.zeros(nodes, np.int64)
    edge = start[:-1].copy()
    counter = found = height = 0
    for root in range(nodes):
        if index[root] >= 0 or start[root] == start[root + 1]:
            continue
        depth = 0
        path[0] = root
        index[root] = low[root] = counter
        counter += 1
        stack[height] = root
        height += 1
        waiting[root] = True
        while depth >= 0:
            node = path[depth]
            if edge[node] < start[node + 1]:
                other = target[edge[node]]
                edge[node] += 1
                if index[other] < 0:
                    index[other] = low[other] = counter
                    counter += 1
                    stack[height] = other
                    height += 1
                    waiting[other] = True
                    depth += 1
                    path[depth] = other
                elif waiting[other] and index[other] < low[node]:
                    low[node] = index[other]
                continue
            depth -= 1
            if depth >= 0 and low[node] < low[path[depth]]:
                low[path[depth]] = low[node]
            if low[node] == index[node]:
                alone = stack[height - 1] == node
                while True:
                    height -= 1
                    member = stack[height]
                    waiting[member] = False
                    if not alone:
                        component[member] = found
                    if member == node:
                        break
                if not alone:
                    found += 1
    return component


def inside_components(component: Array, source: Array, target: Array) -> list[Array]:
    """The edges within each component.

    Args:
        component: of each node, as `components` answers.
        source, target: the edges of the graph.

    Returns:
        for each component, by number, the indices of its edges. All together take one sort.
    """
    inside = np.flatnonzero((component[source] >= 0) & (component[source] == component[target]))
    number = component[source[inside]]
    order = np.argsort(number, kind="stable")
    borders = np.searchsorted(number[order], np.arange(1, int(component.max(initial=-1)) + 1))
    return np.split(inside[order], borders) if len(inside) else []


def shortest_cycle(edges: Array, source: Array, target: Array, weigh: Array) -> list[int]:
    """A shortest cycle within one component.

    Args:
        edges: the edges of the component, as indices. Cycles are searched from the first MOST_STARTS nodes
            with a weight.
        source, target: the edges of the graph.
        weigh: for each node whether it counts for the length (moments of time do not).

    Returns:
        the edges of the cycle, as indices into `source`, in order; each begins where the one before ended.
    """
    beyond: dict[int, list[int]] = {}
    for edge in edges.tolist():
        beyond.setdefault(int(source[edge]), []).append(edge)
    members = np.unique(source[edges])
    best: list[int] = []
    cost = np.inf
    for start in members[weigh[members]][:MOST_STARTS].tolist():
        cycle = _back_to(start, beyond, target, weigh)
        length = sum(bool(weigh[target[edge]]) for edge in cycle)
        if length < cost:
            best, cost = cycle, length
    return best


def _back_to(start: int, beyond: dict[int, list[int]], target: Array, weigh: Array) -> list[int]:
    """The edges of a shortest path from a node back to itself: breadth first; nodes without weight cost
    nothing."""
    came: dict[int, int] = {}
    origin: dict[int, int] = {}
    todo: deque[int] = deque([start])
    done: set[int] = set()
    while todo:
        node = todo.popleft()
        if node in done:
            continue
        done.add(node)
        for edge in beyond[node]:
            other = int(target[edge])
            if other == start:
                way = [edge]
                while node != start:
                    way.append(came[node])
                    node = origin[node]
                return way[::-1]
            if other in done or (other in came and weigh[other]):
                continue
            came[other], origin[other] = edge, node
            if weigh[other]:
                todo.append(other)
            else:
                todo.appendleft(other)
    raise AssertionError("a component of several nodes has a cycle through each of them")
