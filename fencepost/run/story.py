"""A run in every system, from its set-up to its end.

1. set-up    the cluster is reached, topics are made, clients start, partitions have leaders
2. safety    clients work while faults begin and end
3. heal      every fault ends; what was due and has not begun is forgotten
4. liveness  the cluster is whole again; one acknowledged append per partition, which every group gets; every
             transaction is decided
5. final     one client reads every partition to its end

Owns the order, what is demanded, and its bounds. Must not know time, transport, or how a cluster heals: the
simulation (simulated/run.py) and real systems (real/real_run.py) say so. It is written as coroutines: those
of a real system wait for the wall clock, those of the simulation let virtual time pass and never wait
(`at_once`).
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from attrs import define, field

from fencepost.impl.client.attempt import READ_COMMITTED
from fencepost.run.group_processes import FUNCTIONS, Key, Members, transforms
from fencepost.run.operation_queues import Queues
from fencepost.run.record import Record
from fencepost.run.rounds import Rounds
from fencepost.traces.events import Name
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import Fault, Plan, PlannedOperation, TopicOptions

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


def reader_of(plan: Plan) -> int:
    """The process of the run's own operations: the first one that the plan does not have."""
    return 1 + max((one.process for one in plan.operations), default=-1)


@define(eq=False)
class Story:
    """A run under way."""

    plan: Plan
    record: Record = field(init=False)
    # Once the cluster is reached.
    rounds: Rounds = field(init=False)
    queues: Queues = field(init=False)
    # The processes in groups; None: the plan has none.
    members: Members | None = field(init=False, default=None)
    # The process of the run's own operations.
    reader: int = field(init=False)
    # The last op id that was given to one of them.
    next_op_id: int = field(init=False)
    # What was waited for and never came, before the first fault or after the last.
    stuck: str = field(init=False, default="")
    # Whether the faults are over: operations that have not begun by then never do.
    over: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.next_op_id = max((one.op_id for one in self.plan.operations), default=0)
        self.reader = reader_of(self.plan)

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

    def after(self, delay: int, call: Callable[..., object], *arguments: Any) -> None:
        """Call something later.

        Args:
            delay: nanoseconds from now.
            call: what is called.
            arguments: with what.
        """
        raise NotImplementedError

    async def reach(self) -> str:
        """Reach the cluster before the first fault; what never came, empty: all did."""
        raise NotImplementedError

    async def create(self, topic: TopicOptions) -> None:
        """Make a topic of the plan."""
        raise NotImplementedError

    async def start_client(self, process: int) -> None:
        """Start the client of a process."""
        raise NotImplementedError

    async def led(self) -> bool:
        """Whether every partition of the new topics got a leader."""
        raise NotImplementedError

    def strike(self, fault: Fault) -> None:
        """A fault's time has come."""
        raise NotImplementedError

    @property
    def calm(self) -> bool:
        """Whether no fault is active."""
        raise NotImplementedError

    async def last_answers(self) -> None:
        """Wait for what clients have begun, where faults that end would take it along."""

    async def end_faults(self) -> bool:
        """End every fault and let every broker run; whether the cluster can be used again."""
        raise NotImplementedError

    async def healed(self) -> bool:
        """Whether the cluster is whole again, once the run's own client takes part."""
        return True

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
        ) or any(one.key for one in self.plan.operations if (one.function, one.topic) == ("append", topic))

    async def members_done(self) -> None:
        """Every group got everything."""

    # ---- the phases

    async def go_through(self) -> None:
        """All phases, as far as each reaches."""
        if await self.set_up():
            await self.safety()
            await self.after_the_faults()

    async def set_up(self) -> bool:
        """Whether every topic of the plan is there, and a client for each process of its operations."""
        if missing := await self.reach():
            return await self.never(missing)
        for topic in self.plan.cluster.topics:
            if not topic.created_later:
                await self.create(topic)
        processes = {one.process for one in self.plan.operations if one.function not in FUNCTIONS}
        for process in sorted(processes):
            await self.start_client(process)
        return await self.led() or await self.never("every partition gets a leader before the first fault")

    async def safety(self) -> None:
        """Let each operation and fault of the plan begin at its time."""
        self.begin_phase("safety")
        for operation in self.plan.operations:
            self.schedule(operation)
        for fault in self.plan.faults:
            self.after(fault.at_ms * MILLISECOND, self.strike, fault)
        self.after(self.plan.safety_ms * MILLISECOND // 2, self._ask_in_calm)
        await self.until(lambda: False, self.plan.safety_ms)
        self._ask_in_calm()
        await self.last_answers()

    async def after_the_faults(self) -> None:
        """Heal, demand progress, read everything; and ask the brokers a last time, whatever came."""
        if await self._serves():
            self.begin_phase("final")
            await self.final_reads()
        await self.rounds.ask(last=True)

    async def _serves(self) -> bool:
        """Whether the cluster is whole again and makes progress. A backlog of slow processes is no sign of a
        cluster that does not heal."""
        self.begin_phase("heal")
        self.over = True
        self.queues.clear()
        if not await self.end_faults():
            return False
        self.begin_phase("liveness")
        await self.start_client(self.reader)
        if self.members is not None:
            self.members.heal(self.reader + 1)
        if not await self.healed():
            return False
        self.rounds.begin()
        return await self.makes_progress()

    def begin_phase(self, name: str) -> None:
        """Record that a phase begins."""
        self.record.note(Name.PHASE, cause=name)

    def schedule(self, operation: PlannedOperation) -> None:
        """Let an operation of the plan begin at its time from now, unless the faults are over by then."""
        self.after(operation.at_ms * MILLISECOND, self._due, operation)

    def _due(self, operation: PlannedOperation) -> None:
        """The time of an operation of the plan has come."""
        if self.over:
            return
        if operation.function not in FUNCTIONS:
            self.queues.due(operation)
        elif self.members is not None:
            self.members.do(operation)

    def _ask_in_calm(self) -> None:
        """Ask if no fault is active, and the run is one that is asked in its safety phase."""
        if self.calm and self.rounds.in_safety:
            self.rounds.begin()

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
            self.queues.due(operation)
            await self.until(self.has_ended, self.plan.liveness_ms)
            done = self.queues.last.get(self.reader)
            if done is not None and done.op_id == operation.op_id and done.outcome is Outcome.OK:
                return done
        return None
