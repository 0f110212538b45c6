"""One run of a plan against a real system, in real time.

Owns how the cluster is reached, with topics that are fresh in it, the clients, and what healing is. Must not
know the order of a run (run/story.py), how a system works, or what is judged. The cluster outlives the run,
and is healthy when it begins.

One event loop runs all clients and the observer; the system's verbs run in threads, because they wait for
processes. A plan's times count from the beginning of the safety phase.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, evolve, field

import fencepost
from fencepost.impl.broker.parts import Parts
from fencepost.impl.client.client import Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import Invoke
from fencepost.impl.runtime.client import RunningClient, running
from fencepost.proxy.faults import events_of
from fencepost.record.observed_state import Key
from fencepost.run.client_cores import client_of, make_client
from fencepost.run.group_processes import uses_groups
from fencepost.run.operation_queues import Queues, undecided
from fencepost.run.real import power
from fencepost.run.real.audited import Audit
from fencepost.run.real.broker_questions import Asking
from fencepost.run.real.claims import acknowledged_by_all, claims_of_run, demanded
from fencepost.run.real.inside import inside_of
from fencepost.run.real.observer import Observer, nanoseconds_since
from fencepost.run.real.real_members import RealMembers, version_of
from fencepost.run.real.record import RealRecord
from fencepost.run.real.rounds import RealRounds
from fencepost.run.real.starved import Sentinel
from fencepost.run.real.striking import Striker
from fencepost.run.real.times import in_trace_time
from fencepost.run.story import Story
from fencepost.systems.system import System, disks_of_system, requests_of_system
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import ClientOptions, Fault, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from fencepost.wire.client import Access, Address, KafkaNetwork, look_around

READER = ClientOptions(
    request_timeout_ms=2_000, delivery_timeout_ms=20_000, fetch_wait_max_ms=0, max_poll_records=2_000
)
"""The run's own client, which reads everything that is there."""
HEALTHY_POLL_S = 0.1
MOST_A_LOOK_S = 2.0
"""What one look at the cluster takes at most of the time to heal. Where it takes longer, the machine has no
time for anybody: three minutes of sixty busy processes looked like a cluster that never healed."""
NEVER_HEALED = "every broker is back, every partition has a leader and a full ISR"
"""What did not come where the cluster did not heal."""
MILLISECONDS = 1_000
SECOND = 1_000_000_000


