"""Topic configuration that changes while brokers run, and the cluster's id (docs/spec/cluster.md Z)."""

import json

import pytest
from impl_lab import MILLISECOND, Lab

from fencepost.impl.admin.configuration import SETTINGS
from fencepost.impl.broker.dynamic_config import EXPIRATION_MS, DynamicConfig
from fencepost.impl.core.topic_config import configured
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Delete, Multi, SetData
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TopicOptions


@pytest.fixture
def lab() -> Lab:
    """Three brokers, which read all configurations at once."""
    return Lab()


def alter(lab: Lab, topic: str = "t", **config: str) -> None:
    """As the admin tool does; names with underscores for dots."""
    data = znodes.encode_configuration({name.replace("_", "."): value for name, value in config.items()})
    path = znodes.config_path(topic)
    write = SetData(path, data) if lab.tree.node(path) else Create(path, data)
    lab.admin(
        Multi(
            (write, Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(topic), sequential=True))
        )
    )


def minimum(lab: Lab, node: int) -> int:
    """min.insync.replicas of topic t as a broker has it."""
    return lab.core(node).broker_context.topic_options("t").min_insync_replicas


def applied(lab: Lab, node: int) -> list[dict[str, str]]:
    """The configurations of topic t that a broker recorded."""
    return [json.loads(event.detail) for event in lab.recorded(Name.TOPIC_CONFIGURED, node)]


# ---- Z: /brokers/seqid, /cluster/id


def test_z_cluster_id_is_one_for_all_and_survives_restarts(lab):
    """Rule (Z, /cluster/id, /brokers/seqid): whoever comes first makes the nodes; the id has Kafka's form, is
    the same for all, and stays."""
    content = json.loads(lab.tree.node("/cluster/id").data)
    assert content.keys() == {"version", "id"} and content["version"] == "1" and len(content["id"]) == 22
    assert {lab.core(node).config.cluster_id for node in (1, 2, 3)} == {content["id"]}
    assert lab.tree.node("/brokers/seqid") is not None and not lab.tree.node("/brokers/seqid").owner
    for node in (1, 2, 3):
        lab.restart(node)
    assert {lab.core(node).config.cluster_id for node in (1, 2, 3)} == {content["id"]}


def test_z_nodes_are_kafkas():
    """Rule (Z, /config/topics/T, /config/changes/*): the nodes are those that Kafka's own tools write and
    read."""
    assert json.loads(znodes.encode_configuration({"retention.ms": "1"})) == {
        "version": 1, "config": {"retention.ms": "1"},
    }  # fmt: skip
    assert json.loads(znodes.encode_config_change("t")) == {"version": 2, "entity_path": "topics/t"}
    assert json.loads(znodes.encode_config_change("<1>")) == {"version": 2, "entity_path": "brokers/1"}
    for name in ("<default>", "<1>", "t"):
        assert znodes.decode_config_change(znodes.encode_config_change(name)) == name
        assert znodes.name_of_config_path(znodes.config_path(name)) == name
    assert znodes.config_path("<default>") == "/config/brokers/<default>"
    assert znodes.config_path("<1>") == "/config/brokers/1"
    assert znodes.decode_config_change(b'{"version":2,"entity_path":"users/1"}') is None


# ---- Z: /config/changes


def test_z_config_change_raises_min_insync_replicas(lab):
    """Rule (Z, /config/changes): a change is in force on every broker as soon as it is notified, and recorded
    once; without it the append is taken."""
    lab.lead(1, 1, isr=(1, 2))
    assert lab.produce(1, 1, acks=-1) is None
    alter(lab, min_insync_replicas="3")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [3, 3, 3]
    assert lab.produce(1, 2, acks=-1).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert applied(lab, 1) == [{"min.insync.replicas": "3"}]
    alter(lab)
    assert minimum(lab, 1) == 1 and applied(lab, 1)[1:] == [{}]
    assert lab.produce(1, 3, acks=-1) is None


