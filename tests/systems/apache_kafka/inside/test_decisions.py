"""The logs of decisions as events: epochs, ISRs and assignments follow from records as Kafka derives them.

Both logs are written by hand here.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.judges import judge
from fencepost.systems.apache_kafka.inside.metadata_log import read_metadata_log
from fencepost.systems.apache_kafka.inside.unclean_elections import elections_of
from fencepost.systems.apache_kafka.inside.zookeeper_log import read_zookeeper_log
from fencepost.systems.apache_kafka.inside.zookeeper_transactions import changes_of, read_transactions
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace
from tests.systems.apache_kafka.inside import written as w

TOPIC = w.uid(7)


def partition(**fields):
    defaults = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return w.record("PartitionRecord", topic_id=TOPIC, **(defaults | fields))


def change(**fields):
    return w.record("PartitionChangeRecord", topic_id=TOPIC, **fields)


def metadata(tmp_path, *batches, broker=1, name="00000000000000000000.log"):
    folder = tmp_path / f"broker-{broker}" / "__cluster_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(w.metadata_log(*batches))
    return {broker: folder.parent}


def events_of(tmp_path, *values):
    """Of one batch by controller 3 in epoch 2, after the topic `t` was made."""
    first = [w.record("TopicRecord", name="t", topic_id=TOPIC), partition()]
    return read_metadata_log(metadata(tmp_path, (2, 1_000, 3), (2, 2_000, [*first, *values])))


def states(events):
    return [
        (each.leader, each.leader_epoch, each.isr, each.zk_version, each.cause)
        for each in events
        if each.name is Name.PARTITION_STATE
    ]


def verdict(events):
    trace = Trace(trace_id=1, plan="", seed=1, software_version="x", events=tuple(events))
    (found,) = judge(trace, ("invariants",))
    return [finding.anomaly for finding in found.findings]


# ---- KRaft


def test_the_quorum_leader_is_the_controller(tmp_path):
    """Its epoch is the controller epoch of what it writes, and times are those of the batches."""
    events = events_of(tmp_path)
    assert [(each.name, each.node, each.controller_epoch, each.time) for each in events[:2]] == [
        (Name.CONTROLLER_EPOCH, 3, 2, 10**9),
        (Name.CONTROLLER_ZNODE, 3, 2, 10**9),
    ]
    assigned, state = events[2:]
    assert (assigned.topic, assigned.partition, assigned.replicas) == ("t", 0, (1, 2, 3))
    assert (state.node, state.controller_epoch, state.time) == (3, 2, 2 * 10**9)


def test_a_deposed_leader_of_the_quorum_is_convicted(tmp_path):
    """CTRL-FENCE: a batch of an earlier epoch of the quorum after a later one had begun."""
    topic = [w.record("TopicRecord", name="t", topic_id=TOPIC), partition()]
    story = [(2, 1_000, 3), (2, 2_000, topic), (3, 3_000, 1)]
    assert verdict(read_metadata_log(metadata(tmp_path, *story, (3, 4_000, [change(leader=2)])))) == []
    late = metadata(tmp_path / "late", *story, (2, 4_000, [change(leader=2)]))
    assert verdict(read_metadata_log(late)) == ["fenced_controller_wrote"]


def test_only_a_record_that_names_a_leader_begins_an_epoch(tmp_path):
    """The partition epoch rises with every record; a leader that is named again has a new epoch, too."""
    events = events_of(tmp_path, change(isr=[1, 2]), change(leader=2), change(leader=2), change(leader=-1))
    assert states(events)[1:] == [
        (1, 0, (1, 2), 1, ""),
        (2, 1, (1, 2), 2, ""),
        (2, 2, (1, 2), 3, ""),
        (-1, 3, (1, 2), 4, ""),
    ]
    assert verdict(events) == []


def test_an_election_outside_the_isr_is_named(tmp_path):
    """Unclean: the record says so, or the leader was not in the ISR. From the eligible leader replicas it is
    clean (KIP-966), and an ISR may be empty while there are some."""
    unclean = events_of(tmp_path, change(isr=[1]), change(leader=3, isr=[3], leader_recovery_state=1))
    assert states(unclean)[-1] == (3, 1, (3,), 2, "unclean")
    silent = events_of(tmp_path / "b", change(isr=[1]), change(leader=3, isr=[3]))
    assert states(silent)[-1][4] == "unclean"
    eligible = events_of(
        tmp_path / "c",
        change(isr=[1], eligible_leader_replicas=[2]),
        change(isr=[], leader=-1, eligible_leader_replicas=[1, 2]),
        change(isr=[2], leader=2, eligible_leader_replicas=[1]),
    )
    assert [each[4] for each in states(eligible)] == ["", "", "eligible", "eligible"]
    assert verdict(eligible) == []
    assert verdict(events_of(tmp_path / "d", change(isr=[]))) == ["empty_isr"]


def test_the_last_known_leader_takes_back_what_it_alone_had(tmp_path):
    """The last member of the ISR was killed and came back: the ISR is empty, nobody is eligible, and it is
    elected as if uncleanly although it has everything (seen with 4.4.0). Anybody else would be unclean."""
    gone = change(isr=[], leader=-1, last_known_elr=[2])
    back = events_of(
        tmp_path,
        change(isr=[2], leader=2),
        gone,
        change(isr=[2], leader=2, leader_recovery_state=1, last_known_elr=[]),
        change(isr=[1, 2], leader_recovery_state=0),
    )
    assert [each[4] for each in states(back)] == ["", "", "last_known", "last_known", ""]
    assert verdict(back) == []
    assert all(one.clean for one in elections_of(back))
    other = events_of(
        tmp_path / "b", change(isr=[2], leader=2), gone, change(isr=[1], leader=1, leader_recovery_state=1)
    )
    assert [one.clean for one in elections_of(other)] == [True, False]


def test_a_reassignment_is_asked_for_carried_out_and_over(tmp_path):
    """In this order; replicas that only go are what the operator asked for at once. None of it breaks a
    rule, and a stranger in the ISR does."""
    events = events_of(
        tmp_path,
        change(replicas=[2, 3, 4, 1], adding_replicas=[4], removing_replicas=[1]),
        change(isr=[1, 2, 3, 4]),
        change(isr=[2, 3, 4], replicas=[2, 3, 4], leader=2, adding_replicas=[], removing_replicas=[]),
        change(isr=[2, 3], replicas=[2, 3]),
    )
    moves = [
        (each.name.value, each.node, each.replicas)
        for each in events
        if each.name in (Name.ASSIGNMENT, Name.REASSIGNMENT)
    ]
    assert moves[1:] == [
        ("reassignment", -1, (2, 3, 4)),
        ("assignment", 3, (2, 3, 4, 1)),
        ("assignment", 3, (2, 3, 4)),
        ("reassignment", 3, ()),
        ("assignment", -1, (2, 3)),
    ]
    assert verdict(events) == []
    assert verdict(events_of(tmp_path / "b", change(isr=[1, 9]))) == ["isr_outside_assignment"]


def test_a_broker_is_alive_while_it_is_not_fenced(tmp_path):
    """It registers fenced; each change is one event, a repetition none."""
    register = {"broker_id": 4, "broker_epoch": 55, "fenced": True}
    events = events_of(
        tmp_path,
        w.record("RegisterBrokerRecord", **register),
        w.record("UnfenceBrokerRecord", id=4, epoch=55),
        w.record("BrokerRegistrationChangeRecord", broker_id=4, broker_epoch=55, fenced=1),
        w.record("FenceBrokerRecord", id=4, epoch=55),
        w.record("BrokerRegistrationChangeRecord", broker_id=4, broker_epoch=55, fenced=-1),
        w.record("UnregisterBrokerRecord", broker_id=4, broker_epoch=55),
    )
    znodes = [(each.node, each.broker_epoch) for each in events if each.name is Name.BROKER_ZNODE]
    assert znodes == [(4, 55), (4, -1), (4, 55), (4, -1)]
    assert [each.broker_epoch for each in events if each.name is Name.BROKER_REGISTERED] == [55]


def test_topics_are_configured_and_removed(tmp_path):
    """Overrides are whole after each change; a removal is asked for, carried out and done."""
    config = {"resource_type": 2, "resource_name": "t"}
    events = events_of(
        tmp_path,
        w.record("ConfigRecord", **config, name="unclean.leader.election.enable", value="true"),
        w.record("ConfigRecord", **config, name="retention.ms", value="5"),
        w.record("ConfigRecord", **config, name="retention.ms", value=None),
        w.record("ConfigRecord", resource_type=4, resource_name="1", name="x", value="y"),
        w.record("RemoveTopicRecord", topic_id=TOPIC),
    )
    details = [each.detail for each in events if each.name is Name.TOPIC_CONFIGURED]
    only = '{"unclean.leader.election.enable":"true"}'
    assert details == [only, '{"retention.ms":"5","unclean.leader.election.enable":"true"}', only]
    assert [(each.name.value, each.cause) for each in events[-3:]] == [
        ("topic_deletion", "requested"),
        ("assignment", ""),
        ("topic_deletion", "done"),
    ]
    assert verdict(events) == []


def test_an_aborted_transaction_decides_nothing(tmp_path):
    """Its records come with the end, or not at all (KIP-868); what cannot be read is passed over."""
    begin, end = w.record("BeginTransactionRecord"), w.record("EndTransactionRecord")
    aborted = [begin, w.record("FenceBrokerRecord", id=1), w.record("AbortTransactionRecord")]
    register = w.record("RegisterBrokerRecord", broker_id=4, broker_epoch=5, fenced=False)
    events = events_of(tmp_path, begin, register, end, b"\x01\x63\x00", *aborted)
    assert [each.name for each in events[-2:]] == [Name.BROKER_REGISTERED, Name.BROKER_ZNODE]


def test_the_longest_log_of_the_latest_epoch_counts(tmp_path):
    """A deposed controller's log may end in what was never decided."""
    topic = w.record("TopicRecord", name="t", topic_id=TOPIC)
    old = metadata(tmp_path, (1, 0, 1), (1, 0, [topic, partition(), change(leader=2), change(leader=3)]))
    new = metadata(tmp_path, (1, 0, 1), (1, 0, [topic, partition()]), (2, 0, 2), broker=2)
    assert len(states(read_metadata_log(old | new))) == 1
    torn = tmp_path / "broker-2" / "__cluster_metadata-0" / "00000000000000000000.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    assert len(states(read_metadata_log(new))) == 1


