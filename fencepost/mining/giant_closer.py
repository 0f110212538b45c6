"""A closer look at one log of a giant history: the source of slots and operations that checkers/ranges asks, over files.

Owns: the passes over the giant's row groups, and what they send back. Must not know: Spark, which operations prove anything.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.columns import Array, OperationColumns, columns_of_table
from fencepost.checkers.log.columns import log_columns
from fencepost.checkers.log.rules import Profile, rules_of
from fencepost.checkers.ranges.around import Near, Peaks, batches_at, concerning, near, peaks_of
from fencepost.checkers.ranges.closer import Kept, Source, look_closer, merge_kept
from fencepost.checkers.ranges.partial import rows_of_group
from fencepost.checkers.verdict import Finding
from fencepost.mining.giant import CODED, COLUMNS, Decide, Log, LogWork, Spread, own_batches, soft_at
from fencepost.mining.loose import Giant
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.trace import Trace


@frozen(kw_only=True, eq=False)
class Look:
    """Slots of one range again, for its peaks or for what is near."""

    ranges: Decide

    def peaks(self, number: int) -> Peaks:
        """Of range `number`."""
        own = self.ranges
        return peaks_of(number, own.pieces(number), soft_at(own.folder, own.log), own.demands)

    def near(self, asked: tuple[int, Peaks]) -> Near:
        """Of a range, after the ones before it."""
        number, before = asked
        own = self.ranges
        return near(number, own.pieces(number), soft_at(own.folder, own.log), own.gaps, own.demands, before)


@frozen(kw_only=True, eq=False)
class Keep:
    """Which operations of a row group say anything of offsets, or send values."""

    giant: Giant
    header: Trace
    log: Log
    offsets: Array
    values: Array

    def __call__(self, number: int) -> Kept:
        """Of row group `number`. Raises TraceError."""
        many = []
        for table in own_batches(self.giant, self.giant.places[number], COLUMNS, CODED):
            columns = log_columns(columns_of_table(table, (self.header,)))
            rules = rules_of(columns)
            for g in range(columns.groups):
                if (columns.topics[columns.topic[g]], int(columns.partition[g])) == self.log:
                    appends, reads = rows_of_group(columns, g)
                    strong = (reads.end >= 0) & (reads.strong | (rules.profile[g] == Profile.STRONG))
                    ids, shown = concerning(appends, reads, strong, self.offsets, self.values)
                    many.append(Kept(ids=ids, batches=batches_at(appends, self.offsets), values=shown))
        return merge_kept(many)


@frozen(kw_only=True, eq=False)
class Fetch:
    """Operations by their ids."""

    giant: Giant
    ids: Array

    def __call__(self, number: int) -> pa.Table:
        """Those of row group `number`, in order. Raises TraceError."""
        found = [SCHEMAS["operations"].empty_table().select(COLUMNS)]
        for table in own_batches(self.giant, self.giant.places[number], COLUMNS):
            mine = np.isin(table.column("op_id").to_numpy(), self.ids)
            found.append(table.select(COLUMNS).filter(pa.array(mine)))
        return pa.concat_tables(found)


def findings_of(
    giant: Giant, header: Trace, work: LogWork, folder: Path, spread: Spread
) -> tuple[Finding, ...]:
    """What can be told of one suspected log without examining all of it; () if nothing. Raises TraceError."""
    places = range(len(giant.places))
    look = Look(ranges=Decide(folder=folder, log=work.log, demands=work.demands, gaps=work.gaps))

    def keep(offsets: Array, values: Array) -> Kept:
        step = Keep(giant=giant, header=header, log=work.log, offsets=offsets, values=values)
        found = merge_kept(spread(step, places))
        return evolve(found, batches=np.union1d(found.batches, offsets))

    def fetch(ids: Array) -> OperationColumns:
        return columns_of_table(pa.concat_tables(spread(Fetch(giant=giant, ids=ids), places)), (header,))

    source = Source(
        peaks=partial(spread, look.peaks, work.numbers),
        near=lambda before: spread(look.near, list(zip(work.numbers, before, strict=True))),
        keep=keep,
        fetch=fetch,
    )
    return look_closer(source, work.offsets, work.log, timed=work.demands.timed)
