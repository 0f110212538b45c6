"""The transaction index of each segment against the transactions that its log has.

Owns which transactions are open along a log, and which entry follows from each marker of an abort (KIP-98).
Must not know where files are. The other indexes are caches, which a broker rebuilds; a reader of committed
records believes this one, so that it gets the records of an aborted transaction that is not in it.

What is not known is not compared: transactions that began before the log does, and everything after damage.
A marker of a transaction without records has an entry or none: brokers differ. A cleaner removes the first
records of a transaction, and an entry with the last one.
"""

from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from fencepost.impl.log.batch.record_batch import BatchHeader
from fencepost.impl.log.dump.dump import Extent
from fencepost.impl.log.dump.indexes import AbortedTransaction
from fencepost.impl.log.flaw import Flaw


@frozen(kw_only=True)
class Aborted:
    """What follows from a marker of an abort."""

    producer_id: int
    # The first record of the transaction in this log; -1: there is none.
    first_offset: int
    # The marker.
    last_offset: int
    # The first record of the oldest transaction that is open then, else the offset after the marker.
    last_stable_offset: int
    # Whether the first record is known to be the first.
    exact: bool


@define(kw_only=True)
class TransactionsOfLog:
    """The transactions along a log, through all of its segments."""

    # The offset that the next batch has if nothing was removed; at first, where the log begins.
    next_offset: int
    # Whether records may have been removed from the middle: a hole shows it, if nobody knows it before.
    compacted: bool = False
    # Whether the log is known from its very first record on.
    whole: bool = field(init=False)
    # Whether something could not be read, so that nothing is known of what was open there.
    lost: bool = False
    # By producer id, the offset of the first record of its open transaction.
    open: dict[int, int] = field(factory=dict)
    # Producers of which a marker was seen: what they begin after it is known from its first record on.
    ended: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.whole = self.next_offset == 0

    def see(self, header: BatchHeader, commits: bool | None) -> Aborted | None:
        """The next batch.

        Args:
            header: of the batch.
            commits: whether the marker in it commits; None if it has none.

        Returns:
            what its entry has to say, for the marker of an abort.
        """
        producer, offset = header.producer_id, header.base_offset
        sparse = header.count <= header.last_offset_delta
        self.compacted = self.compacted or sparse or offset > self.next_offset
        self.next_offset = header.next_offset
        if commits is None:
            if header.is_transactional and not header.is_control:
                self.open.setdefault(producer, offset)
            return None
        exact = (self.whole or producer in self.ended) and not self.compacted
        first = self.open.pop(producer, -1)
        self.ended.add(producer)
        if commits:
            return None
        return Aborted(
            producer_id=producer,
            first_offset=first,
            last_offset=offset,
            last_stable_offset=min(self.open.values(), default=offset + 1),
            exact=exact,
        )

    def contradicts(self, producer_id: int, first_offset: int) -> str:
        """What the log has instead.

        Args:
            producer_id: a producer.
            first_offset: of its open transaction here, as something says; -1: it has none.

        Returns:
            a clause; "" if nothing is known that differs.
        """
        known = self.open.get(producer_id, -1)
        exact = (self.whole or producer_id in self.ended) and not self.compacted
        later = 0 <= known < first_offset
        none = known >= 0 > first_offset
        if self.lost or not (later or none or (exact and first_offset != known)):
            return ""
        return "no open transaction" if known < 0 else f"a transaction open from offset {known} on"


@define(kw_only=True)
class TransactionIndexCheck:
    """Follows the walk of a segment (dump.Watcher), and compares its index at the end."""

    log: TransactionsOfLog
    # Entries of the index; None: they are not compared.
    entries: Sequence[AbortedTransaction] | None
    # The index's name.
    file: str
    aborted: dict[int, Aborted] = field(factory=dict)

    def see(self, header: BatchHeader, *, damaged: bool, commits: bool | None = None) -> Iterator[Flaw]:
        """Follow a batch. damaged: only its position is reliable."""
        if damaged:
            self.log.lost = True
        elif aborted := self.log.see(header, commits):
            self.aborted[aborted.last_offset] = aborted
        yield from ()

    def end(self, extent: Extent) -> Iterator[Flaw]:
        """Compare. extent: how far the segment could be read."""
        self.log.lost = self.log.lost or extent.ended_early
        if self.entries is None or self.log.lost:
            return
        said = set()
        for entry in self.entries:
            said.add(entry.last_offset)
            wrong = self._wrong(entry)
            if wrong:
                yield Flaw(position=entry.at, expected=wrong, seen=_in_words(entry), file=self.file)
        for offset, aborted in self.aborted.items():
            if offset not in said and aborted.first_offset >= 0:
                yield Flaw(
                    position=None,
                    expected=f"the aborted transaction of {_in_words(aborted)}",
                    seen="no entry, so that readers of committed records get its records",
                    file=self.file,
                )

    def _wrong(self, entry: AbortedTransaction) -> str:
        """What an entry should say instead; "" if nothing contradicts it."""
        known, removed = self.aborted.get(entry.last_offset), self.log.compacted
        if known is None:
            return "" if removed else f"the marker of an abort at offset {entry.last_offset}"
        first, stable = known.first_offset, known.last_stable_offset
        begins_later = 0 <= first < entry.first_offset
        begins_elsewhere = known.exact and first not in (-1, entry.first_offset)
        if entry.producer_id != known.producer_id or begins_later or begins_elsewhere:
            return _in_words(known)
        exact = self.log.whole and not removed
        if entry.last_stable_offset > stable or (exact and entry.last_stable_offset != stable):
            return f"a last stable offset of {stable} after the marker at offset {entry.last_offset}"
        return ""


def _in_words(one: AbortedTransaction | Aborted) -> str:
    first = f"from offset {one.first_offset} " if one.first_offset >= 0 else ""
    return (
        f"producer {one.producer_id} {first}to the marker at {one.last_offset}, last stable offset "
        f"{one.last_stable_offset}"
    )
