"""Runs with bugs of six kinds, as the viewer is to show them, and a naive reading of a trace to hold the
page's data against."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.invariants.replicas import Replicas
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Verdict
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace
from fencepost.viewer.moments import Kind, moments_of
from fencepost.viewer.page_file import write_page
from fencepost.viewer.view import Shown
from tests.checkers import lab

STORIES = Path(__file__).parents[2] / "docs" / "explanation" / "runs"
RUNS = {
    "kip_101": "kip-101",
    "fenced_controller": "kafka-6082",
    "no_progress": "kafka-4443",
    "group": "kafka-4362",
    "producer": "kip-98",
}
"""The plan of each kind of run, among STORIES."""
FOREIGN = "foreign"


@cache
def shown_run(kind: str) -> Shown:
    """A run of a kind with its verdicts; made once for all tests of a process."""
    if kind == FOREIGN:
        trace = foreign_trace()
    elif kind == "transactions":
        trace = transactional_trace()
    else:
        trace = run(plan_from_json((STORIES / f"{RUNS[kind]}.json").read_text(encoding="utf-8")))
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
        return lab.operation(
            *(op_id, Function.APPEND, at, at + 5),
            process=op_id % 3,
            acks=-1,
            topic="orders",
            partition=0,
            offset=offset,
            records=(record,),
        )

    read = lab.operation(
        *(9, Function.POLL, 100, 110),
        process=3,
        topic="orders",
        partition=0,
        offset=0,
        end_offset=4,
        records=lab.records(*(10, 11, 99, 13), topic="orders"),
    )
    appends = [append(n, 10 * n, n, 10 + n) for n in range(4)]
    return lab.trace(
        (*appends, append(4, 50, 2, 99), read),
        trace_id=7,
        seed=0,
        target="somebody's log",
        profile="imported",
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


def transactional_trace() -> Trace:
    """Two brokers, three producers: one transaction commits, one aborts, one stays open below one that
    commits.

    Markers take offsets 2 (of operation 1), 6 (of 3) and 8 (of 7); a read_committed consumer was shown the
    last stable offsets 3 and 5."""
    place: dict[str, Any] = {"topic": "t", "partition": 0}

    def event(time: int, name: Name, node: int, **more: Any) -> Event:
        return Event(time=time, name=name, node=node, leader_epoch=0, **place, **more)

    def copies(time: int, offset: int, *values: int) -> list[Event]:
        return [
            event(time + node, Name.APPENDED, node, offset=offset, values=values, cause=cause)
            for node, cause in ((1, "leader"), (2, "follower"))
        ] + [event(time + 3, Name.HIGH_WATERMARK, 1, high_watermark=offset + len(values), cause="leader")]

    events = [
        lab.event(
            0, Name.PARTITION_STATE, 1, leader=1, leader_epoch=0, controller_epoch=1, isr=(1, 2), **place
        ),
        event(1, Name.BECAME_LEADER, 1, leader=1, offset=0, high_watermark=0),
        event(2, Name.BECAME_FOLLOWER, 2, leader=1, offset=0, high_watermark=0),
        *copies(14, 0, 10, 11),
        *copies(34, 3, 20, 21),
        *copies(50, 5, 30),
        *copies(94, 7, 40),
    ]

    def one(
        op_id: int, process: int, function: Function, begin: int, end: int | None, **more: Any
    ) -> Operation:
        outcome = more.pop("outcome", Outcome.OK)
        return lab.operation(op_id, function, begin, end, process=process, outcome=outcome, **more)

    def append(
        op_id: int, process: int, at: int, offset: int, values: tuple[int, ...], epoch: int
    ) -> Operation:
        records = lab.records(*values, begin=offset)
        numbered = {"producer_id": 1000 + process, "producer_epoch": epoch, "sequence": 0, "acks": -1}
        return one(
            op_id,
            process,
            Function.APPEND,
            at,
            at + 9,
            offset=offset,
            node=1,
            records=records,
            **numbered,
            **place,
        )

    def poll(op_id: int, at: int, stable: int, end: int, *read: tuple[int, int]) -> Operation:
        records = tuple(Record(topic="t", partition=0, offset=offset, value=value) for offset, value in read)
        ends = {"offset": 0, "last_stable_offset": stable, "end_offset": end, "isolation": "read_committed"}
        return one(op_id, 9, Function.POLL, at, at + 4, node=1, records=records, **ends, **place)

    operations = (
        one(1, 1, Function.TXN, 10, 30),
        append(2, 1, 12, 0, (10, 11), 0),
        one(3, 2, Function.TXN, 31, 70, outcome=Outcome.FAIL),
        append(4, 2, 32, 3, (20, 21), 0),
        one(5, 3, Function.TXN, 47, None, outcome=Outcome.UNKNOWN),
        append(6, 3, 48, 5, (30,), 3),
        poll(9, 60, 3, 6, (0, 10), (1, 11)),
        one(7, 2, Function.TXN, 90, 110),
        append(8, 2, 92, 7, (40,), 1),
        poll(10, 120, 5, 9, (0, 10), (1, 11)),
    )
    return lab.trace(
        operations,
        trace_id=24,
        seed=0,
        target="a recording",
        profile="imported",
        concurrent_processes=True,
        events=tuple(events),
    )


@pytest.fixture(scope="module")
def chromium():
    """One browser for all tests of a module. While it runs, an event loop runs in this thread, which tests of others
    in the same process could not bear."""
    from tests.viewer.browser import CHROMIUM, OPTIONS, playwright

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def written(shown, tmp_path):
    """A page of a kind of run on disk: (run, path)."""

    def write(kind):
        path = tmp_path / f"{kind}.html"
        run = shown(kind)
        write_page(path, [run])
        return run, path

    return write
