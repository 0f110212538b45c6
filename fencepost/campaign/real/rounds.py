"""The rounds in which a run asks the brokers of a real system (fencepost/asked): the counterpart of
campaign/run/rounds.py.

Owns when they begin, what they ask about, and how long they may take. Must not know what the questions are.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.asked.kafka import WireAsker
from fencepost.asked.links import Links
from fencepost.asked.step import Scope
from fencepost.campaign.real.record import RealRecord
from fencepost.campaign.real.transforming import Transforms
from fencepost.campaign.run.rounds import NOT_IN_SAFETY, within_share
from fencepost.traces.events import Event
from fencepost.traces.plan import ASK_ALWAYS, ASK_NEVER, Plan
from fencepost.wire.client import Address

LONGEST_S = 30.0
"""Of one round: what is not asked by then is left out. A round of a healthy cluster takes less than a
second, and each broker that is away costs two time-outs."""


@define(eq=False, kw_only=True)
class RealRounds:
    """Of one run."""

    plan: Plan
    record: RealRecord
    brokers: tuple[int, ...]
    # Nanoseconds of the trace.
    now: Callable[[], int]
    addresses: Mapping[int, Address]
    # Rows that came from asking.
    rows: int = field(default=0, init=False)
    _links: Links = field(init=False)
    _asker: WireAsker = field(init=False)
    _begun: "set[asyncio.Task[None]]" = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._links = Links(dict(self.addresses))
        self._asker = WireAsker(links=self._links, now=self.now, record=self._recorded, room=self._has_room)

    def _recorded(self, event: Event) -> None:
        self.rows += 1
        self.record.recorded(event)

    def _has_room(self) -> bool:
        return within_share(self.rows, len(self.record.events) + len(self.record.operations))

    def in_safety(self, *, calm: bool, transforms: Transforms | None) -> None:
        """Begin a round in the safety phase, unless the run is one of those that are not asked there.

        Args:
            calm: whether no fault is active.
            transforms: the processes that write in transactions.
        """
        if calm and self.plan.asking == ASK_ALWAYS and self.plan.seed % NOT_IN_SAFETY:
            self.begin(transforms)

    def begin(self, transforms: Transforms | None) -> None:
        """Begin a round, and go on. transforms: the processes that write in transactions."""
        task = asyncio.ensure_future(self.ask(transforms))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def ask(self, transforms: Transforms | None, *, last: bool = False) -> None:
        """One round, after those that have begun.

        Args:
            transforms: the processes that write in transactions.
            last: whether it is the last one.
        """
        if self.plan.asking == ASK_NEVER:
            return
        processes = () if transforms is None else tuple(transforms.incarnations.values())
        scope = Scope(
            brokers=self.brokers,
            topics=tuple(sorted(self.record.names)),
            groups=tuple(sorted({one.group for one in processes})),
            transactional_ids=tuple(sorted({one.transactional_id for one in processes} - {""})),
            last=last,
            names=self.record.names,
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_S):
                await self._asker.ask(scope)

    async def close(self) -> None:
        """End what is under way, and every connection."""
        for task in tuple(self._begun):
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        await self._links.close()
