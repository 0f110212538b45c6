"""A machine for any replicated log with the interface of system_under_test.py: yours.

    class Test(ReplicatedLogMachine):
        system_type = Mine

    TestMine = Test.TestCase        # pytest and unittest collect it

Owns one example: calls to the system, the history that they make, and the oracles. Must not know the system.

In lockstep: the log judge judges the history so far after each step, so that the step that contradicts an
earlier one is the last of the example: an acknowledged record that is not read back, a
record at two offsets or two at one, an end that goes back, a record that nobody sent or that was refused. In
the end: every fault ends, the system recovers within `recovery_rounds` rounds of time and takes an append,
everything is read to its end, the logs of the nodes are compared, and all default checks judge the whole
history.
"""

from pathlib import Path
from typing import ClassVar

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fencepost import __version__
from fencepost.checkers.judges import judge
from fencepost.checkers.log import judge_trace
from fencepost.checkers.verdict import Decision, Finding, by_rank, combine
from fencepost.machines.cluster.found import error_of, made
from fencepost.machines.system_under_test import RefusedError, SystemUnderTest, UnclearError
from fencepost.report.commands import check_traces
from fencepost.report.explain import explain
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, Trace

TOPIC, PARTITION = "log", 0
MOMENT_NS = 1_000_000
"""Between two steps of the history, so that times read well."""
MOST_READ = 1_000
"""Records of one read."""


