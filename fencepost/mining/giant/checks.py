"""The checks of one giant history in addition to the log check; each reads only the operations that it
needs.

Owns which operations each check needs, and the message if they are too many. Must not know how a
check judges.

`conformance` reads only events. `invariants` reads events, the ends that replies to reads show with a leader
epoch or broker, and the keys of compacted topics. `kafka`, `transactions` and `groups` need the whole history
as soon as there is a consumer, a transaction or a group in it, and nothing otherwise.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from fencepost.checkers.judges import CHECKS, LOG, Check
from fencepost.checkers.kafka.extras import extras_of_table
from fencepost.checkers.kafka.kafka_judge import applying
from fencepost.checkers.log.accounts import LogCounts, counts_of
from fencepost.checkers.log.appends_and_reads import log_columns
from fencepost.checkers.operation_columns import Array, columns_of_table
from fencepost.checkers.unjudged import OF_EVENT, Data, data_of_tables
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.mining.giant.giant_rows import CODED, COLUMNS, Spread, own_batches
from fencepost.mining.inputs.split_reading import known_event_rows
from fencepost.mining.inputs.ungrouped_parts import Giant, batches_of
from fencepost.mining.spark_judge import judge_tables
from fencepost.model.lives import ENDING, used_again
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.schema import SCHEMAS, Table
from fencepost.traces.tables import Tables, events_of_table
from fencepost.traces.trace import Trace

WHOLE_OPERATIONS = 2_000_000
"""Operations that a check still takes together: a million, with three records each, take two gigabytes."""
MOST_EVENTS = 5_000_000
"""Events that a check takes together: a million of them take half a gigabyte."""


def rows_of(giant: Giant, table: Table, columns: list[str] | None = None) -> pa.Table:
    """The giant's rows of `traces` or `events`. Raises TraceError."""
    names = columns or SCHEMAS[table].names
    found = [SCHEMAS[table].empty_table().select(names)]
    for loose in giant.loose:
        for group in loose.groups[table]:
            for batch in batches_of(loose.part.of(table), table, group, names):
                mine = pa.array(batch.column(names.index("trace_id")).to_numpy() == giant.trace_id)
                found.append(pa.Table.from_batches([batch.filter(mine)]))
    return pa.concat_tables(found)


def _of_kafka(rows: pa.Table, header: Trace) -> Array:
    """A mask of operations by consumers, in transactions, or with acks below all."""
    return applying(columns_of_table(rows, (header,)), extras_of_table(rows))


def _of_transactions(rows: pa.Table, header: Trace) -> Array:
    """Transactions; their parts matter with them."""
    names = rows.column("function").cast(pa.string())
    return np.asarray(pc.equal(names, pa.scalar(Function.TXN.value))).astype(np.bool_)


def _of_groups(rows: pa.Table, header: Trace) -> Array:
    """A mask of the operations of consumer groups."""
    return np.asarray(pc.is_valid(rows.column("group"))).astype(np.bool_)


def _of_invariants(rows: pa.Table, header: Trace) -> Array:
    """Replies that show an end with its leader epoch or broker; where topics are compacted, appends with a
    key. Acknowledgements are left out: nearly every operation of a giant is one."""
    operations = columns_of_table(rows, (header,))
    words = {word: rows.column(word).cast(pa.string()) for word in ("function", "outcome")}
    read = pc.is_in(words["function"], value_set=pa.array([Function.POLL.value, Function.LIST_OFFSETS.value]))
    shows = np.asarray(pc.and_(read, pc.equal(words["outcome"], pa.scalar(Outcome.OK.value)))).astype(
        np.bool_
    )
    positions = operations.positions
    verdicts_so_far = np.concatenate(([0], np.cumsum(positions.leader_epoch >= 0)))
    node = rows.column("node").to_numpy()
    shows &= (operations.leader_epoch >= 0) | (np.diff(verdicts_so_far[positions.start]) > 0) | (node >= 0)
    if header.claims.compacted:
        sends = pc.and_(
            pc.equal(words["function"], pa.scalar(Function.APPEND.value)), pc.is_valid(rows.column("key"))
        )
        shows |= np.asarray(sends).astype(np.bool_)
    return shows


