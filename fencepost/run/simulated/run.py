"""One run in the simulated world, from plan to trace.

Owns what differs there from other systems: the waits in virtual time, what must hold once the faults are
over (brokers are registered, reassignments and deletions done, leaders, full ISRs, no operation hanging) and
the files at the end. Must not know the order of a run (run/story.py). Each wait has a bound of virtual time,
which begins again while a slow follower or group still gets records. A network that loses, doubles or holds
back messages by chance has no bound: if it is exceeded, that chance ends, and the wait is repeated once.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from attrs import define, evolve, field

import fencepost
from fencepost.audit.source import ShownPath
from fencepost.audit.survey import AuditRequest
from fencepost.impl.core.core_interface import Invoke
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, GetChildren
from fencepost.record.claims import derive_claims
from fencepost.run.files_at_end import FilesAtEnd
from fencepost.run.group_processes import uses_groups
from fencepost.run.operation_queues import Queues, undecided
from fencepost.run.simulated.cluster_of_run import FaultyCluster
from fencepost.run.simulated.diagnosis import diagnose
from fencepost.run.simulated.observed_groups import with_group_facts
from fencepost.run.simulated.rounds import SimulatedRounds
from fencepost.run.simulated.simulated_members import SimulatedMembers
from fencepost.run.story import Story, at_once, reader_of
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.canonical_rows import Rows, rows_of
from fencepost.traces.digest import digest_of_rows
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace

SETUP_MS = 60_000
"""Bound of the set-up, without any fault: far above a session time-out and an election."""
FAILING = ("io_error", "disk_full")
"""Kinds of fault by which calls of a disk fail."""
STEP_MS = 50
"""How often a wait looks whether it is over."""
FINAL_OPERATION = 1_000_000
"""Op ids above this and above those of the plan are the run's own: probes and final reads."""
MOST_FILES_BYTES = 1 << 40
"""No bound of its own: a simulated disk is in memory, and an embedded cluster has its own bound."""


def run(plan: Plan) -> Trace:
    """Run the plan in the simulated world. Deterministic: the same plan gives the same digest on every
    machine.

    Raises PlanError for a plan that asks for something impossible (an unknown fault, bug or process).
    """
    return Run(plan).run()


def run_with_rows(plan: Plan) -> tuple[Trace, Rows]:
    """`run`, and the trace as canonical rows, of which its digest was taken: for a caller that keeps it."""
    under_way = Run(plan)
    trace = under_way.run()
    return trace, under_way.rows


