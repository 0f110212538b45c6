"""Naive twins of the later models: what each system may do next, from the rows themselves, every choice
spelled out.

They share nothing with the models: states are plain lists, answers are compared as JSON, and a lease tries
every nanosecond.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from fencepost.traces.operations import Operation, Outcome

HORIZON = 60
"""ns by which everything in these histories is over."""


def said(operation: Operation) -> Any:
    return json.loads(operation.argument)


def same(one: Any, other: Any) -> bool:
    """As JSON means it: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def heard(operation: Operation) -> bool:
    return operation.outcome is Outcome.OK


def answered(operation: Operation, answer: Any) -> bool:
    """Whether the operation may have got this answer."""
    return not heard(operation) or same(json.loads(operation.result or "null"), answer)


def unordered_queue(queue: list[Any], operation: Operation) -> Iterator[list[Any]]:
    if operation.function == "enqueue":
        yield [*queue, said(operation)]
        return
    if not queue and answered(operation, None):
        yield queue
    for place, value in enumerate(queue):
        if answered(operation, value):
            yield queue[:place] + queue[place + 1 :]


def at_least_once_queue(queue: list[list[Any]], operation: Operation) -> Iterator[list[list[Any]]]:
    """A message is [value, was it delivered]."""
    if operation.function == "enqueue":
        yield [*queue, [said(operation), False]]
    elif operation.function == "remove":
        copies = [message for message in queue if message[0] == said(operation)]
        if len(copies) != 1 and (not copies or any(delivered for _, delivered in copies)):
            yield queue
        elif len(copies) == 1 and copies[0][1]:
            yield [message for message in queue if message is not copies[0]]
    else:
        if all(delivered for _, delivered in queue) and answered(operation, None):
            yield queue
        for place, (value, _) in enumerate(queue):
            if answered(operation, value):
                yield [*queue[:place], [value, True], *queue[place + 1 :]]


def map_(values: dict[str, Any], operation: Operation) -> Iterator[dict[str, Any]]:
    key = operation.key or ""
    here = values.get(key)
    if operation.function == "get":
        if answered(operation, here):
            yield values
    elif operation.function == "put":
        yield values | {key: said(operation)}
    elif operation.function == "delete":
        if operation.result is None or answered(operation, here is not None):
            yield values | {key: None}
    else:
        old, new = said(operation)
        fits = same(here, old)
        if answered(operation, fits):
            yield values | {key: new} if fits else values


def append_only_list(values: list[Any], operation: Operation) -> Iterator[list[Any]]:
    if operation.function == "append":
        yield [*values, said(operation)]
    elif answered(operation, values):
        yield values


def semaphore(holders: list[str], operation: Operation) -> Iterator[list[str]]:
    client = said(operation)
    if operation.function == "acquire" and len(holders) < 2:
        yield [*holders, client]
    elif operation.function == "release" and client in holders:
        place = holders.index(client)
        yield holders[:place] + holders[place + 1 :]


def lease(state: tuple[Any, int, int], operation: Operation) -> Iterator[tuple[Any, int, int]]:
    """Every moment of the operation that is not before the last one's. Of 10 ns."""
    holder, granted, now = state
    client = said(operation)
    last = operation.completion_time if heard(operation) else HORIZON
    for moment in range(max(now, operation.invoke_time), last + 1):
        if (operation.function == "acquire" and (holder in (None, client) or moment >= granted + 10)) or (
            operation.function == "renew" and holder == client
        ):
            yield (client, moment, moment)
        elif operation.function == "release":
            yield (None, 0, moment) if holder == client else (holder, granted, moment)


TWINS: dict[str, tuple[Any, Callable[[Any, Operation], Iterator[Any]]]] = {
    "unordered-queue": ([], unordered_queue),
    "at-least-once-queue": ([], at_least_once_queue),
    "map": ({}, map_),
    "append-only-list": ([], append_only_list),
    "semaphore": ([], semaphore),
    "lease": ((None, 0, 0), lease),
}


def possible(name: str, operations: tuple[Operation, ...]) -> bool:
    """Whether some order of the operations, and some choice at each, explains all answers."""
    first, system = TWINS[name]
    left = [
        o for o in operations
        if o.outcome is Outcome.OK or (o.outcome is Outcome.UNKNOWN and o.function not in ("get", "read"))
    ]  # fmt: skip
    return _goes_on(system, first, left)


def _goes_on(system: Callable[[Any, Operation], Iterator[Any]], state: Any, left: list[Operation]) -> bool:
    if not any(map(heard, left)):
        return True
    end = min(o.completion_time for o in left if heard(o))
    for operation in left:
        if operation.invoke_time <= end:
            rest = [other for other in left if other is not operation]
            if any(_goes_on(system, after, rest) for after in system(state, operation)):
                return True
    return False
