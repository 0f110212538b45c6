"""Rounds of questions to a cluster in use, for as long as one watches it.

Owns what is asked about (all topics, groups and transactional ids that brokers list, anew before each round),
how often, and the bounds: questions one after the other with a pause between them, of each log only what the
leader knows and where replicas out of sync end. Must not know what follows from answers.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from attrs import define, field, frozen

from fencepost.asked.broker_connections import Links
from fencepost.asked.kafka import WireAsker
from fencepost.asked.step import Scope, Step
from fencepost.asked.wire_only import DescribeClusterRequest
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.impl.messages.group_api import ListGroupsRequest
from fencepost.impl.messages.transaction_api import ListTransactionsRequest
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Event, Question
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.wire.client import Access, Address, look_around

PARTS = frozenset({"settings", "groups", "transactions", "log_ends", "producers", "reassignments", "stored"})
ROUND_S = 1.0
"""Between the beginnings of two rounds at least: what lasts is measured in seconds."""
BYTES_PER_SECOND = 1024 * 1024
"""Of answers at most: a hundredth of what a broker sends over one gigabit. At a tenth of it the settings of a
thousand topics take ten seconds; at ten times a cluster of small machines would feel it."""
KEPT_S = 600.0
"""How long answers are kept while one watches without an end: nearly twice the longest bound of a rule."""


@frozen(kw_only=True)
class Watch:
    """What to watch, and for how long."""

    bootstrap: tuple[Address, ...]
    access: Access
    # None: until it is interrupted.
    seconds: float | None
    # Questions per second at most.
    per_second: float
    # Patterns of topics; none: all.
    topics: tuple[str, ...] = ()

    def is_meant(self, topic: str) -> bool:
        """Whether a topic is to be asked about."""
        return not self.topics or any(fnmatchcase(topic, one) for one in self.topics)


@define(eq=False)
class Watched:
    """What was heard so far."""

    events: deque[Event] = field(factory=deque)
    questions: int = 0
    # Of answers.
    bytes: int = 0
    rounds: int = 0
    brokers: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    # What could not be asked about, in words.
    unasked: set[str] = field(factory=set)


def watch(order: Watch, watched: Watched, after_round: Callable[[], None] = lambda: None) -> None:
    """Watch a cluster.

    Args:
        order: what to watch.
        watched: is filled, so that what was heard is there after an interrupt, too.
        after_round: called after each round.

    Raises:
        EnvironmentError_: if no bootstrap server answers, or none lets us in.
    """
    asyncio.run(_watch(order, watched, after_round))


async def _watch(order: Watch, watched: Watched, after_round: Callable[[], None]) -> None:
    addresses = await _addresses(order)
    begun, today = time.monotonic_ns(), time.time_ns()
    end = None if order.seconds is None else begun + int(order.seconds * 1e9)
    links = Links(dict(addresses), order.access)
    lasted = 0.0
    asker = WireAsker(
        links=links,
        now=lambda: today + time.monotonic_ns() - begun,
        record=watched.events.append,
        # one that was to fit may take longer than the last one
        room=lambda: end is None or time.monotonic_ns() < end + 2e9 * lasted,
        pause_s=1 / order.per_second,
        bytes_per_second=BYTES_PER_SECOND,
    )
    try:
        while end is None or time.monotonic_ns() + lasted * 1e9 < end:  # none that would be cut
            first = time.monotonic()
            await asker.ask(await _scope(order, watched, asker))
            lasted = time.monotonic() - first
            watched.rounds, watched.questions = watched.rounds + 1, asker.questions
            watched.bytes = links.received
            while end is None and watched.events[-1].time - watched.events[0].time > KEPT_S * 1e9:
                watched.events.popleft()
            after_round()
            await asyncio.sleep(max(ROUND_S - lasted, 0))
    finally:
        await links.close()


async def _addresses(order: Watch) -> dict[int, Address]:
    """Of all brokers that any bootstrap server names: one that is cut off from the controllers is named by
    itself only."""
    found, _ = await look_around(order.bootstrap, order.access)
    for other in {*order.bootstrap} - {*found.values()}:
        with suppress(EnvironmentError_):
            named, _ = await look_around((other,), order.access)
            if named.items() & found.items():  # it is of the same cluster
                found = {**named, **found}
    return found


async def _scope(order: Watch, watched: Watched, asker: WireAsker) -> Scope:
    """What there is to be asked about now. A broker without an answer hides only what it alone knows."""
    assigned: set[int] = set(watched.brokers)
    names: set[str] = set()
    for broker in sorted(asker.links.addresses):
        metadata = await _put(asker, broker, MetadataRequest(correlation_id=0))
        if metadata is not None:
            names = {one.partition.topic for one in metadata.partitions}
            watched.topics = tuple(sorted(filter(order.is_meant, names)))
            assigned = set(chain.from_iterable(one.replicas for one in metadata.partitions))
            if asker.speaks(broker, DescribeClusterRequest):
                said = await _put(asker, broker, DescribeClusterRequest(correlation_id=0))
                known, all_ = asker.links.addresses, {} if said is None else said.addresses
                fenced = {one for one in assigned & all_.keys() if all_[one] not in known.values()}
                known.update({one: all_[one] for one in fenced})
            break
    watched.brokers = tuple(sorted({*asker.links.addresses, *assigned}))
    groups, ids = set(watched.groups), set(watched.transactional_ids)
    for broker in sorted(asker.links.addresses):
        listed = await _put(asker, broker, ListGroupsRequest(correlation_id=0))
        under_way = await _put(asker, broker, ListTransactionsRequest(correlation_id=0))
        for what, answer in (("groups", listed), ("transactions", under_way)):
            if answer is None or str(answer.error) != "NONE":
                why = "no answer" if answer is None else answer.error
                watched.unasked.add(f"lists are not whole: {what} of broker {broker}: {why}")
        groups |= {one[0] for one in getattr(listed, "groups", ())}
        ids |= {one[0] for one in getattr(under_way, "transactions", ())}
    watched.groups, watched.transactional_ids = tuple(sorted(groups)), tuple(sorted(ids))
    for what, listed_, topic in (("groups", groups, OFFSETS_TOPIC), ("transactions", ids, STATE_TOPIC)):
        if listed_ and names and topic not in names:  # FindCoordinator could create it
            watched.unasked.add(f"{what}: not at all, for no broker names topic {topic}; a rule may hide it")
    return Scope(
        brokers=watched.brokers,
        topics=watched.topics,
        groups=watched.groups,
        transactional_ids=watched.transactional_ids,
        parts=PARTS,
        spare=True,
        guarded=True,
    )


async def _put(asker: WireAsker, broker: int, request: Any) -> Any:
    return await asker.answer(Step(broker=broker, question=Question.BROKERS, request=request))
