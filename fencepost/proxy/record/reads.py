"""Fetches: the sessions that say what is asked, and the records that a consumer makes of what comes.

Owns fetch sessions (KIP-227) and which records of an answer are shown under an isolation. Must not know rows.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.impl.log.batch.control_records import ControlType, control_type
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, readable_headers
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.proxy.record.values import Values

MOST_SESSIONS = 10_000
"""Brokers keep 1,000 each (max.incremental.fetch.session.cache.slots)."""
MOST_PARTITIONS = 100_000
"""Of one session."""
FINAL_EPOCH, FIRST_EPOCH = -1, 0
Asked = dict[tuple[str, int], int]
"""(topic, partition) -> the position that is asked for."""


@define(eq=False)
class Sessions:
    """What each session asks, by broker and session id."""

    _known: "OrderedDict[tuple[Any, int], Asked]" = field(factory=OrderedDict)

    def asked(
        self, broker: Any, session: int, epoch: int, new: Asked, forgotten: list[tuple[str, int]]
    ) -> Asked:
        """All that a request asks: what it names, and what its session still asks from before."""
        key = (broker, session)
        if session == 0 or epoch in (FINAL_EPOCH, FIRST_EPOCH):
            self._known.pop(key, None)
            return new
        known = self._known.get(key)
        if known is None:
            return new  # begun before there was a proxy: what it asks from before is not known
        self._known.move_to_end(key)
        for place in forgotten:
            known.pop(place, None)
        known.update(new)
        return known

    def answered(self, broker: Any, session: int, epoch: int, asked: Asked) -> None:
        """A broker has opened a session for this request."""
        if session != 0 and epoch == FIRST_EPOCH and len(asked) <= MOST_PARTITIONS:
            self._known[broker, session] = dict(asked)
            if len(self._known) > MOST_SESSIONS:
                self._known.popitem(last=False)


@frozen
class Run:
    """Records at neighbouring offsets, of one leader epoch."""

    offset: int
    leader_epoch: int
    values: list[int]
    transactional: bool = False
    # Of each record; None: nobody wants to know.
    keys: list[str | None] | None = None

    def part(self, start: int, end: int) -> "Run":
        """The records from the one with the number `start` on, below `end`."""
        keys = None if self.keys is None else self.keys[start:end]
        return evolve(self, offset=self.offset + start, values=self.values[start:end], keys=keys)

    def by_key(self) -> Iterator[tuple[str | None, "Run"]]:
        """Neighbours with one key; all records with None if keys are not known."""
        if self.keys is None:
            yield None, self
            return
        first = 0
        for place in range(1, len(self.values) + 1):
            if place == len(self.values) or self.keys[place] != self.keys[first]:
                yield self.keys[first], self.part(first, place)
                first = place


@frozen
class Shown:
    """What a consumer makes of the records in an answer."""

    runs: list[Run]
    batches: list[tuple[BatchHeader, list[int]]]
    # Why the rest cannot be read, "" if it can be.
    trouble: str = ""


def shown(
    data: bytes,
    position: int,
    values: Values,
    aborted: Mapping[int, list[int]] | None,
    *,
    keyed: bool = False,
) -> Shown:
    """The records of an answer from `position` on. aborted: under read_committed, the first offsets of
    aborted transactions by producer id, ascending; what they wrote is left out, as consumers do (aborted
    markers end them). keyed: with their keys."""
    headers, _ = readable_headers(data)
    runs: list[Run] = []
    batches: list[tuple[BatchHeader, list[int]]] = []
    open_aborted: set[int] = set()
    waiting = {} if aborted is None else {producer: list(firsts) for producer, firsts in aborted.items()}
    for header in headers:
        producer = header.producer_id
        firsts = waiting.get(producer)
        while firsts and firsts[0] <= header.last_offset:
            firsts.pop(0)
            open_aborted.add(producer)
        if header.is_control:
            if producer in open_aborted and _is_abort(data, header):
                open_aborted.discard(producer)
            continue
        if header.last_offset < position or (header.is_transactional and producer in open_aborted):
            continue
        try:
            ids, deltas = values.of_batch(data, header)
            keys = values.keys_of(data, header) if keyed else None
        except CorruptBatchError as error:
            return Shown(runs, batches, str(error))
        batches.append((header, ids))
        if deltas is None:
            skipped = max(0, position - header.base_offset)
            if len(ids) > skipped:
                part = ids[skipped:] if skipped else ids
                first = header.base_offset + skipped
                kept = None if keys is None else keys[skipped:]
                runs.append(Run(first, header.leader_epoch, part, header.is_transactional, kept))
            continue
        for n, (value, delta) in enumerate(zip(ids, deltas, strict=True)):  # compacted: some are gone
            offset = header.base_offset + delta
            if offset >= position:
                kept = None if keys is None else keys[n : n + 1]
                runs.append(Run(offset, header.leader_epoch, [value], header.is_transactional, kept))
    return Shown(runs, batches)


def _is_abort(data: bytes, header: BatchHeader) -> bool:
    try:
        return any(control_type(record) is ControlType.ABORT for record in read_records(data, header))
    except CorruptBatchError:
        return False
