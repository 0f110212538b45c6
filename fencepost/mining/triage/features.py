"""What occurred in each trace, as a set of features, over whole columns of a row group.

Owns: which features there are and their words. Must not know: findings, groups, what a feature is evidence
of.

    step: W            a step of these words (event_steps.py) occurred, faults by kind and marks of the run
    among
                       them
    then: A -> B       on one partition, or on one broker, B was among the next NEXT steps after A, within
                       WITHIN_NS
    last: W            the last step of a partition, or of the cluster, before the final reads
    left: W            at the end, something of this kind was in a state that cannot stay so (subjects.py)
    again: W           after the faults had ended, W occurred OFTEN times on one partition or broker
    together: K, L     faults of these kinds lasted at the same time
    operation: W       a client operation of this function, outcome, acks and error
    answer: W          a client was answered so (answer_steps.py)
    option: O          an option of the plan that is not at its default
"""

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from fencepost.mining.triage.answer_steps import answers_of
from fencepost.mining.triage.event_steps import CODE_OF, Ints, Steps, coded, in_order, joined, ranked
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Name
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.tables import Tables

WITHIN_NS = 1_000_000_000
"""Longest time between the two steps of a pair: a fail-over takes about as long."""
NEXT = 3
"""Steps after a step that make a pair with it: three lost steps in between hide a pair, thirty would make all
pairs."""
OFTEN = 3
"""Repetitions of a step after the faults had ended that are worth a word: one is a retry, two may be."""
MOST_FAULTS = 64
"""Faults of one trace of which overlaps are looked for; plans have fewer than ten."""
OPERATION_COLUMNS = (
    *("trace_id", "op_id", "function", "outcome", "error", "acks", "strong"),
    *("invoke_time", "completion_time", "group", "producer_id", "producer_epoch", "node"),
    *("process", "session", "topic", "partition", "key", "argument", "isolation", "records", "positions"),
)


@frozen(kw_only=True, eq=False)
class Features:
    """Which trace has which features."""

    # Number within the row group.
    trace: Ints
    # Into `words`; each pair once, in order.
    code: Ints
    words: tuple[str, ...]

    def of_each(self, traces: int) -> list[list[str]]:
        """The words of each trace."""
        cuts = np.searchsorted(self.trace, np.arange(traces + 1)).tolist()
        return [[self.words[code] for code in self.code[low:high].tolist()] for low, high in pairwise(cuts)]