def test_z_config_change_lowers_retention():
    """Rule (Z, /config/topics/T): logs that are open take the options over: segments that are too old by the
    new one go, those of other topics stay."""
    lab = Lab(topic=TopicOptions(segment_bytes=100))
    lab.lead(1, 1, isr=(1,))
    for value in range(1, 6):
        lab.produce(1, value)
    log = lab.partition(1).log
    lab.advance(60_000, nodes=(1,))
    lab.core(1).log_manager.retain()
    assert len(log.segments) > 1 and log.log_start_offset == 0
    alter(lab, "other", retention_ms="1000")
    lab.core(1).log_manager.retain()
    assert log.log_start_offset == 0
    alter(lab, retention_ms="1000", segment_bytes="200")
    assert log.segments.active.options.segment_bytes == 200 and log.options.contiguous
    lab.advance(310_000, nodes=(1,))
    assert log.log_start_offset == 5


def test_z_config_change_while_a_broker_was_down(lab):
    """Rule (Z, /config/topics/T): a broker that starts reads all configurations; logs that it made before,
    and those that it makes later, have the options."""
    lab.lead(1, 1)
    lab.crash(3)
    alter(lab, min_insync_replicas="2", retention_ms="1000")
    lab.start(3)
    assert minimum(lab, 3) == 2 and lab.partition(3).log.options.retention_ms == 1000
    other = TopicPartition("t", 1)
    lab.lead(2, 2, key=other)
    assert lab.partition(3, other).log.options.retention_ms == 1000


@pytest.mark.parametrize("noticed", [True, False])
def test_z_config_change_lost_in_a_session_expiry(noticed, monkeypatch, lab):
    """Rule (Z, /config/changes): a notification whose watch went with the session is made up for; without the
    reading of all it would be missed."""
    lab.end_session(2)
    alter(lab, min_insync_replicas="2")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [2, 1, 2]
    if not noticed:  # planted: the new session reads nothing
        monkeypatch.setattr(DynamicConfig, "on_session", lambda self: None)
    lab.notice_expiry(2)
    assert minimum(lab, 2) == (2 if noticed else 1)


def test_z_config_changes_during_a_look_are_seen(lab):
    """Rule (Z, /config/changes): a change that comes while an earlier one is read is read after it; a lost
    reply changes nothing."""
    lab.hold_zookeeper(1)
    alter(lab, min_insync_replicas="2")
    lab.release_zookeeper(1, 2)
    alter(lab, min_insync_replicas="3")
    alter(lab, "other", min_insync_replicas="2")
    lab.reconnect(1)
    assert minimum(lab, 1) == 3
    assert lab.core(1).broker_context.topic_options("other").min_insync_replicas == 2


def test_z_configuration_goes_with_its_topic(lab):
    """Rule (Z, /config/topics/T): the deletion of a topic takes its node without a notification; a later
    topic of that name begins anew."""
    alter(lab, min_insync_replicas="2")
    lab.admin(Delete(znodes.config_path("t")))
    assert [minimum(lab, node) for node in (1, 2, 3)] == [1, 1, 1]
    alter(lab, min_insync_replicas="3")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [3, 3, 3]


def test_z_config_changes_are_bounded(lab):
    """Rule (Z, /config/changes): a notification older than 15 minutes goes when the next one comes; younger
    ones stay."""
    alter(lab, retention_ms="1000")
    lab.now += (EXPIRATION_MS - 1) * MILLISECOND
    alter(lab, retention_ms="2000")
    assert len(lab.children("/config/changes")) == 2
    lab.now += 2 * MILLISECOND
    alter(lab, retention_ms="3000")
    assert lab.children("/config/changes") == ["config_change_0000000001", "config_change_0000000002"]
    assert lab.core(2).broker_context.topic_options("t").retention_ms == 3000


