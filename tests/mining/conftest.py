"""Traces with known verdicts, and one Spark session for all tests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from fencepost.mining.mine import mine
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.sealing import Sizes
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Claims, Trace
from tests.checkers import lab

CHECKERS = Path(__file__).parents[1] / "checkers"
sys.path.insert(0, str(Path(__file__).parent))  # helper modules of this folder
sys.path += map(str, (CHECKERS / "log" / "ranges", CHECKERS / "log"))  # random histories

SMALL_TABLES = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of Spark for tables of tests."""
KINDS = (
    "legal",
    "lost_write",
    "inconsistent_offsets",
    "phantom_record",
    "two_leaders",
    "too_weak",
    "no_events",
)


def _append(op_id: int, offset: int) -> Operation:
    return lab.operation(
        *(op_id, Function.APPEND, op_id * 10, op_id * 10 + 5),
        **lab.T0,
        acks=-1,
        offset=offset,
        records=lab.records(op_id * 1000, begin=offset),
    )


def _read(op_id: int, values: list[int]) -> Operation:
    return lab.operation(
        *(op_id, Function.POLL, op_id * 10, op_id * 10 + 5),
        **lab.T0,
        offset=0,
        end_offset=len(values),
        strong=True,
        records=lab.records(*values),
    )


def _leaders(nodes: tuple[int, ...]) -> tuple[Event, ...]:
    """One BECAME_LEADER of epoch 1 per node, all after ZooKeeper named the first."""
    state = lab.event(
        0,
        Name.PARTITION_STATE,
        9,
        leader=nodes[0],
        leader_epoch=1,
        controller_epoch=1,
        isr=(1, 2),
        zk_version=0,
        **lab.T0,
    )
    became = (
        lab.event(
            1 + node,
            Name.BECAME_LEADER,
            node,
            leader_epoch=1,
            offset=0,
            high_watermark=0,
            isr=(1, 2),
            **lab.T0,
        )
        for node in nodes
    )
    return (state, *became)


def _make(trace_id: int, kind: str) -> Trace:
    """A trace with `3 + trace_id % 4` acknowledged appends that is read in the end, and one fault planted by
    kind."""
    appends = [_append(op_id, op_id) for op_id in range(3 + trace_id % 4)]
    values = [operation.records[0].value for operation in appends]
    claims, events = Claims(), _leaders((1,))
    if kind == "lost_write":
        values.pop()
    elif kind == "inconsistent_offsets":
        appends[1] = attrs.evolve(
            appends[1], offset=0, records=(attrs.evolve(appends[1].records[0], offset=0),)
        )
    elif kind == "phantom_record":
        values[1] = 77_777
    elif kind == "two_leaders":
        events = _leaders((1, 2))
    elif kind == "too_weak":
        claims = Claims(assumption_broken="every broker was down")
    elif kind == "no_events":
        events = ()
    return lab.trace(
        (*appends, _read(99, values)),
        trace_id=trace_id,
        plan=plan_to_json(Plan(seed=trace_id)),
        target="test",
        profile=kind,
        claims=claims,
        events=events,
    )


@pytest.fixture(scope="session")
def make() -> Callable[[int, str], Trace]:
    """make(trace_id, kind): a trace whose verdict is known by its kind (one of KINDS, kept as its
    profile)."""
    return _make


@pytest.fixture(scope="session")
def mixed() -> list[Trace]:
    """Four traces of each kind, in turn."""
    return [_make(number, KINDS[number % len(KINDS)]) for number in range(4 * len(KINDS))]


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory, mixed: list[Trace]) -> Path:
    """A folder with the mixed traces: two sealed parts of several row groups, and the last eight still in two
    journals."""
    path = tmp_path_factory.mktemp("campaign") / "mixed"
    store = TraceStore.create(path)
    for some in (mixed[:10], mixed[10:20]):
        lab.stored(store, some, sizes=Sizes(group_operations=12))
    with store.writer(0) as first, store.writer(1) as second:
        for trace in mixed[20:]:
            (second if trace.trace_id % 2 else first).append(trace)
    return path


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of many small row groups, so that a mining of it can be met in the middle."""
    store = lab.stored(
        tmp_path_factory.mktemp("long") / "in",
        (_make(number, "lost_write" if number % 5 == 0 else "legal") for number in range(300)),
        sizes=Sizes(group_operations=20),
    )
    return store.path


@pytest.fixture(scope="session")
def clean(long: Path, tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Path:
    """What mining it gives when nothing happens."""
    out = tmp_path_factory.mktemp("clean") / "out"
    mine([long], out, spark=spark)
    return out


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session on the loopback for the whole run. Its tables have few rows: compiled queries
    and 200 partitions, as they are by default, would cost more than they save."""
    from fencepost.mining.spark.session import session

    with session("local[2]", settings=SMALL_TABLES) as running:
        yield running
