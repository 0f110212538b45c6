"""The faults of a run against a real system, from their onset to their end.

Owns which broker is held by which fault, and that everything is ended and every broker runs afterwards. Must
not know the kinds of fault (run/faults/table.py), clients or phases. The system's verbs run in threads,
because they wait for processes.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from fencepost.record.observed_state import ObservedState
from fencepost.run.faults.kind import Real, RealHit, Topic
from fencepost.run.faults.roles import follows, resolve
from fencepost.run.faults.table import REAL_FAULTS
from fencepost.systems.apache_kafka.administration import Administration
from fencepost.systems.system import System
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Fault, Plan

GONE_POLL_S = 0.05
BEGUN_POLL_S = 0.01
NOBODY = -1
MILLISECONDS = 1_000
MOST_AGAIN = 3
ENDED = "broker_ended_by_itself"
"""The cause of a mark."""
FOLLOWED = (Name.APPENDED, Name.TRANSACTION_PHASE)
"""What a fault may follow, as clients see it: an append was acknowledged; one was in a transaction, which is
open, and nobody has decided it yet."""
PATIENCE_S = 10.0
"""How long a controller is looked for: a run lasts a few seconds, and one that has none meanwhile has
refused."""
REQUEST_S = 5
Note = Callable[..., None]
"""Takes an event down: its name, and node, cause and detail by name."""


@define(eq=False)
class _Waiting:
    """A fault that follows an append."""

    fault: Fault
    # When it began to wait.
    since: int
    # Done once it may begin.
    came: "asyncio.Future[None]"


@define(eq=False, kw_only=True)
class Striker:
    """Carries out the faults of one plan."""

    plan: Plan
    system: System
    # Roles are resolved by it.
    state: ObservedState
    note: Note
    # Of the run, in the cluster.
    topic: str = ""
    # The cluster's name of each topic, by the plan's.
    names: Mapping[str, str] = field(factory=dict)
    # Of the run's partitions, in each broker's log directory.
    folders: tuple[str, ...] = ()
    # Brokers that a fault has stopped, and which one.
    _held: dict[int, Fault] = field(factory=dict, init=False)
    # Faults that hold no broker and have begun, by id.
    _lasting: dict[int, RealHit] = field(factory=dict, init=False)
    # Brokers that may have ended their process because of a fault, or in the start after it.
    _struck: set[int] = field(factory=set, init=False)
    # How often each was started because it had ended by itself.
    _again: dict[int, int] = field(factory=dict, init=False)
    # Held while a broker is brought back. The task of a fault may be cancelled meanwhile, but its thread goes
    # on: without the lock the broker would be started twice.
    _ending: threading.Lock = field(factory=threading.Lock, init=False)
    _begun: "set[asyncio.Task[None]]" = field(factory=set, init=False)
    # Faults that are due and have not begun yet.
    _beginning: int = field(default=0, init=False)
    # Faults that follow an append.
    _waiting: list[_Waiting] = field(factory=list, init=False)

    @property
    def calm(self) -> bool:
        """Whether no fault has begun that has not ended."""
        return not (self._held or self._lasting or self._beginning)

    def strike(self, fault: Fault) -> None:
        """Let a fault begin now, or after the next append that it follows; it ends by itself."""
        task = asyncio.ensure_future(self._after_append(fault) if fault.follows else self._carry_out(fault))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _after_append(self, fault: Fault) -> None:
        """A fault that follows an append: of those that begin from now on, once the faults that were to begin
        earlier have begun, the first one that is acknowledged."""
        try:
            while self._beginning:
                await asyncio.sleep(BEGUN_POLL_S)
            waiting = _Waiting(fault, time.monotonic_ns(), asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            await waiting.came
        except asyncio.CancelledError:
            self._waiting = [one for one in self._waiting if one.fault is not fault]
            self._skipped(fault, f"no {fault.follows} came")
            raise
        await asyncio.sleep(fault.delay_ms / MILLISECONDS)
        await self._carry_out(fault)

    def acknowledged(self, row: Operation, since: int, name: Name = Name.APPENDED) -> None:
        """An append was acknowledged: the earliest of the faults that follow it begin.

        Parameters:
          row: its row; the topic as the plan names it.
          since: when it was invoked, of time.monotonic_ns.
          name: one of FOLLOWED: what it shows.
        """
        event = Event(
            time=0, name=name, topic=row.topic, partition=-1 if row.partition is None else row.partition
        )
        found = [one for one in self._waiting if one.since <= since and follows(one.fault, event)]
        first = min((one.fault.at_ms for one in found), default=0)
        for waiting in found:
            if waiting.fault.at_ms == first:
                self._waiting.remove(waiting)
                waiting.came.set_result(None)

    def _skipped(self, fault: Fault, reason: str) -> None:
        self.note(Name.FAULT_SKIPPED, cause=fault.kind, detail={"fault": fault.fault_id, "reason": reason})

    def _hit(self, fault: Fault) -> RealHit | None:
        """Who is hit now; None if nobody has the role."""
        hit = partial(
            RealHit, kind=REAL_FAULTS[fault.kind], fault=fault, system=self.system, names=self.names
        )
        if REAL_FAULTS[fault.kind].ask is not None:
            servers = self.system.bootstrap_servers()
            operators = Administration(servers, patience_s=PATIENCE_S, request_s=REQUEST_S)
            return hit(node=NOBODY, topic=self._topic(), operators=operators)
        if REAL_FAULTS[fault.kind].on != "broker":
            return hit(node=NOBODY)
        brokers = len(self.system.brokers)
        node = resolve(fault.target, self.state, brokers)
        if node is None:
            self._skipped(fault, f"nobody is {fault.target}")
            return None
        other = resolve(fault.other, self.state, brokers) if fault.other else None
        return hit(node=node, other=None if other == node else other, folders=self.folders)

    def _topic(self) -> Topic:
        options = self.plan.cluster.topics[0]
        return Topic(
            name=self.topic,
            assigned={
                number: replicas
                for (topic, number), replicas in self.state.assignments.items()
                if topic == options.name
            },
            brokers=self.system.brokers,
            least=max(1, options.min_insync_replicas),
        )

    async def _carry_out(self, fault: Fault) -> None:
        """One fault from its onset to its end. Roles are resolved now."""
        hit = self._hit(fault)
        if hit is None:
            return
        kind = hit.kind
        if kind.holds and hit.node in self._held:
            self._skipped(fault, f"broker {hit.node} is stopped already")
            return
        if kind.holds:
            self._held[hit.node] = fault
        else:
            self._lasting[fault.fault_id] = hit
        if kind.hits_process:
            self._struck.add(hit.node)
        nodes = [hit.node] if kind.on == "broker" else []
        detail = {"fault": fault.fault_id, "target": fault.target, "nodes": nodes}
        self.note(Name.FAULT_BEGAN, node=hit.node, cause=fault.kind, detail=detail)
        try:
            self._beginning += 1
            try:
                await asyncio.to_thread(_verbs(hit).begin, hit)
            finally:
                self._beginning -= 1
            if kind.down:
                await self._gone(hit.node)
            await asyncio.sleep(hit.down_ms / MILLISECONDS)
            await self._end(hit)
        except FencepostError as error:
            self._skipped(fault, f"{error.expected}: {error.seen}")
            self._held.pop(hit.node, None)

    async def _gone(self, node: int) -> None:
        """Wait until the process has ended."""
        while await asyncio.to_thread(self.system.runs, node):
            await asyncio.sleep(GONE_POLL_S)

    async def _end(self, hit: RealHit) -> None:
        await asyncio.to_thread(self._alone, _verbs(hit).end, hit)
        if self._held.get(hit.node) is hit.fault:
            del self._held[hit.node]
        self._lasting.pop(hit.fault.fault_id, None)
        self._ended(hit.node, hit.fault)

    def _ended(self, node: int, fault: Fault) -> None:
        self.note(Name.FAULT_ENDED, node=node, cause=fault.kind, detail={"fault": fault.fault_id})

    async def end_all(self) -> None:
        """End every fault, and let every broker run."""
        begun = list(self._begun)
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        for hit in list(self._lasting.values()):
            await self._end(hit)
        for node in sorted({*self.system.brokers, *self._struck, *self._held}):  # controllers, too
            await asyncio.to_thread(self._alone, self._bring_back, node)
        for node, fault in self._held.items():
            self._ended(node, fault)
        self._held.clear()

    async def start_ended(self) -> None:
        """Start brokers again that ended after a fault had struck them: because their disks failed, or in the
        start itself, as a broker does that loses its session with ZooKeeper there. What is seen is recorded,
        and each is started MOST_AGAIN times; then, and without any fault, one that ended stays down, because
        that is a finding."""
        for broker in sorted(self._struck):
            if self._again.get(broker, 0) < MOST_AGAIN and not await asyncio.to_thread(
                self.system.runs, broker
            ):
                self._again[broker] = self._again.get(broker, 0) + 1
                self.note(Name.MARK, node=broker, cause=ENDED)
                await asyncio.to_thread(self._alone, self.system.restart, broker)

    def _alone(self, call: Callable[..., object], *args: Any) -> None:
        """Call something while no other thread brings a broker back."""
        with self._ending:
            call(*args)

    def _bring_back(self, broker: int) -> None:
        """Let a paused broker go on, and start one that is down. One that was asked to stop gets the time
        that it needs, then it is killed."""
        self.system.resume(broker)
        stopping = self._held.get(broker)
        if stopping is not None and stopping.kind == "clean_restart":
            deadline = time.monotonic() + self.plan.liveness_ms / MILLISECONDS / 4
            while self.system.runs(broker) and time.monotonic() < deadline:
                time.sleep(GONE_POLL_S)
            self.system.kill(broker)
        self.system.restart(broker)


def _verbs(hit: RealHit) -> Real:
    assert hit.kind.real is not None, "a kind that no real system has"
    return hit.kind.real