def _of_liveness(rows: pa.Table, header: Trace) -> Array:
    """None: of a giant, the rows of liveness that events answer are judged."""
    return np.zeros(rows.num_rows, np.bool_)


@frozen(kw_only=True)
class _Bearing:
    """rows: the operations that bear on a check; they do so alone, or only with the whole history; what: they
    are."""

    rows: Callable[[pa.Table, Trace], Array]
    alone: bool
    what: str


BEARING = {
    "kafka": _Bearing(
        rows=_of_kafka,
        alone=False,
        what="by consumers, of transactions, or sent without waiting for all replicas",
    ),
    "transactions": _Bearing(rows=_of_transactions, alone=False, what="transactions"),
    "exactly_once": _Bearing(rows=_of_transactions, alone=False, what="transactions"),
    "groups": _Bearing(rows=_of_groups, alone=False, what="of consumer groups"),
    "invariants": _Bearing(
        rows=_of_invariants, alone=True, what="replies that show an end with its leader epoch or broker"
    ),
    "liveness": _Bearing(rows=_of_liveness, alone=True, what="none"),
}


@frozen(kw_only=True)
class Count:
    """How many operations of a row group bear on each of some checks."""

    giant: Giant
    header: Trace
    checks: tuple[str, ...]

    def __call__(self, number: int) -> tuple[int, ...]:
        """For each check, how many operations of row group `number` matter to it. Raises TraceError."""
        columns = _columns(self.checks)
        counts = np.zeros(len(self.checks), np.int64)
        for rows in own_batches(self.giant, self.giant.places[number], columns, CODED):
            if rows.num_rows:
                counts += [int(BEARING[name].rows(rows, self.header).sum()) for name in self.checks]
        return tuple(counts.tolist())


def _columns(checks: Sequence[str]) -> list[str]:
    """Those that they read, and those of `OperationColumns`."""
    wanted = {name for check in (LOG, *checks) for name in CHECKS[check].operation_columns}
    return [name for name in SCHEMAS["operations"].names if name in wanted]


@frozen(kw_only=True)
class Whole:
    """Ask checks of the history at once."""

    giant: Giant
    # Without operations and events.
    header: Trace
    profile: str | None
    # Of the operations only those that bear on the check.
    bearing: bool = False

    def __call__(self, asked: tuple[Check, ...]) -> tuple[Verdict, ...]:
        """The verdicts of these checks. Raises TraceError."""
        names = [check.name for check in asked]
        events = any(check.reads_events for check in asked) or names_again(self.giant)
        verdicts_so_far = rows_of(self.giant, "events") if events else SCHEMAS["events"].empty_table()
        known, _ = known_event_rows(verdicts_so_far, self.giant.source, self.giant.place)
        tables = Tables(
            traces=rows_of(self.giant, "traces"), operations=self._operations(names), events=known
        )
        return judge_tables(tables, asked, self.profile, where=self.giant.place, complete=False)[0].verdicts

    def _operations(self, checks: list[str]) -> pa.Table:
        columns = _columns(checks)
        found = [SCHEMAS["operations"].empty_table().select(columns)]
        if any(CHECKS[name].operation_columns for name in checks):
            for place in dict.fromkeys(self.giant.places):
                for rows in own_batches(self.giant, place, columns):
                    some = rows.select(columns)
                    if self.bearing and some.num_rows:
                        mine = [BEARING[name].rows(some, self.header) for name in checks if name in BEARING]
                        some = some.filter(pa.array(np.logical_or.reduce(mine)))
                    found.append(some)
        return pa.concat_tables(found).combine_chunks()


@frozen(kw_only=True)
class CountRecords:
    """What became of the records of the logs, of the whole history at once."""

    giant: Giant
    header: Trace

    def __call__(self, _: None) -> LogCounts | None:
        """As the plain check counts them. Raises TraceError."""
        found = [
            rows.select(COLUMNS)
            for place in dict.fromkeys(self.giant.places)
            for rows in own_batches(self.giant, place, COLUMNS)
        ]
        whole = pa.concat_tables(found).combine_chunks()
        return counts_of(log_columns(columns_of_table(whole, (self.header,)))).get(0)


