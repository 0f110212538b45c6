"""One run of a plan against a real system: the counterpart of campaign/run/run.py in real time.

Owns the phases: a fresh topic, the safety phase with operations and faults, heal, progress, final reads. Must
not know how a system works, or what is judged. The cluster outlives the run, and is healthy when it begins.

One event loop runs all clients and the observer; the system's verbs run in threads, because they wait for
processes. A plan's times count from the beginning of the safety phase.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, evolve, field

import fencepost
from fencepost.campaign.observed.observed_state import Key
from fencepost.campaign.real import power
from fencepost.campaign.real.asking import Asking
from fencepost.campaign.real.audited import Audit
from fencepost.campaign.real.claims import acknowledged_by_all, claims_of_run, demanded
from fencepost.campaign.real.inside import inside_of
from fencepost.campaign.real.observer import Observer, nanoseconds_since
from fencepost.campaign.real.record import RealRecord
from fencepost.campaign.real.rounds import RealRounds
from fencepost.campaign.real.starved import Sentinel
from fencepost.campaign.real.striking import Striker
from fencepost.campaign.real.times import in_trace_time
from fencepost.campaign.real.transforming import FUNCTIONS, Transforms, consumes, transforms, version_of
from fencepost.campaign.swarm.broken_requests import client_of
from fencepost.campaign.swarm.producers import is_pipelined, make_client
from fencepost.impl.broker.parts import Parts
from fencepost.impl.client.attempt import READ_COMMITTED
from fencepost.impl.client.client import Client
from fencepost.impl.client.metadata import ClientMetadata
from fencepost.impl.client.producer.pipelined import PipelinedClient
from fencepost.impl.core.core_interface import Invoke
from fencepost.impl.runtime.client import RunningClient, running
from fencepost.proxy.faults import events_of
from fencepost.systems.system import System, disks_of_system, requests_of_system
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClientOptions, Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from fencepost.wire.client import Access, Address, KafkaNetwork, look_around

READER = ClientOptions(
    request_timeout_ms=2_000, delivery_timeout_ms=20_000, fetch_wait_max_ms=0, max_poll_records=2_000
)
"""The run's own client, which reads everything that is there."""
MOST_FINAL_READS = 500
"""Polls of one partition: each brings up to 2,000 records, and a run sends a few thousand."""
HEALTHY_POLL_S = 0.1
MOST_A_LOOK_S = 2.0
"""What one look at the cluster takes at most of the time to heal. Where it takes longer, the machine has no
time for anybody: three minutes of sixty busy processes looked like a cluster that never healed."""
NEVER_HEALED = "every broker is back, every partition has a leader and a full ISR"
"""What did not come where the cluster did not heal."""
MILLISECONDS = 1_000


