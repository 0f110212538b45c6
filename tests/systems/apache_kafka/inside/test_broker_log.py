"""What brokers say about themselves: sentences of several versions in both layouts, and any other text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.judges import judge
from fencepost.systems.apache_kafka.inside.broker_log import (
    LONGEST_LINE,
    BrokerLogFold,
    lines_of,
    read_broker_log,
)
from fencepost.systems.apache_kafka.inside.together import Window, in_window
from fencepost.systems.apache_kafka.inside.unclean_elections import elections_of
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Claims, Trace

START = "2026-01-02 03:04:05,678"
AT = 1_767_323_045_678_000_000
"""The same moment in nanoseconds, of UTC."""


def ours(text, level="INFO", logger="kafka.cluster.Partition", zone="+0000"):
    return f"{START}{zone} [a thread] {level} {logger} - {text}"


def theirs(text, level="INFO", logger="kafka.cluster.Partition"):
    return f"[{START}] {level} {text} ({logger})"


def events(*texts, layout=ours, node=2):
    fold = BrokerLogFold(node)
    return [event for line in lines_of(map(layout, texts)) for event in fold.take(line)]


LEADS = {
    "2.8": "Leader t-a-0 starts at leader epoch 4 from offset 12 with high watermark 11 ISR [2,1]"
    " addingReplicas [] removingReplicas []. Previous leader epoch was 3.",
    "3.9": "Leader t-a-0 with topic id Some(abc) starts at leader epoch 4 from offset 12 with partition epoch"
    " 7, high watermark 11, ISR [2,1], adding replicas [] and removing replicas [] . Previous leader Some(1)"
    " and previous leader epoch was 3.",
}
FOLLOWS = {
    "2.8": "Follower t-a-0 starts at leader epoch 4 from offset 12 with high watermark 11. Current leader is"
    " 1. Previous leader epoch was 3.",
    "3.9": "Follower t-a-0 starts at leader epoch 4 from offset 12 with partition epoch 7 and high watermark"
    " 11. Current leader is 1. Previous leader None and previous leader epoch was -1.",
}


@pytest.mark.parametrize("layout", [ours, theirs])
@pytest.mark.parametrize("version", LEADS)
def test_a_role_begins(version, layout):
    """Epoch, log end and high watermark of either role; a topic may have hyphens."""
    epoch = -1 if version == "2.8" else 7
    (leads,) = events(f"[Broker id=2] {LEADS[version]}", layout=layout)
    assert leads == Event(
        time=AT, name=Name.BECAME_LEADER, node=2, topic="t-a", partition=0, leader_epoch=4, offset=12,
        high_watermark=11, isr=(2, 1), zk_version=epoch,
    )  # fmt: skip
    (follows,) = events(f"[Broker id=2] {FOLLOWS[version]}", layout=layout)
    assert follows == Event(
        time=AT, name=Name.BECAME_FOLLOWER, node=2, topic="t-a", partition=0, leader=1, leader_epoch=4,
        offset=12, high_watermark=11, zk_version=epoch,
    )  # fmt: skip


CUT = (
    "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition t-0 with"
    " TruncationState(offset=6, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0,"
    " partition=0, leaderEpoch=0, endOffset=6)",
    "[UnifiedLog partition=t-0, dir=/d] Truncating t-0 to offset 6 below high watermark 11",
    "[UnifiedLog partition=t-0, dir=/d] Truncating to offset 6",
)


def test_a_cut_says_why_and_what_it_took():
    """A cut below the replica's own high watermark is marked. The epoch is that of its last role. One without
    effect is none."""
    role = FOLLOWS["3.9"].replace("t-a-0", "t-0")
    _, mark, cut = events(role, *CUT)
    assert (mark.name, mark.cause, mark.offset, mark.high_watermark) == (
        Name.MARK, "truncated_below_high_watermark", 6, 11,
    )  # fmt: skip
    assert (cut.name, cut.offset, cut.high_watermark, cut.leader_epoch, cut.leader, cut.cause) == (
        Name.TRUNCATED, 6, 11, 4, 1, "leader_epoch",
    )  # fmt: skip
    local = CUT[0].partition(" due to")[0] + " due to local high watermark 0"
    idle = "[UnifiedLog partition=t-0, dir=/d] Truncating to 6 has no effect as the largest offset in it is 5"
    assert events(local, idle) == []
    assert [each.cause for each in events(local, CUT[2])] == ["high_watermark"]
    assert [each.cause for each in events("[Log partition=t-0, dir=/d] Truncate and start at offset 40")] == [
        "full"
    ]


def test_other_sentences():
    """Recovery, ISR, refused fetches, deletion, controllers, failures."""
    role = LEADS["3.9"].replace("t-a-0", "t-0")
    found = events(
        role,
        "[Partition t-0 broker=2] ISR updated to 2,1  and version updated to 8",
        "[Partition t-0 broker=2] ISR updated to 2 (under-min-isr) and version updated to 9",
        "[Partition t-0 broker=2] ISR updated to [1,2] and zkVersion updated to [10]",
        "Completed load of Log(dir=/d/t-0, topicId=x, topic=t, partition=0, highWatermark=3,"
        " lastStableOffset=3, logStartOffset=2, logEndOffset=17) with 1 segments in 84ms",
        "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Partition t-0 has an older epoch (2) than the"
        " current leader. Will await the new LeaderAndIsr state before resuming fetching.",
        "Log for partition t-0 is renamed to /d/t-0.abc-delete and is scheduled for deletion",
        "[Controller id=2] 2 successfully elected as the controller. Epoch incremented to 5 and epoch zk"
        " version is now 5",
        "[Controller id=2] Resigned",
        "[Broker id=2] Ignoring LeaderAndIsr request from controller 1 with correlation id 3 since its"
        " controller epoch 4 is old. Latest known controller epoch is 5",
        "[BrokerServer id=2] Transition from SHUTDOWN to STARTING",
        "starting",
        "Stopping serving logs in dir /d",
        "Encountered fatal fault: error",
    )[1:]
    assert [(each.name.value, each.leader_epoch, each.isr, each.zk_version) for each in found[:3]] == [
        ("isr_updated", 4, (2, 1), 8),
        ("isr_updated", 4, (2,), 9),
        ("isr_updated", 4, (1, 2), 10),
    ]
    recovered, refused, deleted, elected, resigned, old, *rest = found[3:]
    assert (recovered.offset, recovered.high_watermark, recovered.log_start_offset) == (17, 3, 2)
    assert (refused.node, refused.leader_epoch, refused.detail) == (1, 2, "FENCED_LEADER_EPOCH")
    assert (deleted.cause, deleted.leader_epoch) == ("replica_deleted", 4)
    assert (elected.name, elected.controller_epoch, resigned.name) == (
        Name.CONTROLLER_ELECTED, 5, Name.CONTROLLER_RESIGNED,
    )  # fmt: skip
    assert (old.cause, old.controller_epoch, old.detail) == ("LeaderAndIsr", 4, "STALE_CONTROLLER_EPOCH")
    assert [each.name.value for each in rest] == [
        "broker_started", "broker_started", "log_directory_failed", "mark",
    ]  # fmt: skip


def test_zones_and_files(tmp_path):
    """Times with a zone, and times of a given one; lines without a time, an absent file and a line beyond the
    bound are passed over."""
    role = f"[Broker id=2] {LEADS['3.9']}"
    east = theirs(role)
    one, other = tmp_path / "server.log", tmp_path / "state-change.log"
    one.write_text(f"java.lang.Exception: {role}\n\tat x\n{'x' * 3 * LONGEST_LINE}\n{east}\n", "utf-8")
    other.write_bytes(ours(role, zone="-0130").encode() + b"\r\n\xff\xfe\n" + ours(role)[:60].encode())
    first, second = read_broker_log(2, (one, other, tmp_path / "none"), utc_offset_s=7200)
    hour = 3_600_000_000_000
    assert (first.time, second.time) == (AT - 2 * hour, AT + hour + hour // 2)


@given(st.lists(st.text(max_size=200) | st.sampled_from((*LEADS.values(), *CUT)), max_size=20), st.randoms())
def test_any_text_is_a_line_or_none(texts, random):
    """No line makes an exception, whole or cut anywhere."""
    cut = [text[random.randrange(len(text) + 1) :] for text in texts]
    for layout in (ours, theirs):
        for event in events(*texts, *cut, layout=layout):
            assert event.time == AT


# ---- together


STATE = {"topic": "x", "partition": 0}


def state(time, leader, epoch, isr, cause=""):
    return Event(
        time=time, name=Name.PARTITION_STATE, leader=leader, leader_epoch=epoch, isr=isr, cause=cause, **STATE
    )


def led(time, node, epoch, offset, high_watermark):
    return Event(
        time=time, name=Name.BECAME_LEADER, node=node, leader_epoch=epoch, offset=offset,
        high_watermark=high_watermark, isr=(node,), **STATE,
    )  # fmt: skip


def test_a_window_begins_with_what_holds():
    """The latest facts of the cluster come first; topics have the trace's names, and other topics are left
    out; decisions come before words of the same millisecond."""
    epoch = [Event(time=t, name=Name.CONTROLLER_EPOCH, controller_epoch=t) for t in (1, 2, 30)]
    gone = [
        Event(time=3, name=Name.BROKER_ZNODE, node=1, broker_epoch=5),
        Event(time=4, name=Name.BROKER_ZNODE, node=1),
        Event(time=4, name=Name.BROKER_ZNODE, node=2, broker_epoch=6),
    ]
    other = Event(time=21, name=Name.PARTITION_STATE, topic="other", partition=0)
    decided = [*epoch, *gone, state(5, 1, 0, (1, 2)), state(25, 2, 1, (2,)), other]
    found = in_window(
        [*decided, led(25, 2, 1, 7, 7), state(99, 1, 9, (1,))], Window(since=20, until=90, topics={"x": "t"})
    )
    assert [(each.name.value, each.time, each.topic) for each in found] == [
        ("controller_epoch", 0, None),
        ("broker_znode", 0, None),
        ("partition_state", 0, "t"),
        ("partition_state", 5, "t"),
        ("became_leader", 5, "t"),
        ("controller_epoch", 10, None),
    ]
    assert found[1].node == 2 and found[0].controller_epoch == 2


def test_only_an_election_outside_the_isr_is_unclean():
    """One from eligible leader replicas is clean. Where the leader did not say where its epoch began, that is
    unknown."""
    events = [
        state(0, 1, 0, (1, 2, 3)),
        led(1, 1, 0, 0, 0),
        state(2, 1, 0, (1,)),
        state(3, 3, 1, (3,), "unclean"),
        led(4, 3, 1, 6, 5),
        state(5, 2, 2, (3, 2)),
        state(6, 1, 3, (1,), "eligible"),
        state(7, 2, 4, (2,), "unclean"),
    ]
    found = elections_of(events)
    assert [(each.leader_epoch, each.clean, each.start_offset) for each in found] == [
        (1, False, 6), (2, True, -1), (3, True, -1), (4, False, -1),
    ]  # fmt: skip


def test_a_leader_with_a_high_watermark_beyond_its_log_is_convicted():
    """HW-BOUNDS reads these events of real brokers."""
    events = (state(0, 1, 0, (1,)), led(1, 1, 0, 5, 6))
    trace = Trace(trace_id=1, plan="", seed=1, software_version="x", events=events, claims=Claims())
    (verdict,) = judge(trace, ("invariants",))
    assert [each.anomaly for each in verdict.findings] == ["high_watermark_outside_log"]
