"""Answers whose lists are in another order than Apache Kafka's.

Owns which lists have no promised order. Must not know what is a bug. The protocol says of none of them that
it is sorted; Apache Kafka happens to answer in the order of the request, or sorted.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from attrs import field, frozen

from fencepost.sim.randomness import Randomness
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Delay, Hook, Verdict

OF = frozenset(
    {"Fetch", "Produce", "Metadata", "ListOffsets", "JoinGroup", "OffsetFetch", "OffsetCommit"}
    | {"AddPartitionsToTxn", "TxnOffsetCommit", "OffsetForLeaderEpoch"}
)
"""Requests whose answers are shuffled: topics, partitions, brokers, members, aborted transactions."""


@frozen
class Shuffled:
    """A hook around another one. Answers that it lets pass are in another order; others stay as they are."""

    inner: Hook
    chance: Randomness
    # Answers so far, in a list of one.
    _count: list[int] = field(factory=lambda: [0])

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """As `Hook.on_request`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        return self.inner.on_request(source, header, body)

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """As `Hook.on_answer`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
            answer: decoded, not sent yet.
        """
        verdict = self.inner.on_answer(source, header, body, answer)
        if verdict != PASS or type(body).__name__.removesuffix("Request") not in OF:
            return verdict
        self._count[0] += 1
        return Delay(0, in_another_order(answer, self.chance, self._count[0]))


def between(hook_of: Callable[[int], Hook], seed: int) -> Callable[[int], Hook]:
    """Hooks that shuffle what these answer.

    Args:
        hook_of: a broker's.
        seed: of the order.
    """
    return lambda broker: Shuffled(hook_of(broker), Randomness(seed))


def in_another_order(answer: Any, chance: Randomness, number: int) -> Any:
    """The same answer, each of its lists of structures in a drawn order.

    Args:
        answer: a class of kio.
        chance: of the order.
        number: of the answer; another one has another order.
    """
    changes: dict[str, Any] = {}
    for one in fields(answer):
        value = getattr(answer, one.name)
        if isinstance(value, tuple) and value and all(is_dataclass(each) for each in value):
            inner = [in_another_order(each, chance, number) for each in value]
            order = sorted(
                range(len(inner)), key=lambda at: (chance.below(1 << 30, one.name, number, at), at)
            )
            changes[one.name] = tuple(inner[at] for at in order)
    return replace(answer, **changes) if changes else answer
