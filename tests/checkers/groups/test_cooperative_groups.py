"""Members that keep partitions from one generation to the next (KIP-429)."""

from group_histories import commit, fetch, got, join, op, trace
from test_seeks import SIX, found, read, seek

from fencepost.checkers import kafka
from fencepost.traces.operations import COOPERATIVE, LOST, Function, Operation


def kept(op_id: int, member: str, generation: int, *partitions: int) -> Operation:
    """The join of a cooperative member."""
    return join(op_id, member, generation, *partitions, argument=COOPERATIVE)


def lost(op_id: int, member: str) -> Operation:
    """A member says that it can keep nothing."""
    return op(op_id, Function.ASSIGN, member, -1, argument=LOST)


def test_what_a_member_has_goes_to_nobody_in_the_generation_in_which_it_learns_of_that():
    """It still reads there: another one gets it in a later generation, or if the member has lost it."""
    first, gives_up, takes = kept(1, "m1", 1, 0), kept(3, "m1", 2), kept(4, "m2", 2, 0)
    assert found(first, gives_up, takes) == {"partition_given_too_soon"}
    assert found(first, gives_up, kept(4, "m2", 3, 0)) == set()
    assert found(first, lost(2, "m1"), gives_up, takes) == set()
    assert found(join(1, "m1", 1, 0), gives_up, takes) == set(), "eager: given up before it joined"
    assert found(first, join(3, "m1", 2), takes) == set()


def test_positions_and_seeks_last_as_long_as_the_partition_is_kept():
    """A commit in a later generation is of what was read before; a seek shows in the first poll after it."""
    first, again = (kept(1, "m1", 1, 0), read(2, "m1", 1, 0, 0, 1)), kept(4, "m1", 2, 0)
    ahead = commit(5, "m1", 2, 2, argument="auto")
    assert found(*first, again, ahead) == set()
    assert found(*first, lost(3, "m1"), again, fetch(44, 0, process=1, at=(46, 47)), ahead) == {
        "committed_offset_unexplained",
        "commit_beyond_position",
    }
    jump = read(6, "m1", 2, 4, 4, 5)
    assert found(*first, seek(3, "m1", 1, 4), again, jump) == set()
    assert found(*first, again, jump) == {"processing_gap"}


def test_a_member_that_joins_again_in_its_generation_goes_on_there():
    """A JoinGroup with nothing new in it is answered with the generation that the member is in."""
    first, later = (kept(1, "m1", 1, 0), read(2, "m1", 1, 0, 0, 1)), kept(4, "m1", 2, 0)
    again, ahead = kept(7, "m1", 2, 0), commit(5, "m1", 2, 2, argument="auto")
    assert found(*first, later, ahead, again) == set()
    assert found(*first, lost(3, "m1"), later, fetch(44, 0, process=1, at=(46, 47)), ahead, again) == {
        "committed_offset_unexplained",
        "commit_beyond_position",
    }


def test_a_kept_partition_is_read_on_where_it_was():
    """The kafka check: who keeps a partition neither goes back nor passes records; who gets it anew may."""
    first = (kept(1, "m1", 1, 0), got(2, "m1", 1, 0, 1))
    back = got(5, "m1", 2, 0, 1)

    def anomalies(*operations: Operation) -> set[str]:
        return {finding.anomaly for finding in kafka.judge_trace(trace(*SIX, *operations)).findings}

    assert anomalies(*first, kept(3, "m1", 2, 0), back) == {"position_regressed"}
    assert anomalies(*first, kept(3, "m1", 2, 0), got(5, "m1", 2, 4)) == {"poll_skip"}
    assert anomalies(*first, lost(3, "m1"), kept(4, "m1", 2, 0), back) == set()
    assert anomalies(*first, kept(3, "m1", 2), kept(4, "m1", 3, 0), got(5, "m1", 3, 0, 1)) == set()
    assert anomalies(*first, join(3, "m1", 2, 0), back) == set()


def test_nothing_is_kept_in_a_group_that_begins_anew():
    """Its generations begin at 1 again: a member that comes back goes on from none of the former ones."""
    joins = kept(1, "m1", 1, 0), kept(3, "m1", 2, 0), kept(5, "m1", 1, 0)
    again = read(7, "m1", 1, 0, 0, 1), commit(9, "m1", 1, 2, argument="auto")
    assert "processing_gap" not in found(*joins, *again)
