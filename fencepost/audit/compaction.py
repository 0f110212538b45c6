"""Whether compaction removed only what it may.

Owns the records that one replica has and another does not, until a later record of their key is seen. Must
not know files or high watermarks. Each broker compacts at its own time, so a record may be gone on one and
still be there on another. But the latest committed record of every key stays, unless it is a tombstone that
is old enough to be removed (KIP-58, KIP-534). Records without a key are removed, and those of aborted
transactions.

A removed tombstone could have been in any hole above the end of the replicas that still have the record. If
the other replica has a hole there, nothing is reported. Below that end it could not: a compaction with a
tombstone drops the record first.

A transaction's records count when its marker is seen; until then they neither supersede nor are missed.
"""

from collections.abc import Sequence
from hashlib import blake2b

from attrs import define, field

from fencepost.audit.audit_findings import Findings
from fencepost.audit.cursor import Cursor, Held
from fencepost.audit.replica import ReplicaWalk
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.record_batch import Record

MOST_WAITING = 200_000
"""Records, of one partition, that wait for a later record of their key or for a marker; with more nothing is
said."""
_LONGEST_KEY = 32
"""A longer key is kept as its digest."""
_SHOWN_KEY = 60
"""Characters of a key: what fits a line with the rest of the sentence."""


@define
class _Seen:
    """The latest record of a key."""

    offset: int
    tombstone: bool
    # Brokers without it, and with it.
    lacking: tuple[str, ...]
    holders: tuple[str, ...]
    # The record in words, and its place.
    shown: str
    where: str


@define
class CompactionCheck:
    """waiting: by key, the latest record that some replica lacks. open: records of transactions without a
    marker so far, by producer id."""

    waiting: dict[bytes, _Seen] = field(factory=dict)
    open: dict[int, list[tuple[bytes, _Seen]]] = field(factory=dict)
    in_transactions: int = 0
    overflown: bool = False

    def see(self, offset: int, here: Sequence[Cursor], lacking: Sequence[Cursor]) -> None:
        """As compare.Watcher: the records at `offset`. here: replicas that have one; lacking: those that do
        not."""
        held = here[0].record
        if self.overflown:
            return
        producer_id, transactional = held.content[1][0], held.content[3][0]
        if held.is_control:
            self._marker(held, producer_id)
            return
        if held.key is None:
            return
        key = (
            held.key
            if len(held.key) <= _LONGEST_KEY
            else blake2b(held.key, digest_size=_LONGEST_KEY + 1).digest()
        )
        if not lacking and not transactional:
            self.waiting.pop(key, None)
            return
        seen = _Seen(
            offset,
            held.is_tombstone,
            tuple(cursor.replica.broker for cursor in lacking),
            tuple(cursor.replica.broker for cursor in here),
            held.key.decode("utf-8", "backslashreplace")[:_SHOWN_KEY],
            here[0].where,
        )
        if transactional:
            self.open.setdefault(producer_id, []).append((key, seen))
            self.in_transactions += 1
        else:
            self._count(key, seen)
        if len(self.waiting) + self.in_transactions > MOST_WAITING:
            self.overflown = True
            self.waiting, self.open = {}, {}

    def _count(self, key: bytes, seen: _Seen) -> None:
        if seen.lacking and not seen.tombstone:
            self.waiting[key] = seen
        else:
            self.waiting.pop(key, None)

    def _marker(self, held: Held, producer_id: int) -> None:
        marker = end_transaction_of(Record(held.offset, -1, held.key, held.content[6]))
        records = self.open.pop(producer_id, [])
        self.in_transactions -= len(records)
        for key, seen in records:
            if marker is not None and marker.commit:
                self._count(key, seen)

    def end(self, findings: Findings, walks: Sequence[ReplicaWalk]) -> None:
        """There are no more records; of those that wait no later one is anywhere. walks: of all replicas,
        read to their ends."""
        if self.overflown:
            findings.note(
                f"more than {MOST_WAITING} records wait for a later one of their key: what compaction took "
                f"was not judged"
            )
        replicas = {walk.broker: walk for walk in walks}
        undecided = 0
        for seen in sorted(self.waiting.values(), key=lambda one: one.offset):
            end = max(replicas[broker].end_offset for broker in seen.holders)
            guilty = [broker for broker in seen.lacking if replicas[broker].holes_below <= end]
            undecided += len(seen.lacking) - len(guilty)
            if guilty:
                findings.add(
                    "compaction_lost_record",
                    expected=f"the latest record of key '{seen.shown}', at offset {seen.offset} in "
                    f"{seen.where}, in every replica",
                    seen=f"neither it nor a later one at {' and '.join(guilty)}",
                    offset=seen.offset,
                )
        if undecided:
            findings.note(
                f"{undecided} records are gone whose tombstones may be: the replicas that have them end "
                f"below holes of those that have not"
            )
