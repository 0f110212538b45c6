"""Two topics that were read, compared: counts, examples, and what could not be judged.

Owns the kinds, and how far a comparison has come. Must not know brokers.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from fencepost.audit.topics.fates import Fates
from fencepost.audit.topics.matching import match, timestamps_kept
from fencepost.audit.topics.topic_store import Extent, Side, TopicStore

MEANS = {
    "missing": "a record of the source has no copy at the target",
    "doubled": "the target has more copies of a record than the source",
    "reordered": "records of a partition are in another order at the target",
    "reordered_by_key": "a record is at the target before an earlier one of its key",
    "altered": "at the place of a record the target has other bytes",
    "other_partition": "the copy of a record is in another partition",
}
"""The findings, with their definitions."""
NOTES = {
    "only_at_target": "the source has no such record: it expired there, or something else wrote it",
    "expired": "older than the log start of the other side",
    "compacted": "a cleaner may have removed it on the other side",
    "later": "after the end of the comparison",
    "unclear": "it may be among what could not be read of the other side",
}
"""What is said, and nothing follows from."""
LISTED = 20
"""Examples of one kind that are kept; all are counted."""


@frozen(kw_only=True)
class Example:
    """One record, or a stretch of them, of a finding or note."""

    kind: str
    partition: int
    # At the source, -1 if it is not there.
    source_offset: int = -1
    # At the target, -1 if it is not there.
    target_offset: int = -1
    # How many records from there on.
    records: int = 1
    # What else is to be said.
    detail: str = ""


@frozen(kw_only=True)
class Compared:
    """The result."""

    # How many records, by kind of finding or note.
    counts: dict[str, int]
    # At most LISTED of each kind.
    examples: tuple[Example, ...]
    timestamps_kept: bool
    # Sentences about what could not be compared.
    not_judged: tuple[str, ...] = ()
    # Whether anything could be compared.
    judged: bool = True

    @property
    def findings(self) -> dict[str, int]:
        """How many records, by kind of finding."""
        return {kind: count for kind, count in self.counts.items() if kind in MEANS}


def compare(
    store: TopicStore, *, source_compacted: bool, target_compacted: bool, done: Callable[[int], None]
) -> Compared:
    """Compare all that was read. A partition that an earlier call has compared is not compared again.

    Args:
        store: with all records of both sides.
        source_compacted: whether a cleaner works there.
        target_compacted: likewise.
        done: called with the number of each compared partition.
    """
    database = store.database
    kept = store.note("timestamps_kept")
    if kept is None:
        kept = int(timestamps_kept(database, any(one.append_time for one in store.extents(Side.TARGET))))
        store.note("timestamps_kept", kept)
    identity = "stamped" if kept else "content"
    database.execute(
        f"create index if not exists by_identity on record (side, partition, {identity}, position)"
    )
    if source_compacted or target_compacted:
        database.execute("create index if not exists by_key on record (side, partition, key, position)")
    for extent in store.extents(Side.SOURCE):
        if not extent.matched:
            database.execute("begin")
            match(database, extent.partition, identity)
            store.mark(extent, "matched")
            database.execute("commit")
        done(extent.partition)
    fates = Fates(
        store=store,
        identity=identity,
        kept=bool(kept),
        source_compacted=source_compacted,
        target_compacted=target_compacted,
    )
    database.execute("begin")
    fates.decide()
    database.execute("commit")
    return _compared(store, bool(kept))


def _compared(store: TopicStore, kept: bool) -> Compared:
    counts: Counter[str] = Counter()
    examples: list[Example] = []
    listed: Counter[str] = Counter()
    for example in _merged(_rows(store)):
        counts[example.kind] += example.records
        listed[example.kind] += 1
        if listed[example.kind] <= LISTED:
            examples.append(example)
    sentences = list(_not_judged(store))
    empty = sum(sentence.startswith(NOTHING_COMMON) for sentence in sentences)
    return Compared(
        counts=dict(counts),
        examples=tuple(examples),
        timestamps_kept=kept,
        not_judged=tuple(sentences),
        judged=empty < len(store.extents(Side.SOURCE)),
    )


def _rows(store: TopicStore) -> Iterator[tuple[int, Example]]:
    """Each record about which something is to be said, with its position."""
    for row in store.database.execute(
        'select kind, partition, position, "offset", side, twin from left_over where kind not in '
        "('', 'arrived') order by kind, side, partition, position"
    ):
        place = {"source_offset" if row[4] == Side.SOURCE else "target_offset": row[3]}
        yield row[2], Example(kind=row[0], partition=row[1], detail=row[5], **place)
    for kind, column in (("reordered", "moved"), ("reordered_by_key", "by_key")):
        for row in store.database.execute(
            f"select partition, source, source_offset, target_offset from pair where {column} "
            "order by partition, source"
        ):
            yield (row[1], Example(kind=kind, partition=row[0], source_offset=row[2], target_offset=row[3]))


def _merged(rows: Iterator[tuple[int, Example]]) -> Iterator[Example]:
    """Neighbours as one stretch."""
    last, begun = -2, None
    for position, one in rows:
        same = begun is not None and (begun.kind, begun.partition, begun.detail) == (
            one.kind,
            one.partition,
            one.detail,
        )
        if begun is not None and same and position == last + 1:
            begun = evolve(begun, records=begun.records + 1)
        else:
            if begun is not None:
                yield begun
            begun = one
        last = position
    if begun is not None:
        yield begun


NOTHING_COMMON = "no record of partition"


def _not_judged(store: TopicStore) -> Iterator[str]:
    starts = {one.partition: one.start for one in store.extents(Side.TARGET)}
    for extent in (*store.extents(Side.SOURCE), *store.extents(Side.TARGET)):
        where = f"{extent.partition} of the {extent.side.word}"
        if extent.end < extent.latest:
            yield f"offsets {extent.end} to {extent.latest - 1} of partition {where}: an open transaction"
        if extent.overtaken:
            yield f"what partition {where} lost while it was read: its log start moved"
        if extent.side is Side.SOURCE and starts[extent.partition] > 0 and _is_apart(store, extent):
            yield (
                f"{NOTHING_COMMON} {extent.partition} is at both sides, and the target begins at offset "
                f"{starts[extent.partition]}: expired, or never copied"
            )


def _is_apart(store: TopicStore, extent: Extent) -> bool:
    query = (
        "select exists (select 1 from record where side = 0 and partition = ?1) "
        "and not exists (select 1 from pair where partition = ?1)"
    )
    return bool(store.database.execute(query, (extent.partition,)).fetchone()[0])
