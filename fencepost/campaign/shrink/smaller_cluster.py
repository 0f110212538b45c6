"""Shrinking the cluster: fewer topics, partitions, clients, brokers and replicas.

Owns: what else of a plan changes with them, so that the same thing can still happen: who is meant by a
target, where an operation goes. Must not know options or times.
"""

import re
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from fencepost.campaign.shrink.lists import Pass, Shrinking
from fencepost.traces.plan import Fault, Plan, TopicOptions
from fencepost.traces.plan_json import OF_PARTITION, Place, place_of

_BROKER = re.compile(r"broker (\d+)")


def topic_of(target: str) -> str | None:
    """The topic that a target names, if it names any."""
    place = place_of(target)
    return None if place is None else place[0]


def _topics(shrinking: Shrinking) -> None:
    """Leave out a topic with all that happens to it."""
    while len(shrinking.plan.cluster.topics) > 1:
        plan = shrinking.plan
        if shrinking.first(_without(plan, topic.name) for topic in reversed(plan.cluster.topics)) is None:
            return


def _without(plan: Plan, name: str) -> Plan:
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster, topics=tuple(topic for topic in plan.cluster.topics if topic.name != name)
        ),
        operations=tuple(
            evolve(one, topic=",".join(kept))
            for one in plan.operations
            if (kept := [topic for topic in one.topics if topic != name])
        ),
        faults=tuple(one for one in plan.faults if name not in (topic_of(one.target), topic_of(one.other))),
    )


def _partitions(shrinking: Shrinking) -> None:
    """One partition of a topic becomes its only one; failing that, the last ones go as long as they are not
    needed."""
    for place in range(len(shrinking.plan.cluster.topics)):
        plan = shrinking.plan
        topic = plan.cluster.topics[place]
        if topic.partitions == 1:
            continue
        if shrinking.first(_only_one(plan, place, topic)) is None:
            while (count := shrinking.plan.cluster.topics[place].partitions) > 1:
                if shrinking.first((_without_last(shrinking.plan, place, count - 1),)) is None:
                    break


def _only_one(plan: Plan, place: int, topic: TopicOptions) -> Iterator[Plan]:
    """For each partition: what happens to the others is left out; or it happens to this one."""
    for number in range(topic.partitions):
        for moved in (False, True):
            operations = (
                evolve(one, partition=0) if one.topic == topic.name else one
                for one in plan.operations
                if moved or one.topic != topic.name or one.partition == number
            )
            faults = (_renumbered(one, topic.name, number, plan.cluster.brokers) for one in plan.faults)
            single = _with_topic(plan, place, partitions=1)
            yield evolve(single, operations=tuple(operations), faults=tuple(faults))


def _without_last(plan: Plan, place: int, last: int) -> Plan:
    """The topic without its last partition, and without what names that."""
    name = plan.cluster.topics[place].name

    def stays(named: Place | None) -> bool:
        return named is None or named[0] != name or named[1] < last

    return evolve(
        _with_topic(plan, place, partitions=last),
        operations=tuple(one for one in plan.operations if stays((one.topic, one.partition))),
        faults=tuple(
            one for one in plan.faults if stays(place_of(one.target)) and stays(place_of(one.other))
        ),
    )


def _with_topic(plan: Plan, place: int, **changes: Any) -> Plan:
    topics = plan.cluster.topics
    changed = evolve(topics[place], **changes)
    return evolve(plan, cluster=evolve(plan.cluster, topics=(*topics[:place], changed, *topics[place + 1 :])))


def _renumbered(fault: Fault, topic: str, number: int, brokers: int) -> Fault:
    """A fault when partition `number` has become partition 0: its replicas have moved as many brokers
    back."""

    def changed(target: str) -> str:
        match = OF_PARTITION.fullmatch(target)
        if match is not None and match["topic"] == topic:
            return f"{match['role']}{topic}-0"
        match = _BROKER.fullmatch(target)
        if match is not None:
            return f"broker {(int(match[1]) - 1 - number) % brokers + 1}"
        return target

    return evolve(fault, target=changed(fault.target), other=changed(fault.other))


def _clients(shrinking: Shrinking) -> None:
    """One client does everything; failing that, one does what two did, and they are numbered without gaps."""
    while True:
        plan = shrinking.plan
        clients = sorted({one.process for one in plan.operations})
        if not clients:
            return
        mappings: list[dict[int, int]] = []
        if clients != [0]:
            mappings.append(dict.fromkeys(clients, 0))
        for gone in reversed(clients[1:]):
            mappings += [{gone: other} for other in clients if other < gone]
        if clients != list(range(len(clients))):
            mappings.append({client: place for place, client in enumerate(clients)})
        if shrinking.first(_with_clients(plan, mapping) for mapping in mappings) is None:
            return


def _with_clients(plan: Plan, mapping: dict[int, int]) -> Plan:
    return evolve(
        plan,
        operations=tuple(
            evolve(one, process=mapping.get(one.process, one.process)) for one in plan.operations
        ),
    )


def _brokers(shrinking: Shrinking) -> None:
    """Fewer brokers, then fewer replicas."""
    while (count := shrinking.plan.cluster.brokers - 1) >= 1:
        if shrinking.first((_with_brokers(shrinking.plan, count),)) is None:
            break
    for place in range(len(shrinking.plan.cluster.topics)):
        while (factor := shrinking.plan.cluster.topics[place].replication_factor - 1) >= 1:
            needed = min(shrinking.plan.cluster.topics[place].min_insync_replicas, factor)
            fewer = _with_topic(shrinking.plan, place, replication_factor=factor, min_insync_replicas=needed)
            if shrinking.first((fewer,)) is None:
                break


def _with_brokers(plan: Plan, count: int) -> Plan:
    """A smaller cluster; faults of brokers that it does not have are left out."""

    def known(target: str) -> bool:
        match = _BROKER.fullmatch(target)
        return match is None or int(match[1]) <= count

    topics = tuple(
        evolve(
            topic,
            replication_factor=min(topic.replication_factor, count),
            min_insync_replicas=min(topic.min_insync_replicas, count),
        )
        for topic in plan.cluster.topics
    )
    return evolve(
        plan,
        cluster=evolve(plan.cluster, brokers=count, topics=topics),
        faults=tuple(one for one in plan.faults if known(one.target) and known(one.other)),
    )


def cluster_passes() -> tuple[Pass, ...]:
    """The passes over the cluster and its clients."""
    return (_topics, _partitions, _clients, _brokers)
