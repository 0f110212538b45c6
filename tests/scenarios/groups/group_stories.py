"""Stories of consumer groups: plans of a few lines, run in the simulated world, and told from their
traces."""

import re
from collections.abc import Callable

import msgspec
from attrs import frozen

from fencepost.checkers.groups import group_facts
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces import plan as plans
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

OFFSETS = "__consumer_offsets"
PRODUCER, FIRST, SECOND = 0, 1, 2
SECOND_NS = 1_000_000_000
MEMBER_ID = re.compile(r"(consumer-\d+)-\d+-\d+-\d+")
"""Broker epochs in member ids say nothing to a reader."""


@frozen(kw_only=True)
class Told:
    """A story: what it is about, its trace, and the lines of the transcript."""

    title: str
    trace: Trace
    lines: tuple[str, ...]

    def transcript(self) -> str:
        """The whole story."""
        return "\n".join((self.title, "=" * len(self.title), "", *self.lines)) + "\n"


def planned(
    lives: list[tuple[int, int, str]],
    consumer: plans.ConsumerOptions,
    *,
    seconds: int,
    every_ms: int = 500,
    partitions: int = 1,
    faults: tuple[plans.Fault, ...] = (),
) -> plans.Plan:
    """One record each `every_ms`, and the lives of consumers: (process, when, what)."""
    topics = (
        plans.TopicOptions(name="t", partitions=partitions),
        plans.TopicOptions(name=OFFSETS, partitions=2, cleanup_policy="compact"),
    )
    appends = [
        plans.PlannedOperation(
            op_id=1 + number,
            process=PRODUCER,
            at_ms=100 + number * every_ms,
            function="append",
            partition=number % partitions,
        )
        for number in range(seconds * 1_000 // every_ms)
    ]
    steps = [
        plans.PlannedOperation(
            op_id=10_000 + number, process=process, at_ms=at_ms, function=function, key="g"
        )
        for number, (process, at_ms, function) in enumerate(lives)
    ]
    return plans.Plan(
        seed=1,
        safety_ms=seconds * 1_000,
        cluster=plans.ClusterOptions(
            topics=topics,
            groups=plans.GroupOptions(initial_rebalance_delay_ms=200),
            leader_imbalance_check_ms=0,
            zookeeper_session_timeout_ms=2_000,
        ),
        consumer=consumer,
        operations=tuple(sorted((*appends, *steps), key=lambda operation: operation.at_ms)),
        faults=faults,
    )


def told(title: str, plan: plans.Plan, *, rows: frozenset[Function], until_heal: bool = True) -> Told:
    """Run it and tell what came of it."""
    trace = run(plan)
    start = next(event.time for event in trace.events if event.name is Name.PHASE)
    end = next(event.time for event in trace.events if event.name is Name.PHASE and event.cause == "heal")
    moments = [
        (operation.completion_time or operation.invoke_time, row(operation))
        for operation in trace.operations
        if operation.function in rows and (operation.group or operation.function is Function.CRASH)
    ]
    moments += [(event.time, line) for event in trace.events if (line := sentence(event))]
    within = [
        (time, MEMBER_ID.sub(r"\1", line)) for time, line in sorted(moments) if line and start <= time < end
    ]
    lines = [f"{(time - start) / SECOND_NS:6.2f} s  {line}" for time, line in within]
    facts = [
        f"fact: {fact.kind}, cause {fact.cause}: {fact.count} records of {fact.topic}-{fact.partition} from "
        f"offset {fact.offset}"
        for fact in group_facts(trace)
    ]
    verdicts = ", ".join(f"{verdict.check} {verdict.decision.value}" for verdict in judge(trace))
    return Told(title=title, trace=trace, lines=(*lines, "", *facts, f"verdicts: {verdicts}"))


def row(operation: Operation) -> str:
    """A row of the trace in words."""
    who = f"consumer {operation.process}" + (f" (session {operation.session})" if operation.session else "")
    spots = ", ".join(
        f"t-{spot.partition}" + (f" at {spot.offset}" if spot.offset >= 0 else "")
        for spot in operation.positions
    )
    if operation.function is Function.CRASH:
        return f"{who} crashes"
    if operation.function is Function.JOIN:
        return (
            f"{who} has joined generation {operation.generation}: {spots or 'nothing'}"
            if operation.outcome == "ok"
            else ""
        )
    if operation.function is Function.FETCH_COMMITTED:
        return (
            f"{who} reads back what is committed: {spots}"
            if "at" in spots
            else f"{who} reads back that nothing is committed"
        )
    if operation.function is Function.COMMIT:
        return f"{who} commits ({operation.argument}) {spots}: {operation.outcome.value}"
    offsets = [record.offset for record in operation.records]
    return f"{who} gets offsets {offsets[0]} to {offsets[-1]}" if offsets else ""


def sentence(event: Event) -> str:
    """An event in words, of groups and of faults."""
    if event.name is Name.GROUP_PHASE:
        detail = msgspec.json.decode(event.detail)
        count = len(detail["members"])
        return (
            f"broker {event.node}: group {detail['group']} is {event.cause}, generation "
            f"{detail['generation']}, {count} members ({detail['why']})"
        )
    if event.name in (Name.GROUPS_LOADED, Name.GROUPS_UNLOADED):
        return (
            f"broker {event.node}: {event.name.value.replace('_', ' ')}, coordinator epoch "
            f"{event.leader_epoch}"
        )
    if event.name in (Name.FAULT_BEGAN, Name.FAULT_ENDED):
        return f"{event.name.value.replace('_', ' ')}: {event.cause} of broker {event.node}"
    return ""


ALL = frozenset({Function.JOIN, Function.FETCH_COMMITTED, Function.COMMIT, Function.POLL, Function.CRASH})


def repeated_consumption() -> Told:
    consumer = plans.ConsumerOptions(session_timeout_ms=2_000, heartbeat_interval_ms=600, processing_ms=20)
    lives = [(FIRST, 1_000, "subscribe"), (FIRST, 9_050, "crash"), (SECOND, 9_400, "subscribe")]
    plan = planned(lives, consumer, seconds=14)
    return told("A crash three seconds after the last automatic commit: records come again", plan, rows=ALL)


def gap() -> Told:
    consumer = plans.ConsumerOptions(
        session_timeout_ms=2_000, heartbeat_interval_ms=600, commit="before", processing_ms=700
    )
    lives = [(FIRST, 1_000, "subscribe"), (FIRST, 5_400, "crash"), (SECOND, 5_600, "subscribe")]
    plan = planned(lives, consumer, seconds=10)
    return told("Commits before the work is done, and a crash: records that nobody gets", plan, rows=ALL)


def rebalance() -> Told:
    consumer = plans.ConsumerOptions(
        session_timeout_ms=2_000,
        heartbeat_interval_ms=600,
        commit="sync",
        processing_ms=20,
        assignor="sticky",
    )
    lives = [(FIRST, 500, "subscribe"), (SECOND, 3_000, "subscribe"), (FIRST, 6_000, "unsubscribe")]
    plan = planned(lives, consumer, seconds=8, every_ms=1_000, partitions=2)
    rows = frozenset({Function.JOIN, Function.FETCH_COMMITTED})
    return told(
        "The life of a rebalance: one member, a second one, and the first one leaves", plan, rows=rows
    )


def coordinator_fails() -> Told:
    consumer = plans.ConsumerOptions(
        session_timeout_ms=6_000, heartbeat_interval_ms=1_000, commit="sync", processing_ms=20
    )
    lives = [(FIRST, 500, "subscribe")]
    fault = plans.Fault(
        fault_id=1, kind="crash", at_ms=4_200, duration_ms=8_000, target=f"leader of {OFFSETS}-1"
    )
    plan = planned(lives, consumer, seconds=14, every_ms=1_000, faults=(fault,))
    return told("The coordinator dies: the group goes on at another broker", plan, rows=ALL)


STORIES: dict[str, Callable[[], Told]] = {
    story.__name__: story for story in (repeated_consumption, gap, rebalance, coordinator_fails)
}
