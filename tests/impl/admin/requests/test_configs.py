"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, asked of a broker (KIP-133, KIP-226,
KIP-339)."""

from typing import Any

import pytest
from admin_lab import AdminLab, Asked

from fencepost.impl.admin.requests import topic_requests
from fencepost.impl.core.topic_config import ACCEPTED, SETTINGS
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.messages.admin_api import Alteration, AlteredSetting, ConfigSource, ResourceKind
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import SetData
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode
A = Alteration


def described(
    lab: AdminLab, name: str = "t", kind: ResourceKind = ResourceKind.TOPIC, keys: Any = None, node: int = 1
) -> kafka.DescribedConfig:
    """DescribeConfigs of one resource."""
    request = kafka.DescribeConfigsRequest(
        correlation_id=lab.number(), resources=(kafka.DescribedResource(kind=kind, name=name, keys=keys),)
    )
    (resource,) = lab.send(request, node).answer.resources
    return resource


def entries(described: kafka.DescribedConfig) -> dict[str, kafka.ConfigEntry]:
    """By name."""
    assert described.error is E.NONE, described.message
    return {entry.name: entry for entry in described.entries}


def alter(
    lab: AdminLab,
    *settings: tuple[str, Alteration, str | None],
    incremental: bool = True,
    dry: bool = False,
    name: str = "t",
    kind: ResourceKind = ResourceKind.TOPIC,
    node: int = 1,
) -> Asked:
    """IncrementalAlterConfigs, or AlterConfigs, of one resource."""
    altered = tuple(AlteredSetting(name=each, alteration=how, value=value) for each, how, value in settings)
    return lab.send(
        kafka.AlterConfigsRequest(
            correlation_id=lab.number(),
            resources=(kafka.AlteredResource(kind=kind, name=name, settings=altered),),
            incremental=incremental,
            validate_only=dry,
        ),
        node,
    )


def error_of(asked: Asked) -> ErrorCode:
    """Of the one resource."""
    (resource,) = asked.answer.resources
    assert (resource.error is E.NONE) == (not resource.message), resource
    return resource.error


# ---- describe


def test_a_topic_has_all_settings_with_their_sources():
    """Rule (KIP-226): each setting has its value in force, where it comes from, and what would count
    without it."""
    lab = AdminLab().created("t", retention_ms="1000", min_cleanable_dirty_ratio="0.250")
    found = entries(described(lab, node=2))
    assert list(found) == sorted(SETTINGS.keys() | ACCEPTED.keys())
    own = found["retention.ms"]
    assert (own.value, own.source, own.kind) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG, "LONG")
    assert [(one.name, one.value) for one in own.synonyms] == [("retention.ms", "1000")]
    ratio = found["min.cleanable.dirty.ratio"]
    assert [(one.name, one.value, one.source.value) for one in ratio.synonyms] == [
        ("min.cleanable.dirty.ratio", "0.25", "DYNAMIC_TOPIC_CONFIG"),
        ("log.cleaner.min.cleanable.ratio", "0.5", "DEFAULT_CONFIG"),
    ]
    bare = found["segment.bytes"]
    assert (bare.value, bare.source) == ("1073741824", ConfigSource.DEFAULT_CONFIG)
    assert [one.name for one in bare.synonyms] == ["log.segment.bytes"]
    assert found["flush.messages"].value == "9223372036854775807"
    assert not any(entry.read_only for entry in found.values())


def test_kafkas_defaults_are_what_a_topic_without_overrides_has():
    """Rule (Kafka's TopicConfig): every setting of a new topic has Kafka's default, and says that it is
    the default."""
    lab = AdminLab().created("t")
    for name, entry in entries(described(lab)).items():
        setting = SETTINGS.get(name) or ACCEPTED[name]
        assert (entry.value, entry.source) == (setting.default, ConfigSource.DEFAULT_CONFIG), name


def test_only_what_is_asked_for_is_described():
    """Rule (KIP-133): the names asked for; one that there is not is left out, and none at all is none."""
    lab = AdminLab().created("t")
    assert list(entries(described(lab, keys=("segment.ms", "no.such")))) == ["segment.ms"]
    assert entries(described(lab, keys=())) == {}


def test_resources_that_cannot_be_described(lab):
    """Rule (ConfigHelper): a topic that is not there, a name that is none, another broker."""
    assert described(lab, "none").error is E.UNKNOWN_TOPIC_OR_PARTITION
    assert described(lab, "a b").error is E.INVALID_TOPIC_EXCEPTION
    for name in ("2", "x", "9" * 30):
        assert described(lab, name, ResourceKind.BROKER).error is E.INVALID_REQUEST, name


def test_a_broker_has_what_it_was_started_with():
    """Rule (KIP-226): a broker answers for itself; what differs from Kafka's default is its own; only what
    topics inherit may change while it runs. Without a name: what all brokers were given at run time, which is
    nothing."""
    lab = AdminLab(2, num_partitions=7)
    found = entries(described(lab, "2", ResourceKind.BROKER, node=2))
    assert found["broker.id"].value == "2" and found["auto.create.topics.enable"].value == "true"
    own = found["num.partitions"]
    assert (own.value, own.source) == ("7", ConfigSource.STATIC_BROKER_CONFIG)
    assert [(one.value, one.source.value) for one in own.synonyms] == [
        ("7", "STATIC_BROKER_CONFIG"), ("1", "DEFAULT_CONFIG"),
    ]  # fmt: skip
    assert found["replica.fetch.backoff.ms"].source is ConfigSource.DEFAULT_CONFIG
    assert {name for name, entry in found.items() if not entry.read_only} == {*DYNAMIC.values()} & {*found}
    assert entries(described(lab, "", ResourceKind.BROKER)) == {}


def test_topics_have_what_brokers_were_given_at_run_time():
    """Rule (KIP-226): what was given to all brokers, or to the one that answers, is in force for its topics
    and shown with its source, those behind it as synonyms; a topic's own wins; taken away, it is gone."""
    lab = AdminLab().created("t")
    given = ("log.segment.bytes", A.SET, "1000")
    assert error_of(alter(lab, given, name="", kind=ResourceKind.BROKER)) is E.NONE
    assert lab.core(2).broker_context.topic_options("t").segment_bytes == 1000
    given = ("log.segment.bytes", A.SET, "2000")
    assert error_of(alter(lab, given, name="1", kind=ResourceKind.BROKER)) is E.NONE
    assert [lab.core(node).broker_context.topic_options("t").segment_bytes for node in (1, 2)] == [2000, 1000]
    sources = ["DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "DEFAULT_CONFIG"]
    for found in (
        entries(described(lab))["segment.bytes"],
        entries(described(lab, "1", ResourceKind.BROKER))["log.segment.bytes"],
    ):
        assert (found.value, found.source.value) == ("2000", sources[0])
        assert [one.source.value for one in found.synonyms] == sources
    assert list(entries(described(lab, "", ResourceKind.BROKER))) == ["log.segment.bytes"]
    assert error_of(alter(lab, ("segment.bytes", A.SET, "3000"))) is E.NONE
    assert entries(described(lab))["segment.bytes"].value == "3000"
    wrong = ("log.segment.bytes", A.SET, "many")
    assert error_of(alter(lab, wrong, name="", kind=ResourceKind.BROKER)) is E.INVALID_CONFIG
    for name in ("", "1"):
        taken = ("log.segment.bytes", A.DELETE, None)
        assert error_of(alter(lab, taken, name=name, kind=ResourceKind.BROKER)) is E.NONE
    assert entries(described(lab, "", ResourceKind.BROKER)) == {}
    assert lab.core(2).broker_context.topic_options("t").segment_bytes == 3000


# ---- alter


def test_settings_are_altered_one_by_one():
    """Rule (KIP-339): what is named changes, the rest stays; brokers have it in force, and it is read back
    at once."""
    lab = AdminLab().created("t", retention_ms="1000", cleanup_policy="delete")
    asked = alter(
        lab,
        ("retention.ms", A.DELETE, None),
        ("segment.ms", A.SET, "77"),
        ("cleanup.policy", A.APPEND, "compact"),
        ("retention.bytes", A.DELETE, None),
        node=3,
    )
    assert error_of(asked) is E.NONE
    assert lab.overrides("t") == {"cleanup.policy": "delete,compact", "segment.ms": "77"}
    assert entries(described(lab))["segment.ms"].value == "77"
    for node in (1, 2, 3):
        options = lab.core(node).broker_context.topic_options("t")
        assert (options.segment_ms, options.cleanup_policy) == (77, "compact,delete")
    assert error_of(alter(lab, ("cleanup.policy", A.SUBTRACT, "delete"))) is E.NONE
    assert lab.overrides("t")["cleanup.policy"] == "compact"


def test_altering_all_replaces_all():
    """Rule (KIP-133): AlterConfigs leaves a topic with what it names and nothing else."""
    lab = AdminLab().created("t", retention_ms="1000")
    assert error_of(alter(lab, ("segment.ms", A.SET, "77"), incremental=False)) is E.NONE
    assert lab.overrides("t") == {"segment.ms": "77"}
    assert error_of(alter(lab, incremental=False)) is E.NONE
    assert lab.overrides("t") == {}


def test_everything_described_can_be_written_back():
    """Rule: what a client reads it may set; every value that is printed is one that is taken."""
    lab = AdminLab().created("t", flush_messages="3")
    every = [(name, A.SET, entry.value) for name, entry in entries(described(lab)).items()]
    assert error_of(alter(lab, *every, incremental=False)) is E.NONE
    assert lab.core(1).broker_context.topic_options("t").flush_messages == 3


REFUSED = {
    "unknown": ((("retention", A.SET, "1"),), E.INVALID_CONFIG),
    "no number": ((("retention.ms", A.SET, "x"),), E.INVALID_CONFIG),
    "too large": ((("min.insync.replicas", A.SET, "17"),), E.INVALID_CONFIG),
    "no value": ((("retention.ms", A.SET, None),), E.INVALID_REQUEST),
    "twice": ((("retention.ms", A.SET, "1"), ("retention.ms", A.DELETE, None)), E.INVALID_REQUEST),
    "no list": ((("retention.ms", A.APPEND, "1"),), E.INVALID_CONFIG),
    "unknown list": ((("retention", A.SUBTRACT, "1"),), E.INVALID_CONFIG),
    "nothing left": ((("cleanup.policy", A.SUBTRACT, "delete"),), E.INVALID_CONFIG),
    "log append time": ((("message.timestamp.type", A.SET, "LogAppendTime"),), E.INVALID_CONFIG),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("dry", [False, True])
def test_what_cannot_be_altered_is_refused(case, dry):
    """Rule (ZkAdminManager): Kafka's error, and nothing is written, the good half neither."""
    lab = AdminLab().created("t")
    before = lab.tree.zxid
    settings, error = REFUSED[case]
    assert error_of(alter(lab, *settings, ("segment.ms", A.SET, "5"), dry=dry)) is error
    assert lab.tree.zxid == before


def test_validation_alone_alters_nothing():
    """Rule (KIP-133): validate_only."""
    lab = AdminLab().created("t")
    before = lab.tree.zxid
    assert error_of(alter(lab, ("segment.ms", A.SET, "5"), dry=True)) is E.NONE
    assert lab.tree.zxid == before


def test_resources_that_cannot_be_altered():
    """Rule (ZkAdminManager): a topic that is not there or goes; a broker's settings that stay."""
    lab = AdminLab().created("t")
    assert error_of(alter(lab, ("segment.ms", A.SET, "5"), name="none")) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(alter(lab, ("segment.ms", A.SET, "5"), name="a b")) is E.INVALID_TOPIC_EXCEPTION
    for name in ("1", "", "2", "x"):
        asked = alter(lab, ("num.partitions", A.SET, "5"), name=name, kind=ResourceKind.BROKER)
        assert error_of(asked) is E.INVALID_REQUEST


def test_what_a_broker_does_not_have_may_be_taken_away():
    """Rule (KIP-339): to delete a setting that is not there is no error. Kafka's reassignment tool clears
    throttles so, of every broker and topic, whether it ever set any."""
    lab = AdminLab().created("t")
    throttle = ("leader.replication.throttled.rate", A.DELETE, None)
    for name in ("1", ""):
        assert error_of(alter(lab, throttle, name=name, kind=ResourceKind.BROKER)) is E.NONE
        assert error_of(alter(lab, incremental=False, name=name, kind=ResourceKind.BROKER)) is E.NONE
    both = (throttle, ("num.partitions", A.SET, "5"))
    assert error_of(alter(lab, *both, name="1", kind=ResourceKind.BROKER)) is E.INVALID_REQUEST
    assert error_of(alter(lab, ("leader.replication.throttled.replicas", A.DELETE, None))) is E.NONE


def test_an_override_that_nobody_knows_stays():
    """Rule: a setting that another tool wrote into ZooKeeper is no obstacle to altering another one."""
    lab = AdminLab().created("t")
    lab.admin(SetData(znodes.config_path("t"), znodes.encode_configuration({"of.another": "x"})))
    assert error_of(alter(lab, ("segment.ms", A.SET, "5"))) is E.NONE
    assert lab.overrides("t") == {"of.another": "x", "segment.ms": "5"}


@pytest.mark.parametrize("attempts", [1, topic_requests.ATTEMPTS])
def test_two_alter_the_same_topic(attempts, monkeypatch):
    """Rule (KIP-339): no alteration undoes another that came first. Planted: with one attempt only, the
    slower one is sent away."""
    monkeypatch.setattr(topic_requests, "ATTEMPTS", attempts)
    lab = AdminLab().created("t")
    lab.hold_zookeeper(1)
    first = alter(lab, ("segment.ms", A.SET, "5"))
    second = alter(lab, ("retention.ms", A.SET, "6"))
    for _ in range(60):
        lab.release_zookeeper(1, 1)
    lab.reconnect(1)
    assert error_of(first) is E.NONE
    if attempts > 1:
        assert error_of(second) is E.NONE
        assert lab.overrides("t") == {"retention.ms": "6", "segment.ms": "5"}
    else:
        assert error_of(second) is E.REQUEST_TIMED_OUT


def test_configuration_requests_do_not_wait_for_ever():
    """Rule: without ZooKeeper the answer is that the time is up, and nothing is left of the request."""
    lab = AdminLab().created("t")
    lab.hold_zookeeper(1)
    asked = alter(lab, ("segment.ms", A.SET, "5"))
    lab.advance(30_000, nodes=(1,))
    assert error_of_late(asked) is E.REQUEST_TIMED_OUT and not lab.core(1).administration.desk.open


def error_of_late(asked: Asked) -> ErrorCode:
    """As error_of, of an answer that gives no reason."""
    (resource,) = asked.answer.resources
    return resource.error