def test_a_log_without_its_beginning_is_refused(tmp_path):
    """One sentence, as for a folder without one."""
    late = metadata(tmp_path, (1, 0, 1), name="00000000000000000900.log")
    with pytest.raises(FencepostError, match="from its first record on"):
        read_metadata_log(late)
    with pytest.raises(FencepostError, match="a folder __cluster_metadata-0"):
        read_metadata_log({1: tmp_path})


# ---- ZooKeeper


def zookeeper(tmp_path, *changes, tail=b"\0" * 100):
    """Changes, each with its session, as the log of a server."""
    folder = tmp_path / "version-2"
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        w.transaction(one, session=session, zxid=number, time_ms=number * 1_000)
        for number, (session, one) in enumerate(changes, 1)
    ]
    (folder / "log.1").write_bytes(w.transaction_log(*entries, tail=tail))
    return read_zookeeper_log(tmp_path)


ELECTED = w.multi(
    w.create("/controller", b'{"version":1,"brokerid":2,"timestamp":"0"}'),
    w.set_data("/controller_epoch", b"1", 1),
)
NODE = "/brokers/topics/t/partitions/0/state"
BEGUN = (
    (11, w.create("/controller_epoch", b"0")),
    (11, w.create("/brokers/ids/1", b"{}")),
    (12, w.create("/brokers/ids/2", b"{}")),
    (12, ELECTED),
    (12, w.create("/brokers/topics/t", w.topic_node([1, 2, 3]))),
    (12, w.create(NODE, w.state(1, 0, [1, 2, 3]))),
)


