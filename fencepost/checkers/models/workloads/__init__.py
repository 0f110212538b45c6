"""Workloads by name: what a whole history of client operations must show, whatever order explains it
(docs/reference/models.md). A model is a promise about each moment; a workload is one about the end, or about
what two answers may say together. Each is decided in one pass."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from fencepost.checkers.models.workloads.bank import Bank
from fencepost.checkers.models.workloads.base import Workload
from fencepost.checkers.models.workloads.counters import MonotonicCounter
from fencepost.checkers.models.workloads.drained_queue import TotalQueue
from fencepost.checkers.models.workloads.forks import LongFork
from fencepost.checkers.models.workloads.list_append import ListAppend
from fencepost.checkers.models.workloads.rw_register import RwRegister
from fencepost.checkers.models.workloads.sets import FinalSet, UniqueIds
from fencepost.traces.errors import FencepostError

__all__ = ["WORKLOADS", "Workload", "workload_named"]

WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (
        *(TotalQueue, FinalSet, UniqueIds, Bank, MonotonicCounter),
        *(LongFork, RwRegister, ListAppend),
    )
}


def workload_named(name: str, parameters: Mapping[str, Any] | None = None) -> Workload:
    """Make the workload called `name`.

    Args:
        name: one of `WORKLOADS`.
        parameters: arguments of its constructor by name, as JSON values.

    Returns:
        the workload.

    Raises:
        FencepostError: if its constructor rejects the parameters.
    """
    cls = WORKLOADS[name]
    try:
        return cls(**parameters or {})
    except TypeError as error:
        wanted = ", ".join(list(signature(cls.__init__).parameters)[1:]) or "none"
        raise FencepostError(
            expected=f"its parameters ({wanted})", seen=str(error), where=f"the workload {name}"
        ) from None
