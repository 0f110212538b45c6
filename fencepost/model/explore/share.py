"""One process's share of an exploration by several processes: the states with a content that hashes to it.

Owns what one worker expands, hands over and takes in. Must not know the caller, or any system.

Each worker numbers values independently. With its rows it sends the values that it numbered since the last
time. Everything is taken in in a fixed order, so a given number of workers always gives the same answer.
"""

from hashlib import blake2b
from typing import Any, Generic

import numpy as np
from attrs import define, field, frozen
from msgspec.msgpack import Encoder
from numba import njit
from numpy.typing import NDArray

from fencepost.model.explore.compiled import CHUNK, Broken, Exploration
from fencepost.model.explore.expansion import NOTHING_BROKEN
from fencepost.model.explore.memo import Numbers, grown
from fencepost.model.explore.process import resident_bytes
from fencepost.model.explore.transition_system import State, Value

CHUNKS_IN_ROUND = 8
"""Chunks that a worker expands before it hands over. Reason: long enough to hide the waiting, short enough
for the parent's memory."""


_encode = Encoder().encode


@njit(cache=True)
def _hashes(rows: Any, of_value: Any, places: Any, renamed: Any, found: Any) -> None:
    """A hash of each row that depends neither on a process's numbers of values nor on the names of renamed
    objects."""
    hashes = np.empty(rows.shape[1], np.uint64)
    for at in range(rows.shape[0]):
        least = ~np.uint64(0)
        for renaming in range(-1, places.shape[0]):
            for slot in range(rows.shape[1]):
                if renaming < 0:
                    hashes[slot] = of_value[rows[at, slot]]
                else:
                    hashes[places[renaming, slot]] = of_value[renamed[renaming, rows[at, slot]]]
            mixed = np.uint64(0)
            for slot in range(rows.shape[1]):
                mixed = (mixed ^ hashes[slot]) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
            least = min(least, mixed)
        found[at] = least


@frozen
class Parcel:
    """Successors that another worker owns."""

    # Numbered by the sender since its last parcel to any worker, in order.
    values: tuple[tuple[int, Value], ...]
    # In the sender's numbers.
    rows: Numbers
    # The sender's states that they come from.
    parents: Numbers


@frozen(kw_only=True)
class Report:
    """The report of a worker after a round."""

    # The number of states of this worker.
    states: int
    # States of the next level so far.
    new: int
    # Whether all states of this level are expanded.
    done: bool
    # The first violated invariant; None if there is none.
    broken: Broken | None
    # How often each action was taken, by number of its name.
    taken: tuple[int, ...]
    # Goals that this worker has not reached.
    unreached: frozenset[str]
    # Bytes in use.
    memory: int


@define
class Worker(Generic[State]):
    """One process's share."""

    # The number of this worker.
    number: int
    # The number of workers.
    workers: int
    # The exploration of its states.
    exploration: Exploration[State]
    # States below this number are expanded or belong to the current level.
    end: int = 0
    # The first state that is not yet expanded.
    next: int = 0
    # For each sender, its numbers of values -> ours.
    translations: list[Numbers] = field(factory=list)
    # For each sender, how many of its values are known.
    known: list[int] = field(factory=list)
    # The hash of each value, by number.
    hash_of: NDArray[np.uint64] = field(factory=lambda: np.zeros(1 << 10, np.uint64))
    # How many values have a hash.
    hashed: int = 0
    # How many values the other workers know.
    sent: int = 0
    # The first violated step invariant; None if there is none.
    broken_step: Broken | None = None

    def begin(self) -> Report:
        """Take in its own initial states."""
        self.translations = [np.zeros(1 << 10, np.int32) for _ in range(self.workers)]
        self.known = [0] * self.workers
        rows = np.array(
            [self.exploration.expander.row_of(state) for state in self.exploration.start], np.int32
        )
        self.exploration.store.add_initial(rows[self._owners(rows) == self.number])
        return self._report(self.exploration.judge(0, len(self.exploration.store)))

    def next_level(self) -> None:
        """All states that are not expanded yet become the next level."""
        self.end = len(self.exploration.store)

    def expand(self) -> list[Parcel]:
        """Expand some of its states. Returns one parcel for each worker, including this one."""
        exploration = self.exploration
        rows = [np.empty((0, len(exploration.system.kinds)), np.int32)]
        parents = [np.empty(0, np.int32)]
        for _ in range(CHUNKS_IN_ROUND):
            if self.next >= self.end or self.broken_step is not None:
                break
            first, self.next = self.next, min(self.next + CHUNK, self.end)
            after = exploration.expander.successors(exploration.store.rows(first, self.next))
            exploration.count(after.by)
            rows.append(after.rows)
            parents.append(after.origin + np.int32(first))
            if after.broken != NOTHING_BROKEN:
                invariant = tuple(exploration.system.step_invariants)[after.broken]
                self.broken_step = Broken(invariant, int(parents[-1][-1]), int(after.by[-1]))
        return self._parcels(np.concatenate(rows), np.concatenate(parents))

    def _parcels(self, rows: Numbers, parents: Numbers) -> list[Parcel]:
        owners = self._owners(rows)
        values = self.exploration.expander.values
        news = tuple(zip(values.kind_of[self.sent :], values.of[self.sent :], strict=True))
        self.sent = len(values.of)
        return [
            Parcel(news, rows[owners == owner], parents[owners == owner]) for owner in range(self.workers)
        ]

    def take(self, parcels: list[Parcel]) -> Report:
        """Take in its own successors and check the new ones."""
        store, before = self.exploration.store, len(self.exploration.store)
        for sender, parcel in enumerate(parcels):
            rows = parcel.rows
            if sender != self.number:
                self._learn(sender, parcel.values)
                rows = self.exploration.expander.least(self.translations[sender][rows])
            store.add(rows, parcel.parents, np.full(len(rows), sender, np.int32))
        return self._report(self.exploration.judge(before, len(store)))

    def _learn(self, sender: int, values: tuple[tuple[int, Value], ...]) -> None:
        """Number another worker's values."""
        ours, kinds = self.exploration.expander.values, self.exploration.system.kinds
        self.translations[sender] = grown(self.translations[sender], self.known[sender] + len(values))
        for at, (kind, value) in enumerate(values, self.known[sender]):
            self.translations[sender][at] = ours.number(kinds.index(kind), value)
        self.known[sender] += len(values)

    def _owners(self, rows: Numbers) -> Numbers:
        """The owners of the states with these rows: renamings of a state have one owner."""
        values = self.exploration.expander.values
        self.hash_of = grown(self.hash_of, len(values.of))
        for number in range(self.hashed, len(values.of)):
            content = _encode((values.kind_of[number], values.of[number]))
            self.hash_of[number] = int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
        self.hashed = len(values.of)
        hashes = np.empty(len(rows), np.uint64)
        _hashes(rows, self.hash_of, self.exploration.expander.places, values.renamed, hashes)
        return (hashes % np.uint64(self.workers)).astype(np.int32)

    def state(self, number: int) -> tuple[State, int, int]:
        """A state, the worker that owns its predecessor, and the predecessor's number there."""
        store = self.exploration.store
        row = store.rows(number, number + 1)[0].tolist()
        return self.exploration.expander.state_of(row), int(store.hint[number]), int(store.parent[number])

    def _report(self, broken: Broken | None) -> Report:
        states = len(self.exploration.store)
        return Report(
            states=states,
            new=states - self.end,
            done=self.next >= self.end,
            broken=broken or self.broken_step,
            taken=tuple(self.exploration.taken.tolist()),
            unreached=frozenset(self.exploration.unreached),
            memory=resident_bytes(),
        )
