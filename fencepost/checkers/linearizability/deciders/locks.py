"""Locks whose clients do one thing after another.

Owns the decisions for `mutex`, `fenced-lock` and `semaphore` where it is clear which release belongs to which
acquire. Must not know zones' arithmetic.

A client that alternates acquire and release, each invoked after the one before has completed, pairs them by
itself. A pair happens without another client's operation in between, so it is a cluster; an acquire without a
release is one that never ends. Tokens, which increase, put the pairs of a fenced lock into one order. An
acquire of unknown outcome that nothing follows never happened; such a release may as well happen at once.

A hold surely lasts from the completion of its acquire to the invocation of its release, and is best made as
short as that. So a semaphore's history is legal if at no moment more holds last than there are permits; what
ends when another begins frees its permit for it.
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
    """An acquire and its release (positions); -1 where it was never released."""

    acquire: int
    release: int

    @property
    def operations(self) -> tuple[int, ...]:
        """Both."""
        return (self.acquire,) if self.release < 0 else (self.acquire, self.release)


def holds_of(part: Sequence[Asked]) -> list[Hold] | None:
    """Who held the lock from when to when; None if that is not clear."""
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
    """The answer, None if pairs are not clear. O(n log n)."""
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
    """The answer, None if pairs or tokens are not clear. O(n log n)."""
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
    """The answer, None if pairs are not clear. O(n log n)."""
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
