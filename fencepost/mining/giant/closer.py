"""A closer look at one log of a giant history: the source of slots and operations that checkers/log/ranges
asks, over files.

Owns: the passes over the giant's row groups, and what they send back. Must not know: Spark, which operations
prove anything.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Appends, Reads, log_columns
from fencepost.checkers.log.log_rules import Profile, rules_of
from fencepost.checkers.log.ranges.around import Beside, Moments, Wanted, beside, concerning, in_question
from fencepost.checkers.log.ranges.closer import MOST_KEPT, TOO_MANY, Looked, Source, look_closer
from fencepost.checkers.log.ranges.holes import bounding
from fencepost.checkers.log.ranges.partial import rows_of_group
from fencepost.checkers.operation_columns import Array, OperationColumns, columns_of_table
from fencepost.mining.giant.fold import Decide, LogWork, soft_at
from fencepost.mining.giant.giant_rows import CODED, COLUMNS, LogKey, Spread, own_batches
from fencepost.mining.inputs.ungrouped_parts import Giant
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.trace import Trace

Choice = Callable[[Appends, Reads, Array], Array]
"""choice(appends, reads, strong): op ids, of one batch of the log."""


@frozen(kw_only=True, eq=False)
class Ask:
    """Which offsets of a range are in question."""

    ranges: Decide

    def __call__(self, asked: tuple[int, Beside]) -> Array:
        """A mask of the offsets of a range that are in question, given the other ranges."""
        number, others = asked
        own = self.ranges
        soft = soft_at(own.folder, own.log)
        return in_question(number, own.pieces(number), soft, own.gaps, own.demands, others)


@frozen(kw_only=True, eq=False)
class Keep:
    """The operations of a row group that are chosen."""

    giant: Giant
    header: Trace
    log: LogKey
    choice: Choice

    def __call__(self, number: int) -> pa.Table:
        """The chosen operations of row group `number`, in order. Raises TraceError."""
        found = [SCHEMAS["operations"].empty_table().select(COLUMNS)]
        for table in own_batches(self.giant, self.giant.places[number], COLUMNS, CODED):
            columns = log_columns(columns_of_table(table, (self.header,)))
            rules = rules_of(columns)
            for g in range(columns.groups):
                if (columns.topics[columns.topic[g]], int(columns.partition[g])) != self.log:
                    continue
                appends, reads = rows_of_group(columns, g)
                strong = (reads.end >= 0) & (reads.strong | (rules.profile[g] == Profile.STRONG))
                mine = np.isin(table.column("op_id").to_numpy(), self.choice(appends, reads, strong))
                rows = table.select(COLUMNS).filter(pa.array(mine))
                found.append(rows.cast(SCHEMAS["operations"].empty_table().select(COLUMNS).schema))
        return pa.concat_tables(found)


def _wanted(wanted: Wanted, appends: Appends, reads: Reads, strong: Array) -> Array:
    return concerning(appends, reads, strong, wanted)


def _bounding(starts: Array, appends: Appends, reads: Reads, strong: Array) -> Array:
    return bounding(appends, reads, strong, starts)


def look(giant: Giant, header: Trace, work: LogWork, folder: Path, spread: Spread) -> Looked:
    """The plain check's findings about one suspicious log. giant: the history; header: its trace without
    rows; work: the log; folder: for files of the steps; spread: runs tasks. Raises TraceError."""
    ask = Ask(ranges=Decide(folder=folder, log=work.log, demands=work.demands, gaps=work.gaps))

    def asked(moments: Moments) -> Array:
        others = beside(work.summaries, work.demands.width, moments)
        parts = spread(
            ask, [(one.number, asked_parts) for one, asked_parts in zip(work.summaries, others, strict=True)]
        )
        return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))

    def keep(choice: Choice, places: Sequence[int]) -> OperationColumns:
        step = Keep(giant=giant, header=header, log=work.log, choice=choice)
        nothing = SCHEMAS["operations"].empty_table().select(COLUMNS)
        return columns_of_table(pa.concat_tables([nothing, *spread(step, places)]), (header,))

    source = Source(
        in_question=asked,
        keep=lambda wanted: keep(partial(_wanted, wanted), work.places(wanted)),
        bounding=lambda starts: keep(partial(_bounding, starts), range(len(giant.places))),
        summaries=work.summaries,
        soft=soft_at(folder, work.log),
        dense=work.demands.dense,
    )
    if len(work.wanted.ids) > MOST_KEPT:
        return Looked(undecided=TOO_MANY)
    return look_closer(source, work.log, work.wanted)
