"""The rounds of questions in a run against a real system, which run next to it.

Owns how long they may take.
"""

import asyncio
import contextlib
from collections.abc import Mapping

from attrs import define, evolve, field

from fencepost.asked.broker_connections import Links
from fencepost.asked.kafka import WireAsker
from fencepost.run.real.record import RealRecord
from fencepost.run.rounds import Rounds
from fencepost.wire.client import Address

LONGEST_S = 30.0
"""Of one round: what is not asked by then is left out. A round of a healthy cluster takes less than a
second, and each broker that is away costs two time-outs."""


@define(eq=False, kw_only=True)
class RealRounds(Rounds):
    """Of one run."""

    record: RealRecord
    addresses: Mapping[int, Address]
    _links: Links = field(init=False)
    _asker: WireAsker = field(init=False)
    _begun: "set[asyncio.Task[None]]" = field(factory=set, init=False)
    # Whether the last round is under way: nothing else happens in it, and a trace of a real system has few
    # rows of its own, so that it is asked to its end.
    _ending: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._links = Links(dict(self.addresses))
        self._asker = WireAsker(
            links=self._links, now=lambda: self.record.now, record=self.heard, room=self.has_room
        )

    def begin(self) -> None:
        """Begin a round, unless the plan leaves asking out, and go on."""
        task = asyncio.ensure_future(self.ask())
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def ask(self, *, last: bool = False) -> None:
        """One round, after those that have begun, unless the plan leaves asking out. last: it is the last one
        of the run."""
        if self.wanted:
            self._ending = last
            scope = evolve(self.scope(self.record.names, last=last), names=self.record.names)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_S):
                    await self._asker.ask(scope)

    def has_room(self) -> bool:
        """Whether another row may be added to the trace."""
        return self._ending or super().has_room()

    async def close(self) -> None:
        """End what is under way, and every connection."""
        for task in tuple(self._begun):
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        await self._links.close()