@frozen(kw_only=True)
class DataOf:
    """What the history has data for, row group by row group."""

    giant: Giant

    def __call__(self, number: int) -> Data:
        """What the operations of row group `number` are data for. Raises TraceError."""
        columns = ["function", "strong", "node", "leader_epoch", "result"]
        no_events, found = SCHEMAS["events"].empty_table(), Data(0)
        for rows in own_batches(self.giant, self.giant.places[number], columns, CODED):
            found |= data_of_tables(rows, no_events).get(self.giant.trace_id, Data(0))
        return found


def data_of_giant(giant: Giant, spread: Spread) -> Data:
    """What the history has data for.

    Args:
        giant: the history.
        spread: runs a task for each row group.

    Returns:
        all that any of its rows is data for.

    Raises:
        TraceError: if it cannot be read.
    """
    found = reduce(or_, spread(DataOf(giant=giant), range(len(giant.places))), Data(0))
    names = set(rows_of(giant, "events", ["trace_id", "name"]).column("name").unique().to_pylist())
    return reduce(or_, (OF_EVENT[name] for name in Name if name.value in names), found)


def names_again(giant: Giant) -> str:
    """Why the logs cannot be judged range by range: topics that were deleted and created again. "" if there
    are none. Raises TraceError."""
    names = set(rows_of(giant, "events", ["trace_id", "name"]).column("name").unique().to_pylist())
    if not names & ENDING:
        return ""
    known, _ = known_event_rows(rows_of(giant, "events"), giant.source, giant.place)
    events = events_of_table(known, {giant.trace_id}).get(giant.trace_id, ())
    again = used_again(events)
    return f"deleted and created again, so that the history is to be cut: {', '.join(again)}" if again else ""


def _unknown(check: str, reason: str) -> Verdict:
    return Verdict(decision=Decision.UNKNOWN, check=check, reason=reason)


def judge_rest(
    giant: Giant, header: Trace, profile: str | None, checks: Sequence[Check], spread: Spread, *, whole: int
) -> dict[str, Verdict]:
    """The verdicts of these checks, none of them the log check over slots. whole: operations that a check
    takes together. Raises TraceError."""
    if giant.weight <= whole:
        asked = Whole(giant=giant, header=header, profile=profile)
        return _by_name(spread(asked, [tuple(checks)] if checks else []))
    names = tuple(check.name for check in checks if check.name in BEARING)
    counts = (
        spread(Count(giant=giant, header=header, checks=names), range(len(giant.places))) if names else []
    )
    bearing = dict(zip(names, np.sum(counts, axis=0).tolist(), strict=True)) if names else {}
    reading = any(check.reads_events for check in checks)
    events = rows_of(giant, "events", ["trace_id"]).num_rows if reading else 0
    verdicts_so_far, later = {}, []
    for check in checks:
        many = bearing.get(check.name, 0)
        if check.reads_events and events > MOST_EVENTS:
            verdicts_so_far[check.name] = _unknown(
                check.name,
                f"{events} events, more than the {MOST_EVENTS} that the check {check.name} takes together",
            )
        elif many > (whole if check.name in BEARING and BEARING[check.name].alone else 0):
            verdicts_so_far[check.name] = _too_large(giant, check.name, many, whole)
        else:
            later.append((check,))
    asked = Whole(giant=giant, header=header, profile=profile, bearing=True)
    return verdicts_so_far | _by_name(spread(asked, later))


def _by_name(many: Sequence[tuple[Verdict, ...]]) -> dict[str, Verdict]:
    return {verdict.check: verdict for verdicts in many for verdict in verdicts}


def _too_large(giant: Giant, check: str, many: int, whole: int) -> Verdict:
    bearing = BEARING[check]
    takes = (
        f"it takes up to {whole} of them"
        if bearing.alone
        else f"with any of them it takes a history as a whole, up to {whole} operations"
    )
    reason = f"{many} of {giant.operations} operations bear on the check {check} ({bearing.what}): {takes}"
    return _unknown(check, reason)
