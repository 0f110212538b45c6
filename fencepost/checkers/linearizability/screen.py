"""Fast screening: keys of a key-value history that are certainly legal, found without looking at single
operations.

Owns the columns of such a history, and which histories qualify. Must not know findings.

Converting an operation into a call takes longer than checking it. If every text is plain (no escapes, no
error that needs a message) the columns suffice. Keys that are not certainly legal, and histories that do not
qualify, are checked operation by operation.
"""

from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.arrow_arrays import Array, Arrow, string_codes
from fencepost.checkers.compiled import Kernels
from fencepost.checkers.linearizability.kernel.texts import APPEND, GET, PUT, Texts, legal_keys
from fencepost.checkers.models.base import Model
from fencepost.checkers.models.registers import KeyValue
from fencepost.checkers.operation_columns import NEVER
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

SMALLEST = 50
"""The smallest history, in operations, for which building columns pays."""
STEPS = 20
"""Bound on the turns of the kernel's loops per operation."""
_KINDS = {Function.GET: GET, Function.PUT: PUT, Function.APPEND: APPEND}
_OK, _FAIL, _UNKNOWN = range(3)
_OUTCOMES = {Outcome.OK: _OK, Outcome.FAIL: _FAIL, Outcome.UNKNOWN: _UNKNOWN}
_QUOTE, _BACKSLASH, _SPACE = 34, 92, 32
_TIME_LIMIT = 1 << 62
"""Times beyond it could overflow when they are widened."""


@frozen(kw_only=True)
class Screened:
    """The result of screening. parts, operations: how many are certainly legal; rest: a trace of the
    others."""

    parts: int
    operations: int
    rest: Trace


def fits(model: Model) -> bool:
    """Whether histories of this model may be screened. A derived class may allow other histories, so it does
    not qualify."""
    return type(model) is KeyValue and isinstance(model.initial, str) and not model.initial


def _call() -> None:
    one = np.zeros(1, np.int64)
    legal_keys(Texts(np.zeros(1, np.int8), np.zeros(1, np.uint8), one, one, one, one), one, 1)


KERNELS = Kernels(legal_keys, call=_call)
"""The compiled functions of the screen."""


def screened(model: Model, trace: Trace, widen: int = 0, smallest: int = SMALLEST) -> Screened | None:
    """Find the keys that are certainly legal.

    Args:
        model: the sequential model.
        trace: the history.
        widen: the possible error of each time stamp, in nanoseconds.
        smallest: the fewest operations for which columns are built.

    Returns:
        the result; None if the history does not qualify.
    """
    if not fits(model) or len(trace.operations) < smallest:
        return None
    try:
        found = _columns(trace.operations, widen)
    except (KeyError, OverflowError, UnicodeError, pa.ArrowException):
        return None
    if found is None:
        return None
    texts, key, counts = found
    named = np.bincount(key) > 0
    legal = legal_keys(texts, key, len(named)) & named
    sure = legal[key]
    rest = trace
    if sure.all():
        rest = evolve(trace, operations=())
    elif sure.any():
        unclear = np.flatnonzero(counts)[~sure].tolist()
        rest = evolve(trace, operations=tuple(trace.operations[row] for row in unclear))
    return Screened(parts=int(legal.sum()), operations=int(sure.sum()), rest=rest)


def _columns(operations: tuple[Operation, ...], widen: int) -> tuple[Texts, Array, Array] | None:
    """The operations that count as texts, the number of each one's key, and which rows count. None if an
    operation needs a closer look."""

    def column(name: str) -> list[Any]:
        return list(map(attrgetter(name), operations))

    kind = np.frombuffer(bytes(map(_KINDS.__getitem__, column("function"))), np.int8)
    outcome = np.frombuffer(bytes(map(_OUTCOMES.__getitem__, column("outcome"))), np.int8)
    _, key = string_codes(pa.array(column("key"), pa.string()))
    invoke = pa.array(column("invoke_time"), pa.int64()).to_numpy()
    heard = pa.array(column("completion_time"), pa.int64()).fill_null(NEVER).to_numpy()
    known, writes = outcome == _OK, kind != GET
    counts = known | (writes & (outcome == _UNKNOWN))
    asked = _plain(column("argument"), writes, counts)
    answered = _plain(column("result"), ~writes, counts)
    if asked is None or answered is None or (key[counts] < 0).any():
        return None
    if len(invoke) and max(-int(invoke.min()), int(invoke.max()), widen) > _TIME_LIMIT:
        return None
    if (known & ((heard < invoke) | (heard > _TIME_LIMIT))).any():
        return None
    data = np.concatenate((asked[0], answered[0]))
    start = np.where(writes, asked[1], answered[1] + len(asked[0]))[counts]
    size = np.where(writes, asked[2], answered[2])[counts]
    complete = np.where(known, heard + widen * known, NEVER)
    texts = Texts(kind[counts], data, start, size, (invoke - widen)[counts], complete[counts])
    return texts, key[counts], counts


def _plain(column: list[Any], wanted: Array, counts: Array) -> tuple[Array, Array, Array] | None:
    """Bytes, starts and sizes of the JSON strings without escapes, if exactly the rows that need one have
    one; otherwise None."""
    if not counts.all():
        column = [text if asked else None for text, asked in zip(column, counts.tolist(), strict=True)]
        wanted = wanted & counts
    array: Arrow = pa.array(column, pa.large_string())
    if (array.is_valid().to_numpy(zero_copy_only=False) != wanted).any():
        return None
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(column) + 1]
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)[: int(ends[-1])]
    start, size = ends[:-1] + 1, np.diff(ends) - 2
    if (size[wanted] < 0).any():
        return None
    quoted = (data[start[wanted] - 1] == _QUOTE) & (data[(start + size)[wanted]] == _QUOTE)
    if not quoted.all() or np.count_nonzero(data == _QUOTE) != 2 * len(quoted):
        return None
    return None if (data == _BACKSLASH).any() or (data < _SPACE).any() else (data, start, size)
