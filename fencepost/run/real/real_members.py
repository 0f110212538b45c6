"""Consumers of a real run, with connections of their own.

Owns the connections' part of it. Must not know the phases of a run, or how a transaction works
(impl/client/transaction).
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

from attrs import define, evolve, field

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.runtime.client import RunningClient, running
from fencepost.run.client_cores import client_of
from fencepost.run.group_processes import Members
from fencepost.run.real.record import RealRecord
from fencepost.traces.events import MEMBER_LEFT, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.wire.client import Access, Address, KafkaNetwork, Link
from fencepost.wire.outward_transactions import FIRST_VERSION, transaction_version
from fencepost.wire.plain import request

API_VERSIONS, WITH_FEATURES = 18, 3
SECOND = 1_000
IMPATIENT = ("transaction", "produce")
"""Lanes whose connection ends when a request has no answer in time: the next attempt goes over a new one, and
the first may still be on its way. A member waits for a rebalance as long as it takes."""


async def version_of(address: Address, access: Access) -> int:
    """The version of transactions of a cluster.

    Parameters:
      address: of one of its brokers.
      access: how to log in.
    Returns: 1 or 2.
    Raises: OSError, ProtocolError, if the broker does not answer.
    """
    link = Link(address, access)
    await link.open()
    try:
        named = {"client_software_name": "fencepost", "client_software_version": "1"}
        answer = await link.ask(request(API_VERSIONS, WITH_FEATURES, named))
        return transaction_version(answer.finalized_features)
    finally:
        await link.close()


@define
class Process:
    """One that runs."""

    client: RunningClient
    # Ends it.
    stack: AsyncExitStack


@define(eq=False, kw_only=True)
class RealMembers(Members):
    """Those of one run."""

    record: RealRecord
    addresses: Mapping[int, Address]
    # The cluster's name of each topic, by the plan's.
    names: Mapping[str, str]
    # Added to names of groups and transactional ids: a cluster outlives the run.
    apart: str
    # Called after each row.
    changed: Callable[[], None] = lambda: None
    # Called with each append that is acknowledged in a transaction, before anything is decided.
    opened: Callable[[Operation], None] = lambda row: None
    live: dict[int, Process] = field(factory=dict)
    _tasks: "set[asyncio.Task[None]]" = field(factory=set)

    def name_of(self, topic: str) -> str:
        """The cluster's name of a topic."""
        return self.names[topic]

    def group_of(self, key: str) -> str:
        """The cluster's name of a group."""
        return f"{key}-{self.apart}"

    # ---- processes

    def running(self) -> Collection[int]:
        """The processes that run, paused ones included."""
        return self.live

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def start(self, process: int) -> None:
        """Start its last incarnation."""
        self._soon(self._started(process, self.core(process)))

    async def _started(self, process: int, core: Consumer) -> None:
        addresses, caps = dict(self.addresses), FIRST_VERSION if self.version < 2 else {}
        patience_s = dict.fromkeys(IMPATIENT, self.plan.consumer.request_timeout_ms / SECOND)
        stack = AsyncExitStack()
        client = await stack.enter_async_context(
            running(
                core,
                lambda node, receive: KafkaNetwork(
                    addresses, receive, caps=caps, patience_s=patience_s, client_id=client_of(process)
                ),
                self._completed,
                self._began,
            )
        )
        self.live[process] = Process(client, stack)

    def kill(self, process: int) -> None:
        """It is gone at once."""
        self._soon(_ended(self.live.pop(process)))

    def leave(self, process: int, verb: Callable[[Consumer], None], within_ms: int) -> None:
        """The `process` does `verb`, and ends `within_ms` later."""
        self._soon(self._left(process, verb, within_ms))

    def use(self, process: int, verb: Callable[[Consumer], None]) -> None:
        """Its application does this, as soon as its process goes on."""
        driver = self.live[process].client.driver
        driver.accept(lambda now: driver.core.use(verb, now))  # type: ignore[attr-defined]

    async def _left(self, process: int, verb: Callable[[Consumer], None], within_ms: int) -> None:
        mine = self.live[process]
        self.use(process, verb)
        await asyncio.sleep(within_ms / SECOND)
        if self.live.get(process) is mine:
            self.record.note(Name.MARK, cause=MEMBER_LEFT, detail={"process": process})
            await _ended(self.live.pop(process))

    def pause(self, process: int, duration_ms: int) -> None:
        """It stands still.

        Args:
            process: one that runs.
            duration_ms: for how long.
        """
        driver = self.live[process].client.driver
        driver.hold()
        asyncio.get_running_loop().call_later(duration_ms / SECOND, driver.go_on)

    def resume(self, process: int) -> None:
        """It goes on now."""
        self.live[process].client.driver.go_on()

    async def close(self) -> None:
        """End all of them."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self.live:
            await _ended(self.live.popitem()[1])

    # ---- what they do

    def _began(self, row: Operation) -> None:
        known = self.record.begun.get(row.op_id)
        self.record.row_began(row)
        if known is not None and row.function is Function.APPEND:
            topic = self.record.names.get(row.topic or "", row.topic)
            self.opened(evolve(row, topic=topic, invoke_time=known[1]))

    def _completed(self, row: Operation) -> None:
        self.saw(self.record.row_done(row))
        self.changed()

    def saw(self, row: Operation) -> None:
        """A row is complete. Who transforms what it reads got it when its transaction committed."""
        mine = self.incarnations.get(row.process)
        if mine is None or not mine.transactional_id:
            super().saw(row)
        elif row.function is Function.COMMIT and row.outcome is Outcome.OK and row.group is not None:
            for place in row.positions:
                self.reach((row.group, place.topic, place.partition), place.offset - 1)


async def _ended(process: Process) -> None:
    process.client.driver.stop()
    await process.stack.aclose()
