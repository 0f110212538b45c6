"""Exact answers without a search, where values are unambiguous.

Owns the choice: which model has a decider, and what a part must look like for it. A decider answers None
where it does not fit; the general search then judges. Must not know verdicts, tables or the search.
"""

from collections.abc import Callable, Sequence
from typing import Any

from fencepost.checkers.linearizability.deciders.lists import decide_list
from fencepost.checkers.linearizability.deciders.locks import (
    decide_fenced_lock,
    decide_mutex,
    decide_semaphore,
)
from fencepost.checkers.linearizability.deciders.queues import (
    decide_at_least_once,
    decide_queue,
    decide_unordered_queue,
)
from fencepost.checkers.linearizability.deciders.registers import decide_register
from fencepost.checkers.linearizability.deciders.sets import decide_set
from fencepost.checkers.linearizability.deciders.texts import decide_key_value
from fencepost.checkers.linearizability.deciders.zones import Decided
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import Model
from fencepost.checkers.models.containers import Queue, Set
from fencepost.checkers.models.lists import AppendOnlyList
from fencepost.checkers.models.locks import FencedLock, Mutex, Semaphore
from fencepost.checkers.models.maps import Map
from fencepost.checkers.models.queues import AtLeastOnceQueue, UnorderedQueue
from fencepost.checkers.models.registers import CasRegister, KeyValue, Register

__all__ = ["DECIDERS", "Decided", "decide"]

Decider = Callable[[Any, Sequence[Asked]], Decided | None]

DECIDERS: dict[type[Model], Decider] = {
    Register: decide_register,
    CasRegister: decide_register,
    KeyValue: decide_key_value,
    Map: decide_register,
    AppendOnlyList: decide_list,
    Set: decide_set,
    Queue: decide_queue,
    UnorderedQueue: decide_unordered_queue,
    AtLeastOnceQueue: decide_at_least_once,
    Mutex: decide_mutex,
    FencedLock: decide_fenced_lock,
    Semaphore: decide_semaphore,
}
"""By the very class: a class derived from one of these may allow something else."""


def decide(model: Model, part: Sequence[Asked]) -> Decided | None:
    """The answer of the decider for this model; None if there is none, or if this part is ambiguous."""
    decider = DECIDERS.get(type(model))
    return None if decider is None else decider(model, part)
