"""Seeks: what a member does on purpose, what that excuses, and what it does not."""

from group_histories import append, commit, fetch, got, join, op, trace

from fencepost.checkers.groups import group_facts, judge_trace
from fencepost.traces.operations import Function, Operation, Position

SIX = tuple(append(50 + offset, offset) for offset in range(6))


def seek(op_id: int, member: str, generation: int, offset: int, *kept: int) -> Operation:
    """A seek in t-0 to an offset, -1 for the log end; in the partitions `kept` it does not move."""
    positions = tuple(Position(topic="t", partition=number, offset=-1) for number in kept)
    columns = {"argument": "seek", "result": f"t-0@{offset}", "positions": positions}
    return op(op_id, Function.ASSIGN, member, generation, **columns)


def read(op_id: int, member: str, generation: int, begin: int, *offsets: int) -> Operation:
    """A poll of a member that says from where it read."""
    position = Position(topic="t", partition=0, offset=begin, log_start_offset=0, end_offset=6)
    return got(op_id, member, generation, *offsets, positions=(position,))


def found(*operations: Operation, **more: object) -> set[str]:
    """The anomalies of a history."""
    return {finding.anomaly for finding in judge_trace(trace(*SIX, *operations, **more)).findings}


def causes(*operations: Operation) -> set[tuple[str, str]]:
    """The facts of a history."""
    return {(fact.kind, fact.cause) for fact in group_facts(trace(*SIX, *operations))}


FIRST = (join(1, "m1", 1, 0), read(2, "m1", 1, 0, 0, 1))


def test_a_seek_forward_excuses_a_gap_below_it():
    """Who seeks to the end passes what lies below on purpose; without the seek, or with one that leaves the
    partition alone, it is a gap."""
    jump = read(5, "m1", 1, 4, 4, 5)
    assert found(*FIRST, seek(3, "m1", 1, 4), jump) == set()
    assert ("gap", "seek") in causes(*FIRST, seek(3, "m1", 1, 4), jump)
    assert found(*FIRST, jump) == {"processing_gap"}
    assert found(*FIRST, seek(3, "m1", 1, 4, 0), jump) == {"processing_gap"}
    assert found(*FIRST, seek(3, "m2", 1, 4), jump) == {"processing_gap"}


def test_a_seek_forward_excuses_the_commit_of_its_place():
    """A commit before the first poll shows where a seek has led; the commit of another client does not."""
    ahead = commit(5, "m1", 1, 5, argument="auto")
    assert found(*FIRST, seek(3, "m1", 1, -1), ahead) == set()
    assert found(*FIRST, ahead) == {"commit_beyond_position"}
    assert found(*FIRST, seek(3, "m2", 1, -1), ahead) == {"commit_beyond_position"}


def test_a_seek_back_excuses_records_that_are_read_again():
    """From where it led to, in the generation of the seek."""
    before = (*FIRST, commit(3, "m1", 1, 2), join(4, "m2", 2, 0))
    again = read(7, "m2", 2, 0, 0, 1)
    assert found(*before, again) == {"reprocessed_after_commit"}
    assert found(*before, seek(6, "m2", 2, 0), again) == set()
    assert ("reprocessed", "seek") in causes(*before, seek(6, "m2", 2, 0), again)
    assert found(*before, seek(6, "m2", 1, 0), again) == {"reprocessed_after_commit"}
    shown = commit(6, "m2", 2, 7, argument="auto")
    assert found(*before, seek(5, "m2", 2, 7), shown, again) == set(), "beyond the end: it was reset"
    shown = commit(6, "m2", 2, 5, argument="auto")
    assert found(*before, seek(5, "m2", 2, 5), shown, again) >= {"reprocessed_after_commit"}


def test_where_a_seek_leads_to():
    """The next poll reads from the offset that was named, or from the log end; not from a committed offset
    or the log start. Only the last seek counts, and none from before a join."""
    for named, begin in ((0, 2), (1, 0), (-1, 0), (-2, 2)):
        wrong = seek(3, "m1", 1, named), read(5, "m1", 1, begin, begin)
        assert found(*FIRST, *wrong) == {"seek_ignored"}, named
        assert found(*FIRST, *wrong, retention=True) == set()
        assert found(*FIRST, *wrong, loss=(0, 6)) == set()
        right = {-1: 6, -2: 0}.get(named, named)
        assert found(*FIRST, seek(3, "m1", 1, named), read(5, "m1", 1, right)) == set()
    assert found(*FIRST, seek(3, "m1", 1, 0), seek(4, "m1", 1, 2), read(5, "m1", 1, 2)) == set()
    assert found(*FIRST, seek(3, "m1", 1, 0), join(4, "m1", 1, 0), read(5, "m1", 1, 2)) == set()
    assert found(*FIRST, seek(3, "m1", 1, 7), read(5, "m1", 1, 0, 0)) == set(), "beyond what was shown"
    assert found(*FIRST, seek(3, "m1", 1, 0), read(5, "m1", 1, 2, 2), compacted=("t",)) == set()


def test_a_seek_excuses_no_committed_offset_that_is_gone():
    """It says nothing of what is committed."""
    lost = commit(4, "m1", 1, 2, argument="sync"), fetch(5, None)
    assert found(*FIRST, seek(3, "m1", 1, 0), *lost) == {"committed_offset_lost"}


def test_a_lower_commit_after_a_seek_back_is_no_old_one():
    """It is sent again because nobody answered; without the seek it is one that was let go of."""
    first = *FIRST, commit(3, "m1", 1, 2, argument="sync")
    again = commit(5, "m1", 1, 0, argument="sync", attempts=2)
    assert found(*first, seek(4, "m1", 1, 0), again) == set()
    assert found(*first, again) == {"commit_sent_again"}
    assert found(*first, read(4, "m1", 1, 0), again) == set(), "its position was reset"
