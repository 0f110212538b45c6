"""What became of each record without a copy, and of each copy without a record.

Owns what excuses them, and in which order the kinds are tried. Must not know brokers. An excuse is a fact of
the brokers (a log start, a cleanup policy, an end that moved on), never the copy itself.

1. Below the log start of the other side: expired.
2. It may be among what was not read of the other side: unclear.
3. An equal record is left over in another partition of the other side: other_partition.
4. A left-over copy of a record that has a copy: doubled.
5. A left-over copy after the last pair, where the source went on: later.
6. A left-over record and a left-over copy between the same two pairs, which are alike: altered.
7. What is left of the source is missing, unless a cleaner may have removed it.
"""

from typing import Any

from attrs import define

from fencepost.audit.topics.matching import aside, kth_with_kth
from fencepost.audit.topics.topic_store import Side, TopicStore

MOST_IN_GAP = 500
"""Records between two neighbours that are compared with each other; further ones are missing."""
PARTS = ("key", "value", "headers", "timestamp")
OPEN = "kind = ''"

EDGE = "(select {column} from temp.edge where edge.partition = left_over.partition)"
"""Of the pairs in order: first_source, first_target, last_source. Nothing where there are none."""
EXTENT = "(select {column} from extent where extent.side = {side} and extent.partition = left_over.partition)"
AT_END = f"gap = coalesce({EDGE.format(column='last_source')}, -1)"
"""After all pairs in order."""
AFTER_ALL = f"{AT_END} and {EXTENT.format(column='grew', side=0)}"
"""The copy is after all pairs in order, and the source went on after the comparison began."""


