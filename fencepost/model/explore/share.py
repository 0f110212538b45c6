"""One process's share of an exploration by several: the states whose content hashes to it.

Owns: what one worker expands, hands over and takes in. Must not know who calls, nor any system.

Each worker numbers values by itself; with its rows it sends the values that it numbered since the last time.
Everything is taken in in a fixed order, so that a number of workers always gives the same answer.
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
from fencepost.model.explore.system import State, Value

CHUNKS_IN_ROUND = 8
"""What a worker expands before it hands over: long enough to hide the waiting, short enough for the parent's
memory."""


_encode = Encoder().encode


@njit(cache=True)
def _hashes(rows: Any, of_value: Any, places: Any, renamed: Any, found: Any) -> None:
    """A hash of each row that depends neither on how a process numbers values nor on the names of what may be
    renamed."""
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
    """Successors that another worker owns. kinds, values: numbered by the sender since its last parcel to
    anybody, in order. rows: in the sender's numbers; parents: its states that they come from."""

    values: tuple[tuple[int, Value], ...]
    rows: Numbers
    parents: Numbers


@frozen(kw_only=True)
class Report:
    """After a round. done: nothing of this level is left to expand. new: states of the next level so far.
    broken: the first invariant seen to fall."""

    states: int
    new: int
    done: bool
    broken: Broken | None
    taken: tuple[int, ...]
    unreached: frozenset[str]
    memory: int


@define
class Worker(Generic[State]):
    """One process's share. behind: of its states, those below are expanded or of the level in hand; next: the
    first that is not yet expanded. translations: of each sender, its numbers of values -> ours; known: how
    many of them. hash_of: by number of a value; hashed: how many. told: how many values the others know."""

    number: int
    workers: int
    exploration: Exploration[State]
    behind: int = 0
    next: int = 0
    translations: list[Numbers] = field(factory=list)
    known: list[int] = field(factory=list)
    hash_of: NDArray[np.uint64] = field(factory=lambda: np.zeros(1 << 10, np.uint64))
    hashed: int = 0
    told: int = 0
    broken_step: Broken | None = None

    def begin(self) -> Report:
        """Take in the initial states that are its own."""
        self.translations = [np.zeros(1 << 10, np.int32) for _ in range(self.workers)]
        self.known = [0] * self.workers
        rows = np.array(
            [self.exploration.expander.row_of(state) for state in self.exploration.start], np.int32
        )
        self.exploration.store.add_initial(rows[self._owners(rows) == self.number])
        return self._report(self.exploration.judge(0, len(self.exploration.store)))

    def next_level(self) -> None:
        """All that is not expanded yet is the next level."""
        self.behind = len(self.exploration.store)

    def expand(self) -> list[Parcel]:
        """Expand some of its states: one parcel for each worker, this one too."""
        exploration = self.exploration
        rows = [np.empty((0, len(exploration.system.kinds)), np.int32)]
        parents = [np.empty(0, np.int32)]
        for _ in range(CHUNKS_IN_ROUND):
            if self.next >= self.behind or self.broken_step is not None:
                break
            first, self.next = self.next, min(self.next + CHUNK, self.behind)
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
        news = tuple(zip(values.kind_of[self.told :], values.of[self.told :], strict=True))
        self.told = len(values.of)
        return [
            Parcel(news, rows[owners == owner], parents[owners == owner]) for owner in range(self.workers)
        ]

    def take(self, parcels: list[Parcel]) -> Report:
        """Take in what is its own, judge what is new."""
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
        """Who owns the states that have these rows: renamed states have one owner."""
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
        """A state, the worker that owns the one before, and that one's number there."""
        store = self.exploration.store
        row = store.rows(number, number + 1)[0].tolist()
        return self.exploration.expander.state_of(row), int(store.hint[number]), int(store.parent[number])

    def _report(self, broken: Broken | None) -> Report:
        states = len(self.exploration.store)
        return Report(
            states=states,
            new=states - self.behind,
            done=self.next >= self.behind,
            broken=broken or self.broken_step,
            taken=tuple(self.exploration.taken.tolist()),
            unreached=frozenset(self.exploration.unreached),
            memory=resident_bytes(),
        )
