"""What operators ask of consumer groups that are in use: to delete one or its offsets, to remove a static
member.

Owns the requests, as rows in the form of faults (kind.py). Each is one message to the broker that leads the
group's partition. Its answer is not waited for: what comes of it is in the coordinator's events. Must not
know what a coordinator makes of it.
"""

from collections.abc import Callable

from attrs import define

from fencepost.impl.messages.group_api import DeleteGroupRequest, LeaveGroupRequest, OffsetDeleteRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.record.facts import place_of
from fencepost.run.faults.kind import Ask, Breakable, FaultKind
from fencepost.traces.errors import PlanError
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import Fault

OPERATOR_NODE = (1 << 48) - 2
"""A node id of our own clients, after that of who asks in rounds."""
OF_GROUP = "group "
"""How a target begins."""
MOST_INSTANCES = 63
"""The last static member that a plan's parameter names."""
Request = DeleteGroupRequest | OffsetDeleteRequest | LeaveGroupRequest


@define
class Deaf:
    """Who has asked, and does not listen."""

    incarnation: int = 0

    def receive(self, source: int, message: object) -> None:
        """Drop an answer.

        Args:
            source: the broker.
            message: the response.
        """


def _group(fault: Fault) -> str:
    if not fault.target.startswith(OF_GROUP):
        raise PlanError(
            expected='a target such as "group g"',
            seen=repr(fault.target),
            where="plan.faults: target of a request",
            hint="docs/reference/plans.md lists the targets",
        )
    return fault.target.removeprefix(OF_GROUP)


def _asks(request: Callable[[Breakable, str, int], Request]) -> Ask:
    def ask(cluster: Breakable, fault: Fault) -> str:
        group, partitions = _group(fault), cluster.observed_state.partitions
        count = sum(topic == OFFSETS_TOPIC for topic, _ in partitions)
        leader = partitions[OFFSETS_TOPIC, place_of(group, count)].leader if count else -1
        if leader < 1:
            return f"nobody coordinates {group}"
        network = cluster.world.network
        if not network.has(OPERATOR_NODE):
            network.attach(OPERATOR_NODE, Deaf())
        network.send(OPERATOR_NODE, leader, request(cluster, group, fault.parameter), (fault.fault_id,))
        return ""

    return ask


def _delete_group(cluster: Breakable, group: str, parameter: int) -> Request:
    return DeleteGroupRequest(correlation_id=0, group_id=group)


def _delete_offsets(cluster: Breakable, group: str, parameter: int) -> Request:
    """Of all partitions of a topic."""
    topics = [topic.name for topic in cluster.plan.cluster.topics]
    topic = topics[parameter % len(topics)]
    keys = sorted(key for key in cluster.observed_state.assignments if key[0] == topic)
    partitions = tuple(TopicPartition(*key) for key in keys)
    return OffsetDeleteRequest(correlation_id=0, group_id=group, partitions=partitions)


def _remove_member(cluster: Breakable, group: str, parameter: int) -> Request:
    return LeaveGroupRequest(
        correlation_id=0, group_id=group, member_id="", group_instance_id=f"instance-{parameter}"
    )


GROUP_REQUESTS: dict[str, FaultKind] = {
    "delete_group": FaultKind(
        says="an operator deletes a consumer group, which is refused while it has members",
        ask=_asks(_delete_group),
        on="group",
    ),
    "delete_offsets": FaultKind(
        says="an operator deletes a group's offsets of a topic, which is refused while a member "
        "subscribes to it",
        ask=_asks(_delete_offsets),
        on="group",
        parameter=(0, 3),
        parameter_says="which topic of the plan",
    ),
    "remove_member": FaultKind(
        says="an operator removes a static member from its group (KIP-345)",
        ask=_asks(_remove_member),
        on="group",
        parameter=(0, MOST_INSTANCES),
        parameter_says="the number of its instance, which is that of its process",
    ),
}
