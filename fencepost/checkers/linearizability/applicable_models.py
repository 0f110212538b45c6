"""What a history of client operations can be asked: the models and workloads that know its functions.

Owns the list for people, and the sentence for a history that nobody named a question for.
"""

from collections.abc import Iterable
from typing import Any

from fencepost.checkers.linearizability.deciders import DECIDERS
from fencepost.checkers.models import MODELS
from fencepost.checkers.models.partition_log import Log
from fencepost.checkers.models.workloads import WORKLOADS
from fencepost.traces.operations import Function, Operation

OF_LOGS = frozenset(
    {
        *(Function.POLL, Function.LIST_OFFSETS, Function.COMMIT, Function.FETCH_COMMITTED),
        *(Function.JOIN, Function.TXN, Function.ASSIGN, Function.SUBSCRIBE, Function.CRASH),
        *(Function.DELETE_RECORDS, Function.LEAVE),
    }
)
"""Functions of clients of a Kafka-style log, which need no model; an append names its log."""


WHICH_PROMISE = (
    "expected --model for transactions of reads and writes, saw none; --model rw-register asks whether they "
    "can have run one after another (--parameter realtime=true: in the order of time), and --model long-fork "
    "less, if each key is written once"
)


def lacks_model(operations: Iterable[Operation]) -> str:
    """What is wrong with operations that are judged without a model.

    Args:
        operations: of a foreign history.

    Returns:
        a sentence without its place, which names the models and workloads that have all functions; "" for
        operations on logs, which need no model.
    """
    used: set[str] = set()
    keyless = micro = False
    for operation in operations:
        if operation.topic is not None or operation.records or operation.positions:
            return ""
        used.add(operation.function)
        keyless = keyless or operation.key is None
        micro = micro or (operation.function is Function.TXN and operation.argument is not None)
    if not used or (used <= OF_LOGS and not micro):
        return ""
    if micro and used == {Function.TXN}:
        return WHICH_PROMISE
    fitting = [
        name
        for name, model in MODELS.items()
        if used <= set(model.functions) and model is not Log and not (keyless and model.needs_key)
    ]
    fitting += [name for name, workload in WORKLOADS.items() if used <= set(workload.functions)]
    first, last = sorted(used)[:-1], sorted(used)[-1]
    functions = f"{', '.join(first)} and {last}" if first else last
    known = (
        f"these have its functions: {', '.join(fitting)}"
        if fitting
        else "nothing built in has all of its functions: --model MODULE:CLASS names a model of your own"
    )
    return f"expected --model for a history of {functions}, saw none; {known}"


def listed() -> list[dict[str, Any]]:
    """All models and workloads: name, kind, what it says, its functions, its parameters, and whether it is
    decided in linear time."""
    rows = [
        {
            "name": name,
            "kind": "model",
            "says": " ".join((model.__doc__ or "").partition(".")[0].split()),
            "functions": sorted(model.functions),
            "linear": "yes" if model in DECIDERS else "no",
        }
        for name, model in MODELS.items()
    ]
    rows += [
        {
            "name": name,
            "kind": "workload",
            "says": workload.says,
            "functions": list(workload.functions),
            "linear": "yes",
        }
        for name, workload in WORKLOADS.items()
    ]
    return rows
