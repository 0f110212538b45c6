"""What operators change in a topic's configuration, or in what all topics inherit from brokers, while these
run: the request `alter_topic` (docs/spec/cluster.md Z).

Owns the changes and the one write, as the admin tool makes it: overrides and a notification in one
transaction. Must not know how brokers obey. A change after which no append could ever be acknowledged,
because a partition has too few replicas, is not made.
"""

from collections.abc import Mapping

from fencepost.impl.admin.configuration import CHANGE_PARENTS, change_of
from fencepost.impl.core.topic_config import configured, in_force
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, Failed, GetData, Multi, SetData
from fencepost.run.faults.kind import Breakable, FaultKind, Real, RealHit, taken
from fencepost.traces.kafka_names.inherited_settings import DYNAMIC, EVERY_BROKER
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.plan import MEBIBYTE, Fault, TopicOptions

CHANGES: tuple[Mapping[str, str], ...] = (
    {},
    {"min.insync.replicas": "1"},
    {"min.insync.replicas": "2"},
    {"unclean.leader.election.enable": "true"},
    {"unclean.leader.election.enable": "false"},
    {"retention.ms": "20000"},
    {"retention.bytes": "300"},
    {"retention.ms": "-1", "retention.bytes": "-1"},
    {"segment.bytes": "150"},
    {"segment.ms": "400"},
    {"flush.messages": "1"},
    {"delete.retention.ms": "100", "min.cleanable.dirty.ratio": "0"},
    {"max.message.bytes": "110"},
    {"max.message.bytes": "1048588"},
    {"index.interval.bytes": "0"},
    {"index.interval.bytes": "4096"},
    {"segment.bytes": "2000"},
    {"segment.bytes": "1073741824", "segment.ms": "604800000"},
    {"flush.messages": "9223372036854775807"},
    {"retention.ms": "2000"},
    {"retention.bytes": "4000"},
    {"cleanup.policy": "delete"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
)
"""By the parameter. The first takes all overrides out."""
FIRST_POLICY = 21
"""From here on they are for topics whose records have keys."""
ONE_WAY = 12
"""How many of them a plan draws that has some requests of each kind: those after them turn others back."""


LOSSLESS = ("min.insync.replicas", "flush.messages", "index.interval.bytes")
OF_REAL = tuple(change for change in CHANGES if change and {*change} <= {*LOSSLESS})
"""What a real cluster is asked for: what a topic keeps is judged there by the plan's settings."""


def overrides(cluster: Breakable, topic: str) -> tuple[dict[str, str], int]:
    """What the topic's configuration says, and the version of its node; ({}, -1) without one."""
    reply = cluster.world.admin(GetData(znodes.config_path(topic)))
    if not isinstance(reply, Data):
        return {}, -1
    return znodes.decode_configuration(reply.data), reply.stat.version


def options_now(cluster: Breakable, topic: str) -> TopicOptions:
    """The plan's options of a topic with what operators changed."""
    return _options(cluster, topic, overrides(cluster, topic)[0])


def _options(cluster: Breakable, topic: str, own: Mapping[str, str]) -> TopicOptions:
    known = (options for options in cluster.plan.cluster.topics if options.name == topic)
    planned = next(known, TopicOptions(name=topic))
    inherited, own = (own, {}) if topic == EVERY_BROKER else (overrides(cluster, EVERY_BROKER)[0], own)
    return configured(planned, in_force(planned, inherited, own))[0]


def _least_replicas(cluster: Breakable, topic: str) -> int:
    """The fewest replicas that a partition of the topic has, or is about to have; 0 without any. Of all
    topics together: also of those that may come."""
    facts, options = cluster.observed_state, cluster.plan.cluster
    everywhere = topic == EVERY_BROKER
    assigned = (*facts.assignments.items(), *facts.reassigning.items())
    counts = [len(found) for (name, _), found in assigned if found and (everywhere or name == topic)]
    if everywhere:
        counts += [one.replication_factor for one in options.topics]
        counts += [options.groups.offsets_topic_replication_factor]
        counts += [options.transactions.state_topic_replication_factor, options.default_replication_factor]
    return min(counts, default=0)


def _has_coordinators(cluster: Breakable) -> bool:
    """Whether what all topics inherit reaches those of coordinators."""
    options = cluster.plan.cluster
    later = options.groups.offsets_topic_partitions or options.transactions.state_topic_partitions
    return bool(later) or any(topic.name in INTERNAL_TOPICS for topic in options.topics)


def change_topic(cluster: Breakable, topic: str, change: Mapping[str, str]) -> str:
    """Make a change; why not, if it was not made."""
    least = _least_replicas(cluster, topic)
    if not least:
        return f"{topic} does not exist"
    before, version = overrides(cluster, topic)
    after = {**before, **change} if change else {}
    if after == before:
        return "there is nothing to change"
    options = _options(cluster, topic, after)
    harms = options.unclean_leader_election or options.max_message_bytes < MEBIBYTE
    if harms and topic == EVERY_BROKER and _has_coordinators(cluster):
        return "coordinators need clean elections and large records"
    if options.min_insync_replicas > least:
        return f"{topic} has a partition of {least} replicas"
    for parent in CHANGE_PARENTS:
        cluster.world.admin(parent)
    path, data = znodes.config_path(topic), znodes.encode_configuration(after)
    write = Create(path, data) if version < 0 else SetData(path, data, version)
    asked = cluster.world.admin(Multi((write, change_of(topic))))
    return f"ZooKeeper says {asked.error.value}" if isinstance(asked, Failed) else ""


def _alter_topic(cluster: Breakable, fault: Fault) -> str:
    topic, change = fault.target.removeprefix("topic "), CHANGES[fault.parameter % len(CHANGES)]
    if topic == EVERY_BROKER:
        change = {DYNAMIC[name]: value for name, value in change.items()}
    return change_topic(cluster, topic, change)


def _alter_real(hit: RealHit) -> None:
    topic, operators = hit.asked
    change = OF_REAL[hit.parameter % len(OF_REAL)]
    least = min((len(replicas) for replicas in topic.assigned.values()), default=0)
    too_few = int(change.get("min.insync.replicas", 1)) > least
    taken(hit, [] if too_few else [operators.alter_topic(topic.name, change)])


ALTER_TOPIC = FaultKind(
    says="an operator changes a topic's configuration, or as `topic <default>` what all topics inherit, "
    "which brokers take over while they run",
    ask=_alter_topic,
    real=Real("administration", _alter_real),
    on="topic",
    parameter=(0, ONE_WAY - 1),
    parameter_says="which of the changes",
)
