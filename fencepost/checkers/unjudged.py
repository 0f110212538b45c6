"""What a trace has no data for: the promises that no check could judge in it, in words.

Owns the table of promises with what each needs, and the reading of a trace for it, from objects and from
tables. Must not know rules or verdicts of other kinds. An Ok says nothing of a promise that is listed here,
so every verdict carries its line, and a trace of which nothing was judged is never Ok.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntFlag
from functools import cache

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from fencepost.checkers.arrow_arrays import Array, Arrow, arrow, string_codes, table_column
from fencepost.checkers.verdict import AND, Decision, Verdict
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace


class Data(IntFlag):
    """What a trace has."""

    APPENDS = 1
    READS = 2
    STRONG = 4
    """A read with an end that is trusted: of the final reads, or of a system that promises it."""
    ENDS = 8
    """An end that names the leader epoch or the broker that showed it."""
    GROUPS = 16
    TRANSACTIONS = 32
    OUTPUTS = 64
    """Appends that name the inputs that they were made of."""
    BROKERS = 128
    """Events of brokers, ZooKeeper or the controller."""
    MODEL = 256
    """Operations of a sequential model, such as read, write and cas."""
    APPLICATION = 512
    """What an application wrote of itself."""
    ANSWERS = 1024
    """What brokers answered to a client that asks for their state."""


_LOG = {Function.APPEND: Data.APPENDS, Function.POLL: Data.READS, Function.LIST_OFFSETS: Data.READS}
_GROUPS = dict.fromkeys((Function.COMMIT, Function.FETCH_COMMITTED, Function.JOIN), Data.GROUPS)
_NOTHING = dict.fromkeys(
    (Function.ASSIGN, Function.SUBSCRIBE, Function.CRASH, Function.DELETE_RECORDS, Function.LEAVE), Data(0)
)
OF_FUNCTION: Mapping[Function, Data] = {
    function: (_LOG | _GROUPS | _NOTHING | {Function.TXN: Data.TRANSACTIONS}).get(function, Data.MODEL)
    for function in Function
}
_OF_THE_RUN = (
    *(Name.REQUEST, Name.CONNECTION, Name.PHASE, Name.MARK, Name.SETTINGS, Name.BUSY),
    Name.RECORD_TEXTS,
    *(Name.FAULT_BEGAN, Name.FAULT_ENDED, Name.FAULT_SKIPPED),
    *(Name.TOPIC_DELETION, Name.GROUP_REMOVED, Name.GROUP_OFFSET_EXPIRED, Name.GROUP_PHASE),
)
OF_EVENT: Mapping[Name, Data] = {name: Data(0) if name in _OF_THE_RUN else Data.BROKERS for name in Name} | {
    Name.APPLICATION: Data.APPLICATION,
    Name.ASKED: Data.ANSWERS,
}


@frozen
class _Promise:
    # What is not judged without the data, in words.
    what: str
    # One of these is needed.
    needs: Data
    # What is not there, in words.
    lacking: str


_BROKERS = _Promise("what brokers did", Data.BROKERS, "no events of brokers")
_PROMISES: Mapping[str, tuple[_Promise, ...]] = {
    "log": (
        _Promise("what was acknowledged", Data.APPENDS, "no append"),
        _Promise("what can be read", Data.READS, "no poll or list_offsets"),
        _Promise("loss at the end of a log", Data.STRONG, "no strong read"),
    ),
    "kafka": (_Promise("producers and consumers", Data.APPENDS | Data.READS, "no append and no poll"),),
    "transactions": (_Promise("transactions", Data.TRANSACTIONS, "no txn"),),
    "groups": (_Promise("consumer groups", Data.GROUPS, "no join, commit or fetch_committed"),),
    "exactly_once": (_Promise("exactly-once processing", Data.OUTPUTS, "no append that names its inputs"),),
    "invariants": (
        _Promise("ends that go back", Data.ENDS, "no end with its leader epoch or broker"),
        _BROKERS,
    ),
    "conformance": (_BROKERS,),
    "liveness": (_Promise("what brokers did", Data.BROKERS | Data.ANSWERS, "no events of brokers"),),
    "application": (),  # a trace of a system does not lack what an application wrote; its judge has own words
}
NOTHING = "nothing was judged: the trace has no client operation and no event of a broker"
ONLY_A_MODEL = (
    "nothing was judged: the operations are those of a sequential model; `fencepost check --model NAME` "
    "judges them (docs/how-to/models.md)"
)


@cache
def line_of(check: str, data: Data) -> str:
    """What this check did not judge for lack of data, and what is lacking, in one line; "" if nothing.

    Args:
        check: the name of a check.
        data: what the trace has.
    """
    if data == Data.APPLICATION:
        return ""  # it has a judge of its own, which says so itself
    return AND.join(
        f"{promise.what} ({promise.lacking})"
        for promise in _PROMISES.get(check, ())
        if not data & promise.needs
    )


def with_lines(verdicts: Iterable[Verdict], data: Data) -> tuple[Verdict, ...]:
    """The verdicts of one trace, each with its line. Where nothing at all could be judged and nothing was
    found, none is Ok.

    Args:
        verdicts: one for each check.
        data: what the trace has.
    """
    verdicts = tuple(verdicts)
    if not data & ~Data.MODEL and not any(one.findings for one in verdicts):
        reason = ONLY_A_MODEL if data else NOTHING
        verdicts = tuple(
            evolve(one, decision=Decision.ASSUMPTION_BROKEN, reason=reason)
            if one.decision is Decision.OK
            else one
            for one in verdicts
        )
    return tuple(
        evolve(one, unjudged=line) if (line := line_of(one.check, data)) else one for one in verdicts
    )


def data_of(trace: Trace) -> Data:
    """What a trace has."""
    data = Data(0)
    for function in {operation.function for operation in trace.operations}:
        data |= OF_FUNCTION[function]
    for bit, test in _OF_LOG.items():
        if any(map(test, trace.operations)):
            data |= bit
    for name in {event.name for event in trace.events}:
        data |= OF_EVENT[name]
    return data


def _names_inputs(operation: Operation) -> bool:
    return operation.function is Function.APPEND and operation.result is not None


def _is_strong(operation: Operation) -> bool:
    return operation.strong and operation.function in _READS


def _names_end(operation: Operation) -> bool:
    named = operation.node >= 0 or (operation.leader_epoch is not None and operation.leader_epoch >= 0)
    return named and operation.function in _READS


_READS = (Function.POLL, Function.LIST_OFFSETS)
_OF_LOG: Mapping[Data, Callable[[Operation], bool]] = {
    Data.OUTPUTS: _names_inputs,
    Data.STRONG: _is_strong,
    Data.ENDS: _names_end,
}


def data_of_tables(operations: pa.Table, events: pa.Table) -> dict[int, Data]:
    """As `data_of`, by trace id; a trace without any rows has no entry.

    Args:
        operations: rows of the `operations` table, with `trace_id` and `function`; a column that is not read
            says that the data is there.
        events: rows of the `events` table, with `trace_id` and `name`.
    """
    names, codes = string_codes(table_column(operations, "function"))
    functions = {function.value: data.value for function, data in OF_FUNCTION.items()}
    bits = np.array([*(functions.get(name, 0) for name in names), 0])[codes]
    reads = (bits & Data.READS.value) > 0

    def of(column: str, test: Callable[[Arrow], Arrow]) -> Array:
        if column not in operations.column_names:
            return np.ones(len(bits), np.bool_)
        found: Array = arrow.fill_null(test(table_column(operations, column)), False).to_numpy(
            zero_copy_only=False
        )
        return found

    def at_least_0(numbers: Arrow) -> Arrow:
        return arrow.greater_equal(numbers, 0)

    bits[reads & of("strong", lambda strong: strong)] |= Data.STRONG.value
    bits[reads & (of("node", at_least_0) | of("leader_epoch", at_least_0))] |= Data.ENDS.value
    appends = (bits & Data.APPENDS.value) > 0
    bits[appends & of("result", arrow.is_valid)] |= Data.OUTPUTS.value
    found: dict[int, Data] = {}
    _add(found, table_column(operations, "trace_id").to_numpy(), bits)
    names, codes = string_codes(table_column(events, "name"))
    known = {name.value: data.value for name, data in OF_EVENT.items()}
    _add(
        found,
        table_column(events, "trace_id").to_numpy(),
        np.array([*(known.get(name, 0) for name in names), 0])[codes],
    )
    return found


def _add(found: dict[int, Data], trace: Array, bits: Array) -> None:
    """Take in the bits of each row."""
    for data in Data:
        for trace_id in np.unique(trace[(bits & data.value) > 0]).tolist():
            found[trace_id] = found.get(trace_id, Data(0)) | data
