"""model/replication/replica_log.py: a replica's log as a trace tells it."""

from fencepost.model.replication.replica_log import UNKNOWN_EPOCH, ReplicaLog


def test_growth_after_an_interrupted_step_is_unknown() -> None:
    """Rule: what no event named may be anything, until another replica copied it."""
    log = ReplicaLog([0, 0], [10, 11])
    log.resize(3)
    assert (log.epochs, log.unknown) == ([0, 0, UNKNOWN_EPOCH], 1)
    assert log.first_difference(2, [1], [99]) is None
    log.learn(2, [1], [99])
    assert (log.epochs[2], log.values[2], log.unknown) == (1, 99, 0)
    assert log.first_difference(2, [1], [98]) == 2


def test_shared_prefix_counts_certain_records_only() -> None:
    """Rule: an unknown record is never taken as shared, so that no truncation is blamed for cutting it."""
    one, other = ReplicaLog([0, 0, 1], [1, 2, 3]), ReplicaLog([0, 0, 1], [1, 2, 3])
    assert one.shared_prefix(other) == 3
    other.resize(1)
    other.resize(3)
    assert one.shared_prefix(other) == 1
    assert one.shared_prefix(ReplicaLog([0, 2], [1, 2])) == 1


def test_first_difference_sees_the_end() -> None:
    """Rule: a record past the end of a log is not in it."""
    log = ReplicaLog([0, 0], [1, 2])
    assert log.first_difference(1, [0, 0], [2, 3]) == 2
    assert log.first_difference(0, [0, 0], [1, 2]) is None
    assert log.first_difference(0, [0, 1], [1, 2]) == 1


def test_a_cut_forgets_unknown_records() -> None:
    """Rule: the count of unknown records is that of the records that are left."""
    log = ReplicaLog([0], [1])
    log.resize(4)
    log.resize(2)
    assert log.unknown == 1
    log.append(1, 3, (5,))
    assert (log.epochs, log.values, log.unknown) == ([0, 3], [1, 5], 0)


def test_extend_takes_what_is_missing() -> None:
    """Rule: what was exposed once stays; a higher high watermark adds the records between."""
    log, other = ReplicaLog([0], [1]), ReplicaLog([5, 0, 1], [9, 2, 3])
    other.resize(4)
    log.extend(other, 2)
    assert (log.epochs, log.values, log.unknown) == ([0, 0], [1, 2], 0)
    log.extend(other, 9)
    assert (log.end_offset, log.unknown) == (4, 1)
