"""Runs with bugs of six kinds, as the viewer is to show them, and a naive reading of a trace to hold the
page's data against."""

from functools import cache
from typing import Any

import pytest

from fencepost.campaign.run.run import run
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.invariants.replicas import Replicas
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Verdict
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from fencepost.viewer.moments import Kind, moments_of
from fencepost.viewer.view import Shown

RUNS = {
    "kip_101": (20, "default", ("KIP-101",)),
    "fenced_controller": (9, "default", ("KAFKA-6082",)),
    "no_progress": (0, "default", ("KAFKA-4443",)),
    "group": (17, "groups", ("KAFKA-4362",)),
    "producer": (1, "producer", ("KIP-98",)),
}
"""Seed, profile and bugs of each kind of run."""
FOREIGN = "foreign"


@cache
def shown_run(kind: str) -> Shown:
    """A run of a kind with its verdicts; made once for all tests of a process."""
    if kind == FOREIGN:
        trace = foreign_trace()
    else:
        seed, profile, bugs = RUNS[kind]
        trace = run(swarm(seed, profile, bugs))
    verdicts: tuple[Verdict, ...] = judge(trace, DEFAULT_CHECKS)
    return Shown(trace=trace, verdicts=verdicts)


@pytest.fixture
def shown():
    """`shown_run`, for tests that ask for several."""
    return shown_run


def foreign_trace() -> Trace:
    """Client operations only: two appends are told the same offset, and a read shows the second."""

    def append(op_id: int, at: int, offset: int, value: int) -> Operation:
        record = Record(topic="orders", partition=0, offset=offset, value=value)
        return Operation(
            op_id=op_id,
            process=op_id % 3,
            function=Function.APPEND,
            invoke_time=at,
            completion_time=at + 5,
            outcome=Outcome.OK,
            acks=-1,
            topic="orders",
            partition=0,
            offset=offset,
            records=(record,),
        )

    read = Operation(
        op_id=9,
        process=3,
        function=Function.POLL,
        invoke_time=100,
        completion_time=110,
        outcome=Outcome.OK,
        topic="orders",
        partition=0,
        offset=0,
        end_offset=4,
        records=tuple(
            Record(topic="orders", partition=0, offset=offset, value=value)
            for offset, value in enumerate((10, 11, 99, 13))
        ),
    )
    appends = [append(n, 10 * n, n, 10 + n) for n in range(4)]
    return Trace(
        trace_id=7,
        plan="",
        seed=0,
        target="somebody's log",
        software_version="",
        profile="imported",
        operations=(*appends, append(4, 50, 2, 99), read),
    )


class Naive:
    """What a trace says at a step, read again from its beginning by the judges' own bookkeeping."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.moments = moments_of(trace).all

    def events(self, step: int) -> list[Any]:
        """The events up to a step, in order."""
        taken = self.moments[: step + 1]
        return [self.trace.events[moment.index] for moment in taken if moment.kind is Kind.EVENT]

    def logs(self, step: int) -> dict[tuple[tuple[str, int], int], list[tuple[int, int, int]]]:
        """(offset, epoch, value) of each record of each replica."""
        replicas = Replicas()
        handlers = replicas.handlers()
        for position, event in enumerate(self.events(step)):
            if event.name in handlers and event.name is not Name.REPLICA_LOG:
                handlers[event.name](position, event)
        found = {}
        for key, nodes in replicas.logs.items():
            for node, log in nodes.items():
                start = max(replicas.starts.get((key, node), 0), 0)
                found[key, node] = [
                    (offset, log.epochs[offset], log.values[offset] if log.epochs[offset] >= 0 else 0)
                    for offset in range(start, log.end_offset)
                ]
        return found

    def high_watermarks(self, step: int) -> dict[tuple[tuple[str, int], int], int]:
        """Of each replica, as the last event that says it."""
        says = {
            Name.HIGH_WATERMARK,
            Name.LOG_RECOVERED,
            Name.BECAME_LEADER,
            Name.BECAME_FOLLOWER,
            Name.LOG_START,
        }
        return {
            ((event.topic, event.partition), event.node): event.high_watermark
            for event in self.events(step)
            if event.name in says and event.high_watermark >= 0
        }

    def last(self, step: int, name: Name, topic: str | None = None, partition: int = -1) -> Any:
        """The last event of a name; None if there is none."""
        same = [
            e for e in self.events(step) if e.name is name and (e.topic, e.partition) == (topic, partition)
        ]
        return same[-1] if same else None


@pytest.fixture
def naive():
    """`Naive`, for tests."""
    return Naive
