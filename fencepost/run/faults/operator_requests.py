"""What operators ask of a cluster while it works: reassignments, topics that come, grow and go, preferred
elections; what they change in configurations is in configuration_change.py.

Owns the requests, as rows in the form of faults (kind.py): a plan orders them like faults, the run records
them like faults. Each is one write to ZooKeeper by nobody's session, as the admin tools do it, computed from
what is there when it is made; a real cluster is asked over the wire, and may refuse. Must not know what the
controller makes of it. A name of a topic is used once, unless the plan says so (`used_again`): old data under
a new topic of the same name, of a replica that was moved away while its broker was down, is a hazard that
this era accepts (KAFKA-13132).
"""

import re

from fencepost.impl.controller.placement import place_replicas
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, Failed, GetData, SetData
from fencepost.run.faults.configuration_change import ALTER_TOPIC, options_now
from fencepost.run.faults.kind import Ask, Breakable, FaultKind, Real, RealHit, Replicas, Targets, taken
from fencepost.traces.errors import PlanError
from fencepost.traces.plan import Fault, TopicOptions
from fencepost.traces.plan_json import MOST_PARTITIONS

TOGETHER = 4
"""Most partitions in one request for a reassignment."""

_PARTITION = re.compile(r"partition (?P<topic>.+)-(?P<number>\d+)")
_TOPIC = re.compile(r"topic (?P<topic>.+)")


def named(target: str, on: str) -> TopicPartition:
    """The partition, or the topic (partition 0), that a target names. Raises PlanError."""
    match = (_PARTITION if on == "partition" else _TOPIC).fullmatch(target)
    if match is None:
        raise PlanError(
            expected='a target such as "partition t-0"'
            if on == "partition"
            else 'a target such as "topic t"',
            seen=repr(target),
            where="plan.faults: target of a request",
            hint="docs/reference/plans.md lists the targets",
        )
    return TopicPartition(match["topic"], int(match["number"]) if on == "partition" else 0)


def _options(cluster: Breakable, topic: str) -> TopicOptions:
    known = (options for options in cluster.plan.cluster.topics if options.name == topic)
    return next(known, TopicOptions(name=topic))


def _assignment(cluster: Breakable, topic: str) -> tuple[dict[int, Replicas], int]:
    """Replicas by partition number, and the version of the topic's node; ({}, -1) without one."""
    reply = cluster.world.admin(GetData(znodes.topic_path(topic)))
    return (znodes.decode_topic(reply.data), reply.stat.version) if isinstance(reply, Data) else ({}, -1)


# ---- reassignments


def _grown(replicas: Replicas, brokers: Replicas, least: int) -> list[Replicas]:
    return [(*replicas, broker) for broker in brokers if broker not in replicas]


def _moved(replicas: Replicas, brokers: Replicas, least: int) -> list[Replicas]:
    return [
        (*replicas[:place], broker, *replicas[place + 1 :])
        for place in range(len(replicas))
        for broker in brokers
        if broker not in replicas
    ]


def _shrunk(replicas: Replicas, brokers: Replicas, least: int) -> list[Replicas]:
    if len(replicas) <= least:
        return []
    return [(*replicas[:place], *replicas[place + 1 :]) for place in range(len(replicas))]


def _reordered(replicas: Replicas, brokers: Replicas, least: int) -> list[Replicas]:
    return [(*replicas[place:], *replicas[:place]) for place in range(1, len(replicas))]


def _back(cluster: Breakable, key: TopicPartition) -> list[Replicas]:
    return [cluster.observed_state.first_assignments[key.topic, key.partition]]


def _reassign(targets: Targets | None) -> Ask:
    def ask(cluster: Breakable, fault: Fault) -> str:
        key = named(fault.target, "partition")
        assigned, _ = _assignment(cluster, key.topic)
        if key.partition not in assigned:
            return f"{key} does not exist"
        choice, more = divmod(fault.parameter, TOGETHER)
        numbers = sorted(assigned)
        begin = numbers.index(key.partition)
        planned, now = _options(cluster, key.topic), options_now(cluster, key.topic)
        least = max(1, planned.min_insync_replicas, now.min_insync_replicas)
        entries = {}
        for number in dict.fromkeys(numbers[(begin + place) % len(numbers)] for place in range(more + 1)):
            other = TopicPartition(key.topic, number)
            possible = (
                targets(assigned[number], cluster.broker_ids, least) if targets else _back(cluster, other)
            )
            possible = possible or [assigned[number]]
            entries[other] = possible[choice % len(possible)]
        if any(len(replicas) < least for replicas in entries.values()):
            return f"acks=all asks for {least} replicas"
        if all(assigned[other.partition] == replicas for other, replicas in entries.items()):
            return "there is nothing to change"
        asked = cluster.world.admin(Create(znodes.REASSIGN, znodes.encode_reassignments(entries)))
        return "a reassignment is under way" if isinstance(asked, Failed) else ""

    return ask