def test_zookeepers_writes_have_their_writer_and_their_time(tmp_path):
    """The session that created /brokers/ids/N is broker N; a multi is one moment."""
    events = zookeeper(tmp_path, *BEGUN)
    assert [(each.name.value, each.node, each.time) for each in events] == [
        ("broker_znode", 1, 2 * 10**9),
        ("broker_registered", 1, 2 * 10**9),
        ("broker_znode", 2, 3 * 10**9),
        ("broker_registered", 2, 3 * 10**9),
        ("controller_znode", 2, 4 * 10**9),
        ("controller_epoch", 2, 4 * 10**9),
        ("assignment", 2, 5 * 10**9),
        ("partition_state", 2, 6 * 10**9),
    ]
    assert [each.broker_epoch for each in events if each.name is Name.BROKER_ZNODE] == [2, 3]


def test_every_state_is_there_and_an_unclean_one_is_named(tmp_path):
    """Also those that a watch would have missed; versions are ZooKeeper's."""
    events = zookeeper(
        tmp_path,
        *BEGUN,
        (11, w.set_data(NODE, w.state(1, 0, [1]), 1)),
        (12, w.set_data(NODE, w.state(3, 1, [3]), 2)),
        (12, w.set_data(NODE, w.state(-1, 2, [3]), 3)),
    )
    assert states(events)[1:] == [(1, 0, (1,), 1, ""), (3, 1, (3,), 2, "unclean"), (-1, 2, (3,), 3, "")]
    assert verdict(events) == []