@define(eq=False)
class Run(Story):
    """A run in the simulated world. Its plan may grow until it is healed."""

    cluster: "WorkingCluster" = field(init=False)
    record: "WorkingCluster" = field(init=False)
    members: SimulatedMembers = field(init=False)
    # The client host of each process.
    clients: dict[int, int] = field(factory=dict, init=False)
    rounds: SimulatedRounds = field(init=False)
    # The trace as canonical rows, when the run is over.
    rows: Rows = field(init=False)
    # Whether the network has stopped to lose, double and hold back messages by chance.
    settled: bool = field(init=False, default=False)
    # The most records that all replicas of all partitions held together, by their log end offsets.
    most_copied: int = field(init=False, default=0)
    # How many of each partition a wait for copies is about: its log end when the first such wait began.
    to_copy: dict[tuple[str, int], int] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.next_op_id = max(self.next_op_id, FINAL_OPERATION)
        self.cluster = self._make_cluster()
        self.record, self.cluster.on_completed = self.cluster, self._completed
        self.queues = Queues(plan=self.plan, begin=self._begin, alone=lambda operation: self.cluster.healing)
        self.members = SimulatedMembers.of(self.cluster)
        self.rounds = SimulatedRounds.of(self.cluster, self.members)

    def _make_cluster(self) -> "WorkingCluster":
        return WorkingCluster(plan=self.plan)

    # ---- the story

    def run(self) -> Trace:
        """All phases."""
        at_once(self.go_through())
        return self._ended()

    def end_of_run(self) -> Trace:
        """The phases after the safety phase. Returns the whole run."""
        at_once(self.after_the_faults())
        return self._ended()

    def _ended(self) -> Trace:
        self._read_files(judged=self.over and not self.stuck)
        return self._trace()

    def extend(self, plan: Plan) -> None:
        """Take a plan that says what was asked for meanwhile."""
        self.plan = self.cluster.plan = plan
        self.reader = reader_of(plan)

    async def reach(self) -> str:
        """Start the brokers; what never came."""
        for broker in self.cluster.broker_ids:
            self.cluster.world.start(broker)
        came = self._wait(self._registered, SETUP_MS)
        return "" if came else "every broker registers before the first fault"

    async def create(self, topic: TopicOptions) -> None:
        """Make a topic of the plan."""
        self.cluster.create_topic(topic)

    async def start_client(self, process: int) -> None:
        """Start the client of a process."""
        self.clients[process] = self.cluster.add_client(process)

    async def led(self) -> bool:
        """Whether every partition got a leader within the set-up."""
        return self._wait(self._led, SETUP_MS)

    def after(self, delay: int, call: Callable[..., object], *arguments: Any) -> None:
        """Call something later.

        Args:
            delay: nanoseconds from now.
            call: what is called.
            arguments: with what.
        """
        self.cluster.world.scheduler.after(delay, call, *arguments)

    def strike(self, fault: Fault) -> None:
        """A fault's time has come."""
        self.cluster.meet(fault)

    @property
    def calm(self) -> bool:
        """Whether no fault is active."""
        return not self.cluster.active

    async def end_faults(self) -> bool:
        """End every fault, and let every broker run; `healed` waits for what comes of it."""
        self.cluster.heal()
        return True

    async def healed(self) -> bool:
        """Whether the cluster is whole again, also after its strays were restarted."""
        if not await self._whole():
            return False
        if strays := self._strays():
            for broker in strays:
                self.cluster.restart_in_order(broker)
            return await self._whole()
        return True

    async def final_reads(self) -> None:
        """Read each partition to its end, and from now on trust the ends."""
        self.cluster.strong = True
        await super().final_reads()

    def _begin(self, operation: PlannedOperation) -> None:
        self.cluster.invoke(operation)
        self.cluster.world.hosts[self.clients[operation.process]].accept(Invoke(operation))

    def _completed(self, operation: Operation) -> None:
        """A process is free again; a consumer goes on by itself."""
        if operation.process in self.members.incarnations:
            self.members.saw(operation)
            return
        self.queues.completed(operation)
        self.queues.next(operation.process)

    def undecided(self) -> dict[int, Operation]:
        """The rows of pipelined appends under way, by op id."""
        return undecided(self.cluster.world.hosts[node].core for node in self.clients.values())

    async def _whole(self) -> bool:
        """Whether each of these came, in this order."""
        waits: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("no broker is about to stop", lambda: not self.cluster.stopping),
            ("every broker is registered", self._registered),
            ("every reassignment has ended", self._reassigned),
            ("every deletion of a topic has ended", self._nothing_in(znodes.DELETE_TOPICS)),
            ("every partition has a live leader", self._led),
            ("every ISR is full", self._in_sync),
            ("no operation hangs", lambda: self.queues.idle),
        )
        for name, reached in waits:
            if not await self.live(reached, self._copied):
                return await self.never(name)
        return True

    def _strays(self) -> list[int]:
        """Brokers of which ZooKeeper says that they were gone when a reassignment left them out, and whose
        process has not ended since. As in Kafka, nobody ever tells them (docs/spec/bugs.md, "a stray
        replica"), so that operators restart them, and so does the run."""
        left_out: dict[int, None] = {}
        gone, replicas = set[int](), dict[tuple[str, int], tuple[int, ...]]()
        for event in self.cluster.events:
            if event.name is Name.BROKER_ZNODE:
                (gone.add if event.broker_epoch < 0 else gone.discard)(event.node)
            elif event.name is Name.BROKER_STARTED:
                left_out.pop(event.node, None)
            elif event.name is Name.ASSIGNMENT:
                key = event.topic or "", event.partition
                before, replicas[key] = replicas.get(key, ()), event.replicas
                if event.replicas:
                    left_out.update(dict.fromkeys(gone & (set(before) - set(event.replicas))))
        return sorted(left_out)

    # ---- of any story

    @property
    def now(self) -> int:
        """Virtual time."""
        return self.cluster.now

    async def until(self, reached: Callable[[], bool], bound_ms: int) -> bool:
        """Let virtual time pass until it holds; whether it does.

        Args:
            reached: asked again and again.
            bound_ms: the most time that may pass, milliseconds.
        """
        return self._wait(reached, bound_ms)

    async def trusted(self, listed: Operation) -> bool:
        """Whether this end may be trusted."""
        return listed.strong

    async def never(self, what: str) -> bool:
        """Record what never came, and what there is instead. Never true."""
        self.stuck = what
        diagnosis = diagnose(self.cluster, self._partitions())
        self.cluster.note(Name.LIVENESS_FAILED, cause=what, detail=msgspec.to_builtins(diagnosis))
        return False

    def places(self) -> list[tuple[str, int]]:
        """The partitions that exist, without those that only brokers write."""
        return [key for key in self._partitions() if key[0] not in INTERNAL_TOPICS]

    def keyed(self, topic: str) -> bool:
        """Whether each record of it needs a key, by the plan or since."""
        return topic in self.cluster.observed_state.compacted_topics or super().keyed(topic)

    def _copied(self) -> int:
        """How many records all replicas held together at most so far, of those that were there when the first
        wait began: each follower gets them once, however often it cuts its log. Coordinators may write for
        ever while brokers fall again and again."""
        held = 0
        for key, known in self.cluster.observed_state.partitions.items():
            ends = [replica.end for replica in known.replicas.values()]
            wanted = self.to_copy.setdefault(key, max(ends, default=0))
            held += sum(min(end, wanted) for end in ends)
        self.most_copied = max(self.most_copied, held)
        return self.most_copied

    def settle(self) -> bool:
        """Let the network's chance end, and what clients do by choice; whether there was any."""
        if self.settled:
            return False
        self.settled = True
        network = self.plan.network
        odd = network.loss_ppm or network.duplicate_ppm or network.reorder_ppm or network.late_ppm
        if not (self.members.settle() or odd):
            return False
        self.cluster.note(Name.PHASE, cause="settled")
        self.cluster.world.network.settle()
        return True

    def _disk_failed(self) -> bool:
        """Whether any call of a disk may have failed: a write that did may have left a part of it."""
        began = (event.cause for event in self.cluster.events if event.name is Name.FAULT_BEGAN)
        return any(cause in FAILING for cause in began)

    def _read_files(self, *, judged: bool = False) -> None:
        """Record what the files on the brokers' disks hold, as they are now: also of a broker that is down.
        What a disk made of them that lied, rotted, failed or lost its power is nobody's mistake. judged:
        whether what is wrong in them is reported."""
        self.cluster.note(Name.PHASE, cause="end")
        hosts, seen = self.cluster.world.hosts, self.cluster.observed_state
        disks = [ShownPath(hosts[broker].disk, f"broker-{broker}") for broker in self.cluster.broker_ids]
        planned = (topic.name for topic in self.plan.cluster.topics if "compact" in topic.cleanup_policy)
        request = AuditRequest(
            places=tuple(zip(map(str, self.cluster.broker_ids), disks, strict=True)),
            compacted=(*planned, *sorted(seen.compacted_topics)),
            in_use=True,
            assigned={key: frozenset(map(str, found)) for key, found in seen.assignments.items()},
        )
        files = FilesAtEnd(
            request=request,
            judged=judged and not (seen.power_lost or seen.lied or self._disk_failed()),
            compared=False,
            recorded={
                (*key, node): (replica.high_watermark, replica.start)
                for key, partition in seen.partitions.items()
                for node, replica in partition.replicas.items()
            },
            most_bytes=MOST_FILES_BYTES,
        )
        for event in files.events((), self.cluster.now):
            self.cluster.recorded(event)

    def _trace(self) -> Trace:
        operations = self.cluster.history(self.undecided())
        if uses_groups(self.plan):
            operations = with_group_facts(self.plan, operations, self.cluster.events)
        trace = Trace(
            trace_id=self.plan.seed,
            plan=plan_to_json(self.plan),
            seed=self.plan.seed,
            software_version=fencepost.__version__,
            profile=self.plan.profile,
            claims=derive_claims(self.plan, self.cluster.observed_state, operations, stuck=bool(self.stuck)),
            concurrent_processes=self.plan.client.producer.pipelined or uses_groups(self.plan),
            operations=operations,
            events=tuple(self.cluster.events),
        )
        rows = rows_of(trace)
        digest = digest_of_rows(rows)
        self.rows = rows.with_digest(digest)
        return evolve(trace, digest=digest)

    # ---- waits

    def _wait(self, reached: Callable[[], bool], bound_ms: int, step_ms: int = STEP_MS) -> bool:
        """Run until `reached`, at most so long; returns whether it was."""
        world = self.cluster.world
        deadline = world.now + bound_ms * MILLISECOND
        while not reached():
            if world.now >= deadline:
                return False
            world.run_until(min(deadline, world.now + step_ms * MILLISECOND))
        return True

    def _partitions(self) -> list[tuple[str, int]]:
        """Those that exist, in the order of the plan's topics."""
        order = [topic.name for topic in self.plan.cluster.topics]
        assigned = (key for key, replicas in self.cluster.observed_state.assignments.items() if replicas)
        return sorted(assigned, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), key))

    def _reassigned(self) -> bool:
        return not self.cluster.observed_state.reassigning

    def _nothing_in(self, path: str) -> Callable[[], bool]:
        def reached() -> bool:
            listed = self.cluster.world.admin(GetChildren(path))
            return isinstance(listed, Children) and not listed.names

        return reached

    def _registered(self) -> bool:
        listed = self.cluster.world.admin(GetChildren(znodes.BROKER_IDS))
        everybody = sorted(str(broker) for broker in self.cluster.broker_ids)
        return (
            isinstance(listed, Children)
            and sorted(listed.names) == everybody
            and self.cluster.observed_state.controller > 0
        )

    def _led(self) -> bool:
        facts = self.cluster.observed_state
        return all(
            key in facts.partitions
            and facts.partitions[key].leader > 0
            and facts.partitions[key].led_by
            == (facts.partitions[key].leader, facts.partitions[key].leader_epoch)
            for key in self._partitions()
        )

    def _in_sync(self) -> bool:
        assigned, partitions = self.cluster.observed_state.assignments, self.cluster.observed_state.partitions
        return self._led() and all(
            set(partitions[key].isr) == set(assigned[key]) for key in self._partitions()
        )


class WorkingCluster(FaultyCluster):
    """A cluster whose clients go on working: the run hears of every completion."""

    on_completed: Callable[[Operation], None]

    def completed(self, node: int, operation: Operation) -> None:
        """Record the operation, then let its process go on.

        Args:
            node: the client's host.
            operation: the complete row.
        """
        super().completed(node, operation)
        self.on_completed(self.operations[-1])