@define(eq=False, kw_only=True)
class Fates:
    """One decision about all that is left over; an earlier one is replaced."""

    store: TopicStore
    # The column of `record` that equal records share.
    identity: str
    # Whether the copy keeps timestamps.
    kept: bool
    source_compacted: bool
    target_compacted: bool

    def decide(self) -> None:
        """Write the kind of each row that is left over, in the caller's transaction."""
        database = self.store.database
        database.execute("drop table if exists temp.edge")
        database.execute(
            "create temp table edge as select partition, min(source) as first_source, min(target) as "
            "first_target, max(source) as last_source from pair where sure and not moved group by partition"
        )
        database.execute("create index if not exists by_gap on left_over (partition, gap, side, position)")
        self._set("kind = '', twin = ''", "1")
        for side, other in ((Side.SOURCE, Side.TARGET), (Side.TARGET, Side.SOURCE)):
            self._expired(side, other)
        self._unread()
        self._elsewhere()
        self._doubled()
        self._set("kind = 'later'", f"side = 1 and {OPEN} and {AFTER_ALL}")
        self._altered()
        self._missing()
        self._set("kind = 'only_at_target'", f"side = 1 and {OPEN}")

    def _set(self, values: str, where: str) -> None:
        self.store.database.execute(f"update left_over set {values} where {where}")

    def _expired(self, side: Side, other: Side) -> None:
        """Before the first pair in order; of equal records any, if the first of them is there."""
        first = f"coalesce({EDGE.format(column=f'first_{side.word}')}, 9e18)"
        equal = (
            f"(select min(record.position) from record where record.side = {int(side)} and "
            f"record.partition = left_over.partition and record.{self.identity} = left_over.identity)"
        )
        start = EXTENT.format(column="start", side=int(other))
        self._set(
            "kind = 'expired'",
            f"side = {int(side)} and {start} > 0 and (gap = -1 or (repeated and {equal} < {first}))",
        )

    def _unread(self) -> None:
        """The other side has records that were not read: its log start moved on, or a transaction is open."""
        for side in Side:
            overtaken = EXTENT.format(column="overtaken", side=1 - side)
            self._set("kind = 'unclear'", f"side = {int(side)} and {OPEN} and {overtaken}")
        end, latest = (EXTENT.format(column=column, side=1) for column in ('"end"', "latest"))
        self._set("kind = 'unclear'", f"side = 0 and {OPEN} and {AT_END} and {end} < {latest}")

    def _elsewhere(self) -> None:
        query = (
            'select identity, partition, position, "offset" from left_over where side = ? '
            f"and {OPEN} order by 1, 2, 3"
        )
        database = self.store.database
        database.execute("drop table if exists temp.moving")
        database.execute(
            "create temp table moving (side, partition, position, kind, twin, "
            "primary key (side, partition, position))"
        )
        for one, other, _ in kth_with_kth(*(database.execute(query, (int(side),)) for side in Side)):
            if one is not None and other is not None:
                twin = f"the copy is offset {other[3]} of partition {other[1]}"
                database.executemany(
                    "insert into temp.moving values (?, ?, ?, ?, ?)",
                    [(0, one[1], one[2], "other_partition", twin), (1, other[1], other[2], "arrived", "")],
                )
        database.execute(
            "update left_over set kind = moving.kind, twin = moving.twin from temp.moving as moving where "
            "moving.side = left_over.side and moving.partition = left_over.partition "
            "and moving.position = left_over.position"
        )

    def _doubled(self) -> None:
        """A cleaner of the source may have removed one of two equal records with a key."""
        partitions = ", ".join(str(one.partition) for one in self.store.extents(Side.SOURCE))
        equal = (
            f"from record where record.side = 0 and record.partition in ({partitions}) "
            f"and record.{self.identity} = left_over.identity"
        )
        kind = f"case when {AFTER_ALL} then 'later' else 'doubled' end"
        if self.source_compacted:
            kind = f"case when key is not null then 'compacted' else {kind} end"
        twin = f"(select 'of offset ' || min(record.\"offset\") || ' of the source' {equal})"
        self._set(
            f"kind = {kind}, twin = {twin}",
            f"side = 1 and {OPEN} and (repeated or exists (select 1 {equal}))",
        )

    # ---- altered

    def _altered(self) -> None:
        gaps = aside(
            self.store.database,
            f"select partition, gap from left_over where {OPEN} group by partition, gap "
            "having min(side) = 0 and max(side) = 1",
            (),
        )
        for partition, gap in gaps:
            query = (
                f'select position, key, value, headers, timestamp, "offset" from left_over where {OPEN} '
                f"and side = ? and partition = ? and gap = ? order by position limit {MOST_IN_GAP}"
            )
            rows = [
                self.store.database.execute(query, (int(side), partition, gap)).fetchall() for side in Side
            ]
            for one, other in self._alike(*rows):
                parts = [
                    name
                    for name, mine, copied in zip(PARTS, one[1:5], other[1:5], strict=True)
                    if mine != copied and (name != "timestamp" or self.kept)
                ]
                twin = f"offset {other[5]} of the target has another {' and '.join(parts)}"
                where = f"partition = {int(partition)} and position = "
                self.store.database.execute(
                    f"update left_over set kind = 'altered', twin = ? where side = 0 and {where} ?",
                    (twin, one[0]),
                )
                self._set("kind = 'arrived'", f"side = 1 and {where} {int(other[0])}")

    def _alike(self, sources: list[Any], targets: list[Any]) -> list[tuple[Any, Any]]:
        """Pairs of one gap: those first that have most in common, at least one part. What has nothing in
        common is a pair if both sides have equally many left."""
        scored = []
        for i, one in enumerate(sources):
            for j, other in enumerate(targets):
                same = [
                    mine is not None and mine == copied and (name != "timestamp" or self.kept)
                    for name, mine, copied in zip(PARTS, one[1:5], other[1:5], strict=True)
                ]
                if self._may_be_one(same):
                    scored.append((-sum(same), abs(i - j), i, j))
        left, right = dict(enumerate(sources)), dict(enumerate(targets))
        found = []
        for _, _, i, j in sorted(scored):
            if i in left and j in right:
                found.append((left.pop(i), right.pop(j)))
        if len(left) == len(right) and not (self.source_compacted or self.target_compacted):
            found += zip(left.values(), right.values(), strict=True)
        return found

    def _may_be_one(self, same: list[bool]) -> bool:
        """Where a cleaner works, neighbours prove nothing: only key and time together do."""
        if self.source_compacted or self.target_compacted:
            return same[0] and same[3]
        return any(same)

    # ---- missing

    def _missing(self) -> None:
        if self.target_compacted:
            of_key = (
                "from record where record.side = {side} and record.partition = left_over.partition "
                "and record.key = left_over.key"
            )
            later = f"exists (select 1 {of_key.format(side=0)} and record.position > left_over.position)"
            none = f"not exists (select 1 {of_key.format(side=1)})"
            newest = f"(select max(record.position) {of_key.format(side=1)})"
            newer = (
                f"{EXTENT.format(column='grew', side=0)} and exists (select 1 from left_over as copied where "
                f"copied.side = 1 and copied.partition = left_over.partition and copied.position = {newest})"
            )
            self._set(
                "kind = 'compacted'",
                f"side = 0 and {OPEN} and key is not null and "
                f"({later} or (value is null and {none}) or ({newer}))",
            )
        self._set("kind = 'missing'", f"side = 0 and {OPEN}")
