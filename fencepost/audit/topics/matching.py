"""Which record of a source partition is which record of the target, and which pairs are out of order.

Owns the definitions. Must not know brokers. Offsets say nothing here: a mirror has others.

Two records are equal if their identities are: key, value and headers, and the timestamp where the copy keeps
it. Of equal records in one partition the k-th at the source and the k-th at the target are a pair. What is
left over has no partner. Where equal records are left over, it cannot be said which of them is the odd one:
all equal ones are unsure, and none of them says anything about order.

The sure pairs are in order if their positions at both sides grow together. If not, as many of them as
possible are kept in order (the longest increasing subsequence), and the others are moved.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import Any

from attrs import define

from fencepost.audit.topics.topic_store import Side

MOST_RUNS = 200_000
"""Stretches of a partition that are each in order, of which the best order is found in memory: some 50 MB.
With more, each pair that stands before an earlier one counts as moved: more pairs than necessary."""
BUFFER = 20_000
"""Rows that are written at once."""
KEPT = 0.5
"""The copy keeps timestamps if at least so many of the records with equal content have equal ones. At a tenth
one altered record in ten would do; at nine tenths one lost in nine."""
SAMPLE = 2_000
"""Records of each partition that are compared for that."""


def timestamps_kept(database: Connection, append_time: bool) -> bool:
    """Whether the copy keeps the records' timestamps. append_time: whether the target's broker sets them."""
    if append_time:
        return False
    database.execute("drop table if exists temp.sample")
    database.execute(
        "create temp table sample as select record.partition, content, stamped from record, "
        f"(select partition, 1 + max(position) / {SAMPLE} as step from record where side = 1 "
        "group by partition) as size where side = 1 and record.partition = size.partition "
        "and position % step = 0"
    )
    equal = [
        database.execute(
            f"select count(distinct sample.rowid) from sample, record where record.side = 0 "
            f"and record.partition = sample.partition and record.{column} = sample.{column}"
        ).fetchone()[0]
        for column in ("content", "stamped")
    ]
    return bool(equal[1] >= KEPT * equal[0])


@define
class Buffer:
    """Rows that are written in portions."""

    database: Connection
    query: str
    rows: list[tuple[Any, ...]]

    def add(self, row: tuple[Any, ...]) -> None:
        """One more."""
        self.rows.append(row)
        if len(self.rows) >= BUFFER:
            self.write()

    def write(self) -> None:
        """What there is."""
        self.database.executemany(self.query, self.rows)
        self.rows.clear()


def kth_with_kth(
    source: Iterable[tuple[Any, ...]], target: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, bool]]:
    """Pairs of rows whose first columns are equal, and the rows that are left over.

    Args:
        source: in the order of the first column.
        target: likewise.

    Yields:
        (row of the source or None, row of the target or None, whether an equal one is in a pair).
    """
    sources, targets = iter(source), iter(target)
    one, other = next(sources, None), next(targets, None)
    last: Any = None
    while one is not None or other is not None:
        if one is not None and other is not None and one[0] == other[0]:
            last = one[0]
            yield one, other, True
            one, other = next(sources, None), next(targets, None)
        elif other is None or (one is not None and one[0] < other[0]):
            assert one is not None, "the loop goes on"
            yield one, None, one[0] == last
            one = next(sources, None)
        else:
            yield None, other, other[0] == last
            other = next(targets, None)


def match(database: Connection, partition: int, identity: str) -> None:
    """Pair the records of one partition, in the caller's transaction. What an earlier call left is replaced.

    Args:
        database: of a TopicStore, with all records of both sides.
        partition: which.
        identity: the column that equal records share: content or stamped.
    """
    assert identity in ("content", "stamped"), identity
    for table in ("pair", "left_over"):
        database.execute(f"delete from {table} where partition = ?", (partition,))
    database.execute("drop table if exists temp.found")
    database.execute("create temp table found (source, target, source_offset, target_offset, identity, key)")
    query = (
        f'select {identity}, position, "offset", key, value, headers, timestamp from record '
        "where side = ? and partition = ? order by 1, 2"
    )
    pairs = Buffer(database, "insert into temp.found values (?, ?, ?, ?, ?, ?)", [])
    left = Buffer(
        database,
        f'insert into left_over (side, partition, position, "offset", identity, key, value, headers, '
        f"timestamp, repeated) values (?, {int(partition)}, ?, ?, ?, ?, ?, ?, ?, ?)",
        [],
    )
    rows = (database.execute(query, (int(side), partition)) for side in Side)
    for one, other, repeated in kth_with_kth(*rows):
        if one is not None and other is not None:
            pairs.add((one[1], other[1], one[2], other[2], one[0], one[3]))
            continue
        side, row = (Side.SOURCE, one) if one is not None else (Side.TARGET, other)
        assert row is not None, "one of both is there"
        left.add((int(side), row[1], row[2], row[0], *row[3:], repeated))
    pairs.write()
    left.write()
    database.execute(
        "insert into pair (partition, source, target, source_offset, target_offset, identity, key) "
        "select ?, * from temp.found order by source",
        (partition,),
    )
    database.execute(
        "update pair set sure = 0 where partition = ?1 and identity in "
        "(select identity from left_over where partition = ?1 and repeated)",
        (partition,),
    )
    _order(database, partition)
    _gaps(database, partition)


# ---- order


def _order(database: Connection, partition: int) -> None:
    """Mark the sure pairs that are moved, and those before an earlier one of their key."""
    ranked = (
        "select source, rank from (select source, row_number() over (order by target) as rank from pair "
        "where partition = ? and sure) order by source"
    )
    runs: list[list[int]] = []
    for source, rank in database.execute(ranked, (partition,)):
        if runs and rank == runs[-1][3] + 1:
            runs[-1][1], runs[-1][3] = source, rank
        elif len(runs) < MOST_RUNS:
            runs.append([source, source, rank, rank])
        else:
            _overtaken(database, partition, "1", "moved")
            break
    else:
        database.executemany(
            "update pair set moved = 1 where partition = ? and sure and source between ? and ?",
            [(partition, run[0], run[1]) for run in moved(runs)],
        )
    if len(runs) > 1:
        _overtaken(database, partition, "key", "by_key")


def moved(runs: list[list[int]]) -> list[list[int]]:
    """Of runs in the order of the source those that are not in order, as few records as possible.

    Args:
        runs: [first source, last source, first rank, last rank], ranks of the target; ranks of two runs do
            not overlap.
    """
    ranks = sorted(run[2] for run in runs)
    # a tree of Fenwick: the heaviest chain that ends at or below a rank, and its last run
    best: list[tuple[int, int]] = [(0, -1)] * (len(runs) + 1)
    before: list[int] = []
    for number, run in enumerate(runs):
        place = bisect_left(ranks, run[2])
        weight, last = 0, -1
        index = place
        while index:
            if best[index][0] > weight:
                weight, last = best[index]
            index &= index - 1
        before.append(last)
        weight += run[3] - run[2] + 1
        index = place + 1
        while index <= len(runs):
            if best[index][0] < weight:
                best[index] = (weight, number)
            index += index & -index
    last = max(best)[1] if runs else -1
    kept = set()
    while last >= 0:
        kept.add(last)
        last = before[last]
    return [run for number, run in enumerate(runs) if number not in kept]


def _overtaken(database: Connection, partition: int, group: str, column: str) -> None:
    """Mark the sure pairs that stand at the target before an earlier pair of their group. group: an
    expression, the same for all of a group."""
    query = (
        f"select {group}, source, target from pair where partition = ? and sure "
        f"and {group} is not null order by 1, 2"
    )
    marked = Buffer(
        database, f"update pair set {column} = 1 where partition = {int(partition)} and source = ?", []
    )
    last, highest = None, -1
    for name, source, target in aside(database, query, (partition,)):
        if name != last:
            last, highest = name, -1
        if target < highest:
            marked.add((source,))
        highest = max(highest, target)
    marked.write()


def aside(database: Connection, query: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Rows of a query, copied first: its table may be written while they are read. No other query may be
    under way at the call, and there is one copy at a time.

    Args:
        database: of a TopicStore.
        query: of the rows.
        values: for its question marks.
    """
    database.execute("drop table if exists temp.aside")
    database.execute(f"create temp table aside as {query}", values)
    return database.execute("select * from temp.aside order by rowid")


def _gaps(database: Connection, partition: int) -> None:
    """Write for each row that is left over which pair in order is the last one before it."""
    chain = "select source, {side} from pair where partition = ? and sure and not moved order by source"
    query = "select position from left_over where side = ? and partition = ? order by position"
    for side in Side:
        rows = aside(database, query, (int(side), partition))
        pairs = database.execute(chain.format(side=side.word), (partition,))
        written = Buffer(
            database,
            "update left_over set gap = ? "
            f"where side = {int(side)} and partition = {int(partition)} and position = ?",
            [],
        )
        gap, ahead = -1, next(pairs, None)
        for (position,) in rows:
            while ahead is not None and ahead[1] < position:
                gap, ahead = ahead[0], next(pairs, None)
            written.add((gap, position))
        pairs.close()
        written.write()
