"""What a client reports of an operation is compared with what it was answered: a healthy client's rows are
right, and with another value they are refuted."""

from functools import cache
from typing import Any

import pytest
from attrs import define, evolve, field

from fencepost.campaign.observed.rows import RowTap, murmur2, refuted
from fencepost.campaign.run.run import Run
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import Fault
from tests.campaign.observed.test_answers import plan


@define(eq=False)
class Keeping(RowTap):
    """Keeps what the rules are asked for."""

    asked: list[tuple[Operation, list[Any], list[Any]]] = field(factory=list)

    def completed(self, row: Operation) -> None:
        requests = list(self.sent_for.get(row.op_id, ()))
        self.asked.append((row, requests, [self._answer(one) for one in requests]))
        super().completed(row)


PATIENCE = plan().client.request_timeout_ms * 1_000_000


@cache
def rows() -> tuple[tuple[Operation, list[Any], list[Any]], ...]:
    """Of one run with a leader that is cut off."""
    cut = Fault(fault_id=7, kind="partition", at_ms=2_000, duration_ms=2_500, target="leader of t-1")
    run = Run(evolve(plan(), faults=(*plan().faults, cut)))
    taps = []
    make = run.cluster.add_client

    def watched(process: int) -> int:
        node = make(process)
        before = run.cluster.rows[node]
        assert isinstance(before, RowTap)
        tap = Keeping(before.process, before.host, before.now, before.record, before.plan)
        before.host.peers = run.cluster.rows[node] = tap
        taps.append(tap)
        return node

    run.cluster.add_client = watched  # type: ignore[method-assign]
    trace = run.run()
    assert not [event for event in trace.events if event.name is Name.ANSWERED]
    return tuple(one for tap in taps for one in tap.asked)


def said(one: tuple[Operation, list[Any], list[Any]], **changed: Any) -> list[Any]:
    return list(refuted(evolve(one[0], **changed), one[1], one[2], PATIENCE))


def test_rows_of_a_healthy_client_are_right() -> None:
    """Rule (ANSWERED): whatever their outcome."""
    assert not [one for one in rows() if said(one)]
    outcomes = {(one[0].function, one[0].outcome) for one in rows()}
    assert {(Function.APPEND, Outcome.OK), (Function.POLL, Outcome.OK)} <= outcomes
    assert len(outcomes) > 4


FIELDS = {
    Function.APPEND: ("offset", "leader_epoch", "log_start_offset", "node", "attempts"),
    Function.POLL: ("offset", "end_offset", "leader_epoch", "log_start_offset", "node", "attempts"),
    Function.LIST_OFFSETS: ("node", "attempts"),
}


@pytest.mark.parametrize("function", list(FIELDS))
def test_a_row_with_another_value_is_refuted(function: Function) -> None:
    """Rule (ANSWERED): every field that an answer gives."""
    mine = [one for one in rows() if one[0].function is function and one[0].outcome is Outcome.OK]
    assert mine
    for one in mine:
        for name in FIELDS[function]:
            if getattr(one[0], name) is not None:
                assert said(one, **{name: getattr(one[0], name) + 7}), (name, one[0])
        assert said(one, error="NOT_LEADER_OR_FOLLOWER")
        assert said(one, outcome=Outcome.UNKNOWN)


def test_an_append_that_is_acknowledged_has_not_failed() -> None:
    """Rule (ANSWERED): an attempt without an answer may have been written, one that was refused was not."""
    appends = [one for one in rows() if one[0].function is Function.APPEND and one[0].acks]
    assert {one[0].outcome for one in appends} == {Outcome.OK, Outcome.UNKNOWN}
    for one in appends:
        assert said(one, outcome=Outcome.FAIL, completion_time=0)


def test_records_are_those_of_the_answer() -> None:
    """Rule (ANSWERED): in order, from the position on, and no later than it goes."""
    polls = [one for one in rows() if len(one[0].records) > 1]
    assert polls
    for one in polls:
        records = one[0].records
        assert said(one, records=records[::-1])
        assert said(one, records=(*records, evolve(records[-1], offset=records[-1].offset + 99)))


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536)],
)
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    """Rule (P1): clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java, testMurmur2."""
    assert murmur2(key) == hashed % (1 << 32)
