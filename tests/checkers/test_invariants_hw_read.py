"""checkers/invariants: reads at or above the high watermark or the last stable offset of the same answer."""

from attrs import evolve

from fencepost.checkers import invariants
from fencepost.checkers.events import EventTables, judge_invariants
from fencepost.checkers.verdict import Finding
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Operation, Position, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.checkers.traces_by_hand import event, fault, leads, trace


def poll(op_id: int, *offsets: int, end: int, time: int = 0, **columns: object) -> Operation:
    """Records at these offsets with this high watermark, by broker 1 in leader epoch 0."""
    made = lab.operation(
        *(op_id, Function.POLL, time, time + 5),
        **lab.T0,
        offset=0,
        end_offset=end,
        leader_epoch=0,
        node=1,
        records=tuple(Record(topic="t", partition=0, offset=offset, value=offset) for offset in offsets),
    )
    return evolve(made, **columns)


def found(whole: Trace) -> list[Finding]:
    """The findings, which are the same over tables."""
    verdict = invariants.judge(whole)
    tables = tables_of([rows_of(whole)])
    header = evolve(whole, operations=(), events=())
    by_table = judge_invariants(EventTables(tables=tables, headers=[header])).get(whole.trace_id)
    assert (by_table.findings if by_table else ()) == verdict.findings
    return list(verdict.findings)


def simulated(*operations: Operation) -> Trace:
    """A run with a plan."""
    return evolve(trace(event(fault("x", 1).name), operations=operations), plan="{}")


def real(*operations: Operation, events: tuple = ()) -> Trace:
    """Of brokers that answer with a bound that they read before the records."""
    return evolve(trace(*events, operations=operations), target="kafka")


def test_in_the_simulation_an_answer_convicts_itself() -> None:
    """At the high watermark is beyond it; below it is legal."""
    (finding,) = found(simulated(poll(1, 0, 1, 2, end=2)))
    assert (finding.anomaly, finding.offset, finding.operations) == ("read_outside_bounds", 2, (1,))
    assert not found(simulated(poll(1, 0, 1, end=2)))


def test_under_read_committed_the_last_stable_offset_is_the_bound() -> None:
    """A read_uncommitted one may go up to the high watermark."""
    wrong = poll(1, 0, 1, 2, end=9, last_stable_offset=2, isolation="read_committed")
    (finding,) = found(simulated(wrong))
    assert "last stable offset 2" in finding.expected
    assert not found(simulated(evolve(wrong, isolation="read_uncommitted")))
    assert not found(simulated(evolve(wrong, last_stable_offset=3)))


def test_each_partition_of_a_poll_has_its_own_bounds() -> None:
    """Records of one partition are not held against the end of another."""
    positions = (
        Position(topic="t", partition=0, offset=0, end_offset=3, leader_epoch=0),
        Position(topic="u", partition=0, offset=0, end_offset=1, leader_epoch=0),
    )
    legal = poll(1, 0, 1, 2, end=3, topic=None, partition=None, end_offset=None, positions=positions)
    assert not found(simulated(legal))
    beyond = (*legal.records, Record(topic="u", partition=0, offset=1, value=9))
    (finding,) = found(simulated(evolve(legal, records=beyond)))
    assert (finding.topic, finding.offset) == ("u", 1)


def test_a_real_broker_is_convicted_by_a_later_answer_only() -> None:
    """Of the same broker in the same epoch, which began after the read had ended, with a bound that is still
    not above the record."""
    early = poll(1, 0, 1, 2, end=2)
    assert not found(real(early))
    (finding,) = found(real(early, poll(2, end=2, time=50)))
    assert finding.operations == (1, 2)
    for other in (
        poll(2, end=3, time=50),
        poll(2, end=2, time=3),
        poll(2, end=2, time=50, node=2),
        poll(2, end=2, time=50, leader_epoch=1),
    ):
        # a lower end of the same epoch is a finding of HW-MONO elsewhere; here only this rule counts
        assert "read_outside_bounds" not in {one.anomaly for one in found(real(early, other))}
    unknown = evolve(early, node=-1)
    assert not found(real(unknown, poll(2, end=2, time=50, node=-1)))


def test_a_leader_that_led_its_epoch_again_may_show_a_lower_bound() -> None:
    """Its high watermark is that of its checkpoint then."""
    events = (leads(1, 0, 1), leads(1, 0, 1))
    names = {
        one.anomaly for one in found(real(poll(1, 0, 1, 2, end=2), poll(2, end=2, time=50), events=events))
    }
    assert "read_outside_bounds" not in names