@define(eq=False, kw_only=True)
class RealRun:
    """A run. What it made can be asked for after `go`, also if that raised."""

    plan: Plan
    system: System
    topic: str
    """Of the cluster: fresh, where the plan says `t`. Other topics have their names after it."""
    target: str
    """The name of the system, for the trace."""
    control: str = ""
    """Of swarm/real_systems.py: CONTROLS."""
    ahead: Path | None = None
    """The file that is written ahead; None: none."""
    copies: Path | None = None
    """Where the brokers' directories are copied to at the end, to be compared with the history; None: they
    are not."""
    left_out: tuple[str, ...] = ()
    """Kinds of fault that the system cannot carry out."""
    record: RealRecord = field(init=False)
    observer: Observer = field(init=False)
    rounds: RealRounds = field(init=False)
    stuck: str = field(default="", init=False)
    """What never came after the faults; empty: everything did."""
    reader: int = field(default=0, init=False)
    """Process of the final reads."""
    timings: dict[str, float] = field(factory=dict, init=False)
    """Seconds of each phase."""
    _first: int = field(factory=time.monotonic_ns, init=False)
    _began: int = field(factory=time.time_ns, init=False)
    """The same moment of the wall clock."""
    _addresses: dict[int, Address] = field(factory=dict, init=False)
    _clients: dict[int, RunningClient] = field(factory=dict, init=False)
    _ahead: dict[int, int] = field(factory=dict, init=False)
    """How much the clock of each process is ahead of the trace's, nanoseconds."""
    _waiting: "dict[int, deque[PlannedOperation]]" = field(factory=dict, init=False)
    """Operations that are due, by process."""
    _busy: dict[int, int] = field(factory=dict, init=False)
    """The operation under way of each process that waits for it."""
    _last: dict[int, Operation] = field(factory=dict, init=False)
    """The latest completed operation of each process."""
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)
    _striker: Striker | None = field(default=None, init=False)
    """Carries out the faults, once the topic is there."""
    _next_op_id: int = field(default=0, init=False)
    _stretches: list[tuple[int, int]] = field(factory=list, init=False)
    """When the machine stood still, nanoseconds of the trace."""
    _names: dict[str, str] = field(factory=dict, init=False)
    """The cluster's name of each topic, by the plan's."""
    _transforms: Transforms | None = field(default=None, init=False)
    """The processes that write in transactions; None: the plan has none."""

    def __attrs_post_init__(self) -> None:
        first, *others = (one.name for one in self.plan.cluster.topics)
        self._names = {first: self.topic, **{name: f"{self.topic}-{name}" for name in others}}
        self.reader = 1 + max((one.process for one in self.plan.operations), default=0)
        self._next_op_id = max((one.op_id for one in self.plan.operations), default=0)
        head = Trace(
            trace_id=self.plan.seed,
            plan="",
            seed=self.plan.seed,
            target=self.target,
            software_version=fencepost.__version__,
            profile=self.plan.profile,
            concurrent_processes=self.plan.client.producer.pipelined,
        )
        self.record = RealRecord.open(self.ahead, {mine: name for name, mine in self._names.items()}, head)

    @property
    def now(self) -> int:
        """Nanoseconds since the run began."""
        return time.monotonic_ns() - self._first

    async def go(self) -> Trace:
        """The whole run. Raises FencepostError if the cluster is of no use before there is any fault."""
        try:
            async with AsyncExitStack() as stack:
                stack.enter_context(Sentinel(self._starved))
                self._note_settings()
                await self._open(stack)
                looking = asyncio.ensure_future(self.observer.look_on())
                try:
                    async with self._phase("safety"):
                        await self._safety(stack)
                    async with self._phase("heal"):
                        healed = await self._heal()
                    if healed:
                        await self._final(stack)
                    await self.rounds.ask(self._transforms, last=True)
                finally:
                    self.observer.stop()
                    looking.cancel()
                    await asyncio.gather(looking, return_exceptions=True)
                self.record.note(self.now, Name.PHASE, cause="end")
                return self._trace()
        finally:
            if self._striker is not None:
                await self._striker.end_all()
            self.record.close()

    @property
    def _breaks(self) -> Striker:
        assert self._striker is not None, "the topic is there before anything else"
        return self._striker

    def _note(self, name: Name, **fields: Any) -> None:
        self.record.note(self.now, name, **fields)

    def _starved(self, begin: float, end: float) -> None:
        first = self._first / 1e9
        self._stretches.append((max(0, int((begin - first) * 1e9)), int((end - first) * 1e9)))

    def _note_settings(self) -> None:
        """What bounds follow from: of the system, of the plan's topics and clients."""
        inside = self.system.inside()
        if inside.settings is None:
            return
        plan = msgspec.json.decode(plan_to_json(evolve(self.plan, operations=(), faults=())))
        cluster = {
            **inside.settings["cluster"],
            "brokers": len(self.system.brokers),
            "topics": plan["cluster"]["topics"],
        }
        clients = {name: plan[name] for name in ("client", "consumer", "transform") if name in plan}
        wire = {"network": {"latency_min_us": 1_000, "latency_tail_us": 1_000, "latency_max_us": 50_000}}
        detail = {**clients, **wire, "cluster": cluster, "real": inside.settings.get("real", {})}
        self._note(Name.SETTINGS, detail=detail)

    @contextlib.asynccontextmanager
    async def _phase(self, name: str) -> AsyncIterator[None]:
        began = time.monotonic()
        if name != "topic":
            self.record.note(self.now, Name.PHASE, cause=name)
        yield
        self.timings[name] = round(time.monotonic() - began, 3)

    async def _open(self, stack: AsyncExitStack) -> None:
        async with self._phase("topic"):
            addresses = tuple(
                (host, int(port))
                for host, _, port in (
                    one.rpartition(":") for one in self.system.bootstrap_servers().split(",")
                )
            )
            self._addresses, _ = await look_around(addresses, Access())
            asking = Asking(dict(self._addresses))
            stack.push_async_callback(asking.close)
            self.observer = Observer(
                asking=asking,
                brokers=self.system.brokers,
                names=self.record.names,
                now=nanoseconds_since(self._first),
                record=self.record.recorded,
            )
            self.rounds = RealRounds(
                plan=self.plan,
                record=self.record,
                brokers=self.system.brokers,
                now=nanoseconds_since(self._first),
                addresses=self._addresses,
            )
            stack.push_async_callback(self.rounds.close)
            for topic in self.plan.cluster.topics:
                await asking.create(self._names[topic.name], topic, self.system.brokers)
            await self.observer.look()
            if "disks" in self.system.inside().can:
                disks_of_system(self.system).write_back()  # the folders of the topic; no kernel waits long
            self._striker = Striker(
                plan=self.plan,
                system=self.system,
                state=self.observer.state,
                note=self._note,
                topic=self.topic,
                names=self._names,
                folders=tuple(
                    f"{self._names[topic.name]}-{number}"
                    for topic in self.plan.cluster.topics
                    for number in range(topic.partitions)
                ),
            )
        for kind in self.left_out:
            self.record.note(
                self.now,
                Name.FAULT_SKIPPED,
                cause=kind,
                detail={"fault": -1, "reason": "this system cannot do it"},
            )
        for process in sorted({one.process for one in self._planned()}):
            core = make_client(self.plan, Parts(), process, tuple(self._addresses), healing=False)
            await self._client(stack, process, core)

        if consumes(self.plan):
            self._transforms = Transforms(
                plan=self.plan,
                addresses=self._addresses,
                names=self._names,
                apart=self.topic,
                version=await version_of(addresses[0], Access()),
                record=self.record,
                now=nanoseconds_since(self._first),
                changed=self._changed.set,
                opened=lambda row: self._breaks.acknowledged(
                    row, self._first + row.invoke_time, Name.TRANSACTION_PHASE
                ),
            )
            stack.push_async_callback(self._transforms.close)

    def _planned(self) -> tuple[PlannedOperation, ...]:
        """Operations of clients that do one after the other."""
        return tuple(one for one in self.plan.operations if one.function not in FUNCTIONS)

    async def _client(self, stack: AsyncExitStack, process: int, core: Client | PipelinedClient) -> None:
        addresses = dict(self._addresses)
        self._clients[process] = await stack.enter_async_context(
            running(
                core,
                lambda node, receive: KafkaNetwork(addresses, receive, client_id=client_of(process)),
                self._completed,
            )
        )
        self._waiting[process] = deque()
        self._ahead[process] = self._clients[process].driver.clock.now() - self.now

    # ---- the workload

    async def _safety(self, stack: AsyncExitStack) -> None:
        loop, begin = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        timers = [loop.call_at(begin + one.at_ms / MILLISECONDS, self._due, one) for one in self._planned()]
        if self._transforms is not None:
            timers += [
                loop.call_at(begin + one.at_ms / MILLISECONDS, self._transforms.do, one)
                for one in self.plan.operations
                if one.function in FUNCTIONS
            ]
        timers += [
            loop.call_at(begin + fault.at_ms / MILLISECONDS, self._breaks.strike, fault)
            for fault in self.plan.faults
        ]
        try:
            for _ in range(2):  # in the middle and at the end
                await asyncio.sleep(self.plan.safety_ms / MILLISECONDS / 2)
                self.rounds.in_safety(calm=self._breaks.calm, transforms=self._transforms)
            await self._until(self._idle, self.plan.client.delivery_timeout_ms)
        finally:
            for timer in timers:
                timer.cancel()
            for queue in self._waiting.values():
                queue.clear()

    def _due(self, operation: PlannedOperation) -> None:
        self._waiting[operation.process].append(operation)
        self._next(operation.process)

    def _next(self, process: int) -> None:
        while process not in self._busy and self._waiting[process]:
            operation = self._waiting[process].popleft()
            healing = process == self.reader
            if not is_pipelined(self.plan, operation, healing=healing):
                self._busy[process] = operation.op_id
            self.record.invoke(operation, self.now)
            asked = evolve(operation, topic=self._names[operation.topic])
            self._clients[process].driver.accept(Invoke(asked))

    def _completed(self, operation: Operation) -> None:
        operation = in_trace_time(operation, self._ahead[operation.process], self._ahead.values())
        row = self.record.completed(operation, self.now)
        if row.function is Function.APPEND and row.outcome is Outcome.OK:
            self._breaks.acknowledged(row, self._first + row.invoke_time)
        if self._busy.get(row.process) == row.op_id:
            del self._busy[row.process]
            self._last[row.process] = row
        self._changed.set()
        asyncio.get_running_loop().call_soon(self._next, row.process)

    def _idle(self) -> bool:
        return not self.record.invoked and not any(self._waiting.values())

    async def _until(self, condition: Callable[[], bool], bound_ms: int) -> bool:
        """Wait until it holds, at most so long; whether it does."""
        deadline = time.monotonic() + bound_ms / MILLISECONDS
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, HEALTHY_POLL_S)):
                    await self._changed.wait()
        return True

    # ---- after the faults

    async def _heal(self) -> bool:
        """Whether every broker runs, every ISR is full, and each partition takes a record."""
        await self._breaks.end_all()
        left, last = self.plan.liveness_ms / MILLISECONDS, time.monotonic()
        while not (await asyncio.to_thread(self.system.healthy) and await self._in_sync()):
            if left < 0:
                return await self._never(NEVER_HEALED)
            await asyncio.sleep(HEALTHY_POLL_S)
            now = time.monotonic()
            left, last = left - min(now - last, MOST_A_LOOK_S), now
            await self._breaks.start_ended()
        return True

    async def _in_sync(self) -> bool:
        """Whether a broker was asked again and shows a leader and a full ISR of each partition."""
        if not await self.observer.look():
            return False
        state = self.observer.state
        return all(
            known.leader >= 0 and set(known.isr) == set(state.assignments[key])
            for key, known in state.partitions.items()
        )

    async def _never(self, what: str) -> bool:
        """Record what never came, and what each broker says then. Never true."""
        self.stuck = what
        stood: dict[str, object] = {
            f"{topic}-{number}": {"leader": known.leader, "isr": list(known.isr)}
            for (topic, number), known in sorted(self.observer.state.partitions.items())
        }
        for broker in self.system.brokers:
            view = await self.observer.asking.view(broker, *self.record.names)
            process = "there" if await asyncio.to_thread(self.system.runs, broker) else "gone"
            knows = "no answer" if view is None else f"knows {list(view.live)}"
            stood[f"broker {broker}"] = f"{knows}, its process is {process}"
        self.record.note(self.now, Name.LIVENESS_FAILED, cause=what, detail=stood)
        return False

    async def _final(self, stack: AsyncExitStack) -> None:
        """A record into each partition, an end that may be trusted, everything up to it."""
        await self._client(
            stack, self.reader, Client(self.reader, READER, ClientMetadata(tuple(self._addresses)))
        )
        places = self._places()
        async with self._phase("liveness"):
            self.rounds.begin(self._transforms)
            ends: dict[Key, int] = {}
            for place in places:
                written = await self._do("append", place)
                if written is None:
                    await self._never(f"a record is written to {place[0]}-{place[1]}")
                    return
                ends[place] = written.offset or 0
            if self._transforms is not None and not await self._decided(self._transforms, ends):
                return
        async with self._phase("final"):
            for isolation in ("", READ_COMMITTED) if transforms(self.plan) else ("",):
                for place in places:
                    if not await self._read_to_end(place, isolation):
                        await self._never(f"{place[0]}-{place[1]} is read to its end")
                        return

    async def _decided(self, processes: Transforms, ends: dict[Key, int]) -> bool:
        """Whether every group transforms what is at these offsets, and every transaction is decided then:
        what hangs would keep readers of committed records from all that comes after it."""
        await processes.heal(self.reader + 1)
        bound_ms = self.plan.liveness_ms
        if not await self._until(lambda: not processes.lagging(ends), bound_ms):
            return await self._never(f"group {processes.lagging(ends)[0]} transforms what is appended")
        await processes.close()
        if not transforms(self.plan):
            return True
        deadline = time.monotonic() + (bound_ms + self.plan.transform.transaction_timeout_ms) / MILLISECONDS
        for place in ends:
            while not await self._stable(place):
                if time.monotonic() > deadline:
                    return await self._never(f"every transaction in {place[0]}-{place[1]} is decided")
                await asyncio.sleep(HEALTHY_POLL_S)
        return True

    async def _stable(self, place: Key) -> bool:
        """Whether readers of committed records get to the end."""
        end = await self._do("list_offsets", place)
        stable = await self._do("list_offsets", place, READ_COMMITTED)
        return end is not None and stable is not None and (stable.offset or 0) >= (end.offset or 0)

    def _places(self) -> tuple[Key, ...]:
        """The partitions of all topics, as they were seen: a fake makes more than it was asked for, and a
        partitioner uses them."""
        made = {
            (topic.name, number) for topic in self.plan.cluster.topics for number in range(topic.partitions)
        }
        return tuple(sorted({*made, *self.observer.state.assignments}))

    async def _read_to_end(self, place: Key, isolation: str = "") -> bool:
        """Learn an end that may be trusted, and poll up to it. isolation: READ_COMMITTED for a reader of
        committed records, who passes what he is not shown."""
        listed = None
        for _ in range(MOST_FINAL_READS):
            listed = await self._do("list_offsets", place)
            if listed is None:
                return False
            await self.observer.look()
            if self.record.trust(listed, self.observer.state):
                break
        else:
            return False
        end = listed.offset or 0
        for _ in range(MOST_FINAL_READS):
            read = await self._do("poll", place, isolation)
            if read is None:
                return False
            if (read.offset or 0) >= end or (read.records and read.records[-1].offset + 1 >= end):
                return True
        return False

    async def _do(self, function: str, place: Key, argument: str = "") -> Operation | None:
        """Try until one operation of this kind succeeds; None if none did within the bound."""
        deadline = time.monotonic() + self.plan.liveness_ms / MILLISECONDS
        while time.monotonic() < deadline:
            self._next_op_id += 1
            op_id = self._next_op_id
            self._due(
                PlannedOperation(
                    op_id=op_id,
                    process=self.reader,
                    at_ms=0,
                    function=function,
                    topic=place[0],
                    partition=place[1],
                    argument=argument,
                )
            )
            await self._until(lambda: self.reader not in self._busy, self.plan.liveness_ms)
            done = self._last.get(self.reader)
            if done is not None and done.op_id == op_id and done.outcome is Outcome.OK:
                return done
        return None

    # ---- the trace

    def _said(self) -> tuple[tuple[int, Event], ...]:
        """What the disks said when the power failed."""
        if "disks" not in self.system.inside().can:
            return ()
        losses = disks_of_system(self.system).power_losses()
        return tuple(power.of_run(losses, self._began, self.record.names))

    def _trace(self) -> Trace:
        cores = [client.driver.core for client in self._clients.values()]
        undecided = {
            row.op_id: row for core in cores if isinstance(core, PipelinedClient) for row in core.undecided()
        }
        operations = self.record.history(undecided)
        inside = inside_of(self.system, self._began, self.record.names)
        if inside.missing:
            self.record.note(self.now, Name.MARK, cause="inside_unknown", detail={"why": inside.missing})
        stored, said = self._stored(operations), self._said()
        seen = self.observer.elections
        claims = claims_of_run(
            self.plan,
            operations,
            seen if inside.elections is None else inside.elections,
            reader=self.reader,
            stuck=bool(self.stuck),
            may_repeat=any(one.attempts > 1 for one in operations if one.function is Function.APPEND),
            power_lost=power.lost_power(self.plan, self.record.events, said, self.observer.state.assignments),
        )
        if self.control == "acks-1":
            operations = acknowledged_by_all(operations)
        trace = Trace(
            trace_id=self.plan.seed,
            plan="",  # judges take its options for those of the simulated brokers
            seed=self.plan.seed,
            target=self.target,
            software_version=fencepost.__version__,
            profile=self.plan.profile,
            claims=demanded(claims, self.control),
            concurrent_processes=self.plan.client.producer.pipelined,
            operations=operations,
            events=tuple(
                sorted(
                    (
                        *(*inside.events, *self.record.events, *self._hits(), *self._still()),
                        *(event for _, event in said),
                    ),
                    key=lambda event: event.time,
                )
            )
            + stored,
        )
        return evolve(trace, digest=digest_of(trace))

    def _still(self) -> Iterator[Event]:
        """The stretches in which nobody got a processor."""
        for since, until in self._stretches:
            yield Event(time=until, name=Name.BUSY, detail=f'{{"since":{since}}}')

    def _hits(self) -> Iterator[Event]:
        """Requests that were broken."""
        if "requests" not in self.system.inside().can:
            return
        for number, hit in enumerate(requests_of_system(self.system).hits(), 1):
            for event in events_of(hit, number):
                topic = self.record.names.get(event.topic or "", event.topic)
                if event.time >= self._began:
                    yield evolve(event, time=event.time - self._began, topic=topic)

    def _stored(self, operations: tuple[Operation, ...]) -> tuple[Event, ...]:
        """What the brokers' files say of this history, after everything else in the trace."""
        if self.copies is None:
            return ()
        began, last = time.monotonic(), max(self.now, self.record.events[-1].time)
        request = Audit(directories=self.system.directories(), copies=self.copies, names=self.record.names)
        events = request.events(operations, last, judged=not self.stuck)
        self.timings["audit"] = round(time.monotonic() - began, 3)
        return events
