"""Exact answers without a search, for histories with unambiguous values.

Owns the choice of the decider for a model, and the shape that a part must have for it. A decider returns None
for a part that it does not support; the general search then checks it. Must not know verdicts, tables or the
search.
"""

from collections.abc import Callable, Sequence
from typing import Any

from fencepost.checkers.linearizability.deciders.list_decider import decide_list
from fencepost.checkers.linearizability.deciders.lock_decider import (
    decide_fenced_lock,
    decide_mutex,
    decide_semaphore,
)
from fencepost.checkers.linearizability.deciders.queue_decider import (
    decide_at_least_once,
    decide_queue,
    decide_unordered_queue,
)
from fencepost.checkers.linearizability.deciders.register_decider import decide_register
from fencepost.checkers.linearizability.deciders.set_decider import decide_set
from fencepost.checkers.linearizability.deciders.text_decider import decide_key_value
from fencepost.checkers.linearizability.deciders.zones import Decided
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import Model
from fencepost.checkers.models.containers import Queue, Set
from fencepost.checkers.models.lists import AppendOnlyList
from fencepost.checkers.models.locks import FencedLock, Mutex, Semaphore
from fencepost.checkers.models.maps import Map
from fencepost.checkers.models.queue_models import AtLeastOnceQueue, UnorderedQueue
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
"""By exact class: a class derived from one of these may allow other histories."""


def decide(model: Model, part: Sequence[Asked]) -> Decided | None:
    """The answer of the decider for this model. None if there is no decider, or if `part` is ambiguous.

    Args:
        model: the sequential model.
        part: the operations of one independent part, by invocation.

    Returns:
        the answer, or None.
    """
    decider = DECIDERS.get(type(model))
    return None if decider is None else decider(model, part)
