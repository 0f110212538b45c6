"""A wrapper of TLC, the model checker of TLA+: it runs TLC on any specification and returns Python values."""

from fencepost.model.tlc.process import RunLimits
from fencepost.model.tlc.result import (
    Counterexample,
    Kind,
    RunOutcome,
    RunProgress,
    TlcResult,
    Toolbox,
    TraceState,
    Unread,
    Violation,
)
from fencepost.model.tlc.tlc_run import RunOptions, Spec, Walks, check, simulate
from fencepost.model.tlc.tlc_states import read_dump
from fencepost.model.tlc.toolbox import find_toolbox
from fencepost.model.tlc.values import (
    Function,
    ModelValue,
    TlaValueError,
    Value,
    as_value,
    parse,
    record,
    show,
)

__all__ = [
    "Counterexample",
    "Function",
    "Kind",
    "ModelValue",
    "RunLimits",
    "RunOptions",
    "RunOutcome",
    "RunProgress",
    "Spec",
    "TlaValueError",
    "TlcResult",
    "Toolbox",
    "TraceState",
    "Unread",
    "Value",
    "Violation",
    "Walks",
    "as_value",
    "check",
    "find_toolbox",
    "parse",
    "read_dump",
    "record",
    "show",
    "simulate",
]