def test_z_topics_inherit_from_brokers():
    """Rule (Z, /config/brokers; KIP-226): a topic's override wins over the broker's own setting, this one
    over that of all brokers, and this one over the static one; topics that come later have it, too; a broker
    that starts reads it; what the plan gave a topic is the topic's own."""
    lab = Lab(topic=TopicOptions(flush_messages=3))
    lab.admin(Create(znodes.BROKER_CONFIGS))
    alter(lab, "<default>", min_insync_replicas="2", log_flush_interval_messages="5", log_retention_ms="7")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [2, 2, 2]
    alter(lab, "<2>", min_insync_replicas="3")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [2, 3, 2]
    alter(lab, min_insync_replicas="1")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [1, 1, 1]
    alter(lab)
    lab.restart(2)
    assert [minimum(lab, node) for node in (1, 2, 3)] == [2, 3, 2]
    options = lab.core(2).broker_context.topic_options("t")
    assert (options.flush_messages, options.retention_ms) == (3, 7)
    before = len(applied(lab, 1))
    later = lab.core(1).broker_context.topic_options("later")
    assert (later.min_insync_replicas, later.flush_messages) == (2, 5) and len(applied(lab, 1)) == before
    alter(lab, "<default>")
    assert [minimum(lab, node) for node in (1, 2, 3)] == [1, 3, 1]
    assert lab.core(1).broker_context.topic_options("later") == TopicOptions()


def test_z_bad_configuration_is_recorded_and_ignored(lab):
    """Rule (Z, /config/topics/T): an unknown name is kept, a bad value or node is recorded, and both change
    nothing; what else is there is obeyed."""
    alter(lab, min_insync_replicas="many", retention_ms="5", made_up="1", cleanup_policy="sometimes")
    options = lab.core(1).broker_context.topic_options("t")
    assert (options.min_insync_replicas, options.retention_ms, options.cleanup_policy) == (1, 5, "delete")
    refused = [event for event in lab.recorded(Name.MARK, 1) if event.cause == "configuration_refused"]
    assert [json.loads(event.detail) for event in refused] == [
        {"cleanup.policy": "sometimes", "min.insync.replicas": "many"}
    ]
    assert applied(lab, 1)[0]["made.up"] == "1"
    lab.admin(SetData(znodes.config_path("t"), b"{"))
    lab.admin(Create(f"{znodes.CONFIG_CHANGES}/config_change_x", b"7"))
    assert lab.core(1).broker_context.topic_options("t") == options
    assert len([event for event in lab.recorded(Name.MARK, 1) if event.cause == "configuration_refused"]) == 3


def test_z_unclean_leader_election_enable():
    """Rule (Z, C8): as soon as a topic allows an unclean election, its partitions that wait for an ISR member
    are led by another replica."""
    lab = Lab(3, scripted=False)
    lab.create_topic({0: (3, 2)}).settle()
    lab.crash(2).rest(20_000)
    lab.crash(3).settle()
    lab.start(2).advance(1_000, settle=True)
    assert (lab.state().leader, lab.state().isr) == (-1, (3,))
    alter(lab, unclean_leader_election_enable="true")
    lab.settle()
    assert (lab.state().leader, lab.state().isr) == (2, (2,))


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_z_settings_have_kafkas_names_and_bounds(name):
    """Rule (Z, /config/topics/T): each setting moves one option, within the bounds of that option; what is no
    value is refused."""
    planned = TopicOptions(cleanup_policy="compact")
    values = {"min.cleanable.dirty.ratio": "0.25", "cleanup.policy": "delete, compact"}
    value = "TRUE" if "unclean" in name else values.get(name, "3")
    options, refused = configured(planned, {name: value})
    assert options != planned and not refused
    for bad in ("", "-2", "x", "1e30", "NaN", "sNaN", "\u0663\u0663x", str(10**20), "9" * 5_000):
        assert configured(planned, {name: bad}) == (planned, {name: bad})
