"""Processes of a real run that consume, transform and produce: each poll is one transaction.

Owns the processes: they begin, pause, crash, leave and come back as the plan says. Must not know the phases
of a run, or how a transaction works (impl/client/transaction). It is the counterpart of
campaign/run/group_workload.py. What the processes do is not planned one by one: their rows have op ids of
their own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

from attrs import define, evolve, field

from fencepost.campaign.real.record import RealRecord
from fencepost.campaign.run.group_consumer import make_consumer, make_transformer
from fencepost.campaign.run.group_workload import LEAVING_MS, PAUSE_UNIT_MS, Incarnation
from fencepost.campaign.run.recorder import crash_row
from fencepost.campaign.swarm.broken_requests import client_of
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.requests import ConsumerIdentity
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.runtime.client import RunningClient, running
from fencepost.traces.events import MEMBER_LEFT, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import Plan, PlannedOperation
from fencepost.wire.client import Access, Address, KafkaNetwork, Link
from fencepost.wire.outward_transactions import FIRST_VERSION, transaction_version
from fencepost.wire.plain import request

FUNCTIONS = frozenset({"transform", "subscribe", "crash", "unsubscribe", "pause"})
BEGIN = ("transform", "subscribe")
"""What is asked of these processes, and not of the other clients."""
API_VERSIONS, WITH_FEATURES = 18, 3
SECOND = 1_000
IMPATIENT = ("transaction", "produce")
"""Lanes whose connection ends when a request has no answer in time: the next attempt goes over a new one, and
the first may still be on its way. A member waits for a rebalance as long as it takes."""


def transforms(plan: Plan) -> bool:
    """Whether processes of this plan write in transactions."""
    return any(operation.function == "transform" for operation in plan.operations)


def consumes(plan: Plan) -> bool:
    """Whether processes of this plan are in groups, with transactions or without."""
    return any(operation.function in BEGIN for operation in plan.operations)


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
    stack: AsyncExitStack
    """Ends it."""


@define(eq=False, kw_only=True)
class Transforms:
    """All of them."""

    plan: Plan
    addresses: Mapping[int, Address]
    names: Mapping[str, str]
    """The cluster's name of each topic, by the plan's."""
    apart: str
    """Added to names of groups and transactional ids: a cluster outlives the run."""
    version: int
    """Of transactions."""
    record: RealRecord
    now: Callable[[], int]
    """Nanoseconds of the trace."""
    changed: Callable[[], None] = lambda: None
    """Called after each row."""
    opened: Callable[[Operation], None] = lambda row: None
    """Called with each append that is acknowledged in a transaction, before anything is decided."""
    incarnations: dict[int, Incarnation] = field(factory=dict)
    """The last one of each process."""
    live: dict[int, Process] = field(factory=dict)
    """Processes that run, paused ones included."""
    reached: dict[tuple[str, str, int], int] = field(factory=dict)
    """The highest offset that a group has transformed, in a transaction that committed, of each partition;
    topics as the plan names them."""
    _tasks: "set[asyncio.Task[None]]" = field(factory=set)

    # ---- what the plan says

    def do(self, operation: PlannedOperation) -> None:
        """What the plan says of a process, if it makes sense now."""
        process, runs = operation.process, operation.process in self.live
        if operation.function == "transform" and not runs:
            group = f"{operation.key}-{self.apart}"
            self._begin(process, group, operation.topic, f"{group}-{operation.partition}")
        elif operation.function == "subscribe" and not runs:
            self._begin(process, f"{operation.key}-{self.apart}", operation.topic, "")
        elif operation.function == "crash" and runs:
            self.record.operations.append(
                crash_row(operation, self.incarnations[process].session, self.now())
            )
            self._soon(self._end(process))
        elif operation.function == "unsubscribe" and runs:
            self._soon(self._leave(process))
        elif operation.function == "pause" and runs:
            driver = self.live[process].client.driver
            driver.hold()
            delay_s = operation.records * PAUSE_UNIT_MS / SECOND
            asyncio.get_running_loop().call_later(delay_s, driver.go_on)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, process: int, group: str, topic: str, transactional_id: str) -> None:
        before = self.incarnations.get(process)
        session = 0 if before is None else before.session + 1
        self.incarnations[process] = Incarnation(session, group, topic, transactional_id)
        identity = ConsumerIdentity(
            process=process,
            group=group,
            topics=(self.names[topic],),
            session=session,
            instance_id=f"instance-{process}" if self.plan.consumer.static_members else None,
        )
        brokers, options = tuple(self.addresses), self.plan.transform
        if transactional_id:
            options = evolve(options, output=self.names[options.output])
            loop = TransformLoop(transactional_id, options, self.version)
            core = make_transformer(identity, self.plan.consumer, brokers, loop)
        else:
            core = make_consumer(identity, self.plan.consumer, brokers)
        self._soon(self._start(process, core))

    async def _start(self, process: int, core: Consumer) -> None:
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

    async def _end(self, process: int) -> None:
        """The process is gone at once."""
        found = self.live.pop(process, None)
        if found is not None:
            found.client.driver.stop()
            await found.stack.aclose()

    async def _leave(self, process: int) -> None:
        """It says so to its group, and ends a little later."""
        mine = self.live[process]
        mine.client.driver.accept(lambda now: mine.client.driver.core.use(Consumer.close, now))  # type: ignore[attr-defined]
        await asyncio.sleep(LEAVING_MS / SECOND)
        if self.live.get(process) is mine:
            self.record.note(self.now(), Name.MARK, cause=MEMBER_LEFT, detail={"process": process})
            await self._end(process)

    async def close(self) -> None:
        """End all of them."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in list(self.live):
            await self._end(process)

    # ---- what they do

    def _began(self, row: Operation) -> None:
        known = self.record.begun.get(row.op_id)
        self.record.began(row, self.now())
        if known is not None and row.function is Function.APPEND:
            topic = self.record.names.get(row.topic or "", row.topic)
            self.opened(evolve(row, topic=topic, invoke_time=known[1]))

    def _completed(self, row: Operation) -> None:
        named = self.record.completed(row, self.now())
        if named.function is Function.COMMIT and named.outcome is Outcome.OK and named.group is not None:
            for place in named.positions:
                key = named.group, place.topic, place.partition
                self.reached[key] = max(place.offset - 1, self.reached.get(key, -1))
        elif named.function is Function.POLL and named.group is not None and not self._writes(named.process):
            for record in named.records:
                key = named.group, record.topic, record.partition
                self.reached[key] = max(record.offset, self.reached.get(key, -1))
        self.changed()

    def _writes(self, process: int) -> bool:
        mine = self.incarnations.get(process)
        return mine is not None and bool(mine.transactional_id)

    # ---- after the faults

    async def heal(self, process: int) -> None:
        """The faults are over: nobody is paused, and of those that share a transactional id one stays. A
        group that lives on is left to its own members; in one that has none another process takes part from
        now on. process: its number, and those after it."""
        having: set[str] = set()
        for known in sorted(self.live):
            self.live[known].client.driver.go_on()
            name = self.incarnations[known].transactional_id
            if name and name in having:
                await self._end(known)
            having.add(name)
        alive = {self.incarnations[known].group for known in self.live}
        groups = sorted(
            {
                (mine.group, mine.topic, bool(mine.transactional_id))
                for mine in self.incarnations.values()
                if mine.group not in alive
            }
        )
        for number, (group, topic, writes) in enumerate(groups, process):
            self._begin(number, group, topic, f"{group}-{number}" if writes else "")

    def lagging(self, ends: Mapping[tuple[str, int], int]) -> list[str]:
        """Groups that have not transformed the record at these offsets, by topic and partition."""
        return [
            f"{group} of {topic}-{partition}"
            for group, wanted in sorted({(mine.group, mine.topic) for mine in self.incarnations.values()})
            for (topic, partition), offset in sorted(ends.items())
            if topic == wanted and self.reached.get((group, topic, partition), -1) < offset
        ]
