"""Committed offsets: replicated before they count, loaded by the next coordinator, fenced by generation,
removed by retention."""

import pytest
from group_lab import OFFSETS, T0, T1, GroupLab

from fencepost.bugs.groups.commit_bugs import ExpiresWhatIsWritten, ForgetsPendingCommits
from fencepost.impl.coordinator.committed_offsets import EXPIRY_TIMER, GroupOffsets
from fencepost.impl.coordinator.group_loading import LOAD_TIMER, UNLOAD_TIMER
from fencepost.impl.core.core_interface import TimerFired
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.messages.group_api import OffsetCommitRequest
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import GroupOptions, TopicOptions


def test_a_commit_is_answered_and_read_back_once_it_is_replicated(lab: GroupLab) -> None:
    """Rule (P4): a commit counts when its record is below the high watermark, neither for its sender nor for
    readers before."""
    asked = lab.commit(1, 7)
    assert (asked.answer, lab.committed(1)) == (None, -1)
    lab.rest()
    assert asked.answer.error is ErrorCode.NONE
    assert lab.committed(1) == 7


def test_the_next_coordinator_reads_it_back(lab: GroupLab) -> None:
    """Rule (P4): after a fail-over the offsets come from the log; the old coordinator says that it is
    none."""
    lab.commit_and_rest(1, 7)
    lab.commit(1, 9)
    lab.commit_and_rest(1, 3, key=T1)
    lab.elect(2, 1)
    assert lab.committed(2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.rest()
    assert (lab.committed(2), lab.committed(2, T1)) == (9, 3)
    assert lab.committed(1) is ErrorCode.NOT_COORDINATOR
    assert lab.groups(1) == {}


def test_nothing_is_shown_that_an_election_could_take_back(lab: GroupLab) -> None:
    """Rule (P4): what the log holds above the high watermark is loaded, but not served before it is
    replicated."""
    lab.commit(1, 7)
    lab.deliver(1, 2)
    lab.drop()
    lab.elect(2, 1, to=(2,)).advance(100, nodes=(2,))
    assert lab.partition(2, OFFSETS).log.log_end_offset == 1
    assert lab.committed(2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.elect(2, 2).rest()
    assert lab.committed(2) == 7


def test_a_lost_commit_is_told_as_one_that_may_come_to_pass(lab: GroupLab) -> None:
    """Rule: a coordinator that is deposed, or waits too long, after it wrote says so, so that the outcome is
    unknown and not a failure."""
    deposed = lab.commit(1, 7)
    lab.drop()
    lab.elect(2, 1)
    assert (deposed.answer.error, deposed.answer.appended) == (ErrorCode.NOT_COORDINATOR, True)
    late = GroupLab()
    asked = late.commit(1, 7)
    late.drop()
    late.crash(2)
    late.advance(5_100, nodes=(1,))
    assert (asked.answer.error, asked.answer.appended) == (ErrorCode.REQUEST_TIMED_OUT, True)


def test_a_commit_that_timed_out_is_shown_by_the_next_coordinator() -> None:
    """Rule (Kafka's failPendingOffsetWrite): its coordinator forgets it, though it replicates later; who
    loads the log shows it, unless a later one stands behind it."""
    for later, expected in ((None, 7), (9, 9)):
        lab = GroupLab()
        asked = lab.commit(1, 7)
        lab.drop()
        lab.advance(5_100, nodes=(1,))
        assert asked.answer.error is ErrorCode.REQUEST_TIMED_OUT
        lab.rest()
        assert lab.partition(1, OFFSETS).high_watermark == 1
        assert lab.committed(1) == -1
        if later:
            lab.commit_and_rest(1, later)
        lab.elect(2, 1).rest()
        assert lab.committed(2) == expected


def test_a_commit_of_another_generation_is_fenced(lab: GroupLab) -> None:
    """Rule (P3): only members of the present generation commit; who is no member may while the group is
    empty."""
    (member,) = lab.stable(1, "a")
    assert lab.commit(1, 5).answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    accepted = lab.commit(1, 5, member)
    again = lab.join(1, member.member_id)
    lab.rest()
    assert accepted.answer.error is ErrorCode.NONE
    assert lab.commit(1, 6, member).answer.error is ErrorCode.ILLEGAL_GENERATION
    assert lab.commit(1, 6, again.answer).answer.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_loads_and_unloads_of_earlier_epochs_do_nothing() -> None:
    """Rule (KAFKA-10614): whatever the scheduler does, the task of the latest leader epoch has the last
    word."""
    lab = GroupLab(groups={"load_step_ms": 10, "unload_ms": 500})
    lab.commit_and_rest(1, 7)
    lab.elect(2, 1)
    lab.elect(1, 2).rest(1_000)
    assert lab.committed(1) == 7
    slow = GroupLab(groups={"load_step_ms": 500, "unload_ms": 10})
    slow.rest(1_000)
    slow.elect(2, 1)
    slow.advance(100, settle=True)
    slow.elect(1, 2)
    slow.rest(2_000)
    assert slow.groups(2) == {}
    assert slow.core(2).groups.table.place(0).owned_epoch == -1
    assert {LOAD_TIMER, UNLOAD_TIMER}.isdisjoint({key[0] for key in slow.drivers[2].timers})


def test_a_load_reads_every_batch_of_every_step() -> None:
    """Rule (KAFKA-5600): a load of many small reads, of several batches each, ends with the last commit of
    every partition."""
    lab = GroupLab(groups={"offsets_load_buffer_bytes": 300})
    for offset in range(1, 12):
        lab.commit(1, offset)
        lab.commit(1, offset * 2, key=T1)
        lab.rest(60)
    lab.elect(2, 1).rest()
    assert (lab.committed(2), lab.committed(2, T1)) == (11, 22)


def test_offsets_survive_compaction() -> None:
    """Rule (P4): the topic is compacted; the last commit of each partition, and the group's generation,
    stay."""
    topic = TopicOptions(
        name=OFFSETS_TOPIC,
        cleanup_policy="compact",
        replication_factor=2,
        segment_bytes=300,
        min_cleanable_dirty_ppm=0,
    )
    lab = GroupLab(topic=topic, log_cleaner_backoff_ms=300)
    (member,) = lab.stable(1, "a")
    for offset in range(1, 12):
        lab.commit(1, offset, member)
        lab.rest(100)
        lab.heartbeat(1, member)
    lab.rest(1_000)
    log = lab.partition(2, OFFSETS).log
    records = sum(len(read_records(data, header)) for header, data in log.batches())
    assert records < log.log_end_offset, "nothing was compacted"
    lab.elect(2, 1).rest()
    assert lab.committed(2) == 11
    assert (lab.groups(2)["g"].generation, list(lab.groups(2)["g"].members)) == (1, [member.member_id])


def test_retention_takes_offsets_of_empty_groups_only() -> None:
    """Rule (KIP-211, KAFKA-13636): an empty group's offsets go after the retention, then the group;
    tombstones tell the next coordinator."""
    lab = GroupLab(groups={"offsets_retention_ms": 2_000, "offsets_retention_check_ms": 500})
    lab.commit(1, 7)
    lab.rest(1_500)
    assert lab.committed(1) == 7
    lab.rest(1_500)
    assert lab.committed(1) == -1
    assert [event.cause for event in lab.recorded(Name.GROUP_OFFSET_EXPIRED)] == ["Empty"]
    assert lab.groups(1) == {}
    lab.elect(2, 1).rest()
    assert (lab.committed(2), lab.groups(2)) == (-1, {})


@pytest.mark.parametrize("planted", [False, True])
def test_a_group_whose_first_commit_is_being_written_stays(planted, monkeypatch) -> None:
    """Rule (P5-PENDING): a consumer that is no member commits, and the group is looked at before the replicas
    have it. Planted: the group is removed, and the commit that is acknowledged cannot be read back."""
    if planted:
        monkeypatch.setattr(GroupOffsets, "holds_offsets", ForgetsPendingCommits.holds_offsets)
    lab = GroupLab()
    asked = lab.commit(1, 7)
    lab.step(1, TimerFired(EXPIRY_TIMER))
    lab.rest()
    assert asked.answer.error is ErrorCode.NONE
    assert (lab.committed(1) == 7) is not planted


@pytest.mark.parametrize("planted", [False, True])
def test_an_offset_that_is_committed_again_does_not_expire(planted, monkeypatch) -> None:
    """Rule (P4-WRITTEN): the retention is over while the next commit is being written. Planted: a tombstone
    stands behind that commit in the log, and the next coordinator does not know what was acknowledged."""
    if planted:
        monkeypatch.setattr(GroupOffsets, "is_being_written", ExpiresWhatIsWritten.is_being_written)
    lab = GroupLab(groups={"offsets_retention_ms": 1_000, "offsets_retention_check_ms": 100_000})
    lab.commit(1, 7)
    lab.rest(2_000)
    asked = lab.commit(1, 9)
    lab.step(1, TimerFired(EXPIRY_TIMER))
    lab.rest()
    assert asked.answer.error is ErrorCode.NONE
    lab.elect(2, 1).rest()
    assert (lab.committed(2) == 9) is not planted


def test_nothing_expires_while_a_group_rebalances() -> None:
    """Rule (KAFKA-13636): a rebalance may outlast the retention; what was committed before it is read after
    it."""
    lab = GroupLab(groups={"offsets_retention_ms": 1_000, "offsets_retention_check_ms": 300})
    (member,) = lab.stable(1, "a")
    lab.commit_and_rest(1, 7, member)
    for _ in range(6):
        lab.rest(200)
        lab.heartbeat(1, member)
    lab.enter(1, "b")
    assert lab.groups(1)["g"].phase == "PreparingRebalance"
    for _ in range(6):
        lab.rest(300)
        lab.heartbeat(1, member)
    assert lab.groups(1)["g"].phase == "PreparingRebalance"
    assert lab.committed(1) == 7


def test_commits_count_in_the_order_of_the_log(lab: GroupLab) -> None:
    """Rule (P4): of two commits on their way the later record wins, here and after a fail-over."""
    first, second = lab.commit(1, 9), lab.commit(1, 4)
    lab.rest()
    assert (first.answer.error, second.answer.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert lab.committed(1, T0) == 4
    lab.elect(2, 1).rest()
    assert lab.committed(2, T0) == 4


def test_offsets_survive_the_reassignment_of_their_topic() -> None:
    """Rule (P4, KAFKA-4362): when the offsets partition moves to other brokers, its groups move with it, and
    the old coordinator says so."""
    options = {"replica_fetch_wait_max_ms": 50, "groups": GroupOptions(initial_rebalance_delay_ms=0)}
    topic = TopicOptions(name=OFFSETS_TOPIC, cleanup_policy="compact")
    lab = GroupLab.moved(4, topic=topic, **options)
    assignment = znodes.encode_topic({0: (1, 2)})
    lab.admin(Create(znodes.topic_path(OFFSETS_TOPIC), assignment))
    lab.rest(500)
    lab.commit(1, 7)
    lab.rest(500)
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments({OFFSETS: (3, 4)})))
    for _ in range(20):
        lab.rest(500)
    assert lab.committed(3) == 7
    assert lab.committed(1) is ErrorCode.NOT_COORDINATOR
    assert lab.groups(1) == {}


def test_a_commit_of_nothing_is_a_sign_of_life(lab: GroupLab) -> None:
    """Any client may send one: it is answered, nothing is written, and the coordinator lives. (It built an
    empty batch once, and halted.)"""
    request = OffsetCommitRequest(
        correlation_id=1, group_id="g", generation_id=-1, member_id="", group_instance_id=None, offsets=()
    )
    end = lab.partition(1, OFFSETS).log.log_end_offset
    assert lab.send(1, request).answer.error is ErrorCode.NONE
    assert lab.partition(1, OFFSETS).log.log_end_offset == end
