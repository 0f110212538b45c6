"""A cluster of real processes that a program drives step by step: the counterpart of run/simulated_cluster.py
over TCP, files and a real ZooKeeper.

    with RealCluster.started(Path("out/cluster"), Plan(seed=0)) as cluster:
        cluster.append("t")
        cluster.kill(1)
        assert cluster.append("t").outcome == "ok"
        trace = cluster.end()

Owns: the clients, one event loop in a thread for all of them, and when their operations began and ended. Must
not know how brokers run (impl/runtime), or how a trace is judged. The broker processes record their events in
files of their own, and the trace has them, with the faults that were asked for here. What ZooKeeper committed
nobody records, so that invariants apply as far as brokers' events go, and conformance does not.
"""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from attrs import define, evolve, field

from fencepost import __version__
from fencepost.impl.client.client import Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import Invoke
from fencepost.impl.runtime.client import RunningClient, running
from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
from fencepost.impl.runtime.zookeeper.server import HOST
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.systems.broker_events import EVENTS, read_broker_events
from fencepost.systems.processes import NODE, ClusterStatus, ProcessCluster
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Plan, PlannedOperation
from fencepost.traces.trace import Trace

LED_S = 60.0
"""How long the partitions may take to get leaders."""
LONGEST_WAIT_S = 300.0
"""Longest wait for one operation: far above any delivery time-out that makes sense."""
Answer = TypeVar("Answer")


