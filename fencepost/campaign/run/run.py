"""One run, from plan to trace: set-up, safety phase, heal, liveness phase, final reads.

Owns the phases and their bounds. The story in order:

1. set-up    brokers start, a controller is elected, topics are created and get leaders
2. safety    clients work while faults begin and end
3. heal      every fault ends, every broker runs
4. liveness  registered brokers, reassignments and deletions done, leaders, full ISRs, no operation hanging,
             one acknowledged append per partition: within
             a bound of virtual time, which begins again while a slow follower or group still gets records.
             A network that loses, doubles or holds back messages by chance has no bound: if it is exceeded,
             that chance ends, and the wait is repeated once
5. final     one client reads every partition to its end; what the brokers' files hold is written into the
             trace
"""

from collections.abc import Callable, Iterable

import msgspec
from attrs import define, evolve, field

import fencepost
from fencepost.audit.source import ShownPath
from fencepost.audit.survey import AuditRequest
from fencepost.campaign.observed.claims import derive_claims
from fencepost.campaign.observed.files import FilesAtEnd
from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.campaign.run.diagnosis import diagnose
from fencepost.campaign.run.group_workload import CONSUMER_FUNCTIONS, uses_groups
from fencepost.campaign.run.observed_groups import with_group_facts
from fencepost.campaign.run.rounds import Rounds
from fencepost.campaign.run.workload import Workload
from fencepost.impl.client.attempt import READ_COMMITTED
from fencepost.impl.core.broker_context import INTERNAL_TOPICS
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, GetChildren
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.digest import digest_of_rows
from fencepost.traces.events import Name
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import Plan, PlannedOperation
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.rows import Rows, rows_of
from fencepost.traces.trace import Trace

