"""Whether transactions of reads and writes can have run one after another, and a circle if not.

Owns: what follows for their order from who read whom, and the search for an order. Must not know what a
transaction was called, or how a finding is said.

Each written value is known to be of one transaction, so that a read names its writer. Two rules then hold in
every serial order, for a reader R of what A wrote to a key, and another writer B of it: if B comes after A,
it comes after R; if B comes before R, it comes before A. They are applied until nothing new follows. A circle
convicts. Without a circle an order is searched, because to decide is hard in general (Papadimitriou, "The
serializability of concurrent database updates", 1979); an order that is found acquits.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from fencepost.checkers.transactions.components import components, inside_components, shortest_cycle

BEGINNING = 0
"""The node that wrote what every key held at first."""
MOST_NODES = 20_000
"""Of which all pairs are compared: 50 MB of bits."""
STEPS = 200_000
"""Of the search for an order, beyond one for each transaction."""
READ, OVERWROTE, WROTE_EARLIER, TIME = "read", "overwrote", "wrote earlier", "time"
Edge = tuple[str, Any]
"""Why one transaction is before another: the kind, and the key."""


@define
class SerialOrder:
    """Transactions by number; BEGINNING is not one of them."""

    count: int
    # (reader, key) -> the writer that it read.
    read: dict[tuple[int, Any], int]
    # For each key the transactions that wrote it.
    writers: dict[Any, list[int]]
    # Orders of time, which may go through moments: nodes of at least `count`.
    time: Sequence[tuple[int, int]] = ()
    nodes: int = 0
    edges: dict[tuple[int, int], Edge] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.nodes = max(self.nodes, self.count)
        for pair in self.time:
            self.edges[pair] = (TIME, None)
        for node in range(1, self.count):
            self.edges.setdefault((BEGINNING, node), (TIME, None))
        for (reader, key), writer in self.read.items():
            self.edges[writer, reader] = (READ, key)

    def circle(self) -> list[tuple[int, int, Edge]]:
        """Transactions that must each be before the next one, with why; empty if none is known."""
        while True:
            forward = self._closure(self.edges)
            if forward is None:
                return self._shortest()
            if self.nodes > MOST_NODES or not self._inferred(forward):
                return []

    def _closure(self, edges: Any) -> list[int] | None:
        """For each node the transactions that it leads to, as bits; None if there is a circle."""
        beyond: list[list[int]] = [[] for _ in range(self.nodes)]
        waits = [0] * self.nodes
        for source, target in edges:
            beyond[source].append(target)
            waits[target] += 1
        order = [node for node in range(self.nodes) if not waits[node]]
        for node in order:
            for other in beyond[node]:
                waits[other] -= 1
                if not waits[other]:
                    order.append(other)
        if len(order) < self.nodes:
            return None
        reach = [0] * self.nodes
        if self.nodes > MOST_NODES:
            return reach
        for node in reversed(order):
            bits = 0
            for other in beyond[node]:
                bits |= reach[other] | (1 << other if other < self.count else 0)
            reach[node] = bits
        return reach

    def _inferred(self, forward: list[int]) -> bool:
        """Add what follows by the two rules; whether anything was new."""
        backward = self._closure([(target, source) for source, target in self.edges])
        assert backward is not None, "a graph without circles has none the other way round"
        before = len(self.edges)
        writes = {key: sum(1 << node for node in nodes) for key, nodes in self.writers.items()}
        for (reader, key), writer in self.read.items():
            others = writes.get(key, 0) & ~(1 << reader) & ~(1 << writer)
            for other in _bits(forward[writer] & others & ~forward[reader]):
                self.edges.setdefault((reader, other), (OVERWROTE, key))
            for other in _bits(backward[reader] & others & ~backward[writer]):
                self.edges.setdefault((other, writer), (WROTE_EARLIER, key))
        return len(self.edges) > before

    def _shortest(self) -> list[tuple[int, int, Edge]]:
        source, target = np.array(list(self.edges), np.int64).T
        weigh = np.arange(self.nodes) < self.count
        inside = inside_components(components(self.nodes, source, target), source, target)
        walked = shortest_cycle(min(inside, key=len), source, target, weigh)
        hops = [(int(source[edge]), int(target[edge])) for edge in walked]
        first = next(at for at, (one, _) in enumerate(hops) if one < self.count)
        found: list[tuple[int, int, Edge]] = []
        begun = -1
        for one, other in hops[first:] + hops[:first]:
            begun = one if one < self.count else begun
            if other < self.count:
                why = self.edges[one, other] if one < self.count else (TIME, None)
                found.append((begun, other, why))
        return found

    def found(self) -> bool | None:
        """Whether there is an order that explains every read; None if the search was given up."""
        return _Search(self).run()


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


class _Search:
    """One transaction after another, each as soon as it may: it has nothing before it that has not run, and
    does not overwrite what another one is still to read."""

    def __init__(self, order: SerialOrder) -> None:
        self.beyond: list[list[int]] = [[] for _ in range(order.nodes)]
        self.waits = [0] * order.nodes
        for source, target in order.edges:
            self.beyond[source].append(target)
            self.waits[target] += 1
        self.reads: list[list[tuple[Any, int]]] = [[] for _ in range(order.nodes)]
        self.to_read: dict[tuple[Any, int], int] = {}
        for (reader, key), writer in order.read.items():
            self.reads[reader].append((key, writer))
            self.to_read[key, writer] = self.to_read.get((key, writer), 0) + 1
        self.writes: list[list[Any]] = [[] for _ in range(order.nodes)]
        for key, nodes in order.writers.items():
            for node in nodes:
                self.writes[node].append(key)
        self.holds: dict[Any, int] = {}
        self.ready = [node for node in range(order.nodes) if not self.waits[node]]
        self.left = order.nodes
        self.steps = STEPS + order.nodes

    def run(self) -> bool | None:
        """As `SerialOrder.found`."""
        done: list[tuple[int, list[tuple[Any, int]], Iterator[int]]] = []
        choices = self._choices()
        while self.left:
            node = next(choices, None)
            if node is None:
                if not done:
                    return False
                last, held, choices = done.pop()
                self._undo(last, held)
                continue
            self.steps -= 1
            if self.steps < 0:
                return None
            done.append((node, self._do(node), choices))
            choices = self._choices()
        return True

    def _choices(self) -> Iterator[int]:
        """What may run next. What writes nothing has no alternative: whatever may follow may still do so."""
        for node in tuple(self.ready):
            if self._may(node):
                yield node
                if not self.writes[node]:
                    return

    def _may(self, node: int) -> bool:
        reads = dict(self.reads[node])
        if any(self.holds.get(key, BEGINNING) != writer for key, writer in reads.items()):
            return False
        return all(
            self.to_read.get((key, self.holds.get(key, BEGINNING)), 0) <= (key in reads)
            for key in self.writes[node]
        )

    def _do(self, node: int) -> list[tuple[Any, int]]:
        for place in self.reads[node]:
            self.to_read[place] -= 1
        held = [(key, self.holds.get(key, BEGINNING)) for key in self.writes[node]]
        self.holds.update(dict.fromkeys(self.writes[node], node))
        self.ready.remove(node)
        for other in self.beyond[node]:
            self.waits[other] -= 1
            if not self.waits[other]:
                insort(self.ready, other)
        self.left -= 1
        return held

    def _undo(self, node: int, held: list[tuple[Any, int]]) -> None:
        self.left += 1
        for other in self.beyond[node]:
            if not self.waits[other]:
                self.ready.remove(other)
            self.waits[other] += 1
        insort(self.ready, node)
        self.holds.update(held)
        for place in self.reads[node]:
            self.to_read[place] += 1