@define(eq=False, kw_only=True, repr=False)
class RealCluster:
    """cluster: its processes. operations: completed, in the order of their completion. faults: that were
    asked for, as events. checks: what its trace can be judged by."""

    # Options of the cluster and its clients.
    plan: Plan
    # The processes.
    cluster: ProcessCluster
    # Completed operations, in the order of their completion.
    operations: list[Operation] = field(factory=list, init=False)
    faults: list[Event] = field(factory=list, init=False)
    checks: ClassVar[tuple[str, ...]] = ("log", "invariants")
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop, init=False)
    _stack: AsyncExitStack = field(factory=AsyncExitStack, init=False)
    # Running clients, by process number.
    _clients: dict[int, RunningClient] = field(factory=dict, init=False)
    # Completed operations that their caller has not taken yet, by op id.
    _answers: dict[int, Operation] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    # Number of operations so far.
    _begun: int = field(default=0, init=False)
    # Monotonic time that the trace counts from.
    _first: int
    # Whether the directory has events of a run before this one.
    _earlier: bool

    @classmethod
    @contextmanager
    def started(cls, directory: Path, plan: Plan, program: str = NODE) -> "Iterator[RealCluster]":
        """Brokers run, the plan's topics have leaders; at the end of the block no process is left. program:
        the module that each broker process runs. Raises FencepostError."""
        first, earlier = time.monotonic_ns(), any(directory.glob(f"broker-*/{EVENTS}"))
        processes = ProcessCluster.up(directory, plan.cluster, program=program)
        try:
            _create_topics(processes, plan)
            made = cls(plan=plan, cluster=processes, first=first, earlier=earlier)
            thread = threading.Thread(target=made._loop.run_forever, name="clients", daemon=True)
            thread.start()
            try:
                yield made
            finally:
                made._in_loop(made._stack.aclose())
                made._loop.call_soon_threadsafe(made._loop.stop)
                thread.join()
                made._loop.close()
        finally:
            processes.stop()

    def __repr__(self) -> str:
        return (
            f"<RealCluster of {self.plan.cluster.brokers} brokers in {self.cluster.directory}, "
            f"{len(self.operations)} operations>"
        )

    # ---- operations, from any thread

    def append(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Append a batch (options: records=1, acks=-1, key="", process=0) to a partition, and wait for its
        outcome. Returns the row of the trace."""
        return self._do("append", topic, partition, options)

    def poll(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Continue to read a partition from this process's position (options: process=0), and wait for the
        answer. Returns the row of the trace."""
        return self._do("poll", topic, partition, options)

    def list_offsets(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Ask for the end of a partition (process=0), and wait for the answer."""
        return self._do("list_offsets", topic, partition, options)

    def _do(self, function: str, topic: str, partition: int, options: dict[str, Any]) -> Operation:
        with self._lock:
            self._begun += 1
            op_id = self._begun
        try:
            planned = PlannedOperation(
                op_id=op_id,
                process=options.pop("process", 0),
                at_ms=0,
                function=function,
                topic=topic,
                partition=partition,
                **options,
            )
        except (TypeError, ValueError) as error:
            raise PlanError(
                expected="the fields of an operation", seen=str(error), where=f"{function} of a real cluster"
            ) from None
        invoke_time = time.monotonic_ns()
        operation = self._in_loop(self._asked(planned))
        completion_time = time.monotonic_ns()
        known = operation.completion_time is not None
        operation = evolve(
            operation,
            invoke_time=invoke_time - self._first,
            completion_time=completion_time - self._first if known else None,
            clock_id=0,
        )
        with self._lock:
            self.operations.append(operation)
        return operation

    async def _asked(self, planned: PlannedOperation) -> Operation:
        client = self._clients.get(planned.process) or await self._client(planned.process)
        client.driver.accept(Invoke(planned))
        await client.until(lambda: planned.op_id in self._answers)
        return self._answers.pop(planned.op_id)

    async def _client(self, process: int) -> RunningClient:
        addresses = {number: (HOST, broker.port) for number, broker in self.cluster.state.brokers.items()}
        core = Client(process, self.plan.client, ClientMetadata(tuple(addresses)))
        client = await self._stack.enter_async_context(running(core, addresses, self._completed))
        self._clients[process] = client
        return client

    def _completed(self, operation: Operation) -> None:
        self._answers[operation.op_id] = operation

    def _in_loop(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST_WAIT_S)

    # ---- brokers

    def kill(self, broker: int) -> None:
        """End its process as a crash does."""
        self._note(Name.FAULT_BEGAN, broker, "crash")
        self.cluster.kill(broker)

    def start(self, broker: int) -> None:
        """Start the process of a broker that is dead, on its files."""
        self._note(Name.FAULT_ENDED, broker, "crash")
        self.cluster.start(broker)

    def pause(self, broker: int) -> None:
        """Stop its process (SIGSTOP)."""
        self._note(Name.FAULT_BEGAN, broker, "pause")
        self.cluster.pause(broker)

    def resume(self, broker: int) -> None:
        """Let its process go on."""
        self._note(Name.FAULT_ENDED, broker, "pause")
        self.cluster.resume(broker)

    def _note(self, name: Name, broker: int, kind: str) -> None:
        """A fault begins or ends now."""
        time_ = time.monotonic_ns() - self._first
        self.faults.append(Event(time=time_, name=name, node=broker, cause=kind))

    def status(self) -> ClusterStatus:
        """Which processes run, and what ZooKeeper says of them."""
        return self.cluster.status()

    # ---- the end

    def end(self) -> Trace:
        """What the clients did so far, and what the brokers recorded, as a trace."""
        with self._lock:
            done = sorted(self.operations, key=lambda operation: (operation.invoke_time, operation.op_id))
        trace = Trace(
            trace_id=self.plan.seed,
            plan="",
            seed=self.plan.seed,
            target="processes",
            software_version=__version__,
            profile=self.plan.profile,
            operations=tuple(done),
            events=self._events(),
        )
        return evolve(trace, digest=digest_of(trace))

    def _events(self) -> tuple[Event, ...]:
        """Of the brokers, and the faults. None where the directory has those of an earlier run: what its
        brokers knew then is not known here."""
        if self._earlier:
            return ()
        directories = [self.cluster.directory / f"broker-{broker}" for broker in self.cluster.state.brokers]
        recorded = read_broker_events(directories, self._first)
        return tuple(sorted((*recorded, *self.faults), key=lambda event: event.time)) if recorded else ()


def _create_topics(processes: ProcessCluster, plan: Plan) -> None:
    """Round robin, each partition shifted by one; on return every partition has a leader."""
    brokers = sorted(processes.state.brokers)
    partitions = 0
    with BlockingZooKeeper(processes.state.zookeeper) as zookeeper:
        for topic in plan.cluster.topics:
            assignment = {
                number: tuple(
                    brokers[(number + place) % len(brokers)] for place in range(topic.replication_factor)
                )
                for number in range(topic.partitions)
            }
            zookeeper.ask(Create(znodes.topic_path(topic.name), znodes.encode_topic(assignment)))
            partitions += topic.partitions
    deadline = time.monotonic() + LED_S
    while True:
        status = processes.status()
        if status.partitions >= partitions and not status.leaderless:
            return
        if time.monotonic() > deadline:
            raise EnvironmentError_(
                expected=f"{partitions} partitions with leaders within {LED_S:g} s",
                seen=f"{status.leaderless} of {status.partitions} without",
                where=str(processes.directory),
            )
        time.sleep(0.05)
