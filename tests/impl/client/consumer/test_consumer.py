"""The consumer: what its application is told and when, what it commits, where it begins, and when it gives
up."""

from functools import partial

import pytest
from consumer_lab import T0, T1, ConsumerLab

from fencepost.bugs.groups.commit_bugs import RetriesAsyncCommits
from fencepost.bugs.groups.seek_bugs import TakesAnyReset
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.fetch import ConsumerFetcher
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.consumer_protocol import decode_subscription
from fencepost.impl.messages.group_api import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import CHANGED, Function, Outcome

NONE = ErrorCode.NONE


def test_a_consumer_joins_begins_where_the_policy_says_and_reads() -> None:
    """Rule (P5): metadata, coordinator, id, generation, assignment, committed offsets, reset policy, records:
    in this order, within polls."""
    lab = ConsumerLab()
    assert lab.diary.entries[0] == ("assigned", (T0, T1))
    assert lab.diary.got() == [("t-0", 0), ("t-0", 1), ("t-0", 2), ("t-1", 0), ("t-1", 1)]
    assert [row.function for row in lab.rows if row.outcome == "ok"][:3] == [
        Function.JOIN,
        Function.FETCH_COMMITTED,
        Function.POLL,
    ]


def test_it_goes_on_from_what_is_committed() -> None:
    """Rule (P5): after a take-over the committed offset is where it begins; the policy is for partitions that
    have none."""
    lab = ConsumerLab()
    lab.use(lambda consumer: consumer.commit_sync({T0: 2}))
    lab.errors[HeartbeatRequest] = [ErrorCode.UNKNOWN_MEMBER_ID]
    lab.diary.entries.clear()
    lab.advance(3_500)
    assert lab.diary.entries[:2] == [("revoked", (T0, T1)), ("assigned", (T0, T1))]
    assert lab.diary.got() == [("t-0", 2), ("t-1", 0), ("t-1", 1)]


