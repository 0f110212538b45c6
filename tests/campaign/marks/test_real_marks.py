"""Marks of real systems: what faults and writes did to each other."""

from attrs import evolve

from fencepost.campaign.marks.marks import marks_of
from fencepost.campaign.marks.real_marks import REAL_MARKS
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from tests.checkers.traces_by_hand import event, state, trace


def fault(number, node, begin, end):
    """A fault at a broker."""
    detail = f'{{"fault":{number}}}'
    return (
        event(Name.FAULT_BEGAN, node=node, time=begin, cause="pause", detail=detail),
        event(Name.FAULT_ENDED, node=node, time=end, cause="pause", detail=detail),
    )


def append(invoke, completion, node=1, **columns):
    """An append that a broker answered."""
    given = {"outcome": Outcome.OK, "acks": -1, "topic": "t", "partition": 0, **columns}
    return Operation(
        op_id=1,
        process=0,
        function=Function.APPEND,
        invoke_time=invoke,
        completion_time=completion,
        node=node,
        **given,
    )


def reached(events, *operations):
    """Marks of a run."""
    ordered = sorted(events, key=lambda one: one.time)
    return set(marks_of(trace(*ordered, operations=operations), REAL_MARKS))


BEGUN = state(9, 1, 0, 1, 2, 3)
FOLLOWER, LEADER = fault(1, 2, 10, 50), fault(2, 1, 30, 90)


def test_an_append_between_two_faults():
    """Sent after the follower was held and answered before the leader was hit, while the follower is still
    held; not an earlier or later one, of another broker, or if the follower was back by then."""
    both = (BEGUN, *FOLLOWER, *LEADER)
    assert "written_between" in reached(both, append(12, 25))
    for other in (
        append(5, 25),
        append(12, 35),
        append(12, 25, node=3),
        append(12, 25, outcome=Outcome.FAIL),
    ):
        assert "written_between" not in reached(both, other)
    back = (BEGUN, *fault(1, 2, 10, 28), *LEADER)
    assert "written_between" not in reached(back, append(12, 25))


def test_faults_that_meet():
    """Overlapping ones, of a leader while another replica is held; a broker alone, or one after the other,
    shows nothing."""
    met = {"faults_overlapped", "leader_struck"}
    assert met <= reached((BEGUN, *FOLLOWER, *LEADER))
    assert not met & reached((BEGUN, *FOLLOWER))
    assert not met & reached((BEGUN, *fault(1, 2, 10, 20), *LEADER))
    assert met & reached((BEGUN, *FOLLOWER, *fault(2, 3, 30, 90))) == {"faults_overlapped"}


def test_a_fault_at_no_broker_meets_none():
    """A request that is broken holds nobody: neither while a leader is hit, nor around an append."""
    broken = fault(1, -1, 10, 50)
    found = reached((BEGUN, *broken, *LEADER), append(12, 25))
    assert not {"faults_overlapped", "leader_struck", "written_between"} & found
    nobody = evolve(state(9, -1, 0, 2, 3), time=15)
    assert "leader_struck" not in reached((nobody, *fault(3, 2, 16, 60), *fault(1, -1, 20, 50)))


def test_leaders_and_isr():
    """Changes of a partition's state, and who is back when somebody else leads."""
    moved = evolve(state(9, 2, 1, 2), time=40)
    found = reached((BEGUN, *LEADER, moved, evolve(state(9, 2, 1, 2, 3), time=60)))
    assert {"leader_changed", "replaced_meanwhile", "isr_grew"} <= found and "left_alone" in found
    assert "replaced_meanwhile" not in reached((BEGUN, *fault(2, 1, 10, 20), moved))
    two = evolve(state(9, 2, 1, 2, 3), time=40)
    assert not {"left_alone", "isr_grew"} & reached((BEGUN, two))


def test_what_became_of_appends():
    """Unknown with acks=all; acknowledged after another attempt."""
    undecided = append(1, None, outcome=Outcome.UNKNOWN)
    assert reached((BEGUN,), undecided) == {"append_undecided"}
    assert reached((BEGUN,), append(1, 2, attempts=2)) == {"append_sent_again"}
    assert reached((BEGUN,), append(1, None, outcome=Outcome.UNKNOWN, acks=1)) == set()