@define(eq=False, kw_only=True)
class RealRun(Story):
    """A run. What it made can be asked for after `go`, also if that raised."""

    system: System
    # Of the cluster: fresh, where the plan says `t`. Other topics have their names after it.
    topic: str
    # The name of the system, for the trace.
    target: str
    # Of swarm/real_systems.py: CONTROLS.
    control: str = ""
    # The file that is written ahead; None: none.
    ahead: Path | None = None
    # Where the brokers' directories are copied to at the end, to be compared with the history; None: they are
    # not.
    copies: Path | None = None
    # Kinds of fault that the system cannot carry out.
    left_out: tuple[str, ...] = ()
    record: RealRecord = field(init=False)
    observer: Observer = field(init=False)
    rounds: RealRounds = field(init=False)
    # Carries out the faults.
    striker: Striker = field(init=False)
    _first: int = field(factory=time.monotonic_ns, init=False)
    # The same moment of the wall clock.
    _began: int = field(factory=time.time_ns, init=False)
    _addresses: dict[int, Address] = field(factory=dict, init=False)
    _clients: dict[int, RunningClient] = field(factory=dict, init=False)
    # How much the clock of each process is ahead of the trace's, nanoseconds.
    _ahead: dict[int, int] = field(factory=dict, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)
    # When the machine, or a broker, stood still: nanoseconds of the trace, and who.
    _stretches: list[tuple[int, int, int]] = field(factory=list, init=False)
    # The cluster's name of each topic, by the plan's.
    _names: dict[str, str] = field(factory=dict, init=False)
    # Ends what the run opened.
    _stack: AsyncExitStack = field(factory=AsyncExitStack, init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.queues = Queues(
            plan=self.plan, begin=self._begin, alone=lambda operation: operation.process == self.reader
        )
        first, *others = (one.name for one in self.plan.cluster.topics)
        self._names = {first: self.topic, **{name: f"{self.topic}-{name}" for name in others}}
        head = Trace(
            trace_id=self.plan.seed,
            plan="",
            seed=self.plan.seed,
            target=self.target,
            software_version=fencepost.__version__,
            profile=self.plan.profile,
            concurrent_processes=self.plan.client.producer.pipelined,
        )
        plans = {mine: name for name, mine in self._names.items()}
        self.record = RealRecord.open(self.ahead, plans, head, nanoseconds_since(self._first))

    @property
    def now(self) -> int:
        """Nanoseconds since the run began."""
        return time.monotonic_ns() - self._first

    async def go(self) -> Trace:
        """The whole run. Raises FencepostError if the cluster is of no use before there is any fault."""
        async with self._stack as stack:
            stack.callback(self.record.close)
            stack.enter_context(Sentinel(self._starved, self.system.processes_now))
            try:
                await self.go_through()
            finally:
                self.over = True
            self.begin_phase("end")
            return self._trace()

    def _starved(self, begin: float, end: float, who: int) -> None:
        first = self._first / 1e9
        self._stretches.append((max(0, int((begin - first) * 1e9)), int((end - first) * 1e9), who))

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
        self.record.note(Name.SETTINGS, detail=detail)

    # ---- before the faults

    async def reach(self) -> str:
        """Learn the brokers' addresses; everything that talks to them."""
        self._note_settings()
        addresses = tuple(
            (host, int(port))
            for host, _, port in (one.rpartition(":") for one in self.system.bootstrap_servers().split(","))
        )
        self._addresses, _ = await look_around(addresses, Access())
        self._look_on()
        for kind in self.left_out:
            why = {"fault": -1, "reason": "this system cannot do it"}
            self.record.note(Name.FAULT_SKIPPED, cause=kind, detail=why)
        if uses_groups(self.plan):
            self.members = members = RealMembers(
                plan=self.plan,
                brokers=tuple(self._addresses),
                addresses=self._addresses,
                names=self._names,
                apart=self.topic,
                version=await version_of(addresses[0], Access()),
                record=self.record,
                changed=self._changed.set,
                opened=lambda row: self.striker.acknowledged(
                    row, self._first + row.invoke_time, Name.TRANSACTION_PHASE
                ),
            )
            self._stack.push_async_callback(members.close)
        self.rounds = RealRounds(
            plan=self.plan,
            record=self.record,
            members=self.members,
            brokers=self.system.brokers,
            addresses=self._addresses,
        )
        self._stack.push_async_callback(self.rounds.close)
        return ""

    def _look_on(self) -> None:
        """Make the observer, and who carries out the faults."""
        asking = Asking(dict(self._addresses))
        self.observer = Observer(
            asking=asking,
            brokers=self.system.brokers,
            names=self.record.names,
            now=nanoseconds_since(self._first),
            record=self.record.recorded,
        )
        self.striker = Striker(
            plan=self.plan,
            system=self.system,
            state=self.observer.state,
            note=self.record.note,
            topic=self.topic,
            names=self._names,
            folders=tuple(
                f"{self._names[topic.name]}-{number}"
                for topic in self.plan.cluster.topics
                for number in range(topic.partitions)
            ),
        )
        self._stack.push_async_callback(self.striker.end_all)  # last of all, after clients are gone
        self._stack.push_async_callback(asking.close)

    async def create(self, topic: TopicOptions) -> None:
        """Make a topic of the plan, under its name in the cluster, and wait until it has leaders."""
        await self.observer.asking.create(self._names[topic.name], topic, self.system.brokers)

    async def led(self) -> bool:
        """Whether every partition has a leader: `create` has waited. The observer looks on from now."""
        await self.observer.look()
        if "disks" in self.system.inside().can:
            disks_of_system(self.system).write_back()  # the folders of the topic; no kernel waits long
        looking = asyncio.ensure_future(self.observer.look_on())
        self._stack.push_async_callback(self._look_no_more, looking)
        return True

    async def _look_no_more(self, looking: "asyncio.Future[None]") -> None:
        self.observer.stop()
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    async def start_client(self, process: int) -> None:
        """Start the client of a process; the run's own reads everything that is there."""
        addresses = dict(self._addresses)
        core = (
            Client(process, READER, ClientMetadata(tuple(addresses)))
            if process == self.reader
            else make_client(self.plan, Parts(), process, tuple(addresses), healing=False)
        )
        self._clients[process] = await self._stack.enter_async_context(
            running(
                core,
                lambda node, receive: KafkaNetwork(addresses, receive, client_id=client_of(process)),
                self._completed,
            )
        )
        self._ahead[process] = self._clients[process].driver.clock.now() - self.now

    # ---- the workload

    def after(self, delay: int, call: Callable[..., object], *arguments: Any) -> None:
        """Call something later.

        Args:
            delay: nanoseconds from now.
            call: what is called.
            arguments: with what.
        """
        asyncio.get_running_loop().call_later(delay / SECOND, call, *arguments)

    def strike(self, fault: Fault) -> None:
        """A fault's time has come."""
        if not self.over:
            self.striker.strike(fault)

    @property
    def calm(self) -> bool:
        """Whether no fault has begun that has not ended."""
        return self.striker.calm

    async def last_answers(self) -> None:
        """Wait for what clients have begun, while the faults go on."""
        await self.until(self._idle, self.plan.client.delivery_timeout_ms)

    def _begin(self, operation: PlannedOperation) -> None:
        self.record.invoke(operation)
        asked = evolve(operation, topic=self._names[operation.topic])
        self._clients[operation.process].driver.accept(Invoke(asked))

    def _completed(self, operation: Operation) -> None:
        operation = in_trace_time(operation, self._ahead[operation.process], self._ahead.values())
        row = self.record.row_done(operation)
        if row.function is Function.APPEND and row.outcome is Outcome.OK:
            self.striker.acknowledged(row, self._first + row.invoke_time)
        self.queues.completed(row)
        self._changed.set()
        asyncio.get_running_loop().call_soon(self.queues.next, row.process)

    def _idle(self) -> bool:
        return not self.record.invoked and self.queues.idle

    async def until(self, reached: Callable[[], bool], bound_ms: int) -> bool:
        """Wait until it holds; whether it does.

        Args:
            reached: asked again and again.
            bound_ms: the most time that may pass, milliseconds.
        """
        deadline = time.monotonic() + bound_ms / MILLISECONDS
        while not reached():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, HEALTHY_POLL_S)):
                    await self._changed.wait()
        return True

    # ---- after the faults

    async def end_faults(self) -> bool:
        """End every fault; whether then every broker runs and every ISR is full."""
        await self.striker.end_all()
        left, last = self.plan.liveness_ms / MILLISECONDS, time.monotonic()
        while not (await asyncio.to_thread(self.system.healthy) and await self._in_sync()):
            if left < 0:
                return await self.never(NEVER_HEALED)
            await asyncio.sleep(HEALTHY_POLL_S)
            now = time.monotonic()
            left, last = left - min(now - last, MOST_A_LOOK_S), now
            await self.striker.start_ended()
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

    async def never(self, what: str) -> bool:
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
        self.record.note(Name.LIVENESS_FAILED, cause=what, detail=stood)
        return False

    async def members_done(self) -> None:
        """Every group got everything: its processes end."""
        if isinstance(self.members, RealMembers):
            await self.members.close()

    async def trusted(self, listed: Operation) -> bool:
        """Whether this end may be trusted, by what is seen after it."""
        await self.observer.look()
        if self.observer.state.trusts(listed):
            self.record.trusted_ends.add(listed.op_id)
            return True
        return False

    def places(self) -> tuple[Key, ...]:
        """The partitions of all topics, as they were seen: a fake makes more than it was asked for, and a
        partitioner uses them."""
        made = {
            (topic.name, number)
            for topic in self.plan.cluster.topics
            if not topic.created_later
            for number in range(topic.partitions)
        }
        return tuple(sorted({*made, *self.observer.state.assignments}))

    # ---- the trace

    def _said(self) -> tuple[tuple[int, Event], ...]:
        """What the disks said when the power failed."""
        if "disks" not in self.system.inside().can:
            return ()
        losses = disks_of_system(self.system).power_losses()
        return tuple(power.of_run(losses, self._began, self.record.names))

    def _trace(self) -> Trace:
        operations = self.record.history(undecided(one.driver.core for one in self._clients.values()))
        inside = inside_of(self.system, self._began, self.record.names)
        if inside.missing:
            self.record.note(Name.MARK, cause="inside_unknown", detail={"why": inside.missing})
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
        """The stretches in which nobody got a processor, or a broker got none."""
        for since, until, who in self._stretches:
            yield Event(time=until, name=Name.BUSY, node=who, detail=f'{{"since":{since}}}')

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
        last = max(self.now, self.record.events[-1].time)
        request = Audit(directories=self.system.directories(), copies=self.copies, names=self.record.names)
        return request.events(operations, last, judged=not self.stuck)