class ReplicatedLogMachine(RuleBasedStateMachine):
    """system: under test, made anew for each example. operations, events: the history. active: faults under
    way. agreed: how many operations were judged so far. time: moves with every step of the history, and by
    nothing else: calls come one at a time, so that their order is all there is.

    profile: what the system promises readers (docs/reference/claims.md): strong, each read shows all that was
    acknowledged before; default, a read may lag, and what it shows must stay. recovery_rounds: of
    `pass_time`, until a system without faults must take an append again. folder: where a failing example
    leaves its trace, which `fencepost check` judges again.
    """

    system_type: ClassVar[type[SystemUnderTest]]
    profile: ClassVar[str] = "strong"
    recovery_rounds: ClassVar[int] = 100
    folder: ClassVar[Path] = Path(".fencepost/machines")

    def __init__(self) -> None:
        super().__init__()
        self.system = self.make_system()
        self.claims = Claims(check=self.profile)
        self.operations: list[Operation] = []
        self.events: list[Event] = []
        self.active: dict[tuple[str, int], None] = {}
        self.time = 0
        self.failed = False
        self.agreed = 0

    def make_system(self) -> SystemUnderTest:
        """A system as it is when it is new."""
        return self.system_type()

    # ---- operations

    @rule()
    def append(self) -> None:
        """One record; its value is the number of the operation."""
        self.try_append()

    @rule(back=st.sampled_from((0, 1, 5)))
    def read(self, back: int) -> None:
        """Everything, or from so many records before the end on."""
        known = max((row.offset + 1 for row in self.operations if row.offset is not None), default=0)
        self.try_read(max(0, known - back) if back else 0)

    @rule()
    def ask_for_the_end(self) -> None:
        """As ListOffsets does."""
        row = self.begin(Function.LIST_OFFSETS)
        try:
            end = self.system.end_offset()
        except (RefusedError, UnclearError) as error:
            self.ended(evolve(row, outcome=Outcome.FAIL, error=type(error).__name__))
        else:
            self.ended(evolve(row, outcome=Outcome.OK, offset=end, end_offset=end))

    def try_append(self) -> bool:
        """Append one record; whether it was acknowledged."""
        number = len(self.operations) + 1
        row = self.begin(
            Function.APPEND, records=(Record(topic=TOPIC, partition=PARTITION, offset=-1, value=number),)
        )
        try:
            offset = self.system.append(number)
        except RefusedError as error:
            self.ended(evolve(row, outcome=Outcome.FAIL, error=str(error) or None))
        except UnclearError as error:
            self.ended(evolve(row, outcome=Outcome.UNKNOWN, error=str(error) or None))
        else:
            records = (evolve(row.records[0], offset=offset),)
            self.ended(evolve(row, outcome=Outcome.OK, offset=offset, records=records))
            return True
        return False

    def try_read(self, offset: int, most: int = MOST_READ) -> Operation | None:
        """Read once.

        Args:
            offset: the first offset.
            most: how many records at most.

        Returns:
            The row of the answer; None without one.
        """
        row = self.begin(Function.POLL, offset=offset)
        try:
            batch = self.system.read(offset, most)
        except (RefusedError, UnclearError) as error:
            self.ended(evolve(row, outcome=Outcome.FAIL, error=type(error).__name__))
            return None
        records = tuple(
            Record(topic=TOPIC, partition=PARTITION, offset=place, value=value)
            for place, value in enumerate(batch.values, offset)
        )
        done = evolve(row, outcome=Outcome.OK, records=records, end_offset=batch.end_offset)
        self.ended(done)
        return done

    def begin(
        self, function: Function, *, offset: int | None = None, records: tuple[Record, ...] = ()
    ) -> Operation:
        """An operation begins now.

        Args:
            function: what it does.
            offset: of a read.
            records: of an append.

        Returns:
            Its row, without an outcome yet.
        """
        self.time += MOMENT_NS
        return Operation(
            op_id=len(self.operations) + 1,
            process=0,
            function=function,
            invoke_time=self.time,
            outcome=Outcome.UNKNOWN,
            topic=TOPIC,
            partition=PARTITION,
            acks=ACKS_ALL if function is Function.APPEND else None,
            offset=offset,
            records=records,
            strong=self.profile == "strong" and function is not Function.APPEND,
        )

    def ended(self, row: Operation) -> None:
        """It has its outcome; one that nobody knows stays open."""
        self.time += MOMENT_NS
        if row.outcome is not Outcome.UNKNOWN:
            row = evolve(row, completion_time=self.time)
        self.operations.append(row)

    # ---- faults and time

    def may_break(self) -> bool:
        """For preconditions."""
        return bool(self.system_type.faults)

    @precondition(may_break)
    @rule(
        fault=st.runner().flatmap(lambda self: st.sampled_from(self.system.faults)),
        node=st.runner().flatmap(lambda self: st.sampled_from(self.system.nodes)),
    )
    def break_something(self, fault: str, node: int) -> None:
        """Begin a fault, unless it is under way."""
        if (fault, node) not in self.active:
            self.active[fault, node] = None
            self.note(Name.FAULT_BEGAN, fault, node)
            self.system.begin_fault(fault, node)

    @precondition(lambda self: self.active)
    @rule(which=st.sampled_from((0, 1, 2)))
    def mend(self, which: int) -> None:
        """End one of the faults, the oldest first."""
        self.end_fault(*list(self.active)[which % len(self.active)])

    def end_fault(self, fault: str, node: int) -> None:
        """End a fault.

        Args:
            fault: its kind.
            node: which node it has hit.
        """
        del self.active[fault, node]
        self.system.end_fault(fault, node)
        self.note(Name.FAULT_ENDED, fault, node)

    @rule(rounds=st.sampled_from((1, 2, 5)))
    def time_passes(self, rounds: int) -> None:
        """So many rounds of whatever goes on in the background."""
        for _ in range(rounds):
            self.system.pass_time()

    def note(self, name: Name, cause: str, node: int = -1) -> None:
        """Record an event of the run.

        Args:
            name: the event.
            cause: its cause.
            node: where; -1: nowhere in particular.
        """
        self.time += MOMENT_NS
        self.events.append(Event(time=self.time, name=name, node=node, cause=cause))

    # ---- oracles

    @invariant()
    def agrees(self) -> None:
        """Nothing that clients saw contradicts what they had seen before."""
        if self.failed or self.agreed == len(self.operations):
            return
        if found := judge_trace(self.history()).findings:
            self.judge()
            raise AssertionError(f"the judges do not find what was found in lockstep: {found}")
        self.agreed = len(self.operations)

    def teardown(self) -> None:
        """Mend everything, wait, append, read it all, compare, judge; then release the system."""
        try:
            if not self.failed:
                self.recover()
                self.agrees()
                self.judge()
        finally:
            self.system.close()

    def recover(self) -> None:
        """Without faults the system takes an append within a bound, and is read to its end."""
        for fault, node in list(self.active):
            self.end_fault(fault, node)
        self.note(Name.PHASE, "heal")
        for _ in range(self.recovery_rounds):
            if self.try_append():
                break
            self.system.pass_time()
        else:
            self.note(
                Name.LIVENESS_FAILED, f"an append is acknowledged, in {self.recovery_rounds} rounds of time"
            )
            return
        for _ in range(self.recovery_rounds):
            self.system.pass_time()
        offset = 0
        while (read := self.try_read(offset)) is not None and read.records:
            offset = read.records[-1].offset + 1
        if read is None:
            self.note(Name.LIVENESS_FAILED, f"the log is read to its end, from offset {offset} on")
        self.dump()

    def dump(self) -> None:
        """The logs of the nodes become final logs of the trace; records that all can see are those below the
        last end that was shown."""
        ends = [row.end_offset for row in self.operations if row.end_offset is not None]
        for node, values in sorted(self.system.replica_logs().items()):
            self.time += MOMENT_NS
            self.events.append(
                Event(
                    time=self.time,
                    name=Name.REPLICA_LOG,
                    node=node,
                    topic=TOPIC,
                    partition=PARTITION,
                    leader_epoch=0,
                    offset=0,
                    values=tuple(values),
                    end_offset=len(values),
                    high_watermark=min(len(values), ends[-1] if ends else 0),
                    log_start_offset=0,
                )
            )

    def history(self) -> Trace:
        """The history so far, without a digest. Calls come one at a time: nothing is under way in it."""
        return Trace(
            trace_id=0,
            plan="",
            seed=0,
            target=type(self.system).__name__,
            software_version=__version__,
            profile=type(self).__name__,
            claims=self.claims,
            operations=tuple(self.operations),
            events=tuple(self.events),
        )

    @property
    def trace(self) -> Trace:
        """The history so far."""
        trace = self.history()
        return evolve(trace, digest=digest_of(trace))

    def judge(self) -> None:
        """All default checks over the whole history."""
        verdict = combine(judge(self.trace))
        if verdict.decision is Decision.ILLEGAL:
            self.fail(list(verdict.findings))

    def fail(self, found: list[Finding]) -> None:
        """Leave the trace, and tell the worst finding. Raises FoundError."""
        self.failed = True
        path = made(self.folder) / f"{type(self).__name__}.jsonl"
        write_traces(path, [self.trace])
        worst = by_rank(found)[0]
        explained = explain(worst, self.trace, replay=check_traces(path)).plain()
        state = self.system.describe()
        raise error_of(worst.anomaly)(f"{explained}\n{state}" if state else explained)