@define(eq=False)
class _Gathered:
    """Pairs of trace and word from several sources. Sources may say the same word."""

    pieces: list[tuple[Ints, Ints]] = field(factory=list)
    # Word -> its code.
    places: dict[str, int] = field(factory=dict)

    def add(self, kind: str, traces: Ints, codes: Ints, words: list[str]) -> None:
        """codes: into words."""
        own = [self.places.setdefault(f"{kind}: {word}", len(self.places)) for word in words]
        self.pieces.append((traces, np.array(own, np.int64)[codes]))

    def features(self) -> Features:
        """Each pair once."""
        traces = np.concatenate([piece[0] for piece in self.pieces] or [np.zeros(0, np.int64)])
        codes = np.concatenate([piece[1] for piece in self.pieces] or [np.zeros(0, np.int64)])
        words, size = tuple(self.places), len(self.places) + 1
        has = np.zeros((int(traces.max(initial=-1)) + 1) * size, np.bool_)
        has[traces * size + codes] = True
        both = np.flatnonzero(has)
        used, code = ranked(both % size)
        return Features(trace=both // size, code=code, words=tuple(words[each] for each in used.tolist()))


def features_of(tables: Tables, steps: Steps) -> Features:
    """The features of whole traces; rows of one trace are together, in the order of `traces`. tables: the
    traces; steps: of their events."""
    ids = tables.traces.column("trace_id").to_numpy().astype(np.int64)
    gathered = _Gathered()
    _steps(steps, gathered)
    _left(steps, gathered)
    _faults(tables.events, steps, gathered)
    _operations(tables, ids, steps, gathered)
    _options([plan or "" for plan in tables.traces.column("plan").to_pylist()], gathered)
    return gathered.features()


def _steps(steps: Steps, gathered: _Gathered) -> None:
    """Single steps, pairs, last ones and repeated ones."""
    has_code = steps.code >= 0
    end = steps.name == CODE_OF[Name.PHASE]
    gathered.add("step", steps.trace[has_code & ~end], steps.code[has_code & ~end], list(steps.words))
    scoped = has_code & ~end & (steps.name != CODE_OF[Name.LIVENESS_FAILED])
    size = len(steps.words) + 1
    pairs: list[tuple[Ints, Ints]] = []
    broker = np.where(steps.node >= 0, steps.trace * 64 + np.clip(steps.node, 0, 63), -1)
    for scope, rows in ((steps.partition, scoped & (steps.partition >= 0)), (broker, scoped & (broker >= 0))):
        index = np.flatnonzero(rows)
        index = index[in_order(scope[index])]
        where, code, time = scope[index], steps.code[index], steps.time[index]
        fresh = np.ones(len(index), bool)
        fresh[1:] = (where[1:] != where[:-1]) | (code[1:] != code[:-1])
        index, where, code, time = index[fresh], where[fresh], code[fresh], time[fresh]
        trace = steps.trace[index]
        for ahead in range(1, NEXT + 1):
            near = (
                (where[ahead:] == where[:-ahead])
                & (time[ahead:] - time[:-ahead] <= WITHIN_NS)
                & (code[ahead:] != code[:-ahead])
            )
            pairs.append((trace[:-ahead][near], code[:-ahead][near] * size + code[ahead:][near]))
    traces, both = (np.concatenate([pair[n] for pair in pairs]) for n in (0, 1))
    values, codes = ranked(both)
    words = [f"{steps.words[a]} -> {steps.words[b]}" for a, b in (divmod(v, size) for v in values.tolist())]
    gathered.add("then", traces, codes, words)
    _last(steps, scoped, gathered)
    _again(steps, scoped, broker, gathered)


def _healed(steps: Steps) -> Ints:
    """1 in the rows after the faults of their trace had ended, by the run's own phases; 0 before, and where
    there are none."""
    began = np.zeros(len(steps.code), bool)
    phases = steps.name == CODE_OF[Name.PHASE]
    heal = [number for number, word in enumerate(steps.words) if word == "phase heal"]
    began[phases] = np.isin(steps.code[phases], heal)
    count = np.cumsum(began)
    starts = np.searchsorted(steps.trace, np.arange(steps.trace.max(initial=-1) + 2))
    before = np.concatenate(([0], count))[starts]
    return ((count - before[steps.trace]) > 0).astype(np.int64)


def _last(steps: Steps, scoped: Any, gathered: _Gathered) -> None:
    """The last step of each partition, and of each trace among those of no partition."""
    for kind, scope, rows in (
        ("last", steps.partition, scoped & (steps.partition >= 0)),
        ("last of the cluster", steps.trace, scoped & (steps.partition < 0) & (steps.node >= 0)),
    ):
        index = np.flatnonzero(rows)
        index = index[in_order(scope[index])]
        final = np.ones(len(index), bool)
        final[:-1] = scope[index][1:] != scope[index][:-1]
        gathered.add(kind, steps.trace[index][final], steps.code[index][final], list(steps.words))


def _left(steps: Steps, gathered: _Gathered) -> None:
    """Groups and transactions that were left in a state that cannot stay so."""
    found = sorted({word for _, word in steps.left})
    traces = np.array([trace for trace, _ in steps.left], np.int64)
    codes = np.array([found.index(word) for _, word in steps.left], np.int64)
    gathered.add("left", traces, codes, found)


def _again(steps: Steps, scoped: Any, broker: Ints, gathered: _Gathered) -> None:
    """Steps that occur again and again although nothing is broken any more."""
    healed = _healed(steps) == 1
    size = len(steps.words) + 1
    for scope, rows in (
        (steps.partition, scoped & healed & (steps.partition >= 0)),
        (broker, scoped & healed & (steps.partition < 0) & (broker >= 0)),
    ):
        values, first, counts = np.unique(
            scope[rows] * size + steps.code[rows], return_index=True, return_counts=True
        )
        often = counts >= OFTEN
        gathered.add("again", steps.trace[rows][first[often]], values[often] % size, list(steps.words))


def _faults(events: pa.Table, steps: Steps, gathered: _Gathered) -> None:
    """Kinds of fault that lasted at the same time."""
    causes, words = coded(events.column("cause"))
    rows = np.flatnonzero(np.isin(steps.name, [CODE_OF[Name.FAULT_BEGAN], CODE_OF[Name.FAULT_ENDED]]))
    traces: list[int] = []
    pairs: list[str] = []
    lasting: dict[str, int] = {}
    trace = -1
    for row in rows.tolist():
        if steps.trace[row] != trace:
            trace, lasting = int(steps.trace[row]), {}
        kind = words[int(causes[row])]
        if steps.name[row] == CODE_OF[Name.FAULT_ENDED]:
            lasting[kind] = max(lasting.get(kind, 0) - 1, 0)
            continue
        for other in sorted(name for name, count in lasting.items() if count):
            traces.append(trace)
            pairs.append(", ".join(sorted((kind, other))))
        lasting[kind] = lasting.get(kind, 0) + 1
    found = sorted(set(pairs))
    gathered.add(
        "together",
        np.array(traces, np.int64),
        np.searchsorted(found, pairs) if pairs else np.zeros(0, np.int64),
        found,
    )


def _operations(tables: Tables, ids: Ints, steps: Steps, gathered: _Gathered) -> None:
    """Functions with outcome, acks and error, and the relations of answers."""
    operations = tables.operations
    if not len(operations):
        return
    order = np.argsort(ids, kind="stable")
    trace = order[np.searchsorted(ids, operations.column("trace_id").to_numpy(), sorter=order)]
    (function, functions), (outcome, outcomes), (error, errors) = (
        coded(operations.column(name)) for name in ("function", "outcome", "error")
    )
    asked: Any = operations.column("acks")
    acks = asked.fill_null(9).to_numpy().astype(np.int64) + 1
    values, codes = np.unique(
        joined(function * 128 + np.clip(acks, 0, 127), outcome, error), return_inverse=True
    )
    words = []
    for value in values.tolist():
        rest, err = divmod(value, 1 << 20)
        first, out = divmod(rest, 1 << 20)
        fun, ack = divmod(first - 1, 128)
        level = {0: " acks=all", 1: " acks=0", 2: " acks=1"}.get(ack, "")
        words.append(f"{functions[fun]}{level} {outcomes[out - 1]}" + (f" {errors[err - 1]}" if err else ""))
    gathered.add("operation", trace, codes, words)
    for word, traces in answers_of(tables, trace, steps).items():
        gathered.add("answer", traces, np.zeros(len(traces), np.int64), [word])


class _Options(msgspec.Struct):
    """The options of a plan; its operations and faults are skipped, because they are nearly all of its
    size."""

    cluster: dict[str, Any] = {}
    network: dict[str, Any] = {}
    disk: dict[str, Any] = {}
    client: dict[str, Any] = {}
    consumer: dict[str, Any] = {}
    budget: dict[str, Any] = {}


_PARTS = ("cluster", "network", "disk", "client", "consumer", "budget")
NOT_ASKED = ("cluster.bugs", "cluster.topics.name")
"""What is planted is what triage has to find out."""


def _differing(value: Any, default: Any, path: str, found: set[tuple[str, Any]]) -> None:
    """The paths at which a value is not its default's, with what it is there; members of a list are held
    against the first default one."""
    if value == default:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            below = default.get(name) if isinstance(default, dict) else None
            if inner != below:
                _differing(inner, below, f"{path}.{name}", found)
    elif isinstance(value, list):
        for inner in value:
            _differing(inner, default[0] if isinstance(default, list) and default else None, path, found)
    else:
        found.add((path, value))


def _of_plan(plan: str) -> set[tuple[str, Any]]:
    found: set[tuple[str, Any]] = set()
    try:
        options = from_json(plan, _Options)
    except msgspec.MsgspecError:
        return found
    for part in _PARTS:
        _differing(getattr(options, part), getattr(_DEFAULTS, part), part, found)
    return found


_DEFAULTS = from_json(plan_to_json(Plan(seed=0)), _Options)


def _options(plans: list[str], gathered: _Gathered) -> None:
    """Options that are not at their default; of numbers only that they are not."""
    traces, said = [], []
    for number, plan in enumerate(plans):
        for path, value in _of_plan(plan) if plan else ():
            if path not in NOT_ASKED and value != "":
                traces.append(number)
                said.append(
                    path if isinstance(value, int) and not isinstance(value, bool) else f"{path}={value}"
                )
    found = sorted(set(said))
    codes = np.searchsorted(found, said) if said else np.zeros(0, np.int64)
    gathered.add("option", np.array(traces, np.int64), np.asarray(codes, np.int64), found)
