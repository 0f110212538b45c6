"""Locks with clients that do one operation at a time.

Owns the decisions for `mutex`, `fenced-lock` and `semaphore` if it is clear which release belongs to which
acquire. Must not know the arithmetic of zones.

If a client alternates acquire and release, and each operation begins after the previous one completed, each
acquire belongs to the next release. No operation of another client happens within such a pair, so a pair is a
cluster. An acquire without a release is a cluster that never ends. Tokens increase, so they give the order of
the pairs of a fenced lock. An acquire with an unknown outcome and no later operation of its client never
happened. A release of this kind may happen immediately.

A hold lasts at least from the completion of its acquire to the invocation of its release, and this shortest
duration is the best choice. So a semaphore's history is legal if at no moment more holds last than there are
permits. A hold that ends at the moment when another begins frees its permit for it.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from attrs import frozen

from fencepost.checkers.linearizability.deciders.zones import LEGAL, Decided, ZoneCluster, conflict, in_turn
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.models.base import UNHEARD
from fencepost.checkers.models.locks import FencedLock, Mutex, Semaphore
from fencepost.checkers.operation_columns import NEVER

PAIRED = "where each client holds the lock from its acquire to its next release"


@frozen
class Hold:
    """An acquire and its release (positions in the part); -1 if there was no release."""

    acquire: int
    release: int

    @property
    def operations(self) -> tuple[int, ...]:
        """The positions of both operations."""
        return (self.acquire,) if self.release < 0 else (self.acquire, self.release)


def holds_of(part: Sequence[Asked]) -> list[Hold] | None:
    """The holds of a lock with their times; None if the pairs are not clear."""
    clients: dict[Any, list[int]] = defaultdict(list)
    for op, asked in enumerate(part):
        clients[asked.call.argument].append(op)
    holds = []
    for ops in clients.values():
        ops.sort(key=lambda op: part[op].invoke)
        for index, op in enumerate(ops):
            wanted = "release" if index % 2 else "acquire"
            if part[op].call.function != wanted:
                return None
            if index + 1 < len(ops) and part[op].complete >= part[ops[index + 1]].invoke:
                return None
            if index % 2:
                holds.append(Hold(ops[index - 1], op))
        if len(ops) % 2 and part[ops[-1]].known:
            holds.append(Hold(ops[-1], -1))
    return holds


def decide_mutex(model: Mutex, part: Sequence[Asked]) -> Decided | None:
    """Decide a mutex. O(n log n).

    Args:
        model: the mutex; it gives the initial holder.
        part: the operations of one mutex.

    Returns:
        the answer; None if the pairs are not clear.
    """
    holds = holds_of(part) if model.init() is None else None
    if holds is None:
        return None
    clusters = []
    for hold in holds:
        cluster = ZoneCluster(makers=hold.operations)
        for op in hold.operations:
            cluster.add(op, part[op])
        if hold.release < 0:
            cluster.last = NEVER
        clusters.append(cluster)
    return conflict(clusters, "two clients held the lock at the same time", PAIRED)


def decide_fenced_lock(model: FencedLock, part: Sequence[Asked]) -> Decided | None:
    """Decide a fenced lock. O(n log n).

    Args:
        model: the lock; it gives the initial token.
        part: the operations of one lock.

    Returns:
        the answer; None if the pairs or the tokens are not clear.
    """
    holds = holds_of(part)
    if holds is None or any(part[hold.acquire].call.result is UNHEARD for hold in holds):
        return None
    tokens = {hold: part[hold.acquire].call.result for hold in holds}
    holds.sort(key=tokens.__getitem__)
    if holds and tokens[holds[0]] <= model.initial:
        return _convicted((holds[0].acquire,), "a token is not above the initial one")
    for one, other in pairwise(holds):
        if tokens[one] == tokens[other]:
            return _convicted((one.acquire, other.acquire), "two acquisitions got the same token")
        if one.release < 0:
            return _convicted(
                (one.acquire, other.acquire), "a lock never released was acquired with a higher token"
            )
    late = in_turn(part, [[op] for hold in holds for op in hold.operations])
    if late is None:
        return LEGAL
    both = [op for hold in holds if set(late) & set(hold.operations) for op in hold.operations]
    return _convicted(tuple(both), "tokens are not in the order of the acquisitions")


def decide_semaphore(model: Semaphore, part: Sequence[Asked]) -> Decided | None:
    """Decide a semaphore. O(n log n).

    Args:
        model: the semaphore; it gives the number of permits.
        part: the operations of one semaphore.

    Returns:
        the answer; None if the pairs are not clear.
    """
    holds = holds_of(part)
    if holds is None:
        return None
    moments = [(part[hold.acquire].complete, True, hold) for hold in holds]
    moments += [(part[hold.release].invoke, False, hold) for hold in holds if hold.release >= 0]
    lasting: dict[Hold, None] = {}
    for _, begins, hold in sorted(moments, key=lambda moment: moment[:2]):
        if not begins:
            del lasting[hold]
            continue
        lasting[hold] = None
        if len(lasting) > model.permits:
            ops = tuple(op for one in lasting for op in one.operations)
            return _convicted(
                ops, f"{len(lasting)} clients held one of {model.permits} permits at the same time"
            )
    return LEGAL


def _convicted(ops: tuple[int, ...], because: str) -> Decided:
    return Decided(convicting=ops, scope=ops, because=because, given=PAIRED)
