"""The base of every machine that drives a simulated cluster: its beginning, its oracles, its end. Subclass it
with rules of your own.

    class Mine(ClusterSteps):
        @rule(wait_ms=st.sampled_from((2, 200, 2_000)))
        def append(self, wait_ms: int) -> None:
            self.begin_operation("append", wait_ms=wait_ms)

        @rule()
        def leader_dies(self) -> None:
            self.fault("crash", "leader of t-0", duration_ms=401)

    TestMine = Mine.TestCase

Owns one example: a cluster that is stepped by calls, the oracles in lockstep with it, the verdict over the
whole trace at the end, and what a failing example leaves behind. Must not know which rules there are.

Between two calls virtual time passes, an even number of milliseconds; durations of faults are odd. So no call
ever falls into the nanosecond in which an earlier fault ends, where a replay of the plan could order the two
differently (run/simulated/simulated_cluster.py): the plan of every example replays to the same digest.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from attrs import evolve
from hypothesis import currently_in_test_context, event, reject
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, Finding, Verdict, by_rank, combine
from fencepost.machines.cluster.found import error_of, explanation, leave
from fencepost.machines.cluster.lockstep import Lockstep
from fencepost.run.simulated.simulated_cluster import SimulatedCluster
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.events import Name
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import (
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    NetworkOptions,
    Plan,
    TopicOptions,
)
from fencepost.traces.trace import Trace

STEP_MS = 2
"""What passes after each call at least; every wait is a multiple of it."""
WARM, MOST_TRIES = 9, 5
"""The client of the first record, and how often it tries."""
LONGEST_UNTIL_MS = 8_000
"""How long a step waits for an event: above a session time-out and an election."""
EVEN, ODD = "an even number of milliseconds", "an odd number of milliseconds, or 0"

NETWORKS: Mapping[str, NetworkOptions] = {
    "near": NetworkOptions(),
    "far": NetworkOptions(latency_min_us=60_000, latency_tail_us=10_000, latency_max_us=120_000),
    "overtaking": NetworkOptions(latency_max_us=3_000_000, reorder_ppm=150_000),
}
"""near: less than a millisecond. far: every window between two messages is wide open. overtaking: a message
in seven is held back, by seconds if need be."""


class ClusterSteps(RuleBasedStateMachine):
    """One example per instance. cluster: None before the example begins. lockstep: its oracles. verdict: of
    the whole trace, once it has ended.

    bugs: planted in the cluster. counts: anomalies that fail an example, None for all of them. folder: where
    a failing example leaves its plan and its program, under the name of the class. objected: anomalies that
    were found, also those that do not count. undecided: why nothing can be concluded from the example, "" if
    something can.
    """

    bugs: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[frozenset[str] | None] = None
    folder: ClassVar[Path] = Path(".fencepost/machines")

    def __init__(self) -> None:
        super().__init__()
        self.cluster: SimulatedCluster | None = None
        self.lockstep: Lockstep | None = None
        self.verdict: Verdict | None = None
        self.objected: set[str] = set()
        self.undecided = ""

    # ---- the beginning

    @initialize(
        seed=st.sampled_from((0, 1, 2, 3)),
        network=st.sampled_from(tuple(NETWORKS)),
        replicas=st.sampled_from((3, 2)),
        min_insync=st.sampled_from((1, 2)),
        session_ms=st.sampled_from((6_000, 2_000)),
    )
    def start(self, seed: int, network: str, replicas: int, min_insync: int, session_ms: int) -> None:
        """Start the brokers; every topic has a leader afterwards.

        Args:
            seed: of the simulator.
            network: the name of a network of this machine.
            replicas: the replication factor.
            min_insync: min.insync.replicas.
            session_ms: ZooKeeper's session time-out in milliseconds.
        """
        self.start_with(
            self.plan(
                seed, NETWORKS[network], replicas=replicas, min_insync=min_insync, session_ms=session_ms
            )
        )

    def plan(
        self, seed: int, network: NetworkOptions, *, replicas: int, min_insync: int, session_ms: int
    ) -> Plan:
        """The options of an example. Override it for a cluster of another kind; operations and faults come
        from the rules.

        Args:
            seed: of the simulator.
            network: delays and losses.
            replicas: the replication factor.
            min_insync: min.insync.replicas.
            session_ms: ZooKeeper's session time-out in milliseconds.
        """
        topic = TopicOptions(replication_factor=replicas, min_insync_replicas=min_insync)
        return Plan(
            seed=seed,
            profile=type(self).__name__,
            cluster=ClusterOptions(
                topics=(topic,),
                zookeeper_session_timeout_ms=session_ms,
                replica_lag_time_max_ms=2_001,
                leader_imbalance_check_ms=0,
            ),
            network=network,
            client=ClientOptions(request_timeout_ms=1_501, delivery_timeout_ms=6_001, retry_backoff_ms=101),
            budget=BudgetOptions(brokers_down=2),
        )

    def start_with(self, plan: Plan) -> None:
        """Begin with this plan; call it from an @initialize of your own. Planted bugs are put in here."""
        plan = evolve(plan, cluster=evolve(plan.cluster, bugs=(*plan.cluster.bugs, *self.bugs)))
        self.cluster = SimulatedCluster.start(plan)
        self.lockstep = Lockstep(plan, self.cluster.run.cluster)
        self.warm_up(plan.cluster.topics[0].name)

    def warm_up(self, topic: str) -> None:
        """One record is acknowledged and read: an example in which that never happens is too weak to be
        judged. Override it to do without."""
        for function in ("append", "poll"):
            for _ in range(MOST_TRIES):
                done = self.live.finish(self.live.begin(function, topic, process=WARM))
                if done.outcome is Outcome.OK and done.records:
                    break
        self.wait(STEP_MS)

    @property
    def live(self) -> SimulatedCluster:
        """The cluster, which must have begun."""
        assert self.cluster is not None, "the example has not begun"
        return self.cluster

    # ---- steps that rules are made of

    def wait(self, wait_ms: int) -> None:
        """Let time pass."""
        assert wait_ms % STEP_MS == 0, f"expected {EVEN}, got {wait_ms}"
        self.live.pass_time(wait_ms + self.live.now_ms % STEP_MS)

    def begin_operation(
        self, function: str, topic: str = "t", partition: int = 0, *, wait_ms: int = STEP_MS, **options: Any
    ) -> int:
        """A client begins an operation, and so much time passes; its op id. options: process, acks, records,
        key, argument."""
        op_id = self.live.begin(function, topic, partition, **options)
        self.wait(max(wait_ms, STEP_MS))
        return op_id

    def outcome(self, op_id: int) -> Operation | None:
        """What became of an operation so far."""
        operations = self.live.run.cluster.operations
        return next((operation for operation in reversed(operations) if operation.op_id == op_id), None)

    def fault(self, kind: str, target: str, *, duration_ms: int = 1, **options: Any) -> bool:
        """A fault, or an operator's request, begins (docs/reference/plans.md: kinds and targets); whether it
        did. options: other, parameter."""
        assert duration_ms % STEP_MS or not duration_ms, f"expected {ODD}, got {duration_ms}"
        began = self.live.fault(kind, target, duration_ms=duration_ms, **options)
        self.wait(STEP_MS)
        return began

    def until(self, name: Name, *, longest_ms: int = LONGEST_UNTIL_MS) -> bool:
        """Let time pass until an event of this name; whether there was one."""
        events, seen = self.live.run.cluster.events, len(self.live.run.cluster.events)
        deadline_ms = self.live.now_ms + longest_ms
        while self.live.now_ms < deadline_ms:
            self.wait(min(self._until_next(), deadline_ms - self.live.now_ms))
            if any(event.name is name for event in events[seen:]):
                return True
            seen = len(events)
        return False

    def _until_next(self) -> int:
        """Milliseconds until the simulated world does anything, rounded up to whole steps."""
        upcoming = self.live.run.cluster.world.scheduler.next_time()
        if upcoming is None:
            return STEP_MS
        steps = -((self.live.run.cluster.now - upcoming) // (STEP_MS * MILLISECOND))
        return max(1, steps) * STEP_MS

    # ---- oracles

    @invariant()
    def agrees(self) -> None:
        """The model, the invariants and what clients saw, as far as they can be judged by now."""
        if self.lockstep is None or self.verdict is not None:
            return
        found = self.lockstep.step()
        self.objected |= {finding.anomaly for finding in found}
        if self._counting(found):
            self._end()
            # the judges of a whole trace find all that the oracles in lockstep find, unless it is too weak to
            # be judged
            assert self.undecided, f"the judges do not find what was found in lockstep: {found}"
            reject()

    def teardown(self) -> None:
        """Heal, demand progress, read everything to its end, and judge the whole trace."""
        if self.cluster is not None and self.verdict is None:
            self._end()

    def _end(self) -> None:
        """Raises FoundError for a finding that counts."""
        trace = self.live.end()
        self.verdict = combine(self.judged(trace))
        self.objected |= {finding.anomaly for finding in self.verdict.findings}
        found = self._counting(list(self.verdict.findings))
        if found:
            worst = by_rank(found)[0]
            left = leave(self.folder, type(self).__name__, self.live.plan, self.verdict)
            raise error_of(worst.anomaly)(explanation(worst, left))
        if self.verdict.decision not in (Decision.OK, Decision.ILLEGAL):
            self.undecided = f"{self.verdict.decision}: {self.verdict.reason}"
            if currently_in_test_context():
                event(self.undecided)  # no finding, and no Ok either: Hypothesis counts it in its statistics

    def judged(self, trace: Trace) -> tuple[Verdict, ...]:
        """One verdict for each check of the trace: all default ones. Override it to ask for more."""
        return judge(trace)

    def _counting(self, found: list[Finding]) -> list[Finding]:
        return [finding for finding in found if self.counts is None or finding.anomaly in self.counts]