def _reassign_real(hit: RealHit, targets: Targets) -> None:
    """Over the wire, each partition for itself."""
    topic, operators = hit.asked
    choice, more = divmod(hit.parameter, TOGETHER)
    first = named(hit.fault.target, "partition").partition
    answers = []
    for number in sorted(topic.assigned)[first : first + 1 + more]:
        possible = targets(topic.assigned[number], topic.brokers, topic.least)
        if possible:
            answers.append(operators.reassign(topic.name, number, possible[choice % len(possible)]))
    taken(hit, answers)


def _elect_real(hit: RealHit) -> None:
    topic, operators = hit.asked
    taken(hit, [operators.elect(topic.name, number) for number in sorted(topic.assigned)])


def _grow_real(hit: RealHit) -> None:
    topic, operators = hit.asked
    count = len(topic.assigned) + 1
    taken(hit, [operators.create_partitions(topic.name, count)] if count <= MOST_PARTITIONS else [])


def _reassignment(says: str, targets: Targets | None) -> FaultKind:
    return FaultKind(
        says=f"an operator asks for a reassignment: {says}",
        ask=_reassign(targets),
        real=None if targets is None else Real("administration", lambda hit: _reassign_real(hit, targets)),
        on="partition",
        parameter=(0, 4 * TOGETHER * TOGETHER - 1),
        parameter_says=f"the remainder by {TOGETHER}: how many of the following partitions too; the "
        f"quotient: which of the possible results",
    )


# ---- topics


def _create_topic(cluster: Breakable, fault: Fault) -> str:
    topic = _options(cluster, named(fault.target, "topic").topic)
    if not (topic.created_later or topic.used_again):
        return f"{topic.name} was created when the cluster was set up"
    replicas = place_replicas(
        cluster.broker_ids,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        start=fault.parameter % len(cluster.broker_ids),
    )
    return cluster.create_new(topic, replicas)


def _delete_topic(cluster: Breakable, fault: Fault) -> str:
    topic = named(fault.target, "topic").topic
    if not _assignment(cluster, topic)[0]:
        return f"{topic} does not exist"
    asked = cluster.world.admin(Create(znodes.delete_topic_path(topic)))
    return f"{topic} is being deleted already" if isinstance(asked, Failed) else ""


def _add_partitions(cluster: Breakable, fault: Fault) -> str:
    topic = _options(cluster, named(fault.target, "topic").topic)
    assigned, version = _assignment(cluster, topic.name)
    if not assigned:
        return f"{topic.name} does not exist"
    if len(assigned) >= MOST_PARTITIONS:
        return f"{topic.name} has {len(assigned)} partitions already"
    if options_now(cluster, topic.name).min_insync_replicas > topic.replication_factor:
        return f"acks=all asks for more than {topic.replication_factor} replicas"
    added = place_replicas(
        cluster.broker_ids,
        partitions=1,
        replication_factor=topic.replication_factor,
        start=fault.parameter % len(cluster.broker_ids),
        first_partition=len(assigned),
    )
    cluster.world.admin(
        SetData(znodes.topic_path(topic.name), znodes.encode_topic({**assigned, **added}), version)
    )
    return ""


def _preferred_election(cluster: Breakable, fault: Fault) -> str:
    topic = named(fault.target, "topic").topic
    keys = [TopicPartition(topic, number) for number in sorted(_assignment(cluster, topic)[0])]
    if not keys:
        return f"{topic} does not exist"
    asked = cluster.world.admin(Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions(keys)))
    return "a preferred election is under way" if isinstance(asked, Failed) else ""


ADMINISTRATION: dict[str, FaultKind] = {
    "reassign_grow": _reassignment("one replica more", _grown),
    "reassign_move": _reassignment("a replica goes to another broker", _moved),
    "reassign_shrink": _reassignment("one replica less, never below min.insync.replicas", _shrunk),
    "reassign_reorder": _reassignment("the same replicas in another order", _reordered),
    "reassign_back": _reassignment("the replicas that the partition had at first", None),
    "create_topic": FaultKind(
        says="an operator creates a topic of the plan that is `created_later`, or again if it is "
        "`used_again`",
        ask=_create_topic,
        on="topic",
        parameter=(0, 3),
        parameter_says="which broker leads partition 0",
    ),
    "delete_topic": FaultKind(says="an operator deletes a topic", ask=_delete_topic, on="topic"),
    "add_partitions": FaultKind(
        says=f"an operator adds a partition to a topic, up to {MOST_PARTITIONS}",
        ask=_add_partitions,
        real=Real("administration", _grow_real),
        on="topic",
        parameter=(0, 3),
        parameter_says="where the round robin begins",
    ),
    "preferred_election": FaultKind(
        says="an operator asks for the preferred leaders of a topic",
        ask=_preferred_election,
        real=Real("administration", _elect_real),
        on="topic",
    ),
    "alter_topic": ALTER_TOPIC,
}