SETUP_MS = 60_000
"""Bound of the set-up, without any fault: far above a session time-out and an election."""
FAILING = ("io_error", "disk_full")
"""Kinds of fault by which calls of a disk fail."""
STABLE_STEP_MS = 500
"""How often the run looks whether transactions are decided."""
STEP_MS = 50
"""How often a wait looks whether it is over."""
FINAL_OPERATION = 1_000_000
"""Op ids above this and above those of the plan are the run's own: probes and final reads."""
PROBE = "probe"
"""The key of the run's own appends to a compacted topic."""
MOST_ASKED_MS = 60_000
"""Bound of the last round: brokers that run answer within milliseconds, the others are given up."""
MOST_FILES_BYTES = 1 << 40
"""No bound of its own: a simulated disk is in memory, and an embedded cluster has its own bound."""
MAX_FINAL_READS = 10_000
"""Final reads of one partition: each returns at least one record or ends the reading."""


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
class Run:
    """A run under way. next_op_id: of the run's own operations. reader: the process of the run's own
    operations, once the plan is complete (a live one grows until it is healed). rows: the trace as canonical
    rows, when the run is over."""

    plan: Plan
    cluster: "WorkingCluster" = field(init=False)
    workload: Workload = field(init=False)
    rounds: Rounds = field(init=False)
    reader: int = field(init=False)
    rows: Rows = field(init=False)
    next_op_id: int = FINAL_OPERATION
    stuck: str = ""
    """What was waited for and never came, before the first fault or after the last."""
    settled: bool = False
    """Whether the network has stopped to lose, double and hold back messages by chance."""
    most_copied: int = 0
    """The most records that all replicas of all partitions held together, by their log end offsets."""

    def __attrs_post_init__(self) -> None:
        planned = max((operation.op_id for operation in self.plan.operations), default=0)
        self.next_op_id = max(self.next_op_id, planned)
        self.cluster = self._make_cluster()
        self.workload = self.cluster.workload = Workload(self.cluster)
        self.rounds = Rounds(self.cluster, self.workload.groups)

    def _make_cluster(self) -> "WorkingCluster":
        return WorkingCluster(plan=self.plan)

    # ---- the story

    def run(self) -> Trace:
        """All phases."""
        if not self._set_up():
            self._read_files()
            return self._trace()
        self._safety()
        return self.end_of_run()

    def end_of_run(self) -> Trace:
        """The phases after the safety phase. Returns the whole run."""
        if self._heal_and_live():
            self._final_reads()
        self.rounds.begin(last=True)
        self._wait(self.rounds.over, MOST_ASKED_MS)
        self._read_files(judged=not self.stuck)
        return self._trace()

    def _set_up(self) -> bool:
        world = self.cluster.world
        for broker in self.cluster.broker_ids:
            world.start(broker)
        if not self._wait(self._registered, SETUP_MS):
            return self._never("every broker registers before the first fault")
        for topic in self.plan.cluster.topics:
            if not topic.created_later:
                self.cluster.create_topic(topic)
        planned = (each for each in self.plan.operations if each.function not in CONSUMER_FUNCTIONS)
        for process in sorted({operation.process for operation in planned}):
            self.workload.add_process(process)
        if not self._wait(self._led, SETUP_MS):
            return self._never("every partition gets a leader before the first fault")
        return True

    def _safety(self) -> None:
        cluster, scheduler = self.cluster, self.cluster.world.scheduler
        cluster.note(Name.PHASE, cause="safety")
        start = cluster.now
        self.workload.schedule(self.plan.operations)
        for fault in self.plan.faults:
            scheduler.after(fault.at_ms * MILLISECOND, cluster.meet, fault)
        self.rounds.schedule()
        cluster.world.run_until(start + self.plan.safety_ms * MILLISECOND)
        self.rounds.in_calm()

    def _heal_and_live(self) -> bool:
        self.cluster.note(Name.PHASE, cause="heal")
        self.cluster.heal()
        self.workload.drop_waiting()
        self.cluster.note(Name.PHASE, cause="liveness")
        self.reader = max((operation.process for operation in self.plan.operations), default=-1) + 1
        self.workload.add_process(self.reader)
        self.workload.groups.heal(self.reader + 1)
        waits: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("no broker is about to stop", lambda: not self.cluster.stopping),
            ("every broker is registered", self._registered),
            ("every reassignment has ended", self._reassigned),
            ("every deletion of a topic has ended", self._nothing_in(znodes.DELETE_TOPICS)),
            ("every partition has a live leader", self._led),
            ("every ISR is full", self._in_sync),
            ("no operation hangs", self.workload.idle),
        )
        if not self._waited(waits):
            return False
        if strays := self._strays():
            for broker in strays:
                self.cluster.restart_in_order(broker)
            if not self._waited(waits):
                return False
        self.rounds.begin()
        ends: dict[tuple[str, int], int] = {}
        for topic, partition in self._partitions_of_clients():
            done = self._do(topic, partition, "append")
            if not done:
                return self._never(f"an append to {topic}-{partition} is acknowledged")
            ends[topic, partition] = done.offset or 0
        if not self._caught_up(ends):
            late = self.workload.groups.lagging(ends, self._deleted())[0]
            return self._never(f"group {late} gets what is appended")
        return self._transactions_end()

    def _strays(self) -> list[int]:
        """Brokers of which ZooKeeper says that they were gone when a reassignment left them out, and whose
        process has not ended since. As in Kafka, nobody ever tells them (docs/explanation/zoo.md, "a stray
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

    def _waited(self, waits: Iterable[tuple[str, Callable[[], bool]]]) -> bool:
        """Whether each of these came, in this order."""
        for name, reached in waits:
            if not self._wait_live(reached, self._copied):
                return self._never(name)
        return True

    def _transactions_end(self) -> bool:
        """Whether every transaction is decided within its time-out: what hangs would keep readers of
        committed records from all that comes after it."""
        if not self.transactional:
            return True
        bound_ms = self.plan.liveness_ms + self.plan.transform.transaction_timeout_ms
        for topic, partition in self._partitions_of_clients():
            deadline = self.cluster.now + bound_ms * MILLISECOND
            while not self._is_stable(topic, partition):
                if self.cluster.now >= deadline:
                    return self._never(f"every transaction in {topic}-{partition} is decided")
                self._wait(lambda: False, STABLE_STEP_MS)
        return True

    def _is_stable(self, topic: str, partition: int) -> bool:
        """Whether readers of committed records get to the end: not more than the one that is read here."""
        end = self._do(topic, partition, "list_offsets")
        stable = self._do(topic, partition, "list_offsets", READ_COMMITTED)
        return end is not None and stable is not None and (stable.offset or 0) >= (end.offset or 0)

    @property
    def transactional(self) -> bool:
        """Whether processes write in transactions."""
        return any(operation.function == "transform" for operation in self.plan.operations)

    def _never(self, what: str) -> bool:
        """Record what never came, and what there is instead. Never true."""
        self.stuck = what
        diagnosis = diagnose(self.cluster, self._partitions())
        self.cluster.note(Name.LIVENESS_FAILED, cause=what, detail=msgspec.to_builtins(diagnosis))
        return False

    def _caught_up(self, ends: dict[tuple[str, int], int]) -> bool:
        """Whether each group gets what is at these offsets."""
        groups = self.workload.groups
        return self._wait_live(
            lambda: not groups.lagging(ends, self._deleted()), lambda: dict(groups.reached)
        )

    def _deleted(self) -> dict[tuple[str, int], int]:
        """The offset below which retention deleted, by topic and partition."""
        return {place: known.forgotten for place, known in self.cluster.observed_state.partitions.items()}

    def _copied(self) -> int:
        """How many records all replicas held together at most so far: each follower gets them once, however
        often it cuts its log."""
        partitions = self.cluster.observed_state.partitions.values()
        held = sum(replica.end for known in partitions for replica in known.replicas.values())
        self.most_copied = max(self.most_copied, held)
        return self.most_copied

    def _settle(self) -> bool:
        """Let the network's chance end, and what clients do by choice; whether there was any."""
        if self.settled:
            return False
        self.settled = True
        network = self.plan.network
        odd = network.loss_ppm or network.duplicate_ppm or network.reorder_ppm or network.late_ppm
        if not (self.workload.groups.settle() or odd):
            return False
        self.cluster.note(Name.PHASE, cause="settled")
        self.cluster.world.network.settle()
        return True

    def _final_reads(self) -> None:
        self.cluster.note(Name.PHASE, cause="final")
        self.cluster.strong = True
        for argument in ("", READ_COMMITTED) if self.transactional else ("",):
            for topic, partition in self._partitions_of_clients():
                if not self._read_to_end(topic, partition, argument):
                    self._never(f"{topic}-{partition} is read to its end")
                    return

    def _read_to_end(self, topic: str, partition: int, argument: str) -> bool:
        """Learn an end that may be trusted, then poll up to it. argument: READ_COMMITTED for a reader of
        committed records, who passes what he is not shown."""
        listed = None
        for _ in range(MAX_FINAL_READS):
            listed = self._do(topic, partition, "list_offsets")
            if listed is None or listed.strong:
                break
        if listed is None or not listed.strong:
            return False
        end = listed.offset or 0
        for _ in range(MAX_FINAL_READS):
            read = self._do(topic, partition, "poll", argument)
            if read is None:
                return False
            if (read.offset or 0) >= end or (read.records and read.records[-1].offset + 1 >= end):
                return True
        return False

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
        operations = self.cluster.finished_operations(self.workload.undecided())
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

    # ---- the run's own operations

    def _do(self, topic: str, partition: int, function: str, argument: str = "") -> Operation | None:
        """Try until one operation of this kind succeeds; None if none did within the bound, nor after all had
        settled."""
        done = self._try(topic, partition, function, argument)
        if done is None and self._settle():
            return self._try(topic, partition, function, argument)
        return done

    def _try(self, topic: str, partition: int, function: str, argument: str) -> Operation | None:
        deadline = self.cluster.now + self.plan.liveness_ms * MILLISECOND
        while self.cluster.now < deadline:
            self.next_op_id += 1
            operation = PlannedOperation(
                op_id=self.next_op_id,
                process=self.reader,
                at_ms=0,
                function=function,
                topic=topic,
                partition=partition,
                key=PROBE if function == "append" and self._keyed(topic) else "",
                argument=argument,
            )
            self.workload.schedule((operation,))
            self._wait(self.workload.idle, self.plan.liveness_ms)
            done = self.workload.last.get(self.reader)
            if done is not None and done.op_id == operation.op_id and done.outcome is Outcome.OK:
                return done
        return None

    def _keyed(self, topic: str) -> bool:
        planned = (options for options in self.plan.cluster.topics if options.name == topic)
        return topic in self.cluster.observed_state.compacted_topics or any(
            "compact" in options.cleanup_policy for options in planned
        )

    # ---- waits

    def _wait_live(
        self, reached: Callable[[], bool], progress: Callable[[], object], step_ms: int = STEP_MS
    ) -> bool:
        """Wait within the bound of the liveness phase; again while `progress` changes; and once more if
        anything had to settle."""
        while True:
            before = progress()
            if self._wait(reached, self.plan.liveness_ms, step_ms):
                return True
            if progress() == before and not self._settle():
                return False

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

    def _partitions_of_clients(self) -> list[tuple[str, int]]:
        """Without those that only brokers write."""
        return [key for key in self._partitions() if key[0] not in INTERNAL_TOPICS]

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
    """A cluster whose clients go on working: the workload hears of every completion."""

    workload: Workload

    def completed(self, node: int, operation: Operation) -> None:
        """Record the operation, then let its process go on.

        Args:
            node: the client's host.
            operation: the complete row.
        """
        super().completed(node, operation)
        self.workload.on_completed(self.operations[-1])
