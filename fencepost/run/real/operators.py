"""What operators ask of a real cluster while it works: preferred elections, and reassignments of a topic.

Owns the requests. Must not know when they are made. The kinds are those of the simulator
(run/faults/administration.py), with the same targets and parameters; here they go over the wire. A
cluster may refuse: then the fault is recorded as skipped, with Kafka's name of the error.
"""

from collections.abc import Callable, Mapping

from attrs import frozen

from fencepost.run.faults.administration import TARGETS, TOGETHER, Replicas, Targets, named
from fencepost.systems.apache_kafka.administration import NONE, Administration
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import Fault

PATIENCE_S = 10.0
"""How long a controller is looked for: a run lasts a few seconds, and one that has none meanwhile has
refused."""
REQUEST_S = 5
DONE = (NONE, "ELECTION_NOT_NEEDED")
"""An election that changes nothing is done, too."""


@frozen(kw_only=True)
class Topic:
    """The topic of a run."""

    # In the cluster.
    name: str
    # Replicas as they were seen last, by partition.
    assigned: Mapping[int, Replicas]
    brokers: Replicas
    # Replicas that every partition keeps.
    least: int


def ask(admin: Administration, fault: Fault, topic: Topic) -> None:
    """Make the request of a fault.

    Parameters:
      admin: of the cluster.
      fault: names a partition of the plan's topic, or the topic.
      topic: of the run.
    Raises: FencepostError for what was refused, and where nobody answered.
    """
    answers = _REQUESTS[fault.kind](admin, fault, topic)
    refused = [answer for answer in answers if answer not in DONE]
    if refused or not answers:
        raise FencepostError(
            expected=f"that {fault.kind} is taken",
            seen=", ".join(refused) or "that there is nothing to change",
            where=fault.target,
        )


def _elect(admin: Administration, fault: Fault, topic: Topic) -> list[str]:
    return [admin.elect(topic.name, number) for number in sorted(topic.assigned)]


def _reassign(targets: Targets) -> "Callable[[Administration, Fault, Topic], list[str]]":
    def request(admin: Administration, fault: Fault, topic: Topic) -> list[str]:
        choice, more = divmod(fault.parameter, TOGETHER)
        numbers = sorted(topic.assigned)
        first = named(fault.target, "partition").partition
        answers = []
        for number in numbers[first : first + 1 + more]:
            possible = targets(topic.assigned[number], topic.brokers, topic.least)
            if possible:
                answers.append(admin.reassign(topic.name, number, possible[choice % len(possible)]))
        return answers

    return request


_REQUESTS: Mapping[str, "Callable[[Administration, Fault, Topic], list[str]]"] = {
    "preferred_election": _elect,
    **{kind: _reassign(targets) for kind, targets in TARGETS.items()},
}
KINDS = tuple(_REQUESTS)
"""Kinds of request that real systems take."""
