"""A simulated cluster that a program drives step by step: operations and faults happen when they are asked
for, in virtual time.

    cluster = SimulatedCluster.start(Plan(seed=1))
    cluster.append("t")
    cluster.fault("crash", "leader of t-0", duration_ms=3_000)
    cluster.pass_time(5_000)
    assert cluster.poll("t").records
    trace = cluster.end()

Owns: the safety phase of a run whose plan is not known before. Must not know how a run heals and ends
(run.py), or how it is judged. What was asked for is written down as a plan, so that the trace carries one,
which replays and shrinks like any other. An operation begins at a whole millisecond; where something else of
the cluster happens in the very same nanosecond, a replay may order the two differently.
"""

from typing import Any, ClassVar

from attrs import define, evolve, field

from fencepost.run.faults.roles import parse_role
from fencepost.run.faults.table import FAULTS
from fencepost.run.simulated.run import Run
from fencepost.run.story import at_once
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.errors import FencepostError, PlanError, unknown_name
from fencepost.traces.events import Name
from fencepost.traces.operations import Operation
from fencepost.traces.plan import ASK_ALWAYS, ASK_HEALED, Fault, Plan, PlannedOperation
from fencepost.traces.trace import Trace

LONGEST_WAIT_MS = 600_000
"""Of virtual time for one operation: far above any delivery time-out that makes sense."""


@define(eq=False, kw_only=True, repr=False)
class SimulatedCluster:
    """A run that is asked for one operation and one fault at a time."""

    # The run under way.
    run: Run
    # The checks for its trace; none named: those by default.
    checks: ClassVar[tuple[str, ...]] = ()
    # Virtual time at which the safety phase began.
    began: int = field(default=0, init=False)
    # What was asked for so far.
    operations: list[PlannedOperation] = field(factory=list, init=False)
    faults: list[Fault] = field(factory=list, init=False)
    # None until `end`.
    trace: Trace | None = field(default=None, init=False)

    @classmethod
    def start(cls, plan: Plan) -> "SimulatedCluster":
        """Brokers run, topics have leaders. The plan's options hold; it must not plan anything. Raises
        PlanError, FencepostError."""
        if plan.operations or plan.faults:
            raise PlanError(
                expected="a plan without operations and faults",
                seen=f"{len(plan.operations)} operations and {len(plan.faults)} faults",
                where="a simulated cluster",
                hint="ask the cluster for them, or give the whole plan to fencepost.run.simulated.run",
            )
        if plan.asking == ASK_ALWAYS:  # nobody knows where the middle of its safety phase is
            plan = evolve(plan, asking=ASK_HEALED)
        cluster = cls(run=Run(plan))
        if not at_once(cluster.run.set_up()):
            raise FencepostError(
                expected="a cluster that comes up",
                seen=f"never that {cluster.run.stuck}",
                where="a simulated cluster",
                hint="are the plan's time-outs too short for its network?",
            )
        cluster.run.begin_phase("safety")
        cluster.began = cluster.run.cluster.now
        return cluster

    def __repr__(self) -> str:
        done = f"{len(self.operations)} operations and {len(self.faults)} faults in {self.now_ms} ms"
        return f"<SimulatedCluster of {self.run.plan.cluster.brokers} brokers, {done}>"

    # ---- time

    @property
    def now_ms(self) -> int:
        """Virtual milliseconds since the beginning, begun ones included."""
        return -((self.began - self.run.cluster.now) // MILLISECOND)

    def pass_time(self, duration_ms: int) -> None:
        """Let so much virtual time pass."""
        self._until(self.now_ms + duration_ms)

    def _until(self, at_ms: int) -> None:
        self._check_open()
        self.run.cluster.world.run_until(self.began + at_ms * MILLISECOND)

    def _check_open(self) -> None:
        if self.trace is not None:
            raise FencepostError(
                expected="a cluster that has not ended",
                seen="one that was judged",
                where="a simulated cluster",
            )

    # ---- operations

    def append(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Append a batch and wait for its outcome, whatever it is.

        Args:
            topic: the topic's name.
            partition: its number.
            options: records=1, acks=-1, key="", process=0.

        Returns:
            The complete row.
        """
        return self.finish(self.begin("append", topic, partition, **options))

    def poll(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Read on from the position of a process, and wait for the answer.

        Args:
            topic: the topic's name.
            partition: its number.
            options: process=0.

        Returns:
            The complete row.
        """
        return self.finish(self.begin("poll", topic, partition, **options))

    def list_offsets(self, topic: str = "t", partition: int = 0, **options: Any) -> Operation:
        """Ask for the end of a partition (process=0), and wait for the answer."""
        return self.finish(self.begin("list_offsets", topic, partition, **options))

    def begin(self, function: str, topic: str = "t", partition: int = 0, **options: Any) -> int:
        """Begin an operation, or let it wait until its process is free, and go on; answers its op id.
        options: fields of a planned operation."""
        self._until(self.now_ms)
        try:
            planned = PlannedOperation(
                op_id=len(self.operations) + 1,
                process=options.pop("process", 0),
                at_ms=self.now_ms,
                function=function,
                topic=topic,
                partition=partition,
                **options,
            )
        except (TypeError, ValueError) as error:
            raise PlanError(
                expected="the fields of an operation",
                seen=str(error),
                where=f"{function} of a simulated cluster",
            ) from None
        if planned.process not in self.run.clients:
            at_once(self.run.start_client(planned.process))
        self.operations.append(planned)
        self.run.schedule(evolve(planned, at_ms=0))
        return planned.op_id

    def finish(self, op_id: int) -> Operation:
        """Let time pass until an operation has an outcome, and answer it."""
        for _ in range(LONGEST_WAIT_MS):
            for operation in reversed(self.run.cluster.operations):
                if operation.op_id == op_id:
                    return operation
            self.pass_time(1)
        raise FencepostError(
            expected=f"an outcome within {LONGEST_WAIT_MS} ms", seen="none", where=f"operation {op_id}"
        )

    # ---- faults

    def fault(
        self, kind: str, target: str, *, duration_ms: int = 1_000, other: str = "", parameter: int = 0
    ) -> bool:
        """Begin a fault (kinds and targets: docs/reference/plans.md); whether it began: its target may not
        exist now, or the plan's budget may forbid it."""
        if kind not in FAULTS:
            raise PlanError(
                expected=f"one of {', '.join(FAULTS)}",
                seen=unknown_name(kind, FAULTS),
                where="a fault of a simulated cluster",
            )
        if FAULTS[kind].on == "broker":
            parse_role(target)
        self._until(self.now_ms)
        fault = Fault(
            fault_id=len(self.faults),
            kind=kind,
            at_ms=self.now_ms,
            duration_ms=duration_ms,
            target=target,
            other=other,
            parameter=parameter,
        )
        self.faults.append(fault)
        before = len(self.run.cluster.events)
        self.run.cluster.begin(fault)
        events = self.run.cluster.events[before:]
        return not any(event.name is Name.FAULT_SKIPPED for event in events)

    # ---- the end

    @property
    def plan(self) -> Plan:
        """What was asked for so far, as a plan."""
        if self.trace is not None:
            return self.run.plan
        return evolve(
            self.run.plan,
            safety_ms=max(1, self.now_ms),
            operations=tuple(self.operations),
            faults=tuple(self.faults),
        )

    def end(self) -> Trace:
        """Heal the cluster, demand progress, read everything to its end; answers the trace. Ending again
        answers the same."""
        if self.trace is None:
            plan = self.plan
            self._until(plan.safety_ms)
            self.run.extend(plan)
            self.trace = self.run.end_of_run()
        return self.trace
