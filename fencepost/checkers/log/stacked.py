"""Many logs as one: which of them does a rule convict?

Owns how logs are put on top of each other, and which of them the rules convict. Must not know what a rule
says.

Log B is put on log A: its offsets are moved above those of A, its times after those of A, its leader epochs
above those of A, and its values apart. The result is one log. It keeps a rule if and only if A and B do:

- Content: no offset, value, or (epoch, offset) of B is one of A.
- Time: a lower bound contradicts an upper bound at the same or a higher offset. The upper bounds of B are at
  higher offsets than the lower bounds of A, and later.
- Holes are the exception, because an unknown append of A could fill a hole of B. So a log with a hole is
  convicted here.

A convicted log is judged alone afterwards. So a stack may convict a correct log, but must never pass a wrong
one.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from fencepost.checkers.log.appends_and_reads import Appends, LogColumns, Reads
from fencepost.checkers.log.chain import chain_offsets
from fencepost.checkers.log.content import content_offsets
from fencepost.checkers.log.extras import LONG_AGO, Extras, plain_extras
from fencepost.checkers.log.holes import accounted
from fencepost.checkers.log.log_rules import Profile, Rules
from fencepost.checkers.log.log_transactions import no_ends
from fencepost.checkers.log.one_log import PartitionLog, sent_again
from fencepost.checkers.log.parts import gather
from fencepost.checkers.log.side_chains import side_findings
from fencepost.checkers.operation_columns import NEVER, NONE, Array

WIDEST = float(1 << 61)
"""The sum of all offsets, of all times and of all values of a stack stays below this. So no number leaves 64
bits."""
MOST = 32
"""Of each rule about content, this many places are looked up in one pass over a stack."""
LARGE = 1 << 16
"""A log with more rows and records is judged alone. Stacks spare the fixed cost of each log, which does not
matter there."""


_NONE = np.empty(0, np.int64)


@frozen(kw_only=True, eq=False)
class _Rows:
    """The rows of the chosen groups in both relations, with the position of their group among the chosen."""

    # The number of chosen groups.
    groups: int
    # Rows of appends, and where each group's and each append's values begin.
    appends: Array | slice
    first: Array
    start: Array
    # Flat positions of sent values.
    sent: Array | slice
    # Rows of reads, and where each group's and each read's records begin.
    reads: Array | slice
    read_first: Array
    read_start: Array
    # Flat positions of the records read.
    shown: Array | slice
    # Where the records read of each group begin.
    start_of_shown: Array
    # The group of each append, sent value, read, and record read.
    of_append: Array
    of_sent: Array
    of_read: Array
    of_shown: Array


@frozen(kw_only=True, eq=False)
class _Moves:
    """How far each group is moved."""

    base: Array
    later: Array
    epoch: Array
    # Values of group g are moved by g times this.
    span: int


@frozen(kw_only=True, eq=False)
class Stack:
    """Logs under the same rules, as one log."""

    # The groups, in the order of their offsets in the stack.
    groups: Array
    # Where the offsets of each begin.
    base: Array
    # Where the sent values of each begin.
    sent: Array
    # The stack.
    log: PartitionLog


def suspects(columns: LogColumns, rules: Rules, groups: Array) -> Array:
    """The logs that may break a rule, as if no loss were allowed. That is stricter, so a log that keeps these
    rules keeps its own; and most logs with allowed loss lost nothing.

    Args:
        columns: the logs.
        rules: the rules of each group.
        groups: the groups that are asked about.

    Returns:
        those of the groups that must be judged alone, in order.
    """
    extras, rows = columns.extras, np.diff(columns.appends.first) + np.diff(columns.reads.first)
    records = np.diff(columns.reads.start[columns.reads.first])
    alone = (extras.compacted | extras.transactional | (rows + records > LARGE))[groups]
    found = [groups[alone]]
    for same in _alike(rules, groups[~alone]):
        found += _sifted(columns, rules, same)
    return np.sort(np.concatenate(found))


def _alike(rules: Rules, groups: Array) -> Iterator[Array]:
    """The groups, divided by the rules that apply to them."""
    names = ("profile", "dense", "duplicates", "unique", "uncertainty")
    table = np.array([getattr(rules, name)[groups] for name in names], np.int64)
    kinds, of = np.unique(table, axis=1, return_inverse=True)
    for kind in range(kinds.shape[1]):
        yield groups[of.reshape(-1) == kind]


def _sifted(columns: LogColumns, rules: Rules, groups: Array) -> list[Array]:
    """The convicted ones of groups under the same rules. Where the rules named only some, they are asked
    again about each half of the others."""
    if len(groups) < 2:
        return [groups]
    stack = stack_of(columns, rules, groups)
    if stack is None:
        return [groups]
    bad, all_of_them = convicted(stack)
    if all_of_them:
        return [groups[bad]]
    left = np.delete(groups, bad)
    halves = [left[: len(left) // 2], left[len(left) // 2 :]] if len(left) > 1 else [left]
    return [groups[bad], *(one for half in halves if len(half) for one in _sifted(columns, rules, half))]


def convicted(stack: Stack) -> tuple[Array, bool]:
    """The logs of the stack that some rule convicts.

    Args:
        stack: the logs.

    Returns:
        their positions in the stack, and whether these are all of them; if not, at least one.
    """
    log = stack.log
    again = sent_again(log)
    if len(again):
        return np.unique(np.searchsorted(stack.sent, again, side="right") - 1), False
    offsets, every = content_offsets(log, MOST)
    beside = [finding.offset for finding in side_findings(log)]
    places = [np.array(offsets + beside, np.int64), chain_offsets(log) if log.timed else _NONE]
    at = np.searchsorted(stack.base, np.concatenate(places), side="right") - 1
    found = np.unique(np.concatenate((at, _beyond(stack), _with_holes(stack))))
    return found[found >= 0], every and not beside


def _beyond(stack: Stack) -> Array:
    """The logs with a batch that begins below offset 0, and those into which such a batch reaches."""
    placed = stack.log.placements
    ends = [np.searchsorted(stack.base, at, side="right") - 1 for at in (placed.base, placed.last)]
    found: Array = np.concatenate(ends)[np.tile(ends[0] != ends[1], 2)]
    return found


def _with_holes(stack: Stack) -> Array:
    """The logs in which an offset below the known end has no record that is accounted for."""
    log, placed = stack.log, stack.log.placements
    if not accounted(log):
        return _NONE
    claims = np.concatenate((log.reads.end[log.strong], log.log_start, log.stable))
    ends = np.concatenate((placed.last + 1, claims[claims >= 0]))
    of_end = np.searchsorted(stack.base, ends, side="right") - 1
    known = np.zeros(len(stack.groups), np.int64)
    inside = of_end >= 0
    np.maximum.at(known, of_end[inside], (ends - stack.base[of_end])[inside])
    reach = np.concatenate(([-1], np.maximum.accumulate(placed.last)))[:-1]
    held = np.maximum(placed.last - np.maximum(reach, placed.base - 1), 0)
    of_batch = np.maximum(np.searchsorted(stack.base, placed.base, side="right") - 1, 0)
    return np.flatnonzero(np.bincount(of_batch, weights=held, minlength=len(known)) < known)


def stack_of(columns: LogColumns, rules: Rules, groups: Array) -> Stack | None:
    """Put logs on top of each other.

    Args:
        columns: the logs.
        rules: the rules of each group; alike for all that are stacked.
        groups: the logs to stack, without compaction and transactions.

    Returns:
        the stack; None if its numbers would not fit into 64 bits.
    """
    rows = _rows(columns, groups)
    moves = _moves(columns, rules, groups, rows)
    if moves is None:
        return None
    g = int(groups[0])
    log = PartitionLog(
        topic="",
        partition=0,
        profile=Profile(int(rules.profile[g])),
        dense=bool(rules.dense[g]),
        duplicates=bool(rules.duplicates[g]),
        unique=bool(rules.unique[g]),
        uncertainty=int(rules.uncertainty[g]),
        loss=[],
        appends=_appends(columns.appends, rows, moves),
        reads=_reads(columns.reads, rows, moves),
        extras=_extras(columns.extras, groups, rows, moves),
        ends=no_ends(len(rows.of_append)),
    )
    licence = (columns.extras.licence[groups] + moves.base)[rows.of_read]
    log = evolve(log, licence=np.where(log.log_start >= 0, log.log_start, licence))
    return Stack(groups=groups, base=moves.base, sent=rows.start[rows.first[:-1]], log=log)


def _extras(extras: Extras, groups: Array, rows: _Rows, moves: _Moves) -> Extras:
    plain, special = plain_extras(len(rows.of_append), len(rows.of_read)), extras.special[groups]
    if not special.any():
        return plain
    own, base = special[rows.of_read], moves.base[rows.of_read]
    return plain._replace(
        special=np.array(True),
        log_start=np.where(own, _moved(extras.log_start[rows.reads], base), NONE),
        stable=np.where(own, _moved(extras.stable[rows.reads], base), NONE),
        isolation=np.where(own, extras.isolation[rows.reads], NONE),
    )


def _rows(columns: LogColumns, groups: Array) -> _Rows:
    first, appends = gather(columns.appends.first, groups)
    start, sent = gather(columns.appends.start, np.arange(len(columns.appends.kind))[appends])
    read_first, reads = gather(columns.reads.first, groups)
    read_start, shown = gather(columns.reads.start, np.arange(len(columns.reads.op_id))[reads])
    of_append, of_read = (np.repeat(np.arange(len(groups)), np.diff(at)) for at in (first, read_first))
    return _Rows(
        groups=len(groups),
        appends=appends,
        first=first,
        start=start,
        sent=sent,
        reads=reads,
        read_first=read_first,
        read_start=read_start,
        shown=shown,
        start_of_shown=read_start[read_first],
        of_append=of_append,
        of_sent=np.repeat(of_append, np.diff(start)),
        of_read=of_read,
        of_shown=np.repeat(of_read, np.diff(read_start)),
    )


def _in_each(pick: np.ufunc, first: Array, values: Array, otherwise: int) -> Array:
    """The highest or lowest of each group's values, as `pick` says; first: where each group begins;
    otherwise: of a group without any."""
    found, some = np.full(len(first) - 1, otherwise), np.flatnonzero(first[1:] > first[:-1])
    if len(some):
        found[some] = pick.reduceat(values, first[some])
    return found


def _moves(columns: LogColumns, rules: Rules, groups: Array, rows: _Rows) -> _Moves | None:
    """How far to move each group; None if that does not fit into 64 bits."""
    appends, reads, count = columns.appends, columns.reads, np.diff(rows.start)
    batch = int(count.max(initial=1))
    special = bool(columns.extras.special[groups].any())
    claims = [reads.end, reads.position, *([columns.extras.log_start, columns.extras.stable] * special)]
    sizes = np.maximum(columns.extras.licence[groups], 0)
    for first, values in (
        (rows.first, appends.base[rows.appends] + count),
        (rows.start_of_shown, reads.offset[rows.shown] + 1),
        *((rows.read_first, claim[rows.reads]) for claim in claims),
    ):
        np.maximum(sizes, _in_each(np.maximum, first, values, 0), out=sizes)
    sizes = sizes.astype(float) + 2 * batch + 1
    began, ended = _times(appends, reads, rows)
    lasted = ended.astype(float) - began + 2.0 * rules.uncertainty[groups] + 1
    epochs = np.maximum(
        _in_each(np.maximum, rows.first, appends.epoch[rows.appends], 0),
        _in_each(np.maximum, rows.start_of_shown, reads.record_epoch[rows.shown], 0),
    ).clip(0)
    values = np.concatenate(([0], appends.value[rows.sent], reads.value[rows.shown]))
    span = int(values.max()) - int(values.min()) + 1
    sums = (sizes.sum(), lasted.sum(), epochs.sum(dtype=float), float(span) * rows.groups, abs(began).max())
    if max(sums) > WIDEST:
        return None
    return _Moves(
        base=batch + _before(sizes.astype(np.int64)),
        later=_before(lasted.astype(np.int64)) - began,
        epoch=_before(epochs + 1),
        span=span,
    )


def _times(appends: Appends, reads: Reads, rows: _Rows) -> tuple[Array, Array]:
    """When the first operation of each group was invoked, and when the last one had been answered."""
    invoke, completion = appends.invoke[rows.appends], appends.completion[rows.appends]
    began = np.minimum(
        _in_each(np.minimum, rows.first, invoke, NEVER),
        _in_each(np.minimum, rows.read_first, reads.invoke[rows.reads], NEVER),
    )
    last = np.where(completion == NEVER, invoke, np.maximum(invoke, completion))
    ended = np.maximum(
        np.maximum(began, _in_each(np.maximum, rows.first, last, LONG_AGO)),
        _in_each(np.maximum, rows.read_first, reads.completion[rows.reads], LONG_AGO),
    )
    return began, ended


def _before(sizes: Array) -> Array:
    """The sum of the sizes before each."""
    summed: Array = np.cumsum(sizes) - sizes
    return summed


def _moved(values: Array, by: Array) -> Array:
    """Values, moved where they are known; -1 stays."""
    return np.where(values >= 0, values + by, values)


def _appends(appends: Appends, rows: _Rows, moves: _Moves) -> Appends:
    later, completion = moves.later[rows.of_append], appends.completion[rows.appends]
    known = completion != NEVER
    return Appends(
        first=np.array([0, len(later)]),
        op_id=appends.op_id[rows.appends],
        kind=appends.kind[rows.appends],
        invoke=appends.invoke[rows.appends] + later,
        completion=np.where(known, completion + np.where(known, later, 0), NEVER),
        clock=appends.clock[rows.appends],
        base=_moved(appends.base[rows.appends], moves.base[rows.of_append]),
        epoch=_moved(appends.epoch[rows.appends], moves.epoch[rows.of_append]),
        start=rows.start,
        value=appends.value[rows.sent] + moves.span * rows.of_sent,
    )


def _reads(reads: Reads, rows: _Rows, moves: _Moves) -> Reads:
    later, base = moves.later[rows.of_read], moves.base[rows.of_read]
    return Reads(
        first=np.array([0, len(later)]),
        op_id=reads.op_id[rows.reads],
        process=reads.process[rows.reads],
        session=reads.session[rows.reads],
        invoke=reads.invoke[rows.reads] + later,
        completion=reads.completion[rows.reads] + later,
        clock=reads.clock[rows.reads],
        strong=reads.strong[rows.reads],
        position=_moved(reads.position[rows.reads], base),
        end=_moved(reads.end[rows.reads], base),
        epoch=reads.epoch[rows.reads],
        start=rows.read_start,
        offset=reads.offset[rows.shown] + moves.base[rows.of_shown],
        value=reads.value[rows.shown] + moves.span * rows.of_shown,
        record_epoch=_moved(reads.record_epoch[rows.shown].astype(np.int64), moves.epoch[rows.of_shown]),
    )