def test_a_closed_session_takes_its_nodes(tmp_path):
    """The end of a session is the end of a broker, and of a controller."""
    events = zookeeper(tmp_path, *BEGUN, (12, w.close_session("/controller", "/brokers/ids/2")))
    assert [(each.name.value, each.node, each.leader) for each in events[-2:]] == [
        ("controller_znode", 2, -1),
        ("broker_znode", 2, -1),
    ]


def test_a_deposed_controllers_write_is_convicted(tmp_path):
    """CTRL-FENCE reads these events: a write with an old controller epoch after the new one was there."""
    late = (11, w.set_data(NODE, w.state(2, 1, [2], controller_epoch=1), 1))
    assert verdict(zookeeper(tmp_path, *BEGUN, late)) == ["fenced_controller_wrote"]  # not its epoch
    newer = (12, w.set_data("/controller_epoch", b"2", 2))
    late = (12, w.set_data(NODE, w.state(2, 1, [2], controller_epoch=1), 1))
    assert verdict(zookeeper(tmp_path / "b", *BEGUN, newer, late)) == ["fenced_controller_wrote"]


def test_two_leaders_in_an_epoch_are_convicted(tmp_path):
    """EPOCH-MONO reads these events."""
    twice = (12, w.set_data(NODE, w.state(2, 0, [1, 2, 3]), 1))
    assert verdict(zookeeper(tmp_path, *BEGUN, twice)) == ["two_leaders_one_epoch"]


def test_reassignment_and_deletion_in_zookeeper(tmp_path):
    """KIP-455: a topic's node says what is being moved."""
    node = "/brokers/topics/t"
    events = zookeeper(
        tmp_path,
        *BEGUN,
        (12, w.set_data(node, w.topic_node([2, 3, 4, 1], adding=[4], removing=[1]), 1)),
        (12, w.set_data(NODE, w.state(2, 1, [2, 3, 4]), 1)),
        (12, w.set_data(node, w.topic_node([2, 3, 4]), 2)),
        (11, w.create("/admin/delete_topics/t")),
        (12, w.delete(NODE)),
        (12, w.delete(node)),
        (12, w.delete("/admin/delete_topics/t")),
    )
    assert [(each.name.value, each.replicas, each.cause) for each in events[8:]] == [
        ("reassignment", (2, 3, 4), ""),
        ("assignment", (2, 3, 4, 1), ""),
        ("partition_state", (), ""),
        ("assignment", (2, 3, 4), ""),
        ("reassignment", (), ""),
        ("topic_deletion", (), "requested"),
        ("assignment", (), ""),
        ("topic_deletion", (), "done"),
    ]
    assert verdict(events) == []


def test_a_multi_that_failed_changed_nothing_and_bad_nodes_are_passed_over(tmp_path):
    """As is the entry that a killed server left half-written."""
    failed = w.multi((-1, struct.pack(">i", -101)), (-1, struct.pack(">i", 0)))
    half = w.transaction_log(w.transaction(w.delete(NODE)), tail=b"")[16:-9]
    events = zookeeper(
        tmp_path, *BEGUN, (12, failed), (12, w.set_data(NODE, b"nonsense", 1)), tail=half + b"\0" * 50
    )
    assert len(events) == 8


def test_another_file_is_refused(tmp_path):
    """By its first bytes; a folder without logs as well."""
    (tmp_path / "version-2").mkdir()
    with pytest.raises(FencepostError, match="transaction logs"):
        read_zookeeper_log(tmp_path)
    (tmp_path / "version-2" / "log.1").write_bytes(b"ZKSN" + b"\0" * 20)
    with pytest.raises(TraceError, match="ZKLG version 2"):
        read_zookeeper_log(tmp_path)
    (tmp_path / "version-2" / "log.1").write_bytes(w.transaction_log(b"\0" * 28 + b"\0\0\0\x05"))
    with pytest.raises(TraceError, match="a transaction of ZooKeeper"):
        list(read_transactions([tmp_path / "version-2" / "log.1"]))


@given(st.binary(max_size=300), st.integers(-20, 25))
def test_no_bytes_are_more_than_a_value_error(data, kind):
    """Lengths and counts of any size are bounded by the bytes that are there."""
    try:
        found = list(changes_of(w.transaction((kind, data))))
    except ValueError:
        return
    assert len(found) <= len(data) + 1
