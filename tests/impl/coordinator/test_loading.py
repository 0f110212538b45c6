"""What members are answered while their new coordinator loads the group."""

from group_lab import GroupLab

from fencepost.traces.kafka_names.outcomes import ErrorCode


def test_members_are_not_told_that_their_group_is_being_loaded(lab: GroupLab) -> None:
    """Rule (GroupCoordinator of Apache Kafka): a heartbeat is well meanwhile, and a SyncGroup joins again:
    clients know no COORDINATOR_LOAD_IN_PROGRESS of these two (aiokafka 0.14.0 ended its consumer for good).
    JoinGroup says it."""
    (member,) = lab.stable(1, "c")
    lab.elect(2, 1)
    assert lab.committed(2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert lab.join(2, member.member_id).answer.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert lab.heartbeat(2, member) is ErrorCode.NONE
    assert lab.sync(2, member).answer.error is ErrorCode.REBALANCE_IN_PROGRESS
    lab.rest()
    assert lab.heartbeat(2, member) is ErrorCode.NONE
    assert lab.sync(2, member).answer.error is ErrorCode.NONE