def test_revoked_comes_before_assigned_and_the_automatic_commit_before_both() -> None:
    """Rule (P5): when the group rebalances, what was consumed is committed first, then the listener hears
    that it is gone, then JoinGroup is sent."""
    lab = ConsumerLab(commit="auto")
    lab.errors[HeartbeatRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
    lab.asked.clear()
    lab.advance(3_200)
    kinds = [
        type(message) for message in lab.asked if isinstance(message, OffsetCommitRequest | JoinGroupRequest)
    ]
    assert kinds == [OffsetCommitRequest, JoinGroupRequest]
    assert lab.committed == {T0: 3, T1: 2}
    assert [entry[0] for entry in lab.diary.entries][-2:] == ["revoked", "assigned"]


@pytest.mark.parametrize(
    ("back", "away", "others"), [(False, False, 0), (True, False, 0), (True, True, 0), (True, True, 1)]
)
def test_a_leader_whose_topic_grows_asks_for_a_rebalance(back: bool, away: bool, others: int) -> None:
    """Rule: the group's leader looks at its topics with each metadata and joins again when one has grown, a
    static leader that is back (KIP-814), too, though it assigns nothing until then; also when it has grown
    while such a leader was away, of which it cannot know if there are other members."""
    lab = ConsumerLab(metadata_max_age_ms=1_000)
    lab.skip_assignment, lab.others = back, others
    lab.errors[HeartbeatRequest] = [ErrorCode.UNKNOWN_MEMBER_ID]
    if away and not others:
        lab.share = (T0,)
    lab.asked.clear()
    lab.advance(3_500)
    synced = [bool(request.assignments) for request in lab.requests(SyncGroupRequest)]
    assert not any(synced) if back else synced == [True]
    lab.asked.clear()
    if not away:
        assert len(synced) == 1
        lab.logs[TopicPartition("t", 2)] = 0
    lab.advance(5_000)
    assert lab.requests(JoinGroupRequest)
    assert lab.requests(JoinGroupRequest)


def test_a_poll_that_begins_while_metadata_are_asked_for_goes_on_with_the_answer() -> None:
    """Rule: it does not wait for its time-out, for which the next question may come too soon."""
    lab = ConsumerLab(metadata_max_age_ms=1_000)
    lab.diary.polls = False
    lab.errors[kafka.MetadataRequest] = [None]
    lab.advance(1_000)
    lab.logs[T0] += 1
    lab.use(Consumer.poll)
    (*_, asked) = lab.requests(kafka.MetadataRequest)
    lab.effects(lab.consumer.step(MessageArrived(1, lab.answer(asked)), lab.now))
    assert lab.diary.got()[-1] == ("t-0", 3)


def test_the_automatic_commit_comes_every_interval() -> None:
    """Rule (P5): by default every five seconds, at a poll, of what earlier polls returned."""
    lab = ConsumerLab(commit="auto")
    lab.advance(4_900)
    assert not lab.requests(OffsetCommitRequest)
    lab.advance(300)
    assert len(lab.requests(OffsetCommitRequest)) == 1
    assert lab.committed == {T0: 3, T1: 2}


def test_commit_sync_waits_and_tries_again_and_commit_async_does_neither() -> None:
    """Rule (P5): a commitSync that meets an error of the coordinator is sent again until it is decided; a
    commitAsync is sent once, unless that is planted."""
    for coordinator, requests in ((None, 1), (RetriesAsyncCommits, 2)):
        lab = ConsumerLab(coordinator)
        lab.errors[OffsetCommitRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
        lab.use(Consumer.commit_sync)
        assert ("committed", NONE) not in lab.diary.entries
        lab.advance(500)
        assert ("committed", NONE) in lab.diary.entries
        lab.asked.clear()
        lab.errors[OffsetCommitRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        lab.use(Consumer.commit_async)
        lab.advance(1_000)
        assert len(lab.requests(OffsetCommitRequest)) == requests


def test_a_commit_that_nobody_answered_is_unknown() -> None:
    """Rule: each OffsetCommit is a row; without an answer its outcome is unknown, and its retry is another
    row."""
    lab = ConsumerLab()
    lab.errors[OffsetCommitRequest] = [None]
    lab.use(Consumer.commit_sync)
    lab.advance(2_000)
    commits = [row for row in lab.rows if row.function is Function.COMMIT]
    assert [(row.outcome, row.attempts) for row in commits] == [("unknown", 1), ("ok", 2)]


def test_who_is_no_member_does_not_commit() -> None:
    """Rule (P3): after membership is lost nothing is sent: a commit without a generation would not be
    fenced."""
    lab = ConsumerLab()
    lab.diary.polls = False
    lab.advance(100)
    lab.errors[HeartbeatRequest] = [ErrorCode.ILLEGAL_GENERATION]
    lab.advance(3_000)
    lab.use(Consumer.commit_sync)
    assert not lab.requests(OffsetCommitRequest)
    assert lab.diary.entries[-1] == ("committed", ErrorCode.UNKNOWN_MEMBER_ID)


def test_seek_pause_and_resume() -> None:
    """Rule (P5): a seek is where the next poll reads; a paused partition stays assigned and is not read."""
    lab = ConsumerLab()
    lab.diary.entries.clear()
    lab.use(lambda consumer: consumer.pause(T0))
    lab.use(lambda consumer: consumer.seek(T0, 1))
    lab.use(lambda consumer: consumer.seek(T1, 0))
    lab.advance(400)
    assert lab.diary.entries == [("got", [("t-1", 0), ("t-1", 1)])]
    lab.use(lambda consumer: consumer.resume(T0))
    lab.advance(400)
    assert lab.diary.entries[-1] == ("got", [("t-0", 1), ("t-0", 2)])


@pytest.mark.parametrize(("fetcher", "begins"), [(ConsumerFetcher, 2), (TakesAnyReset, 0)])
def test_only_the_last_seek_says_where_to_go_on(fetcher, begins, monkeypatch) -> None:
    """Rule (KAFKA-7703): the answer about the log start comes when the application wants the end already.
    Planted: it goes on at the start."""
    monkeypatch.setattr(ConsumerFetcher, "still_wanted", fetcher.still_wanted)
    lab = ConsumerLab()
    lab.diary.polls = False
    lab.advance(400)
    for timestamp in (kafka.EARLIEST, kafka.LATEST):
        lab.use(lambda consumer, at=timestamp: consumer.seek_by_time(T0, at))
        lab.errors[kafka.ListOffsetsRequest] = [None, None]
        lab.use(Consumer.poll)
        lab.advance(200)
    first, last = [one for one in lab.requests(kafka.ListOffsetsRequest) if one.partition == T0][-2:]
    assert (first.timestamp, last.timestamp) == (kafka.EARLIEST, kafka.LATEST)
    for asked, offset in ((first, 0), (last, 2)):
        answer = kafka.ListOffsetsResponse(correlation_id=asked.correlation_id, error=NONE, offset=offset)
        lab.effects(lab.consumer.step(MessageArrived(1, answer), lab.now))
    assert lab.consumer.fetcher.positions[T0] == begins


def test_who_subscribes_again_leaves_and_begins_at_the_committed_offset() -> None:
    """Rule (P5): unsubscribe leaves the group without a commit; the next assignment begins anew."""
    lab = ConsumerLab()
    lab.advance(400)
    lab.diary.polls = False
    lab.advance(400)
    lab.committed[T0] = 1
    lab.use(partial(Consumer.subscribe_again, topics=("t",)))
    assert not lab.requests(OffsetCommitRequest) and len(lab.requests(LeaveGroupRequest)) == 1
    assert lab.consumer.fetcher.positions == {}
    lab.diary.entries.clear()
    lab.diary.polls = True
    lab.use(Consumer.poll)
    lab.advance(400)
    assert lab.diary.got() == [("t-0", 1), ("t-0", 2), ("t-1", 0), ("t-1", 1)]
    assert [row.function.value for row in lab.rows if row.function is Function.SUBSCRIBE] == ["subscribe"]


def test_who_subscribes_to_other_topics_joins_again_and_stays_a_member() -> None:
    """Rule (P5): subscribe() of a member leads to a JoinGroup with its own id, until one succeeds."""
    lab = ConsumerLab()
    lab.advance(400)
    joins = len(lab.requests(JoinGroupRequest))
    lab.diary.polls = False
    lab.advance(400)
    lab.use(partial(Consumer.subscribe, topics=("t", "u")))
    lab.diary.polls = True
    lab.errors[JoinGroupRequest] = [ErrorCode.NOT_COORDINATOR]
    lab.use(Consumer.poll)
    lab.advance(1_000)
    refused, later = lab.requests(JoinGroupRequest)[joins:]
    subscription = decode_subscription(dict(later.protocols)["range"])
    assert not lab.requests(LeaveGroupRequest)
    assert refused.member_id == later.member_id == lab.consumer.coordinator.member_id
    assert subscription is not None and subscription.topics == ("t", "u")
    assert not lab.consumer.coordinator.must_join
    (row,) = (row for row in lab.rows if row.function is Function.SUBSCRIBE)
    assert row.argument == CHANGED


def test_the_reset_policies() -> None:
    """Rule (P5): latest begins at the end, none stops with an error, and a position beyond the log is reset,
    too."""
    assert ConsumerLab(auto_offset_reset="latest").diary.entries == [("assigned", (T0, T1))]
    assert ConsumerLab(auto_offset_reset="none").diary.entries[-1] == (
        "failed",
        ErrorCode.OFFSET_OUT_OF_RANGE,
    )
    lab = ConsumerLab()
    lab.diary.entries.clear()
    lab.use(lambda consumer: consumer.seek(T0, 99))
    lab.advance(600)
    assert lab.diary.entries == [("got", [("t-0", 0), ("t-0", 1), ("t-0", 2)])]


def test_max_poll_records_bounds_a_poll() -> None:
    """Rule (P5): what a poll leaves is what the next one returns; nothing is lost in between."""
    lab = ConsumerLab(max_poll_records=2)
    lab.advance(600)
    offsets = lab.diary.got()
    assert all(len(got) <= 2 for kind, got in lab.diary.entries if kind == "got")
    assert sorted(offsets) == [("t-0", 0), ("t-0", 1), ("t-0", 2), ("t-1", 0), ("t-1", 1)]


def test_who_does_not_poll_leaves() -> None:
    """Rule (P5): after max.poll.interval without a poll the consumer leaves the group, although its
    heartbeats would go on."""
    lab = ConsumerLab(max_poll_interval_ms=5_000)
    lab.diary.polls = False
    lab.advance(5_500)
    assert lab.requests(HeartbeatRequest) and len(lab.requests(LeaveGroupRequest)) == 1


def test_time_inside_of_a_poll_does_not_count() -> None:
    """Rule (P5): max.poll.interval is the longest time between two polls, however long a poll waits."""
    lab = ConsumerLab(max_poll_interval_ms=1_000, poll_timeout_ms=900)
    lab.advance(3_000)
    lab.diary.polls = False
    lab.advance(950)  # the last poll ends
    lab.asked.clear()
    lab.advance(900)
    assert not lab.requests(LeaveGroupRequest)
    lab.advance(1_000)
    assert lab.requests(LeaveGroupRequest)


def test_another_coordinator_is_looked_for() -> None:
    """Rule (P5): NOT_COORDINATOR, and silence, make the consumer look again; its membership stands."""
    for error in (ErrorCode.NOT_COORDINATOR, None):
        lab = ConsumerLab()
        lab.errors[HeartbeatRequest] = [error]
        lab.asked.clear()
        lab.advance(8_000)
        assert len(lab.requests(HeartbeatRequest)) >= 2
        assert not lab.requests(JoinGroupRequest)


def test_closing_commits_and_leaves() -> None:
    """Rule (P5): with auto commit a close commits what was consumed, then leaves; afterwards nothing is sent
    any more."""
    lab = ConsumerLab(commit="auto")
    lab.use(Consumer.close)
    assert (lab.committed, len(lab.requests(LeaveGroupRequest))) == ({T0: 3, T1: 2}, 1)
    lab.asked.clear()
    lab.advance(20_000)
    assert lab.asked == []


def test_a_leader_that_moved_is_found() -> None:
    """Rule (P5): errors of a fetch make the consumer ask who leads, and go on from where it was."""
    lab = ConsumerLab()
    lab.logs[T0] = 4
    lab.errors[kafka.FetchRequest] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    lab.asked.clear()
    lab.advance(600)
    assert lab.requests(kafka.MetadataRequest)
    assert lab.diary.entries[-1] == ("got", [("t-0", 3)])
    assert not lab.requests(OffsetFetchRequest)


def test_nobody_joins_before_the_partitions_are_known() -> None:
    """Rule (P5): a leader that knows no partitions would assign none, and nobody would consume; a poll that
    ends meanwhile changes nothing."""
    lab = ConsumerLab(silent=(kafka.MetadataRequest, 2))
    lab.advance(500)
    assert not lab.requests(JoinGroupRequest)
    lab.advance(4_000)
    assert lab.diary.got() == [("t-0", 0), ("t-0", 1), ("t-0", 2), ("t-1", 0), ("t-1", 1)]


def test_a_leader_of_the_past_is_not_asked() -> None:
    """Rule (KIP-320): a committed offset tells its leader epoch; until the metadata is as young, nobody is
    asked: an old leader would send us back."""
    lab = ConsumerLab()
    lab.committed, lab.committed_epoch = {T0: 3, T1: 2}, 4
    lab.errors[HeartbeatRequest] = [ErrorCode.UNKNOWN_MEMBER_ID]
    lab.advance(3_000)
    lab.asked.clear()
    lab.advance(1_000)
    assert not lab.requests(kafka.FetchRequest) and lab.requests(kafka.MetadataRequest)
    lab.epoch = 4
    lab.advance(1_000)
    assert {wanted.offset for fetch in lab.requests(kafka.FetchRequest) for wanted in fetch.partitions} == {
        3,
        2,
    }


def test_an_answer_of_an_earlier_life_neither_holds_nor_hurries_the_next_one() -> None:
    """Rule (P5): a consumer is fenced while it waits for its commit before JoinGroup, and is started anew. It
    joins, before that answer comes or after it, and once."""
    for restart_ms in (200, 3_000):  # the commit has a second and a half
        lab = ConsumerLab(commit="auto", heartbeat_interval_ms=300)
        lab.errors[OffsetCommitRequest] = [None]
        lab.errors[HeartbeatRequest] = [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID]
        lab.advance(700)
        assert lab.diary.entries[-1] == ("failed", ErrorCode.FENCED_INSTANCE_ID)
        lab.advance(restart_ms)
        lab.asked.clear()
        lab.diary.entries.clear()
        lab.use(lambda consumer: consumer.start_over())
        lab.advance(4_000)
        kinds = [entry[0] for entry in lab.diary.entries]
        assert kinds.count("assigned") == 1 and "revoked" not in kinds
        assert len(lab.requests(JoinGroupRequest)) == 2  # without an id, and with it


def test_who_is_fenced_tells_its_application_and_the_trace() -> None:
    """Rule (KIP-345): the poll raises; its row has the error, the member and who said so."""
    lab = ConsumerLab(heartbeat_interval_ms=300)
    lab.errors[HeartbeatRequest] = [ErrorCode.FENCED_INSTANCE_ID]
    lab.advance(700)
    assert ("failed", ErrorCode.FENCED_INSTANCE_ID) in lab.diary.entries
    (row,) = [row for row in lab.rows if row.error == "FENCED_INSTANCE_ID"]
    assert (row.function, row.outcome, row.member) == (Function.POLL, Outcome.FAIL, "m")
