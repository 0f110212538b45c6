"""What follows on the faults of a run, in every system: it heals, makes progress, and is read to its end.

Owns the order, what is demanded, and its bounds. Must not know time, transport, or how a cluster heals: each
system has a story of its own below campaign, which says so. It is written as coroutines: those of a real
system wait for the wall clock, those of the simulation let virtual time pass and never wait (`at_once`).
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from attrs import define, field

from fencepost.impl.client.attempt import READ_COMMITTED
from fencepost.run.members import Key, Members, transforms
from fencepost.run.queues import Queues
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import Plan, PlannedOperation

MILLISECOND = 1_000_000
MOST_FINAL_READS = 10_000
"""Of one partition: each returns at least one record or ends the reading."""
STABLE_STEP_MS = 500
"""How often the run looks whether transactions are decided."""
PROBE = "probe"
"""The key of the run's own appends to a compacted topic."""
Answer = TypeVar("Answer")


def at_once(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run what never waits for anything outside to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    raise AssertionError("it waits for something outside of the simulation")


@define(eq=False)
class Story:
    """A run under way."""

    plan: Plan
    queues: Queues = field(init=False)
    # The processes in groups; None: the plan has none.
    members: Members | None = field(init=False, default=None)
    # The process of the run's own operations.
    reader: int = field(init=False)
    # The last op id that was given to one of them.
    next_op_id: int = field(init=False)
    # What was waited for and never came, before the first fault or after the last.
    stuck: str = field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        self.next_op_id = max((one.op_id for one in self.plan.operations), default=0)
        self.reader = 1 + max((one.process for one in self.plan.operations), default=-1)

    # ---- what differs between systems

    @property
    def now(self) -> int:
        """Nanoseconds of the trace."""
        raise NotImplementedError

    async def until(self, reached: Callable[[], bool], bound_ms: int) -> bool:
        """Let time pass until it holds; whether it does.

        Args:
            reached: asked again and again.
            bound_ms: the most time that may pass, milliseconds.
        """
        raise NotImplementedError

    def schedule(self, operation: PlannedOperation) -> None:
        """Let one of the run's own operations begin."""
        raise NotImplementedError

    def has_ended(self) -> bool:
        """Whether the operation of the run's own that began last has an outcome."""
        return self.reader not in self.queues.busy and not self.queues.waiting.get(self.reader)

    def settle(self) -> bool:
        """Let end what happens by chance or choice, not by a fault; whether there was anything."""
        return False

    async def trusted(self, listed: Operation) -> bool:
        """Whether this end may be trusted."""
        raise NotImplementedError

    async def never(self, what: str) -> bool:
        """Record what never came, and what there is instead, and keep it as `stuck`. Never true."""
        raise NotImplementedError

    def places(self) -> Iterable[Key]:
        """The partitions that clients use."""
        raise NotImplementedError

    def keyed(self, topic: str) -> bool:
        """Whether each record of it needs a key."""
        return any(
            "compact" in options.cleanup_policy
            for options in self.plan.cluster.topics
            if options.name == topic
        )

    async def members_done(self) -> None:
        """Every group got everything."""

    # ---- progress

    async def live(self, reached: Callable[[], bool], progress: Callable[[], object] = lambda: None) -> bool:
        """Wait within the bound of the liveness phase; again while `progress` changes; and once more if
        anything had to settle."""
        while True:
            before = progress()
            if await self.until(reached, self.plan.liveness_ms):
                return True
            if progress() == before and not self.settle():
                return False

    async def makes_progress(self) -> bool:
        """Whether each partition takes a record, each group gets it, and each transaction is decided."""
        ends: dict[Key, int] = {}
        for topic, partition in self.places():
            done = await self.do(topic, partition, "append")
            if not done:
                return await self.never(f"an append to {topic}-{partition} is acknowledged")
            ends[topic, partition] = done.offset or 0
        members = self.members
        if members is not None:
            if not await self._caught_up(members, ends):
                return await self.never(f"group {members.lagging(ends)[0]} gets what is appended")
            await self.members_done()
        return await self._decided()

    async def _caught_up(self, members: Members, ends: Mapping[Key, int]) -> bool:
        return await self.live(lambda: not members.lagging(ends), lambda: dict(members.reached))

    async def _decided(self) -> bool:
        """Whether every transaction is decided within its time-out: what hangs would keep readers of
        committed records from all that comes after it."""
        if not transforms(self.plan):
            return True
        bound_ms = self.plan.liveness_ms + self.plan.transform.transaction_timeout_ms
        for topic, partition in self.places():
            deadline = self.now + bound_ms * MILLISECOND
            while not await self._is_stable(topic, partition):
                if self.now >= deadline:
                    return await self.never(f"every transaction in {topic}-{partition} is decided")
                await self.until(lambda: False, STABLE_STEP_MS)
        return True

    async def _is_stable(self, topic: str, partition: int) -> bool:
        """Whether readers of committed records get to the end: not more than the one that is read here."""
        end = await self.do(topic, partition, "list_offsets")
        stable = await self.do(topic, partition, "list_offsets", READ_COMMITTED)
        return end is not None and stable is not None and (stable.offset or 0) >= (end.offset or 0)

    # ---- final reads

    async def final_reads(self) -> None:
        """Read each partition to its end, also as a reader of committed records if there are transactions."""
        for argument in ("", READ_COMMITTED) if transforms(self.plan) else ("",):
            for topic, partition in self.places():
                if not await self._read_to_end(topic, partition, argument):
                    await self.never(f"{topic}-{partition} is read to its end")
                    return

    async def _read_to_end(self, topic: str, partition: int, argument: str) -> bool:
        """Learn an end that may be trusted, then poll up to it. argument: READ_COMMITTED for a reader of
        committed records, who passes what he is not shown."""
        for _ in range(MOST_FINAL_READS):
            listed = await self.do(topic, partition, "list_offsets")
            if listed is None:
                return False
            if await self.trusted(listed):
                break
        else:
            return False
        end = listed.offset or 0
        for _ in range(MOST_FINAL_READS):
            read = await self.do(topic, partition, "poll", argument)
            if read is None:
                return False
            if (read.offset or 0) >= end or (read.records and read.records[-1].offset + 1 >= end):
                return True
        return False

    # ---- the run's own operations

    async def do(self, topic: str, partition: int, function: str, argument: str = "") -> Operation | None:
        """Try until one operation of the run's own succeeds.

        Args:
            topic, partition: where.
            function: append, poll or list_offsets.
            argument: READ_COMMITTED for a reader of committed records.

        Returns:
            the row; None if none succeeded within the bound, nor after all had settled.
        """
        done = await self._try(topic, partition, function, argument)
        if done is None and self.settle():
            return await self._try(topic, partition, function, argument)
        return done

    async def _try(self, topic: str, partition: int, function: str, argument: str) -> Operation | None:
        deadline = self.now + self.plan.liveness_ms * MILLISECOND
        while self.now < deadline:
            self.next_op_id += 1
            operation = PlannedOperation(
                op_id=self.next_op_id,
                process=self.reader,
                at_ms=0,
                function=function,
                topic=topic,
                partition=partition,
                key=PROBE if function == "append" and self.keyed(topic) else "",
                argument=argument,
            )
            self.schedule(operation)
            await self.until(self.has_ended, self.plan.liveness_ms)
            done = self.queues.last.get(self.reader)
            if done is not None and done.op_id == operation.op_id and done.outcome is Outcome.OK:
                return done
        return None
